"""What is not a report is refused by name, quickly and whatever its suffix; what is one is read whatever its suffix."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

import ncuroof
from ncuroof.errors import (
    NcuroofError,
    ReportAccessError,
    ReportEmptyError,
    ReportFormatError,
    ReportNotFoundError,
)
from ncuroof.ingest import open_report
from ncuroof.ingest.nvidia_module import read_tables
from ncuroof.ingest.raw_report import RAW_RULES, RAW_WORKLOADS, ResultTables
from ncuroof.ingest.report_files import report_content, require_report
from tests.support import demo
from tests.support.patience import PATIENCE_S
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

METRICS = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}
REPORT = write_report([Kernel("saxpy", METRICS)])
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123\n"
ROOT = Path(__file__).resolve().parents[2]
LEAST_ALLOWANCE_BYTES = 500 << 20
"""What Python with polars, NVIDIA's module and zstd needs anyway (about 200 MB), and as much again."""

NOT_REPORTS = {
    "an empty file": b"",
    "a text file": b"==PROF== Connected to process 1234 (/usr/bin/python3)\n",
    "UTF-16 text, as PowerShell redirects": "==PROF==".encode("utf-16"),
    "JSON": json.dumps({"schema": "ncuroof.analysis/1"}).encode(),
    "random bytes": bytes(range(128, 256)) * 32,
    "a PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "gzip": gzip.compress(REPORT),
    "a zip": b"PK\x03\x04" + bytes(100),
    "an ELF": b"\x7fELF" + bytes(100),
    "a Git LFS pointer": LFS_POINTER,
    "the magic alone": b"NVR\0",
    "the magic and text": b"NVR\0 is what a report begins with, and this is no report",
    "the magic and zeros": b"NVR\0" + bytes(1000),
    "the magic and ones": b"NVR\0" + b"\xff" * 1000,
}


@pytest.mark.parametrize("content", NOT_REPORTS.values(), ids=NOT_REPORTS.keys())
@pytest.mark.parametrize("suffix", [".ncu-rep", ".ncu-repz", ""])
def test_a_file_that_is_not_a_report_is_refused_with_a_hint(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    with pytest.raises(ReportFormatError, match="file") as caught:
        ncuroof.read(path)
    assert caught.value.hint


def test_a_database_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "timeline.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE kernels (name TEXT)")
    database.commit()
    database.close()
    with pytest.raises(ReportFormatError, match="found an SQLite database"):
        ncuroof.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFoundError, match=r"absent\.ncu-rep: no such file") as caught:
        ncuroof.read(tmp_path / "absent.ncu-rep")
    assert isinstance(caught.value, FileNotFoundError)


def test_paths_that_no_file_can_have_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(REPORT)
    for impossible in (tmp_path / "file" / "inside", Path("with\0nul"), Path()):
        with pytest.raises(ReportNotFoundError):
            ncuroof.read(impossible)


@pytest.mark.parametrize("name", ["x" * 5000, "loop"])
def test_paths_that_the_system_refuses_are_an_access_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ReportAccessError, match="cannot be read"):
        ncuroof.read(tmp_path / name)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFoundError, match="found a directory"):
        ncuroof.read(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_read_permission_is_an_access_error(tmp_path: Path) -> None:
    path = tmp_path / "secret.ncu-rep"
    path.write_bytes(REPORT)
    path.chmod(0)
    with pytest.raises(ReportAccessError, match="Permission denied"):
        ncuroof.read(path)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "fifo"])
def test_pipes_and_devices_are_refused_and_do_not_hang(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ReportAccessError, match="found a pipe or device"):
        ncuroof.read(tmp_path / path)


def test_a_report_without_kernels_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "none.ncu-rep"
    path.write_bytes(write_report([]))
    with pytest.raises(ReportEmptyError, match="contains no profiled kernel"):
        ncuroof.read(path)


