from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.names import family, short_name


@pytest.mark.parametrize(
    ("demangled", "expected"),
    [
        ("void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)", "pytorch"),
        ("triton_poi_fused_mul_silu_1", "triton"),
        ("ampere_sgemm_128x64_nn", "library"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(T1::Params)", "library"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)", "library"),
        ("matmul(float *, float *, int)", "user"),
        ("void transpose<float>(T1 *)", "user"),
    ],
)
def test_family_is_told_from_the_demangled_name(demangled: str, expected: str) -> None:
    frame = pl.DataFrame({"name": [demangled]})
    assert frame.select(family(pl.col("name"))).item() == expected


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
    ],
)
def test_generic_names_get_the_argument_that_tells_them_apart(function: str, demangled: str, expected: str) -> None:
    frame = pl.DataFrame({"function": [function], "name": [demangled]})
    assert frame.select(short_name(pl.col("function"), pl.col("name"))).item() == expected
