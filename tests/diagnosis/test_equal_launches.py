"""Launches that are equal within noise get one verdict, and a threshold is no cliff: counters chosen by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.tree import of_equal_launches
from ncuroof.present.page.kernel_detail import flip_sentence
from ncuroof.reading import Reports
from tests.support.by_hand import chip
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
MEMORY, COMPUTE = f"gpu__compute_memory_throughput{PCT}", f"sm__throughput{PCT}"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"


def judged(*launches: dict[str, float], capability: int = 75) -> list[dict[str, Any]]:
    base = {**chip(capability), "gpu__time_duration.sum": 1e6, "launch__waves_per_multiprocessor": 20.0}
    report = raw_report(*({**base, **each} for each in launches), names=["kernel"] * len(launches))
    kernels: list[dict[str, Any]] = Reports((report,)).analyse().to_dict()["kernels"]
    return kernels


def sides(memory: float, compute: float, time_ns: float = 1e6) -> dict[str, float]:
    return {MEMORY: memory, COMPUTE: compute, "gpu__time_duration.sum": time_ns}


@pytest.mark.parametrize(
    "launches",
    [
        [sides(59.8, 20.0, 1.00e6), sides(60.2, 20.0, 1.01e6), sides(59.9, 20.0, 0.99e6)],
        [sides(20.0, 60.3, 1.00e6), sides(20.0, 59.7, 1.01e6)],
        [sides(80.0, 69.9), sides(80.0, 70.1, 1.02e6)],
        [sides(60.1 - 0.05 * n, 30.0, 1e6 + 1e3 * n) for n in range(10)],
    ],
    ids=["memory", "compute", "gap", "ten"],
)
def test_equal_launches_on_both_sides_of_a_threshold_get_one_verdict(launches: list[dict[str, float]]) -> None:
    kernels = judged(*launches)
    assert len({(each["verdict"], each["limiter"], each["confidence"]) for each in kernels}) == 1
    assert kernels[0]["confidence"] != "high"
    assert [each["duration_ns"] for each in kernels] == [each["gpu__time_duration.sum"] for each in launches]


@pytest.mark.parametrize(
    "launches",
    [
        [sides(50.0, 20.0, 1e6), sides(80.0, 20.0, 1e6)],  # other data in the same time
        [sides(59.0, 20.0, 1e6), sides(61.0, 20.0, 2e6)],  # another time
    ],
)
def test_launches_that_differ_by_more_than_noise_are_judged_apart(launches: list[dict[str, float]]) -> None:
    assert [each["verdict"] for each in judged(*launches)] == ["latency", "memory"]


def test_gains_are_of_each_launch_s_own_time() -> None:
    low = {"sm__maximum_warps_per_active_cycle_pct": 25.0, "sm__warps_active.avg.pct_of_peak_sustained_active": 24.0}
    first, second = judged(sides(30.0, 20.0, 1.0e6) | low, sides(30.0, 20.0, 1.04e6) | low)
    (one,), (other,) = (
        [found["gain_ns"] for found in each["findings"] if found["id"] == "low_occupancy"] for each in (first, second)
    )
    assert other / one == pytest.approx(1.04, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("share", [76.0, 79.9, 80.1, 84.0])
def test_l1_by_an_unlisted_part_is_no_cliff(share: float) -> None:
    def of(l1: float) -> float:
        busy = {"sm__cycles_active.avg": 100.0, "sm__cycles_elapsed.max": 100.0, L1: l1}
        return float(judged(sides(55.0, 50.0) | busy)[0]["utilisation"]["memory_side"])

    assert abs(of(share + 0.1) - of(share - 0.1)) < 0.03
    assert of(90.0) == pytest.approx(0.9)


def test_near_the_threshold_findings_of_both_sides_are_listed() -> None:
    few_warps = {
        "sm__maximum_warps_per_active_cycle_pct": 25.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 24.0,
    }
    (above,), (below,) = (judged(sides(memory, 20.0) | few_warps) for memory in (61.0, 59.0))
    assert (above["verdict"], below["verdict"]) == ("memory", "latency")
    for kernel in (above, below):
        (found,) = (each for each in kernel["findings"] if each["id"] == "low_occupancy")
        assert found["gain_ns"] <= (1 - 0.59) * 1e6
    assert "low_occupancy" not in {each["id"] for each in judged(sides(75.0, 20.0) | few_warps)[0]["findings"]}


def test_a_flip_says_something_at_the_threshold_itself() -> None:
    (kernel,) = judged(sides(59.999, 20.0))
    sentence = flip_sentence(kernel, load_rules())
    assert "instead of" not in sentence
    assert "60.0 %" in sentence


@pytest.mark.parametrize(
    "counters",
    [
        {"launch__grid_size": 2.0, "device__attribute_multiprocessor_count": 80.0},
        {"launch__waves_per_multiprocessor": 0.05},
    ],
)
def test_a_flip_that_the_grid_rules_out_is_not_stated(counters: dict[str, float]) -> None:
    (kernel,) = judged(sides(3.0, 1.0) | {f"gpu__dram_throughput{PCT}": 3.0} | counters)
    assert (kernel["verdict"], kernel["flip"]) == ("latency", None)


def test_sms_that_idle_for_most_of_the_time_flip_to_no_compute_verdict() -> None:
    idle = {"sm__cycles_active.avg": 40.0, "sm__cycles_elapsed.max": 100.0}
    (kernel,) = judged(sides(10.0, 35.0) | idle)
    assert (kernel["verdict"], kernel["flip"]) == ("latency", None)


def test_a_launch_keeps_its_time_and_its_neighbours_whoever_decides_for_it() -> None:
    launches = pl.DataFrame(
        {
            "id": [0, 1, 2],
            "name": ["k", "k", "k"],
            "failed": [False, False, True],
            "duration_ns": [100.0, 104.0, None],
            "utilisation.busiest": [0.59, 0.61, None],
            "launch.is_of_optimizer": [0.0, 1.0, 0.0],
        }
    )
    shared = of_equal_launches(launches)
    assert shared["utilisation.busiest"].to_list() == [0.59, 0.59, None]
    assert shared.drop("utilisation.busiest").equals(launches.drop("utilisation.busiest"))
