"""The pairs of launches before and after a change: named findings exist, and predictions are scored against what was saved."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import tomli

from ncuroof.diagnosis import load_rules
from tests.support.many_reports import small_report
from tools.savings_score import CORPUS_PAIRS, SUITE_PAIRS, corpus_pairs, error, main

ENTRY = """
[[pair]]
source = "someone"
before = {{ file = "a/before.ncu-rep", id = 0 }}
after = {{ file = "a/after.ncu-rep", id = 1 }}
work = "1 / 2"
done = "a larger problem"
why = "it is written so"
findings = ["{finding}"]
isolated = true
"""


def test_pairs_name_findings_that_exist() -> None:
    known = load_rules().findings.keys()
    for entry in tomli.loads(CORPUS_PAIRS.read_text(encoding="utf-8"))["pair"]:
        assert set(entry["findings"]) <= known, entry["done"]
        assert entry["findings"] or not entry["isolated"], entry["done"]
        assert Fraction(entry["work"].replace(" ", "")) > 0
        assert entry["before"] != entry["after"]
        assert all(entry[side]["file"].split("/")[0] == entry["source"] for side in ("before", "after"))
    for entry in tomli.loads(SUITE_PAIRS.read_text(encoding="utf-8"))["pair"]:
        assert set(entry["findings"]) <= known, entry["fault"]


def test_what_was_saved_counts_the_share_of_the_work(tmp_path: Path) -> None:
    folder, listed = tmp_path / "corpus/a", tmp_path / "pairs.toml"
    folder.mkdir(parents=True)
    (folder / "before.ncu-rep").write_bytes(small_report(times_us=(100.0,)))
    (folder / "after.ncu-rep").write_bytes(small_report(times_us=(40.0, 60.0)))
    listed.write_text(ENTRY.format(finding="bank_conflicts"), encoding="utf-8")
    [pair] = corpus_pairs(folder.parent, listed)
    assert pair.saved == pytest.approx(0.7)  # half of the 60 µs did what 100 µs did before
    assert pair.finding == ""  # it is not reported, so that nothing was predicted


@pytest.mark.parametrize(
    ("saved", "predicted", "expected"),
    [
        (0.5, 0.5, 0.0),
        (0.5, 0.0, 1.0),  # twice as fast, where nothing was predicted
        (0.0, 0.5, 0.5),  # no faster, where twice was predicted
        (0.75, 0.5, 1.0),
    ],
)
def test_the_error_is_that_of_the_speed_up(saved: float, predicted: float, expected: float) -> None:
    assert error(saved, predicted) == pytest.approx(expected)


@pytest.mark.long
def test_without_the_reports_of_others_the_suite_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(tmp_path / "none"), "--source", "shared_conflicts_2"]) == 0
    said = capsys.readouterr()
    assert "there is no folder" in said.err
    assert "| shared_conflicts_2 | H200 |" in said.out
