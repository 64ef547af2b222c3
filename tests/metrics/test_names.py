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
