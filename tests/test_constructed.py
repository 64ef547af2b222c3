"""Constructed kernels close: every number of them is recomputed from counters that `ncu_report` reads back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import demo
from tests.support.constructed import Accesses, Described, Physics
from tests.support.constructed_counters import GROUPS, NOT_IN_ROOFLINE_SET, counters, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.constructed_tensor import PIPE_TENSOR
from tests.support.every_unit import every_unit
from tests.support.read_back import Counters, actions
from tests.support.report_writer import write_report

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_TENSOR_BY_GPU = {
    "v100-sxm2": PIPE_TENSOR,
    "t4": "src_fp16_bf16_tf32_dst_fp32",
    "a100-sxm-80gb": "src_bf16_dst_fp32_sparsity_off",
    "rtx-3090": "src_fp16_dst_fp32_sparsity_off",
    "jetson-agx-orin": "src_int8_sparsity_on",
    "rtx-4090": "src_fp8_sparsity_on",
    "h200-sxm": "op_hmma_src_tf32_dst_fp32_sparsity_off",
    "b200": "op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off",
    "b300": "op_utcomma_src_fp4_dst_fp32_sparsity_off",
    "jetson-agx-thor": "op_hmma_src_bf16_dst_fp32_sparsity_on",
    "rtx-5090": "op_hmma_src_bf16_dst_fp32_sparsity_off",
    "gb10": "src_fp8_dst_fp32_sparsity_off",
}
_DRAM = ("dram__", "fbpa__", "gpu__dram_throughput")


def everything(gpu: str) -> Described:
    """Return a kernel that uses every kind of unit a little."""
    return every_unit(gpu, _TENSOR_BY_GPU[gpu])


@pytest.fixture(scope="module", params=[*GPUS, "the simulated report"])
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Counters]:
    """The kernels whose numbers have to close: one on each GPU, and those of the simulated report."""
    if request.param in GPUS:
        path = tmp_path_factory.mktemp("constructed") / "one.ncu-rep"
        path.write_bytes(write_report([kernel(everything(request.param))]))
    else:
        path = demo.REPORT
    found = [Counters(action) for action in actions(path)]
    return [c for c in found if not c.is_failed()]


def _has_dram_counters(c: Counters) -> bool:
    return not c["device__attribute_integrated"]


def test_dram_bytes_are_rate_times_duration_and_utilisation_is_rate_over_peak(
    kernels: list[Counters],
) -> None:
    for c in filter(_has_dram_counters, kernels):
        op = "_op" if "dram__bytes_op_read.sum" in c else ""
        moved = c[f"dram__bytes{op}_read.sum"] + c[f"dram__bytes{op}_write.sum"]
        rate = c["dram__bytes.sum.per_second"]
        peak = c["dram__bytes.sum.peak_sustained"] * c["dram__cycles_elapsed.avg.per_second"]
        assert rate * c.duration_s() == pytest.approx(moved)
        assert c["gpu__dram_throughput" + ELAPSED] == pytest.approx(100 * rate / peak)
        bus_bytes = c["device__attribute_global_memory_bus_width"] / 8
        assert peak == pytest.approx(2e3 * c["device__attribute_memory_clock_rate"] * bus_bytes, rel=1e-6)


def test_integrated_parts_have_no_dram_counters_and_count_system_memory(kernels: list[Counters]) -> None:
    for c in kernels:
        listed = "".join(c[name] for name in c.names() if name.startswith("breakdown:"))
        has = any(name.startswith(_DRAM) for name in c.names()) or any(name in listed for name in _DRAM)
        assert has == _has_dram_counters(c)
        if not has:
            # The 2^24 byte read and 2^20 byte written of `everything`.
            assert 32 * c["lts__d_sectors_fill_sysmem.sum"] == 2**24
            assert 32 * c["lts__t_sectors_aperture_sysmem_lookup_miss.sum"] == 2**24 + 2**20


def test_speed_of_light_is_the_maximum_of_its_members(kernels: list[Counters]) -> None:
    for c in kernels:
        for total in ("gpu__compute_memory_throughput", "sm__throughput"):
            members = c[f"breakdown:{total}{ELAPSED}"].split(",")
            assert c[total + ELAPSED] == max(c[member] for member in members) <= 100


def test_cycles_are_clock_times_duration(kernels: list[Counters]) -> None:
    for c in kernels:
        dram = [("dram", "avg")] if _has_dram_counters(c) else []
        for unit, kind in (("sm", "avg"), ("lts", "avg"), *dram, ("gpc", "max")):
            clock_hz = c[f"{unit}__cycles_elapsed.avg.per_second"]
            assert c[f"{unit}__cycles_elapsed.{kind}"] == pytest.approx(clock_hz * c.duration_s())
        assert c["sm__cycles_active.avg"] <= c["sm__cycles_active.max"] <= c["sm__cycles_elapsed.max"]


@pytest.mark.parametrize("gpu", GPUS)
def test_every_precision_counts_what_was_described(gpu: str, tmp_path: Path) -> None:
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(write_report([kernel(everything(gpu))]))
    c = Counters(actions(path)[0])
    # 1e6 + 2e6 + 2 * 3e6, 4e8 + 5e8 + 2 * 6e8, and 7e6 + 8e6 + 2 * 9e6 packed pairs.
    assert [c.flop(kind) for kind in "dfh"] == pytest.approx([9e6, 2.1e9, 33e6])
    assert ("sm__ops_path_tensor_src_fp64.sum" in c) == (gpu not in {"v100-sxm2", "t4"})


def test_tensor_rates_close_and_sums_are_sums(kernels: list[Counters]) -> None:
    prefix = "sm__ops_path_tensor_"
    for c in kernels:
        names = [n.removesuffix(".sum") for n in c.names() if n.startswith(prefix) and n.endswith(".sum")]
        for name in names:
            total, rate = c[f"{name}.sum"], c[f"{name}.sum.per_second"]
            peak = c[f"{name}.sum.peak_sustained_elapsed.per_second"]
            assert rate * c.duration_s() == pytest.approx(total)
            assert c[f"{name}.sum.per_cycle_elapsed"] * c["sm__cycles_elapsed.avg.per_second"] == pytest.approx(rate)
            assert c[f"{name}.sum.pct_of_peak_sustained_elapsed"] == pytest.approx(100 * rate / peak)
        if prefix + "src_bf16_dst_fp32" in names:
            splits = [n for n in names if f"{prefix}op_" in n and "src_bf16_dst_fp32" in n]
            assert len(splits) in {2, 4}  # with mma.sync alone, and with a second path beside it
            total = sum(c[f"{n}.sum"] for n in splits)
            assert c[f"{prefix}src_bf16_dst_fp32.sum"] == pytest.approx(total)


def test_l2_traffic_agrees_on_both_sides(kernels: list[Counters]) -> None:
    for c in kernels:
        read = c["derived__lts__lts2xbar_bytes.sum.per_second"] * c.duration_s()
        assert c["l1tex__m_xbar2l1tex_read_bytes.sum"] == pytest.approx(read)
        both = c["l1tex__m_xbar2l1tex_read_bytes.sum"] + c["l1tex__m_l1tex2xbar_write_bytes.sum"]
        assert 32 * c["lts__t_sectors_srcunit_tex.sum"] == pytest.approx(both)


def test_hit_rates_are_what_the_next_level_did_not_see(kernels: list[Counters]) -> None:
    for c in kernels:
        kinds = ("global_op_ld", "global_op_st", "local_op_ld", "local_op_st")
        sectors = [c[f"l1tex__t_sectors_pipe_lsu_mem_{kind}.sum"] for kind in kinds]
        rates = [c[f"l1tex__t_sector_pipe_lsu_mem_{kind}_hit_rate.pct"] for kind in kinds]
        hits = sum(n * rate / 100 for n, rate in zip(sectors, rates, strict=True))
        if sum(sectors):
            assert c["l1tex__t_sector_hit_rate.pct"] == pytest.approx(100 * hits / sum(sectors), abs=1e-2)
        if _has_dram_counters(c):
            read = c[f"dram__bytes{'_op' if 'dram__bytes_op_read.sum' in c else ''}_read.sum"]
        else:
            read = 32 * c["lts__d_sectors_fill_sysmem.sum"]
        missed = read / (32 * c["lts__t_sectors_srcunit_tex.sum"])
        assert c["lts__t_sector_hit_rate.pct"] == pytest.approx(100 * (1 - missed))


def test_conflicts_are_wavefronts_beyond_the_ideal(kernels: list[Counters]) -> None:
    for c in kernels:
        every = c["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
        wavefronts = every - 2 * c["launch__grid_size"] * -(-c["launch__block_size"] // 32)
        conflicts = c["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"]
        assert c["memory_l1_wavefronts_shared"] == wavefronts
        assert c["memory_l1_wavefronts_shared_ideal"] == wavefronts - conflicts
        share = c["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"]
        assert share == pytest.approx(100 * every / c["sm__cycles_elapsed.sum"])


def test_stalls_add_up_to_the_latency_which_is_warps_over_issue_rate(kernels: list[Counters]) -> None:
    for c in kernels:
        stalls = [c[n] for n in c.names() if n.startswith("smsp__average_warps_issue_stalled_")]
        latency = c["smsp__average_warp_latency_per_inst_issued.ratio"]
        issue = c["smsp__issue_active.avg.per_cycle_active"]
        assert sum(stalls) == pytest.approx(latency)
        assert c["smsp__warps_active.avg.per_cycle_active"] / issue == pytest.approx(latency)
        selected = c["smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"]
        assert selected == pytest.approx(1)


def test_occupancy_and_waves_follow_from_the_limits(kernels: list[Counters]) -> None:
    for c in kernels:
        blocks = min(c[n] for n in c.names() if n.startswith("launch__occupancy_limit_"))
        warps = blocks * -(-c["launch__block_size"] // 32)
        theoretical = 100 * warps / c["device__attribute_max_warps_per_multiprocessor"]
        assert c["sm__maximum_warps_per_active_cycle_pct"] == pytest.approx(theoretical)
        assert c["sm__warps_active.avg.pct_of_peak_sustained_active"] <= theoretical
        waves = c["launch__grid_size"] / (c["device__attribute_multiprocessor_count"] * blocks)
        assert c["launch__waves_per_multiprocessor"] == pytest.approx(waves)


def test_a_group_that_is_left_out_takes_only_its_own_counters_along() -> None:
    full = counters(everything("h200-sxm"))
    without = counters(everything("h200-sxm"), without=("stalls", "memory_workload"))
    gone = set(full) - set(without)
    assert {"smsp__average_warp_latency_per_inst_issued.ratio", "lts__t_sector_hit_rate.pct"} <= gone
    # The rate of DRAM is a roofline's as well.
    assert "dram__bytes.sum.per_second" in without
    with pytest.raises(ValueError, match="no such groups"):
        counters(everything("h200-sxm"), without=("nothing",))


def test_a_roofline_set_has_charts_and_no_hit_rates() -> None:
    written = kernel(everything("a100-sxm-80gb"), without=NOT_IN_ROOFLINE_SET)
    assert set(GROUPS) - set(NOT_IN_ROOFLINE_SET) == {
        *("device", "launch", "time", "speed_of_light", "workload_distribution", "roofline")
    }
    assert "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second" in written.metrics
    assert "l1tex__t_sector_hit_rate.pct" not in written.metrics


@pytest.mark.parametrize(
    ("impossible", "reason"),
    [
        ({"dram_read_bytes": 2**40}, "DRAM reads more"),
        ({"fp32": (0, 0, 1e13)}, "more than one instruction"),
        ({"stalls": {"wait": 1.5}}, "stalls add up"),
        ({"stalls": {"gmma": 0.1}, "gpu": "t4"}, "not stall reasons"),
        ({"achieved_occupancy_frac": 1.1}, "above the theoretical"),
        ({"dynamic_shared_bytes": 2**20}, "does not fit"),
        ({"tma_load_bytes": 2**36, "dram_write_bytes": 2**36}, "busier than they can be"),
        ({"tensor": {"src_fp3": 1}}, "no tensor counters"),
        ({"fp32_packed": (0, 0, 1)}, "no packed FP32"),
        ({"gpu": "gb10", "dram_write_bytes": 2**30}, "busier than they can be"),
    ],
)
def test_the_impossible_is_refused(impossible: dict[str, Any], reason: str) -> None:
    described = Described("impossible", 1_000_000, **({"loads": Accesses(100_000)} | impossible))
    with pytest.raises(ValueError, match=reason):
        counters(described)


def test_volta_counts_tensor_operations_where_they_are_described_as_such() -> None:
    # 512 operations of an instruction with FP32 accumulation, 1024 with FP16: 2^30 / 512 + 2^30 / 1024 instructions.
    both = {"src_fp16_dst_fp32": 2**30, "src_fp16_dst_fp16": 2**30}
    c = counters(Described("volta", 1e6, gpu="v100-sxm2", loads=Accesses(1000), tensor=both))
    per_cycle = c["smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed"]
    assert per_cycle * c["sm__cycles_elapsed.avg"] == pytest.approx(2**21 + 2**20)
    assert c["sm__ops_path_tensor_src_fp16_dst_fp16.sum"] == 2**30
    alone = counters(Described("volta", 1e6, gpu="v100-sxm2", loads=Accesses(1000), tensor={PIPE_TENSOR: 2**30}))
    assert not [name for name in alone if name.startswith("sm__ops_path_tensor_")]


def test_tcgen05_keeps_a_pipe_of_its_own_busy() -> None:
    utc = {"op_utchmma_src_bf16_dst_fp32_sparsity_off": 1e12}
    c = counters(Described("utc", 1e6, gpu="b200", loads=Accesses(1000), tensor=utc))
    # 8192 operations per SM and clock: 1e12 / (8192 * 148 * 1.965e6) = 0.4197
    assert c["sm__pipe_tc_cycles_active" + ELAPSED] == pytest.approx(41.97, abs=0.01)
    assert c["sm__pipe_tensor_cycles_active" + ELAPSED] == 0
    assert c["sm__pipe_tensor_subpipe_hmma_cycles_active" + ELAPSED] == 0


def test_a_packed_instruction_takes_the_lanes_of_two() -> None:
    plain, packed = (
        counters(Described("fma", 1e6, gpu="b200", loads=Accesses(1000), **{kind: (1e8, 1e8, n)}))
        for kind, n in (("fp32", 5e8), ("fp32_packed", 1.5e8))
    )
    # 1e8 + 1e8 + 5e8 against 2 * (1e8 + 1e8 + 1.5e8)
    pipe = "sm__pipe_fma_cycles_active" + ELAPSED
    assert plain[pipe] == pytest.approx(packed[pipe])
    cycles = packed["sm__cycles_elapsed.avg"]
    assert packed["derived__smsp__sass_thread_inst_executed_op_ffma2_pred_on_x4"] * cycles == pytest.approx(6e8)


def test_blocks_per_sm_follow_nvidias_granularities() -> None:
    # 168 registers: 5376 per warp, 3 warps in 16384 per scheduler, 12 per SM; 13 + 1 of 228 KiB: 16.
    limits = Physics(
        Described("x", 1e6, loads=Accesses(1000), block=(96, 1, 1), registers=168, static_shared_bytes=13 << 10)
    ).limits
    assert limits == {"registers": 4, "shared_mem": 16, "warps": 21, "blocks": 32}
