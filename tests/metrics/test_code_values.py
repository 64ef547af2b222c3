"""Loads in flight by the machine code, from instructions whose samples are chosen by hand, and what is diagnosed of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ncuroof.analysis import Reports
from ncuroof.ingest.raw_report import RAW_INSTRUCTIONS, RawReport
from ncuroof.metrics import measure, selection
from tests.support.raw import raw_report

WAITS = "smsp__pcsamp_warps_issue_stalled_long_scoreboard"


def report(*instructions: tuple[int, int | None, float], counters: dict[str, float] | None = None) -> RawReport:
    """Return a report of two kernels with these instructions: kernel, loads under way, samples."""
    rows = [{"row": row, "n_loads": n_loads, WAITS: n_samples} for row, n_loads, n_samples in instructions]
    known = {"row": RAW_INSTRUCTIONS["row"], "n_loads": RAW_INSTRUCTIONS["n_loads"], WAITS: pl.Float64()}
    table = pl.DataFrame(rows, schema=known)
    others = [pl.lit(None, dtype).alias(name) for name, dtype in RAW_INSTRUCTIONS.items() if name not in known]
    each = {"gpu__time_duration.sum": 1e6, **(counters or {})}
    return replace(raw_report(each, each), instructions=table.with_columns(others))


def loads(*reports: RawReport) -> list[float | None]:
    return measure(reports).kernels["access.loads_in_flight"].to_list()


def test_instructions_count_by_their_samples() -> None:
    found = report((0, 8, 90.0), (0, 2, 10.0), (1, 1, 50.0))
    assert loads(found) == [pytest.approx(7.4), 1.0]


def test_each_report_has_its_own() -> None:
    assert loads(report((1, 3, 40.0)), report((0, 5, 40.0))) == [None, 3.0, 5.0, None]


@pytest.mark.parametrize(
    ("n_loads", "n_others", "told"),
    [(29.0, 0.0, False), (30.0, 0.0, True), (50.0, 50.0, True), (50.0, 51.0, False)],
)
def test_few_samples_and_waits_for_other_things_tell_nothing(n_loads: float, n_others: float, told: bool) -> None:
    found = report((0, 2, n_loads), (0, None, n_others))
    assert loads(found)[0] == (2.0 if told else None)


def test_the_counters_of_samples_are_asked_for_with_lines_and_without() -> None:
    assert WAITS in selection().waits
    assert WAITS in selection(lines=False).waits


LATENCY = {
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
    "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
}
OF_LOADS = {"serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"}


@pytest.mark.parametrize(
    ("n_loads", "finding"),
    [
        (1, "serial_loads"),
        (2, "serial_loads"),
        (3, "stall_long_scoreboard"),
        (8, "stall_overlapping_loads"),
        (None, "stall_long_scoreboard"),
    ],
)
def test_how_many_loads_overlap_decides_what_is_said_of_the_wait(n_loads: int | None, finding: str) -> None:
    found: dict[str, Any] = Reports((report((0, n_loads, 100.0), counters=LATENCY),)).analyse().to_dict()["kernels"][0]
    assert found["verdict"] == "latency"
    assert [each["id"] for each in found["findings"] if each["id"] in OF_LOADS] == [finding]
