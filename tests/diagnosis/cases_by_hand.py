"""Kernels of which a finding is reported, in numbers that are written here and not taken from the rules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A kernel of which a finding is reported.

    Attributes:
        finding: which.
        verdict, limiter: of the kernel.
        quantities: its quantities, somewhat beyond each threshold; what is not given is not known.
        silent: changes of single quantities, to somewhat short of a threshold, with each of which it is not reported.
        also: changes of single quantities with each of which it is reported as well.
        has_gain: it says what fixing it saves.
        without_gain: changes of single quantities with each of which it is reported, and does not say that.
        name: of the kernel.
        other_names: of kernels of which it is not reported.
        other_limiters: limiters with which it is not reported.
    """

    finding: str
    verdict: str
    limiter: str | None
    quantities: dict[str, float | None]
    silent: dict[str, tuple[float, ...]] = field(default_factory=dict)
    also: tuple[tuple[str, float | None], ...] = ()
    has_gain: bool = True
    without_gain: tuple[tuple[str, float | None], ...] = ()
    name: str = "kernel(float *)"
    other_names: tuple[str, ...] = ()
    other_limiters: tuple[str, ...] = ()


def waiting(finding: str, quantity: str, **silent: tuple[float, ...]) -> Case:
    """Return a kernel whose warps wait for a reason 35 % of the time that SMs have work."""
    reason = f"stalls.{quantity}"
    others = {name.replace("__", "."): values for name, values in silent.items()}
    known = tuple((name, 1e6) for name, values in others.items() if values == (0,))
    return Case(finding, "latency", quantity, {reason: 0.35}, {reason: (0.28,)} | others, also=known)


