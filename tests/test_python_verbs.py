"""The verbs of the package work again and again, whatever was imported meanwhile."""

from __future__ import annotations

import ncuroof
from tests.support import demo


def test_comparing_loads_a_room_of_the_same_name_and_works_again() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    first, second = (ncuroof.compare(analysis, analysis) for _ in range(2))
    assert [delta.change_frac for delta in first.deltas] == [delta.change_frac for delta in second.deltas]
