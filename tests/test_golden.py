"""Published numbers, from their counters through a report and the whole chain: what is expected, somebody else printed.

The counters of a row are written into a report as Nsight Compute would store them; where a row tells too little for that, what
was chosen beside it is said. Not here, because nothing of ours states them: measured ceilings of the Empirical Roofline Toolkit
other than the FMA relation, the rows of GPP for 1 to 5 bands (intensities without counters), and AMD's GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.roofline.gpu_names import profile_by_name
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

Analyse = Callable[..., dict[str, Any]]


@pytest.fixture
def analyse(tmp_path: Path) -> Analyse:
    """The document's entry of a kernel with these counters, on a chip and under a device name."""

    def entry(chip: str, metrics: Mapping[str, float], device_name: str = "") -> dict[str, Any]:
        name = {"device__attribute_display_name": device_name} if device_name else {}
        return entry_of(Kernel("golden", {**METRICS_BY_CHIP[chip], **name, **metrics}), tmp_path)

    return entry


def entry_of(written: Kernel, folder: Path) -> dict[str, Any]:
    path = folder / "golden.ncu-rep"
    path.write_bytes(write_report([written]))
    return ncuroof.read(path).analyse().to_dict()["kernels"][0]


def intensities(entry: dict[str, Any]) -> dict[str, float]:
    """Work over the traffic of both directions, by level: the intensity that NERSC's papers state."""
    flop = sum(work["flop"] for work in entry["work"].values())
    return {level: flop / n_bytes for level, n_bytes in entry["traffic_bytes"].items() if n_bytes}


def point(entry: dict[str, Any], level: str, precision: str) -> dict[str, Any]:
    (found,) = [each for each in entry["points"] if (each["level"], each["precision"]) == (level, precision)]
    return found


# ---- Volta: GPP (BerkeleyGW's self-energy kernel), the Empirical Roofline Toolkit, NERSC's toy kernels -------------------------

# Yang et al., arXiv 2009.02449, and the repository cyanguwa/nersc-roofline: GPP with 6 bands on V100, collected by NERSC's list
# of metrics.
DFMA, DADD, DMUL = 2_363_372_863_488, 164_886_478_848, 1_429_016_150_016
GPP = {
    "sm__sass_thread_inst_executed_op_dfma_pred_on.sum": float(DFMA),
    "sm__sass_thread_inst_executed_op_dadd_pred_on.sum": float(DADD),
    "sm__sass_thread_inst_executed_op_dmul_pred_on.sum": float(DMUL),
    "sm__cycles_elapsed.avg": 1_677_853_638.88,
    "sm__cycles_elapsed.avg.per_second": 1.31e9,
}
GPP_BYTES = {"l1tex__t_bytes.sum": 1.58e12, "lts__t_bytes.sum": 1.25e12, "dram__bytes.sum": 480.44e9}
V100 = {"device__attribute_multiprocessor_count": 80}


def test_gpp_does_6_tflop_in_1_28_s(analyse: Analyse) -> None:
    entry = analyse("GV100", GPP | GPP_BYTES | V100)
    # 1 677 853 638.88 cycles at 1.31 GHz; 2 · 2 363 372 863 488 + 164 886 478 848 + 1 429 016 150 016 = 6 320 648 355 840
    assert entry["duration_ns"] == pytest.approx(1.2808e9, rel=1e-4)
    assert entry["work"]["fp64"]["flop"] == pytest.approx(6.3206e12, rel=1e-4)
    assert entry["work"]["fp64"]["flop"] == pytest.approx(6_320_648_355_840)
    assert entry["work"]["fp64"]["flop_per_s"] == pytest.approx(4934.8e9, rel=1e-4)


def test_gpp_has_the_intensities_of_the_paper_at_every_level(analyse: Analyse) -> None:
    entry = analyse("GV100", GPP | GPP_BYTES | V100)
    found = intensities(entry)
    assert (found["l1"], found["l2"], found["dram"]) == pytest.approx((4.00, 5.06, 13.16), rel=1e-3)
    assert point(entry, "dram", "fp64")["intensity_flop_per_byte"] == pytest.approx(13.16, rel=1e-3)


