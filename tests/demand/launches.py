"""Launches for tests of savings: one row of few quantities, worked out by hand, and those of recorded reports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import polars as pl

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.demand import Fix, load_model, with_demand
from ncuroof.diagnosis import load_rules

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FIXES: Mapping[str, Fix] = {name: each.fix for name, each in load_rules().findings.items() if each.fix is not None}
"""All changes that findings ask for and whose saving is estimated, by finding."""

_MODEL = load_model()
QUANTITIES = sorted(
    {name for fix in FIXES.values() for formula in fix.formulas() for name in formula.quantities}
    | {name for each in (*_MODEL.resources.values(), *_MODEL.sides.values()) for name in each.demand.quantities}
    | {f"stalls.{reason}" for each in _MODEL.resources.values() for reason in each.stalls}
    | {"duration_ns", "scheduler.working_frac", "scheduler.own_sm_active_frac"}
)
"""All that savings are worked out of."""

_ALWAYS = {"duration_ns": 1e6, "scheduler.working_frac": 1.0, "scheduler.own_sm_active_frac": 1.0}
"""Of a launch of 1 ms in which all SMs have work all the time."""


def demands(*launches: Mapping[str, float | None]) -> pl.DataFrame:
    """Return launches of these quantities with their demands; what none of them gives is not known."""
    rows: list[dict[str, float | None]] = [{**_ALWAYS, **each} for each in launches]
    return with_demand(pl.DataFrame(rows, schema=dict.fromkeys(sorted({*_ALWAYS}.union(*rows)), pl.Float64)))


@cache
def recorded(*reports: str) -> pl.DataFrame:
    """Return the launches of recorded reports with all quantities of savings and their demands."""
    kernels = [_analysed(report).kernels.select(pl.col(QUANTITIES).cast(pl.Float64)) for report in reports]
    return with_demand(pl.concat(kernels))


@cache
def _analysed(report: str) -> Analysis:
    return ncuroof.read(FIXTURES / report).analyse()
