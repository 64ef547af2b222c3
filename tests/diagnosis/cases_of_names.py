"""Kernels of which a finding is reported by what they are called, and others that are called much like them."""

from __future__ import annotations

from tests.diagnosis.cases_by_hand import Case

SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForward<4, float, float, float, at::native::<unnamed>::SoftMaxForwardEpilogue>"
NO_ATTENTION = (
    "void at::native::<unnamed>::cunn_SoftMaxForward<4, float, at::native::<unnamed>::LogSoftMaxForwardEpilogue>",
    "void softmax_warp_forward<float, float, float, 10, true>",
    "void softmax_warp_forward<float, float, float, (int)10, (bool)1, false>",
    "softmaxLossUnnormalized(_softmaxLoss_t)",
    "kernel(float *)",
)
COPY = "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float)]"
CONVERTING = f"void at::native::unrolled_elementwise_kernel<{COPY}, LoadWithCast<1>, StoreWithCast<1>>"
MOVING = f"void at::native::elementwise_kernel<128, 4, void at::native::gpu_kernel_impl_nocast<{COPY}>>"
THRUST = (
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::"
)
FILLING = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char *, 1>>"

CASES = [
    Case(
        "attention_in_parts", "memory", "dram", {"launch.is_between_products": 1},
        {"launch.is_between_products": (0,)},
        name=SOFTMAX,
        other_names=NO_ATTENTION,
    ),
    Case("attention_in_parts", "memory", "dram", {"launch.is_between_products": 1}, name="triton_per_fused_softmax_0"),
    Case(
        "attention_in_parts", "memory", "dram", {"launch.is_between_products": 1},
        name="void softmax_warp_backward<float, float, float, 10, false>",
    ),
    *(
        Case(
            "scores_in_memory", verdict, limiter,
            {"launch.is_product_of_attention": 1, "launch.is_pointwise_of_attention": 0, "utilisation.tensor": 0.2,
             "utilisation.fp32": 0.05},
            {"launch.is_product_of_attention": (0,)},
            name=name,
        )
        for verdict, limiter, name in (
            ("memory", "dram", "nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NTT"), ("compute", "tensor", "my_gemm(float *)"),
        )
    ),
    Case(
        "scores_in_memory", "memory", "dram",
        {"launch.is_product_of_attention": 0, "launch.is_pointwise_of_attention": 1, "utilisation.fp32": 0.3},
        {"launch.is_pointwise_of_attention": (0,)},
        name="void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)",
    ),
    Case(
        "unfused_optimizer", "memory", "dram", {"launch.fused_step_frac": 1 / 3, "utilisation.dram": 0.45},
        {"launch.fused_step_frac": (None,)},
        also=(("launch.fused_step_frac", 1),),
        without_gain=(("utilisation.dram", None),),
        name="void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)",
    ),
    Case("unfused_optimizer", "overhead", "launch", {"launch.fused_step_frac": 1 / 3, "utilisation.dram": 0.009}),
    # What spares a launch does so whatever bounds it.
    Case("unfused_optimizer", "unknown", None, {"launch.fused_step_frac": 1 / 3, "utilisation.dram": 0.45}),
    Case("unfused_cross_entropy", "unknown", None, {"launch.fused_loss_frac": 1 / 8, "utilisation.dram": 0.45}),
    Case("type_conversion", "unknown", None, {}, name=CONVERTING),
    Case("layout_copy", "unknown", None, {}, name=MOVING),
    Case("fill", "unknown", None, {}, name=FILLING),
    Case("attention_in_parts", "unknown", None, {"launch.is_between_products": 1}, name=SOFTMAX),
    Case(
        "unfused_cross_entropy", "memory", "dram", {"launch.fused_loss_frac": 1 / 8, "utilisation.dram": 0.45},
        {"launch.fused_loss_frac": (None,)},
        also=(("launch.fused_loss_frac", 0),),
        name="void at::native::<unnamed>::cunn_SoftMaxForward<4, float, at::native::<unnamed>::LogSoftMaxForwardEpilogue>",
    ),
    Case("unfused_cross_entropy", "latency", "grid", {"launch.fused_loss_frac": 0, "utilisation.dram": 0.01}),
    Case(
        "sorted_embedding_gradient", "latency", "grid", {"launch.is_of_embedding_sort": 1},
        {"launch.is_of_embedding_sort": (0, None)},
    ),
    Case("sorted_embedding_gradient", "overhead", "launch", {"launch.is_of_embedding_sort": 1}),
    *(
        Case(
            "unfused_pointwise", verdict, limiter,
            {"launch.kept_if_fused_frac": 1 / 3, "utilisation.dram": 0.45, "utilisation.fp32": 0.1,
             "roofline.vector_flop_frac": 0.02, "launch.fusable_frac": 0, "launch.is_of_optimizer": 0,
             "launch.is_pointwise_of_attention": 0},
            {"launch.kept_if_fused_frac": (None,), "launch.fusable_frac": (0.11,), "launch.is_of_optimizer": (1,),
             "launch.is_pointwise_of_attention": (1,), "launch.fused_loss_frac": (0, 0.1)},
            also=(("launch.kept_if_fused_frac", 0),),
            name=name,
            other_names=("add(float *)", "void at::native::reduce_kernel<512, 1>(T3)", "triton_poi_fused_add_0",
                         "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, 4>(int)"),
        )
        for verdict, limiter, name in (
            ("memory", "dram", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"),
            ("latency", "grid", "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<float>>(int)"),
            ("overhead", "launch", "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>(int)"),
        )
    ),
    Case(
        "softmax_of_attention", "memory", "dram", {"duration_ns": 5100, "launch.is_between_products": 0},
        {"duration_ns": (4900,), "launch.is_between_products": (1,)},
        also=(("launch.is_between_products", None),),
        has_gain=False,
        name=SOFTMAX,
        other_names=NO_ATTENTION,
    ),
    Case(
        "type_conversion", "memory", "dram", {"launch.fused_loss_frac": None},
        {"launch.fused_loss_frac": (0,)},
        name=CONVERTING,
        other_names=(MOVING, FILLING, "kernel(float *)"),
    ),
    *(
        Case("type_conversion", "memory", "dram", {}, name=name)
        for name in (
            "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>",
            "void at::native::vectorized_elementwise_kernel<8, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase &)>",
            "void at::native::vectorized_elementwise_kernel<4, at::native::float16tofloat32_copy_kernel_cuda()>",
            f"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<{COPY}>>",
            "triton_poi_fused__to_copy_0",
        )
    ),
    Case("layout_copy", "memory", "dram", {}, name=MOVING, other_names=(CONVERTING, FILLING, "kernel(float *)")),
    *(
        Case("layout_copy", "memory", "dram", {}, name=name)
        for name in (
            "void at::native::<unnamed>::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>",
            "triton_poi_fused_clone_3", "triton_poi_fused_cat_12", "triton_poi_fused_copy_0",
        )
    ),
    Case(
        "fill", "memory", "dram", {},
        name=FILLING,
        other_names=(MOVING, "fill_vector(float *)", "triton_poi_fused_zeros_add_0"),
    ),
    Case(
        "fill", "overhead", "launch", {},
        name=f"{THRUST}__uninitialized_fill::functor<thrust::device_ptr<int>, int>>>",
        other_names=(f"{THRUST}__uninitialized_copy::functor<int *, int *>>>", f"my_kernel<{THRUST}__fill::functor<int *, int>>>"),
    ),
    *(
        Case("fill", "memory", "dram", {}, name=f"triton_poi_fused_{what}_0")
        for what in ("zeros", "full", "new_zeros", "new_ones", "ones_like", "full_like", "fill")
    ),
]  # fmt: skip
