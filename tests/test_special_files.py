"""Pipes, devices, sockets, folders and sparse giants, wherever a file is named: a named error at once, never a read without end."""

from __future__ import annotations

import gzip
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ncuroof.comparison import read_baseline
from ncuroof.errors import CountsError, NcuroofError, OutputError
from ncuroof.ingest import open_report
from ncuroof.ingest.report_files import report_content, require_report
from ncuroof.present.output import write_whole
from ncuroof.sidecars.calibration import read_calibration
from ncuroof.sidecars.counts import read_counts
from ncuroof.sidecars.traces.read import read_trace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has other special files")

READERS = {
    "report": open_report,
    "whole report": report_content,
    "report of a batch": require_report,
    "calibration": read_calibration,
    "counts": read_counts,
    "baseline": read_baseline,
    "trace": read_trace,
}


@pytest.fixture(params=["pipe", "socket", "device", "endless", "giant", "folder", "loop", "of the kernel"])
def special(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "file.json"
    monkeypatch.chdir(tmp_path)  # the name of a socket is at most a hundred characters
    if request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "folder":
        path.mkdir()
    elif request.param == "loop":
        path.symlink_to(path.name)
    elif request.param == "giant":
        with path.open("wb") as file:
            file.truncate(8 << 40)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
            yield path
        return
    else:
        path = Path({"device": "/dev/null", "endless": "/dev/zero", "of the kernel": "/proc/self/mem"}[request.param])
    yield path


@pytest.mark.parametrize("what", READERS)
def test_what_is_no_file_is_a_named_error(what: str, special: Path) -> None:
    read: Callable[[Path], object] = READERS[what]
    with pytest.raises(NcuroofError):
        read(special)


def test_a_small_archive_of_a_huge_trace_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(bytes(65 << 20), compresslevel=1))
    with pytest.raises(CountsError, match="more than 67108864 bytes in an archive of"):
        read_trace(path)


def test_a_socket_is_not_replaced_by_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("out.json")
        with pytest.raises(OutputError, match="device or socket"):
            write_whole(tmp_path / "out.json", b"{}", force=True)
        assert (tmp_path / "out.json").is_socket()
