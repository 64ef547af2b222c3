"""The summary's one line per kernel: which finding it tells, and the first clause of its advice."""

from __future__ import annotations

import pytest

from ncuroof.formatting import first_clause
from ncuroof.present.sentences.actions import most_worth


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
    assert most_worth(findings) == (None if place is None else findings[place])
