"""Values that no counter can have are not known, and said once; kernels without any counter are analysed all the same."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ncuroof.ingest.code.static_code import raw_code
from ncuroof.metrics.measurements import measure
from ncuroof.reading import Reports
from tests.support.raw import raw_report

DURATION, OCCUPANCY = "gpu__time_duration.sum", "sm__warps_active.avg.pct_of_peak_sustained_active"


@pytest.mark.parametrize("value", [-5.0, -1e-12])
def test_a_negative_value_is_not_known(value: float) -> None:
    measurements = measure([raw_report({DURATION: value, OCCUPANCY: 50.0})])
    assert measurements.kernels["duration_ns"].to_list() == [None]
    assert measurements.kernels["occupancy.achieved_frac"].to_list() == [0.5]
    (said,) = measurements.dropped
    assert f"a counter holds impossible values ({DURATION} = {value:g}), which are not used" in said


def test_several_are_counted_in_one_sentence() -> None:
    (said,) = measure([raw_report({DURATION: -5.0, OCCUPANCY: -1.0})]).dropped
    assert f"2 counters hold impossible values ({DURATION} = -5), which are not used" in said


def test_zero_is_possible() -> None:
    measurements = measure([raw_report({DURATION: 0.0})])
    assert (measurements.kernels["duration_ns"].to_list(), measurements.dropped) == ([0.0], ())


def test_kernels_with_machine_code_and_without_counters_are_analysed() -> None:
    report = raw_report({DURATION: 1.0})
    code = raw_code([{"unread_indices": ["launch__block_dim_y"]}])
    bare = replace(report, counters=pl.DataFrame(), units={}, code=code)
    document = Reports((bare,)).analyse().to_dict()
    assert document["kernels"][0]["verdict"] == "unknown"
    assert document["kernels"][0]["missing"]


def test_launches_without_stall_counters_have_a_row_each() -> None:
    """A selection of nothing but unknown values has one row, however many launches there are."""
    kernels = measure([raw_report({DURATION: 1.0}, {DURATION: 2.0})]).kernels
    assert kernels["stalls.barrier"].to_list() == [None, None]
