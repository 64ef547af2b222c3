"""The texts of PyTorch's NVTX ranges, taken apart: those of a recorded step, and those that only look like it."""

from __future__ import annotations

import time

import polars as pl
import pytest

from ncuroof.metrics.torch_ranges import TorchRange, range_names, torch_range

SUM = (
    "aten::add, seq = 2106, op_id = 221, sizes = [[16, 512], [16, 512], []], input_op_ids = [(172,0), (220,0), (0,-1)]"
)
"""As in a step recorded on an H100: the last input is the output -1 of operator 0, which no operator made."""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SUM, TorchRange("aten::add", 2106, 221, "[[16, 512], [16, 512], []]")),
        ("aten::mm, sizes = [[2, 3], [], [3, 4]]", TorchRange("aten::mm", None, None, "[[2, 3], [], [3, 4]]")),
        ("aten::relu, op_id = 9", TorchRange("aten::relu", None, 9, None)),
        ("MmBackward0, seq = 3", TorchRange("MmBackward0", 3, None, None)),
        ("Net (Net) [8, 512], op_id = 4", TorchRange("Net (Net) [8, 512]", None, 4, None)),
        ("step 3, seq 1", TorchRange("step 3, seq 1")),
        ("aten::mm, seq = 123456789012345678", TorchRange("aten::mm", 123456789012345678)),
        ("aten::mm, seq = " + "9" * 5000, TorchRange("aten::mm, seq = " + "9" * 5000)),
        ("", TorchRange("")),
    ],
)
def test_a_range_has_a_name_two_numbers_and_sizes(text: str, parts: TorchRange) -> None:
    assert torch_range(text) == parts


def test_operators_are_those_of_pytorch_and_all_with_sizes() -> None:
    assert torch_range("aten::relu").is_operator
    assert torch_range("flash_attn::forward, seq = 7, sizes = [[2, 8]]").is_operator
    assert not torch_range("Net (Net) [2, 8], op_id = 4").is_operator


def test_shapes_leave_out_scalars_after_the_first_input() -> None:
    assert torch_range(SUM).shapes == "[[16, 512], [16, 512]]"
    assert torch_range("aten::_foreach_add_, sizes = [[], []]").shapes == "[[]]"
    assert torch_range("aten::relu, op_id = 9").shapes == ""


@pytest.mark.parametrize("part", [", sizes = [", ", sizes = [1]", ", input_op_ids = [", ", seq = 1", "["])
def test_a_range_of_any_length_is_read_in_no_time(part: str) -> None:
    text = "aten::mm, sizes = " + part * 40_000 + "x"
    started = time.process_time()
    assert torch_range(text) == TorchRange(text)
    assert time.process_time() - started < 1  # 20 s, where each part is the beginning of a search to the end


def test_operators_of_pytorch_are_named_alike_in_every_call() -> None:
    names = [
        SUM,
        "aten::relu, op_id = 9",
        None,
    ]
    ranges = pl.DataFrame({"nvtx": [names, ["step 3, seq 1"], []]}, schema={"nvtx": pl.List(pl.String)})
    assert ranges.select(range_names(pl.col("nvtx")))["nvtx"].to_list() == [
        ["aten::add, sizes = [[16, 512], [16, 512], []]", "aten::relu", None],
        ["step 3, seq 1"],
        [],
    ]
