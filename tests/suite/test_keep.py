"""A report that was recorded otherwise comes into a folder of recordings stripped, compressed and with provenance."""

from __future__ import annotations

import hashlib
from pathlib import Path

import keep
import packing
import pytest
from cases import parsed_toml
from stored import report_in
from suite_error import SuiteError

import ncuroof
from tests.support.constructed import Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import Session, write_report

SECRET = Session(host_name="secret-host.example.org", command_line="/opt/secret/ncu -o run /home/ada/app")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "h200"
    facts = {"gpu": "NVIDIA H200", "driver": "580", "ncu": "2025.3", "cases": ["copy_16"], "level": "full"}
    packing.keep(folder, packing.entry("copy_16.full.ncu-rep", b"x", facts), b"x")
    return folder


def words(report: Path, folder: Path, like: str = "copy_16.full") -> list[str]:
    command = "ncuroof profile --step 10 /home/ada/train.py --key pass-phrase"
    named = ["--name", "train.roofline", "--like", like, "--command", command, "--date", "2026-11-23"]
    return [str(report), str(folder), *named, "--hide", "pass-phrase"]


@pytest.mark.long
def test_a_report_is_added_with_its_counts(tmp_path: Path, folder: Path) -> None:
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([kernel(Described("step", 1000, warp_instructions=100))], SECRET))
    (tmp_path / "run.counts.json").write_text('{"source": "pass-phrase"}')
    assert keep.main(words(report, folder)) == 0
    path = folder / "train.roofline.ncu-repz"
    assert b"secret" not in report_in(path)
    alone = path.rename(tmp_path / "alone.ncu-repz")
    assert ncuroof.read(alone).analyse().summary.n_kernels == 1
    assert (folder / "train.roofline.counts.json").read_text() == '{"source": "xxxxxxxxxxx"}'
    _, entry = parsed_toml((folder / "provenance.toml").read_text(encoding="utf-8"))["file"]
    assert (entry["gpu"], entry["driver"], entry["cases"], entry["level"]) == ("NVIDIA H200", "580", [], "roofline")
    assert entry["command"] == "ncuroof profile --step 10 train.py --key xxxxxxxxxxx"
    assert entry["sha256"] == hashlib.sha256(report_in(alone)).hexdigest()


def test_what_cannot_be_added_is_told(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "run.ncu-rep"
    assert keep.main(words(report, folder)) == 1
    report.write_bytes(b"no report")
    assert keep.main(words(report, folder)) == 1
    assert keep.main(words(report, folder, like="copy_4.full")) == 1
    errors = capsys.readouterr().err
    assert [part in errors for part in ("run.ncu-rep'", "an Nsight Compute report was wanted", "there is none")] == [
        True
    ] * 3
    assert len(list(folder.glob("*.ncu-repz"))) == 1


@pytest.mark.parametrize("name", ["../evil.full", "train", "train.half", "/evil.full", ".full"])
def test_a_name_that_is_none_is_refused(
    name: str, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([kernel(Described("step", 1000, warp_instructions=100))], SECRET))
    assert keep.main([name if word == "train.roofline" else word for word in words(report, folder)]) == 1
    assert capsys.readouterr().err.startswith("error: --name: ")
    assert [path.name for path in tmp_path.rglob("*.ncu-repz")] == ["copy_16.full.ncu-repz"]


@pytest.mark.parametrize("content", ["file = 1 2", "other = 1\n", "file = 3\n", "[[file]]\ncases = []\n"])
def test_a_provenance_that_is_none_is_told(
    content: str, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([kernel(Described("step", 1000, warp_instructions=100))], SECRET))
    (folder / "provenance.toml").write_text(content)
    assert keep.main(words(report, folder)) == 1
    assert "provenance.toml: " in capsys.readouterr().err
    with pytest.raises(SuiteError, match=r"provenance\.toml"):
        packing.keep(folder, packing.entry("r.full.ncu-rep", b"x", {}), b"x")
    with pytest.raises(SuiteError, match=r"provenance\.toml"):
        packing.Archives(folder)
    assert not (folder / "r.full.ncu-repz").exists()
