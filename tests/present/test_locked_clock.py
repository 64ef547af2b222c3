"""That ncu locked the clock is a remark beside it, if it holds for most launches."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.remarks import locked_clock_remark


@pytest.mark.parametrize(
    ("n_locked", "n_other", "remark"),
    [(2, 1, "; ncu locks clocks by default"), (1, 1, ""), (1, 2, "; idle before, throttled or capped"), (0, 0, "")],
)
def test_most_launches_decide(n_locked: int, n_other: int, remark: str) -> None:
    assert (
        locked_clock_remark([["short_kernel", "reduced_clock"]] * n_locked + [["throttled_clock"]] * n_other) == remark
    )


def test_launches_that_were_not_measured_do_not_count() -> None:
    assert locked_clock_remark([["reduced_clock"], ["failed"], ["failed"]]) == "; ncu locks clocks by default"
    assert locked_clock_remark([["failed"]]) == ""
