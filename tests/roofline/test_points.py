"""Points, bounds and ceilings, computed by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof.metrics import measure
from ncuroof.present.documents.json_text import json_text
from ncuroof.reading import Reports
from ncuroof.roofline import bound, place, profile_by_name, roofline
from ncuroof.roofline.roofs import narrower_speedup
from ncuroof.tables import SchemaError
from tests.support.hand_tables import bandwidth_table, work_table
from tests.support.raw import raw_report, with_code

PCT = ".avg.pct_of_peak_sustained_elapsed"


def test_point_on_the_slope_is_judged_against_bandwidth() -> None:
    # 1 TFLOP/s at 2 TB/s: 0.5 flop/byte; slope 0.5 · 4 TB/s = 2 TFLOP/s < 10 TFLOP/s; ridge 10/4 = 2.5
    point = place(work_table((0, "fp32", 1e12, 1e13, True)), bandwidth_table((0, "dram", 2e12, 4e12))).row(
        0, named=True
    )
    assert point["intensity_flop_per_byte"] == pytest.approx(0.5)
    assert point["roof_flop_per_s"] == pytest.approx(2e12)
    assert point["ridge_flop_per_byte"] == pytest.approx(2.5)
    assert point["roof_frac"] == pytest.approx(0.5)


def test_point_right_of_the_ridge_is_judged_against_the_peak() -> None:
    point = place(work_table((0, "fp32", 5e12, 1e13, True)), bandwidth_table((0, "dram", 1e11, 4e12))).row(
        0, named=True
    )
    assert point["roof_flop_per_s"] == pytest.approx(1e13)
    assert point["roof_frac"] == pytest.approx(0.5)


def test_a_level_that_moved_nothing_has_no_intensity() -> None:
    point = place(work_table((0, "fp32", 5e12, 1e13, True)), bandwidth_table((0, "l1", 0.0, 4e12))).row(0, named=True)
    assert point["intensity_flop_per_byte"] is None
    assert point["roof_flop_per_s"] == pytest.approx(1e13)
    without_peak = place(work_table((0, "fp32", 5e12, None, True)), bandwidth_table((0, "l1", 0.0, 4e12)))
    assert without_peak.select("roof_flop_per_s", "roof_frac").row(0) == (None, None)


def test_a_precision_without_work_has_no_point() -> None:
    assert place(work_table((0, "fp64", 0.0, 1e13, True)), bandwidth_table((0, "dram", 1e12, 4e12))).is_empty()


def test_a_point_above_its_roof_is_not_clipped() -> None:
    point = place(work_table((0, "fp32", 1.2e13, 1e13, True)), bandwidth_table((0, "dram", 1e9, 4e12))).row(
        0, named=True
    )
    assert point["roof_frac"] == pytest.approx(1.2)


def test_a_table_with_a_missing_column_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"WORK.*frac"):
        place(work_table().drop("frac"), bandwidth_table())


@given(st.floats(1e6, 1e16), st.floats(1e6, 1e14), st.floats(1.001, 1e3), st.floats(1.001, 1e3))
def test_a_point_below_both_peaks_is_below_its_roof(rate: float, traffic: float, spare: float, room: float) -> None:
    points = place(
        work_table((0, "fp32", rate, rate * spare, True)), bandwidth_table((0, "dram", traffic, traffic * room))
    )
    # attained ≤ min(peak, intensity · bandwidth), with equality only where one of the two is reached
    assert points["roof_frac"][0] <= 1


def bounds_of(
    counters: dict[str, float], work: pl.DataFrame, bandwidth: pl.DataFrame, *, is_debug_build: bool = False
) -> dict[str, object]:
    report = raw_report({"gpu__time_duration.sum": 1000.0, **counters})
    kernels = measure([with_code(report, is_debug_build=[is_debug_build])]).kernels
    return bound(kernels, work, bandwidth).row(0, named=True)


def test_roofline_time_is_the_longest_of_its_parts() -> None:
    # DRAM 30 % of its peak, FP32 20 %, FP64 60 %: at least 600 of 1000 ns
    work = work_table((0, "fp32", 2e12, 1e13, True), (0, "fp64", 6e11, 1e12, True))
    row = bounds_of({}, work, bandwidth_table((0, "dram", 3e11, 1e12)))
    assert row["min_time_ns"] == pytest.approx(600)
    assert row["recoverable_ns"] == pytest.approx(400)
    assert row["dominant_precision"] == row["min_time_by"] == "fp64"


def test_unreliable_work_does_not_bound() -> None:
    work = work_table((0, "tensor_fp16", 9e12, 1e13, False), (0, "fp32", 1e12, 1e13, True))
    row = bounds_of({}, work, bandwidth_table((0, "dram", 2e11, 1e12)))
    assert row["min_time_ns"] == pytest.approx(200)
    assert (row["dominant_precision"], row["min_time_by"]) == ("fp32", "dram")


def test_integer_work_bounds_by_its_pipe() -> None:
    # No FLOPs at all, DRAM idle, ALU busy for 90 % of the time: not 99 % recoverable, but 10 %.
    counters = {f"sm__pipe_alu_cycles_active{PCT}": 90.0}
    row = bounds_of(counters, work_table((0, "fp32", 0.0, 1e13, True)), bandwidth_table((0, "dram", 1e10, 1e12)))
    assert row["recoverable_ns"] == pytest.approx(100)
    assert (row["side"], row["min_time_by"]) == (None, "alu")


@pytest.mark.parametrize("pipe", ["alu", "fma"])
def test_moves_of_a_debug_build_do_not_bound_the_time(pipe: str) -> None:
    # DRAM 30 % of its peak is what the work needs; the pipe is full of moves that optimisation leaves out
    counters = {f"sm__pipe_{pipe}_cycles_active{PCT}": 90.0}
    row = bounds_of(counters, work_table(), bandwidth_table((0, "dram", 3e11, 1e12)), is_debug_build=True)
    assert (row["min_time_ns"], row["min_time_by"]) == (pytest.approx(300), "dram")


def test_without_flop_counters_the_fma_pipe_stands_in() -> None:
    counters = {f"sm__pipe_fma_cycles_active{PCT}": 70.0, f"gpu__dram_throughput{PCT}": 20.0}
    row = bounds_of(counters, work_table(), bandwidth_table())
    assert row["min_time_ns"] == pytest.approx(700)
    assert row["min_time_by"] == "fp32"


@pytest.mark.parametrize(
    ("heavy", "whole", "counted", "ns", "by"),
    [
        (96.0, 48.0, True, 960, "integer_fma"),  # integers alone: a full half is a pipe that is half full
        (96.0, 48.0, False, 960, "integer_fma"),
        (53.0, 38.0, True, 300, "integer_fma"),  # 2 · (53 − 38) % that the other half did not do; the rest may be FP32
        (53.0, 38.0, False, 530, "integer_fma"),  # FP32 was not counted: all of it may be integers, and most of it is
        (54.0, 53.0, False, 540, "fp32"),  # 2 of 54 % are integers
        (54.0, 53.0, True, 200, "dram"),
        (40.0, 30.0, False, 400, "integer_fma"),  # half of it
        (40.0, 30.2, False, 400, "fp32"),
        (70.0, 30.0, True, 700, "integer_fma"),  # no more than it was busy, whatever rounding says
        (30.0, 70.0, True, 200, "dram"),
    ],
)
def test_integer_multiply_adds_bound_by_the_half_of_the_pipe_that_takes_them(
    heavy: float, whole: float, counted: bool, ns: float, by: str
) -> None:
    counters = {f"sm__pipe_fma_cycles_active{PCT}": whole, f"sm__pipe_fmaheavy_cycles_active{PCT}": heavy}
    work = work_table((0, "fp32", 0.0, 1e13, True)) if counted else work_table()
    row = bounds_of(counters, work, bandwidth_table((0, "dram", 2e11, 1e12)))
    assert (row["min_time_ns"], row["min_time_by"]) == (pytest.approx(ns), by)


def test_roofline_time_is_null_when_one_side_is_not_known() -> None:
    assert bounds_of({}, work_table((0, "fp32", 1e12, 1e13, True)), bandwidth_table())["min_time_ns"] is None
    assert bounds_of({}, work_table(), bandwidth_table((0, "dram", 1e10, 1e12)))["min_time_ns"] is None
    assert bounds_of({}, work_table(), bandwidth_table((0, "dram", 1e10, 1e12)))["min_time_by"] is None


def test_recoverable_time_is_never_negative() -> None:
    row = bounds_of({}, work_table((0, "fp32", 1.1e13, 1e13, True)), bandwidth_table((0, "dram", 1e10, 1e12)))
    assert row["min_time_ns"] == pytest.approx(1100)
    assert row["recoverable_ns"] == 0


@pytest.mark.parametrize(
    ("flop_share", "dram_share", "side"),
    [
        (0.1, 0.4, "memory"),
        (0.1, 0.2, "near_ridge"),
        (0.3, 0.2, "near_ridge"),
        (0.31, 0.2, "compute"),
        (0.0, 0.2, None),
    ],
)
def test_side_follows_from_intensity_over_ridge(flop_share: float, dram_share: float, side: str | None) -> None:
    # intensity / ridge = (F/peak) / (B/bandwidth): below 0.5 memory, above 1.5 compute
    row = bounds_of(
        {},
        work_table((0, "fp32", flop_share * 1e13, 1e13, True)),
        bandwidth_table((0, "dram", dram_share * 1e12, 1e12)),
    )
    assert row["side"] == side


def test_ceilings_hold_counters_and_datasheet_side_by_side() -> None:
    counters = {
        "device__attribute_display_name": "NVIDIA H200",
        "device__attribute_compute_capability_major": 9.0,
        "device__attribute_compute_capability_minor": 0.0,
        "device__attribute_multiprocessor_count": 132.0,
        "gpu__time_duration.sum": 1000.0,
        "dram__bytes.sum.per_second": 1e12,
        "dram__bytes.sum.peak_sustained": 1536.0,
        "dram__cycles_elapsed.avg.per_second": 3e9,
    }
    placed = roofline(measure([raw_report(counters)]))
    assert placed.profiles[0] is profile_by_name("h200-sxm")
    dram = placed.ceilings.filter((pl.col("name") == "dram") & (pl.col("kind") == "bandwidth"))
    assert dict(zip(dram["source"], dram["per_s"], strict=True)) == {"counters": 1536 * 3e9, "datasheet": 4.8e12}


def uncounted(tensor_pct: float) -> dict[str, float | str]:
    """A kernel with 1 % of the FP32 peak counted, 50 % of DRAM, and a tensor pipe whose operations nobody counted."""
    return {
        "gpu__time_duration.sum": 1e5,
        "smsp__cycles_elapsed.avg.per_second": 1e9,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        **{
            f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": n
            for op, n in (("fadd", 0.0), ("fmul", 0.0), ("ffma", 1.0))
        },
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 100.0,
        "dram__bytes.sum.per_second": 5e11,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
        f"sm__pipe_tensor_cycles_active{PCT}": tensor_pct,
    }


def test_tensor_work_that_nobody_counted_bounds_and_leaves_no_dot() -> None:
    measurements = measure([raw_report(uncounted(80.0), uncounted(1.9), uncounted(0.5))])
    placed = roofline(measurements)
    busy, barely, idle = placed.bounds.to_dicts()
    # The tensor pipe is busy for 80 %, DRAM for 50 %: 20 % of the time is above the roofline, not 50 %.
    assert busy["recoverable_ns"] == pytest.approx(2e4)
    assert busy["side"] is None
    assert busy["roofline.uncounted_frac"] == pytest.approx(0.8)
    # FP32 at 1 % of its peak, DRAM at 50 %: left of the ridge, as far as was counted.
    assert (barely["side"], idle["side"]) == ("memory", "memory")
    assert placed.points["id"].unique().to_list() == [1, 2]


def test_a_slower_tensor_path_has_a_roof_below_the_fastest_at_the_same_clock() -> None:
    def launch(duration_ns: float, clock_hz: float, hgmma: float, hmma: float) -> dict[str, float | str]:
        prefix = "sm__ops_path_tensor_op_{}_src_bf16_dst_fp32_sparsity_off.sum."
        return {
            "gpu__time_duration.sum": duration_ns,
            "sm__cycles_elapsed.avg.per_second": clock_hz,
            prefix.format("hgmma") + "per_cycle_elapsed": hgmma,
            prefix.format("hgmma") + "peak_sustained": 300.0,
            prefix.format("hmma") + "per_cycle_elapsed": hmma,
            prefix.format("hmma") + "peak_sustained": 200.0,
        }

    placed = roofline(measure([raw_report(launch(2e6, 2e9, 100.0, 0.0), launch(1e6, 1e9, 0.0, 100.0))]))
    roofs = {row["name"]: row["per_s"] for row in placed.ceilings.to_dicts()}
    # The longest launch's clock is 2 GHz: 300 · 2 GHz, and two thirds of it.
    assert roofs == pytest.approx({"tensor_bf16": 6e11, "tensor_bf16_slower_path": 4e11})
    idle = roofline(measure([raw_report(launch(2e6, 2e9, 0.0, 0.0))]))
    assert idle.ceilings["name"].to_list() == ["tensor_bf16"]


def test_loads_past_the_registers_leave_no_dot_at_l1() -> None:
    counters = {
        **uncounted(0.0),
        "l1tex__t_bytes.sum.per_second": 1e12,
        "l1tex__t_bytes.sum.peak_sustained": 1e4,
        "l1tex__cycles_elapsed.avg.per_second": 1e9,
        "smsp__inst_executed.sum": 1e4,
    }
    bulk = {**counters, f"sm__pipe_tma_cycles_active{PCT}": 20.0}
    placed = roofline(measure([raw_report(counters, bulk)]))
    for points in (placed.points, placed.instruction_points):
        assert points.select("id", "level").rows() == [(0, "dram"), (0, "l1"), (1, "dram")]
    assert placed.bandwidth.height == 4


@pytest.mark.parametrize(("copied", "is_past"), [(0.55, True), (0.45, False)])
def test_loads_are_past_the_registers_where_most_are_asynchronous_copies(copied: float, *, is_past: bool) -> None:
    measured = measure([raw_report(uncounted(0.0))])
    kernels = measured.kernels.with_columns(pl.lit(copied).alias("access.async_copy_frac"))
    assert roofline(replace(measured, kernels=kernels)).bounds["roofline.past_l1"].item() == is_past


def tensor_path_frac(*rows: tuple[str, float, float, float | None]) -> object:
    """Return `roofline.tensor_path_frac` of one kernel from (precision, rate, peak, fastest peak)."""
    work = work_table(*((0, precision, rate, peak, True) for precision, rate, peak, _ in rows))
    fastest = pl.Series("fastest_peak_flop_per_s", [row[3] for row in rows], dtype=pl.Float64)
    return bounds_of({}, work.with_columns(fastest), bandwidth_table())["roofline.tensor_path_frac"]


def test_time_on_the_fastest_tensor_paths_is_compared_with_that_on_the_ones_used() -> None:
    # 6 Tflop/s at 660 of 990 Tflop/s
    assert tensor_path_frac(("tensor_bf16", 6e12, 660e12, 990e12)) == pytest.approx(2 / 3)
    # 6/600 + 5/1000 = 15 ms per s on the paths used, 6/1200 + 5/1000 = 10 on the fastest: FP8 has no other path
    mixed = (("tensor_bf16", 6e12, 600e12, 1200e12), ("tensor_fp8", 5e12, 1000e12, None))
    assert tensor_path_frac(*mixed) == pytest.approx(10 / 15)


def test_tensor_work_without_a_faster_path_is_not_compared() -> None:
    assert tensor_path_frac(("tensor_bf16", 6e12, 660e12, None)) is None
    assert tensor_path_frac(("tensor_bf16", 0.0, 660e12, 990e12), ("tensor_fp8", 5e12, 1000e12, None)) is None
    assert tensor_path_frac(("fp32", 6e12, 66e12, 99e12)) is None


@pytest.mark.parametrize(
    ("gpu", "precision", "is_slower_path", "speedup"),
    [
        ("h200-sxm", "tensor_tf32", False, 2.0),  # 989 over 494.5 Tflop/s
        ("h200-sxm", "tensor_bf16", True, 2.001),  # 1979 over 989: one rate of each type
        ("h200-sxm", "tensor_fp8", False, None),  # Hopper has no FP4
        ("b200", "tensor_fp8", False, 2.0),  # 9000 over 4500
        ("a100-sxm-80gb", "tensor_bf16", False, None),  # nor Ampere FP8
        ("rtx-4090", "tensor_fp16", True, 2.0),  # FP32 accumulation: 330.3 over 165.2
        ("rtx-4090", "tensor_fp16", False, 2.0),  # FP16 accumulation: 660.6 over 330.3
        ("rtx-5090", "tensor_fp8", False, 2.0),  # FP16 accumulation: 1676 over 838
        ("h200-sxm", "fp32", False, None),
        ("h200-sxm", "tensor_bf16_sparse", False, None),
    ],
)
def test_speedup_of_the_next_narrower_type(
    gpu: str, precision: str, is_slower_path: bool, speedup: float | None
) -> None:
    assert narrower_speedup(profile_by_name(gpu), precision, is_slower_path=is_slower_path) == (
        None if speedup is None else pytest.approx(speedup, rel=1e-3)
    )


def test_speedup_of_a_narrower_type_is_not_known_without_a_profile() -> None:
    assert narrower_speedup(None, "tensor_bf16", is_slower_path=False) is None


@pytest.mark.parametrize("absurd", [{"gpu__time_duration.sum": 0.0}, {"smsp__cycles_elapsed.avg.per_second": -1.0}])
@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "none"])
def test_ratios_to_nothing_are_not_known(absurd: dict[str, float], name: str) -> None:
    counters: dict[str, float | str] = {
        "gpu__time_duration.sum": 1000.0,
        "sm__cycles_elapsed.avg.per_second": 0.0,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 0.0,
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 100.0,
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 100.0,
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum": 100.0,
        "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum": 100.0,
        "dram__bytes.sum": 100.0,
        "smsp__inst_executed.sum": 100.0,
        "device__attribute_display_name": name,
        "device__attribute_multiprocessor_count": 132.0,
        "device__attribute_compute_capability_major": 9.0,
        "device__attribute_compute_capability_minor": 0.0,
    }
    analysis = Reports((raw_report(counters | absurd),)).analyse()
    tables = analysis.roofline_tables
    for table in (tables.work, tables.bandwidth, tables.points, tables.instruction_points):
        for column in table.select(pl.selectors.float()):
            assert column.drop_nulls().is_finite().all(), column.name
    assert json_text(analysis.to_dict())
