"""The summary's one line per kernel: which finding it tells, and the first clause of its advice."""

from __future__ import annotations

import pytest

from ncuroof.present.brief import first_clause, most_worth


@pytest.mark.parametrize(
    ("advice", "clause"),
    [
        ("Write a*b+c. Then measure.", "Write a*b+c"),
        ("Load less: keep values in registers.", "Load less"),
        (
            "Make room, which registers (64 per thread; 48 let one more in) limit now: fewer registers.",
            "Make room, which registers (64 per thread; 48 let one more in) limit now",
        ),
        ("Use 1.5 times as many (see below).", "Use 1.5 times as many (see below)"),
    ],
)
def test_the_first_clause_is_not_cut_within_parentheses(advice: str, clause: str) -> None:
    assert first_clause(advice) == clause


@pytest.mark.parametrize(
    ("gains", "place"),
    [
        ((10.0, 40.0, 20.0), 1),  # what the things to do over the run count for this launch
        ((None, 20.0), 1),
        ((30.0, 30.0), 0),
        ((None, None), 0),
        ((), None),
    ],
)
def test_a_line_tells_the_finding_of_the_largest_gain(gains: tuple[float | None, ...], place: int | None) -> None:
    findings = [{"id": str(number), "gain_ns": gain} for number, gain in enumerate(gains)]
    told = most_worth(findings)
    assert told == (None if place is None else findings[place])
