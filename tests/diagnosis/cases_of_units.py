"""Kernels of which a finding of pipes, issue slots or tensor cores is reported, in numbers that are not taken from the rules."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

DRAWING = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>"

CASES = [
    Case(
        "fp64_divisions", "compute", "fp64",
        {"arithmetic.fp64_division_frac": 0.104, "utilisation.fp64": 0.31, "utilisation.xu": 0.1, "device.fp64_ratio": 2},
        {"arithmetic.fp64_division_frac": (0.096,), "utilisation.fp64": (0.29,)},
    ),
    Case(
        "idle_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "roofline.vector_flop_frac": 0.4,
         "utilisation.fp32": 0.8, "arithmetic.fp32_unfused_frac": 0.48, "scheduler.working_frac": 0.9},
        {"utilisation.tensor": (0.0105,), "device.tf32_speedup": (1.15,), "arithmetic.fp32_unfused_frac": (0.52,)},
        also=(("roofline.vector_flop_frac", 0.04), ("roofline.vector_flop_frac", None),
              ("utilisation.fp32", 0.2), ("arithmetic.fp32_unfused_frac", None)),
        name="sgemm_tiled(const float *, const float *, float *)",
        other_names=("copy(float *)", "upsample_bilinear_kernel(float *)"),
        other_limiters=("dram", "xu", "fp64"),
    ),
    Case(
        "idle_tensor_cores", "memory", "l1",
        {"utilisation.tensor": 0, "device.tf32_speedup": 1.25, "device.tensor_speedup": 2, "roofline.vector_flop_frac": 0.052,
         "utilisation.fp32": 0.1, "utilisation.dram": 0.2, "scheduler.working_frac": 0.95},
        {"roofline.vector_flop_frac": (0.048,)},
        name="matmul(float *)",
    ),
    Case(
        "idle_tensor_cores", "compute", "issue",
        {"utilisation.tensor": 0, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "utilisation.fp32": 0.32},
        {"utilisation.fp32": (0.28,)},
        also=(("roofline.vector_flop_frac", 0.16),),
        name="matmul(float *)",
    ),
    Case(
        "idle_tensor_cores", "memory", "l1",
        {"utilisation.tensor": 0, "device.tf32_speedup": 8, "device.tensor_speedup": 8, "arithmetic.fp32_issue_frac": 0.128,
         "roofline.vector_flop_frac": 0.024, "utilisation.fp32": 0.024, "utilisation.dram": 0.01, "scheduler.working_frac": 1},
        {"arithmetic.fp32_issue_frac": (0.09,)},
        name="void ReferenceGemm_kernel<signed char>(int)",
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tf32_speedup": 1.15, "device.tensor_speedup": 2, "roofline.vector_flop_frac": 0.6,
         "utilisation.fp32": 0.8, "arithmetic.fp32_unfused_frac": 0.48, "scheduler.working_frac": 0.9},
        {"utilisation.tensor": (0.0105,), "device.tf32_speedup": (1.25,), "device.tensor_speedup": (1.15,),
         "arithmetic.fp32_unfused_frac": (0.52,)},
        also=(("device.tf32_speedup", None), ("utilisation.fp32", 0.4),
              ("roofline.vector_flop_frac", None), ("device.tensor_speedup", 8), ("device.tensor_speedup", 1.25)),
        name="sgemm_tiled(const float *, const float *, float *)",
        other_names=("copy(float *)", "upsample_bilinear_kernel(float *)"),
        other_limiters=("l1", "lsu", "shared"),
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "issue",
        {"utilisation.tensor": 0, "device.tensor_speedup": 8, "roofline.vector_flop_frac": 0.052, "utilisation.fp32": 0.28},
        {"roofline.vector_flop_frac": (0.048,)},
        also=(("roofline.vector_flop_frac", 0.16),),
        name="volta_sgemm_128x64_nn",
    ),
    Case(
        "idle_tensor_cores_of_halves", "compute", "issue",
        {"utilisation.tensor": 0, "device.tensor_speedup": 2, "utilisation.fp32": 0.32},
        {"utilisation.fp32": (0.28,)},
        name="volta_sgemm_128x64_nn",
    ),
    Case(
        "convolution_without_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0.0095, "device.tensor_speedup": 1.25, "roofline.vector_flop_frac": 0.052, "utilisation.fp32": 0.28,
         "arithmetic.fp32_unfused_frac": 0.48},
        {"utilisation.tensor": (0.0105,), "device.tensor_speedup": (1.15,), "arithmetic.fp32_unfused_frac": (0.52,),
         "roofline.vector_flop_frac": (0.048,)},
        has_gain=False,
        name="conv2d_kernel(float *)",
        other_names=("depthwise_conv2d(float *)", "conv2d_wgrad_kernel(float *)", "copy(float *)"),
        other_limiters=("xu",),
    ),
    Case(
        "convolution_without_tensor_cores", "compute", "fp32",
        {"utilisation.tensor": 0, "device.tensor_speedup": 2, "utilisation.fp32": 0.32},
        {"utilisation.fp32": (0.28,)},
        has_gain=False,
        name="convolve(float *)",
    ),
    Case(
        "slower_tensor_instructions", "compute", "tensor",
        {"utilisation.tensor": 0.32, "roofline.tensor_path_frac": 0.6, "device.has_async_tensor_path": 1,
         "utilisation.memory_side": 0.8},
        {"utilisation.tensor": (0.28,), "roofline.tensor_path_frac": (0.96,), "device.has_async_tensor_path": (0,)},
        also=(("roofline.tensor_path_frac", 0.94),),
        other_limiters=("fp32",),
    ),
    Case(
        "narrower_type", "compute", "tensor", {"device.narrower_speedup": 1.3, "utilisation.tensor": 0.62},
        {"device.narrower_speedup": (1.1,), "utilisation.tensor": (0.58,)},
        has_gain=False,
        other_limiters=("fp32",),
    ),
    Case(
        "unnamed_pipe", "compute", None, {"utilisation.compute_unnamed": 0.104},
        {"utilisation.compute_unnamed": (0.096,)},
        has_gain=False,
    ),
    Case(
        "instruction_issue", "compute", "issue",
        {"utilisation.compute": 0.62, "arithmetic.fp32_issue_frac": 0.78, "arithmetic.fp16_issue_frac": 0.78,
         "utilisation.memory_side": 0.2, "utilisation.issue": 0.5, "utilisation.alu": 0.7, "utilisation.xu": 0.6,
         "utilisation.fp32": 0.75, "roofline.min_time_frac": 0.75, "roofline.vector_flop_frac": 0.3},
        {"utilisation.compute": (0.58,), "arithmetic.fp32_issue_frac": (0.82,), "arithmetic.fp16_issue_frac": (0.82,)},
        also=(("arithmetic.fp32_issue_frac", None), ("arithmetic.fp16_issue_frac", None)),
        without_gain=(("arithmetic.fp32_issue_frac", None),),
        other_names=(DRAWING,),
        other_limiters=("alu", "fp32", "lsu"),
    ),
    Case(
        "integer_pipe", "compute", "alu",
        {"utilisation.compute": 0.62, "utilisation.memory_side": 0.1, "utilisation.issue": 0.61, "utilisation.fp32": 0.2,
         "utilisation.alu": 0.62, "scheduler.compute_busy_frac": 0.94},
        {"utilisation.compute": (0.58,)},
        without_gain=(("scheduler.compute_busy_frac", 0.96),),
        other_names=(DRAWING,),
        other_limiters=("issue", "fp32"),
    ),
    Case(
        "multiply_add_issue", "compute", "issue",
        {"arithmetic.fp32_issue_frac": 0.82, "scheduler.issue_busy_frac": 0.76},
        {"arithmetic.fp32_issue_frac": (0.78,), "scheduler.issue_busy_frac": (0.945,)},
        also=(("scheduler.issue_busy_frac", 0.93),),
        other_names=(DRAWING,),
        other_limiters=("fp32", "alu"),
    ),
    Case(
        "half_issue", "compute", "issue", {"arithmetic.fp16_issue_frac": 0.82, "scheduler.issue_busy_frac": 0.76},
        {"arithmetic.fp16_issue_frac": (0.78,), "scheduler.issue_busy_frac": (0.945,)},
        also=(("scheduler.issue_busy_frac", 0.93),),
        other_names=(DRAWING,),
        other_limiters=("fp16", "alu"),
    ),
    Case(
        "indexed_constants", "compute", "address",
        {"utilisation.address": 0.62, "utilisation.constant_cache": 0.52, "scheduler.n_instructions_per_warp": 101},
        {"utilisation.address": (0.58,), "utilisation.constant_cache": (0.48,), "scheduler.n_instructions_per_warp": (99,)},
        has_gain=False,
    ),
    Case(
        "random_numbers", "compute", "issue", {"utilisation.compute": 0.62},
        {"utilisation.compute": (0.58,)},
        has_gain=False,
        name=DRAWING,
        other_names=("kernel(float *)",),
        other_limiters=("fp32", "lsu"),
    ),
    Case(
        "inlined_generator", "compute", "issue",
        {"utilisation.compute": 0.62, "utilisation.memory_side": 0.2, "roofline.vector_flop_frac": 0.3, "utilisation.fp32": 0.5,
         "utilisation.issue": 0.62, "utilisation.alu": 0.5, "scheduler.compute_busy_frac": 0.97},
        {"utilisation.compute": (0.58,)},
        name="paths(float *, curandStateXORWOW *)",
        other_names=(DRAWING, "kernel(float *)"),
        other_limiters=("fp32", "lsu"),
    ),
    Case(
        "inlined_generator", "compute", "alu",
        {"utilisation.compute": 0.7, "utilisation.alu": 0.7, "utilisation.issue": 0.6, "scheduler.compute_busy_frac": 0.9},
        {"utilisation.compute": (0.58,)},
        name="paths(float *, curandStateXORWOW *)",
    ),
    Case(
        "lsu_instructions", "compute", "lsu",
        {"utilisation.lsu": 0.62, "stalls.barrier": 0.096, "access.shared_wavefronts": 1e6,
         "scheduler.n_instructions_per_warp": 150, "access.stored_over_dram_read": 0.1,
         "utilisation.dram": 0.1, "utilisation.issue": 0.5,
         "arithmetic.fp32_issue_frac": 0.6, "roofline.vector_flop_frac": 0.2, "roofline.min_time_frac": 0.25},
        {"utilisation.lsu": (0.58,), "stalls.barrier": (0.104,),  # with barriers `combined_in_shared`
         "access.generator_setup_frac": (0.62,)},
        also=(("access.generator_setup_frac", 0.58),),
        without_gain=(("arithmetic.fp32_issue_frac", None),),
        other_names=("init_curand_kernel(curandStateXORWOW *, unsigned long, int)",),
        other_limiters=("dram", "shared"),
    ),
    *(
        Case(
            "lsu_instructions", "compute", "lsu",
            {"utilisation.lsu": 0.62, "stalls.barrier": 0.12, "access.shared_wavefronts": 1e6,
             "scheduler.n_instructions_per_warp": 190, "access.stored_over_dram_read": 0.12}
            | {quantity: enough},
            {quantity: (too_little,)},
            has_gain=False,
        )
        for quantity, enough, too_little in (
            ("stalls.barrier", None, 0.12), ("access.shared_wavefronts", None, 1e6), ("access.shared_wavefronts", 0, 1e6),
            ("scheduler.n_instructions_per_warp", None, 190), ("access.stored_over_dram_read", None, 0.12),
            ("scheduler.n_instructions_per_warp", 210, 190),
            ("access.stored_over_dram_read", 0.13, 0.12),
        )
    ),
    Case(
        "special_functions", "compute", "xu", {"utilisation.xu": 0.52},
        {"utilisation.xu": (0.48,)},
        has_gain=False,
        other_limiters=("fp32",),
    ),
    Case(
        "arithmetic_roof", "compute", "tensor",
        {"scheduler.compute_over_best": 1, "scheduler.pipe_busy_frac": 0.82, "arithmetic.integer_fma_frac": 0.78,
         "arithmetic.fp32_issue_frac": 0.78, "arithmetic.fp16_issue_frac": 0.78},
        {"scheduler.compute_over_best": (0.98,), "scheduler.pipe_busy_frac": (0.78,), "arithmetic.integer_fma_frac": (0.82,)},
        also=(("arithmetic.integer_fma_frac", None),),
        has_gain=False,
        other_limiters=("alu", "lsu"),
    ),
    *(
        Case(
            "arithmetic_roof", "compute", "issue",
            {"scheduler.compute_over_best": 1, f"arithmetic.{kind}_issue_frac": 0.82},
            {f"arithmetic.{kind}_issue_frac": (0.78,)},
            has_gain=False,
        )
        for kind in ("fp32", "fp16")
    ),
]  # fmt: skip
