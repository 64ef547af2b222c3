"""What the first things to do give in total."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.present.sentences.actions import (
    beyond_roofline,
    first_actions,
    in_doubt,
    judged_groups,
    together,
    without_gain,
)


def _actions(*shares: float | None) -> list[dict[str, object]]:
    return [{"share_frac": share, "title": "spills", "n_launches": 1, "finding": "spills"} for share in shares]


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ((), ""),
        ((0.2,), "speedup up to 1.25×"),  # 1 / 0.8
        ((0.3, 0.2, 0.1), "together at most 60.0 %: speedup up to 2.5×"),  # 1 / 0.4
        ((0.3, 0.2, 0.1, 0.05), "together at most 60.0 %: speedup up to 2.5×"),  # the fourth is not shown
        ((0.999,), ""),
        ((0.004,), ""),  # 1 / 0.996 is 1.004, "1×"
        ((0.003, 0.001), "together at most 0.4 %"),
        ((0.3, None), ""),  # nobody measured the run's time
        ((0.6, 0.4), ""),  # nothing would be left
    ],
)
def test_shares_add_up_and_shorten_the_run(shares: tuple[float | None, ...], sentence: str) -> None:
    assert together(_actions(*shares)) == sentence


def test_more_work_at_once_makes_no_run_faster() -> None:
    (action,) = _actions(0.5)
    said = together([action | {"needs_more_work": True, "n_launches": 4}])
    assert said == "speedup per unit of work up to 2×, if more blocks run at once"


def test_the_run_is_faster_by_what_needs_no_more_work() -> None:
    more, other = _actions(0.2, 0.3)
    said = together([other, more | {"needs_more_work": True}])
    assert said == "at most 30.0 % (without what needs more blocks at once): speedup up to 1.43×"  # 1 / 0.7
    said = together([other, more | {"needs_more_work": True}, *_actions(0.1)])
    assert said == "together at most 40.0 % (without what needs more blocks at once): speedup up to 1.67×"  # 1 / 0.6
    lines = first_actions([other, more | {"needs_more_work": True}])
    assert [line.condition for line in lines] == ["", "if more blocks run at once"]


@pytest.mark.parametrize(("gain_ns", "has_gain"), [(9.9, False), (10.0, True), (None, False)])
def test_a_kernel_with_less_than_a_tenth_to_gain_is_faster_by_fusing(gain_ns: float | None, has_gain: bool) -> None:
    finding = {"id": "dram_headroom", "gain_ns": gain_ns}
    kernel = {"id": 7, "verdict": "memory", "limiter": "dram", "duration_ns": 100.0, "findings": [finding]}
    (group,) = judged_groups({"kernels": [kernel], "groups": [{"id": 7}]}, load_rules())
    assert (group["has_gain"], group["is_in_doubt"]) == (has_gain, False)


def test_what_no_action_counts_is_named() -> None:
    def judged(
        number: int, duration_ns: float, *found: tuple[str, float | None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        findings = [{"id": name, "gain_ns": gain_ns} for name, gain_ns in found]
        kernel = {
            "id": number,
            "verdict": "compute",
            "limiter": "fp64",
            "duration_ns": duration_ns,
            "findings": findings,
        }
        return kernel, {"id": number, "duration_ns": duration_ns}

    entries = [
        judged(0, 950.0, ("alike_threads", None), ("fp64_on_slow_part", 800.0)),
        judged(1, 40.0, ("dram_headroom", 3.0)),
        judged(2, 10.0),
    ]
    kernels, groups = zip(*entries, strict=True)
    known = judged_groups({"kernels": list(kernels), "groups": list(groups)}, load_rules())
    assert in_doubt(known, 1000.0) == (
        "not counted: 95.0 % of the time, in kernels whose results or input are in doubt"
    )
    assert in_doubt(known[1:], 50.0) == in_doubt(known, None) == ""


def test_the_three_largest_are_shown() -> None:
    assert [line.gain for line in first_actions(_actions(0.3, 0.2, 0.1, 0.05))] == ["30.0 %", "20.0 %", "10.0 %"]


def test_next_to_nothing_is_shown_alone_or_not_at_all() -> None:
    assert [line.gain for line in first_actions(_actions(0.5, 0.0009))] == ["50.0 %"]
    assert together(_actions(0.5, 0.0009)) == "speedup up to 2×"
    assert [line.gain for line in first_actions(_actions(0.0009, 0.0008))] == ["0.1 %"]


@pytest.mark.parametrize(
    ("recoverable_ns", "is_reported"),
    [
        (99.0, True),
        (100.0, False),
        (150.0, False),
        (None, False),
    ],  # the three of 50, 30 and 20 ns; the fourth is not shown
)
def test_gains_past_the_roofline_say_that_it_moves(recoverable_ns: float | None, is_reported: bool) -> None:
    actions = [{"gain_ns": gain_ns, "share_frac": None} for gain_ns in (50.0, 30.0, 20.0, 10.0)]
    sentence = beyond_roofline(actions, recoverable_ns)
    assert sentence == (
        "this exceeds the time above the roofline because these changes also lower the roofline time"
        if is_reported
        else ""
    )


def _group(
    verdict: str,
    limiter: str,
    duration_ns: float | None,
    recoverable_ns: float | None = 0.0,
    has_gain: bool = False,
) -> dict[str, object]:
    times = {"duration_ns": duration_ns, "recoverable_ns": recoverable_ns}
    return {"verdict": verdict, "limiter": limiter, "has_gain": has_gain, **times}


@pytest.mark.parametrize(
    ("groups", "parts"),
    [
        (
            (("memory", "dram", 300.0, 59.0), ("overhead", "launch", 50.0)),
            "30.0 % of the time is already near the DRAM roof, 5.0 % is in launches too short to optimise alone",
        ),
        (
            (("memory", "dram", 300.0, 60.0), ("overhead", "launch", 100.0)),
            "10.0 % is in launches too short to optimise alone",
        ),  # a fifth to gain
        ((("memory", "l2", 900.0), ("overhead", "launch", 99.0)), None),
        (
            (("memory", "dram", 120.0, 0.0), ("overhead", "launch", 9.0)),
            "12.0 % of the time is already near the DRAM roof",
        ),
        ((("memory", "dram", 900.0, None),), None),  # nobody knows where the roof is
        ((("memory", "dram", 900.0, 0.0, True), ("overhead", "launch", 99.0)), None),  # coalescing gives it back
        ((("memory", "dram", None, None),), None),
    ],
)
def test_what_only_fusing_makes_less_of(groups: tuple[tuple[str, str, float | None], ...], parts: str | None) -> None:
    said = without_gain([_group(*group) for group in groups], 1000.0)
    assert said == ("" if parts is None else f"to save more, fuse kernels: {parts}")
    assert without_gain([_group(*group) for group in groups], None) == ""
