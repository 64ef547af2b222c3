"""What the first things to do give in total."""

from __future__ import annotations

import pytest

from ncuroof.present.action_lines import first_actions, together


def _actions(*shares: float | None) -> list[dict[str, object]]:
    return [{"share_frac": share, "title": "spills", "n_launches": 1} for share in shares]


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((), ""),
        ((0.2,), "the run 1.25 times as fast"),  # 1 / 0.8
        ((0.3, 0.2, 0.1), "60.0 % together, the run 2.5 times as fast"),  # 1 / 0.4
        ((0.3, 0.2, 0.1, 0.05), "60.0 % together, the run 2.5 times as fast"),  # the fourth is not shown
        ((0.999,), "the run over 100 times as fast"),
        ((0.3, None), ""),  # nobody measured the run's time
        ((0.6, 0.4), ""),  # nothing would be left
    ],
)
def test_shares_add_up_and_shorten_the_run(shares: tuple[float | None, ...], told: str) -> None:
    assert together(_actions(*shares)) == told


def test_the_three_largest_are_shown() -> None:
    assert [line.gain for line in first_actions(_actions(0.3, 0.2, 0.1, 0.05))] == ["30.0 %", "20.0 %", "10.0 %"]