def test_gpp_in_sectors_has_the_same_intensities(analyse: Analyse) -> None:
    # The same run by nvprof, in sectors of 32 byte: L1 4.8952e10 + 3.28e8, L2 3.8942e10 + 3.22e8, HBM 1.5013e10.
    sectors = {
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 4.8952e10,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 3.28e8,
        "lts__t_sectors_srcunit_tex.sum": 3.8942e10 + 3.22e8,
        "dram__sectors_read.sum": 1.5013e10,
        "dram__sectors_write.sum": 0.0,
    }
    found = intensities(analyse("GV100", GPP | sectors | V100))
    # Other counters of another run: the bytes differ by half a percent.
    assert (found["l1"], found["l2"], found["dram"]) == pytest.approx((4.00, 5.06, 13.16), rel=1e-2)


def test_gpp_is_judged_by_the_data_sheet_at_the_measured_clock_where_no_peak_was_collected(analyse: Analyse) -> None:
    work = analyse("GV100", GPP | GPP_BYTES | V100, "Tesla V100-SXM2-16GB")["work"]["fp64"]
    # 80 SMs · 32 FMA · 2 · 1.31 GHz = 6.7072 TFLOP/s, of which 4.9348 are 73.6 %
    assert work["peak_source"] == "datasheet"
    assert work["peak_flop_per_s"] == pytest.approx(6.7072e12)
    assert work["frac"] == pytest.approx(4934.8 / 6707.2, rel=1e-4)


def fp64_rates(clock_hz: float, adds: float, fmas: float) -> dict[str, float]:
    """Counters of a kernel on V100 that executed so many additions and FMAs per cycle, of 80 · 32 that it could."""
    instruction = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    per_cycle = {"dadd": adds, "dmul": 0.0, "dfma": fmas}
    return {
        "gpu__time_duration.sum": 1e9,
        **{instruction.format(name): float(n) for name, n in per_cycle.items()},
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 80.0 * 32,
        "smsp__cycles_elapsed.avg.per_second": clock_hz,
        "sm__cycles_elapsed.avg.per_second": clock_hz,
        **V100,
    }


def test_peak_of_v100_at_base_clock_is_that_of_the_paper(analyse: Analyse) -> None:
    # 80 SMs · 32 FMA · 2 · 1.312 GHz = 6.72 TFLOP/s
    work = analyse("GV100", fp64_rates(1.312e9, 0, 0))["work"]["fp64"]
    assert work["peak_flop_per_s"] == pytest.approx(6.72e12, rel=1e-3)
    sheet = profile_by_name("v100-sxm2")
    assert sheet.peak_at_clock_flop_per_s("fp64", 1.312e9) == pytest.approx(6.72e12, rel=1e-3)


@pytest.mark.long
def test_additions_alone_reach_half_the_peak_with_every_slot_taken(analyse: Analyse) -> None:
    # The Empirical Roofline Toolkit on V100: 7068.86 GFLOP/s with FMA, 3535.79 without. The first is 80 · 32 · 2 at 1.3806 GHz.
    clock_hz = 7068.86e9 / (80 * 32 * 2)
    fused, unfused = (analyse("GV100", fp64_rates(clock_hz, adds, fmas)) for adds, fmas in ((0, 80 * 32), (80 * 32, 0)))
    assert fused["work"]["fp64"]["flop_per_s"] == pytest.approx(7068.86e9)
    assert fused["work"]["fp64"]["frac"] == pytest.approx(1)
    assert unfused["work"]["fp64"]["flop_per_s"] == pytest.approx(3535.79e9, rel=1e-3)
    assert unfused["work"]["fp64"]["frac"] == pytest.approx(3535.79 / 7068.86, rel=1e-3)
    assert unfused["utilisation"]["fp64"] == pytest.approx(1)
    assert unfused["arithmetic"]["fp64_unfused_frac"] == 1


def test_ceiling_for_a_share_of_fma_is_what_pipe_and_share_say(analyse: Analyse) -> None:
    # "8 Steps to 3.7 TFLOP/s": 58 % of GPP's instructions are FMA, which tailors the peak of 6.7 to 6.7 · (1 + 0.58) / 2 = 5.3
    # TFLOP/s. 3.7 are 55 % of the one and 70 % of the other: the second is how busy the pipe is.
    clock_hz = 1.312e9
    instructions = 3.7e12 / (1 + 0.58) / clock_hz
    entry = analyse("GV100", fp64_rates(clock_hz, 0.42 * instructions, 0.58 * instructions))
    work, utilisation = entry["work"]["fp64"], entry["utilisation"]["fp64"]
    unfused = entry["arithmetic"]["fp64_unfused_frac"]
    assert work["flop_per_s"] == pytest.approx(3.7e12)
    assert work["frac"] == pytest.approx(0.55, abs=5e-3)
    assert utilisation == pytest.approx(0.70, abs=5e-3)
    assert unfused == pytest.approx(0.42)
    tailored = work["peak_flop_per_s"] * (1 - unfused / 2)
    assert tailored == pytest.approx(5.3e12, rel=5e-3)
    assert work["flop_per_s"] / utilisation == pytest.approx(tailored)


