"""The bytes of a file, in memory or part by part, and their digest that is computed beside the reading."""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Thread

import pytest

from ncuroof.errors import ReportAccessError
from ncuroof.ingest import file_content, open_report
from ncuroof.ingest.file_content import LARGE_BYTES, LoadedFile, StoredFile, copy_part, part, sha256
from tests.support.report_writer import Kernel, write_report

SIZES = [0, 1, LARGE_BYTES - 1, LARGE_BYTES, 2 * LARGE_BYTES + 5]


@pytest.mark.parametrize("size", SIZES)
def test_a_content_is_the_bytes_of_its_file(tmp_path: Path, size: int) -> None:
    path, copy = tmp_path / "file", tmp_path / "copy"
    written = (b"0123456789abcdef!" * (size // 17 + 1))[:size]
    path.write_bytes(written)
    with LoadedFile(path) as loaded:
        assert isinstance(loaded.content, StoredFile) == (size >= LARGE_BYTES)
        assert len(loaded.content) == size
        assert part(loaded.content, 0, size) == written
        assert part(loaded.content, size // 3, size // 2) == written[size // 3 : size // 2]
        copy_part(loaded.content, size // 2, copy)
        assert loaded.sha256() == sha256(path) == hashlib.sha256(written).hexdigest()
    assert copy.read_bytes() == written[: size // 2]


@pytest.mark.parametrize("large_bytes", [1, LARGE_BYTES])
def test_a_digest_whose_thread_failed_is_computed_anyway(
    tmp_path: Path, large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    monkeypatch.setattr(file_content, "LARGE_BYTES", large_bytes)
    monkeypatch.setattr(Thread, "run", lambda _: None)
    with LoadedFile(path) as loaded:
        assert loaded.sha256() == hashlib.sha256(b"abc").hexdigest()


def test_a_report_that_is_cut_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_report([Kernel("k", {"gpu__time_duration.sum": 1e3})] * 3)
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(content)
    monkeypatch.setattr(file_content, "LARGE_BYTES", 1)
    read = file_content.StoredFile.part

    def cut_first(self: StoredFile, start: int, end: int) -> memoryview:
        if start > len(content) // 2:
            path.write_bytes(content[:100])
        return read(self, start, end)

    monkeypatch.setattr(file_content.StoredFile, "part", cut_first)
    with pytest.raises(ReportAccessError, match=r"run\.ncu-rep: can no longer be read: it was truncated") as raised:
        open_report(path)
    assert raised.value.hint


def test_a_report_that_goes_away_while_it_is_hashed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"abc")
    monkeypatch.setattr(file_content, "LARGE_BYTES", 1)
    monkeypatch.setattr(Thread, "run", lambda _: None)
    with LoadedFile(path) as loaded:
        path.unlink()
        with pytest.raises(ReportAccessError, match="can no longer be read: No such file"):
            loaded.sha256()
