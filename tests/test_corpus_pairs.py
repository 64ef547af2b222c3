"""The pairs of recorded launches: named findings exist, and the table gives what was saved beside what was promised."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
import tomli

from ncuroof.diagnosis import load_rules
from tests.support.many_reports import small_report
from tools.corpus_pairs import PAIRS, Pair, main, pairs, table

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
    for entry in tomli.loads(PAIRS.read_text(encoding="utf-8"))["pair"]:
        assert set(entry["findings"]) <= known, entry["done"]
        assert entry["findings"] or not entry["isolated"], entry["done"]
        assert Fraction(entry["work"].replace(" ", "")) > 0
        assert entry["before"] != entry["after"]
        assert all(entry[side]["file"].split("/")[0] == entry["source"] for side in ("before", "after"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus/a"
    folder.mkdir(parents=True)
    (folder / "before.ncu-rep").write_bytes(small_report(times_us=(100.0,)))
    (folder / "after.ncu-rep").write_bytes(small_report(times_us=(40.0, 60.0)))
    return folder.parent


def test_what_was_saved_counts_the_share_of_the_work(tmp_path: Path, corpus: Path) -> None:
    kept, listed = tmp_path / "kept", tmp_path / "pairs.toml"
    kept.mkdir()
    listed.write_text(ENTRY.format(finding="bank_conflicts"), encoding="utf-8")
    [pair] = pairs(corpus, kept, listed)
    assert pair.saved == pytest.approx(0.7)  # half of the 60 µs did what 100 µs did before
    assert pair.promised == {"bank_conflicts": "not found"}
    assert "| 70.0% | `bank_conflicts` not found |" in list(table([pair]))[-1]


def test_a_finding_gives_its_bound_and_prediction_as_shares() -> None:
    [entry] = tomli.loads(ENTRY.format(finding="tail_wave"))["pair"]
    other = {"id": "bank_conflicts", "gain_ns": 90.0}
    found = {"id": "tail_wave", "gain_ns": 50.0, "expected_ns": 30.0, "expected_low_ns": None, "gain_basis": "…"}
    pair = Pair(entry, {"duration_ns": 200.0, "findings": [other, found]}, {"duration_ns": 600.0})
    assert pair.promised == {"tail_wave": 0.25}
    assert pair.expected == {"tail_wave": [0.15, None]}
    assert pair.saved == pytest.approx(-0.5)


def test_pairs_without_their_reports_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2  # the table's head
    assert main(["--corpus", str(tmp_path / "absent")]) == 0
    assert "there is no such folder" in capsys.readouterr().err
