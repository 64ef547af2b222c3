"""The brief of a comparison fits its budget, and says what the comparison says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.comparison import judge, parse_gate
from ncuroof.present.brief import LEAST_BUDGET_BYTES
from ncuroof.present.brief.changes import comparison_brief
from ncuroof.present.documents.comparison import comparison_document
from tests.cli.running import run_main
from tests.present.test_brief import HOSTILE
from tests.support import demo
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report


def _document(before: Path, after: Path, *gates: str) -> dict[str, Any]:
    comparison = ncuroof.compare(before, after)
    return comparison_document(comparison, judge([parse_gate(gate) for gate in gates], comparison))


@pytest.mark.long
@pytest.mark.parametrize("budget", [LEAST_BUDGET_BYTES, 2000, 4096, 16_000])
def test_numbers_are_those_of_the_comparison_and_the_rest_is_counted(budget: int) -> None:
    document = _document(demo.REPORT, demo.REPORT_MENDED, "time:+5%")
    text = comparison_brief(document, budget=budget)
    packet = json.loads(text)
    assert len(text.encode()) <= budget
    assert packet["summary"]["duration_change_frac"] == document["summary"]["duration_change_frac"]
    matches = {tuple(match["before"][0]["ids"]): match for match in document["matches"]}
    for said in packet["kernels"]:
        match = next(match for ids, match in matches.items() if said["before"][0] in ids)
        for key in ("change_frac", "noise_frac", "mean_ns", "verdict", "limiter", "roof_frac", "sureness"):
            assert said[key] == match[key]
        assert said["why"] == match["sentence"]
    assert len(packet["kernels"]) + packet["left_out"]["kernels"] == 5
    assert packet["gates"][0]["has_passed"] is True


@pytest.mark.long
def test_a_gate_that_failed_comes_first() -> None:
    document = _document(demo.REPORT_MENDED, demo.REPORT, "findings.high==99", "time:+5%", "time:+900%")
    packet = json.loads(comparison_brief(document, budget=2000))
    passed = [gate["has_passed"] for gate in packet["gates"]]
    assert passed[0] is False
    assert passed == sorted(passed)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_exceeds_the_budget(tmp_path: Path, name: str) -> None:
    text = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    for file, time_us in (("before", 4096.0), ("after", 9096.0)):
        counters = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": time_us}
        (tmp_path / f"{file}.ncu-rep").write_bytes(write_report([Kernel(text, counters, demangled=text)]))
    document = _document(tmp_path / "before.ncu-rep", tmp_path / "after.ncu-rep")
    written = comparison_brief(document, budget=LEAST_BUDGET_BYTES)
    assert len(written.encode()) <= LEAST_BUDGET_BYTES
    assert json.loads(written)["summary"]["n_matches"] == 1


@pytest.mark.long
def test_compare_writes_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("compare", demo.REPORT, demo.REPORT_MENDED, "--format", "brief", "--gate", "time:-90%") == 3
    packet = json.loads(capfd.readouterr().out)
    assert packet["schema"] == "ncuroof.comparison_brief/1"
    assert packet["gates"][0]["has_passed"] is False
