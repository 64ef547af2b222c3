"""What is said where the counters for a verdict, a duration or the waves were not collected: counters chosen by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ncuroof.ingest.raw_report import is_measured
from ncuroof.reading import Reports
from tests.support.by_hand import chip, measured
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
MEMORY, COMPUTE = f"gpu__compute_memory_throughput{PCT}", f"sm__throughput{PCT}"


def judged(counters: dict[str, float], capability: int = 86) -> dict[str, Any]:
    (kernel,) = Reports((raw_report({**chip(capability), **counters}),)).analyse().to_dict()["kernels"]
    return kernel


def grid(n_blocks: float, n_threads: float) -> dict[str, float]:
    names = [f"launch__{what}_dim_{axis}" for what in ("grid", "block") for axis in "xyz"]
    return dict(zip(names, [n_blocks, 1.0, 1.0, n_threads, 1.0, 1.0], strict=True)) | {
        "launch__grid_size": n_blocks,
        "launch__block_size": n_threads,
    }


CONFLICTS = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 9e6,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 1e7,
}


@pytest.mark.parametrize(
    ("counters", "finding"),
    [
        (CONFLICTS, "bank_conflicts"),
        ({"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 4.0}, "partly_used_sectors"),
        ({"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 31.9}, "scattered_load_requests"),
        ({"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": 31.9}, "scattered_store_requests"),
        (
            {
                "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio": 32.0,
                "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 4.0,
            },
            "uncoalesced_global_store",
        ),
        ({"smsp__thread_inst_executed_per_inst_executed.ratio": 4.0}, "divergence"),
        ({"smsp__thread_inst_executed.sum": 8.4e6, "smsp__inst_executed.sum": 1e6}, "divergence"),
        ({"thread_inst_executed": 8.4e6, "inst_executed": 1e6}, "divergence"),
        (
            {
                "smsp__thread_inst_executed_per_inst_executed.ratio": 31.0,
                "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 9.0,
            },
            "predicated_off",
        ),
        ({"l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 5e7}, "local_memory_of_unknown_share"),
        ({"derived__local_spilling_requests": 1e9, "derived__local_spilling_requests_pct": 97.0}, "local_memory"),
        (grid(1000, 40), "partial_warps"),
        ({**grid(12, 256), "device__attribute_multiprocessor_count": 28.0}, "small_grid"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
@pytest.mark.parametrize("duration", [{}, {"gpu__time_duration.sum": 5e5}], ids=["no time", "time"])
def test_what_was_counted_is_stated_without_a_verdict_and_without_a_gain(
    counters: dict[str, float], finding: str, duration: dict[str, float]
) -> None:
    kernel = judged(counters | duration)
    found = {each["id"]: each for each in kernel["findings"]}
    assert finding in found
    assert kernel["verdict"] == "unknown"
    assert found[finding]["gain_ns"] is None


def test_four_lanes_of_32_are_no_gain_without_a_verdict() -> None:
    kernel = judged({"smsp__thread_inst_executed_per_inst_executed.ratio": 4.0, "gpu__time_duration.sum": 5e5})
    assert kernel["verdict"] == "unknown"
    assert [each["gain_ns"] for each in kernel["findings"]] == [None]


@pytest.mark.parametrize(
    ("memory", "compute", "verdict"),
    [(93.0, 20.0, "memory"), (20.0, 90.0, "compute"), (80.0, 78.0, "balanced"), (20.0, 30.0, "latency")],
)
def test_a_verdict_needs_no_duration(memory: float, compute: float, verdict: str) -> None:
    assert judged({MEMORY: memory, COMPUTE: compute})["verdict"] == verdict


def test_a_failed_launch_has_no_verdict_though_its_grid_is_known() -> None:
    report = raw_report({**grid(1, 256), "device__attribute_multiprocessor_count": 80.0})
    failed = report.workloads.with_columns(n_collected=pl.lit(598, pl.UInt32), n_not_finite=pl.lit(598, pl.UInt32))
    verdicts = [
        Reports((each,)).analyse().to_dict()["kernels"][0]["verdict"]
        for each in (report, replace(report, workloads=failed))
    ]
    assert verdicts == ["latency", "unknown"]


@pytest.mark.parametrize(
    ("counter", "is_one"),
    [
        (MEMORY, True),
        ("smsp__inst_executed.sum", True),
        ("sm__inst_executed.sum.peak_sustained", False),
        ("dram__bytes.sum.peak_sustained_elapsed.per_second", False),
        ("derived__local_spilling_requests", False),
        ("launch__grid_size", False),
        ("device__attribute_clock_rate", False),
    ],
)
def test_what_a_launch_has_whether_or_not_it_was_profiled_is_not_measured(counter: str, is_one: bool) -> None:
    assert is_measured(counter) == is_one


@pytest.mark.parametrize(
    "counters",
    [
        {"dram__bytes_read.sum.pct_of_peak_sustained_elapsed": 76.0},
        {"dram__bytes_write.sum.pct_of_peak_sustained_elapsed": 76.0},
        {"dram__sectors_read.sum.pct_of_peak_sustained_elapsed": 76.0},
        {
            "dram__bytes_read.sum": 0.76e9,
            "gpu__time_duration.sum": 1e6,
            "device__attribute_memory_clock_rate": 5e6,
            "device__attribute_global_memory_bus_width": 800.0,
        },
    ],
)
def test_one_direction_of_dram_alone_makes_memory_bound_at_least(counters: dict[str, float]) -> None:
    kernel = judged(counters)
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "dram")
    assert kernel["utilisation"]["dram"] is None


def test_little_of_one_direction_says_nothing() -> None:
    assert judged({"dram__bytes_read.sum.pct_of_peak_sustained_elapsed": 5.0})["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("counters", "most"),
    [
        ({"launch__waves_per_multiprocessor": 0.09}, 0.09),
        (grid(1, 1024), 1 / 14),
        ({**grid(8, 64), "launch__sm_count": 16.0}, 0.5),
        ({**grid(8, 64), "launch__sm_count": 2.0, "launch__occupancy_limit_warps": 16.0}, 0.25),
    ],
)
def test_waves_have_an_upper_bound_where_they_were_not_collected(counters: dict[str, float], most: float) -> None:
    assert measured([{**chip(80), **counters}]).kernels["occupancy.most_waves"].to_list() == [pytest.approx(most)]


@pytest.mark.parametrize(("time_ns", "verdict"), [(4e3, "overhead"), (5e6, "latency")])
def test_a_single_block_is_a_small_grid_without_the_waves(time_ns: float, verdict: str) -> None:
    kernel = judged({MEMORY: 0.5, COMPUTE: 0.1, "gpu__time_duration.sum": time_ns, **grid(1, 1024)})
    assert kernel["verdict"] == verdict
    if verdict == "latency":
        assert (kernel["limiter"], kernel["findings"][0]["id"]) == ("grid", "small_grid")


@pytest.mark.parametrize("n_threads", [1, 32])
def test_one_warp_is_no_small_grid(n_threads: int) -> None:
    kernel = judged({MEMORY: 0.5, COMPUTE: 0.02, "gpu__time_duration.sum": 5e8, **grid(1, n_threads)})
    assert (kernel["limiter"], kernel["findings"][0]["id"]) == ("one_warp", "one_warp")
    assert "host" in kernel["findings"][0]["advice"]
    assert "small_grid" not in {each["id"] for each in kernel["findings"]}


def test_threads_of_few_waiting_sms_need_less_work_each_and_not_smaller_blocks() -> None:
    few = {
        **grid(8, 1024),
        "device__attribute_multiprocessor_count": 80.0,
        "launch__waves_per_multiprocessor": 0.05,
        "gpu__time_duration.sum": 1e6,
        "sm__cycles_active.avg": 10.0,
        "sm__cycles_elapsed.max": 100.0,
    }
    waiting = judged({**few, MEMORY: 2.0, COMPUTE: 1.0})["findings"][0]
    assert waiting["id"] == "small_grid"
    assert "smaller blocks\ngain nothing" in waiting["advice"] or "smaller blocks gain nothing" in waiting["advice"]
    busy = judged({**few, MEMORY: 2.0, COMPUTE: 9.0})["findings"][0]
    assert "gain nothing" not in busy["advice"]
