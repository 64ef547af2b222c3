"""A GPU of tomorrow: its counters are in no catalogue, but the charts of its reports say how to read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ncuroof
from tests.support.report_writer import (
    METRICS_BY_CHIP,
    Kernel,
    PerCycle,
    RooflineChart,
    RooflinePair,
    Section,
    write_report,
)

CLOCK_HZ = 2e9
TOMORROW = {
    "device__attribute_compute_capability_major": 14.0,
    "device__attribute_compute_capability_minor": 0.0,
    "gpu__time_duration.sum": 1_000_000.0,
    "core__cycles_elapsed.avg.per_second": CLOCK_HZ,
    "stack__cycles_elapsed.avg.per_second": 1e9,
    "core__fp32.sum.peak_sustained": 1000.0,
    "core__fp32_add.sum.per_cycle_elapsed": 30.0,
    "core__fp32_fma3.sum.per_cycle_elapsed": 120.0,
    "stack__bytes.sum.peak_sustained": 4000.0,
    "stack__bytes.sum.per_second": 1e12,
    "ring__bytes.sum.peak_sustained": 8000.0,
    "ring__bytes.sum.per_second": 5e12,
    # Names that the catalogue knows, with a meaning of their own on this chip: the charts go before them.
    "dram__bytes.sum.per_second": 1.0,
    "dram__bytes.sum.peak_sustained": 1.0,
    "dram__cycles_elapsed.avg.per_second": 1.0,
}
CORE = "core__cycles_elapsed.avg.per_second"
FP32_PEAK = PerCycle(("core__fp32.sum.peak_sustained",), CORE)
FP32 = PerCycle(("core__fp32_add.sum.per_cycle_elapsed", "core__fp32_fma3.sum.per_cycle_elapsed"), CORE)
MATRIX = "core__matrix_{}.sum.{}"


def hierarchical(title: str, peak: PerCycle, achieved: PerCycle, label: str = "") -> RooflineChart:
    stack_peak = PerCycle(("stack__bytes.sum.peak_sustained",), "stack__cycles_elapsed.avg.per_second")
    ring_peak = PerCycle(("ring__bytes.sum.peak_sustained",), CORE)
    return RooflineChart(
        title,
        roofs=(
            RooflinePair(peak, stack_peak, f"DRAM Roofline{label}"),
            RooflinePair(peak, ring_peak, f"L2 Roofline{label}"),
        ),
        points=(
            RooflinePair(achieved, "stack__bytes.sum.per_second", f"DRAM Achieved Value{label}"),
            RooflinePair(achieved, "ring__bytes.sum.per_second", f"L2 Achieved Value{label}"),
        ),
    )


SINGLE = hierarchical("Floating Point Operations Roofline (Single Precision)", FP32_PEAK, FP32)


def analysed(path: Path, counters: dict[str, float], *charts: RooflineChart) -> dict[str, Any]:
    section = Section("SpeedOfLight_Hierarchical", charts=charts)
    path.write_bytes(write_report([Kernel("gemm", counters, sections=(section,))]))
    return ncuroof.read(path).analyse().to_dict()["kernels"][0]


@pytest.mark.long
def test_work_and_roofs_of_a_chip_that_nobody_lists_are_those_of_its_charts(tmp_path: Path) -> None:
    kernel = analysed(tmp_path / "new.ncu-rep", TOMORROW, SINGLE)
    # (30 + 120) per cycle · 2 GHz of 1000 per cycle · 2 GHz
    assert kernel["work"]["fp32"]["flop_per_s"] == pytest.approx(3e11)
    assert kernel["work"]["fp32"]["peak_flop_per_s"] == pytest.approx(2e12)
    assert kernel["work"]["fp32"]["flop"] == pytest.approx(3e8)
    # 4000 byte per cycle · 1 GHz; 8000 byte per cycle · 2 GHz
    assert kernel["bandwidth"]["dram"]["peak_bytes_per_s"] == pytest.approx(4e12)
    assert kernel["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx(1e12)
    assert kernel["bandwidth"]["l2"]["peak_bytes_per_s"] == pytest.approx(1.6e13)
    (dram,) = [point for point in kernel["points"] if point["level"] == "dram"]
    # 0.3 flop/byte · 4 TB/s = 1.2 TFLOP/s
    assert dram["roof_flop_per_s"] == pytest.approx(1.2e12)
    assert "embedded_chart" in kernel["caveats"]
    assert "core__fp32_fma3" in kernel["work"]["fp32"]["definition"]


@pytest.mark.long
def test_paths_of_the_tensor_cores_are_told_by_their_labels(tmp_path: Path) -> None:
    charts, counters = [], dict(TOMORROW)
    for path, label, rate, peak in (
        ("a", " (Op:xmma Src:bf16 Dst:fp32 Sparsity:off)", 100.0, 2000.0),
        ("b", " (Op:ymma Src:bf16 Dst:fp32 Sparsity:off)", 300.0, 4000.0),
        ("c", " (Op:ymma Src:bf16 Dst:fp32 Sparsity:on)", 50.0, 8000.0),
        ("sum", " (Src:bf16 Dst:fp32)", 450.0, 8000.0),
        ("d", " (Op:ymma Src:posit8 Dst:fp32 Sparsity:off)", 7.0, 8000.0),
    ):
        achieved, ceiling = MATRIX.format(path, "per_cycle_elapsed"), MATRIX.format(path, "peak_sustained")
        counters |= {achieved: rate, ceiling: peak}
        charts.append(
            hierarchical(
                "Tensor Core Operations Roofline", PerCycle((ceiling,), CORE), PerCycle((achieved,), CORE), label
            )
        )
    work = analysed(tmp_path / "new.ncu-rep", counters, *charts)["work"]
    # Two dense paths add up, the sum over all does not; 100/2000 + 300/4000 = 0.125 of the time at their peaks
    assert work["tensor_bf16"]["flop_per_s"] == pytest.approx(400 * CLOCK_HZ)
    assert work["tensor_bf16"]["frac"] == pytest.approx(0.125)
    assert work["tensor_bf16"]["fastest_peak_flop_per_s"] == pytest.approx(4000 * CLOCK_HZ)
    assert work["tensor_bf16_sparse"]["flop_per_s"] == pytest.approx(50 * CLOCK_HZ)
    assert work["tensor_posit8"]["flop_per_s"] == pytest.approx(7 * CLOCK_HZ)


def test_on_a_listed_chip_charts_fill_in_only_what_the_catalogue_finds_nothing_for(tmp_path: Path) -> None:
    kernel = analysed(tmp_path / "known.ncu-rep", {**TOMORROW, **METRICS_BY_CHIP["GA100"]}, SINGLE)
    assert not kernel["bandwidth"]["dram"]["is_from_chart"]
    assert kernel["bandwidth"]["dram"]["bytes_per_s"] == 1.0
    assert kernel["bandwidth"]["l2"]["is_from_chart"]
    assert kernel["work"]["fp32"]["is_from_chart"]


def test_a_chart_without_its_counters_gives_nothing(tmp_path: Path) -> None:
    counters = {name: value for name, value in TOMORROW.items() if name != "core__fp32_fma3.sum.per_cycle_elapsed"}
    kernel = analysed(tmp_path / "new.ncu-rep", counters, SINGLE)
    assert kernel["work"] == {}
    assert kernel["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx(1e12)


def test_a_chart_counts_for_the_reports_that_carry_it_alone(tmp_path: Path) -> None:
    with_chart, without = tmp_path / "with.ncu-rep", tmp_path / "without.ncu-rep"
    section = Section("SpeedOfLight_Hierarchical", charts=(SINGLE,))
    with_chart.write_bytes(write_report([Kernel("gemm", TOMORROW, sections=(section,))]))
    without.write_bytes(write_report([Kernel("gemm", TOMORROW)]))
    first, second = ncuroof.read([with_chart, without]).analyse().to_dict()["kernels"]
    assert "fp32" in first["work"]
    assert second["work"] == {}
    assert second["bandwidth"]["dram"]["bytes_per_s"] == 1.0
