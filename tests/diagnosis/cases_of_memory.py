"""Kernels of which a finding of memory is reported, in numbers that are written here and not taken from the rules."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

CASES = [
    Case(
        "uncoalesced_global_load", "memory", "dram",
        {"access.load_bytes_per_sector": 27, "access.load_sectors_per_request": 4.1, "access.load_waste_frac": 0.052,
         "access.dram_load_waste_frac": 0.3, "access.l2_load_waste_frac": 0.052, "scheduler.l1_busy_frac": 0.5,
         "stalls.lg_throttle": 0.1},
        {"access.load_bytes_per_sector": (29, 32), "access.load_sectors_per_request": (3.7, 1), "access.load_waste_frac": (0.048,),
         "access.l2_load_waste_frac": (0.048,)},
        also=(("access.l2_load_waste_frac", None),),
        other_limiters=("fp32", "issue"),
    ),
    *(
        Case(
            "uncoalesced_global_load", "memory", "dram",
            {"access.load_bytes_per_sector": 8, "access.load_sectors_per_request": 16, "access.load_waste_frac": 0.5,
             "access.dram_load_waste_frac": 0.3, "access.l2_load_waste_frac": 0, quantity: enough},
            {quantity: (too_little,)},
        )
        for quantity, enough, too_little in (("scheduler.l1_busy_frac", 0.62, 0.58), ("stalls.lg_throttle", 0.21, 0.19))
    ),
    Case(
        "uncoalesced_global_load", "latency", "lg_throttle",
        {"access.load_bytes_per_sector": 8, "access.load_sectors_per_request": 16, "access.load_waste_frac": 0.5,
         "stalls.lg_throttle": 0.4, "scheduler.working_frac": 0.5},
        {"access.load_waste_frac": (0.04,)},
        also=(("access.load_waste_frac", 0.3),),
    ),
    *(
        Case(
            "pointwise_chain", verdict, limiter,
            {"launch.fusable_frac": 0.5, "utilisation.dram": 0.4, "utilisation.l2": 0.3, "utilisation.memory_side": 0.6},
            {"launch.fusable_frac": (0.09, 0), "launch.fused_step_frac": (0.33,)},  # an optimizer's step is told as a whole
            name=name,
            other_names=("triton_poi_fused_cos_0", "add(float *)", "void at::native::reduce_kernel<512, 1>(T3)"),
            other_limiters=other_limiters,
        )
        for verdict, limiter, name, other_limiters in (
            ("memory", "dram", "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
             ("l1", "shared")),
            ("memory", "l2", "void at::native::multi_tensor_apply_kernel<TensorListMetadata<1>>(T1)", ()),
            ("latency", "long_scoreboard", "void at::native::elementwise_kernel<128, 4, at::native::AddFunctor<float>>(int)", ()),
        )
    ),
    Case(
        "async_copy_alignment", "memory", "l2", {"access.async_sectors_per_lookup": 1.07, "access.l2_excess_frac": 0.4},
        {"access.async_sectors_per_lookup": (1.03,)},
        other_limiters=("fp32",),
    ),
    Case(
        "global_atomics", "memory", "l2", {"utilisation.atomic": 0.31},
        {"utilisation.atomic": (0.29,)},
        has_gain=False,
        other_limiters=("dram",),
    ),
    Case(
        "remote_transfer", "latency", None, {"access.remote_traffic_frac": 0.41},
        {"access.remote_traffic_frac": (0.39,)},
        has_gain=False,
        name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
        other_names=("sgemm_kernel(float *)",),
    ),
    Case(
        "narrow_loads", "compute", "lsu",
        {"access.load_sectors_per_request": 1, "access.load_bytes_per_sector": 29, "scheduler.n_threads_per_instruction": 25},
        {"access.load_sectors_per_request": (0.9, 4.3, 16), "access.load_bytes_per_sector": (27,),
         "scheduler.n_threads_per_instruction": (23,)},
        also=(("access.load_sectors_per_request", 4),),
        has_gain=False,
        other_limiters=("dram", "fp32"),
    ),
    Case(
        "colliding_atomics", "latency", "lg_throttle",
        {"access.colliding_atomics_frac": 0.91, "access.hottest_l2_slice_frac": 0.91, "stalls.lg_throttle": 0.21,
         "stalls.drain": 0.19, "stalls.long_scoreboard": 0.19, "utilisation.dram": 0.05},
        {"access.colliding_atomics_frac": (0.89,), "stalls.lg_throttle": (0.19,)},
    ),
    *(
        Case(
            "colliding_atomics", "latency", reason,
            {"access.colliding_atomics_frac": 0.95, "access.hottest_l2_slice_frac": 0.5, f"stalls.{reason}": 0.22},
            {f"stalls.{reason}": (0.18,)},
        )
        for reason in ("drain", "long_scoreboard")
    ),
    Case(
        "scattered_load_requests", "memory", "l2",
        {"access.load_sectors_per_request": 17.5, "device.has_32_byte_loads": 0},
        {"device.has_32_byte_loads": (1,), "access.load_sectors_per_request": (16.5,), "access.load_bytes_per_sector": (4,),
         "access.excess_sectors_frac": (0.5,),
         "access.async_copy_frac": (0.52,)},
        has_gain=False,
    ),
    Case(
        "dram_channel_imbalance", "memory", "dram",
        {"access.dram_channel_imbalance_frac": 0.2, "access.hottest_dram_channel_frac": 0.65},
        {"access.dram_channel_imbalance_frac": (0.096,), "access.hottest_dram_channel_frac": (0.58,)},
        also=(("access.dram_channel_imbalance_frac", 0.104),),
        other_limiters=("l2", "shared"),
    ),
    Case(
        "write_back", "memory", "dram", {"check.dram_write_share": 0.56},
        {"check.dram_write_share": (0.54, 0.5)},
        has_gain=False,
        other_limiters=("l2",),
    ),
    Case(
        "scattered_compressible_writes", "memory", "dram", {"access.compression_input_frac": 4.2},
        {"access.compression_input_frac": (3.8,)},
        has_gain=False,
        other_limiters=("l1", "shared"),
    ),
    Case(
        "large_working_set", "memory", "dram",
        {"access.dram_read_over_l2_size": 2.1, "access.l2_read_over_dram_read": 1.3, "access.stored_over_dram_read": 0.9,
         "check.dram_write_share": 0.48},
        {"access.dram_read_over_l2_size": (1.9,), "access.l2_read_over_dram_read": (1.2, 5.1),
         "access.stored_over_dram_read": (1,), "check.dram_write_share": (0.52,)},
        also=(("access.stored_over_dram_read", None), ("access.l2_read_over_dram_read", 4.9)),
        has_gain=False,
        other_limiters=("l2",),
    ),
    Case(
        "scattered_stores", "latency", "l2",
        {"access.wavefronts_per_instruction": 4.7, "access.l2_input_share": 0.91, "utilisation.l2": 0.42, "utilisation.dram": 0.2,
         "access.local_frac": 0.48, "access.atomic_request_frac": 0.48, "utilisation.atomic": 0.28},
        {"access.wavefronts_per_instruction": (4.3,), "access.l2_input_share": (0.89,), "utilisation.l2": (0.38,),
         "access.store_waste_frac": (0.3,), "access.local_frac": (0.52,)},
        also=(("access.atomic_request_frac", None), ("utilisation.atomic", None)),
    ),
    Case(
        "l2_stores", "memory", "l2",
        {"access.l2_input_share": 0.76, "utilisation.l2": 0.42, "access.store_waste_frac": 0.052, "access.local_frac": 0.48,
         "access.atomic_request_frac": 0.48, "utilisation.dram": 0.3, "access.wavefronts_per_instruction": 4.4},
        {"access.l2_input_share": (0.74,), "utilisation.l2": (0.38,), "access.store_waste_frac": (0.048,),
         "access.local_frac": (0.52,)},
        also=(("access.store_waste_frac", None),),
        other_limiters=("dram",),
    ),
    *(
        Case(
            "l2_stores", "memory", "l2",
            {"access.l2_input_share": 0.92, "utilisation.l2": 0.42, "access.wavefronts_per_instruction": 4.7,
             "utilisation.dram": 0.3, "access.local_frac": 0.1, "access.atomic_request_frac": 0.1,
             "utilisation.atomic": 0.28, "utilisation.busiest": 0.58}
            | {quantity: enough},
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
        {"utilisation.memory": (0.58,), "access.l2_input_share": (0.77,), "occupancy.waves": (0.95,)},
        also=(("occupancy.waves", None),),
        other_limiters=("dram",),
    ),
    Case(
        "l2_traffic_of_few_blocks", "memory", "l2",
        {"utilisation.memory": 0.62, "access.l2_input_share": 0.73, "occupancy.waves": 0.95},
        {"utilisation.memory": (0.58,), "access.l2_input_share": (0.77,), "occupancy.waves": (1.05,)},
        also=(("access.l2_input_share", None),),
        has_gain=False,
        other_limiters=("dram",),
    ),
    Case(
        "l1_or_shared", "memory", "l1",
        {"utilisation.l1": 0.62, "access.unsplit_shared_bytes": 1024, "stalls.lg_throttle": 0.28},
        {"utilisation.l1": (0.58,), "access.unsplit_shared_bytes": (0,), "stalls.lg_throttle": (0.32,)},
        also=(("access.unsplit_shared_bytes", None), ("stalls.lg_throttle", None)),
        has_gain=False,
        other_limiters=("shared",),
    ),
    Case(
        "l1_traffic", "memory", "l1",
        {"utilisation.l1": 0.8, "access.unsplit_shared_bytes": 0, "stalls.lg_throttle": 0.28, "utilisation.dram": 0.1,
         "utilisation.compute": 0.5, "utilisation.issue": 0.5, "arithmetic.fp32_issue_frac": 0.6,
         "roofline.vector_flop_frac": 0.2, "access.shared_wavefront_share": 0.25, "access.wavefronts_per_instruction": 1},
        {"utilisation.l1": (0.58,), "access.unsplit_shared_bytes": (1024,)},
        without_gain=(("arithmetic.fp32_issue_frac", None), ("access.wavefronts_per_instruction", None)),
        other_limiters=("shared", "l2"),
    ),
    Case(
        "local_memory_by_code", "latency", "occupancy", {"access.local_by_code_frac": 0.52},
        {"access.local_by_code_frac": (0.48,), "access.local_bytes": (0, 1e9), "check.debug_build": (1,)},
        has_gain=False,
    ),
    Case(
        "l1_traffic", "memory", "l1",
        {"utilisation.l1": 0.62, "access.unsplit_shared_bytes": 1024, "stalls.lg_throttle": 0.32,
         "arithmetic.fp32_issue_frac": 0.5, "utilisation.compute": 0.4, "access.wavefronts_per_instruction": 1},
        {"stalls.lg_throttle": (0.28,)},
    ),
    Case(
        "shared_traffic", "memory", "shared",
        {"utilisation.l1": 0.8, "access.shared_wavefront_share": 0.9, "utilisation.dram": 0.05, "utilisation.issue": 0.5,
         "arithmetic.fp32_issue_frac": 0.6, "roofline.vector_flop_frac": 0.2, "roofline.min_time_frac": 0.25},
        {"utilisation.l1": (0.58,)},
        without_gain=(("arithmetic.fp32_issue_frac", None),),
        other_limiters=("l1", "l2"),
    ),
    *(
        Case(  # a transposition: nothing is computed, and nothing used again
            "shared_traffic", "memory", "shared",
            {"utilisation.l1": 0.62, "access.shared_wavefront_share": 0.9, "utilisation.issue": 0.2, "utilisation.tensor": 0,
             "utilisation.fp64": 0, "arithmetic.fp32_issue_frac": 0, "roofline.vector_flop_frac": 0, "roofline.min_time_frac": 0.3}
            | computed,
            has_gain=bool(computed),
        )
        for computed in (
            {}, {"utilisation.fp64": 0.4}, {"utilisation.tensor": 0.4}, {"roofline.vector_flop_frac": 0.2},
            {"arithmetic.fp32_issue_frac": 0.75},
        )
    ),
]  # fmt: skip
