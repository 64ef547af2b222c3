"""Utilisation of a unit whose counter has another base than the peak of the path that the kernel takes: counters chosen by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.reading import Reports
from tests.support.by_hand import chip, measured
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
PIPE = f"sm__pipe_tensor_cycles_active{PCT}"


def path(name: str, share: float, peak: float) -> dict[str, float]:
    """Return the counters of a path through the tensor cores that runs at a share of its peak."""
    counter = f"sm__ops_path_tensor_{name}.sum"
    return {f"{counter}.per_cycle_elapsed": share * peak, f"{counter}.peak_sustained": peak}


def judged(*counters: dict[str, float], capability: int = 89, duration_ns: float = 5e5) -> dict[str, Any]:
    base = {**chip(capability), "gpu__time_duration.sum": duration_ns, "sm__cycles_elapsed.avg.per_second": 1.8e9}
    merged = base | {name: value for each in counters for name, value in each.items()}
    (kernel,) = Reports((raw_report(merged),)).analyse().to_dict()["kernels"]
    return kernel


def speed_of_light(memory: float, compute: float) -> dict[str, float]:
    return {f"gpu__compute_memory_throughput{PCT}": memory, f"sm__throughput{PCT}": compute}


@pytest.mark.parametrize(
    ("name", "peak", "pipe"),
    [
        ("src_fp16_dst_fp32_sparsity_off", 4096.0, 0.5),  # GeForce: half of the rate with FP16 accumulation
        ("src_bf16_dst_fp32_sparsity_off", 4096.0, 0.5),
        ("src_tf32_dst_fp32_sparsity_off", 2048.0, 0.5),
        ("src_fp8_dst_fp32_sparsity_off", 8192.0, 0.5),
        ("src_int8_dst_int32_sparsity_off", 8192.0, 0.25),
    ],
)
def test_a_path_at_its_peak_is_compute_bound_however_little_of_the_pipe_it_takes(
    name: str, peak: float, pipe: float
) -> None:
    kernel = judged(speed_of_light(30.0, 90 * pipe), {PIPE: 90 * pipe}, path(name, 0.9, peak))
    assert kernel["utilisation"]["tensor"] == pytest.approx(0.9)
    assert kernel["utilisation"]["tensor_pipe"] == pytest.approx(0.9 * pipe)
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "tensor")


def test_shares_of_two_paths_add_up() -> None:
    kernel = judged(
        speed_of_light(30.0, 45.0),
        {PIPE: 45.0},
        path("src_fp16_dst_fp32_sparsity_off", 0.5, 4096.0),
        path("src_int8_dst_int32_sparsity_off", 0.3, 16384.0),
    )
    assert kernel["utilisation"]["tensor_paths"] == pytest.approx(0.8)
    assert kernel["verdict"] == "compute"


def test_a_path_far_below_its_peak_stays_latency_bound_and_the_flip_tells_of_the_path() -> None:
    kernel = judged(speed_of_light(30.0, 20.0), {PIPE: 20.0}, path("src_fp16_dst_fp32_sparsity_off", 0.4, 4096.0))
    assert kernel["verdict"] == "latency"
    assert kernel["flip"]["quantity"] == "utilisation.compute_side"
    assert kernel["flip"]["change_frac"] == pytest.approx(0.6 / 0.4 - 1)


def test_a_busier_memory_stays_the_limit() -> None:
    kernel = judged(speed_of_light(95.0, 35.0), {PIPE: 35.0}, path("src_fp16_dst_fp32_sparsity_off", 0.7, 4096.0))
    assert kernel["verdict"] == "memory"


def test_fp32_accumulation_on_geforce_is_the_first_thing_to_change() -> None:
    kernel = judged(
        speed_of_light(38.0, 46.0),
        {PIPE: 46.0},
        path("src_fp16_dst_fp32_sparsity_off", 0.92, 12288.0),
        path("src_fp16_dst_fp16_sparsity_off", 0.0, 24576.0),
    )
    assert "work_over_pipe" not in kernel["caveats"]
    assert kernel["findings"][0]["id"] == "slower_tensor_accumulation"
    assert kernel["findings"][0]["gain_ns"] == pytest.approx(0.46 * 5e5, rel=0.1)


def test_the_pipe_counts_where_paths_were_not_collected() -> None:
    kernel = judged(speed_of_light(30.0, 70.0), {PIPE: 70.0})
    assert (kernel["utilisation"]["tensor"], kernel["utilisation"]["tensor_paths"]) == (pytest.approx(0.7), None)


def test_work_beyond_the_pipe_at_the_fastest_path_is_a_contradiction() -> None:
    counted = path("src_fp16_dst_fp16_sparsity_off", 0.9, 8192.0)
    assert "work_over_pipe" in judged(speed_of_light(30.0, 45.0), {PIPE: 45.0}, counted)["caveats"]


@pytest.mark.parametrize(("capability", "ratio"), [(75, 32), (80, 2), (86, 64), (89, 64), (90, 2), (120, 64)])
def test_rate_of_fp64_follows_the_chip_where_nothing_else_tells_it(capability: int, ratio: int) -> None:
    assert measured([chip(capability)]).kernels["device.fp64_ratio"].to_list() == [ratio]


def test_fp64_pipe_is_known_by_its_instructions() -> None:
    kernel = judged(speed_of_light(7.0, 80.0), {f"sm__inst_executed_pipe_fp64{PCT}": 80.0})
    assert kernel["utilisation"]["fp64"] == pytest.approx(0.8)
    assert kernel["findings"][0]["id"] == "fp64_on_slow_part"
