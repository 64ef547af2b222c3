"""Kernels of which a finding of pipes, issue slots or tensor cores is reported, in numbers that are not taken from the rules."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

DRAWING = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>"

CASES = [
    Case(
        "fp64_divisions", "compute", "fp64",
        {"arithmetic.fp64_division_frac": 0.104, "utilisation.fp64": 0.31, "utilisation.xu": 0.1, "device.fp64_ratio": 2},
        0.104,
        {"arithmetic.fp64_division_frac": (0.096,), "utilisation.fp64": (0.29,)},
        # 16 approximations per cycle at a utilisation of 1, eight instructions for each, at 32 of FP64 per cycle
        (("utilisation.xu", 0.02, 0.02 * 16 * 8 / 32), ("device.fp64_ratio", 64, 0.104)),
    ),
    Case(
        "idle_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "roofline.vector_flop_frac": 0.4,
         "utilisation.fp32": 0.8, "arithmetic.fp32_unfused_frac": 0.48, "scheduler.working_frac": 0.9},
        0.85,  # 0.4 of FP32's peak takes 0.05 of the time at eight times the rate
        {"utilisation.tensor": (0.0105,), "device.tf32_speedup": (1.15,), "arithmetic.fp32_unfused_frac": (0.52,)},
        (("roofline.vector_flop_frac", 0.04, 0.895), ("roofline.vector_flop_frac", None, 0.8), ("utilisation.fp32", 0.2, 0.875),
         ("arithmetic.fp32_unfused_frac", None, 0.85), ("device.tensor_speedup", 4, 0.8)),
        name="sgemm_tiled(const float *, const float *, float *)",
        other_names=("copy(float *)", "upsample_bilinear_kernel(float *)"), other_limiters=("dram", "xu", "fp64"),
    ),
    Case(
        "idle_tensor_cores", "memory", "l1",
        {"utilisation.tensor": 0, "device.tf32_speedup": 1.25, "device.tensor_speedup": 2, "roofline.vector_flop_frac": 0.052,
         "utilisation.fp32": 0.1, "utilisation.dram": 0.2, "scheduler.working_frac": 0.95},
        0.75,  # by DRAM: 0.052 of FP32's peak takes half of that on tensor cores
        {"roofline.vector_flop_frac": (0.048,)},
        (("utilisation.dram", 0.7, 0.25), ("utilisation.dram", 0.02, 0.924)),
        name="matmul(float *)",
    ),
    Case(
        "idle_tensor_cores", "compute", "issue",
        {"utilisation.tensor": 0, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "utilisation.fp32": 0.32}, 0.96,
        {"utilisation.fp32": (0.28,)},
        (("roofline.vector_flop_frac", 0.16, 0.98),),
        name="matmul(float *)",
    ),
    Case(
        "idle_tensor_cores", "memory", "l1",
        {"utilisation.tensor": 0, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "arithmetic.fp32_issue_frac": 0.128,
         "roofline.vector_flop_frac": 0.024, "utilisation.fp32": 0.024, "utilisation.dram": 0.01, "scheduler.working_frac": 1},
        0.99,  # no register tiles: few multiply-adds of many instructions
        {"arithmetic.fp32_issue_frac": (0.09,)},
        name="void ReferenceGemm_kernel<signed char>(int)",
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tf32_speedup": 1.15, "device.tensor_speedup": 2, "roofline.vector_flop_frac": 0.6,
         "utilisation.fp32": 0.8, "arithmetic.fp32_unfused_frac": 0.48, "scheduler.working_frac": 0.9},
        0.6,
        {"utilisation.tensor": (0.0105,), "device.tf32_speedup": (1.25,), "device.tensor_speedup": (1.15,),
         "arithmetic.fp32_unfused_frac": (0.52,)},
        (("device.tf32_speedup", None, 0.6), ("utilisation.fp32", 0.4, 0.7), ("roofline.vector_flop_frac", None, 0.5),
         ("device.tensor_speedup", 8, 0.825), ("device.tensor_speedup", 1.25, 0.9 - 0.6 / 1.25)),
        name="sgemm_tiled(const float *, const float *, float *)",
        other_names=("copy(float *)", "upsample_bilinear_kernel(float *)"), other_limiters=("l1", "lsu", "shared"),
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "issue",
        {"utilisation.tensor": 0, "device.tensor_speedup": 8, "roofline.vector_flop_frac": 0.052, "utilisation.fp32": 0.28}, 0.9935,
        {"roofline.vector_flop_frac": (0.048,)},
        (("roofline.vector_flop_frac", 0.16, 0.98),),
        name="volta_sgemm_128x64_nn",
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "issue",
        {"utilisation.tensor": 0, "device.tensor_speedup": 2, "utilisation.fp32": 0.32}, 0.84, {"utilisation.fp32": (0.28,)},
        name="volta_sgemm_128x64_nn",
    ),
    Case(
        "convolution_without_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tensor_speedup": 1.25, "roofline.vector_flop_frac": 0.052, "utilisation.fp32": 0.28,
         "arithmetic.fp32_unfused_frac": 0.48},
        None,
        {"utilisation.tensor": (0.0105,), "device.tensor_speedup": (1.15,), "arithmetic.fp32_unfused_frac": (0.52,),
         "roofline.vector_flop_frac": (0.048,)},
        name="conv2d_kernel(float *)",
        other_names=("depthwise_conv2d(float *)", "conv2d_wgrad_kernel(float *)", "copy(float *)"), other_limiters=("xu",),
    ),
    Case(
        "convolution_without_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0, "device.tensor_speedup": 2, "utilisation.fp32": 0.32}, None, {"utilisation.fp32": (0.28,)},
        name="convolve(float *)",
    ),
    Case(
        "slower_tensor_instructions", "compute", "tensor",
        {"utilisation.tensor": 0.32, "roofline.tensor_path_frac": 0.6, "device.has_async_tensor_path": 1,
         "utilisation.memory_side": 0.8},
        1 - 0.32 * 0.6,  # shared memory, which is what is busy, is no bound: the faster instructions read it themselves
        {"utilisation.tensor": (0.28,), "roofline.tensor_path_frac": (0.96,), "device.has_async_tensor_path": (0,)},
        (("utilisation.l2", 0.8, 0.2), ("utilisation.dram", 0.7, 0.3), ("roofline.tensor_path_frac", 0.94, 1 - 0.32 * 0.94)),
        other_limiters=("fp32",),
    ),
    Case(
        "narrower_type", "compute", "tensor", {"device.narrower_speedup": 1.3, "utilisation.tensor": 0.62}, None,
        {"device.narrower_speedup": (1.1,), "utilisation.tensor": (0.58,)},
        other_limiters=("fp32",),
    ),
    Case("unnamed_pipe", "compute", None, {"utilisation.compute_unnamed": 0.104}, None, {"utilisation.compute_unnamed": (0.096,)}),
    Case(
        "instruction_issue", "compute", "issue",
        {"utilisation.compute": 0.62, "arithmetic.fp32_issue_frac": 0.78, "arithmetic.fp16_issue_frac": 0.78,
         "utilisation.memory_side": 0.2, "utilisation.issue": 0.5, "utilisation.alu": 0.7, "utilisation.xu": 0.6,
         "utilisation.fp32": 0.75, "roofline.min_time_frac": 0.75, "roofline.vector_flop_frac": 0.3},
        1 - 0.78 * 0.5,  # slots that FP32 takes; indices take the rest, the ALU and half of the FMA pipe
        {"utilisation.compute": (0.58,), "arithmetic.fp32_issue_frac": (0.82,), "arithmetic.fp16_issue_frac": (0.82,)},
        (("utilisation.memory_side", 0.4, 0.6), ("roofline.vector_flop_frac", 0.45, 0.55), ("utilisation.tensor", 0.5, 0.5),
         ("utilisation.fp64", 0.5, 0.5), ("utilisation.fp16", 0.5, 0.5), ("arithmetic.fp32_issue_frac", None, 0.7),
         ("arithmetic.fp16_issue_frac", None, 0.61), ("arithmetic.integer_fma_frac", 0.9, 0.8)),  # 0.039 is less than memory's 0.2
        other_names=(DRAWING,), other_limiters=("alu", "fp32", "lsu"),
    ),
    Case(
        "integer_pipe", "compute", "alu",
        {"utilisation.compute": 0.62, "utilisation.memory_side": 0.1, "utilisation.issue": 0.61, "utilisation.fp32": 0.2,
         "utilisation.alu": 0.62, "scheduler.compute_busy_frac": 0.94},
        0.7,  # of the issue slots, 0.31 are the ALU's
        {"utilisation.compute": (0.58,)},
        (("utilisation.issue", 0.41, 0.8), ("utilisation.alu", 0.4, 0.59), ("utilisation.memory_side", 0.5, 0.5),
         ("utilisation.fp32", 0.4, 0.6),
         ("utilisation.fp64", 0.4, 0.6), ("utilisation.tensor", 0.4, 0.6), ("utilisation.xu", 0.4, 0.6),
         ("scheduler.compute_busy_frac", 0.96, None)),
        other_names=(DRAWING,), other_limiters=("issue", "fp32"),
    ),
    Case(
        "multiply_add_issue", "compute", "issue", {"arithmetic.fp32_issue_frac": 0.82, "scheduler.issue_busy_frac": 0.76}, 0.2,
        {"arithmetic.fp32_issue_frac": (0.78,), "scheduler.issue_busy_frac": (0.945,)},
        (("scheduler.issue_busy_frac", 0.93, 0.02 / 0.95),),
        other_names=(DRAWING,), other_limiters=("fp32", "alu"),
    ),
    Case(
        "half_issue", "compute", "issue", {"arithmetic.fp16_issue_frac": 0.82, "scheduler.issue_busy_frac": 0.76}, 0.2,
        {"arithmetic.fp16_issue_frac": (0.78,), "scheduler.issue_busy_frac": (0.945,)},
        (("scheduler.issue_busy_frac", 0.93, 0.02 / 0.95),),
        other_names=(DRAWING,), other_limiters=("fp16", "alu"),
    ),
    Case(
        "indexed_constants", "compute", "address",
        {"utilisation.address": 0.62, "utilisation.constant_cache": 0.52, "scheduler.n_instructions_per_warp": 101}, None,
        {"utilisation.address": (0.58,), "utilisation.constant_cache": (0.48,), "scheduler.n_instructions_per_warp": (99,)},
        (("scheduler.n_instructions_per_warp", None, None),),
    ),
    Case(
        "random_numbers", "compute", "issue", {"utilisation.compute": 0.62}, None, {"utilisation.compute": (0.58,)},
        name=DRAWING, other_names=("kernel(float *)",), other_limiters=("fp32", "lsu"),
    ),
    Case(
        "inlined_generator", "compute", "issue",
        {"utilisation.compute": 0.62, "utilisation.memory_side": 0.2, "roofline.vector_flop_frac": 0.3, "utilisation.fp32": 0.5},
        0.7,
        {"utilisation.compute": (0.58,)},
        (("utilisation.fp64", 0.4, 0.6),),
        name="paths(float *, curandStateXORWOW *)", other_names=(DRAWING, "kernel(float *)"), other_limiters=("fp32", "lsu"),
    ),
    Case(
        "inlined_generator", "compute", "alu",
        {"utilisation.compute": 0.7, "utilisation.alu": 0.7, "utilisation.issue": 0.6, "scheduler.compute_busy_frac": 0.9}, 0.75,
        {"utilisation.compute": (0.58,)},
        name="paths(float *, curandStateXORWOW *)",
    ),
    Case(
        "lsu_instructions", "compute", "lsu",
        {"utilisation.lsu": 0.62, "stalls.barrier": 0.096, "access.shared_wavefronts": 1e6,
         "scheduler.n_instructions_per_warp": 150, "access.stored_over_dram_read": 0.1,
         "utilisation.dram": 0.1, "utilisation.issue": 0.5,
         "arithmetic.fp32_issue_frac": 0.6, "roofline.vector_flop_frac": 0.2, "roofline.min_time_frac": 0.25},
        0.7,
        {"utilisation.lsu": (0.58,), "stalls.barrier": (0.104,),  # with barriers `combined_in_shared`
         "access.generator_setup_frac": (0.62,)},
        (("utilisation.dram", 0.4, 0.6), ("utilisation.tensor", 0.5, 0.5), ("utilisation.fp64", 0.5, 0.5),
         ("utilisation.issue", 0.2, 0.8), ("arithmetic.fp32_issue_frac", None, None), ("access.generator_setup_frac", 0.58, 0.7)),
        other_limiters=("dram", "shared"),
        other_names=("init_curand_kernel(curandStateXORWOW *, unsigned long, int)",),
    ),
    *(
        Case(
            "lsu_instructions", "compute", "lsu",
            {"utilisation.lsu": 0.62, "stalls.barrier": 0.12, "access.shared_wavefronts": 1e6,
             "scheduler.n_instructions_per_warp": 190, "access.stored_over_dram_read": 0.12}
            | {quantity: enough},
            None,
            {quantity: (too_little,)},
        )
        for quantity, enough, too_little in (
            ("stalls.barrier", None, 0.12), ("access.shared_wavefronts", None, 1e6), ("access.shared_wavefronts", 0, 1e6),
            ("scheduler.n_instructions_per_warp", None, 190), ("access.stored_over_dram_read", None, 0.12),
            ("scheduler.n_instructions_per_warp", 210, 190),
            ("access.stored_over_dram_read", 0.13, 0.12),
        )
    ),
    Case(
        "special_functions", "compute", "xu", {"utilisation.xu": 0.52}, None, {"utilisation.xu": (0.48,)}, other_limiters=("fp32",)
    ),
    Case(
        "arithmetic_roof", "compute", "tensor",
        {"scheduler.compute_over_best": 1, "scheduler.pipe_busy_frac": 0.82, "arithmetic.integer_fma_frac": 0.78,
         "arithmetic.fp32_issue_frac": 0.78, "arithmetic.fp16_issue_frac": 0.78},
        None,
        {"scheduler.compute_over_best": (0.98,), "scheduler.pipe_busy_frac": (0.78,), "arithmetic.integer_fma_frac": (0.82,)},
        (("arithmetic.integer_fma_frac", None, None),),
        other_limiters=("alu", "lsu"),
    ),
    *(
        Case(
            "arithmetic_roof", "compute", "issue", {"scheduler.compute_over_best": 1, f"arithmetic.{kind}_issue_frac": 0.82},
            None,
            {f"arithmetic.{kind}_issue_frac": (0.78,)},
        )
        for kind in ("fp32", "fp16")
    ),
]  # fmt: skip
