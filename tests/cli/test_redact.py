"""`ncuroof redact` as programs see it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof
from tests.cli.running import run_main, run_with_closed_output
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Session, write_report

SESSION = Session(host_name="build-7.example.org", processes=((4242, "/home/lovelace/app"),))


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "in.ncu-rep"
    path.write_bytes(write_report([Kernel("k", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 1e3})], SESSION))
    return path


@pytest.mark.parametrize("name", ["out.ncu-rep", "out.ncu-repz"])
def test_the_result_is_a_report_of_the_kind_its_name_says(
    report: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = report.with_name(name)
    assert run_main("redact", report, target) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert "host names" in said.err
    assert "none left" in said.err
    assert (target.read_bytes()[:4] == b"NVR\0") == (name == "out.ncu-rep")
    assert ncuroof.read(target).analyse().kernels["duration_ns"].to_list() == [1e3]


def test_compressed_reports_are_redacted_as_well(report: Path) -> None:
    packed = report.with_name("packed.ncu-repz")
    assert run_main("redact", report, packed) == 0
    assert run_main("redact", packed, report.with_name("plain.ncu-rep")) == 0
    assert report.with_name("plain.ncu-rep").read_bytes()[:4] == b"NVR\0"


def test_nothing_is_overwritten_unasked(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = report.read_bytes()
    target = report.with_name("mine.ncu-rep")
    target.write_bytes(before)
    assert run_main("redact", report, target) == 1
    assert "--force" in capfd.readouterr().err
    assert target.read_bytes() == before
    assert run_main("redact", report, target, "--force", "--quiet") == 0
    assert capfd.readouterr().err == ""
    assert b"lovelace" not in target.read_bytes()


@pytest.mark.parametrize("name", ["page.html", "table.json"])
def test_a_file_of_ncuroof_is_not_overwritten_either(
    report: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    target = report.with_name(name)
    assert run_main("report", report, "-o", target) == 0
    before = target.read_bytes()
    assert run_main("redact", report, target) == 1
    assert f"{name}: already exists\n  hint: choose another name, or add --force\n" in capfd.readouterr().err
    assert target.read_bytes() == before
    assert run_main("redact", report, target, "--force", "-q") == 0
    assert target.read_bytes()[:4] == b"NVR\0"


def test_a_file_that_is_not_a_report_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("redact", tmp_path / "none.ncu-rep", tmp_path / "out.ncu-rep") == 1
    assert "no such file" in capfd.readouterr().err


def test_a_folder_as_output_is_refused(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("redact", report, f"{report.parent}/shared/") == 1
    assert "shared/: expected a file, found a folder's name\n" in capfd.readouterr().err
    assert list(report.parent.iterdir()) == [report]


def test_a_dash_is_standard_output(report: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run_main("redact", report, report.with_name("out.ncu-rep"), "--quiet") == 0
    assert run_main("redact", report, "-", "--quiet") == 0
    assert capfdbinary.readouterr().out == report.with_name("out.ncu-rep").read_bytes()


def test_a_relative_dash_is_a_file(report: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary) -> None:
    monkeypatch.chdir(report.parent)
    assert run_main("redact", report, "./-", "--quiet") == 0
    assert capfdbinary.readouterr().out == b""
    assert report.with_name("-").read_bytes()[:4] == b"NVR\0"


@pytest.mark.long
def test_a_result_without_a_destination_is_refused(
    report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run_with_closed_output("redact", report, "-")
    assert code == 1
    assert said == b"ncuroof: standard output is closed\n  hint: name a file instead of -\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run_main("redact", report, "-") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "a report is binary and would garble the terminal" in err


def test_a_note_says_that_counts_beside_the_report_are_not_copied(
    report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report.with_name("in.counts.json").write_text("{}", encoding="utf-8")
    assert run_main("redact", report, report.with_name("out.ncu-rep")) == 0
    assert "note: in.counts.json beside in.ncu-rep was not copied" in capfd.readouterr().err
    assert not report.with_name("out.counts.json").exists()
