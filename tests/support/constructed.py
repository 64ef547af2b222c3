"""Kernels described by what they physically do, so that a test knows every number about them exactly.

A `Described` says how long a kernel took, which bytes moved where, and which instructions ran. From it,
`constructed_counters.counters` derives what Nsight Compute's `--set full` would have stored, under that
architecture's counter names, and `constructed_counters.kernel` the workload for `report_writer`.

Whatever follows from something else is derived, never stated twice, so all numbers are consistent: an amount is its
rate times the duration, a rate is the events per cycle times the clock, utilisation is rate over peak, latency is
warps over issue rate, Speed of Light is the maximum of its members. A description that exceeds what the hardware can
do raises an error.

    gelu = Described("gelu", 250_000, loads=Accesses(2**20, 16, bytes_per_thread=16), dram_read_bytes=2**29)
    write_report([kernel(gelu)])
    counters(gelu, without=("stalls", "occupancy"))
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tests.support.constructed_gpus import GPUS, reserved_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.report_parts import Rule


@dataclass(frozen=True)
class Accesses:
    """Loads or stores of global or local memory; each request is one warp-wide instruction.

    Attributes:
        requests: executed instructions.
        sectors_per_request: 32-byte sectors that a request touches: 4 for coalesced 4-byte accesses.
        bytes_per_sector: bytes of each sector that the threads use, at most 32.
        bytes_per_thread: width of the access.
        wavefronts_per_request: passes through the L1 data stage; a quarter of the sectors unless stated.
        hit_frac: fraction of the sectors that hit in L1; 0 for global stores, which write through.
    """

    requests: int = 0
    sectors_per_request: float = 4.0
    bytes_per_sector: float = 32.0
    bytes_per_thread: float = 4.0
    wavefronts_per_request: float | None = None
    hit_frac: float = 0.0

    @property
    def sectors(self) -> int:
        return round(self.requests * self.sectors_per_request)

    @property
    def missed_sectors(self) -> int:
        return round(self.sectors * (1 - self.hit_frac))

    @property
    def wavefronts(self) -> float:
        per_request = self.wavefronts_per_request
        return self.requests * (max(1.0, self.sectors_per_request / 4) if per_request is None else per_request)


@dataclass(frozen=True)
class Shared:
    """Loads or stores of shared memory: instructions, wavefronts without conflicts, and n-way conflicts."""

    requests: int = 0
    ideal_wavefronts_per_request: float = 1.0
    conflict_ways: float = 1.0

    @property
    def ideal_wavefronts(self) -> float:
        return self.requests * self.ideal_wavefronts_per_request

    @property
    def wavefronts(self) -> float:
        return self.ideal_wavefronts * self.conflict_ways


Instructions = tuple[float, float, float]
"""Additions, multiplications and fused multiply-adds, as thread-level counts."""
_NONE: Instructions = (0, 0, 0)


@dataclass(frozen=True)
class Described:
    """The physical description of a launch, from which all else is derived. Unless stated, its grid is ten full waves of blocks.

    Attributes:
        sm_clock_hz: measured SM clock; the GPU's highest unless stated.
        dram_read_bytes: bytes read from DRAM, at most what the SMs read from L2.
        tma_load_bytes: bytes that TMA copies from L2 to shared memory, bypassing L1; likewise for stores.
        fp32: thread-level counts; in `fp16`, each counts a packed pair.
        fp32_packed: thread-level counts of FADD2, FMUL2 and FFMA2, two lanes each; from compute capability 10.0 on.
        tensor: operations by counter name (after `sm__ops_path_tensor_`); on Volta by `PIPE_TENSOR`, which stands in for these
            counters, since Volta's charts do not use them.
        warp_instructions: all executed warp instructions; unless stated, 1.5 times those that the description implies.
        predicated_on_threads_per_instruction: not collected unless stated.
        l2_slices_active: fractions of the elapsed cycles in which the average and the most active L2 slice were active; not
            collected unless stated.
        dram_channel_imbalance_frac: one minus the ratio of average to maximum active cycles of the DRAM channels; not collected
            unless stated.
        busy: utilisation (0..1) of units of the Speed of Light breakdowns, where it exceeds what the description implies.
        achieved_occupancy_frac: 0.95 of the theoretical occupancy unless stated.
        active_frac: fraction of the elapsed cycles in which the average SM had work.
        sm_imbalance_frac: one minus the ratio of average to maximum active cycles of the SMs.
        stalls: fractions of the warp latency by stall reason; what they and `selected` leave is `wait`.
        failed: the collection failed: every number except those of launch and device is NaN.
    """

    name: str
    duration_ns: float
    gpu: str = "h200-sxm"
    mangled: str | None = None
    demangled: str | None = None
    nvtx: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    stream: int = 7
    n_passes: int = 40
    sm_clock_hz: float | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 32
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    loads: Accesses = Accesses()
    stores: Accesses = Accesses()
    local_loads: Accesses = Accesses()
    local_stores: Accesses = Accesses()
    shared_loads: Shared = Shared()
    shared_stores: Shared = Shared()
    tma_load_bytes: int = 0
    tma_store_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0
    fp64: Instructions = _NONE
    fp32: Instructions = _NONE
    fp32_packed: Instructions = _NONE
    fp16: Instructions = _NONE
    tensor: Mapping[str, float] = field(default_factory=dict)
    warp_instructions: float | None = None
    threads_per_instruction: float = 32.0
    predicated_on_threads_per_instruction: float | None = None
    l2_slices_active: tuple[float, float] | None = None
    dram_channel_imbalance_frac: float | None = None
    busy: Mapping[str, float] = field(default_factory=dict)
    achieved_occupancy_frac: float | None = None
    active_frac: float | None = None
    sm_imbalance_frac: float | None = None
    stalls: Mapping[str, float] = field(default_factory=lambda: {"long_scoreboard": 0.5, "not_selected": 0.1})
    failed: bool = False


class Physics:
    """What is derived from a description: cycles, traffic, instructions, occupancy and warp states.

    Sectors, wavefronts and instructions are totals over the whole GPU and the whole launch.

    Raises:
        ValueError: the description contradicts itself or the hardware.
    """

    def __init__(self, described: Described) -> None:
        d = self.described = described
        gpu = self.gpu = GPUS[d.gpu]
        self.duration_s = d.duration_ns / 1e9
        self.sm_clock_hz = d.sm_clock_hz or gpu.sm_clock_hz
        self.cycles = self.sm_clock_hz * self.duration_s
        self.sm_cycles = gpu.n_sms * self.cycles
        self.slice_cycles = gpu.n_slices * gpu.l2_clock_hz * self.duration_s
        self._count_traffic()
        self._count_instructions()
        self._count_blocks()
        self._count_warps()
        self._check()

    def _count_traffic(self) -> None:
        d = self.described
        self.load_sectors = d.loads.sectors + d.local_loads.sectors
        self.store_sectors = d.stores.sectors + d.local_stores.sectors
        self.l1_sectors = self.load_sectors + self.store_sectors
        self.l1_misses = sum(access.missed_sectors for access in (d.loads, d.stores, d.local_loads, d.local_stores))
        self.l1_read_sectors = d.loads.missed_sectors + d.local_loads.missed_sectors
        self.l2_read_sectors = self.l1_read_sectors + d.tma_load_bytes / 32
        self.l2_write_sectors = d.stores.missed_sectors + d.local_stores.missed_sectors + d.tma_store_bytes / 32
        self.l2_sm_sectors = self.l2_read_sectors + self.l2_write_sectors
        self.l2_fill_sectors = d.dram_read_bytes / 32
        self.l2_sectors = self.l2_sm_sectors + self.l2_fill_sectors
        self.shared_wavefronts = d.shared_loads.wavefronts + d.shared_stores.wavefronts
        self.shared_ideal_wavefronts = d.shared_loads.ideal_wavefronts + d.shared_stores.ideal_wavefronts
        self.lsu_wavefronts = self.shared_wavefronts + sum(
            access.wavefronts for access in (d.loads, d.stores, d.local_loads, d.local_stores)
        )
        # 128 bytes return to registers per cycle.
        self.writeback_cycles_lg = sum(
            access.requests * access.bytes_per_thread * 32 / 128 for access in (d.loads, d.local_loads)
        )
        self.writeback_cycles = self.writeback_cycles_lg + d.shared_loads.ideal_wavefronts

    def _count_instructions(self) -> None:
        d = self.described
        self.lsu_requests = sum(
            access.requests
            for access in (d.loads, d.stores, d.local_loads, d.local_stores, d.shared_loads, d.shared_stores)
        )
        self.arithmetic = sum((*d.fp64, *d.fp32, *d.fp32_packed, *d.fp16)) / d.threads_per_instruction
        no_packed = not self.gpu.counts_packed_fp32
        _refuse(no_packed and any(d.fp32_packed), f"the {self.gpu.chip} has no packed FP32 instructions")
        implied = self.lsu_requests + self.arithmetic
        self.instructions = 1.5 * implied if d.warp_instructions is None else d.warp_instructions
        _refuse(self.instructions < implied, "fewer warp instructions than the description implies")
        _refuse(not self.instructions, "no instructions: state warp_instructions")
        self.issue_frac = self.instructions / (4 * self.sm_cycles)

    def _count_blocks(self) -> None:
        d, gpu = self.described, self.gpu
        self.n_threads = math.prod(d.block)
        self.warps_per_block = -(-self.n_threads // 32)
        registers_per_warp = _up(d.registers * 32, 256)
        self.registers_allocated = registers_per_warp // 32
        self.shared_bytes = d.static_shared_bytes + d.dynamic_shared_bytes
        self.shared_allocated_bytes = _up(self.shared_bytes + reserved_shared_bytes(gpu), 128)
        # Registers are per scheduler: a quarter of 65536 each, in whole warps.
        warps_by_registers = 4 * (16384 // registers_per_warp)
        self.limits = {
            "registers": warps_by_registers // self.warps_per_block,
            "shared_mem": (
                gpu.shared_bytes // self.shared_allocated_bytes if self.shared_allocated_bytes else gpu.max_blocks
            ),
            "warps": gpu.max_warps // self.warps_per_block,
            "blocks": gpu.max_blocks,
        }
        self.blocks_per_sm = min(self.limits.values())
        _refuse(self.blocks_per_sm == 0, "a block does not fit on an SM")
        self.grid = d.grid or (10 * gpu.n_sms * self.blocks_per_sm, 1, 1)
        self.n_blocks = math.prod(self.grid)
        self.waves = self.n_blocks / (gpu.n_sms * self.blocks_per_sm)
        self.theoretical_occupancy_frac = self.blocks_per_sm * self.warps_per_block / gpu.max_warps

    def _count_warps(self) -> None:
        d, gpu = self.described, self.gpu
        used_sms_frac = min(1.0, self.n_blocks / gpu.n_sms)
        self.active_frac = 0.98 * used_sms_frac if d.active_frac is None else d.active_frac
        imbalance = d.sm_imbalance_frac
        if imbalance is None:
            imbalance = 0.01 if used_sms_frac == 1 else 1 - used_sms_frac
        self.busiest_sm_frac = self.active_frac / (1 - imbalance)
        achieved = d.achieved_occupancy_frac
        self.achieved_occupancy_frac = 0.95 * self.theoretical_occupancy_frac if achieved is None else achieved
        self.warps_per_scheduler = self.achieved_occupancy_frac * gpu.max_warps / 4
        self.issue_per_active_cycle = self.issue_frac / self.active_frac

    @cached_property
    def latency(self) -> float:
        """Cycles from one issued instruction of a warp to its next."""
        return self.warps_per_scheduler / self.issue_per_active_cycle

    @cached_property
    def stall_cycles(self) -> dict[str, float]:
        """Cycles per issued instruction by reason; they add up to the latency."""
        capability = self.gpu.capability
        absent = ({"gmma"} if capability != (9, 0) else set()) | ({"imc_miss"} if capability > (9, 0) else set())
        shares = {reason: 0.0 for reason in STALL_REASONS if reason not in absent}
        unknown = set(self.described.stalls) - set(shares) | {"selected"} & set(self.described.stalls)
        _refuse(bool(unknown), f"not stall reasons that can be chosen: {sorted(unknown)}")
        shares |= self.described.stalls
        shares["selected"] = 1 / self.latency
        rest = 1 - sum(shares.values())
        _refuse(rest < -1e-9, f"stalls add up to {1 - rest:.3f} of the latency")
        shares["wait"] += max(0.0, rest)
        return {reason: share * self.latency for reason, share in shares.items()}

    def _check(self) -> None:
        _refuse(self.l2_fill_sectors > self.l2_read_sectors, "DRAM reads more than the SMs read from L2")
        _refuse(self.issue_per_active_cycle > 1, "more than one instruction per scheduler and active cycle")
        _refuse(self.busiest_sm_frac > 1, "an SM is active for longer than the kernel takes")
        _refuse(
            self.achieved_occupancy_frac > self.theoretical_occupancy_frac,
            "achieved occupancy above the theoretical",
        )
        _refuse(self.latency < 1, "fewer warps than instructions in flight")
        predicated_on = self.described.predicated_on_threads_per_instruction or 0.0
        _refuse(predicated_on > self.described.threads_per_instruction, "more threads predicated on than active")


STALL_REASONS = [
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
]


def _up(value: int, granularity: int) -> int:
    return -(-value // granularity) * granularity


def _refuse(contradiction: bool, reason: str) -> None:
    if contradiction:
        raise ValueError(reason)
