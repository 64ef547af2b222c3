"""Local memory that only the machine code shows: no gain, and less confidence in whatever else is named."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.reading import Reports
from tests.support.raw import raw_report, with_code

PCT = ".avg.pct_of_peak_sustained_elapsed"
LOCAL = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum"
ONE_THREAD = {
    "gpu__time_duration.sum": 6.9e9,
    f"gpu__compute_memory_throughput{PCT}": 40.0,
    f"sm__throughput{PCT}": 1.0,
    "launch__waves_per_multiprocessor": 900.0,
    "launch__block_size": 1.0,
    "launch__grid_size": 1e6,
}
"""Blocks of one thread, with 556 of 634 memory instructions to an array of 4 KB in local memory."""


def analysed(share: float | None, *, is_debug: bool = False, **counters: float) -> dict[str, Any]:
    report = raw_report(ONE_THREAD | counters)
    report = with_code(report, local_accesses=[share], is_debug_build=[is_debug])
    return Reports((report,)).analyse().to_dict()["kernels"][0]


def test_local_memory_of_unknown_traffic_is_told_without_a_gain() -> None:
    kernel = analysed(556 / 634)
    (found,) = [finding for finding in kernel["findings"] if finding["id"] == "local_memory_by_code"]
    assert (found["gain_ns"], found["severity"]) == (None, "medium")
    assert kernel["access"]["local_by_code_frac"] == pytest.approx(0.877, abs=5e-4)
    assert "local_not_collected" in kernel["caveats"]


@pytest.mark.parametrize(
    ("share", "counters", "confidence"),
    [
        (556 / 634, {}, "medium"),
        (0.5, {}, "medium"),
        (3 / 7, {}, "high"),  # a few registers saved around a call
        (0.0, {}, "high"),
        (None, {}, "high"),
        (556 / 634, {LOCAL.format("ld"): 0.0, LOCAL.format("st"): 0.0}, "high"),  # counted
    ],
)
def test_a_cause_beside_it_is_less_sure(share: float | None, counters: dict[str, float], confidence: str) -> None:
    kernel = analysed(share, **counters)
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", "occupancy")
    assert kernel["findings"][0]["id"] == "blocks_below_a_warp"
    assert kernel["confidence"] == confidence
    ids = {finding["id"] for finding in kernel["findings"]}
    is_doubtful = confidence == "medium"
    assert ("local_memory_by_code" in ids, "local_not_collected" in kernel["caveats"]) == (is_doubtful, is_doubtful)


def test_debug_builds_have_their_variables_there_on_purpose() -> None:
    kernel = analysed(0.9, is_debug=True)
    assert kernel["findings"][0]["id"] == "debug_build"
    assert "local_memory_by_code" not in {finding["id"] for finding in kernel["findings"]}
    assert "local_not_collected" not in kernel["caveats"]
