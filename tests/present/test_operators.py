"""Operators as texts: what is said of work, bytes and cores, in which order, and where the peak went."""

from __future__ import annotations

import time
from typing import Any

from ncuroof.present.page.operators import operators


def call(**changes: Any) -> dict[str, Any]:
    return {
        "ids": [3], "operator": "aten::mm", "range": "aten::mm, op_id = 5, sizes = [[100, 64], [64, 200]]",
        "module": "Net (Net)/Net.fc (Linear)", "is_backward": False, "dtype": "bf16", "duration_ns": 1e5,
        "n_represented": 1.0, "represented_ns": 1e5, "is_uneven": False, "work_weight": 1.0, "verdict": "compute",
        "asked_precision": "tensor_bf16", "ran_precision": "tensor_bf16", "needed_flop": 1e6, "counted_flop": 1e6,
        "compulsory_bytes": 1e6, "dram_bytes": 1e6, "roofline_ns": 5e4,
    } | changes  # fmt: skip


def remark(**changes: Any) -> str:
    found = operators({"calls": [call(**changes)], "modules": [], "utilisation": None})
    assert found is not None
    return found.lines[0].remark


def test_remarks_say_what_is_more_than_needed() -> None:
    assert remark() == ""
    assert remark(counted_flop=1.64e6) == "does 1.64× the arithmetic it needs: tile padding or recomputation"
    assert remark(counted_flop=1.09e6) == ""
    assert remark(dram_bytes=3e6) == "moves 3× the bytes it must"
    assert remark(dram_bytes=3e6, verdict="memory") == "moves 3× the bytes it must: read each input once, fuse it"
    # 384 bytes that 104 kB move for: not of the operator's doing
    assert remark(dram_bytes=104e3, compulsory_bytes=384.0) == ""
    assert remark(ran_precision="fp32") == "could run on BF16 tensor cores, but ran in FP32"
    pointwise = {
        "needed_flop": 0,
        "counted_flop": None,
        "asked_precision": None,
        "ran_precision": None,
        "verdict": "memory",
    }
    assert remark(**pointwise) == "moves only the bytes it must: only fusion with its neighbours makes it faster"
    assert remark(**pointwise, dram_bytes=None) == ""


def test_calls_of_the_same_shapes_are_one_line_and_the_most_above_need_is_first() -> None:
    again = call(ids=[4], module="Net (Net)/Net.fc2 (Linear)")
    other = call(operator="aten::gelu", range="aten::gelu, sizes = [[8, 8], []]", ids=[9], represented_ns=4e5)
    found = operators(
        {
            "calls": [call(), again, other],
            "modules": [],
            "utilisation": None,
        }
    )
    assert found is not None
    first, second = found.lines
    assert (first.name, first.id, first.above) == ("aten::gelu [[8, 8]]", "9", "350 µs")
    assert (second.n_calls, second.time, second.module) == ("2", "200 µs", "Net.fc (Linear) and 1 more")


def test_calls_count_for_those_that_they_stand_for() -> None:
    # recorded once, 100 µs of which 50 are needed; launched 24 times in 2 ms
    stands = call(n_represented=24.0, represented_ns=2e6, work_weight=24.0)
    found = operators({"calls": [stands], "modules": [], "utilisation": None})
    assert found is not None
    (line,) = found.lines
    assert (line.n_calls, line.time, line.above) == ("24", "2.00 ms", "800 µs")  # 2000 - 24 * 50
    assert found.modules_remark.startswith("Counts profiled launches only")
    alone = operators({"calls": [call()], "modules": [], "utilisation": None})
    assert alone is not None
    assert alone.modules_remark == ""


def test_calls_of_other_sizes_are_told_and_not_counted_as_its_own() -> None:
    # one of 13 launches of a kernel and grid was recorded: 100 µs, of which 50 are needed; all 13 took 300 µs
    uneven = call(n_represented=13.0, represented_ns=3e5, is_uneven=True, work_weight=3.0)
    found = operators({"calls": [uneven], "modules": [], "utilisation": None})
    assert found is not None
    (line,) = found.lines
    assert (line.n_calls, line.time, line.above) == ("1 of 13", "300 µs", "150 µs")  # 300 - 3 * 50
    assert line.remark == "the time includes calls of other sizes that share its kernel and grid"


def test_unknown_is_a_dash() -> None:
    unknown = call(
        represented_ns=None, roofline_ns=None, counted_flop=None, compulsory_bytes=None, dram_bytes=None, dtype=None
    )
    found = operators({"calls": [unknown], "modules": [], "utilisation": None})
    assert found is not None
    (line,) = found.lines
    assert (line.time, line.above, line.work, line.traffic) == ("—",) * 4
    assert operators(None) is None


def test_shapes_are_what_stands_between_sizes_and_the_numbers_of_inputs() -> None:
    def name(text: str) -> str:
        found = operators({"calls": [call(range=text)], "modules": [], "utilisation": None})
        assert found is not None
        return found.lines[0].name

    assert name("aten::mm, sizes = [[2, 3], [], [3, 4]], input_op_ids = [(1,0), (2,0)]") == "aten::mm [[2, 3], [3, 4]]"
    assert name("aten::mm, op_id = 5") == "aten::mm"


def test_a_range_of_many_sizes_is_looked_through_once() -> None:
    started = time.perf_counter()
    operators({"calls": [call(range="aten::mm, " + "sizes = [" * 40_000)], "modules": [], "utilisation": None})
    assert time.perf_counter() - started < 1  # 20 s, where each of the 40 000 is the beginning of a search


def test_calls_that_a_timeline_rounds_to_no_time_have_no_ratios() -> None:
    rounded = call(represented_ns=0.0, work_weight=0.0)
    (line,) = operators({"calls": [rounded], "modules": [], "utilisation": None}).lines
    assert (line.time, line.work, line.traffic, line.remark) == ("0 s", "—", "—", "")
    # beside another call, what that one did: 2e6 / 1e6 FLOPs
    (line,) = operators({"calls": [rounded, call(counted_flop=2e6)], "modules": [], "utilisation": None}).lines
    assert line.work == "2×"
