"""Kernels of which a finding of memory is reported, in numbers that are written here and not taken from the rules."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

CASES = [
    Case(
        "uncoalesced_global_load", "memory", "dram",
        {"access.load_bytes_per_sector": 27, "access.load_sectors_per_request": 4.1, "access.load_waste_frac": 0.052,
         "access.dram_load_waste_frac": 0.3, "access.l2_load_waste_frac": 0.052, "scheduler.l1_busy_frac": 0.5,
         "stalls.lg_throttle": 0.1},
        0.3,
        {"access.load_bytes_per_sector": (29, 32), "access.load_sectors_per_request": (3.7, 1), "access.load_waste_frac": (0.048,),
         "access.l2_load_waste_frac": (0.048,)},  # what L1 absorbs, and L1 is not full
        (("access.l2_load_waste_frac", None, 0.3),),
        other_limiters=("fp32", "issue"),
    ),
    *(
        Case(
            "uncoalesced_global_load", "memory", "dram",
            {"access.load_bytes_per_sector": 8, "access.load_sectors_per_request": 16, "access.load_waste_frac": 0.5,
             "access.dram_load_waste_frac": 0.3, "access.l2_load_waste_frac": 0, quantity: enough},
            0.3,
            {quantity: (too_little,)},
        )
        for quantity, enough, too_little in (("scheduler.l1_busy_frac", 0.62, 0.58), ("stalls.lg_throttle", 0.21, 0.19))
    ),
    Case(
        "uncoalesced_global_load", "latency", "lg_throttle",
        {"access.load_bytes_per_sector": 8, "access.load_sectors_per_request": 16, "access.load_waste_frac": 0.5,
         "stalls.lg_throttle": 0.4, "scheduler.working_frac": 0.5},
        0.2,  # all that warps wait for the queue, for half of the time
        {"access.load_waste_frac": (0.04,)},
        (("access.load_waste_frac", 0.3, 0.15), ("stalls.long_scoreboard", 0.3, 0.25)),  # no more than traffic falls
    ),
    *(
        Case(
            "pointwise_chain", verdict, limiter,
            {"launch.fusable_frac": 0.5, "utilisation.dram": 0.4, "utilisation.l2": 0.3, "utilisation.memory_side": 0.6}, gain,
            {"launch.fusable_frac": (0.09, 0), "launch.fused_step_frac": (0.33,)},  # an optimizer's step is told as a whole
            gains,
            name=name,
            other_names=("triton_poi_fused_cos_0", "add(float *)", "void at::native::reduce_kernel<512, 1>(T3)"),
            other_limiters=other_limiters,
        )
        for verdict, limiter, gain, gains, name, other_limiters in (
            # what limits takes half of the time for half of the bytes, and no less than the SMs are busy
            ("memory", "dram", 0.5, (("launch.fusable_frac", 0.11, 0.11), ("utilisation.compute", 0.7, 0.3)),
             "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", ("l1", "shared")),
            ("memory", "l2", 0.5, (), "void at::native::multi_tensor_apply_kernel<TensorListMetadata<1>>(T1)", ()),
            # what waits for something else waits once, in one launch instead of two, however busy DRAM and L2 are
            ("latency", "long_scoreboard", 0.5, (("utilisation.dram", 0.1, 0.5), ("launch.fusable_frac", 0.3, 0.3)),
             "void at::native::elementwise_kernel<128, 4, at::native::AddFunctor<float>>(int)", ()),
        )
    ),
    Case(
        "async_copy_alignment", "memory", "l2", {"access.async_sectors_per_lookup": 1.07, "access.l2_excess_frac": 0.4}, 0.4,
        {"access.async_sectors_per_lookup": (1.03,)},
        other_limiters=("fp32",),
    ),
    Case("global_atomics", "memory", "l2", {"utilisation.atomic": 0.31}, None, {"utilisation.atomic": (0.29,)},
         other_limiters=("dram",)),
    Case(
        "remote_transfer", "latency", None, {"access.remote_traffic_frac": 0.41}, None, {"access.remote_traffic_frac": (0.39,)},
        name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
        other_names=("sgemm_kernel(float *)",),
    ),
    Case(
        "narrow_loads", "compute", "lsu",
        {"access.load_sectors_per_request": 1, "access.load_bytes_per_sector": 29, "scheduler.n_threads_per_instruction": 25},
        None,
        {"access.load_sectors_per_request": (0.9, 4.3, 16), "access.load_bytes_per_sector": (27,),
         "scheduler.n_threads_per_instruction": (23,)},
        (("access.load_sectors_per_request", 4, None), ("scheduler.n_threads_per_instruction", None, None)),
        other_limiters=("dram", "fp32"),
    ),
    Case(
        "colliding_atomics", "latency", "lg_throttle",
        {"access.colliding_atomics_frac": 0.91, "access.hottest_l2_slice_frac": 0.91, "stalls.lg_throttle": 0.21,
         "stalls.drain": 0.19, "stalls.long_scoreboard": 0.19, "utilisation.dram": 0.05},
        0.9,  # SMs work for a tenth of the time
        {"access.colliding_atomics_frac": (0.89,), "stalls.lg_throttle": (0.19,)},
        (("utilisation.compute", 0.02, 0.91), ("utilisation.dram", 0.3, 0.7), ("access.hottest_l2_slice_frac", 0.6, 0.6)),
    ),
    *(
        Case(
            "colliding_atomics", "latency", reason,
            {"access.colliding_atomics_frac": 0.95, "access.hottest_l2_slice_frac": 0.5, f"stalls.{reason}": 0.22}, 0.5,
            {f"stalls.{reason}": (0.18,)},
        )
        for reason in ("drain", "long_scoreboard")
    ),
    Case(  # 32 sectors for 32 lanes, where 16 bytes for each would take 16
        "scattered_load_requests", "memory", "l2", {"access.load_sectors_per_request": 17.5, "device.has_32_byte_loads": 0}, None,
        {"device.has_32_byte_loads": (1,), "access.load_sectors_per_request": (16.5,), "access.load_bytes_per_sector": (4,),
         "access.excess_sectors_frac": (0.5,),
         "access.async_copy_frac": (0.52,)},
    ),
    Case(
        "dram_channel_imbalance", "memory", "dram",
        {"access.dram_channel_imbalance_frac": 0.2, "access.hottest_dram_channel_frac": 0.65},
        0.13,  # the busiest channel is busy for 0.65 of the time, the average one for 0.52
        {"access.dram_channel_imbalance_frac": (0.096,), "access.hottest_dram_channel_frac": (0.58,)},
        (("access.dram_channel_imbalance_frac", 0.104, 0.104 * 0.65),),
        other_limiters=("l2", "shared"),
    ),
    Case(
        "write_back", "memory", "dram", {"check.dram_write_share": 0.56}, None, {"check.dram_write_share": (0.54, 0.5)},
        other_limiters=("l2",),
    ),
    Case(
        "scattered_compressible_writes", "memory", "dram", {"access.compression_input_frac": 4.2}, None,
        {"access.compression_input_frac": (3.8,)},
        other_limiters=("l1", "shared"),
    ),
    Case(
        "large_working_set", "memory", "dram",
        {"access.dram_read_over_l2_size": 2.1, "access.l2_read_over_dram_read": 1.3, "access.stored_over_dram_read": 0.9,
         "check.dram_write_share": 0.48},
        None,
        {"access.dram_read_over_l2_size": (1.9,), "access.l2_read_over_dram_read": (1.2, 5.1),
         "access.stored_over_dram_read": (1,), "check.dram_write_share": (0.52,)},
        (("access.stored_over_dram_read", None, None), ("access.l2_read_over_dram_read", 4.9, None)),
        other_limiters=("l2",),
    ),
    Case(
        "scattered_stores", "latency", "l2",
        {"access.wavefronts_per_instruction": 4.7, "access.l2_input_share": 0.91, "utilisation.l2": 0.42, "utilisation.dram": 0.2,
         "access.local_frac": 0.48, "access.atomic_request_frac": 0.48, "utilisation.atomic": 0.28},
        0.8,
        {"access.wavefronts_per_instruction": (4.3,), "access.l2_input_share": (0.89,), "utilisation.l2": (0.38,),
         "access.store_waste_frac": (0.3,), "access.local_frac": (0.52,), "access.atomic_request_frac": (0.52,),
         "utilisation.atomic": (0.32,)},
        (("utilisation.compute", 0.5, 0.5), ("access.local_frac", None, 0.8), ("access.atomic_request_frac", None, 0.8),
         ("utilisation.atomic", None, 0.8)),
    ),
    Case(
        "l2_stores", "memory", "l2",
        {"access.l2_input_share": 0.76, "utilisation.l2": 0.42, "access.store_waste_frac": 0.052, "access.local_frac": 0.48,
         "access.atomic_request_frac": 0.48, "utilisation.dram": 0.3, "access.wavefronts_per_instruction": 4.4},
        0.7,
        {"access.l2_input_share": (0.74,), "utilisation.l2": (0.38,), "access.store_waste_frac": (0.048,),
         "access.local_frac": (0.52,), "access.atomic_request_frac": (0.52,)},
        (("access.store_waste_frac", None, 0.7), ("utilisation.compute", 0.5, 0.5)),
        other_limiters=("dram",),
    ),
    *(
        Case(
            "l2_stores", "memory", "l2",
            {"access.l2_input_share": 0.92, "utilisation.l2": 0.42, "access.wavefronts_per_instruction": 4.7,
             "utilisation.dram": 0.3,
             "utilisation.atomic": 0.28, "utilisation.busiest": 0.58}
            | {quantity: enough},
            0.7,
            {quantity: (too_little,)},
        )
        for quantity, enough, too_little in (
            ("access.wavefronts_per_instruction", 4.4, 4.7), ("access.wavefronts_per_instruction", None, 4.7),
            ("access.l2_input_share", 0.88, 0.92), ("utilisation.atomic", 0.32, 0.28), ("utilisation.busiest", 0.62, 0.58),
        )
    ),
    Case(
        "l2_traffic", "memory", "l2",
        {"utilisation.memory": 0.62, "access.l2_input_share": 0.73, "occupancy.waves": 1.05, "utilisation.dram": 0.3},
        0.7,
        {"utilisation.memory": (0.58,), "access.l2_input_share": (0.77,), "occupancy.waves": (0.95,)},
        (("occupancy.waves", None, 0.7), ("access.l2_input_share", None, 0.7), ("utilisation.compute", 0.4, 0.6)),
        other_limiters=("dram",),
    ),
    Case(
        "l2_traffic_of_few_blocks", "memory", "l2",
        {"utilisation.memory": 0.62, "access.l2_input_share": 0.73, "occupancy.waves": 0.95}, None,
        {"utilisation.memory": (0.58,), "access.l2_input_share": (0.77,), "occupancy.waves": (1.05,)},
        (("access.l2_input_share", None, None),),
        other_limiters=("dram",),
    ),
    Case(
        "l1_or_shared", "memory", "l1",
        {"utilisation.l1": 0.62, "access.unsplit_shared_bytes": 1024, "stalls.lg_throttle": 0.28}, None,
        {"utilisation.l1": (0.58,), "access.unsplit_shared_bytes": (0,), "stalls.lg_throttle": (0.32,)},
        (("access.unsplit_shared_bytes", None, None), ("stalls.lg_throttle", None, None)),
        other_limiters=("shared",),
    ),
    Case(
        "l1_traffic", "memory", "l1",
        {"utilisation.l1": 0.8, "access.unsplit_shared_bytes": 0, "stalls.lg_throttle": 0.28, "utilisation.dram": 0.1,
         "utilisation.compute": 0.5, "utilisation.issue": 0.5, "arithmetic.fp32_issue_frac": 0.6,
         "roofline.vector_flop_frac": 0.2, "access.shared_wavefront_share": 0.25},
        0.7,  # FP32 work takes 0.3 of the slots
        {"utilisation.l1": (0.58,), "access.unsplit_shared_bytes": (1024,)},
        (("access.shared_wavefront_share", 0.5, 0.6), ("utilisation.dram", 0.4, 0.6), ("utilisation.xu", 0.45, 0.55),
         ("utilisation.tensor", 0.35, 0.65), ("roofline.vector_flop_frac", 0.6, 0.4), ("roofline.vector_flop_frac", None, 0.5),
         ("utilisation.compute", 0.2, 0.8), ("arithmetic.fp32_issue_frac", None, None)),
        other_limiters=("shared", "l2"),
    ),
    Case(
        "local_memory_by_code", "latency", "occupancy", {"access.local_by_code_frac": 0.52}, None,
        {"access.local_by_code_frac": (0.48,), "access.local_bytes": (0, 1e9), "check.debug_build": (1,)},
    ),
    Case(
        "l1_traffic", "memory", "l1",
        {"utilisation.l1": 0.62, "access.unsplit_shared_bytes": 1024, "stalls.lg_throttle": 0.32,
         "arithmetic.fp32_issue_frac": 0.5, "utilisation.compute": 0.4},
        0.6,
        {"stalls.lg_throttle": (0.28,)},
    ),
    Case(
        "shared_traffic", "memory", "shared",
        {"utilisation.l1": 0.8, "access.shared_wavefront_share": 0.9, "utilisation.dram": 0.05, "utilisation.issue": 0.5,
         "arithmetic.fp32_issue_frac": 0.6, "roofline.vector_flop_frac": 0.2, "roofline.min_time_frac": 0.25},
        0.7,  # FP32 work takes 0.3 of the slots
        {"utilisation.l1": (0.58,)},
        (("utilisation.dram", 0.4, 0.6), ("utilisation.tensor", 0.35, 0.65), ("utilisation.fp64", 0.45, 0.55),
         ("utilisation.xu", 0.5, 0.5), ("access.shared_wavefront_share", 0.5, 0.6), ("utilisation.issue", 0.2, 0.8),
         ("arithmetic.fp32_issue_frac", None, None)),
        other_limiters=("l1", "l2"),
    ),
    Case(  # a transposition: nothing is computed, and nothing used again
        "shared_traffic", "memory", "shared",
        {"utilisation.l1": 0.62, "access.shared_wavefront_share": 0.9, "utilisation.issue": 0.2, "arithmetic.fp32_issue_frac": 0,
         "roofline.vector_flop_frac": 0, "roofline.min_time_frac": 0.3, "utilisation.tensor": 0, "utilisation.fp64": 0},
        None,
        {},
        (("utilisation.fp64", 0.4, 0.6), ("utilisation.tensor", 0.4, 0.6), ("roofline.vector_flop_frac", 0.2, 0.8),
         ("arithmetic.fp32_issue_frac", 0.75, 0.85)),
    ),
]  # fmt: skip
