"""The digests by which two commits are compared: the same for the same outputs, and telling of whatever else differs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import demo
from tests.support.many_reports import small_report
from tools import output_digests
from tools.covered_commands import Job
from tools.output_digests import main, outputs, write

FORMATS = ("json", "parquet", "csv", "md")
REPORT = ("report", "a/run.ncu-rep", *(word for form in FORMATS for word in ("-o", f"r.{form}")), "-o", "-")


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    def of(*words: str, times_us: tuple[float, ...] = (100.0, 200.0)) -> Job:
        report = tmp_path / "inputs" / f"{times_us}.ncu-rep"
        report.parent.mkdir(exist_ok=True)
        report.write_bytes(small_report(times_us=times_us))
        return Job([words], {"a/run.ncu-rep": report})

    return of


def test_the_same_report_gives_the_same_digests(tmp_path: Path, job: Callable[..., Job]) -> None:
    files = [tmp_path / name for name in ("first.txt", "second.txt")]
    for file in files:
        write(file, [job(*REPORT)])
    first, second = (file.read_text() for file in files)
    assert first == second
    assert [line.rpartition(" > ")[2] for line in first.splitlines()] == [
        "r.csv", "r.json", "r.md", "r.parquet", "standard output",
    ]  # fmt: skip
    assert main(["compare", *map(str, files)]) == 0


def test_a_changed_output_is_told_and_shown(
    tmp_path: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, keep = (str(tmp_path / name) for name in ("before.txt", "after.txt", "kept"))
    write(Path(before), [job(*REPORT), job("gpus", "h200-sxm")], keep=Path(keep))
    write(Path(after), [job(*REPORT, times_us=(100.0, 260.0)), job("gpus", "h200-sxm")], keep=Path(keep))
    capsys.readouterr()
    assert main(["compare", before, after, "--keep", keep, "--show", "csv$"]) == 1
    told = capsys.readouterr().out
    assert "report .csv: 1 of 1 differ\n  output: ncuroof report a/run.ncu-rep" in told
    assert "gpus" not in told
    assert told.endswith("5 of 6 outputs differ\n")
    shown = [line for line in told.splitlines() if line.startswith(("-", "+"))]
    assert any(line.startswith("-") and "200000" in line for line in shown)
    assert any(line.startswith("+") and "260000" in line for line in shown)


def test_exit_status_and_standard_error_count(
    tmp_path: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (known,), (unknown,) = outputs(job("gpus", "h200-sxm")), outputs(job("gpus", "h1000"))
    assert (known.status, unknown.status) == (0, 2)
    assert known.errors != unknown.errors

    def fails(_words: object) -> None:
        print("no such GPU", file=sys.stderr)
        sys.exit(1)

    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    write(before, [job("explain")])
    monkeypatch.setattr(output_digests, "ncuroof", fails)
    write(after, [job("explain")])
    assert main(["compare", str(before), str(after)]) == 1
    assert "output, exit status 0 became 1, standard error: ncuroof explain" in capsys.readouterr().out


def test_an_output_that_is_gone_is_told(
    tmp_path: Path, job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    write(before, [job("gpus"), job("explain")])
    write(after, [job("explain")])
    assert main(["compare", str(before), str(after)]) == 1
    assert "only before: ncuroof gpus > standard output" in capsys.readouterr().out


def test_neither_folder_nor_version_is_in_a_digest(
    tmp_path: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outputs(job(*REPORT), keep=tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "50")
    assert outputs(job(*REPORT)) == before
    kept = [output_digests._lines(tmp_path, each.digest) for each in before]
    assert any('"version": "VERSION"' in line for lines in kept for line in lines)


def test_a_command_that_raises_is_an_outcome(job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(_words: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(output_digests, "ncuroof", raises)
    assert [output.status for output in outputs(job("gpus"))] == [-1]


def test_of_everything_what_is_chosen_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, nowhere = tmp_path / "some.txt", str(tmp_path / "nowhere")
    only = f"redact {demo.REPORT.relative_to(demo.REPORT.parents[2])} redacted"
    assert main(["write", str(file), "--only", only, "--jobs", "1", "--corpus", nowhere, "--cases", nowhere]) == 0
    assert f"left out, because there is no such folder: {nowhere}" in capsys.readouterr().err
    assert [line.split(" ", 3)[3].partition(" > ")[2] for line in file.read_text().splitlines()] == [
        "redacted.ncu-rep", "standard output",
    ]  # fmt: skip
