"""Lines of the source before and after, from shares of samples that are chosen by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ncuroof
from ncuroof.comparison import baseline_json, compare, line_shares, read_baseline
from ncuroof.comparison.finding_changes import line_changes
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.texts.comparison import to_markdown, to_text
from ncuroof.tables import LINES
from tests.comparison.runs import launch, run
from tests.support.lined import lined_report

NOISE = load_comparison_rules().noise  # a twentieth of the kernel's time, and two standard errors


def lines(*shares: tuple[int, str, float], n_samples: float = 1e6, file: str = "a.cu") -> list[dict[str, Any]]:
    """Return LINE_SHARES of a group: number, text and share of each line."""
    same = {"file": file, "callers": None, "n_samples": n_samples}
    return [{"line": line, "text": text, "frac": frac, **same} for line, text, frac in shares]


def changes(
    old: list[dict[str, Any]], new: list[dict[str, Any]], before: float = 100.0, after: float = 100.0
) -> list[tuple[tuple[int | None, int | None], tuple[float, float]]]:
    found = line_changes(old, new, (before, after), NOISE)
    return [(each.lines, (round(each.time_ns[0], 6), round(each.time_ns[1], 6))) for each in found]


def test_a_moved_line_is_found_by_its_text() -> None:
    old = lines((10, "load", 0.5), (11, "add", 0.3), (12, "store", 0.2))
    new = lines((14, "load", 0.7), (15, "add", 0.2), (16, "store", 0.1))
    assert changes(old, new, 100.0, 150.0) == [((10, 14), (50.0, 105.0))]  # 30.0 and 30.0, 20.0 and 15.0


def test_added_and_removed_lines_have_no_counterpart() -> None:
    old = lines((10, "load", 0.5), (11, "add", 0.5))
    new = lines((10, "copy", 0.6), (11, "add", 0.4))
    assert changes(old, new) == [((None, 10), (0.0, 60.0)), ((10, None), (50.0, 0.0)), ((11, 11), (50.0, 40.0))]


def test_equal_lines_are_matched_by_their_neighbours() -> None:
    old = lines((1, "load", 0.2), (2, "sync", 0.6), (3, "add", 0.1), (4, "store", 0.1))
    new = lines((1, "load", 0.2), (3, "add", 0.1), (4, "store", 0.1), (9, "sync", 0.6))
    assert changes(old, new) == [((2, None), (60.0, 0.0)), ((None, 9), (0.0, 60.0))]


def test_equal_lines_of_different_files_are_different() -> None:
    assert changes(lines((1, "x", 1.0)), lines((1, "x", 1.0), file="b.cu")) == [
        ((1, None), (100.0, 0.0)),
        ((None, 1), (0.0, 100.0)),
    ]


def test_a_line_below_a_twentieth_of_the_kernel_is_not_shown() -> None:
    old, new = lines((1, "x", 0.5), (2, "y", 0.5)), lines((1, "x", 0.54), (2, "y", 0.46))
    assert changes(old, new) == []
    assert len(changes(old, lines((1, "x", 0.56), (2, "y", 0.44)))) == 2


def test_few_samples_show_only_large_changes() -> None:
    """Of 100 samples a half has a deviation of 5 %, so that two halves differ by 7 % and two of those are 14 %."""
    old = lines((1, "x", 0.5), n_samples=100)
    assert changes(old, lines((1, "x", 0.63), n_samples=100)) == []
    assert len(changes(old, lines((1, "x", 0.65), n_samples=100))) == 1


def test_a_share_that_rounding_left_above_one_is_one() -> None:
    whole = lines((1, "x", 1.0000000000000002), n_samples=100)
    assert changes(whole, whole, 100.0, 150.0) == [((1, 1), (100.0, 150.0))]


@pytest.mark.parametrize("known", [lines((1, "x", 1.0)), []])
def test_no_line_changes_are_shown_if_a_side_has_no_lines(known: list[dict[str, Any]]) -> None:
    assert changes(known, []) == changes([], known) == []


def shares(*rows: tuple[int, int, str | None, float, float]) -> list[tuple[Any, ...]]:
    """Return LINE_SHARES of two launches of one group and one of another, from their lines: launch, line, text, value, share."""
    side = run(launch("a"), launch("a"), launch("b"))
    table = pl.DataFrame(
        [dict.fromkeys(LINES) | dict(zip(("id", "line", "text", "value", "frac"), row, strict=True)) for row in rows],
        schema=LINES,
    ).with_columns(pl.lit("samples").alias("measure"), pl.lit("a.cu").alias("file"))
    found = line_shares(side.groups, table)
    return found.select("group", "line", "text", pl.col("frac").round(6), "n_samples").rows()


def test_launches_of_a_group_are_taken_together() -> None:
    found = shares((0, 1, "x", 30.0, 0.3), (0, 2, None, 70.0, 0.7), (1, 1, "x", 100.0, 0.5), (2, 1, "x", 40.0, 1.0))
    assert found == [
        (0, 1, "x", round(130 / 300, 6), 300.0),
        (0, 2, None, round(70 / 300, 6), 300.0),  # of which changes say nothing, but which has a place
        (1, 1, "x", 1.0, 40.0),
    ]


def compared(folder: Path, duration_ns: float, n_at_9: int) -> dict[str, Any]:
    """Return the document of a report with lines, and of another whose line 9 has so many samples; 400 lie elsewhere."""
    paths = folder / "before.ncu-rep", folder / "after.ncu-rep"
    paths[0].write_bytes(lined_report())
    paths[1].write_bytes(lined_report(duration_ns=duration_ns, n_at_9=n_at_9))
    return comparison_document(ncuroof.compare(*(ncuroof.read(path).analyse() for path in paths)))


@pytest.mark.long
def test_a_comparison_says_at_which_line_the_time_changed(tmp_path: Path) -> None:
    document = compared(tmp_path, duration_ns=1.8e6, n_at_9=1400)
    (match,) = document["matches"]
    assert match["lines"] == [
        {
            "file": "inlined.h",
            "line": [9, 9],
            "text": "return b + x[j];",
            "callers": [{"file": "inlined.cu", "line": 4}],
            "time_ns": [600_000.0, 1_400_000.0],
        }
    ]
    assert "    600 µs → 1.40 ms at inlined.h:9, called at inlined.cu:4 · return b + x[j];" in to_text(document)
    assert "<br>600 µs → 1.40 ms at inlined.h:9" in to_markdown(document)


@pytest.mark.long
def test_a_kernel_that_takes_as_long_has_no_lines(tmp_path: Path) -> None:
    (match,) = compared(tmp_path, duration_ns=1e6, n_at_9=1400)["matches"]
    assert match["lines"] == []


@pytest.mark.long
def test_times_of_lines_are_not_compared_if_times_are_not(tmp_path: Path) -> None:
    before, after = (tmp_path / "before.ncu-rep", tmp_path / "after.ncu-rep")
    before.write_bytes(lined_report())
    after.write_bytes(lined_report(duration_ns=1.8e6, n_at_9=1400))
    sides = [
        replace(side, setup=replace(side.setup, gpus=(gpu,)))
        for path, gpu in ((before, "NVIDIA H200"), (after, "NVIDIA H100"))
        for side in [ncuroof.read(path).analyse().run()]
    ]
    (match,) = comparison_document(compare(*sides))["matches"]
    assert match["lines"] == []


def test_a_baseline_keeps_no_line_of_the_sources(tmp_path: Path) -> None:
    report, baseline = tmp_path / "r.ncu-rep", tmp_path / "r.json"
    report.write_bytes(lined_report())
    baseline.write_bytes(baseline_json(ncuroof.read(report).analyse().run()))
    assert b"return b" not in baseline.read_bytes()
    assert read_baseline(baseline).lines.is_empty()
