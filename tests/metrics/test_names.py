from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.names import matches, range_names, short_name


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


def test_operators_of_pytorch_are_named_alike_in_every_call() -> None:
    names = [
        "aten::mm, seq = 5, op_id = 7, sizes = [[8, 4], [4, 2]], input_op_ids = [(6,0), (2,1)]",
        "aten::relu, op_id = 9",
        None,
    ]
    ranges = pl.DataFrame({"nvtx": [names, ["step 3, seq 1"], []]}, schema={"nvtx": pl.List(pl.String)})
    assert ranges.select(range_names(pl.col("nvtx")))["nvtx"].to_list() == [
        ["aten::mm, sizes = [[8, 4], [4, 2]]", "aten::relu", None],
        ["step 3, seq 1"],
        [],
    ]


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
