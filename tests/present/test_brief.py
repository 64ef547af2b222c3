"""The summary's one line per kernel: which finding it tells, and the first clause of its advice."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.actions import leading_finding
from ncuroof.present.texts.brief import first_clause


@pytest.mark.parametrize(
    ("advice", "clause"),
    [
        ("Write a*b+c. Then measure.", "Write a*b+c"),
        ("Load less: keep values in registers.", "Load less"),
        (
            "Make room, limited now by registers (64 per thread; at 48 one more block fits): fewer registers.",
            "Make room, limited now by registers (64 per thread; at 48 one more block fits)",
        ),
        ("Use 1.5 times as many (see below).", "Use 1.5 times as many (see below)"),
    ],
)
def test_the_first_clause_is_not_cut_within_parentheses(advice: str, clause: str) -> None:
    assert first_clause(advice) == clause


@pytest.mark.parametrize(("worth", "place"), [((False, True, False), 1), ((False, False), 0), ((), None)])
def test_a_line_tells_the_finding_that_the_things_to_do_count(worth: tuple[bool, ...], place: int | None) -> None:
    findings = [{"id": str(number), "is_most_worth": is_most} for number, is_most in enumerate(worth)]
    assert leading_finding([each | {"gain_ns": 1.0} for each in findings]) == (
        None if place is None else findings[place] | {"gain_ns": 1.0}
    )


def test_what_questions_the_results_comes_before_what_makes_them_faster() -> None:
    # Two rows of a report of others' had "use register tiles" here, while 31 of 32 results were missing.
    doubt = {"id": "alike_threads", "gain_ns": None, "is_most_worth": False}
    faster = {"id": "lsu_instructions", "gain_ns": 9.0, "is_most_worth": True}
    assert leading_finding([doubt, faster]) == doubt
    idle_warps = {"id": "idle_warps", "gain_ns": 1.0, "is_most_worth": False}  # stands first, and has a gain
    assert leading_finding([idle_warps, faster]) == faster
