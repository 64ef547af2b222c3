"""The verbs of the package work again and again, whatever was imported meanwhile."""

from __future__ import annotations

from pathlib import Path

import ncuroof
from tests.support import demo
from tests.support.lined import lined_report


def test_comparing_loads_a_room_of_the_same_name_and_works_again() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    first, second = (ncuroof.compare(analysis, analysis) for _ in range(2))
    assert [delta.change_frac for delta in first.deltas] == [delta.change_frac for delta in second.deltas]


def test_lines_are_read_unless_they_are_not_wanted(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(lined_report())
    with_lines, without = (ncuroof.read(path, lines=lines).analyse() for lines in (True, False))
    assert not with_lines.measurements.lines.is_empty()
    assert without.measurements.lines.is_empty()
    assert with_lines.findings.equals(without.findings)
