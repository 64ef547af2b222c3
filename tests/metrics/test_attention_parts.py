"""Launches between two matrix products, and the parts of an attention, by hand-made sequences of names and FLOPs."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.neighbours import attention_parts

P, Q = (
    "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>(T1::Params)",
)
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForwardReg<float>(float *)"
GRADIENT = "void at::native::<unnamed>::cunn_SoftMaxBackwardSmem<8, c10::BFloat16>(c10::BFloat16 *)"
LOG_SOFTMAX = (
    "void at::native::<unnamed>::cunn_SoftMaxForward<4, float, at::native::<unnamed>::LogSoftMaxForwardEpilogue>"
)
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"


def parts(
    *names: str, flop: list[float | None] | None = None, streams: list[int] | None = None
) -> tuple[list[float], list[float], list[float]]:
    """Return which launches of a report are between products, products and pointwise kernels of an attention.

    Every launch has the same work where nothing is said of it.
    """
    ids = range(len(names))
    kernels = pl.DataFrame(
        {"id": ids, "name": names, "source": 0, "process_id": 1, "context": 1, "stream": streams or [7] * len(names)}
    )
    work = pl.DataFrame({"id": ids, "flop": flop or [1e9] * len(names)}, schema={"id": pl.Int64, "flop": pl.Float64})
    between, products, pointwise = attention_parts(kernels, work.drop_nulls(), load_catalogue().neighbours)
    return between.to_list(), products.to_list(), pointwise.to_list()


def between(*names: str, flop: list[float | None] | None = None, streams: list[int] | None = None) -> list[float]:
    return parts(*names, flop=flop, streams=streams)[0]


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


@pytest.mark.parametrize(
    ("names", "products", "pointwise"),
    [
        ([P, SOFTMAX, Q], [1, 0, 1], [0, 0, 0]),
        ([SCALE, P, SCALE, SCALE, SOFTMAX, SCALE, Q, SCALE], [0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1, 0, 0]),
        (
            [P, P, SOFTMAX, Q, Q],
            [0, 1, 0, 1, 0],
            [0, 0, 0, 0, 0],
        ),  # the projections around a forward pass are no part of it
        (
            [P, P, P, SCALE, GRADIENT, Q, Q, Q],
            [0, 1, 1, 0, 0, 1, 1, 0],
            [0, 0, 0, 1, 0, 0, 0, 0],
        ),  # two for each gradient
        ([P, NORM, P, GRADIENT, Q], [0, 0, 1, 0, 1], [0, 0, 0, 0, 0]),
        ([P, LOG_SOFTMAX, Q], [0, 0, 0], [0, 0, 0]),
        ([P, SCALE, Q], [0, 0, 0], [0, 0, 0]),
        ([P, NORM, SOFTMAX, Q], [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_parts_of_an_attention(names: list[str], products: list[float], pointwise: list[float]) -> None:
    assert parts(*names)[1:] == (products, pointwise)


def test_the_other_product_of_a_gradient_does_as_much_work() -> None:
    assert parts(P, P, GRADIENT, Q, Q, flop=[4.0, 2.0, 1.0, 2.0, 4.1])[1] == [1, 1, 0, 1, 0]
    assert parts(P, P, GRADIENT, Q, Q, streams=[1, 7, 7, 7, 7])[1] == [0, 1, 0, 1, 1]


def test_a_softmax_is_what_the_rules_call_one() -> None:
    known, rule = load_catalogue().neighbours, load_rules().findings["attention_in_parts"]
    assert (known.softmax, known.not_softmax) == (rule.name_pattern, rule.excluded_name_pattern)
