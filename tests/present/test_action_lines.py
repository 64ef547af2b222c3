"""What is said of the first things to do, and of what they save in total."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.present.sentences import actions
from ncuroof.present.sentences.actions import in_doubt, together, without_gain
from tests.present.documents import action, document, outlook


def _run(n_actions: int, n_with_more_work: int = 0, **known: Any) -> dict[str, Any]:
    """A run with actions of 10 % each, of which the last ones need more work per launch; all are first ones."""
    listed = [
        action(f"spills {place}", title="spills", needs_more_work=place >= n_plain)
        for n_plain in [n_actions - n_with_more_work]
        for place in range(n_actions)
    ]
    found = document(actions=listed)
    found["summary"]["outlook"] = outlook(n_first=n_actions, **known)
    return found


@pytest.mark.parametrize(
    ("n_actions", "joint_frac", "speedup", "sentence"),
    [
        (0, None, None, ""),
        (1, 0.2, 1.25, "speedup up to 1.25×"),
        (3, 0.6, 2.5, "together at most 60.0 %: speedup up to 2.5×"),
        (1, 0.999, 1000.0, ""),  # only says that the GPU is almost unused
        (1, 0.004, 1.004, ""),  # would be "1×"
        (2, 0.004, 1.004, "together at most 0.4 %"),
        (2, 0.5, None, "together at most 50.0 %"),  # GPU time and wall-clock time are not of the same runs
        (2, None, None, ""),
        (2, 1.0, None, ""),
    ],
)
def test_what_the_first_actions_save_in_total(
    n_actions: int, joint_frac: float | None, speedup: float | None, sentence: str
) -> None:
    assert together(_run(n_actions, joint_frac=joint_frac, joint_speedup=speedup)) == sentence


def test_a_run_without_verdicts_has_no_speedup_and_says_why() -> None:
    run = _run(2, joint_frac=0.3, joint_speedup=None, is_mostly_unjudged=True)
    run["summary"]["by_verdict"] = {"unknown": {"share_frac": 0.695}}
    assert actions.outlook(run).in_total == (
        "together at most 30.0 %",
        "no speedup is stated: 69.5 % of the time has no verdict, and what else can be saved in it is not known",
    )


def test_more_work_at_once_makes_no_run_faster() -> None:
    said = together(_run(1, 1, joint_frac=0.5, joint_speedup=2.0))
    assert said == "speedup per unit of work up to 2×, if more blocks run at once"


def test_the_run_is_faster_by_what_needs_no_more_work() -> None:
    run = _run(2, 1, joint_frac=0.3, joint_speedup=1 / 0.7)
    assert together(run) == "at most 30.0 % (without what needs more blocks at once): speedup up to 1.43×"
    assert [line.condition for line in actions.outlook(run).actions] == ["", "if more blocks run at once"]
    said = together(_run(3, 1, joint_frac=0.4, joint_speedup=1 / 0.6))
    assert said == "together at most 40.0 % (without what needs more blocks at once): speedup up to 1.67×"


def test_only_the_first_actions_are_shown() -> None:
    run = _run(4)
    run["summary"]["outlook"]["n_first"] = 2
    assert [line.finding for line in actions.outlook(run).actions] == ["spills 0", "spills 1"]


@pytest.mark.parametrize(
    ("n_actions", "said_of_first", "said_of_others"),
    [
        (2, "together at most 20.0 %", ""),
        (3, "these 2 together at most 20.0 %", "one more saves up to 10.0 %"),
        (5, "these 2 together at most 20.0 %", "3 more save up to 10.0 % each"),
    ],
)
def test_the_first_actions_are_not_taken_for_all(n_actions: int, said_of_first: str, said_of_others: str) -> None:
    run = _run(n_actions, joint_frac=0.2)
    run["summary"]["outlook"]["n_first"] = 2
    assert actions.outlook(run).in_total == tuple(filter(None, (said_of_first, said_of_others)))
    assert together(run, is_listed=False) == "together at most 20.0 %"


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        ("small_grid", "per unit of work, if more blocks run at once"),
        ("tail_wave", "of its time"),
        ("of another version", "of its time"),
    ],
)
def test_what_needs_more_work_is_no_share_of_the_present_time(finding: str, said: str) -> None:
    assert actions.of_what({"id": finding}) == said


def test_next_to_nothing_is_saved_in_plain_words() -> None:
    run = _run(2, joint_frac=0.2)
    run["summary"]["outlook"]["n_first"] = 1
    run["actions"][1]["share_frac"] = 0.0003
    assert "one more saves less than 0.1 %" in actions.outlook(run).in_total


@pytest.mark.parametrize("is_beyond", [True, False])
def test_gains_past_the_roofline_say_that_it_moves(is_beyond: bool) -> None:
    said = actions.outlook(_run(1, is_beyond_roofline=is_beyond)).beyond_roofline
    assert said == (
        "this exceeds the time above the roofline because these changes also lower the roofline time"
        if is_beyond
        else ""
    )


@pytest.mark.parametrize(
    ("near_roof", "too_short", "parts"),
    [
        (
            0.3,
            0.05,
            "30.0 % of the time is already near the DRAM roof, 5.0 % is in launches too short to optimise alone",
        ),
        (0.0, 0.1, "10.0 % is in launches too short to optimise alone"),
        (0.12, 0.009, "12.0 % of the time is already near the DRAM roof"),
        (0.05, 0.04, None),
        (None, None, None),
    ],
)
def test_what_only_fusing_makes_less_of(near_roof: float | None, too_short: float | None, parts: str | None) -> None:
    said = without_gain(near_roof, too_short)
    more = " or give each launch more work" if parts is not None and "too short" in parts else ""
    assert said == ("" if parts is None else f"to save more, fuse kernels{more}: {parts}")


def test_what_no_action_counts_is_named() -> None:
    assert in_doubt(0.95) == "not counted: 95.0 % of the time, in kernels whose results or input are in doubt"
    assert in_doubt(0.009) == in_doubt(None) == ""
