"""Archives of reports: bounded, written as they grow, in parts where one report is too large, and unpacked again."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import packing
import pytest
import zstandard
from cases import parsed_toml
from stored import report_in
from suite_error import SuiteError


def reports(*sizes: int) -> list[tuple[packing.Entry, bytes]]:
    return [
        (packing.entry(f"r{i}.ncu-rep", data, {"gpu": "NVIDIA H200", "cases": [f"case_{i}"], "level": "full"}), data)
        for i, data in enumerate(os.urandom(size) for size in sizes)
    ]


def packed(
    some: list[tuple[packing.Entry, bytes]], out: Path, limit_bytes: int = packing.LIMIT_BYTES
) -> packing.Archives:
    archives = packing.Archives(out, limit_bytes=limit_bytes)
    for each in some:
        archives.add(*each)
    archives.write()
    return archives


def test_no_archive_exceeds_the_limit_and_a_large_report_comes_in_parts(tmp_path: Path) -> None:
    limit = 60_000
    written = packed(reports(30_000, 20_000, 30_000, 130_000, 5_000), tmp_path / "out", limit).paths
    assert [path.name for path in written] == [
        "recordings-1.tar.gz",  # r0, r1
        "recordings-2.tar.gz",  # r2
        "recordings-3.tar.gz.part-1",  # r3: 130 kB of noise
        "recordings-3.tar.gz.part-2",
        "recordings-3.tar.gz.part-3",
        "recordings-4.tar.gz",  # r4
    ]
    assert all(path.stat().st_size <= limit for path in written)
    unpacked = packing.unpack(list(reversed(written)), tmp_path / "fixtures")
    assert sorted(path.name for path in unpacked) == [f"r{number}.ncu-repz" for number in range(5)]
    assert {path.parent.name for path in unpacked} == {"h200"}
    with pytest.raises(SuiteError, match=r"recordings-3\.tar\.gz"):
        packing.unpack(written[2:4], tmp_path / "fixtures")


def test_an_archive_is_written_anew_as_it_grows(tmp_path: Path) -> None:
    archives = packing.Archives(tmp_path / "out")
    for each in reports(10, 20):
        archives.add(*each)
        archives.write()
    assert [path.name for path in archives.paths] == ["recordings-1.tar.gz"]
    assert len(packing.unpack(archives.paths, tmp_path / "fixtures")) == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["provenance.toml", "recordings-1.tar.gz"]


def test_archives_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    first = packed(reports(10), tmp_path / "1").paths
    second = packed([(packing.entry("other.ncu-rep", b"x", {"gpu": "NVIDIA H200"}), b"x")], tmp_path / "2").paths
    assert [path.name for path in (*first, *second)] == ["recordings-1.tar.gz"] * 2
    unpacked = packing.unpack([*first, *second], tmp_path / "fixtures")
    assert [path.name for path in unpacked] == ["r0.ncu-repz", "other.ncu-repz"]


def test_a_second_recording_is_added_to_the_first(tmp_path: Path) -> None:
    fixtures, out = tmp_path / "fixtures", tmp_path / "out"
    packed(reports(10, 20), out)
    packed([(packing.entry("other.ncu-rep", b"x", {"gpu": "NVIDIA H200"}), b"x")], out)
    packing.unpack(sorted(out.glob("*.tar.gz")), fixtures)
    for folder, suffix in ((out, "ncu-rep"), (fixtures / "h200", "ncu-repz")):
        entries = parsed_toml((folder / "provenance.toml").read_text(encoding="utf-8"))["file"]
        assert [entry["name"] for entry in entries] == [f"{name}.{suffix}" for name in ("other", "r0", "r1")]


def test_what_is_unpacked_is_compressed_and_has_the_hash_of_the_report(tmp_path: Path) -> None:
    report = bytes(range(256)) * 1000
    packed([(packing.entry("r.ncu-rep", report, {"gpu": "NVIDIA H200"}), report)], tmp_path / "out")
    (path,) = packing.unpack([tmp_path / "out/recordings-1.tar.gz"], tmp_path / "fixtures")
    assert path.stat().st_size < len(report) / 10
    assert report_in(path) == report
    (entry,) = parsed_toml((path.parent / "provenance.toml").read_text(encoding="utf-8"))["file"]
    assert entry["sha256"] == hashlib.sha256(report).hexdigest()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SuiteError, match=r"r\.ncu-repz: it is damaged"):
        report_in(path)


def test_a_report_that_a_streaming_compressor_wrote_is_read_and_one_that_is_cut_is_not(tmp_path: Path) -> None:
    report, path = bytes(range(256)) * 1000, tmp_path / "r.ncu-repz"
    stream = zstandard.ZstdCompressor().compressobj()
    path.write_bytes(stream.compress(report) + stream.flush())  # its size was not known when the frame began
    assert report_in(path) == report
    for n_bytes in (0, 20, path.stat().st_size - 1):
        path.write_bytes(path.read_bytes()[:n_bytes] or b"")
        with pytest.raises(SuiteError, match=r"r\.ncu-repz: it is damaged"):
            report_in(path)
        path.write_bytes(zstandard.ZstdCompressor().compress(report))


@pytest.mark.parametrize(
    ("cases", "level", "facts", "is_replaced"),
    [
        (["a"], "full", {}, True),
        (["a", "b"], "full", {"date": "2026-11-23"}, True),
        (["a", "c"], "full", {}, False),  # c is in no other
        (["a"], "quick", {}, False),
        ([], "full", {}, False),  # of a program that is no case
        (["a"], "full", {"date": "2026-11-25"}, False),
    ],
)
def test_what_a_later_report_holds_whole_is_replaced(
    cases: list[str],
    level: str,
    facts: dict[str, str],
    is_replaced: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gpu = {"gpu": "NVIDIA H200"}
    old = packing.entry("old.ncu-rep", b"x", {**gpu, "cases": cases, "level": level, **facts})
    new = packing.entry("a-to-b.ncu-rep", b"y", {**gpu, "cases": ["a", "b"], "level": "full", "date": "2026-11-24"})
    cut = {**new, "name": "cut.ncu-rep", "complete": False}
    for number, each in enumerate(((old, b"x"), (cut, b"y"), (new, b"y"))):
        packing.unpack(packed([each], tmp_path / str(number)).paths, tmp_path)
        left = ["old.ncu-repz"] if number < 2 or not is_replaced else []
        left += [["cut.ncu-repz"], ["a-to-b.ncu-repz"]][number - 1] if number else []
        assert sorted(path.name for path in (tmp_path / "h200").glob("*.ncu-repz")) == sorted(left)
        entries = parsed_toml((tmp_path / "h200/provenance.toml").read_text(encoding="utf-8"))["file"]
        assert [entry["name"] for entry in entries] == sorted(left)
    line = "replaced: old.ncu-repz, of which a-to-b.ncu-repz has all cases\n"
    assert (line in capsys.readouterr().out) == is_replaced


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"../evil.ncu-rep": b"x", "provenance.toml": b""}, "evil"),
        ({"r.ncu-rep": b"x"}, "no provenance.toml"),
        ({"provenance.toml": b"file = 1 2"}, "a provenance was wanted"),
        ({"provenance.toml": b"[[file]]\nname = 'r.ncu-rep'\n"}, "one is missing"),
        ({"r.ncu-rep": b"y", "provenance.toml": packing.provenance([reports(3)[0][0]]).encode()}, "SHA-256"),
    ],
)
def test_a_strange_archive_is_refused(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(SuiteError, match=message):
        packing.unpack([path], tmp_path / "fixtures")
    assert not list(tmp_path.rglob("*.ncu-rep"))
