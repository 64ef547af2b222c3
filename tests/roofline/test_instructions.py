"""The instruction roofline, computed by hand: counts, dots, roofs, and the ceilings that its authors published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ncuroof
from ncuroof.metrics import measure
from ncuroof.roofline import instruction_ceilings, place_instructions, roofline
from ncuroof.tables import SchemaError
from tests.support.constructed import Accesses, Described, Shared
from tests.support.constructed_counters import kernel
from tests.support.constructed_gpus import GPUS
from tests.support.hand_tables import bandwidth_table
from tests.support.raw import raw_report
from tests.support.report_writer import write_report

# 1 µs on 10 SMs at 1 GHz: the schedulers could issue 4 · 10 · 1e9 = 4e10 warp instructions/s.
SMALL_GPU = {
    "gpu__time_duration.sum": 1000.0,
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    "device__attribute_multiprocessor_count": 10.0,
    "device__attribute_compute_capability_major": 7.0,
    "device__attribute_compute_capability_minor": 0.0,
}


def kernels_with(**counters: float | None) -> pl.DataFrame:
    present = {name: value for name, value in (SMALL_GPU | counters).items() if value is not None}
    return measure([raw_report(present)]).kernels


def executed(n_instructions: float) -> pl.DataFrame:
    return kernels_with(**{"smsp__inst_executed.sum": n_instructions})


def point(kernels: pl.DataFrame, level: str, rate: float, peak: float | None) -> dict[str, Any]:
    return place_instructions(kernels, bandwidth_table((0, level, rate, peak))).row(0, named=True)


def test_point_on_the_slope_is_judged_against_transactions() -> None:
    # 10 000 warp instructions in 1 µs: 1e10/s. 320 GB/s of 640 are 1e10 and 2e10 sectors/s: intensity 1, slope 1 · 2e10 < 4e10.
    found = point(executed(10_000), "dram", 3.2e11, 6.4e11)
    assert found["inst_per_s"] == pytest.approx(1e10)
    assert found["intensity_inst_per_transaction"] == pytest.approx(1)
    assert found["roof_inst_per_s"] == pytest.approx(2e10)
    assert found["ridge_inst_per_transaction"] == pytest.approx(4e10 / 2e10)
    assert found["roof_frac"] == pytest.approx(0.5)
    assert found["definition"] == "test; 32 byte per transaction"


def test_point_right_of_the_ridge_is_judged_against_the_schedulers() -> None:
    # 1e10 sectors/s at 3e10 instructions/s: intensity 3, slope 3 · 2e10 = 6e10 > 4e10
    found = point(executed(30_000), "l2", 3.2e11, 6.4e11)
    assert found["roof_inst_per_s"] == pytest.approx(4e10)
    assert found["roof_frac"] == pytest.approx(0.75)


def test_a_transaction_of_shared_memory_has_128_bytes() -> None:
    # 1.28 TB/s are 1e10 wavefronts/s, and 4e10 sectors/s
    assert point(executed(10_000), "shared", 1.28e12, 2.56e12)["intensity_inst_per_transaction"] == pytest.approx(1)
    assert point(executed(10_000), "l1", 1.28e12, 2.56e12)["intensity_inst_per_transaction"] == pytest.approx(0.25)


def test_a_level_that_moved_nothing_has_no_intensity() -> None:
    found = point(executed(10_000), "shared", 0.0, 1.28e12)
    assert found["intensity_inst_per_transaction"] is None
    assert found["roof_inst_per_s"] == pytest.approx(4e10)
    assert found["roof_frac"] == pytest.approx(0.25)


def test_before_volta_there_is_no_issue_peak_and_only_the_slope_judges() -> None:
    kernels = kernels_with(**{"smsp__inst_executed.sum": 1e4, "device__attribute_compute_capability_major": 6.0})
    assert kernels["instructions.peak_warp_per_s"][0] is None
    found = point(kernels, "dram", 3.2e11, 6.4e11)
    assert found["roof_inst_per_s"] == pytest.approx(2e10)
    assert found["ridge_inst_per_transaction"] is None


def test_without_a_peak_of_the_level_only_the_schedulers_judge() -> None:
    found = point(executed(10_000), "dram", 3.2e11, None)
    assert (found["roof_inst_per_s"], found["ridge_inst_per_transaction"]) == (pytest.approx(4e10), None)


@pytest.mark.parametrize("count", [None, 0.0])
def test_kernels_without_instructions_have_no_points(count: float | None) -> None:
    kernels = kernels_with(**{"smsp__inst_executed.sum": count})
    assert kernels["instructions.warp_executed"].to_list() == [count]
    assert place_instructions(kernels, bandwidth_table((0, "dram", 3.2e11, 6.4e11))).height == 0


def test_a_table_that_is_not_bandwidth_is_refused() -> None:
    with pytest.raises(SchemaError, match="BANDWIDTH"):
        place_instructions(executed(1), bandwidth_table().drop("level"))


@pytest.mark.long
@settings(max_examples=25)
@given(st.floats(1, 3.9e4), st.floats(1e6, 1e14), st.floats(1.001, 1e3))
def test_a_point_below_both_peaks_is_below_its_roof(n_instructions: float, traffic: float, room: float) -> None:
    # attained ≤ min(issue peak, intensity · transactions): 3.9e4 instructions in 1 µs stay below 4e10/s
    assert point(executed(n_instructions), "dram", traffic, traffic * room)["roof_frac"] <= 1


PER_CYCLE, PCT = "sm__inst_executed.avg.per_cycle_elapsed", "sm__inst_executed.avg.pct_of_peak_sustained_elapsed"


@pytest.mark.parametrize(
    "counters",
    [
        {"smsp__inst_executed.sum": 8e3, "sm__inst_executed.sum": 1.0, "inst_executed": 2.0},
        {"sm__inst_executed.sum": 8e3, "inst_executed": 2.0},
        {"inst_executed": 8e3, PER_CYCLE: 0.1},
        {PER_CYCLE: 0.8, PCT: 1.0},
        {PER_CYCLE: 0.8, "sm__cycles_elapsed.sum": 1e4},
        {PCT: 20.0},
        {PCT: 20.0, "sm__cycles_elapsed.sum": 1e4},
    ],
)
def test_instructions_come_from_the_first_counter_there_is(counters: dict[str, float]) -> None:
    # 1 µs at 1 GHz on 10 SMs are 10 000 SM cycles; 0.8 instructions in each, 20 % of 4: 8000.
    assert kernels_with(**counters)["instructions.warp_executed"][0] == pytest.approx(8000)


@pytest.mark.long
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("without", [(), ("source_counters",), ("source_counters", "compute_workload")])
def test_an_integer_kernel_has_a_place_on_every_architecture(
    gpu: str, without: tuple[str, ...], tmp_path: Path
) -> None:
    sort = Described(
        "sort",
        1_000_000,
        gpu=gpu,
        loads=Accesses(200_000, 4),
        stores=Accesses(50_000, 4),
        shared_loads=Shared(100_000, conflict_ways=3),
        dram_read_bytes=2**24,
        dram_write_bytes=2**20,
        warp_instructions=3_000_000,
    )
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(write_report([kernel(sort, without=without)]))
    block = ncuroof.read(path).analyse().to_dict()["kernels"][0]["instructions"]
    assert block["warp_executed"] == pytest.approx(3e6)
    assert block["inst_per_s"] == pytest.approx(3e9)
    assert block["peak_inst_per_s"] == pytest.approx(4 * GPUS[gpu].n_sms * GPUS[gpu].sm_clock_hz)
    assert block["frac"] == pytest.approx(3e9 / block["peak_inst_per_s"])
    intensity = {each["level"]: each["intensity_inst_per_transaction"] for each in block["points"]}
    # (16 Mi + 1 Mi) / 32 byte; 200 000 requests of 4 sectors from L2; 300 000 wavefronts with the conflicts of three ways
    assert intensity["dram"] == pytest.approx(3e6 / 557_056)
    assert intensity["l2"] == pytest.approx(3e6 / 800_000)
    assert intensity["shared"] == pytest.approx(3e6 / 300_000)
    # 4 byte for 32 threads come back as 4 sectors; Volta's counter has the 100 000 shared-memory loads as well
    assert intensity["l1"] == pytest.approx(3e6 / (1_200_000 if gpu == "v100-sxm2" else 800_000))


def test_quantities_that_were_not_collected_are_null_in_the_document() -> None:
    analysis = ncuroof.reading.Reports((raw_report(SMALL_GPU),)).analyse()
    assert analysis.to_dict()["kernels"][0]["instructions"] is None
    assert analysis.instruction_points.height == 0


def test_intensities_are_columns_of_the_kernels() -> None:
    counters = SMALL_GPU | {
        "smsp__inst_executed.sum": 1e4,
        "dram__bytes.sum.per_second": 3.2e11,
        "dram__bytes.sum.peak_sustained": 640.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
    }
    kernels = ncuroof.reading.Reports((raw_report(counters),)).analyse().kernels
    assert kernels["instruction_intensity.dram"].to_list() == [pytest.approx(1)]


def test_ceilings_are_those_that_the_authors_published() -> None:
    """Ding and Williams: V100 489.6 warp GIPS, L2 93.6 and HBM 25.9 GTXN/s; A100 609.12 and 48.6.

    Their L2 and HBM of V100 are bandwidths that a benchmark reached (2996.77 and 828.758 GB/s), HBM of A100 is 5120 bit × 2 ×
    1.215 GHz. Their L1 (437.5 on V100) rests on 14 TB/s, less than 128 byte per SM and cycle of the same clock, which give 489.6.
    """
    volta = roofs_of(n_sms=80, clock_hz=1.53e9, major=7, dram=828.758e9, l2=2996.77e9)
    assert volta["warp_issue"] == pytest.approx(489.6)
    assert [round(volta[level], 1) for level in ("dram", "l2")] == [25.9, 93.6]
    ampere = roofs_of(n_sms=108, clock_hz=1.41e9, major=8, dram=5120 / 8 * 2 * 1.215e9, l2=1.0)
    assert ampere["warp_issue"] == pytest.approx(609.12)
    assert ampere["dram"] == pytest.approx(48.6)


def roofs_of(*, n_sms: float, clock_hz: float, major: float, dram: float, l2: float) -> dict[str, float]:
    """The roofs of a GPU from its counters, in billions per second."""
    counters = SMALL_GPU | {
        "device__attribute_multiprocessor_count": n_sms,
        "device__attribute_compute_capability_major": major,
        "smsp__cycles_elapsed.avg.per_second": clock_hz,
        "dram__bytes.sum.per_second": 0.0,
        "dram__bytes.sum.peak_sustained": dram,
        "dram__cycles_elapsed.avg.per_second": 1.0,
        "lts__t_bytes.sum.per_second": 0.0,
        "lts__t_bytes.sum.peak_sustained": l2,
        "lts__cycles_elapsed.avg.per_second": 1.0,
    }
    found = roofline(measure([raw_report(counters)])).instruction_ceilings
    assert set(found["source"]) == {"counters"}
    return {name: per_s / 1e9 for name, per_s in zip(found["name"], found["per_s"], strict=True)}


def test_the_datasheets_issue_peak_is_at_boost_clock() -> None:
    counters = SMALL_GPU | {
        "device__attribute_display_name": "Tesla V100-SXM2-16GB",
        "device__attribute_multiprocessor_count": 80.0,
        "smsp__cycles_elapsed.avg.per_second": 1.3e9,
    }
    placed = roofline(measure([raw_report(counters)]))
    issue = placed.instruction_ceilings.filter(pl.col("name") == "warp_issue")
    # 4 · 80 SMs at 1.3 GHz as measured, at 1.53 GHz by the data sheet
    assert dict(zip(issue["source"], issue["per_s"], strict=True)) == pytest.approx(
        {"counters": 416e9, "datasheet": 489.6e9}
    )


def test_a_gpu_of_which_nothing_is_known_has_no_ceilings() -> None:
    measurements = measure([raw_report({"gpu__time_duration.sum": 1000.0})])
    placed = roofline(measurements)
    assert instruction_ceilings(measurements.kernels, placed.ceilings, placed.profiles).height == 0


@pytest.mark.parametrize("peak", [0.0, -0.0, 5e-324])
def test_a_roof_of_zero_has_no_share(peak: float) -> None:
    found = point(executed(10_000), "dram", 3.2e11, peak)
    assert found["roof_frac"] is None
    assert found["ridge_inst_per_transaction"] is None
