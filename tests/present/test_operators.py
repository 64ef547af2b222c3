"""Operators as texts: what is said of work, bytes and cores."""

from __future__ import annotations

from typing import Any

from ncuroof.present.page.operators import OperatorLine, operators


def line(**changes: Any) -> OperatorLine:
    operator = {
        "operator": "aten::mm", "shapes": "[[100, 64], [64, 200]]", "id": 3, "modules": ["Net (Net)/Net.fc (Linear)"],
        "n_calls": 1, "n_represented": 1.0, "is_uneven": False, "represented_ns": 1e5, "above_ns": 5e4,
        "work_ratio": 1.0, "traffic_ratio": 1.0, "asked_precision": "tensor_bf16", "ran_precision": "tensor_bf16",
        "verdict": "compute", "remarks": [],
    } | changes  # fmt: skip
    found = operators({"calls": [], "operators": [operator], "modules": [], "utilisation": None}, {})
    assert found is not None
    return found.lines[0]


def test_remarks_are_sentences_with_their_numbers() -> None:
    assert line().remark == ""
    extra_work = line(remarks=["extra_work"], work_ratio=1.638).remark
    assert extra_work == "does 1.64× the arithmetic it needs: tile padding or recomputation"
    extra_traffic = {"remarks": ["extra_traffic"], "traffic_ratio": 3.0}
    assert line(**extra_traffic).remark == "moves 3× the bytes it must"
    assert line(**extra_traffic, verdict="memory").remark == "moves 3× the bytes it must: read each input once, fuse it"
    off_tensor_cores = line(remarks=["off_tensor_cores"], ran_precision="fp32").remark
    assert off_tensor_cores == "could run on BF16 tensor cores, but ran in FP32"
    only_needed = line(remarks=["only_needed_traffic"]).remark
    assert only_needed == "moves only the bytes it must: only fusion with its neighbours makes it faster"
    assert line(remarks=["other_sizes", "extra_traffic"], traffic_ratio=2.0).remark == (
        "the time includes calls of other sizes that share its kernel and grid; moves 2× the bytes it must"
    )


def test_a_line_has_name_link_modules_and_times() -> None:
    two = line(modules=["Net (Net)/Net.fc (Linear)", "Net (Net)/Net.fc2 (Linear)"], n_calls=2, n_represented=2.0)
    assert (two.name, two.id, two.module, two.n_calls) == (
        "aten::mm [[100, 64], [64, 200]]", "3", "Net.fc (Linear) and 1 more", "2",
    )  # fmt: skip
    assert (two.time, two.above, two.work, two.traffic) == ("100 µs", "50.0 µs", "1×", "1×")
    # the same layer of two networks is one name
    assert line(modules=["A (A)/fc (Linear)", "B (B)/fc (Linear)"]).module == "fc (Linear)"
    assert line(modules=[], shapes="").name == "aten::mm"


def test_profiled_calls_are_told_from_those_of_other_sizes() -> None:
    assert line(n_calls=1, n_represented=24.0).n_calls == "24"
    assert line(n_calls=1, n_represented=13.0, is_uneven=True).n_calls == "1 of 13"


def test_that_modules_count_profiled_launches_only_is_said_where_it_matters() -> None:
    def remark(n_represented: float) -> str:
        block = {"calls": [{"n_represented": n_represented}], "operators": [], "modules": [], "utilisation": None}
        found = operators(block, {})
        assert found is not None
        return found.modules_remark

    assert remark(24.0).startswith("Counts profiled launches only")
    assert remark(1.0) == ""


def test_unknown_is_a_dash() -> None:
    unknown = line(represented_ns=None, above_ns=None, work_ratio=None, traffic_ratio=None)
    assert (unknown.time, unknown.above, unknown.work, unknown.traffic) == ("—",) * 4
    assert operators(None, {}) is None
