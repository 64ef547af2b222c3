"""Launches between two matrix products, by hand-made sequences of names and FLOPs."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.between_products import between_products
from ncuroof.metrics.catalogue import load_catalogue

P, Q = (
    "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>(T1::Params)",
)
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForwardReg<float>(float *)"
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"


def between(*names: str, flop: list[float | None] | None = None, streams: list[int] | None = None) -> list[float]:
    """Return what is known of launches of a report; every launch has the same work where nothing is said of it."""
    ids = range(len(names))
    kernels = pl.DataFrame(
        {"id": ids, "name": names, "source": 0, "process_id": 1, "context": 1, "stream": streams or [7] * len(names)}
    )
    work = pl.DataFrame({"id": ids, "flop": flop or [1e9] * len(names)}, schema={"id": pl.Int64, "flop": pl.Float64})
    return between_products(kernels, work.drop_nulls(), load_catalogue().neighbours).to_list()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([P, SOFTMAX, Q], [0, 1, 0]),
        ([P, SCALE, SCALE, SOFTMAX, SCALE, Q], [0, 0, 0, 1, 0, 0]),  # beside a scale stands the softmax
        ([P, NORM, SOFTMAX, Q], [0, 0, 0, 0]),
        ([P, SOFTMAX, NORM, Q], [0, 0, 0, 0]),
        ([SOFTMAX, Q, P], [0, 0, 0]),
        ([P, SCALE, SCALE, SCALE, SCALE, SOFTMAX, Q], [0, 0, 0, 0, 0, 0, 0]),  # a fourth is too many
        ([P, P, P], [0, 1, 0]),
    ],
)
def test_launches_between_products(names: list[str], expected: list[float]) -> None:
    assert between(*names) == expected


def test_another_stream_is_no_neighbour() -> None:
    assert between(P, SOFTMAX, Q, streams=[7, 8, 7]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(1e9, 2e9, 1), (2e9, 1e9, 1), (1e9, 2.01e9, 0), (None, 1e9, 0), (0.0, 0.0, 0)]
)
def test_products_of_attention_are_as_large_as_each_other(first: float | None, second: float, expected: float) -> None:
    # A classifier's last product, and the first one of its next call, are not.
    assert between(P, SOFTMAX, Q, flop=[first, 5.0, second]) == [0, expected, 0]
