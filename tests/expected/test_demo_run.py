"""The simulated training step: what its operators need, against what its kernels are made to do."""

from __future__ import annotations

import pytest

import ncuroof
from tests.support import demo


@pytest.mark.long
def test_operators_of_the_simulated_step() -> None:
    found = ncuroof.read(demo.REPORT).analyse().expected
    calls = {call["operator"]: call for call in found.calls.to_dicts()}
    product = calls["aten::addmm"]
    # 16384 x 4096 by 4096 x 16384, made on the tensor cores and not padded
    assert product["needed_flop"] == 2 * 16384 * 4096 * 16384
    assert product["counted_flop"] == pytest.approx(product["needed_flop"])
    assert (product["dtype"], product["asked_precision"], product["ran_precision"]) == (
        "bf16",
        "tensor_bf16",
        "tensor_bf16",
    )
    # bias, input, weights and result, 2 bytes each; read 537 MB and wrote as much
    compulsory = 2 * (16384 + 16384 * 4096 + 4096 * 16384 + 16384 * 16384)
    assert product["compulsory_bytes"] == compulsory
    assert product["dram_bytes"] == pytest.approx(2 * 2 * 16384 * 16384)
    gelu = calls["aten::gelu"]
    assert gelu["dram_bytes"] / gelu["compulsory_bytes"] == pytest.approx(1)
    # reads BF16 and writes FP32, which no range tells
    softmax = calls["aten::_softmax"]
    assert softmax["dram_bytes"] / softmax["compulsory_bytes"] == pytest.approx(1.5)
    assert found.utilisation is not None
    assert found.utilisation.needed_flop == 2 * 16384 * 4096 * 16384 + 2 * 512 * 8192 * 512


@pytest.mark.long
def test_a_layer_has_what_is_within_it() -> None:
    modules = {row["module"]: row for row in ncuroof.read(demo.REPORT).analyse().expected.modules.to_dicts()}
    assert modules["step/forward/layer0/mlp"]["n_calls"] == 2
    assert modules["step/forward/layer0/mlp"]["duration_ns"] == 2_949_120 + 245_824
