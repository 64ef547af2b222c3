"""What the first things to do give in total."""

from __future__ import annotations

import pytest

from ncuroof.present.action_lines import beyond_roofline, first_actions, together


def _actions(*shares: float | None) -> list[dict[str, object]]:
    return [{"share_frac": share, "title": "spills", "n_launches": 1} for share in shares]


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((), ""),
        ((0.2,), "the run up to 1.25 times as fast"),  # 1 / 0.8
        ((0.3, 0.2, 0.1), "together at most 60.0 %: the run up to 2.5 times as fast"),  # 1 / 0.4
        ((0.3, 0.2, 0.1, 0.05), "together at most 60.0 %: the run up to 2.5 times as fast"),  # the fourth is not shown
        ((0.999,), ""),
        ((0.3, None), ""),  # nobody measured the run's time
        ((0.6, 0.4), ""),  # nothing would be left
    ],
)
def test_shares_add_up_and_shorten_the_run(shares: tuple[float | None, ...], told: str) -> None:
    assert together(_actions(*shares)) == told


def test_the_three_largest_are_shown() -> None:
    assert [line.gain for line in first_actions(_actions(0.3, 0.2, 0.1, 0.05))] == ["30.0 %", "20.0 %", "10.0 %"]


@pytest.mark.parametrize(
    ("recoverable_ns", "is_told"),
    [
        (99.0, True),
        (100.0, False),
        (150.0, False),
        (None, False),
    ],  # the three of 50, 30 and 20 ns; the fourth is not shown
)
def test_gains_past_the_roofline_say_that_it_moves(recoverable_ns: float | None, is_told: bool) -> None:
    actions = [{"gain_ns": gain_ns} for gain_ns in (50.0, 30.0, 20.0, 10.0)]
    told = beyond_roofline(actions, recoverable_ns)
    assert told == ("more than lies above the roofline, which these changes move" if is_told else "")
