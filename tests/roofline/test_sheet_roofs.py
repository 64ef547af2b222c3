"""Roofs of the data sheet at other clocks, and what no measurement can be above: by hand for an H100."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.enums import Precision
from ncuroof.metrics import measure
from ncuroof.roofline import profile_by_name, roofline
from ncuroof.roofline.sheet_roofs import (
    most_that_is_possible,
    sheet_roof_at_clock,
    states_peak,
    with_datasheet_peaks,
    without_impossible,
)
from ncuroof.sidecars.calibration import Calibration, ReachedRoof
from tests.support.hand_tables import work_table
from tests.support.raw import raw_report

H100 = profile_by_name("h100-sxm")


def test_roofs_go_with_the_sm_clock() -> None:
    # 4096 flop a cycle and SM on 132 SMs
    assert sheet_roof_at_clock(H100, "compute", "tensor_bf16", 1.425e9) == pytest.approx(4096 * 132 * 1.425e9)
    # 128 bytes a cycle and SM; 5120 a cycle
    assert sheet_roof_at_clock(H100, "bandwidth", "shared", 1.5e9) == pytest.approx(128 * 132 * 1.5e9)
    assert sheet_roof_at_clock(H100, "bandwidth", "l2", 1.5e9) == pytest.approx(5120 * 1.5e9)
    assert sheet_roof_at_clock(H100, "bandwidth", "dram", 1.5e9) is None
    assert sheet_roof_at_clock(H100, "compute", "fp4", 1.5e9) is None


def test_fp64_tensor_cores_are_those_of_data_centres() -> None:
    capabilities = ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
    assert [each for each in capabilities if states_peak(each, Precision.TENSOR_FP64)] == ["8.0", "9.0", "10.0"]


@pytest.mark.parametrize(
    ("gpu", "precision", "accumulates_in", "tflops"),
    [
        ("rtx-4090", "tensor_fp16", "fp16", 330.3),
        ("rtx-4090", "tensor_fp16", "fp32", 165.2),
        ("rtx-4090", "tensor_fp16", None, 165.2),
        ("rtx-4090", "tensor_fp16_sparse", "fp16", 660.6),
        ("l40s", "tensor_fp16", "fp16", 362.05),  # one rate on its sheet
        ("b300", "tensor_fp4", "fp32", 13500),
        ("b300", "tensor_fp4_sparse", "fp32", 18000),  # a third more, and not twice as much
        ("b300", "tensor_fp8_sparse", "fp32", 9000),
    ],
)
def test_a_peak_that_was_not_counted_is_that_of_sparsity_and_accumulator(
    gpu: str, precision: str, accumulates_in: str | None, tflops: float
) -> None:
    profile = profile_by_name(gpu)
    kernel = {"gpu__time_duration.sum": 1000.0, "device__attribute_display_name": profile.device_names[0]}
    kernels = measure([raw_report(kernel)]).kernels
    work = work_table((0, precision, 1e12, None, True)).with_columns(accumulates_in=pl.lit(accumulates_in, pl.String))
    found = with_datasheet_peaks(work, kernels, {0: profile}).row(0, named=True)
    assert found["peak_flop_per_s"] == pytest.approx(tflops * 1e12, rel=1e-3)
    assert (found["peak_source"], found["precision"]) == ("datasheet", precision)


@pytest.mark.parametrize(("accumulates_in", "share"), [("fp16", 0.9), ("fp32", 1.8)])
def test_a_share_of_the_sheet_is_that_of_its_accumulator(accumulates_in: str, share: float) -> None:
    # 297.27 TFLOP/s on an RTX 4090, whose sheet has 330.3 in FP16 and 165.2 in FP32
    counter = f"sm__ops_path_tensor_op_hmma_src_fp16_dst_{accumulates_in}_sparsity_off.sum"
    kernel = {
        "gpu__time_duration.sum": 1e6,
        "device__attribute_display_name": "NVIDIA GeForce RTX 4090",
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 9.0,
        "sm__cycles_elapsed.avg.per_second": 2.52e9,
        f"{counter}.per_cycle_elapsed": 0.9 * 1024 * 128,
        f"{counter}.peak_sustained": 1024.0 * 128,
    }
    (found,) = roofline(measure([raw_report(kernel)])).roof_shares.filter(name="tensor_fp16").to_dicts()
    assert found["datasheet_frac"] == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "name", "clock_hz", "most"),
    [
        ("bandwidth", "dram", None, 1.05 * 3.35e12),
        ("bandwidth", "shared", 1.98e9, 1.05 * 128 * 132 * 1.98e9),
        # a lower clock proves nothing: it may have been higher between two readings
        ("bandwidth", "shared", 1.2e9, 1.05 * 128 * 132 * 1.98e9),
        # above the sheet's boost clock
        ("bandwidth", "shared", 2.2e9, 1.05 * 128 * 132 * 2.2e9),
        ("bandwidth", "shared", None, 1.5 * 128 * 132 * 1.98e9),
        # the sheet's 989 TFLOP/s are at 1.83 GHz, and tensor cores may run at 1.98
        ("compute", "tensor_bf16", 1.4e9, 1.05 * 4096 * 132 * 1.98e9),
        ("compute", "fp4", 1.4e9, None),
    ],
)
def test_bounds_that_no_measurement_can_exceed(
    kind: str, name: str, clock_hz: float | None, most: float | None
) -> None:
    found = most_that_is_possible(H100, kind, name, clock_hz)
    assert found == (None if most is None else pytest.approx(most))


def test_a_rate_that_no_gpu_reaches_is_not_a_roof() -> None:
    # what came out of an H100 whose compiler had taken the loads out of the loop: its roof is 128 * 132 * 1.98e9 = 33.5 TB/s
    broken, sound = (
        ReachedRoof("bandwidth", "shared", per_s, spread_frac=0.0, n_repeats=9, how="reads", sm_clock_hz=1.98e9)
        for per_s in (377e12, 33e12)
    )
    measured = Calibration(
        "NVIDIA H100 80GB HBM3", "9.0", 132, "2.11", "13.0", (broken, sound), (("fp4", "no such type"),)
    )
    kept = without_impossible(measured, H100)
    assert kept.roofs == (sound,)
    first, (name, reason) = kept.not_measured
    assert (first, name) == (("fp4", "no such type"), "shared")
    # 377 / 33.454 = 11.27
    assert reason.startswith("measured 3.77e+14 byte/s, 11.3 times the data sheet's 3.35e+13 byte/s")
    assert without_impossible(measured, None) == measured