def test_l1_of_v100_is_128_byte_per_sm_and_clock(analyse: Analyse) -> None:
    # FrozenMapping as theoretical: 14 336 GB/s = 80 SMs · 128 byte · 1.4 GHz.
    l1 = "derived__l1tex__lsu_writeback_bytes.sum"
    counters = {
        "gpu__time_duration.sum": 1e6,
        f"{l1}.per_second": 0.0,
        f"{l1}.peak_sustained": 80.0 * 128,
        "l1tex__cycles_elapsed.avg.per_second": 1.4e9,
    }
    assert analyse("GV100", counters)["bandwidth"]["l1"]["peak_bytes_per_s"] == pytest.approx(14_336e9)


N_ELEMENTS = 2**20
TOY = {
    "gpu": "v100-sxm2",
    "block": (64, 1, 1),
    "stores": Accesses(N_ELEMENTS // 32, 8, 32, 8),
    "dram_read_bytes": 8 * N_ELEMENTS,
    "dram_write_bytes": 8 * N_ELEMENTS,
}
COALESCED = Accesses(N_ELEMENTS // 32, 8, 32, 8)
STRIDED = Accesses(N_ELEMENTS // 32, 32, 8, 8, hit_frac=0.75)
TOYS = {
    # NERSC's toy kernels: doubles that are read and written, 16 byte each, with 10 000 FMAs or one addition between.
    "kernel_A": (Described("a", 10_000_000, loads=COALESCED, fp64=(0, 0, 10_000 * N_ELEMENTS), **TOY), 1250),
    "kernel_B": (
        Described(
            *("b", 20_000_000),
            loads=COALESCED,
            fp64=(0, 0, 10_000 * N_ELEMENTS),
            achieved_occupancy_frac=2 / 64,
            **TOY,
        ),
        1250,
    ),
    "kernel_C": (Described("c", 1_000_000, loads=STRIDED, fp64=(N_ELEMENTS, 0, 0), **TOY), 0.0625),
}


@pytest.mark.long
@pytest.mark.parametrize("name", list(TOYS))
def test_toy_kernels_have_their_intensity_at_dram(name: str, tmp_path: Path) -> None:
    described, intensity = TOYS[name]
    entry = entry_of(kernel(described), tmp_path)
    # 2 · 10 000 FLOP / 16 byte = 1250; 1 FLOP / 16 byte = 1/16
    assert point(entry, "dram", "fp64")["intensity_flop_per_byte"] == pytest.approx(intensity)
    assert intensities(entry)["dram"] == pytest.approx(intensity)


@pytest.mark.long
def test_toy_kernel_with_two_warps_per_sm_differs_in_occupancy_alone(tmp_path: Path) -> None:
    entry = entry_of(kernel(TOYS["kernel_B"][0]), tmp_path)
    assert entry["occupancy"]["achieved_frac"] == pytest.approx(0.03125)  # 2 of 64 warps


def test_strides_of_a_toy_kernel_show_at_l1(tmp_path: Path) -> None:
    entry = entry_of(kernel(TOYS["kernel_C"][0]), tmp_path)
    # A warp's load takes 32 sectors in place of 8, its store 8: 1280 byte for 32 FLOP.
    assert intensities(entry)["l1"] == pytest.approx(32 / 1280)
    assert entry["access"]["load_sectors_per_request"] == pytest.approx(32)


# ---- tensor work: counters that equal closed forms -------------------------------------------------------------------------


def test_wmma_gemm_on_t4_does_two_m_n_k(analyse: Analyse) -> None:
    # 4096 × 4096 × 4096; the duration is ours.
    counter = {"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum": 137_438_953_472, "gpu__time_duration.sum": 5e6}
    work = analyse("TU104", counter)["work"]
    assert {name: entry["flop"] for name, entry in work.items()} == pytest.approx({"tensor_fp16": 2 * 4096**3})


def test_flash_attention_on_rtx_4060_ti_does_four_n_n_d_h(analyse: Analyse) -> None:
    # 4 · 4096² · 64 · 8 heads = 2³⁵; the duration is ours.
    counter = {"sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum": 34_359_738_368, "gpu__time_duration.sum": 3e6}
    work = analyse("AD102", counter)["work"]
    assert {name: entry["flop"] for name, entry in work.items()} == pytest.approx({"tensor_fp16": 2**35})


FP8_GEMM = {
    # 4096 × 3072 × 768, and nothing else collected; duration and clock are ours.
    "sm__ops_path_tensor_src_fp8.sum": 19_327_352_832,
    "gpu__time_duration.sum": 60_000.0,
}


def test_fp8_gemm_on_rtx_4090_does_two_m_n_k(analyse: Analyse) -> None:
    work = analyse("AD102", FP8_GEMM)["work"]
    assert {name: entry["flop"] for name, entry in work.items()} == pytest.approx({"tensor_fp8": 2 * 4096 * 3072 * 768})
    assert work["tensor_fp8"]["reliable"]


def test_fp8_gemm_without_a_peak_is_judged_by_the_data_sheet(analyse: Analyse) -> None:
    clocked = FP8_GEMM | {"gpc__cycles_elapsed.max": 60_000 * 2.52, "device__attribute_multiprocessor_count": 128}
    entry = analyse("AD102", clocked, "NVIDIA GeForce RTX 4090")
    work = entry["work"]["tensor_fp8"]
    # NVIDIA Ada whitepaper v2.02: 330.3 TFLOP/s at the boost clock of 2.52 GHz; 19.327 GFLOP in 60 µs are 322.1
    assert work["peak_source"] == "datasheet"
    assert work["peak_flop_per_s"] == pytest.approx(330.3e12, rel=1e-3)
    assert work["frac"] == pytest.approx(322.12 / 330.3, rel=1e-3)
    assert "datasheet_peak" in entry["caveats"]


@pytest.mark.long
def test_fp8_gemm_without_peak_and_clock_is_judged_by_the_data_sheet_at_boost(analyse: Analyse) -> None:
    attributes = {"device__attribute_multiprocessor_count": 128, "device__attribute_clock_rate": 2_520_000}
    work = analyse("AD102", FP8_GEMM | attributes, "NVIDIA GeForce RTX 4090")["work"]["tensor_fp8"]
    assert work["peak_source"] == "datasheet"
    assert work["peak_flop_per_s"] == pytest.approx(330.3e12, rel=1e-3)


@pytest.mark.parametrize("flop_per_row", [524_288, 557_056])
@pytest.mark.parametrize("n_rows", [1, 64, 8192])
def test_gemm_on_h100_does_its_closed_form_however_often_it_is_counted(
    analyse: Analyse, flop_per_row: int, n_rows: int
) -> None:
    # Rows M of 2 · 512 · 512 or 2 · 512 · 544 operations each. The input type is not stated, BF16 is ours, and so is the duration.
    # Nsight Compute stores the path and the sum of all BF16 paths.
    done = float(n_rows * flop_per_row)
    names = ("op_hgmma_src_bf16_dst_fp32_sparsity_off", "src_bf16_dst_fp32")
    idle = ("op_hgmma_src_bf16_dst_fp32_sparsity_on", "op_hmma_src_bf16_dst_fp32_sparsity_off")
    counters = {f"sm__ops_path_tensor_{name}.sum": done if name in names else 0.0 for name in (*names, *idle)}
    work = analyse("GH100", counters | {"gpu__time_duration.sum": 1e5})["work"]
    assert {name: entry["flop"] for name, entry in work.items() if entry["flop"]} == pytest.approx(
        {"tensor_bf16": n_rows * flop_per_row}
    )


# ---- roofs of modern GPUs ------------------------------------------------------------------------------------------------------

# H100 with 132 SMs at 1980 MHz, per cycle: FFMA × 2, DFMA × 2, HFMA × 4, bytes of L1's write-back, bytes of L2 to the crossbar.
H100_PER_CYCLE = {"fp32": 33_792, "fp64": 16_896, "fp16": 67_584, "l1": 16_896, "l2": 5_120}


def test_peaks_of_h100_are_those_per_cycle_times_the_measured_clock(analyse: Analyse) -> None:
    # What is stored: 132 SMs · 128 FFMA, · 64 DFMA, · 128 HFMA of two halves, · 128 byte, and 80 slices of L2 · 64 byte.
    peak = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"
    rate = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    l1, l2 = "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum", "derived__lts__lts2xbar_bytes.sum"
    counters = {
        "gpu__time_duration.sum": 1e6,
        **{rate.format(kind + op): 0.0 for kind in "dfh" for op in ("add", "mul", "fma")},
        **{peak.format(op): 132.0 * n for op, n in (("ffma", 128), ("dfma", 64), ("hfma", 128))},
        **{f"{unit}__cycles_elapsed.avg.per_second": 1.98e9 for unit in ("sm", "smsp", "l1tex", "lts")},
        **{f"{name}.per_second": 0.0 for name in (l1, l2)},
        f"{l1}.peak_sustained": 132.0 * 128,
        f"{l2}.peak_sustained": 80.0 * 64,
    }
    entry = analyse("GH100", counters)
    found = {name: entry["work"][name]["peak_flop_per_s"] for name in ("fp32", "fp64", "fp16")}
    found |= {name: entry["bandwidth"][name]["peak_bytes_per_s"] for name in ("l1", "l2")}
    assert found == pytest.approx({name: 1.98e9 * n for name, n in H100_PER_CYCLE.items()})


def test_data_sheet_of_h100_has_the_same_rates_per_cycle() -> None:
    sheet = profile_by_name("h100-sxm")
    found = {name: sheet.peak_at_clock_flop_per_s(name, 1.0) for name in ("fp32", "fp64", "fp16")}
    found |= {name: sheet.bandwidth_bytes_per_s[name] / 1.98e9 for name in ("l1", "l2")}
    assert found == pytest.approx(H100_PER_CYCLE)


@pytest.mark.long
def test_roofs_and_ridges_of_an_rtx_50_with_36_sms(analyse: Analyse) -> None:
    # Printed: FP32 21.293 TFLOP/s, L1 10.647, L2 2.1729, DRAM 0.4410 TB/s; 36 · 128 · 2 at 2.3104 GHz and 36 · 128 byte. How the
    # bandwidths of L2 and DRAM split into bytes per clock and clock is not stated; the bus of 128 bit has 32 byte per clock.
    l1, l2 = "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum", "derived__lts__lts2xbar_bytes.sum"
    rate = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    counters = {
        "gpu__time_duration.sum": 1e6,
        **{rate.format(op): 100.0 for op in ("fadd", "fmul", "ffma")},
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 36.0 * 128,
        **{f"{unit}__cycles_elapsed.avg.per_second": 2.3104e9 for unit in ("sm", "smsp", "l1tex")},
        **{f"{name}.sum.per_second": 1e9 for name in ("dram__bytes", l1.removesuffix(".sum"), l2.removesuffix(".sum"))},
        f"{l1}.peak_sustained": 36.0 * 128,
        f"{l2}.peak_sustained": 1024.0,
        "lts__cycles_elapsed.avg.per_second": 2.1729e12 / 1024,
        "dram__bytes.sum.peak_sustained": 2 * 128 / 8,
        "dram__cycles_elapsed.avg.per_second": 441.0e9 / 32,
    }
    entry = analyse("GB202", counters)
    assert entry["work"]["fp32"]["peak_flop_per_s"] == pytest.approx(21.293e12, rel=1e-4)
    assert entry["bandwidth"]["l1"]["peak_bytes_per_s"] == pytest.approx(10.647e12, rel=1e-4)
    assert entry["bandwidth"]["l2"]["peak_bytes_per_s"] == pytest.approx(2.1729e12)
    assert entry["bandwidth"]["dram"]["peak_bytes_per_s"] == pytest.approx(441.0e9)
    ridges = {level: point(entry, level, "fp32")["ridge_flop_per_byte"] for level in ("l1", "l2", "dram")}
    assert ridges == pytest.approx({"l1": 2.00, "l2": 9.80, "dram": 48.28}, rel=1e-3)


def test_data_sheet_of_the_card_with_36_sms_has_the_roof_that_was_printed() -> None:
    sheet = profile_by_name("rtx-5060-ti")
    assert sheet.sm_count == 36
    assert sheet.peak_at_clock_flop_per_s("fp32", 2.3104e9) == pytest.approx(21.293e12, rel=1e-4)


# ---- RTX 5070 ------------------------------------------------------------------------------------------------------------------

# A naive GEMM, row of a CSV. Blackwell's counters of DRAM carry `op`; the split of 2.5 sectors per request is ours.
NAIVE_GEMM = {
    "gpu__time_duration.sum": 9_589_000.0,
    "dram__bytes_op_read.sum": 54_207_744,
    "dram__bytes_op_write.sum": 26_601_216,
    "lts__t_sector_hit_rate.pct": 100.39,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 2.5e6,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 1e6,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 97.32,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 66.61,
}


def test_naive_gemm_on_rtx_5070_is_read_as_it_was_printed(analyse: Analyse) -> None:
    entry = analyse("GB202", NAIVE_GEMM)
    traffic = entry["traffic_bytes"]
    assert entry["duration_ns"] == pytest.approx(9.589e6)
    assert (traffic["dram_read"], traffic["dram_write"]) == (54_207_744, 26_601_216)
    assert traffic["dram"] == 80_808_960
    # 80 808 960 byte in 9.589 ms
    assert entry["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx(8.4273e9, rel=1e-4)
    assert entry["access"]["load_sectors_per_request"] == pytest.approx(2.5)
    assert entry["utilisation"]["sm"] == pytest.approx(0.9732)
    assert entry["occupancy"]["achieved_frac"] == pytest.approx(0.6661)


@pytest.mark.long
def test_hit_rate_above_100_percent_is_shown_and_told(analyse: Analyse) -> None:
    entry = analyse("GB202", NAIVE_GEMM)
    assert entry["access"]["l2_hit_frac"] == pytest.approx(1.0039)
    assert "hit_rate_over_100" in entry["caveats"]


@pytest.mark.parametrize("measured", [33.49e12, 34.36e12])
def test_rate_above_the_theory_of_the_nominal_clock_is_below_the_roof_of_the_measured_one(
    analyse: Analyse, measured: float
) -> None:
    # Theory: 48 SMs · 128 · 2 · 2.625 GHz = 32.26 TFLOP/s. Measured at 2.865 GHz, where it is 35.2.
    ffma = measured / 2 / 2.865e9
    counters = {
        "gpu__time_duration.sum": 1e6,
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 0.0,
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": 0.0,
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": ffma,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 48.0 * 128,
        "smsp__cycles_elapsed.avg.per_second": 2.865e9,
        "sm__cycles_elapsed.avg.per_second": 2.865e9,
        # Theory: 192 bit · 2 / 8 · 14 GHz = 672 GB/s.
        "dram__bytes.sum.per_second": 1e9,
        "dram__bytes.sum.peak_sustained": 48.0,
        "dram__cycles_elapsed.avg.per_second": 14e9,
    }
    entry = analyse("GB202", counters)
    assert entry["bandwidth"]["dram"]["peak_bytes_per_s"] == pytest.approx(672e9)
    assert entry["work"]["fp32"]["peak_flop_per_s"] * 2.625 / 2.865 == pytest.approx(32.26e12, rel=1e-3)
    assert measured > 32.26e12
    assert entry["work"]["fp32"]["frac"] < 1
    assert "above_roof" not in entry["caveats"]


# ---- measured bandwidths and rates, against our data sheets ------------------------------------------------------------------

MEASURED = {
    # profile: bandwidth in GB/s that a benchmark reached, and FP32 (V100: FP64) TFLOP/s; gpu-roofline, RRZE's gpu-benches
    "h100-sxm": (2958, "fp32", 59.0),
    "h200-sxm": (4028, "fp32", 59.5),
    "gh200-96gb": (3558, "fp32", 59.4),
    "rtx-5090": (1503, "fp32", 95.8),
    "v100-pcie": (869, "fp64", 6.604),
}


@pytest.mark.parametrize("name", list(MEASURED))
def test_no_benchmark_beats_a_data_sheet_and_the_good_ones_come_near(name: str) -> None:
    bandwidth, precision, rate = MEASURED[name]
    sheet = profile_by_name(name)
    assert 0.8 <= bandwidth * 1e9 / sheet.bandwidth_bytes_per_s["dram"] <= 1
    assert 0.8 <= rate * 1e12 / sheet.peak_flop_per_s[precision] <= 1