@pytest.mark.parametrize(
    "name", ["run", "run.ncu-rep", "run.nsight-cuprof-report", "run.ncu-repz", ".ncu-rep", "r.txt"]
)
def test_a_report_is_read_whatever_its_suffix(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(REPORT)
    report = open_report(path)
    assert (report.file, report.damage) == (name, None)
    assert report.workloads["function_name"].to_list() == ["saxpy"]
    assert report.counters["gpu__time_duration.sum"].to_list() == [4096.0]


@pytest.mark.parametrize("name", [os.fsdecode(b"\xff.ncu-rep"), "漢字 ×.ncu-rep", "x" * 255, "[bold].ncu-rep", "a\nb"])
def test_any_file_name_is_readable_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(REPORT)
    (source,) = ncuroof.read(path).analyse().to_dict()["sources"]
    assert source["file"].encode() == name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def test_an_unreadable_name_can_be_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(NcuroofError) as caught:
        ncuroof.read(tmp_path / os.fsdecode(b"\xff.ncu-rep"))
    str(caught.value).encode()


# ---- compressed reports ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.ncu-repz", "run.ncu-rep", "run"])
def test_a_compressed_report_is_read_whatever_its_suffix(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(zstandard.compress(REPORT))
    report = open_report(path)
    assert report.damage is None
    assert report.workloads["function_name"].to_list() == ["saxpy"]


def test_a_cut_compressed_report_keeps_its_beginning(tmp_path: Path) -> None:
    plain = demo.REPORT.read_bytes()
    compressed = zstandard.ZstdCompressor(level=1).compress(plain)
    path = tmp_path / "cut.ncu-repz"
    path.write_bytes(compressed[: len(compressed) * 3 // 4])
    report = open_report(path)
    assert report.damage
    assert 0 < report.workloads.height < len(demo.PLANTED)
    whole = open_report(demo.REPORT)
    assert report.workloads.equals(whole.workloads.head(report.workloads.height))


@pytest.mark.parametrize("behind", [b"\n", bytes(40), b"what another program wrote"])
def test_bytes_after_a_compressed_report_lose_nothing(tmp_path: Path, behind: bytes) -> None:
    path = tmp_path / "more.ncu-repz"
    path.write_bytes(zstandard.compress(demo.REPORT.read_bytes()) + behind)
    report = open_report(path)
    assert "compression is damaged" in str(report.damage)
    assert report.workloads.height == len(demo.PLANTED)


def test_a_compressed_report_whose_checksum_is_wrong_is_damaged(tmp_path: Path) -> None:
    compressed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(demo.REPORT.read_bytes()))
    compressed[-1] ^= 1  # the checksum ends the frame
    path = tmp_path / "flipped.ncu-repz"
    path.write_bytes(compressed)
    damage = open_report(path).damage
    assert damage is not None
    assert "compression is damaged" in damage


def test_zstd_of_something_else_or_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.ncu-repz"
    for content in (b"", b"hello\n", LFS_POINTER):
        path.write_bytes(zstandard.compress(content))
        with pytest.raises(ReportFormatError, match=r"file\.ncu-repz"):
            ncuroof.read(path)
    path.write_bytes(zstandard.compress(REPORT)[:6])
    with pytest.raises(
        ReportFormatError, match="the compressed report cannot be read: nothing in it can be decompressed"
    ):
        ncuroof.read(path)


@pytest.mark.long
def test_a_decompression_bomb_is_refused_with_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.ncu-repz"
    zeros = bytes(1 << 20)
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as stream:
        stream.write(REPORT)
        for _ in range(2048):  # 2 GiB
            stream.write(zeros)
    assert path.stat().st_size < 1 << 20
    printed, peak_bytes = _read_in_a_process(path)
    assert "ReportFormatError" in printed
    assert "decompresses to more" in printed
    assert peak_bytes < LEAST_ALLOWANCE_BYTES


@pytest.mark.long
def test_a_huge_file_of_a_different_kind_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(64 << 30)  # a hole: 64 GiB of zeros that need no disk
    printed, peak_bytes = _read_in_a_process(path)
    assert "ReportFormatError" in printed
    assert peak_bytes < LEAST_ALLOWANCE_BYTES


@pytest.mark.long
@pytest.mark.parametrize("listing", [True, False])
def test_a_file_that_names_counters_without_end_is_refused_with_little_memory(tmp_path: Path, listing: bool) -> None:
    # Columns as wide as the file says, and expressions over all of them: 100 kB of file took gigabytes.
    breakdown = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    name = "dram__made_up_{}" if listing else "sm__ops_path_tensor_op_made{}_up_src_fp16.sum"
    kernels = [Kernel("k", {breakdown: name.format(i), name.format(i): 1.0}) for i in range(1200)]
    path = tmp_path / "wide.ncu-rep"
    path.write_bytes(write_report(kernels, kernels_per_block=100))
    printed, peak_bytes = _read_in_a_process(path)
    assert "ReportFormatError" in printed
    assert peak_bytes < LEAST_ALLOWANCE_BYTES


def _read_in_a_process(path: Path) -> tuple[str, int]:
    """Return what the analysis of a file says in a process of its own, and the most memory that it had.

    getrusage would do, were its peak not inherited from the process that starts this one.
    """
    code = (
        "import re, sys, ncuroof\n"
        "try: print(ncuroof.read(sys.argv[1]).analyse().kernels.height)\n"
        "except ncuroof.errors.NcuroofError as error: print(type(error).__name__, error)\n"
        "print(re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=ROOT,
        check=True,
    )
    assert done.stderr == ""
    said, peak_kib = done.stdout.strip().rsplit("\n", 1)
    return said, int(peak_kib) << 10


# ---- readers -----------------------------------------------------------------------------------------


def test_a_reader_that_finds_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(REPORT)

    def blind(path: Path, selection: object) -> ResultTables:
        nothing = pl.DataFrame()
        return ResultTables(
            pl.DataFrame(schema=RAW_WORKLOADS), nothing, {}, nothing, pl.DataFrame(schema=RAW_RULES), ()
        )

    monkeypatch.setattr("ncuroof.ingest.nvidia_module.read_tables", blind)
    with pytest.raises(ReportFormatError, match="none of the report's kernels can be read"):
        open_report(path, reader="nvidia")


def test_a_full_temporary_folder_is_an_access_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(REPORT + b"\x01")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(ReportAccessError, match="copy"):
        open_report(path, reader="nvidia")


def test_times_are_nanoseconds_whatever_unit_the_module_names(tmp_path: Path) -> None:
    """After a damaged report NVIDIA's module may call times seconds for the rest of the process; the file holds nanoseconds."""
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(write_report([Kernel("one", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 5.0})]))
    tables = read_tables(path, None)
    assert tables.units["gpu__time_duration.sum"] == "ns"
    assert tables.counters["gpu__time_duration.sum"].to_list() == [5.0]


def test_an_empty_file_is_not_read(tmp_path: Path) -> None:
    """As files of /proc are, which read as anything, or never end."""
    path = tmp_path / "empty.ncu-rep"
    path.write_bytes(b"")
    path.chmod(0o000)
    with pytest.raises(ReportFormatError, match="empty file"):
        open_report(path)


@pytest.mark.parametrize("check", [open_report, require_report, report_content])
def test_a_sparse_giant_is_refused_at_once(tmp_path: Path, check: Callable[[Path], object]) -> None:
    path = tmp_path / "giant.ncu-rep"
    with path.open("wb") as file:
        file.write(b"NVR\0\x02\0\0\0\x08\x07")
        file.truncate(1 << 40)
    with pytest.raises(ReportAccessError, match="larger than any"):
        check(path)


def test_a_pipe_is_refused_before_it_is_hashed(tmp_path: Path) -> None:
    path = tmp_path / "fifo.ncu-rep"
    os.mkfifo(path)
    with pytest.raises(ReportAccessError, match="pipe or device"):
        require_report(path)
