"""The recorded training step: what its operators need, against the work of the example by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof

REPORT = Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3/train_transformer.roofline.ncu-repz"

N_TOKENS, WIDTH, N_LAYERS, N_WORDS = 16 * 256, 512, 4, 8192
"""Of examples/train_transformer.py as it is called without options."""

WEIGHTS = N_LAYERS * 12 * WIDTH**2 + N_WORDS * WIDTH
"""That multiply a token: of a layer 3 + 1 of attention, 4 + 4 of its network; of the head one row per word."""

PRODUCTS_FLOP = 3 * 2 * N_TOKENS * WEIGHTS
"""Forward, and as much for each of the two gradients: 3 · 2^37, which is 412.3 GFLOP.

`torch.utils.flop_counter.FlopCounterMode` finds the same on the example, and 25.8 GFLOP of attention without its causal mask.
"""

ATTENTION_FLOP = 6_442_450_944 + 12_884_901_888
"""Forward and backward of the four layers, as the tensor cores counted them: the mask leaves out blocks above the diagonal."""

BF16_PEAK = 989e12
"""H100 SXM data sheet, dense."""


@pytest.fixture(scope="module")
def found():
    return ncuroof.read(REPORT).analyse()


def test_needed_work_is_that_of_the_example(found) -> None:
    # Of the 13 launches of one kernel and grid, one was recorded, and it is the largest: 13 times its work were 723.7 GFLOP in
    # all. A third of the work is estimated from the time of other sizes, and so to a tenth.
    utilisation = found.expected.utilisation
    assert utilisation.needed_flop == pytest.approx(PRODUCTS_FLOP + ATTENTION_FLOP, rel=0.1)
    assert utilisation.mfu_frac == pytest.approx(431.6e9 / (2.83e-3 * BF16_PEAK), rel=0.1)  # 15.4 %
    # The step took 8.16 ms of wall time: 431.6e9 / (8.163e-3 × 989e12) = 5.3 %
    assert utilisation.wall_mfu_frac == pytest.approx(0.053, rel=0.1)
    assert 0.2 < utilisation.extrapolated_frac < 0.4


def test_no_call_is_faster_than_the_gpu(found) -> None:
    products = [call for call in found.expected.calls.to_dicts() if call["needed_flop"]]
    assert len(products) == 11
    for call in products:
        assert call["work_weight"] * call["needed_flop"] < BF16_PEAK * 1e-9 * call["represented_ns"]
    (uneven,) = (call for call in products if call["is_uneven"])
    assert (uneven["n_represented"], uneven["needed_flop"]) == (13, 2 * 4096 * 8192 * 512)
    assert uneven["work_weight"] == pytest.approx(uneven["represented_ns"] / uneven["duration_ns"])


def test_work_of_the_run_is_no_more_than_the_example_does(found) -> None:
    (tensor,) = found.totals.filter(precision="tensor_bf16")["flop"]
    assert tensor == pytest.approx(PRODUCTS_FLOP + ATTENTION_FLOP, rel=0.1)
