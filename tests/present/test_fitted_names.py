"""Names cut to fit: the argument of a generic function is left, and where two names begin alike, what differs."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ncuroof.present.texts.layout import fitted_names

COPY = "unrolled_elementwise_kernel<direct_copy_kernel_cuda>"
BACKWARD, FORWARD = (f"cudnn_generated_fort_native_sdpa_sm90_flash_{way}_wgmma_f16" for way in ("bprop", "fprop"))


def alone(name: str, n_cells: int) -> str:
    (shown,) = fitted_names([name], [n_cells])
    return shown


@pytest.mark.parametrize(
    ("name", "n_cells", "shown"),
    [
        ("reduce_kernel<sum_functor>", 26, "reduce_kernel<sum_functor>"),
        ("reduce_kernel<sum_functor>", 25, "reduce_kern…<sum_functor>"),
        ("reduce_kernel<sum_functor>", 21, "reduce_…<sum_functor>"),  # 8 cells of the function
        ("reduce_kernel<sum_functor>", 20, "reduce_…<sum_funct…>"),
        ("reduce_kernel<sum_functor>", 16, "reduce_…<sum_f…>"),  # 6 of the argument
        ("reduce_kernel<sum_functor>", 15, "reduce_kernel<…"),
        ("Kernel2<cutlass_80_tensorop_s1688gemm>", 28, "Kernel2<cutlass_80_tensoro…>"),
        (FORWARD, 20, "cudnn_generated_for…"),
        ("操作" * 9 + "<f>", 20, "操作操作操作操作…<f>"),  # two cells each
        ("x", 0, "…"),
    ],
)
def test_a_name_is_cut_in_what_tells_least(name: str, n_cells: int, shown: str) -> None:
    assert alone(name, n_cells) == shown
    assert cell_len(shown) <= max(n_cells, 1)


@pytest.mark.parametrize(
    ("names", "n_cells", "shown"),
    [
        ([BACKWARD, FORWARD], 19, ["cudnn_g…bprop_wgmm…", "cudnn_g…fprop_wgmm…"]),
        ([BACKWARD, FORWARD, BACKWARD], 60, [BACKWARD, FORWARD, BACKWARD]),
        ([FORWARD, FORWARD], 20, ["cudnn_generated_for…"] * 2),  # one name: what follows it tells
        # as arguments differ in what is left, no word of theirs is moved
        ([COPY, COPY.replace("copy", "read")], 28, ["unrolle…<direct_copy_kerne…>", "unrolle…<direct_read_kerne…>"]),
        (
            ["Kernel2<cutlass_80_tensorop_s1688gemm_64x64>", "Kernel2<cutlass_80_tensorop_i16832gemm_s8>"],
            28,
            ["Kernel2…s1688gemm_64x64>", "Kernel2…i16832gemm_s8>"],
        ),
        # one is the beginning of the other
        (["stencil_of_order_eight", "stencil_of_order_eight_2"], 16, ["stencil…eight", "stencil…eight_2"]),
        # a difference in the first word leaves nothing to leave out
        (["abcdefghijklm_n", "abcdefghijklmo_n"], 10, ["abcdefghi…"] * 2),
        (["gather_rows", "scatter_rows"], 8, ["gather_…", "scatter…"]),
    ],
)
def test_names_that_begin_alike_are_cut_before_what_differs(names: list[str], n_cells: int, shown: list[str]) -> None:
    assert fitted_names(names, [n_cells] * len(names)) == shown


def test_a_name_with_less_room_is_compared_as_it_is_cut() -> None:
    assert fitted_names([BACKWARD, FORWARD], [60, 20]) == [BACKWARD, "cudnn_g…fprop_wgmma…"]
