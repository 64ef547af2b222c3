"""The first clause of an advice, which stands in the summary's one line per kernel."""

from __future__ import annotations

import pytest

from ncuroof.present.brief import first_clause


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
