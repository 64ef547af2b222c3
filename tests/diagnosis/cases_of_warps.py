"""Kernels of which a finding of blocks, warps or lanes is shown, in numbers that are written here and not taken from the rules."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

FLASH = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)"

CASES = [
    Case("debug_build", "unknown", None, {"check.debug_build": 1}, None, {"check.debug_build": (0,)}),
    Case("alike_threads", "memory", "dram", {"launch.n_alike_threads": 2}, None, {"launch.n_alike_threads": (1,)}),
    Case(
        "nothing_multiplied", "memory", "dram", {"arithmetic.beyond_integers_by_code": 0}, None,
        {"arithmetic.beyond_integers_by_code": (1,)}, name="gemm(float *, float *, float *, int, int, int)",
        other_names=(
            "gemm(int *, int *, int *, int)", "gemm_init(float *)", "matmul_transpose(float *)", "im2col_gemm(float *)",
            "attention_mask(float *)", "void gemm_splitk_reduce<float>(T1 *)", "matmul",
        ),
    ),
    Case("unread_shared_stores", "memory", "dram", {"access.unread_shared_stores": 1}, None, {"access.unread_shared_stores": (0,)}),
    Case(
        "grid_of_parameters", "latency", "grid",
        {"occupancy.waves": 0.95, "utilisation.busiest": 0.78, "utilisation.most_possible": 0.62}, None,
        {"occupancy.waves": (1.05,), "utilisation.busiest": (0.82,)},
        (("utilisation.most_possible", 0.58, None),),
        name="void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>>",
        other_names=("kernel(float *)",),
    ),
    Case(
        "low_occupancy", "latency", "occupancy",
        {"occupancy.theoretical_frac": 0.3, "occupancy.next_limit_frac": 0.6, "occupancy.waves": 1.05,
         "access.bulk_copy_frac": 0.48, "launch.n_threads_per_block": 32, "utilisation.busiest": 0.2},
        0.5,  # up to the next limit, twice as many warps
        {"occupancy.theoretical_frac": (0.62,), "occupancy.waves": (0.9,), "access.bulk_copy_frac": (0.52,),
         "launch.n_threads_per_block": (31,)},
        (("occupancy.next_limit_frac", None, 0.5), ("utilisation.busiest", 0.55, 0.45), ("scheduler.l1_busy_frac", 0.8, 0.2),
         ("scheduler.compute_busy_frac", 0.6, 0.4), ("access.bulk_copy_frac", None, 0.5), ("launch.n_threads_per_block", None, 0.5),
         ("occupancy.theoretical_frac", 0.57, 0.05)),
        other_names=(FLASH, "nvjet_sm90_tst_128x64_64x8", "sm90_xmma_gemm_f32f32", "fmha_cutlassF_f16_aligned"),
    ),
    Case(
        "low_occupancy", "latency", "occupancy",
        {"occupancy.theoretical_frac": 0.58, "occupancy.next_limit_frac": 1, "occupancy.waves": 9}, 0.42,
        {"occupancy.theoretical_frac": (0.62,)},
    ),
    Case(  # eight times as many warps fit: two waves run as one, in half of the time, three in a third
        "low_occupancy", "latency", "occupancy",
        {"occupancy.theoretical_frac": 0.125, "occupancy.next_limit_frac": 1, "occupancy.waves": 2}, 0.5,
        {"occupancy.waves": (1,)},
        (("occupancy.waves", 2.1, 2 / 3), ("occupancy.waves", 3, 2 / 3), ("occupancy.waves", 1.1, 0.5),
         ("occupancy.waves", 80, 0.875)),
    ),
    Case(  # no other block can start: it takes a larger grid
        "low_occupancy_of_one_wave", "latency", "occupancy",
        {"occupancy.theoretical_frac": 0.3, "occupancy.next_limit_frac": 0.6, "occupancy.waves": 1,
         "access.bulk_copy_frac": 0.48, "launch.n_threads_per_block": 32, "utilisation.busiest": 0.2},
        0.5,
        {"occupancy.theoretical_frac": (0.62,), "occupancy.waves": (0.97, 1.04), "access.bulk_copy_frac": (0.52,),
         "launch.n_threads_per_block": (31,)},
        (("occupancy.next_limit_frac", None, 0.7), ("utilisation.busiest", 0.55, 0.45), ("scheduler.l1_busy_frac", 0.8, 0.2),
         ("scheduler.compute_busy_frac", 0.6, 0.4), ("access.bulk_copy_frac", None, 0.5), ("launch.n_threads_per_block", None, 0.5),
         ("scheduler.working_frac", 0.4, 0.5)),  # more work for each launch
        other_names=(FLASH, "nvjet_sm90_tst_128x64_64x8", "sm90_xmma_gemm_f32f32", "fmha_cutlassF_f16_aligned"),
    ),
    Case(
        "grid_of_parameters", "latency", "grid",
        {"occupancy.waves": 0.2, "utilisation.busiest": 0.9, "utilisation.most_possible": 0.58}, None,
        {"utilisation.most_possible": (0.62,)},
        name="void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>>",
    ),
    Case(
        "unfilled_occupancy", "latency", "occupancy",
        {"occupancy.filled_frac": 0.7, "occupancy.achieved_frac": 0.7, "occupancy.waves": 4.1,
         "scheduler.n_instructions_per_warp": 101, "utilisation.busiest": 0.4},
        0.3,
        {"occupancy.filled_frac": (0.87,), "occupancy.achieved_frac": (0.77,), "occupancy.waves": (3.9,),
         "scheduler.n_instructions_per_warp": (99,)},
        (("occupancy.filled_frac", 0.83, 0.17), ("utilisation.busiest", 0.8, 0.2), ("occupancy.achieved_frac", 0.73, 0.3),
         ("scheduler.n_instructions_per_warp", None, 0.3)),
    ),
    Case(
        "little_work_per_thread", "latency", "stall",
        {"scheduler.n_instructions_per_warp": 98, "occupancy.waves": 4.1, "occupancy.filled_frac": 0.7,
         "utilisation.busiest": 0.4},
        0.3,
        {"scheduler.n_instructions_per_warp": (102,), "occupancy.waves": (3.9,), "occupancy.filled_frac": (0.995,)},
        (("utilisation.busiest", 0.8, 0.2), ("occupancy.filled_frac", 0.9, 0.1)),
    ),
    Case(  # what fills the slots waits for the same slice of L2
        "little_work_per_thread", "latency", "stall",
        {"scheduler.n_instructions_per_warp": 98, "occupancy.waves": 4.1, "occupancy.filled_frac": 0.7,
         "utilisation.busiest": 0.4, "access.colliding_atomics_frac": 0.95},
        0.05, {}, (("access.colliding_atomics_frac", 0, 0.3),),
    ),
    Case(
        "little_work_per_thread", "compute", "issue",
        {"scheduler.n_instructions_per_warp": 50, "occupancy.waves": 9, "occupancy.filled_frac": 0.75, "utilisation.busiest": 0.7},
        0.25,
        other_limiters=("fp32", "lsu"),
    ),
    Case(
        "one_resident_block", "latency", "occupancy",
        {"occupancy.resident_blocks": 1, "occupancy.shared_bytes_frac": 1, "launch.n_threads_per_block": 512,
         "occupancy.waves": 4.1, "scheduler.n_instructions_per_warp": 98, "occupancy.achieved_frac": 0.5,
         "scheduler.sm_active_frac": 0.94, "occupancy.filled_frac": 0.86, "utilisation.busiest": 0.3},
        1 - 0.47,
        {"occupancy.resident_blocks": (2,), "occupancy.shared_bytes_frac": (1.1,), "launch.n_threads_per_block": (480,),
         "occupancy.waves": (3.9,), "scheduler.n_instructions_per_warp": (102,), "scheduler.sm_active_frac": (0.96,)},
        (("utilisation.busiest", 0.7, 0.3), ("scheduler.sm_active_frac", 0.8, 0.6)),
    ),
    Case(
        "one_resident_block", "latency", "occupancy",
        {"occupancy.resident_blocks": 1, "occupancy.shared_bytes_frac": 0.1, "launch.n_threads_per_block": 1024,
         "occupancy.waves": 9, "scheduler.n_instructions_per_warp": 50, "occupancy.achieved_frac": 0.5,
         "scheduler.sm_active_frac": 1, "occupancy.filled_frac": 0.84},
        0.5,
        {"occupancy.filled_frac": (0.86,)},
    ),
    Case(
        "serial_loads", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.32, "access.loads_by_code": 2.3,
         "access.bulk_copy_frac": 0.48, "scheduler.memory_queue_frac": 0.28, "scheduler.working_frac": 0.75,
         "utilisation.headroom": 0.9},
        0.24,  # 0.32 of 0.75
        {"stalls.long_scoreboard": (0.28,), "access.loads_by_code": (2.4,), "access.bulk_copy_frac": (0.52,),
         "scheduler.memory_queue_frac": (0.32,), "access.serial_copy_wait_frac": (0.52,)},
        (("access.atomic_wait_frac", 0.25, 0.18), ("utilisation.headroom", 0.2, 0.2), ("access.bulk_copy_frac", None, 0.24),
         ("scheduler.memory_queue_frac", None, 0.24)),
    ),
    Case(
        "stall_long_scoreboard", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.32, "access.loads_by_code": 2.4,
         "access.bulk_copy_frac": 0.48, "scheduler.memory_queue_frac": 0.28, "scheduler.working_frac": 0.75,
         "utilisation.headroom": 0.9},
        0.24,  # 0.32 of 0.75
        {"stalls.long_scoreboard": (0.28,), "access.loads_by_code": (2.3, 4.1),
         "access.bulk_copy_frac": (0.52,), "scheduler.memory_queue_frac": (0.32,), "access.serial_copy_wait_frac": (0.52,)},
        (("access.atomic_wait_frac", 0.25, 0.18), ("utilisation.headroom", 0.2, 0.2), ("access.loads_by_code", None, 0.24),
         ("access.loads_by_code", 3.9, 0.24), ("access.bulk_copy_frac", None, 0.24),
         ("scheduler.memory_queue_frac", None, 0.24)),
    ),
    Case(
        "async_copies_awaited_at_once", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.4, "access.serial_copy_wait_frac": 0.75, "stalls.barrier": 0.1, "scheduler.working_frac": 0.8,
         "utilisation.headroom": 0.9},
        0.32,  # 0.4 * 0.75 at copies and 0.1 at barriers, of 0.8
        {"stalls.long_scoreboard": (0.28,), "access.serial_copy_wait_frac": (0.48,)},
        (("utilisation.headroom", 0.2, 0.2), ("stalls.barrier", None, 0.24)),
    ),
    Case(
        "stall_bulk_copies", "latency", "long_scoreboard",
        {"stalls.long_scoreboard": 0.32, "access.bulk_copy_frac": 0.52, "scheduler.working_frac": 0.75,
         "utilisation.headroom": 0.9},
        0.24,  # 0.32 of 0.75
        {"stalls.long_scoreboard": (0.28,), "access.bulk_copy_frac": (0.48,)},
        (("utilisation.headroom", 0.2, 0.2),),
    ),
    Case(
        "stall_lg_throttle", "latency", "lg_throttle",
        {"stalls.lg_throttle": 0.32, "access.colliding_atomics_frac": 0.88, "access.remote_traffic_frac": 0.38,
         "scheduler.working_frac": 0.8, "utilisation.dram": 0.2, "utilisation.l2": 0.2, "utilisation.l1": 0.72,
         "access.wavefronts_per_instruction": 4.8},
        0.32 * 0.8,
        {"stalls.lg_throttle": (0.28,), "access.colliding_atomics_frac": (0.92,), "access.remote_traffic_frac": (0.42,)},
        (("utilisation.dram", 0.72, 0.1), ("utilisation.l2", 0.64, 0.2), ("utilisation.compute", 0.72, 0.1),
         ("access.wavefronts_per_instruction", 4.4, 0.1), ("access.wavefronts_per_instruction", None, 0.1),
         ("access.remote_traffic_frac", None, 0.32 * 0.8), ("access.colliding_atomics_frac", None, 0.32 * 0.8)),
    ),
    Case("stall_other", "latency", "misc", {"stalls.misc": 0.32}, None, {"stalls.misc": (0.28,)}),
    Case(
        "blocks_below_a_warp", "latency", "occupancy",
        {"launch.n_threads_per_block": 31, "occupancy.waves": 1.05, "occupancy.filled_frac": 0.7, "launch.unused_lane_frac": 0.5,
         "utilisation.memory_side": 0.4},
        0.5,
        {"launch.n_threads_per_block": (32,), "occupancy.waves": (0.95,)},
        (("launch.unused_lane_frac", 31 / 32, 0.95),),  # an eighth of the sectors that keep memory busy for 0.4, at least
    ),
    Case(
        "blocks_below_a_warp", "latency", "occupancy",
        {"launch.n_threads_per_block": 16, "occupancy.filled_frac": 0.82, "launch.unused_lane_frac": 0.5}, 0.5,
        {"occupancy.filled_frac": (0.78,), "occupancy.waves": (0.95,)},
        (("occupancy.waves", 1.05, 0.5),),
    ),
    Case(
        "partial_warps", "latency", "stall",
        {"launch.unused_lane_frac": 0.052, "launch.n_threads_per_block": 33, "occupancy.waves": 1.1, "utilisation.busiest": 0.3,
         "utilisation.compute": 0.25},
        0.052,
        {"launch.unused_lane_frac": (0.048,), "launch.n_threads_per_block": (32,)},
        (("utilisation.busiest", 0.97, 0.03), ("launch.unused_lane_frac", 0.4, 0.4)),
    ),
    Case(
        "partial_warps", "compute", "issue",
        {"launch.unused_lane_frac": 0.25, "launch.n_threads_per_block": 24, "occupancy.waves": 0.9, "utilisation.busiest": 0.9,
         "utilisation.compute": 0.8},
        0.2,  # a quarter of the instructions
        {"occupancy.waves": (1.05,)},
    ),
    Case(
        "divergence", "latency", "divergence",
        {"scheduler.n_threads_per_instruction": 16, "launch.unused_lane_frac": 0.25, "scheduler.working_frac": 0.8,
         "utilisation.busiest": 0.3, "utilisation.compute": 0.3},
        0.4,  # half of the lanes, for 80 % of the time
        {"scheduler.n_threads_per_instruction": (24.5, 0), "launch.unused_lane_frac": (0.27,)},
        (("utilisation.busiest", 0.8, 0.2), ("launch.unused_lane_frac", None, 0.4),
         ("scheduler.n_threads_per_instruction", 23.5, 8.5 / 32 * 0.8)),
    ),
    Case(
        "divergence", "compute", "issue",
        {"scheduler.n_threads_per_instruction": 16, "utilisation.busiest": 0.9, "utilisation.compute": 0.8}, 0.4,
    ),
    Case(
        "predicated_off", "latency", "wait",
        {"scheduler.n_predicated_on_threads_per_instruction": 16, "scheduler.n_threads_per_instruction": 24,
         "scheduler.working_frac": 0.8, "utilisation.busiest": 0.3, "utilisation.compute": 0.3},
        0.2,  # a quarter of the lanes, for 80 % of the time
        {"scheduler.n_predicated_on_threads_per_instruction": (24.5, 0), "scheduler.n_threads_per_instruction": (23.5,),
         "access.generator_setup_frac": (0.62,)},
        (("scheduler.n_threads_per_instruction", 32, 0.4), ("utilisation.busiest", 0.9, 0.1),
         ("access.generator_setup_frac", 0.58, 0.2)),
        other_names=("setup_states(curandStateXORWOW *)",),
    ),
    Case(
        "predicated_off", "compute", "issue",
        {"scheduler.n_predicated_on_threads_per_instruction": 16, "scheduler.n_threads_per_instruction": 32,
         "utilisation.busiest": 0.9, "utilisation.compute": 0.8},
        0.4,
        {"scheduler.n_predicated_on_threads_per_instruction": (24.5,)},
        (("scheduler.n_predicated_on_threads_per_instruction", 23.5, 8.5 / 32 * 0.8),),
    ),
    Case(
        "sm_imbalance", "latency", "imbalance",
        {"scheduler.sm_imbalance_frac": 0.3, "duration_ns": 2.1e4, "occupancy.waves": 4.1, "occupancy.tail_frac": 0.18,
         "scheduler.unequal_frac": 0.096, "utilisation.busiest": 0.5},
        0.3,
        {"scheduler.sm_imbalance_frac": (0.096,), "duration_ns": (1.9e4,), "occupancy.waves": (3.9,)},
        (("utilisation.busiest", 0.8, 0.2), ("scheduler.unequal_frac", 0.2, 0.3), ("duration_ns", None, None),
         ("scheduler.sm_imbalance_frac", 0.104, 0.104)),
        other_names=("void at::native::vectorized_elementwise_kernel<4>", "multi_tensor_apply_kernel<2>"),
    ),
    Case(
        "sm_imbalance", "latency", "imbalance",
        {"scheduler.sm_imbalance_frac": 0.6, "occupancy.waves": 0.95, "occupancy.tail_frac": 0.05, "scheduler.unequal_frac": 0.104},
        0.104,  # of the SMs that have a block
        {"scheduler.unequal_frac": (0.096,)},
        (("occupancy.waves", 1.05, 0.6),),
    ),
    Case(
        "sm_imbalance", "latency", "imbalance",
        {"scheduler.sm_imbalance_frac": 0.16, "occupancy.waves": 1.2, "occupancy.tail_frac": 0.4, "scheduler.unequal_frac": 0.2,
         "occupancy.empty_frac": 0.6, "utilisation.busiest": 0.3},
        0.6,  # warps that end early leave their slots empty on busy SMs, too
        {"scheduler.unequal_frac": (0.09,)},
        (("utilisation.busiest", 0.5, 0.5), ("occupancy.waves", 4.1, 0.16), ("occupancy.empty_frac", None, 0.16)),
    ),
    Case(
        "sm_imbalance", "latency", "imbalance",
        {"scheduler.sm_imbalance_frac": 0.23, "occupancy.waves": 4.7, "occupancy.tail_frac": 0.05, "scheduler.unequal_frac": 0.23,
         "occupancy.empty_frac": 0.41, "occupancy.achieved_frac": 0.81, "utilisation.busiest": 0.3},
        0.41,  # in more waves as well, where no other finding reports empty slots
        {"scheduler.sm_imbalance_frac": (0.09,)},
        (("occupancy.achieved_frac", 0.74, 0.23),),
    ),
    Case(
        "sm_imbalance", "latency", "imbalance",
        {"scheduler.sm_imbalance_frac": 0.2, "occupancy.waves": 2, "occupancy.tail_frac": 0.0095}, 0.2,
        {"occupancy.tail_frac": (0.0105,)},
    ),
    Case(
        "idle_sms", "latency", None,
        {"scheduler.sm_active_frac": 0.6, "duration_ns": 1.05e4, "utilisation.dram": 0.2, "utilisation.l2": 0.3}, 0.4,
        {"scheduler.sm_active_frac": (0.82,), "duration_ns": (0.9e4,), "occupancy.waves": (2,),
         "scheduler.sm_imbalance_frac": (0.4,)},
        (("utilisation.dram", 0.7, 0.3), ("utilisation.l2", 0.8, 0.2), ("scheduler.sm_active_frac", 0.78, 0.22),
         ("duration_ns", None, None)),
    ),
    Case(
        "idle_between_kernels", "latency", "launch", {"check.non_kernel": 1, "scheduler.any_sm_frac": 0.48}, None,
        {"check.non_kernel": (0,), "scheduler.any_sm_frac": (0.52,)},
    ),
]  # fmt: skip
