"""Tables of quantities worked by hand: a few counters a row, all rows measured at once as kernels of one report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from ncuroof.metrics import Measurements, measure
from tests.support.raw import raw_report

Counters = Mapping[str, float]
ByHand = tuple[str, Counters, float | None]
"""Name of a quantity, counters as Nsight Compute stores them (percentages in percent), and its value: None where not known."""

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
ACTIVE = ".avg.pct_of_peak_sustained_active"
HALF_ACTIVE = {"sm__cycles_active.avg": 300.0, "sm__cycles_elapsed.max": 600.0}
"""SMs that have work for half of the time."""


def chip(capability: int) -> Counters:
    """Return what tells a chip: its compute capability as major × 10 + minor."""
    name = "device__attribute_compute_capability_"
    return {f"{name}major": float(capability // 10), f"{name}minor": float(capability % 10)}


def measured(kernels: Sequence[Counters]) -> Measurements:
    """Return the measurements of kernels that hold these counters."""
    return measure([raw_report(*({name: float(value) for name, value in each.items()} for each in kernels))])


def each_row_holds(rows: Sequence[ByHand]) -> Callable[[int], None]:
    """Return a test of each row: its quantity has its value. All rows are measured at once, with the first that is tested."""
    kernels = cache(lambda: measured([counters for _, counters, _ in rows]).kernels)
    labels = [f"{number}-{name}" for number, (name, _, _) in enumerate(rows)]

    @pytest.mark.parametrize("number", range(len(rows)), ids=labels)
    def holds(number: int) -> None:
        name, counters, expected = rows[number]
        row: dict[str, Any] = kernels().row(number, named=True)
        assert row[name] == (None if expected is None else pytest.approx(expected, rel=1e-9)), (name, dict(counters))

    return holds
