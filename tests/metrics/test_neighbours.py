"""Launches between two matrix products, by hand-made sequences of names."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from tests.support.raw import raw_report

P, Q = (
    "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16>(T1::Params)",
)
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)"
SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForwardReg<float>(float *)"
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"


@pytest.mark.parametrize(
    ("names", "streams", "between"),
    [
        ([P, SOFTMAX, Q], None, [0, 1, 0]),
        ([P, SCALE, SCALE, SOFTMAX, SCALE, Q], None, [0, 0, 0, 1, 0, 0]),
        ([P, NORM, SOFTMAX, Q], None, [0, 0, 0, 0]),
        ([P, SOFTMAX, NORM, Q], None, [0, 0, 0, 0]),
        ([SOFTMAX, Q, P], None, [0, 0, 0]),
        ([P, SCALE, SCALE, SCALE, SCALE, SOFTMAX, Q], None, [0, 0, 0, 0, 0, 0, 0]),  # a fourth is too many
        ([P, SOFTMAX, Q], [7, 8, 7], [0, 0, 0]),  # in a stream of its own
        ([P, P, P], None, [0, 1, 0]),
    ],
)
def test_launches_between_products(names: list[str], streams: list[int] | None, between: list[int]) -> None:
    kernels = [{"launch__stream_id": float(stream)} for stream in streams or [7] * len(names)]
    measured = measure([raw_report(*kernels, names=names)]).kernels
    assert measured["launch.is_between_products"].to_list() == between


def test_what_another_report_ends_with_is_no_neighbour() -> None:
    reports = [raw_report({}, names=[name]) for name in (P, SOFTMAX, Q)]
    assert measure(reports).kernels["launch.is_between_products"].to_list() == [0, 0, 0]
