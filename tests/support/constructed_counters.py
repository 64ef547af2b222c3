"""The counters that Nsight Compute 2025.3 would store for a constructed kernel, by group of sections.

Packed FP32 is counted as from 2025.4 on. Integrated GPUs have no DRAM counters; the traffic between L2 and system memory takes
their place.

Sources: NVIDIA Nsight Compute, Kernel Profiling Guide, "Metrics Reference"; the names in reports of each compute
capability; CUPTI's metric tables of each chip.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

from tests.support.constructed import Described, Physics
from tests.support.constructed_breakdowns import compute_members, memory_members
from tests.support.constructed_gpus import attributes
from tests.support.constructed_roofline import Counters, dram_rate, roofline
from tests.support.constructed_units import busy_fracs, dram_frac, tensor_subpipe_fracs
from tests.support.report_parts import Kernel, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
ACTIVE = ".avg.pct_of_peak_sustained_active"
_ALWAYS_KNOWN = ("device__", "launch__", "profiler__", "breakdown:", "sm__maximum_", "smsp__maximum_")
"""Prefixes of counters that are known even if collection failed."""


def counters(described: Described, without: Collection[str] = ()) -> Counters:
    """Return the counters of a kernel, except those that only groups in `without` (see GROUPS) collect.

    Raises:
        ValueError: the description contradicts itself, or a group does not exist.
    """
    if unknown := set(without) - set(GROUPS):
        raise ValueError(f"no such groups of counters: {sorted(unknown)}")
    physics = Physics(described)
    stored: Counters = {}
    for group, (_, values) in GROUPS.items():
        if group not in without:
            stored |= values(physics)
    if described.failed:
        return {name: value if name.startswith(_ALWAYS_KNOWN) else math.nan for name, value in stored.items()}
    return stored


def kernel(described: Described, without: Collection[str] = ()) -> Kernel:
    """Return the workload for `report_writer`; its sections are those of the groups."""
    sections = [Section(name) for group, (names, _) in GROUPS.items() if group not in without for name in names.split()]
    return Kernel(
        described.name,
        counters(described, without),
        mangled=described.mangled,
        demangled=described.demangled,
        grid=Physics(described).grid,
        block=described.block,
        stream=described.stream,
        nvtx=described.nvtx,
        sections=tuple(sections),
        rules=described.rules,
    )


def _device(p: Physics) -> Counters:
    return {**attributes(p.gpu), "profiler__replayer_passes": float(p.described.n_passes)}


def _launch(p: Physics) -> Counters:
    d = p.described
    axes = {
        f"launch__{what}_dim_{axis}": extent
        for what, extents in (("block", d.block), ("grid", p.grid))
        for axis, extent in zip("xyz", extents, strict=True)
    }
    limits: dict[str, float] = {f"launch__occupancy_limit_{what}": float(n) for what, n in p.limits.items()}
    if p.gpu.capability >= (9, 0):
        limits["launch__occupancy_limit_barriers"] = float(p.gpu.max_blocks)
    reserved = p.shared_allocated_bytes and 1024 * (p.gpu.capability >= (8, 0))
    return {
        **axes,
        "launch__block_size": p.n_threads,
        "launch__context_id": 1,
        "launch__device_id": 0,
        "launch__grid_size": p.n_blocks,
        **limits,
        "launch__registers_per_thread": d.registers,
        "launch__registers_per_thread_allocated": float(p.registers_allocated),
        "launch__shared_mem_per_block": p.shared_bytes + reserved,
        "launch__shared_mem_per_block_allocated": float(p.shared_allocated_bytes),
        "launch__shared_mem_per_block_driver": reserved,
        "launch__shared_mem_per_block_dynamic": d.dynamic_shared_bytes,
        "launch__shared_mem_per_block_static": d.static_shared_bytes,
        "launch__sm_count": p.gpu.n_sms,
        "launch__stream_id": d.stream,
        "launch__thread_count": p.n_blocks * p.n_threads,
        "launch__uses_green_context": 0.0,
        "launch__waves_per_multiprocessor": p.waves,
        "sm__maximum_warps_avg_per_active_cycle": p.theoretical_occupancy_frac * p.gpu.max_warps,
        "sm__maximum_warps_per_active_cycle_pct": 100 * p.theoretical_occupancy_frac,
    }


def _speed_of_light(p: Physics) -> Counters:
    busy = {name: 100 * frac for name, frac in busy_fracs(p).items()}
    memory, compute = memory_members(p.gpu), compute_members(p.gpu)
    l1 = max(busy[name] for name in memory if name.startswith("l1tex__"))
    dram = {} if p.gpu.is_integrated else {"gpu__dram_throughput" + ELAPSED: busy["dram__cycles_active"]}
    return {
        "breakdown:gpu__compute_memory_throughput" + ELAPSED: ",".join(name + ELAPSED for name in memory),
        "breakdown:sm__throughput" + ELAPSED: ",".join(name + ELAPSED for name in compute),
        "gpu__compute_memory_throughput" + ELAPSED: max(busy[name] for name in memory),
        "sm__throughput" + ELAPSED: max(busy[name] for name in compute),
        **dram,
        "lts__throughput" + ELAPSED: max(busy[name] for name in memory if name.startswith("lts__")),
        "l1tex__throughput" + ELAPSED: l1,
        "l1tex__throughput" + ACTIVE: min(100.0, l1 / p.active_frac),
        **{name + ELAPSED: busy[name] for name in (*memory, *compute)},
    }


def _time(p: Physics) -> Counters:
    return {
        "gpu__time_duration.sum": float(p.described.duration_ns),
        "gpc__cycles_elapsed.max": p.cycles,
        "gpc__cycles_elapsed.avg.per_second": p.sm_clock_hz,
    }


def _workload_distribution(p: Physics) -> Counters:
    return {
        "sm__cycles_active.avg": p.active_frac * p.cycles,
        "sm__cycles_active.max": p.busiest_sm_frac * p.cycles,
        "sm__cycles_elapsed.avg": p.cycles,
        "sm__cycles_elapsed.max": p.cycles,
        "sm__cycles_elapsed.sum": p.sm_cycles,
        "lts__cycles_elapsed.avg": p.slice_cycles / p.gpu.n_slices,
        "lts__cycles_elapsed.sum": p.slice_cycles,
        **_memory_cycles(p),
        **_active_cycles(p),
    }


def _memory_cycles(p: Physics) -> Counters:
    """Return the cycles of DRAM, or of the memory controllers, which integrated GPUs count instead (none on GB20B)."""
    cycles = p.gpu.dram_clock_hz * p.duration_s
    if not p.gpu.is_integrated:
        return {"dram__cycles_elapsed.avg": cycles}
    if not p.gpu.counts_memory_controllers:
        return {}
    active = dram_frac(p, p.described.dram_read_bytes + p.described.dram_write_bytes) * cycles
    return {"mcc__cycles_active.avg": active}


def _active_cycles(p: Physics) -> Counters:
    """Return average and maximum active cycles of the L2 slices and DRAM channels, if the description states them."""
    d = p.described
    stored: Counters = {}
    if d.l2_slices_active is not None:
        cycles = p.slice_cycles / p.gpu.n_slices
        stored |= {
            f"lts__cycles_active.{what}": frac * cycles
            for what, frac in zip(("avg", "max"), d.l2_slices_active, strict=True)
        }
    if d.dram_channel_imbalance_frac is not None:
        average = dram_frac(p, d.dram_read_bytes + d.dram_write_bytes)
        highest = average / (1 - d.dram_channel_imbalance_frac)
        if highest > 1:
            raise ValueError("a DRAM channel busier than it can be")
        cycles = p.gpu.dram_clock_hz * p.duration_s
        stored |= {"dram__cycles_active.avg": average * cycles, "dram__cycles_active.max": highest * cycles}
    return stored


def _compute_workload(p: Physics) -> Counters:
    members = [name for name in compute_members(p.gpu) if "_pipe_" in name]
    fracs = busy_fracs(p)
    subpipes = tensor_subpipe_fracs(p) if p.gpu.capability >= (10, 0) else {}
    return {
        **{name + ELAPSED: 100 * frac for name, frac in subpipes.items()},
        **{name + ACTIVE: min(100.0, 100 * fracs[name] / p.active_frac) for name in members},
        "sm__inst_issued.avg.per_cycle_active": 4 * p.issue_per_active_cycle,
        "sm__inst_issued" + ACTIVE: 100 * p.issue_per_active_cycle,
        "sm__inst_executed.avg.per_cycle_elapsed": 4 * p.issue_frac,
    }


def _memory_workload(p: Physics) -> Counters:
    return {
        **dram_rate(p),
        "l1tex__t_sector_hit_rate.pct": _percent(p.l1_sectors - p.l1_misses, p.l1_sectors),
        "lts__t_sector_hit_rate.pct": _percent(p.l2_sm_sectors - p.l2_fill_sectors, p.l2_sm_sectors),
    }


def _memory_tables(p: Physics) -> Counters:
    d = p.described
    stored = _system_memory_tables(p) if p.gpu.is_integrated else _dram_tables(p)
    for kind, access in (
        ("global_op_ld", d.loads),
        ("global_op_st", d.stores),
        ("local_op_ld", d.local_loads),
        ("local_op_st", d.local_stores),
    ):
        stored[f"l1tex__t_requests_pipe_lsu_mem_{kind}.sum"] = float(access.requests)
        stored[f"l1tex__t_sectors_pipe_lsu_mem_{kind}.sum"] = float(access.sectors)
        stored[f"l1tex__t_sector_pipe_lsu_mem_{kind}_hit_rate.pct"] = 100 * access.hit_frac
        used = access.bytes_per_sector if access.requests else 0.0
        stored[f"smsp__sass_average_data_bytes_per_sector_mem_{kind}.ratio"] = float(used)
    for kind, shared in (("ld", d.shared_loads), ("st", d.shared_stores)):
        stored[f"smsp__inst_executed_op_shared_{kind}.sum"] = float(shared.requests)
        stored[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum"] = shared.wavefronts
        stored[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{kind}.sum"] = (
            shared.wavefronts - shared.ideal_wavefronts
        )
    wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
    conflicts = p.shared_wavefronts - p.shared_ideal_wavefronts
    # Each warp reads its thread and its block index: two more wavefronts through the same pipe.
    special = 2.0 * p.n_blocks * p.warps_per_block
    if p.gpu.capability >= (9, 0):
        stored[f"{wavefronts}_op_misc.sum"] = special
    return stored | {
        f"{wavefronts}.sum": p.shared_wavefronts + special,
        f"{wavefronts}.sum.pct_of_peak_sustained_elapsed": 100 * (p.shared_wavefronts + special) / p.sm_cycles,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": conflicts,
        "l1tex__m_xbar2l1tex_read_bytes.sum": 32 * p.l2_read_sectors,
        "l1tex__m_xbar2l1tex_read_bytes.sum.per_second": 32 * p.l2_read_sectors / p.duration_s,
        "l1tex__m_l1tex2xbar_write_bytes.sum": 32 * p.l2_write_sectors,
        "lts__t_sectors.sum": p.l2_sectors,
        "lts__t_sectors_srcunit_tex.sum": p.l2_sm_sectors,
        "lts__t_sectors_srcunit_tex_op_read.sum": p.l2_read_sectors,
        "lts__t_sectors_srcunit_tex_op_write.sum": p.l2_write_sectors,
        "lts__t_sectors_srcunit_tex.sum.per_second": p.l2_sm_sectors / p.duration_s,
    }


def _dram_tables(p: Physics) -> Counters:
    d = p.described
    op = "_op" if p.gpu.capability == (12, 0) else ""
    stored: Counters = {}
    for direction, n_bytes in (("read", d.dram_read_bytes), ("write", d.dram_write_bytes)):
        stored[f"dram__bytes{op}_{direction}.sum"] = float(n_bytes)
        stored[f"dram__bytes{op}_{direction}.sum.per_second"] = n_bytes / p.duration_s
        if not op:
            stored[f"dram__sectors_{direction}.sum"] = n_bytes / 32
    return stored


def _system_memory_tables(p: Physics) -> Counters:
    """Return the system memory counters of an integrated GPU: sectors that L2 reads, sectors in both directions, controllers."""
    d = p.described
    stored: Counters = {
        "lts__d_sectors_fill_sysmem.sum": d.dram_read_bytes / 32,
        "lts__t_sectors_aperture_sysmem_lookup_miss.sum": (d.dram_read_bytes + d.dram_write_bytes) / 32,
    }
    if p.gpu.counts_memory_controllers:
        for direction, n_bytes in (("read", d.dram_read_bytes), ("write", d.dram_write_bytes)):
            stored[f"mcc__dram_throughput_srcnode_gpu_op_{direction}" + ELAPSED] = 100 * dram_frac(p, n_bytes)
    return stored


def _occupancy(p: Physics) -> Counters:
    return {
        "sm__warps_active" + ACTIVE: 100 * p.achieved_occupancy_frac,
        "sm__warps_active.avg.per_cycle_active": p.achieved_occupancy_frac * p.gpu.max_warps,
    }


def _scheduler(p: Physics) -> Counters:
    eligible = p.issue_per_active_cycle * (1 + p.stall_cycles["not_selected"])
    return {
        "smsp__issue_active.avg.per_cycle_active": p.issue_per_active_cycle,
        "smsp__issue_active" + ACTIVE: 100 * p.issue_per_active_cycle,
        "smsp__warps_active.avg.per_cycle_active": p.warps_per_scheduler,
        "smsp__warps_eligible.avg.per_cycle_active": eligible,
    }


def _stalls(p: Physics) -> Counters:
    name = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    return {
        "smsp__average_warp_latency_per_inst_issued.ratio": p.latency,
        **{name.format(reason): cycles for reason, cycles in p.stall_cycles.items()},
        "smsp__thread_inst_executed_per_inst_executed.ratio": p.described.threads_per_instruction,
        **_predicated_on(p),
    }


def _predicated_on(p: Physics) -> Counters:
    n_threads = p.described.predicated_on_threads_per_instruction
    name = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
    return {} if n_threads is None else {name: n_threads}


def _source_counters(p: Physics) -> Counters:
    d = p.described
    ideal = sum(access.sectors * access.bytes_per_sector / 32 for access in (d.loads, d.stores))
    return {
        "inst_executed": round(p.instructions),
        "memory_l1_wavefronts_shared": round(p.shared_wavefronts),
        "memory_l1_wavefronts_shared_ideal": round(p.shared_ideal_wavefronts),
        "memory_l2_theoretical_sectors_global": d.loads.sectors + d.stores.sectors,
        "memory_l2_theoretical_sectors_global_ideal": round(ideal),
    }


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


_CHARTS = "SpeedOfLight_RooflineChart " + " ".join(
    f"SpeedOfLight_Hierarchical{what}RooflineChart" for what in ("Double", "Half", "Single", "Tensor")
)
GROUPS: Mapping[str, tuple[str, Callable[[Physics], Counters]]] = MappingProxyType(
    {
        "device": ("", _device),
        "launch": ("LaunchStats", _launch),
        "time": ("", _time),
        "speed_of_light": ("SpeedOfLight", _speed_of_light),
        "workload_distribution": ("WorkloadDistribution", _workload_distribution),
        "roofline": (_CHARTS, roofline),
        "compute_workload": ("ComputeWorkloadAnalysis", _compute_workload),
        "memory_workload": ("MemoryWorkloadAnalysis", _memory_workload),
        "memory_tables": ("MemoryWorkloadAnalysis_Chart MemoryWorkloadAnalysis_Tables", _memory_tables),
        "occupancy": ("Occupancy", _occupancy),
        "scheduler": ("SchedulerStats", _scheduler),
        "stalls": ("WarpStateStats", _stalls),
        "source_counters": ("SourceCounters", _source_counters),
    }
)
"""By name of the group: the sections that collect it, separated by spaces, and a function that returns its counters."""
NOT_IN_ROOFLINE_SET = tuple(list(GROUPS)[6:])
"""Groups that `--set roofline` leaves out."""
