"""Checks quantities against manually computed values: a few counters per row, all rows measured as the kernels of one report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from ncuroof.metrics import Measurements, measure
from tests.support.raw import raw_report

Counters = Mapping[str, float]
ByHand = tuple[str, Counters, float | None]
"""Name of a quantity, counters as Nsight Compute stores them (percentages in percent), expected value (None: not known)."""

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
ACTIVE = ".avg.pct_of_peak_sustained_active"
HALF_ACTIVE = {"sm__cycles_active.avg": 300.0, "sm__cycles_elapsed.max": 600.0}
"""SMs that have work half of the time."""


def chip(capability: int) -> Counters:
    """Return the counters that identify a chip, by its compute capability as major × 10 + minor."""
    name = "device__attribute_compute_capability_"
    return {f"{name}major": float(capability // 10), f"{name}minor": float(capability % 10)}


def measured(kernels: Sequence[Counters]) -> Measurements:
    """Return the measurements of kernels with these counters."""
    return measure([raw_report(*({name: float(value) for name, value in each.items()} for each in kernels))])


def each_row_holds(rows: Sequence[ByHand]) -> Callable[[int], None]:
    """Return a test, parametrised by row, that each quantity has its expected value.

    All rows are measured together when the first one is tested.
    """
    kernels = cache(lambda: measured([counters for _, counters, _ in rows]).kernels)
    labels = [f"{number}-{name}" for number, (name, _, _) in enumerate(rows)]

    @pytest.mark.parametrize("number", range(len(rows)), ids=labels)
    def holds(number: int) -> None:
        name, counters, expected = rows[number]
        row: dict[str, Any] = kernels().row(number, named=True)
        assert row[name] == (None if expected is None else pytest.approx(expected, rel=1e-9)), (name, dict(counters))

    return holds
