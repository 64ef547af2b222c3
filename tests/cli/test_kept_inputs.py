"""No command writes over what it reads, not even with --force."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import run_main
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

RECORDING = write_report([Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0})])


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(RECORDING)
    return path


def _assert_refused(capfd: pytest.CaptureFixture[str]) -> None:
    message, hint = capfd.readouterr().err.splitlines()
    assert message.endswith("is an input of this command and would be overwritten")
    assert hint == "  hint: choose another name; --force never overwrites an input"


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "IN", "-o", "IN", "--format", "json", "--force"),
        ("compare", "OTHER", "IN", "--save-baseline", "IN", "--force"),
        ("redact", "IN", "IN", "--force"),
        ("profile", "--remote-plan", "IN", "--force", "./app", "IN"),
        ("profile", "-o", "IN", "--force", "--dry-run", "./app", "IN"),
    ],
)
def test_a_report_that_is_read_is_not_written_over(
    report: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    other = report.with_name("other.ncu-rep")
    other.write_bytes(RECORDING)
    places = {"IN": str(report), "OTHER": str(other)}
    assert run_main(*(places.get(word, word) for word in arguments)) == 1
    _assert_refused(capfd)
    assert report.read_bytes() == RECORDING


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "IN", "-o", "LINK", "--force"),
        ("compare", "IN", "IN", "-o", "LINK", "--force"),
        ("compare", "--history", "IN", "IN", "-o", "LINK", "--force"),
        ("whatif", "IN", "--gpu", "b200", "-o", "LINK", "--force"),
    ],
)
def test_a_report_is_not_written_over_through_a_link(
    report: Path,
    capfd: pytest.CaptureFixture[str],
    link: Callable[[Path, Path], None],
    arguments: tuple[str, ...],
) -> None:
    link(report, linked := report.with_name("out.json"))
    places = {"IN": str(report), "LINK": str(linked)}
    assert run_main(*(places.get(word, word) for word in arguments)) == 1
    _assert_refused(capfd)
    assert linked.read_bytes() == RECORDING


def test_a_report_is_not_written_over_by_its_page(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = report.rename(report.with_name("run.html"))
    assert run_main("report", named, "--force") == 1
    _assert_refused(capfd)
    assert named.read_bytes() == RECORDING


def test_the_counts_beside_a_report_are_not_written_over_although_ncuroof_wrote_them(
    report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    counts = report.with_name("run.counts.json")
    counts.write_text('{\n "schema": "ncuroof.counts/1",\n "kernels": []\n}', encoding="utf-8")
    assert run_main("report", report, "-o", counts) == 1
    _assert_refused(capfd)


def test_a_calibration_or_a_trace_is_not_written_over(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = report.with_name("named.json")
    named.write_text("{}", encoding="utf-8")
    for option in ("--calibration", "--trace"):
        assert run_main("report", report, option, named, "-o", named, "--force") == 1
        _assert_refused(capfd)


@pytest.mark.long
def test_a_baseline_may_be_renewed_and_not_become_the_comparison(
    report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    baseline = report.with_name("baseline.json")
    assert run_main("compare", report, report, "--save-baseline", baseline, "--quiet") == 0
    before = baseline.read_bytes()
    assert run_main("compare", baseline, report, "--save-baseline", baseline, "--force", "--quiet") == 0
    assert baseline.read_bytes() == before
    assert run_main("compare", baseline, report, "-o", baseline, "--force", "--quiet") == 1
    _assert_refused(capfd)


@pytest.mark.long
def test_a_dataset_keeps_its_files(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dataset = report.with_name("runs")
    assert run_main("ingest", report, "-o", dataset, "--threads", "--workers", "1", "--quiet") == 0
    assert run_main("fleet", dataset, "-o", dataset / "ncuroof.json", "--force") == 1
    _assert_refused(capfd)
    assert run_main("fleet", dataset, "-o", dataset / "answer.json") == 0


def test_a_dataset_is_not_made_of_a_report(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("ingest", report, "-o", report) == 1
    assert "expected a dataset or an empty folder" in capfd.readouterr().err
    assert report.read_bytes() == RECORDING


@pytest.mark.parametrize(
    "words",
    [
        ("report", ""), ("report", "run.ncu-rep", "--trace", ""), ("report", "run.ncu-rep", "-o", ""), ("fleet", ""),
        ("ingest", "", "-o", "fleet"), ("ingest", "run.ncu-rep", "-o", ""), ("redact", "", "b"), ("redact", "a", ""),
        ("whatif", "", "--gpu", "b200"), ("compare", "a", ""), ("profile", "-o", "", "train.py"), ("calibrate", "-o", ""),
    ],
)  # fmt: skip
def test_an_empty_name_is_not_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main(*words) == 2
    assert "expected a path, found an empty one" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())
