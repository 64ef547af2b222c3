"""Parts of a cross-entropy, by hand-made sequences of names."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.neighbours import loss_parts

POINTWISE = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::{}, std::array<char *, (unsigned long)1>>(int)"
)
CAST, CAST_BACK = POINTWISE.format("direct_copy_kernel_cuda()"), POINTWISE.format("bfloat16_copy_kernel_cuda()")
FILL, MUL = POINTWISE.format("FillFunctor<float>"), POINTWISE.format("AUnaryFunctor<float>")
FORWARD, FORWARD_ONCE, BACKWARD, BACKWARD_ONCE = (
    f"void at::native::<unnamed>::cunn_SoftMax{name}<4, float, float, float, at::native::<unnamed>::LogSoftMax{which}Epilogue>"
    for name, which in (
        ("Forward", "Forward"), ("ForwardReg", "Forward"), ("Backward", "Backward"), ("BackwardSmem", "Backward"),
    )
)  # fmt: skip
WARP, WARP_BACK = (
    f"void softmax_warp_{which}<float, float, float, (int)8, (bool)1, (bool)0>" for which in ("forward", "backward")
)
ATTENTION = "void softmax_warp_forward<float, float, float, (int)8, (bool)0, (bool)0>"
LOSS = "void at::native::<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float *)"
LOSS_BACK = "void at::native::<unnamed>::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(float *)"
PRODUCT = "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT"


def kept(names: list[str], times: list[float] | None = None, streams: list[int] | None = None) -> list[float | None]:
    """Return which share of what launches move a fused cross-entropy would, all of 100 µs where nothing is said of them."""
    kernels = pl.DataFrame(
        {"name": names, "source": 0, "process_id": 1, "context": 1, "stream": streams or [7] * len(names)}
        | {"duration_ns": times or [1e5] * len(names)}
    )
    catalogue = load_catalogue()
    return loss_parts(kernels, catalogue.neighbours, catalogue.cross_entropy).to_list()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # Read once: one tensor is read and one written; the gradient reads two and writes one. A fused kernel reads or writes one.
        ([FORWARD_ONCE, LOSS], [1 / 2, 0]),
        ([LOSS_BACK, BACKWARD_ONCE], [0, 1 / 3]),
        ([WARP, LOSS, LOSS_BACK, WARP_BACK], [1 / 2, 0, 0, 1 / 3]),
        # Read for the maximum, for the sum and for the result, and written: four.
        ([FORWARD, LOSS], [1 / 4, 0]),
        ([LOSS_BACK, BACKWARD], [0, 1 / 4]),
        # A step under autocast. A fused kernel reads and writes 16 bits, half of a tensor.
        (
            [PRODUCT, CAST, FORWARD, LOSS, FILL, LOSS_BACK, BACKWARD, CAST_BACK, PRODUCT],
            [None, 0, 1 / 8, 0, 0, 0, 1 / 8, 0, None],
        ),
        ([CAST, FORWARD_ONCE, LOSS, LOSS_BACK, BACKWARD_ONCE, CAST_BACK], [0, 1 / 4, 0, 0, 1 / 6, 0]),
        ([FORWARD, PRODUCT, LOSS], [None] * 3),  # a log-softmax of another kind
        ([FORWARD, MUL, LOSS], [None] * 3),
        ([ATTENTION, LOSS], [None] * 2),
        ([FORWARD], [None]),
        ([LOSS], [None]),
        ([LOSS, FORWARD], [None] * 2),
        ([BACKWARD, LOSS_BACK], [None] * 2),
        ([CAST, FORWARD, PRODUCT], [None] * 3),
        ([CAST, MUL, FORWARD, LOSS], [None, None, 1 / 4, 0]),
        ([FILL, FORWARD, LOSS], [None, 1 / 4, 0]),
        (
            [FILL, FILL, LOSS_BACK, BACKWARD],
            [None, 0, 0, 1 / 4],
        ),  # the first one is the gradient of the loss itself, a 1
        ([FORWARD, CAST, CAST, CAST, LOSS], [1 / 4, None, None, None, 0]),
        ([FORWARD, CAST, CAST, CAST, CAST, LOSS], [None] * 6),  # a fourth is too many
    ],
)
def test_parts_of_a_cross_entropy_are_known_by_their_order(names: list[str], expected: list[float | None]) -> None:
    assert kept(names) == pytest.approx(expected)


def test_a_cast_of_the_labels_is_none_of_the_logits() -> None:
    assert kept([CAST, CAST, FORWARD, LOSS], [60e3, 9e3, 1e5, 2e4]) == [0, None, 1 / 8, 0]
    assert kept([CAST, FORWARD, LOSS], [9e3, 1e5, 2e4]) == [None, 1 / 4, 0]


def test_the_parts_run_in_one_stream() -> None:
    assert kept([FORWARD, LOSS], streams=[7, 8]) == [None, None]
    assert kept([FORWARD, PRODUCT, LOSS], streams=[7, 8, 7]) == [1 / 4, None, 0]
