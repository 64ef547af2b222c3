"""The labels of hard kernels name findings that exist, and the score compares them with answers and baselines."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from ncuroof.diagnosis import load_rules
from ncuroof.enums import Verdict
from tests.support.many_reports import small_report
from tools.hard_score import LABELS, main, scored

ENTRY = """
[[kernel]]
file = "a/b.ncu-rep"
id = 0
kernel = "k"
verdicts = {verdicts}
limiters = []
causes = ["small_grid"]
must_not = {must_not}
saving = [0.0, 1.0]
why = "it is written so"
"""


def test_labels_name_verdicts_and_findings_that_exist() -> None:
    known = load_rules().findings.keys()
    labels = tomli.loads(LABELS.read_text(encoding="utf-8"))["kernel"]
    assert len({(label["file"], label["id"]) for label in labels}) == len(labels) >= 60
    for label in labels:
        assert set(label["verdicts"]) <= {each.value for each in Verdict}, label["why"]
        assert {*label["causes"], *label["must_not"]} <= known, label["why"]
        assert not set(label["causes"]) & set(label["must_not"]), label["why"]
        low, high = label.get("saving", (0, 1))
        assert 0 <= low <= high <= 1, label["why"]


@pytest.mark.long
def test_an_answer_is_right_where_the_label_accepts_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.ncu-rep").write_bytes(small_report())
    labels = tmp_path / "labels.toml"
    labels.write_text(ENTRY.format(verdicts=["overhead"], must_not=[]), encoding="utf-8")
    (one,) = scored(tmp_path, labels)
    verdict, _, rest = one.answer.partition(", ")
    names = rest.partition("; ")[2].split(", ")
    labels.write_text(ENTRY.format(verdicts=["balanced", verdict], must_not=names[:1]), encoding="utf-8")
    (other,) = scored(tmp_path, labels)
    assert other.right["verdict"] is True
    assert other.right["first choice"] is False
    assert other.right["limiter"] is None
    assert other.right["nothing false"] is False


def test_without_the_reports_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no report that corpus_hard\.toml names is in"):
        main(["--corpus", str(tmp_path)])
