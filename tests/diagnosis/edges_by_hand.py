"""At which value of a quantity a finding is reported, and at which it is not: one of them the threshold, both within 4 % of it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edge:
    """A threshold of a finding, from both sides.

    Attributes:
        finding: which; its cases by hand give the other quantities.
        quantity: that is compared.
        firing: value with which the finding is reported.
        silent: value with which it is not.
        beside: what else is changed of the case, where another quantity would do in place of this one.
    """

    finding: str
    quantity: str
    firing: float
    silent: float
    beside: dict[str, float | None] = field(default_factory=dict)


_WAITS = (
    "short_scoreboard",
    "barrier",
    "mio_throttle",
    "math_pipe_throttle",
    "wait",
    "no_instruction",
    "imc_miss",
    "branch_resolving",
    "membar",
    "drain",
    "sleeping",
    "tex_throttle",
    "dispatch_stall",
)

EDGES = [
    *(Edge(f"stall_{reason}", f"stalls.{reason}", 0.3, 0.288) for reason in _WAITS),
    Edge("alike_threads", "launch.n_alike_threads", 2, 1.92),
    Edge("alike_blocks", "launch.n_alike_blocks", 2, 1.92),
    Edge("fp64_divisions", "arithmetic.fp64_division_frac", 0.1, 0.096),
    Edge("fp64_divisions", "utilisation.fp64", 0.312, 0.3),
    Edge("pointwise_chain", "launch.fusable_frac", 0.1, 0.096),
    Edge("unfused_pointwise", "launch.fusable_frac", 0.096, 0.1),
    Edge("fetch_granularity", "access.l2_read_over_dram_read", 0.5645, 0.588),
    Edge("fetch_granularity", "access.load_bytes_per_sector", 26.88, 28),
    Edge("fetch_granularity", "access.load_sectors_per_request", 8, 7.68),
    Edge("fetch_granularity", "access.load_share", 0.5, 0.48),
    Edge("fetch_granularity", "utilisation.dram", 0.4, 0.384),
    Edge("scattered_load_requests", "access.load_sectors_per_request", 17.1, 17),
    Edge("scattered_load_requests", "access.async_copy_frac", 0.5, 0.52),
    Edge("scattered_load_requests", "device.has_32_byte_loads", 0.96, 1),
    Edge("uncoalesced_global_store", "access.store_bytes_per_sector", 26.88, 28),
    Edge("uncoalesced_global_store", "access.store_waste_frac", 0.052, 0.05),
    Edge("uncoalesced_global_store", "access.l2_store_waste_frac", 0.05, 0.048),
    Edge("uncoalesced_global_access", "access.excess_sectors_frac", 0.13, 0.125),
    Edge("uncoalesced_global_access", "access.async_sectors_per_lookup", 1.05, 1.092),
    Edge("remote_memory", "access.remote_traffic_frac", 0.416, 0.4),
    Edge("cold_l2", "access.l2_hit_frac", 0.576, 0.6),
    Edge("cold_l2", "access.dram_read_over_l2_size", 0.768, 0.8),
    Edge("cold_l2", "access.dram_read_over_l2_size", 0.0208, 0.02),
    Edge("l2_slice_imbalance", "access.l2_slice_imbalance_frac", 0.104, 0.1),
    Edge("l2_slice_imbalance", "access.hottest_l2_slice_frac", 0.9, 0.864),
    Edge("incompressible_data", "access.compression_success_frac", 0.192, 0.2),
    Edge("incompressible_data", "access.compression_input_frac", 0.052, 0.05),
    Edge("bank_conflicts", "access.bank_conflict_frac", 0.104, 0.1),
    Edge("bank_conflicts", "access.shared_wavefront_share", 0.104, 0.1),
    Edge(
        "idle_tensor_cores",
        "arithmetic.fp32_issue_frac",
        0.104,
        0.1,
        {"roofline.vector_flop_frac": 0.02, "utilisation.fp32": 0.02},
    ),
    Edge("local_memory_by_code", "access.local_by_code_frac", 0.5, 0.48),
    Edge("local_memory", "access.local_bytes", 104000, 100000),
    Edge("local_memory", "access.local_frac", 0.052, 0.05),
    Edge("small_grid", "occupancy.waves", 0.96, 1),
    Edge("small_grid", "access.idle_warp_frac", 0.48, 0.5),
    Edge("small_grid", "utilisation.busiest", 0.768, 0.8),
    Edge("tail_wave", "occupancy.waves", 1, 0.96),
    Edge("low_occupancy", "occupancy.waves", 1.01, 1),
    Edge("low_occupancy_of_one_wave", "occupancy.waves", 1, 0.97),
    Edge("low_occupancy_of_one_wave", "occupancy.waves", 1, 1.01),
    Edge("low_occupancy_of_one_wave", "occupancy.theoretical_frac", 0.58, 0.6),
    Edge("low_occupancy_of_one_wave", "access.bulk_copy_frac", 0.48, 0.5),
    Edge("tail_wave", "occupancy.tail_frac", 0.207, 0.199),
    Edge("tail_wave", "utilisation.busiest", 0.768, 0.8),
    Edge("tail_wave", "scheduler.unequal_frac", 0.096, 0.1),
    Edge("almost_no_data", "access.idle_warp_frac", 0.99, 0.98),
    Edge("almost_no_data", "occupancy.waves", 0.98, 1),
    Edge("almost_no_data", "duration_ns", 9_600, 10_000),
    Edge("idle_warps", "duration_ns", 10_000, 9_600),
    Edge("idle_warps", "access.idle_warp_frac", 0.5, 0.48),
    Edge("idle_warps", "occupancy.waves", 1, 0.96, {"utilisation.busiest": 0.5}),
    Edge("one_resident_block", "occupancy.resident_blocks", 1.92, 2),
    Edge("atomic_results", "stalls.long_scoreboard", 0.2, 0.192),
    Edge("atomic_results", "access.atomic_wait_frac", 0.25, 0.24),
    Edge("stall_full_queues", "stalls.long_scoreboard", 0.3, 0.288),
    Edge("stall_full_queues", "scheduler.memory_queue_frac", 0.3, 0.288),
    Edge("stall_full_queues", "access.bulk_copy_frac", 0.48, 0.5),
    Edge("async_copies_awaited_at_once", "stalls.long_scoreboard", 0.3, 0.288),
    Edge("async_copies_awaited_at_once", "access.serial_copy_wait_frac", 0.5, 0.48),
    *(
        Edge(finding, "access.serial_copy_wait_frac", 0.48, 0.5)
        for finding in ("serial_loads", "stall_long_scoreboard", "stall_full_queues", "stall_overlapping_loads")
    ),
    Edge("two_stage_mainloop", "stalls.long_scoreboard", 0.2, 0.192),
    Edge("stall_overlapping_loads", "stalls.long_scoreboard", 0.3, 0.288),
    Edge("stall_overlapping_loads", "access.loads_by_code", 4, 3.84),
    Edge("stall_overlapping_loads", "access.bulk_copy_frac", 0.48, 0.5),
    Edge("stall_overlapping_loads", "scheduler.memory_queue_frac", 0.288, 0.3),
    Edge("stall_slow_fp64", "stalls.short_scoreboard", 0.3, 0.288),
    Edge("stall_slow_fp64", "device.fp64_ratio", 16, 15.36),
    Edge("stall_slow_fp64", "utilisation.fp64", 0.104, 0.1),
    Edge("stall_special_functions", "stalls.short_scoreboard", 0.3, 0.288),
    Edge("stall_special_functions", "utilisation.fp64", 0.1, 0.104),
    Edge("stall_barrier", "stalls.gmma", 0.0096, 0.01),
    Edge("stall_wgmma", "stalls.gmma", 0.01, 0.0096),
    Edge("stall_wgmma", "stalls.barrier", 0.3, 0.288),
    Edge("stall_xu_queue", "stalls.mio_throttle", 0.2, 0.192),
    Edge("stall_xu_queue", "scheduler.xu_queue_frac", 0.3, 0.288),
    Edge("stall_mio_throttle", "scheduler.xu_queue_frac", 0.288, 0.3),
    Edge("stall_drain", "access.colliding_atomics_frac", 0.864, 0.9),
    Edge("stall_mixed", "scheduler.xu_queue_frac", 0.288, 0.3),
    Edge("blocks_below_a_warp", "occupancy.waves", 1, 0.96),
    Edge("partial_warps", "scheduler.partial_wave_busy_frac", 0.3, 0.288),
    Edge("narrow_loads", "access.load_instruction_frac", 0.25, 0.24),
    Edge("l1_full_on_working_sms", "scheduler.sm_active_frac", 0.002, 0.00192),
    Edge("l1_full_on_working_sms", "scheduler.sm_active_frac", 0.864, 0.9),
    Edge("slower_tensor_accumulation", "device.has_async_tensor_path", 0.96, 1),
    Edge("fp64_on_slow_part", "device.fp64_ratio", 16, 15.36),
    Edge("fp64_on_slow_part", "utilisation.fp64", 0.312, 0.3),
    Edge("unfused_fp32", "arithmetic.fp32_fusable_frac", 0.104, 0.1),
    Edge("unfused_fp32", "arithmetic.fp32_issue_frac", 0.5, 0.48),
    Edge("unfused_fp64", "arithmetic.fp64_fusable_frac", 0.104, 0.1),
    Edge("dram_headroom", "scheduler.dram_over_best", 0.88, 0.89),
    Edge("dram_roof", "scheduler.dram_over_best", 0.89, 0.88),
    Edge("coalesced_l2_stores", "access.store_waste_frac", 0.048, 0.05),
    Edge("coalesced_l2_stores", "utilisation.l2", 0.4, 0.384),
    Edge("coalesced_l2_stores", "access.local_frac", 0.48, 0.5),
    Edge("coalesced_l2_stores", "access.atomic_request_frac", 0.48, 0.5),
    Edge("scattered_accesses", "access.wavefronts_per_instruction", 4.68, 4.5),
    Edge("l1_or_shared", "access.unsplit_shared_bytes", 1, 0.96),
    Edge("l1_traffic", "access.unsplit_shared_bytes", 0.96, 1),
    Edge("integer_multiply_adds", "arithmetic.integer_fma_frac", 0.8, 0.768),
    Edge("inlined_generator_setup", "access.generator_setup_frac", 0.6, 0.576),
    Edge("lsu_instructions", "access.generator_setup_frac", 0.576, 0.6),
    Edge("predicated_off", "access.generator_setup_frac", 0.576, 0.6),
    Edge("inlined_generator_setup", "scheduler.n_instructions_per_warp", 2080, 2000),
    Edge("generator_setup", "scheduler.n_instructions_per_warp", 2080, 2000),
    Edge("combined_in_shared", "stalls.barrier", 0.1, 0.096),
    Edge("combined_in_shared", "scheduler.n_instructions_per_warp", 192, 200),
    Edge("combined_in_shared", "access.stored_over_dram_read", 0.12, 0.125),
    Edge("arithmetic_headroom", "scheduler.compute_over_best", 0.98, 0.99),
    Edge("arithmetic_headroom", "arithmetic.integer_fma_frac", 0.768, 0.8),
    Edge("uncoalesced_global_store", "scheduler.l1_busy_frac", 0.6, 0.576, {"access.l2_store_waste_frac": 0.01}),
    Edge("uncoalesced_global_store", "stalls.lg_throttle", 0.2, 0.192, {"access.l2_store_waste_frac": 0.01}),
    Edge("small_grid", "utilisation.most_possible", 0.576, 0.6, {"utilisation.busiest": 0.9}),
    Edge("stall_special_functions", "device.fp64_ratio", 15, 16, {"utilisation.fp64": 0.2}),
    Edge("stall_wgmma", "stalls.gmma", 0.3, 0.288, {"stalls.barrier": 0.2}),
    Edge("unfused_fp32", "utilisation.fp32", 0.5, 0.48, {"arithmetic.fp32_issue_frac": 0.3}),
]
