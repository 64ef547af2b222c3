"""Findings that a change mended, with what they promised, and those that it brought. All numbers are worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ncuroof.comparison import Run, baseline_json, compare, read_baseline
from ncuroof.errors import BaselineError
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.sentences.comparison import changed_findings
from ncuroof.present.texts.comparison import to_markdown, to_text
from tests.comparison.runs import SETUP, launch, run


def found(us: float, *findings: tuple[str, float | None]) -> Run:
    """Return a run of one launch with findings, each with what it saves in µs."""
    return run(launch("a", us), gains=dict(findings))


def lines(before: Run, after: Run) -> list[str]:
    (match,) = comparison_document(compare(before, after), [])["matches"]
    return changed_findings(match)


# 60 of 100 µs promised, and 50 saved.
BEFORE = found(100.0, ("bank_conflicts", 60.0), ("low_occupancy", 10.0))
AFTER = found(50.0, ("low_occupancy", 5.0), ("dram_roof", None))
GONE = "gone: Shared-memory bank conflicts (up to 60.0 %); time −50.0 %"
NEW = "new: DRAM bandwidth is saturated while SMs have work"


def test_a_line_shows_the_promised_and_the_actual_gain_of_a_finding() -> None:
    assert lines(BEFORE, AFTER) == [GONE, NEW]
    text = to_text(comparison_document(compare(BEFORE, AFTER), []))
    assert f"    {GONE}\n    {NEW}\n" in text
    assert "gone: Shared-memory bank conflicts" in to_markdown(comparison_document(compare(BEFORE, AFTER), []))


def test_no_actual_gain_is_shown_if_the_time_is_the_same() -> None:
    assert lines(BEFORE, found(100.5, ("low_occupancy", 10.0))) == ["gone: Shared-memory bank conflicts (up to 60.0 %)"]


def test_equal_findings_are_not_a_change() -> None:
    assert lines(BEFORE, found(50.0, ("low_occupancy", 1.0), ("bank_conflicts", 1.0))) == []


def test_the_three_findings_that_promised_most_are_shown() -> None:
    before = found(
        100.0, ("dram_roof", None), ("low_occupancy", 10.0), ("bank_conflicts", 60.0), ("local_memory", 20.0)
    )
    (line,) = lines(before, found(100.0))
    assert [line.index(words) for words in ("bank conflicts", "20.0 %", "10.0 %")] == sorted(
        line.index(words) for words in ("bank conflicts", "20.0 %", "10.0 %")
    )
    assert "DRAM" not in line


def test_findings_are_not_compared_between_different_sections() -> None:
    after = replace(AFTER, setup=replace(SETUP, sections=("SpeedOfLight", "WarpStateStats")))
    (match,) = comparison_document(compare(BEFORE, after), [])["matches"]
    assert match["findings"] is None
    assert changed_findings(match) == []


def test_a_baseline_keeps_findings_and_an_older_baseline_has_none(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(baseline_json(BEFORE))
    assert lines(read_baseline(path), AFTER) == [GONE, NEW]
    older = baseline_json(BEFORE).decode()
    begin = older.index(',"findings":[[[')
    path.write_text(older[:begin] + older[older.index("]]]", begin) + 3 :])
    assert lines(read_baseline(path), AFTER) == []


@pytest.mark.parametrize(
    "wrong", ['[[["bank_conflicts"]]]', "[[[1,0.5]]]", '[[["bank_conflicts",-1]]]', "[5]", "[[5]]", "7"]
)
def test_malformed_findings_are_refused_by_name(tmp_path: Path, wrong: str) -> None:
    text = baseline_json(found(100.0, ("bank_conflicts", 60.0))).decode()
    path = tmp_path / "baseline.json"
    path.write_text(text.replace('[[["bank_conflicts",0.6]]]', wrong))
    assert path.read_text() != text
    with pytest.raises(BaselineError):
        read_baseline(path)


def test_a_slower_kernel_shows_no_promised_gain() -> None:
    assert lines(AFTER, BEFORE) == [
        "gone: DRAM bandwidth is saturated while SMs have work",
        "new: Shared-memory bank conflicts (up to 60.0 %)",
    ]


STALLED = {"scheduler.n_active_warps": 2.0, "scheduler.issue_per_cycle": 0.1}
"""20 cycles from one instruction of a warp to the next."""


@pytest.mark.parametrize(("share", "is_gone"), [(0.2, True), (0.31, False)])
def test_a_stall_is_not_gone_if_its_wait_is_as_long_as_before(share: float, *, is_gone: bool) -> None:
    # 0.3 of 20 cycles are 6; 0.2 and 0.31 of them 4 and 6.2
    stall = {"stall_wait": 30.0}
    before = run(launch("a", 100.0, **STALLED, **{"stalls.wait": 0.3}), gains=stall)
    after = run(launch("a", 100.0, **STALLED, **{"stalls.wait": share}), gains={})
    assert bool(lines(before, after)) == is_gone


def test_a_finding_is_not_gone_if_a_related_finding_replaced_it() -> None:
    before = run(launch("a", 100.0), gains={"stall_long_scoreboard": 30.0})
    after = run(launch("a", 100.0), gains={"two_stage_mainloop": 30.0})
    assert [line.partition(":")[0] for line in lines(before, after)] == ["new"]
