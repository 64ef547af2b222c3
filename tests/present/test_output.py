"""Output is written whole or not at all, never over someone else's file, and the same analysis gives the same bytes."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.errors import OutputError, OutputFormatError
from ncuroof.present import WRITERS, format_of, render, write
from ncuroof.present.formats import FORMATS
from ncuroof.present.output import write_whole
from tests.support import demo
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report


def _parquet(table: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    held = io.BytesIO()
    table.write_parquet(held, metadata=metadata, compression="uncompressed", statistics=False)
    return held.getvalue()


OTHERS = {
    "notes.md": b"# My notes\n",
    "page.html": b"<!doctype html><html><body>mine</body></html>",
    "data.json": b'{"schema": "other/1"}',
    "table.csv": b"id,name\n1,a\n",
    "quoting.md": b'# Contract\n\n{"schema": "ncuroof.analysis/1"} and <!-- ncuroof 1 --> are what it writes\n',
    "list.json": b'[{"schema": "ncuroof.analysis/1"}]',
    "binary.parquet": b"PAR1" + bytes(100),
    "other.parquet": _parquet(pl.DataFrame({"x": ["ncuroof.schema"]})),
    "cut.parquet": _parquet(pl.DataFrame({"x": [1]}), {"ncuroof.schema": "ncuroof.kernels/1"})[:-1],
}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ncuroof.read(demo.REPORT).analyse()


# ---- what may be replaced ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_someone_else_is_refused_and_untouched(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    with pytest.raises(OutputError, match="exists") as caught:
        write_whole(path, b"ours")
    assert caught.value.hint
    assert "--force" in caught.value.hint
    assert path.read_bytes() == OTHERS[name]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", OTHERS)
def test_force_replaces_any_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    write_whole(path, b"ours", force=True)
    assert path.read_bytes() == b"ours"


@pytest.mark.parametrize("form", WRITERS["analysis"])
def test_our_own_earlier_output_is_replaced(tmp_path: Path, analysis: Analysis, form: str) -> None:
    path = tmp_path / "out"
    write(analysis, path, form)
    written = path.read_bytes()
    assert write_whole(path, b"newer") == path
    assert path.read_bytes() == b"newer" != written


@pytest.mark.long
def test_a_summary_whose_title_takes_a_line_of_its_own_is_replaced(tmp_path: Path) -> None:
    report = tmp_path / f"{'long' * 20}.ncu-rep"
    report.write_bytes(demo.REPORT.read_bytes())
    path = tmp_path / "out.txt"
    for _ in range(2):
        ncuroof.read(report).analyse().write(path)
    assert path.read_text(encoding="utf-8").startswith("ncuroof · longlong")


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.touch()
    write_whole(path, b"ours")
    assert path.read_bytes() == b"ours"


# ---- where it cannot be written ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "is a directory"),
        ("absent/out.json", "No such file"),
        ("file/out.json", "Not a directory"),
        ("loop", "symbolic links"),
        ("x" * 5000, "too long"),
        ("nul\0.json", "null"),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str, said: str, force: bool) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OutputError, match=said) as caught:
        write_whole(tmp_path / place, b"ours", force=force)
    assert caught.value.hint
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_folder_that_takes_no_files_is_named() -> None:
    with pytest.raises(OutputError, match="cannot be written"):  # nobody may write there, root included
        write_whole(Path("/proc/self/out.json"), b"ours")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_device_is_named() -> None:
    with pytest.raises(OutputError, match="No space left"):
        write_whole(Path("/dev/full"), b"ours")


def test_a_disk_without_space_leaves_nothing(small_disk: Path) -> None:
    path = small_disk / "out.json"
    write_whole(path, b"old", force=True)
    with pytest.raises(OutputError, match="No space left"):
        write_whole(path, bytes(1 << 20), force=True)
    assert path.read_bytes() == b"old"
    assert list(small_disk.iterdir()) == [path]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system can only be mounted by root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device"), MemoryError()]
)
@pytest.mark.parametrize("step", ["os.fdopen", "pathlib.Path.chmod", "pathlib.Path.replace"])
def test_an_interruption_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, step: str
) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old")

    def interrupted(*_: object, **__: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(step, interrupted)
        with pytest.raises((KeyboardInterrupt, OutputError, MemoryError)):
            write_whole(path, b"new", force=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# ---- how the file looks afterwards -------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666), (0o027, 0o640)])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        path = write_whole(tmp_path / "out.json", b"ours")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.touch()
    path.chmod(0o640)
    write_whole(path, b"ours")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, is_dangling: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "real.json", tmp_path / "link.json"
    if not is_dangling:
        target.touch()
    link.symlink_to(Path("elsewhere") / "real.json")
    write_whole(link, b"ours")
    assert link.is_symlink()
    assert target.read_bytes() == b"ours"


def test_a_link_to_a_file_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"mine")
    (tmp_path / "link.json").symlink_to("real")
    with pytest.raises(OutputError, match="exists"):
        write_whole(tmp_path / "link.json", b"ours")
    assert (tmp_path / "real").read_bytes() == b"mine"


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".json")
    assert write_whole(path, b"ours").read_bytes() == b"ours"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()))
    reader.start()
    write_whole(fifo, b"ours")
    reader.join(10)
    assert received == [b"ours"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_pipe_without_a_name_is_written_to() -> None:
    readable, writable = os.pipe()
    write_whole(Path(f"/dev/fd/{writable}"), b"ours")  # what the shell's >(command) gives
    os.close(writable)
    assert os.read(readable, 100) == b"ours"
    os.close(readable)


# ---- formats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.html", "html"), ("a.HTM", "html"), ("a.json", "json"), ("a.b.md", "md"), ("a.csv", "csv"), ("a.txt", "term")],
)
def test_the_suffix_names_the_format(name: str, form: str) -> None:
    assert format_of(Path(name)) == form


@pytest.mark.parametrize("name", ["a", "a.", "a.xml", ".json", "a.json.gz", "-", ""])
def test_an_unknown_suffix_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(OutputFormatError) as caught:
        format_of(Path(name))
    assert ".html, .htm, .json, .md, .markdown, .csv, .parquet, .txt" in str(caught.value)


def test_an_unknown_format_is_refused(analysis: Analysis) -> None:
    with pytest.raises(OutputFormatError, match="no format 'xml'"):
        render(analysis, "xml")


def test_a_page_begins_as_one(analysis: Analysis) -> None:
    page = render(analysis, "html")
    assert page.lower().startswith(b"<!doctype html>")
    assert b"</html>" in page


def test_json_is_the_document(analysis: Analysis) -> None:
    assert json.loads(render(analysis, "json")) == json.loads(json.dumps(analysis.to_dict()))


@pytest.mark.long
@pytest.mark.parametrize("form", WRITERS["analysis"])
def test_the_same_report_gives_the_same_bytes(analysis: Analysis, form: str) -> None:
    again = ncuroof.read(demo.REPORT).analyse()
    assert render(analysis, form) == render(again, form) != b""


def test_every_writer_is_there_and_every_format_is_known() -> None:
    for kind, writers in WRITERS.items():
        for form, write_it in writers.items():
            assert form in FORMATS, kind
            assert callable(getattr(import_module(write_it.module), write_it.function)), (kind, form)


@pytest.mark.parametrize("form", WRITERS["analysis"])
def test_every_format_takes_hostile_names(tmp_path: Path, form: str) -> None:
    names = [
        "",
        "\0",
        "\x1b[2J",
        "\u202e",
        "漢字" * 50,
        "a\r\nb",
        "=1+1",
        "<!--",
        "</script>",
        "{{7*7}}",
        "[/bold]",
        "`|",
    ]
    report = tmp_path / "hostile.ncu-rep"
    report.write_bytes(
        write_report([Kernel(name, METRICS_BY_CHIP["GA100"], nvtx=(name,) if name else ()) for name in names])
    )
    assert render(ncuroof.read(report).analyse(), form)
