"""Calls of the same shapes together: sums, ratios and what is remarkable about them. All numbers by hand."""

from __future__ import annotations

from typing import Any

import polars as pl

from ncuroof.expected.schemas import CALLS
from ncuroof.expected.utilisation import expected_operators


def call(**changes: Any) -> dict[str, Any]:
    return dict.fromkeys(CALLS) | {
        "ids": [3], "operator": "aten::mm", "shapes": "[[100, 64], [64, 200]]", "module": "Net (Net)/Net.fc (Linear)",
        "duration_ns": 1e5, "n_represented": 1.0, "represented_ns": 1e5, "is_uneven": False, "work_weight": 1.0,
        "verdict": "compute", "asked_precision": "tensor_bf16", "ran_precision": "tensor_bf16", "needed_flop": 1e6,
        "counted_flop": 1e6, "compulsory_bytes": 1e6, "dram_bytes": 1e6, "roofline_ns": 5e4,
    } | changes  # fmt: skip


def operators(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return expected_operators(pl.DataFrame(calls, schema=CALLS)).to_dicts()


def remarks(**changes: Any) -> list[str]:
    (found,) = operators(call(**changes))
    return found["remarks"]


def test_remarks_say_what_is_more_than_needed() -> None:
    assert remarks() == []
    assert remarks(counted_flop=1.64e6) == ["extra_work"]
    assert remarks(counted_flop=1.09e6) == []
    assert remarks(dram_bytes=3e6) == ["extra_traffic"]
    # 384 bytes that 104 kB move for: not of the operator's doing
    assert remarks(dram_bytes=104e3, compulsory_bytes=384.0) == []
    assert remarks(ran_precision="fp32") == ["off_tensor_cores"]
    assert remarks(ran_precision=None) == []
    assert remarks(is_uneven=True, counted_flop=2e6, dram_bytes=3e6) == ["other_sizes", "extra_work", "extra_traffic"]


def test_a_memory_bound_operator_that_moves_only_what_it_must_is_remarked_on() -> None:
    pointwise = {
        "needed_flop": 0.0, "counted_flop": None, "asked_precision": None, "ran_precision": None, "verdict": "memory",
    }  # fmt: skip
    assert remarks(**pointwise) == ["only_needed_traffic"]
    assert remarks(**pointwise, dram_bytes=1.3e6) == []
    assert remarks(**pointwise, dram_bytes=None) == []
    assert remarks(**(pointwise | {"verdict": "latency"})) == []


def test_calls_of_the_same_shapes_are_one_row_and_the_most_above_need_is_first() -> None:
    longest = call(ids=[4, 5], module="Net (Net)/Net.fc2 (Linear)", duration_ns=3e5)
    outside = call(ids=[6], module=None)
    other = call(operator="aten::gelu", shapes="[[8, 8]]", ids=[9], represented_ns=4e5)
    smaller = call(shapes="[[8, 8], [8, 8]]", ids=[10], represented_ns=6e4)
    first, second, third = operators(call(), longest, outside, other, smaller)
    assert (first["operator"], first["id"], first["above_ns"]) == ("aten::gelu", 9, 350_000)
    assert (second["n_calls"], second["represented_ns"], second["above_ns"]) == (3, 300_000, 150_000)
    assert (second["id"], second["modules"]) == (4, ["Net (Net)/Net.fc (Linear)", "Net (Net)/Net.fc2 (Linear)"])
    assert (third["shapes"], third["above_ns"]) == ("[[8, 8], [8, 8]]", 10_000)


def test_calls_count_as_often_as_they_represent() -> None:
    # recorded once, 100 µs of which 50 are needed; launched 24 times in 2 ms
    stands = call(n_represented=24.0, represented_ns=2e6, work_weight=24.0, counted_flop=2e6)
    (found,) = operators(stands, call())
    assert (found["n_calls"], found["n_represented"], found["represented_ns"]) == (2, 25, 2_100_000)
    assert found["above_ns"] == 2_000_000 - 24 * 50_000 + 50_000
    assert found["work_ratio"] == (24 * 2e6 + 1e6) / (24 * 1e6 + 1e6)
    # one of 13 launches of a kernel and grid, 100 µs of which 50 are needed; all 13, of other sizes, took 300 µs
    uneven = call(n_represented=13.0, represented_ns=3e5, is_uneven=True, work_weight=3.0)
    (found,) = operators(uneven)
    assert (found["n_calls"], found["n_represented"], found["is_uneven"]) == (1, 13, True)
    assert found["above_ns"] == 300_000 - 3 * 50_000


def test_unknown_is_null() -> None:
    unknown = call(
        duration_ns=None,
        represented_ns=None,
        roofline_ns=None,
        counted_flop=None,
        compulsory_bytes=None,
        dram_bytes=None,
    )
    (found,) = operators(unknown)
    names = ("represented_ns", "above_ns", "work_ratio", "traffic_ratio", "excess_bytes")
    assert [found[name] for name in names] == [None] * 5
    (found,) = operators(unknown, call(dram_bytes=2e6, represented_ns=1e4))
    assert (found["represented_ns"], found["above_ns"], found["traffic_ratio"]) == (10_000, 0, 2)
    assert operators() == []


def test_calls_that_a_timeline_rounds_to_no_time_have_no_ratios() -> None:
    rounded = call(represented_ns=0.0, work_weight=0.0)
    (found,) = operators(rounded)
    assert (found["represented_ns"], found["work_ratio"], found["traffic_ratio"]) == (0, None, None)
    assert found["remarks"] == []
    # beside another call, what that one did: 2e6 / 1e6 FLOPs
    (found,) = operators(rounded, call(counted_flop=2e6))
    assert found["work_ratio"] == 2