CASES = [
    Case(
        "fetch_granularity", "memory", "dram",
        {"access.l2_read_over_dram_read": 0.5, "access.load_bytes_per_sector": 24, "access.load_sectors_per_request": 9,
         "access.load_share": 0.6, "utilisation.dram": 0.5, "traffic_bytes.dram_read": 8e6, "traffic_bytes.dram": 1e7,
         "utilisation.l2_tags": 0.3, "utilisation.l2": 0.95},
        {"access.l2_read_over_dram_read": (0.66,), "access.load_bytes_per_sector": (31,),
         "access.load_sectors_per_request": (7,), "access.load_share": (0.45,), "utilisation.dram": (0.35,)},
    ),
    Case(
        "uncoalesced_global_store", "memory", "l2",
        {"access.store_bytes_per_sector": 24, "access.store_sectors": 1e6, "access.store_waste_frac": 0.06,
         "access.l2_store_waste_frac": 0.06, "access.l2_input_share": 0.8},
        {"access.store_bytes_per_sector": (31,), "access.store_sectors": (0,), "access.store_waste_frac": (0.045,),
         "access.l2_store_waste_frac": (0.045,)},
    ),
    Case(
        "uncoalesced_global_access", "memory", "l1",
        {"access.excess_sectors_frac": 0.15, "access.waste_frac": 0.15, "utilisation.memory_side": 0.9,
         "access.wavefronts_per_instruction": 5, "launch.own_shared_bytes_per_block": 0},
        {"access.excess_sectors_frac": (0.11,), "access.async_sectors_per_lookup": (1.2,),
         "access.load_bytes_per_sector": (16,), "access.store_bytes_per_sector": (16,)},
    ),
    Case(
        "remote_memory", "memory", "dram",
        {"access.remote_traffic_frac": 0.45, "access.remote_as_dram_frac": 0.3, "utilisation.busiest": 0.2},
        {"access.remote_traffic_frac": (0.35,)},
    ),
    Case(
        "cold_l2", "memory", "dram", {"access.l2_hit_frac": 0.5, "access.dram_read_over_l2_size": 0.7},
        {"access.l2_hit_frac": (0.7,), "access.dram_read_over_l2_size": (0.9, 0.017)},
        has_gain=False,
    ),
    Case(
        "incompressible_data", "memory", "dram",
        {"access.compression_success_frac": 0.18, "access.compression_input_frac": 0.06},
        {"access.compression_success_frac": (0.24,), "access.compression_input_frac": (0.04,)},
        has_gain=False,
    ),
    Case(
        "bank_conflicts", "memory", "shared",
        {"access.bank_conflict_frac": 0.12, "access.shared_wavefronts": 1e6, "access.shared_wavefront_share": 0.12},
        {"access.bank_conflict_frac": (0.09,), "access.shared_wavefronts": (0,), "access.shared_wavefront_share": (0.09,)},
    ),
    Case(
        "small_grid", "latency", "grid",
        {"occupancy.waves": 0.4, "utilisation.busiest": 0.3, "utilisation.dram": 0.2, "occupancy.empty_frac": 0.5},
        {"occupancy.waves": (1.1,), "access.idle_warp_frac": (0.6,), "utilisation.busiest": (0.85,)},
        also=(("utilisation.busiest", 0.7), ("occupancy.waves", 0.95)),
    ),
    Case(
        "atomic_results", "latency", "atomics",
        {"stalls.long_scoreboard": 0.23, "access.atomic_wait_frac": 0.3, "scheduler.working_frac": 0.8,
         "utilisation.headroom": 0.9},
        {"stalls.long_scoreboard": (0.17,), "access.atomic_wait_frac": (0.2,)},
    ),
    waiting("stall_short_scoreboard", "short_scoreboard", access__shared_wavefronts=(0,)),
    waiting("stall_mio_throttle", "mio_throttle", scheduler__xu_queue_frac=(0.35,)),
    waiting("stall_no_instruction", "no_instruction"),
    waiting("stall_membar", "membar"),
    waiting("stall_sleeping", "sleeping"),
    waiting("stall_wait", "wait"),
    waiting("stall_imc_miss", "imc_miss"),
    waiting("stall_branch_resolving", "branch_resolving"),
    waiting("stall_drain", "drain", access__colliding_atomics_frac=(0.95,)),
    waiting("stall_tex_throttle", "tex_throttle"),
    waiting("stall_dispatch_stall", "dispatch_stall"),
    waiting("stall_math_pipe_throttle", "math_pipe_throttle"),
    waiting("stall_barrier", "barrier", stalls__gmma=(0.012,)),
    Case(
        "stall_full_queues", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.35, "scheduler.memory_queue_frac": 0.33,
         "scheduler.working_frac": 0.8,
         "utilisation.headroom": 0.9},
        {"stalls.long_scoreboard": (0.28,), "scheduler.memory_queue_frac": (0.27,), "access.bulk_copy_frac": (0.55,),
         "access.serial_copy_wait_frac": (0.55,)},
    ),
    Case(
        "stall_overlapping_loads", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.35, "access.loads_by_code": 4.4, "scheduler.working_frac": 0.8,
         "utilisation.headroom": 0.9},
        {"stalls.long_scoreboard": (0.28,), "access.loads_by_code": (3.6,), "access.bulk_copy_frac": (0.55,),
         "scheduler.memory_queue_frac": (0.33,), "access.serial_copy_wait_frac": (0.55,)},
    ),
    Case(
        "stall_xu_queue", "latency", "mio_throttle",
        {"stalls.mio_throttle": 0.23, "scheduler.xu_queue_frac": 0.33, "scheduler.working_frac": 0.8,
         "utilisation.headroom": 0.9},
        {"stalls.mio_throttle": (0.18,), "scheduler.xu_queue_frac": (0.27,)},
    ),
    Case(
        "stall_wgmma", "latency", "gmma",
        {"stalls.gmma": 0.05, "stalls.barrier": 0.35, "scheduler.working_frac": 0.8, "utilisation.headroom": 0.9},
        {"stalls.gmma": (0.008,), "stalls.barrier": (0.27,)},
    ),
    Case(
        "tail_wave", "latency", "tail",
        {"occupancy.waves": 1.1, "occupancy.tail_frac": 0.22, "utilisation.busiest": 0.5, "occupancy.empty_frac": 0.3},
        {"occupancy.waves": (0.9,), "occupancy.tail_frac": (0.17,), "utilisation.busiest": (0.85,),
         "scheduler.unequal_frac": (0.12,)},
        also=(("occupancy.tail_frac", 0.9),),
    ),
    Case(
        "tail_wave", "compute", "issue",
        {"occupancy.waves": 6.4, "occupancy.tail_frac": 0.06, "occupancy.idle_tail_frac": 0.055, "utilisation.busiest": 0.7,
         "occupancy.empty_frac": 0.055},
        {"occupancy.idle_tail_frac": (0.04, None)},
    ),
    Case(
        "almost_no_data", "overhead", "launch", {"access.idle_warp_frac": 0.995, "occupancy.waves": 0.25},
        {"access.idle_warp_frac": (0.98,), "occupancy.waves": (1.1,)},
        has_gain=False,
    ),
    Case(
        "almost_no_data", "latency", "grid",
        {"access.idle_warp_frac": 0.995, "occupancy.waves": 1, "duration_ns": 9_900},
        {"duration_ns": (10_100,)},
        has_gain=False,
    ),
    Case(
        "idle_warps", "latency", "grid",
        {"access.idle_warp_frac": 0.995, "access.most_idle_warp_frac": 0.995, "occupancy.waves": 5, "duration_ns": 10_100},
        {"duration_ns": (9_900,)},
    ),
    Case(
        "idle_warps", "latency", "occupancy",
        {"access.idle_warp_frac": 0.6, "access.most_idle_warp_frac": 0.7, "occupancy.waves": 5, "utilisation.dram": 0.2,
         "utilisation.fp64": 0.1, "utilisation.tensor": 0.1},
        {"access.idle_warp_frac": (0.45,), "occupancy.waves": (0.9,)},
        also=(("occupancy.waves", 1.25),),
    ),
    Case(
        "alike_blocks", "memory", "dram",
        {"launch.n_alike_blocks": 4, "utilisation.busiest": 0.6, "occupancy.waves": 5},
        {"launch.n_alike_blocks": (1,)},
    ),
    Case(
        "l2_slice_imbalance", "memory", "l2",
        {"access.l2_slice_imbalance_frac": 0.12, "access.hottest_l2_slice_frac": 0.95},
        {"access.l2_slice_imbalance_frac": (0.09,), "access.hottest_l2_slice_frac": (0.8,)},
    ),
    Case(
        "scattered_accesses", "memory", "l1",
        {"access.wavefronts_per_instruction": 5, "launch.own_shared_bytes_per_block": 0, "utilisation.dram": 0.2,
         "utilisation.l2": 0.3},
        {"access.wavefronts_per_instruction": (4.2,), "launch.own_shared_bytes_per_block": (64,),
         "access.load_sectors_per_request": (8,), "access.excess_sectors_frac": (0.2,)},
        without_gain=(("launch.own_shared_bytes_per_block", None),),
    ),
    Case(
        "fp64_on_slow_part", "compute", "fp64",
        {"device.fp64_ratio": 20, "utilisation.fp64": 0.35, "utilisation.memory_side": 0.02, "utilisation.issue": 0.03},
        {"device.fp64_ratio": (13,), "utilisation.fp64": (0.25,)},
    ),
    Case(
        "arithmetic_headroom", "compute", "fp32", {"utilisation.compute": 0.65, "scheduler.compute_over_best": 0.8},
        {"utilisation.compute": (0.55,), "scheduler.compute_over_best": (1,), "arithmetic.integer_fma_frac": (0.9,)},
    ),
    Case(
        "integer_multiply_adds", "compute", "integer_fma",
        {"utilisation.compute": 0.65, "arithmetic.integer_fma_frac": 0.9, "utilisation.memory_side": 0.2,
         "utilisation.alu": 0.3, "utilisation.xu": 0.1},
        {"utilisation.compute": (0.55,), "arithmetic.integer_fma_frac": (0.7,)},
    ),
    Case(
        "unfused_fp32", "compute", "issue", {"arithmetic.fp32_fusable_frac": 0.12, "arithmetic.fp32_issue_frac": 0.55},
        {"arithmetic.fp32_fusable_frac": (0.09,), "arithmetic.fp32_issue_frac": (0.45,)},
    ),
    Case(
        "inlined_generator_setup", "memory", "dram",
        {"access.generator_setup_frac": 0.7, "scheduler.n_instructions_per_warp": 2300,
         "instructions.generator_frac": 0.6, "utilisation.dram": 0.2, "utilisation.fp64": 0.3},
        {"access.generator_setup_frac": (0.5,), "scheduler.n_instructions_per_warp": (1700,)},
    ),
    Case(
        "local_memory", "memory", "l1",
        {"access.local_bytes": 1.2e5, "access.local_frac": 0.5, "utilisation.compute": 0.9, "utilisation.lsu": 0.9,
         "utilisation.fp32": 0.7, "utilisation.issue": 0.8},
        {"access.local_bytes": (8e4,), "access.local_frac": (0.04,), "check.debug_build": (1,)},
    ),
    Case(
        "combined_in_shared", "compute", "lsu",
        {"utilisation.lsu": 0.65, "stalls.barrier": 0.12, "access.shared_wavefronts": 1e6,
         "scheduler.n_instructions_per_warp": 180, "access.stored_over_dram_read": 0.11, "utilisation.dram": 0.3,
         "utilisation.issue": 0.5, "arithmetic.fp32_issue_frac": 0.8, "roofline.min_time_frac": 0.2},
        {"utilisation.lsu": (0.55,), "stalls.barrier": (0.08,), "access.shared_wavefronts": (0,),
         "scheduler.n_instructions_per_warp": (230,), "access.stored_over_dram_read": (0.14,)},
        without_gain=(("arithmetic.fp32_issue_frac", None),),
    ),
    Case(
        "stall_special_functions", "latency", "short_scoreboard",
        {"stalls.short_scoreboard": 0.35, "access.shared_wavefronts": 0, "device.fp64_ratio": 64,
         "utilisation.fp64": 0.09, "scheduler.working_frac": 0.8, "utilisation.headroom": 0.9},
        {"stalls.short_scoreboard": (0.28,), "access.shared_wavefronts": (10,), "utilisation.fp64": (0.12,)},
    ),
    Case(
        "stall_slow_fp64", "latency", "short_scoreboard",
        {"stalls.short_scoreboard": 0.35, "device.fp64_ratio": 18, "utilisation.fp64": 0.12,
         "scheduler.working_frac": 0.8, "utilisation.memory_side": 0.4},
        {"stalls.short_scoreboard": (0.28,), "device.fp64_ratio": (14,), "utilisation.fp64": (0.09,)},
    ),
    Case(
        "stall_mixed", "latency", "mixed_stalls", {"limiter.stall_frac": 0.28},
        {"limiter.stall_frac": (0.32, 0.0), "scheduler.xu_queue_frac": (0.35,)},
        has_gain=False,
    ),
    Case(
        "l1_full_on_working_sms", "latency", "grid",
        {"scheduler.l1_busy_frac": 0.85, "scheduler.sm_active_frac": 0.0023, "access.wavefronts_per_instruction": 5},
        {"scheduler.l1_busy_frac": (0.75,), "scheduler.sm_active_frac": (0.0017, 0.91)},
        without_gain=(("access.wavefronts_per_instruction", 4.2),),
    ),
    Case(
        "slower_tensor_accumulation", "compute", "tensor",
        {"roofline.tensor_path_frac": 0.9, "device.has_async_tensor_path": 0, "utilisation.memory_side": 0.6},
        {"roofline.tensor_path_frac": (0.97,), "device.has_async_tensor_path": (1,)},
    ),
    Case(
        "unfused_fp64", "compute", "fp64", {"arithmetic.fp64_fusable_frac": 0.11},
        {"arithmetic.fp64_fusable_frac": (0.09,)},
    ),
    Case(
        "dram_roof", "memory", "dram", {"utilisation.dram": 0.65, "scheduler.dram_over_best": 0.93},
        {"utilisation.dram": (0.55,), "scheduler.dram_over_best": (0.87,)},
        has_gain=False,
    ),
    Case(
        "dram_headroom", "memory", "dram",
        {"utilisation.dram": 0.65, "scheduler.dram_over_best": 0.72, "scheduler.working_frac": 0.95},
        {"utilisation.dram": (0.55,), "scheduler.dram_over_best": (0.93,)},
    ),
    Case(
        "coalesced_l2_stores", "memory", "l2",
        {"access.store_waste_frac": 0.045, "access.l2_input_share": 0.8, "utilisation.l2": 0.45, "access.local_frac": 0.45,
         "access.atomic_request_frac": 0.45, "utilisation.dram": 0.3},
        {"access.store_waste_frac": (0.06,), "access.l2_input_share": (0.7,), "utilisation.l2": (0.35,),
         "access.local_frac": (0.55,), "access.atomic_request_frac": (0.55,)},
    ),
    Case(
        "two_stage_mainloop", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.23, "device.has_async_copy": 1, "scheduler.working_frac": 0.8, "utilisation.headroom": 0.9},
        {"stalls.long_scoreboard": (0.18,), "device.has_async_copy": (0,)},
        name="MmaPipelined",
    ),
    Case(
        "generator_setup", "memory", "lsu", {"scheduler.n_instructions_per_warp": 2300, "utilisation.dram": 0.2},
        {"scheduler.n_instructions_per_warp": (1700,)},
        name="setup_kernel(curandStateXORWOW *)",
    ),
    Case("launch_overhead", "overhead", None, {"duration_ns": 4500}, {"duration_ns": (0,)}, has_gain=False),
]  # fmt: skip
