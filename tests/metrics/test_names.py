from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.names import matches, short_name


@pytest.mark.parametrize(
    ("function", "demangled", "expected"),
    [
        ("Kernel2", "void cutlass::Kernel2<cutlass_80_gemm_f16>(T1)", "Kernel2<cutlass_80_gemm_f16>"),
        (
            "vectorized_elementwise_kernel",
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int)",
            "vectorized_elementwise_kernel<CUDAFunctor_add>",
        ),
        ("gemm", "gemm(float *, float *)", "gemm"),
        ("Kernel", "Kernel(int)", "Kernel"),
        (
            "vectorized_elementwise_kernel",
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, "
            "at::native::GeluType)::[lambda() (instance 2)]::operator ()() const::[lambda(float) (instance 1)], int>(int, T2)",
            "vectorized_elementwise_kernel<GeluCUDAKernelImpl>",
        ),
        (  # as PyTorch's profiler has it
            "vectorized_elementwise_kernel",
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::lerp_scalar_kernel("
            "at::TensorIteratorBase&, c10::Scalar const&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(int, T2)",
            "vectorized_elementwise_kernel<lerp_scalar_kernel>",
        ),
        (
            "distribution_elementwise_grid_stride_kernel",
            "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, void at::native::templates::"
            "cuda::uniform_and_transform<float, at::CUDAGeneratorImpl *, void at::native::templates::cuda::uniform_kernel<at::"
            "CUDAGeneratorImpl *>(at::TensorIteratorBase &, double)::[lambda() (instance 1)]>>(long)",
            "distribution_elementwise_grid_stride_kernel<uniform_kernel>",
        ),
        ("reduce_kernel", "reduce_kernel<run(int)::[lambda(int) (instance 1)]>(T1)", "reduce_kernel"),
        (
            "Kernel",
            "void cutlass::Kernel<cutlass::gemm::kernel::B2bGemm<cutlass::gemm::GemmShape<(int)32>>>(T1::Params)",
            "Kernel<B2bGemm>",
        ),
        (
            "device_kernel",
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::Mainloop<2>>>>(T1::Params)",
            "device_kernel<FlashAttnFwdSm90>",
        ),
        (
            "_kernel_agent",
            "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__reduce::DrainAgent<int>, int>(T2, T3)",
            "_kernel_agent<DrainAgent>",
        ),
        (
            "kernel",
            "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, double, (bool)0, cublasGemvParamsEx<int>>(T13)",
            "gemvx::kernel",
        ),
        ("kernel", "void waves::<unnamed>::kernel<float>(T1 *)", "waves::kernel"),
        ("kernel", "heat::kernel(float *)", "heat::kernel"),
        ("kernel", "heat::kernel", "heat::kernel"),
        ("Kernel", "void cutlass::Kernel<T1>(T1::Params)", "cutlass::Kernel"),
        ("kernel", "void kernel<heat::Kernel<float>>(T1)", "kernel"),  # the class is of the user's, and no namespace
        ("kernel", "kernel(float *)", "kernel"),
        ("solve", "heat::solve(float *)", "solve"),
    ],
)
def test_generic_names_get_the_argument_that_tells_them_apart(function: str, demangled: str, expected: str) -> None:
    frame = pl.DataFrame({"function": [function], "name": [demangled]})
    assert frame.select(short_name(pl.col("function"), pl.col("name"))).item() == expected


@pytest.mark.parametrize(
    ("pattern", "name", "does_match"),
    [
        (r"^\w+$", "my_kernel7", True),
        (r"^\w+$", "kernel<float>", False),
        (r"^[\w:]+$", "at::native", True),
        (r"x\d+$", "tile_x128", True),
        (r"\bgemm\b", "void gemm<float>", True),
        (r"\bgemm\b", "my_gemm", False),
        (r"^\w+$", "größe", False),
    ],
)
def test_classes_of_patterns_are_those_of_identifiers(pattern: str, name: str, does_match: bool) -> None:
    assert pl.select(matches(pl.lit(name), pattern)).item() is does_match
