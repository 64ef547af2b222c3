"""Several files on several cores give what one after another gives, in order; large ones are read part by part."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

import ncuroof
from ncuroof.cli.streams import reading_progress
from ncuroof.errors import ReportAccessError, ReportEmptyError, ReportNotFoundError
from ncuroof.ingest import file_content, many_reports, open_report, open_reports
from ncuroof.metrics import selection
from tests.support import demo
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

TIMED = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.ncu-rep" for name in "cab"]
    for path in paths:
        path.write_bytes(write_report([Kernel(path.stem, TIMED)]))
    return [*paths, demo.REPORT]


@pytest.mark.long
def test_files_read_on_several_cores_equal_files_read_on_one(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_reports, "WORTH_BYTES", 0)
    n_read = []
    together = ncuroof.read(files, n_processes=2, on_progress=n_read.append)
    alone = [open_report(path, selection=selection()) for path in files]
    assert [report.file for report in together.raw] == [path.name for path in files]
    assert [(report.sha256, report.session, report.charts) for report in together.raw] == [
        (report.sha256, report.session, report.charts) for report in alone
    ]
    for mine, reference in zip(together.raw, alone, strict=True):
        assert mine.counters.equals(reference.counters)
        assert mine.workloads.equals(reference.workloads)
    assert len(n_read) == len(files)


def test_no_more_processes_than_windows_waits_for(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool(ThreadPoolExecutor):
        def __init__(self, n: int, **_: object) -> None:
            n_asked.append(n)
            super().__init__(1)

    n_asked: list[int] = []
    monkeypatch.setattr(many_reports, "WORTH_BYTES", 0)
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", Pool)
    assert len(list(open_reports(files[:1] * 64, selection=None, reader="native", n_processes=64))) == 64
    assert n_asked == [
        61
    ]  # Python documentation, concurrent.futures: "On Windows, max_workers must be less than or equal to 61"


@pytest.mark.long
def test_an_error_of_a_worker_process_keeps_its_name_and_hint(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_reports, "WORTH_BYTES", 0)
    empty = tmp_path / "empty.ncu-rep"
    empty.write_bytes(write_report([]))
    for path, error in (
        (tmp_path / "absent", ReportNotFoundError),
        (empty, ReportEmptyError),
        (Path("/dev/null"), ReportAccessError),
    ):
        with pytest.raises(error) as raised:
            list(open_reports([files[0], path], selection=None, reader="native", n_processes=2))
        assert raised.value.hint
        assert path.name in str(raised.value)


def test_small_files_start_no_process(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", None)
    assert len(list(open_reports(files, selection=None, reader="auto", n_processes=8))) == len(files)


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".ncu-rep", ".ncu-repz"])
def test_a_large_report_is_read_as_a_small_one(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_report([Kernel(f"k{number}", TIMED) for number in range(200)])
    path = tmp_path / f"large{suffix}"
    path.write_bytes(zstandard.compress(content) if suffix.endswith("z") else content)
    small = open_report(path)
    monkeypatch.setattr(file_content, "LARGE_BYTES", 1)
    monkeypatch.setattr(file_content, "IN_MEMORY_BYTES", 1)
    large = open_report(path)
    assert large.counters.equals(small.counters)
    assert large.workloads.equals(small.workloads)
    assert (large.session, large.sha256, large.damage) == (small.session, small.sha256, None)
    path.write_bytes(content[: len(content) // 2])
    if suffix == ".ncu-rep":
        assert 0 < open_report(path).workloads.height < 200


def test_only_one_result_of_a_large_report_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Everything in one block: ncu writes a block for each result.
    content = write_report([Kernel(f"k{number}", TIMED) for number in range(200)], kernels_per_block=200)
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(content)
    monkeypatch.setattr(file_content, "LARGE_BYTES", 1)
    sizes = []
    read = file_content.StoredFile.part
    monkeypatch.setattr(
        file_content.StoredFile, "part", lambda *given: sizes.append(given[2] - given[1]) or read(*given)
    )
    assert open_report(path).workloads.height == 200
    assert max(sizes) < len(content) / 50


def test_a_file_that_decompresses_without_end_is_refused(tmp_path: Path) -> None:
    # 2 MB of zstd frames that hold 64 MB of zeros each, behind the beginning of a report.
    frame = zstandard.compress(bytes(64 << 20), 19)
    path = tmp_path / "bomb.ncu-repz"
    path.write_bytes(zstandard.compress(write_report([Kernel("k", TIMED)])) + frame * 4)
    with pytest.raises(ValueError, match="decompresses to more than 67108864 bytes, too much for a report of its size"):
        open_report(path)


def test_a_frame_that_wants_gigabytes_before_its_first_byte_is_refused(tmp_path: Path) -> None:
    content = write_report([Kernel("k", TIMED)])
    # Magic, no content size, a window of 2^(10 + 20) bytes, and one raw block, the last.
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, 20 << 3]) + (len(content) << 3 | 1).to_bytes(3, "little") + content
    path = tmp_path / "wide.ncu-repz"
    path.write_bytes(frame)
    with pytest.raises(ValueError, match="the compression is damaged"):
        open_report(path)


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("ncuroof.cli.streams._FIRST_AFTER_S", -1)
    for is_terminal, quiet in ((False, False), (True, True)):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        with reading_progress(quiet=quiet) as tell:
            tell(0.5)
        assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with reading_progress(quiet=False) as tell:
        tell(0.423)
        tell(0.424)  # too soon for another word
    assert capsys.readouterr().err == "\rreading: 42 % \r              \r"


def test_progress_is_the_share_of_all_bytes(tmp_path: Path) -> None:
    files = [tmp_path / "one.ncu-rep", tmp_path / "two.ncu-rep"]
    files[0].write_bytes(write_report([Kernel("k", TIMED)]))
    files[1].write_bytes(write_report([Kernel(f"k{number}", TIMED) for number in range(5)]))
    sizes = [file.stat().st_size for file in files]
    shares: list[float] = []
    ncuroof.read(files, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert sizes[0] / sum(sizes) in shares
    assert len([share for share in shares if share > sizes[0] / sum(sizes)]) > 5  # launch by launch
