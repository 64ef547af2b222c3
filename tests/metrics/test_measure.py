"""Canonical quantities from counters whose values are chosen by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ncuroof.metrics import load_catalogue, measure
from ncuroof.metrics.catalogue import BREAKDOWNS, DEVICE_NAME
from ncuroof.tables import BANDWIDTH, KERNELS, WORK, check
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
FP32 = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
CLOCKS = {"smsp__cycles_elapsed.avg.per_second": 1.5e9, "sm__cycles_elapsed.avg.per_second": 1.5e9}


def kernel_of(counters: dict[str, float | str]) -> dict[str, object]:
    return measure([raw_report(counters)]).kernels.row(0, named=True)


def test_nothing_collected_is_null_everywhere() -> None:
    row = kernel_of({})
    for quantity in load_catalogue().quantities:
        assert row[quantity.name] is None, quantity.name


def test_a_measured_zero_stays_zero() -> None:
    assert kernel_of({"dram__bytes_read.sum": 0.0})["traffic_bytes.dram_read"] == 0.0


def test_percent_becomes_a_share() -> None:
    assert kernel_of({f"sm__throughput{PCT}": 85.0})["utilisation.compute"] == pytest.approx(0.85)


def test_a_size_of_zero_is_not_known() -> None:
    sizes = {f"launch__{what}_dim_{axis}": 0.0 for what in ("grid", "block") for axis in "xyz"}
    failed = sizes | {"launch__grid_size": 0.0, "launch__block_size": 0.0}
    (row,) = measure([raw_report(failed)]).kernels.to_dicts()
    known = ("grid", "block", "launch.n_blocks", "launch.n_threads_per_block", "launch.n_warps")
    assert [row[name] for name in known] == [None] * len(known)


@pytest.mark.parametrize(("workload", "n_blocks"), [("kernel", 33.0), ("graph", None), ("range", None)])
def test_a_graph_has_no_grid_of_its_own(workload: str, n_blocks: float | None) -> None:
    # of a CUDA graph as a whole, ncu writes one block of 32 threads; 33 blocks here, for 132 SMs
    counters = {f"launch__{what}_dim_{axis}": 1.0 for what in ("grid", "block") for axis in "yz"}
    counters |= {
        "launch__grid_dim_x": 33.0,
        "launch__grid_size": 33.0,
        "launch__block_dim_x": 32.0,
        "launch__sm_count": 132.0,
    }
    report = raw_report(counters)
    workloads = report.workloads.with_columns(
        pl.lit(workload).alias("workload").cast(report.workloads.schema["workload"])
    )
    row = measure([replace(report, workloads=workloads)]).kernels.row(0, named=True)
    share = None if n_blocks is None else 0.25
    assert [row[f"launch.{name}"] for name in ("n_blocks", "blocks_per_sm", "sm_frac")] == [n_blocks, share, share]
    assert row["grid"] == (None if n_blocks is None else [33, 1, 1])
    assert row["device.sm_count"] == 132


def test_duration_falls_back_to_cycles_over_clock() -> None:
    # 3000 cycles at 1.5 GHz = 2 µs
    row = kernel_of({"sm__cycles_elapsed.avg": 3000.0, "sm__cycles_elapsed.avg.per_second": 1.5e9})
    assert row["duration_ns"] == pytest.approx(2000.0)


def test_dram_bytes_prefer_what_was_read_and_written_to_rate_times_duration() -> None:
    counters = {"gpu__time_duration.sum": 1000.0, "dram__bytes.sum.per_second": 3e9}
    # 3 GB/s for 1 µs = 3000 byte
    assert kernel_of(counters)["traffic_bytes.dram"] == pytest.approx(3000.0)
    both = {**counters, "dram__bytes_read.sum": 1000.0, "dram__bytes_write.sum": 1500.0}
    assert kernel_of(both)["traffic_bytes.dram"] == 2500.0


def test_blackwell_names_of_dram_traffic_are_read() -> None:
    row = kernel_of({"dram__bytes_op_read.sum": 64.0, "dram__bytes_op_write.sum": 32.0})
    assert (row["traffic_bytes.dram_read"], row["traffic_bytes.dram_write"]) == (64.0, 32.0)


def test_fallbacks_are_chosen_kernel_by_kernel() -> None:
    rows = measure([raw_report({"dram__bytes_read.sum": 5.0}, {"dram__sectors_read.sum": 2.0})]).kernels
    assert rows["traffic_bytes.dram_read"].to_list() == [5.0, 64.0]


def test_fp32_counts_a_fused_multiply_add_twice() -> None:
    counters = {
        FP32.format("fadd"): 10.0,
        FP32.format("fmul"): 20.0,
        FP32.format("ffma"): 100.0,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 1000.0,
        "gpu__time_duration.sum": 2000.0,
        **CLOCKS,
    }
    work = measure([raw_report(counters)]).work.row(0, named=True)
    # (10 + 20 + 2·100) per cycle · 1.5e9 cycles/s = 3.45e11 flop/s; for 2 µs: 690 000 flop; peak 2·1000·1.5e9
    assert work["precision"] == "fp32"
    assert work["flop_per_s"] == pytest.approx(3.45e11)
    assert work["flop"] == pytest.approx(690_000)
    assert work["peak_flop_per_s"] == pytest.approx(3e12)
    assert work["frac"] == pytest.approx(0.115)


def test_packed_fp32_is_added_where_the_report_has_it() -> None:
    counters = {
        **dict.fromkeys([FP32.format(op) for op in ("fadd", "fmul", "ffma")], 0.0),
        "derived__smsp__sass_thread_inst_executed_op_fadd2_pred_on_x2": 2.0,
        "derived__smsp__sass_thread_inst_executed_op_fmul2_pred_on_x2": 4.0,
        "derived__smsp__sass_thread_inst_executed_op_ffma2_pred_on_x4": 8.0,
        **CLOCKS,
    }
    assert measure([raw_report(counters)]).work.row(0, named=True)["flop_per_s"] == pytest.approx(14 * 1.5e9)


def test_fp16_packs_two_whatever_factor_the_report_derived() -> None:
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    counters = {
        name.format("hadd"): 1.0,
        name.format("hmul"): 2.0,
        name.format("hfma"): 3.0,
        "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2": 6.0,
        **CLOCKS,
    }
    # 2·1 + 2·2 + 4·3 = 18 per cycle
    assert measure([raw_report(counters)]).work.row(0, named=True)["flop_per_s"] == pytest.approx(18 * 1.5e9)


def test_roof_traffic_is_a_pair_of_one_counter() -> None:
    counters = {
        "dram__bytes.sum.per_second": 2e12,
        "dram__bytes.sum.peak_sustained": 1536.0,
        "dram__cycles_elapsed.avg.per_second": 2e9,
        "gpu__time_duration.sum": 1000.0,
        "dram__bytes_read.sum": 1.0,
        "dram__bytes_write.sum": 1.0,
    }
    row = measure([raw_report(counters)]).bandwidth.row(0, named=True)
    # 1536 byte/cycle · 2 GHz = 3.072 TB/s
    assert (row["level"], row["bytes_per_s"], row["peak_bytes_per_s"]) == ("dram", 2e12, pytest.approx(3.072e12))


def test_a_zero_peak_is_missing() -> None:
    counters = {
        "dram__bytes.sum.per_second": 2e12,
        "dram__bytes.sum.peak_sustained": 0.0,
        "dram__cycles_elapsed.avg.per_second": 2e9,
    }
    row = measure([raw_report(counters)]).bandwidth.row(0, named=True)
    assert row["peak_bytes_per_s"] is None
    assert row["frac"] is None


def test_limiter_is_the_resource_of_the_busiest_breakdown_member() -> None:
    memory = {
        f"dram__cycles_active{PCT}": 30.0,
        f"lts__t_sectors{PCT}": 55.0,
        f"l1tex__m_xbar2l1tex_read_sectors{PCT}": 70.0,
    }
    compute = {f"sm__pipe_fma_cycles_active{PCT}": 41.0, f"sm__issue_active{PCT}": 40.0}
    row = kernel_of(
        {**memory, **compute, BREAKDOWNS["memory"]: ",".join(memory), BREAKDOWNS["compute"]: ",".join(compute)}
    )
    assert row["limiter.memory"] == "l2"
    assert row["limiter.memory_counter"] == f"l1tex__m_xbar2l1tex_read_sectors{PCT}"
    assert row["limiter.compute"] == "fp32"


def test_shared_memory_is_told_from_l1_by_its_share_of_wavefronts() -> None:
    stage = f"l1tex__data_pipe_lsu_wavefronts{PCT}"
    counters = {
        stage: 90.0,
        BREAKDOWNS["memory"]: stage,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed": 80.0,
    }
    assert kernel_of(counters)["limiter.memory"] == "shared"
    counters["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"] = 20.0
    assert kernel_of(counters)["limiter.memory"] == "l1"


WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
STATIC, DYNAMIC = (f"launch__shared_mem_per_block_{kind}" for kind in ("static", "dynamic"))
KINDS = {"": 1000.0, "_op_ld": 300.0, "_op_st": 200.0, "_op_atom": 50.0}
ASYNC = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
BY_INSTRUCTION = "memory_l1_wavefronts_shared"


@pytest.mark.parametrize(
    ("chip", "counters", "expected"),
    [
        # 450 of the 1000 are shuffles, reads of special registers, or switched off.
        ((8, 6), {}, 550.0),
        ((8, 6), {ASYNC: 100.0}, 650.0),
        ((8, 6), {ASYNC: 100.0, BY_INSTRUCTION: 660.0}, 660.0),
        ((8, 6), {ASYNC: 800.0}, 1000.0),  # what 16-byte copies bring passes by the pipe: no more than it saw
        ((9, 0), {"_op_misc": 450.0, TENSOR: 50.0}, 550.0),
        ((9, 0), {"_op_misc": 100.0, TENSOR: 50.0}, 900.0),  # 350 are operands of wgmma
        ((9, 0), {TENSOR: 0.0}, 550.0),
        ((9, 0), {TENSOR: 50.0, STATIC: 0.0, DYNAMIC: 4096.0}, 1000.0),  # a bound
        ((9, 0), {TENSOR: 50.0, STATIC: 0.0, DYNAMIC: 0.0}, 0.0),
        ((9, 0), {TENSOR: 50.0}, 1000.0),
        ((10, 0), {"_op_misc": 450.0, TENSOR: 50.0}, 550.0),
        ((12, 0), {}, 550.0),
        ((8, 0), {"_op_ld": None, STATIC: 0.0, DYNAMIC: 0.0}, 0.0),
        ((8, 0), {"_op_ld": None, BY_INSTRUCTION: 540.0}, 540.0),
    ],
)
def test_wavefronts_of_shared_memory_are_those_that_access_it(
    chip: tuple[int, int], counters: dict[str, float | None], expected: float
) -> None:
    given = {
        WAVEFRONTS.format(name) if name in {*KINDS, "_op_misc"} else name: value
        for name, value in (KINDS | counters).items()
        if value is not None
    }
    parts = zip(("major", "minor"), chip, strict=True)
    row = kernel_of(given | {f"device__attribute_compute_capability_{part}": float(value) for part, value in parts})
    assert row["access.shared_wavefronts"] == expected
    assert row["traffic_bytes.shared"] == 128 * expected


def test_stall_shares_are_of_the_warp_latency() -> None:
    prefix = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    row = kernel_of(
        {
            prefix.format("long_scoreboard"): 6.0,
            prefix.format("selected"): 1.0,
            prefix.format("wait"): 3.0,
            "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
        }
    )
    assert row["stalls.long_scoreboard"] == pytest.approx(0.6)
    assert row["limiter.stall"] == "long_scoreboard"


def test_samples_call_two_reasons_by_other_names() -> None:
    prefix = "smsp__pcsamp_warps_issue_stalled_"
    row = kernel_of({f"{prefix}no_instructions": 30.0, f"{prefix}warpgroup_arrive": 20.0, f"{prefix}wait": 50.0})
    assert (row["stalls.no_instruction"], row["stalls.gmma"], row["stalls.wait"]) == (0.3, 0.2, 0.5)


def test_stall_samples_stand_in_for_stall_cycles() -> None:
    row = kernel_of(
        {"smsp__pcsamp_warps_issue_stalled_barrier": 30.0, "smsp__pcsamp_warps_issue_stalled_selected": 70.0}
    )
    assert row["stalls.barrier"] == pytest.approx(0.3)
    assert row["limiter.stall"] == "barrier"


def test_two_reports_keep_their_kernels_and_devices_apart() -> None:
    def on(name: str, n_sms: float) -> dict[str, float | str]:
        return {
            DEVICE_NAME: name,
            "device__attribute_multiprocessor_count": n_sms,
            "device__attribute_compute_capability_major": 9.0,
            "device__attribute_compute_capability_minor": 0.0,
        }

    measured = measure(
        [raw_report(on("NVIDIA H200", 132), on("NVIDIA H200", 132)), raw_report(on("NVIDIA H100 PCIe", 114))]
    )
    assert measured.kernels["id"].to_list() == [0, 1, 2]
    assert measured.kernels["source"].to_list() == [0, 0, 1]
    assert measured.kernels["device"].to_list() == [0, 0, 1]
    assert measured.devices["name"].to_list() == ["NVIDIA H200", "NVIDIA H100 PCIe"]


@pytest.mark.parametrize(
    ("numbers", "devices"),
    [
        ((0.0, None, 0.0), [0, 0, 0]),  # a launch that failed holds no number
        ((None, None), [0, 0]),
        ((0.0, 1.0, None), [0, 1, 2]),  # on which of two equal GPUs is not known
    ],
)
def test_a_launch_without_a_device_number_ran_on_the_only_gpu_like_it(
    numbers: tuple[float | None, ...], devices: list[int]
) -> None:
    h200 = {DEVICE_NAME: "NVIDIA H200", "device__attribute_multiprocessor_count": 132.0}
    launches = [h200 | ({} if number is None else {"launch__device_id": number}) for number in numbers]
    assert measure([raw_report(*launches)]).kernels["device"].to_list() == devices


def test_tables_have_their_schemas() -> None:
    measured = measure([raw_report({})])
    check(measured.kernels, KERNELS, table="KERNELS")
    check(measured.work, WORK, table="WORK")
    check(measured.bandwidth, BANDWIDTH, table="BANDWIDTH")


def test_an_unknown_unit_drops_the_counter_and_says_so() -> None:
    report = raw_report({"gpu__time_duration.sum": 5.0})
    odd = type(report)(
        **{**{f: getattr(report, f) for f in report.__slots__}, "units": {"gpu__time_duration.sum": "parsec"}}
    )
    measured = measure([odd])
    assert measured.kernels["duration_ns"].to_list() == [None]
    assert "parsec" in measured.dropped[0]


def test_every_quantity_of_the_catalogue_is_a_float_column() -> None:
    kernels = measure([raw_report({})]).kernels
    assert {kernels.schema[quantity.name] for quantity in load_catalogue().quantities} == {pl.Float64()}


def test_pascals_vocabulary_is_read() -> None:
    # Names of compute capability 6.x as Nsight Compute 2019 stored them; a copy kernel of 100 MB in 400 µs on 320 GB/s.
    pascal = {
        "device__attribute_compute_capability_major": 6.0,
        "device__attribute_compute_capability_minor": 1.0,
        "device__attribute_memory_clock_rate": 5_000_000.0,
        "device__attribute_global_memory_bus_width": 256.0,
        "gpu__time_duration": 400_000.0,
        "gpc__frequency": 1.5e9,
        "gpu__compute_memory_sol_pct": 80.0,
        "sm__sol_pct": 15.0,
        "fbpa__sol_pct": 80.0,
        "ltc__sol_pct": 30.0,
        "dram__read_bytes": 5e7,
        "dram__write_bytes": 5e7,
        "sm__active_warps_avg_per_active_cycle_pct": 90.0,
        "smsp__pcsamp_warp_stall_long_scoreboard": 60.0,
        "smsp__pcsamp_warp_stall_selected": 40.0,
    }
    measured = measure([raw_report(pascal)])
    row = measured.kernels.row(0, named=True)
    assert row["duration_ns"] == 400_000.0
    assert row["utilisation.memory"] == pytest.approx(0.8)
    assert row["traffic_bytes.dram"] == 1e8
    assert row["occupancy.achieved_frac"] == pytest.approx(0.9)
    assert row["limiter.stall"] == "long_scoreboard"
    dram = measured.bandwidth.row(0, named=True)
    # 1e8 byte / 400 µs = 250 GB/s; 2 · 5 GHz · 32 byte = 320 GB/s
    assert (dram["bytes_per_s"], dram["peak_bytes_per_s"]) == (pytest.approx(2.5e11), pytest.approx(3.2e11))


def test_l2_roof_of_a_full_report_rests_on_the_slices_in_use_and_not_on_the_drivers_count() -> None:
    # 100 µs; 44 slices at 1.2 GHz: 44 · 120 000 cycles. Sectors looked up at 10 % of one per slice and cycle; reads returned in
    # 20 % of the cycles. The driver says 48 slices, as it does of an RTX 2080 Ti.
    slice_cycles = 44 * 120_000
    row = measure(
        [
            raw_report(
                {
                    "device__attribute_compute_capability_major": 7.0,
                    "device__attribute_compute_capability_minor": 5.0,
                    "device__attribute_l2s_count": 48.0,
                    "gpu__time_duration.sum": 1e5,
                    "lts__t_sectors.sum": 0.1 * slice_cycles,
                    f"lts__t_sectors{PCT}": 10.0,
                    f"lts__lts2xbar_cycles_active{PCT}": 20.0,
                }
            )
        ]
    ).bandwidth.row(0, named=True)
    # 32 byte per slice and cycle
    assert row["peak_bytes_per_s"] == pytest.approx(44 * 1.2e9 * 32)
    assert row["bytes_per_s"] == pytest.approx(0.2 * 44 * 1.2e9 * 32)


@pytest.mark.parametrize("kind", ["mem_lg", "mem_lgds"])
def test_l1_roof_is_told_by_what_returns_to_registers_where_there_is_no_chart(kind: str) -> None:
    counters = {
        "gpu__time_duration.sum": 1e5,
        "launch__sm_count": 80.0,
        f"l1tex__lsu_writeback_active_{kind}.sum": 1.2e6,
    }
    row = measure([raw_report({**CLOCKS, **counters})]).bandwidth.row(0, named=True)
    # 150 000 cycles at 1.5 GHz on 80 SMs: 12 million; a tenth of them return 128 byte
    assert (row["level"], row["frac"]) == ("l1", pytest.approx(0.1))
    assert row["peak_bytes_per_s"] == pytest.approx(80 * 1.5e9 * 128)


def test_dram_roof_of_a_speed_of_light_report_is_that_of_the_chart() -> None:
    # 40 % of 2 · 256 bit / 8 · 5 GHz = 320 GB/s, for 100 µs
    counters = {
        "device__attribute_compute_capability_major": 7.0,
        "device__attribute_compute_capability_minor": 5.0,
        "device__attribute_global_memory_bus_width": 256.0,
        "gpu__time_duration.sum": 1e5,
        "dram__cycles_elapsed.avg.per_second": 5e9,
        f"dram__cycles_active{PCT}": 40.0,
    }
    measured = measure([raw_report(counters)])
    row = measured.bandwidth.row(0, named=True)
    assert (row["bytes_per_s"], row["peak_bytes_per_s"]) == (pytest.approx(1.28e11), pytest.approx(3.2e11))
    assert measured.kernels["traffic_bytes.dram"][0] == pytest.approx(1.28e7)


ASYNC_BYPASS = "sm__sass_l1tex_m_xbar2l1tex_read_bytes_mem_global_op_ldgsts_cache_bypass.sum"
ASYNC_ACCESS = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum"
ASYNC_WRITTEN = "sm__sass_l1tex_data_bytes_write_pipe_lsu_mem_shared_op_ldgsts_cache_access.sum"


@pytest.mark.parametrize(
    ("copies", "sectors", "share"),
    [
        ({}, 1000.0, None),
        ({ASYNC_BYPASS: 0.0, ASYNC_ACCESS: 0.0, ASYNC_WRITTEN: 0.0}, 1000.0, 0.0),
        ({ASYNC_BYPASS: 32e3, ASYNC_ACCESS: 0.0}, 0.0, 1.0),  # all loads are copies
        ({ASYNC_BYPASS: 16e3, ASYNC_ACCESS: 250.0, ASYNC_WRITTEN: 8e3}, 250.0, 0.75),  # 24 of 32 kB
        ({ASYNC_BYPASS: 64e3, ASYNC_ACCESS: 0.0}, 0.0, 1.0),  # the way from L2 can carry more than was asked for
    ],
)
def test_asynchronous_copies_are_no_loads(copies: dict[str, float], sectors: float, share: float | None) -> None:
    kernel = kernel_of({"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 1000.0, **copies})
    assert kernel["access.load_sectors"] == sectors
    assert kernel["access.async_copy_frac"] == share


@pytest.mark.parametrize(
    ("n_bytes", "looked_up", "ratio"),
    [
        (64e3, 1250.0, 1.6),  # unaligned: 2000 sectors sent, 1000 wanted
        (32e3, 1000.0, 1.0),
        (0.0, 1000.0, 0.0),
        (0.0, 0.0, None),
    ],
)
def test_sectors_of_copies_are_those_that_l2_sent(n_bytes: float, looked_up: float, ratio: float | None) -> None:
    kernel = kernel_of({ASYNC_BYPASS: n_bytes, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": looked_up})
    assert kernel["access.async_sectors_per_lookup"] == ratio
