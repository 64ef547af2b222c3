from __future__ import annotations

import csv
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof.errors import ReportFormatError
from ncuroof.ingest import wire
from ncuroof.ingest.file_content import StoredFile
from ncuroof.ingest.framing import FileKind, entries, sniff, walk
from tests.support.report_writer import Kernel, Kind, write_report
from tests.support.wire_encoder import integer

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
KERNELS = tuple(Kernel(f"kernel_{index}", {"dram__bytes.sum": float(index)}) for index in range(3))
REPORT = write_report(KERNELS)
FILE_HEADER_BYTES = 10  # magic 4, length 4, field number 1, version 1


def test_whole_report_is_intact() -> None:
    framing = walk(REPORT)
    assert (framing.version, framing.n_workloads, framing.damage) == (7, 3, None)
    assert framing.intact_bytes == framing.n_bytes == len(REPORT)


def test_blocks_follow_each_other_without_gaps() -> None:
    position = FILE_HEADER_BYTES
    for block in walk(REPORT).blocks:
        assert block.header_offset == position + 4
        assert block.payload_offset == block.header_offset + len(block.header)
        assert bytes(block.header) == REPORT[block.header_offset : block.payload_offset]
        position = block.end_offset
    assert position == len(REPORT)


def test_every_kind_of_workload_is_counted_apart() -> None:
    kinds: list[Kind] = ["kernel", "kernel", "range", "cmdlist", "graph"]
    report = write_report([Kernel("k", kind=kind) for kind in kinds], kernels_per_block=9)
    blocks = walk(report).blocks
    assert sum(len(block.sources) for block in blocks) == 1
    assert sum(block.n_workloads for block in blocks) == 5
    assert [kind for block in blocks for kind in block.kinds] == ["source", *kinds]
    assert [kind for block in blocks for kind, _ in block.results] == kinds
    assert [span for block in blocks for _, span in block.results][-1][1] == len(report)


def test_entries_of_a_payload_are_its_messages() -> None:
    report = write_report(KERNELS, kernels_per_block=3)
    (block,) = (block for block in walk(report).blocks if block.n_workloads)
    found = list(entries(report, block))
    names = [wire.as_text(value) for entry in found for number, _, value in wire.fields(entry) if number == 6]
    assert names == ["kernel_0", "kernel_1", "kernel_2"]


def test_report_without_workloads_is_intact() -> None:
    framing = walk(write_report([]))
    assert (framing.n_workloads, framing.damage) == (0, None)


def test_other_file_version_is_read() -> None:
    framing = walk(write_report(KERNELS, file_version=8))
    assert (framing.version, framing.n_workloads, framing.damage) == (8, 3, None)


@pytest.mark.parametrize("n_bytes", range(FILE_HEADER_BYTES, len(REPORT), 7))
def test_cut_report_keeps_its_complete_blocks(n_bytes: int) -> None:
    ends = [FILE_HEADER_BYTES, *(block.end_offset for block in walk(REPORT).blocks)]
    intact_bytes = max(end for end in ends if end <= n_bytes)
    framing = walk(REPORT[:n_bytes])
    assert (framing.intact_bytes, framing.n_bytes) == (intact_bytes, n_bytes)
    assert (framing.damage is None) == (n_bytes in ends)
    assert walk(REPORT[:intact_bytes]).damage is None


@given(st.integers(FILE_HEADER_BYTES, len(REPORT) - 1), st.integers(0, 255))
def test_changed_byte_never_raises(offset: int, byte: int) -> None:
    changed = bytearray(REPORT)
    changed[offset] = byte
    framing = walk(changed)
    assert FILE_HEADER_BYTES <= framing.intact_bytes <= len(REPORT)
    assert (framing.damage is None) == (framing.intact_bytes == len(REPORT))


def test_block_header_longer_than_the_file_is_damage() -> None:
    last = walk(REPORT).blocks[-1]
    changed = bytearray(REPORT)
    struct.pack_into("<I", changed, last.header_offset - 4, 0x7FFF_FFFF)
    framing = walk(changed)
    assert framing.intact_bytes == last.header_offset - 4
    assert framing.n_workloads == 2
    assert framing.damage is not None
    assert f"offset {last.header_offset - 4} has 2147483647 bytes" in framing.damage


@pytest.mark.parametrize("length", [0, 3, 0xFFFF_FFF0])
def test_wrong_entry_length_is_damage(length: int) -> None:
    last = walk(REPORT).blocks[-1]
    changed = bytearray(REPORT)
    struct.pack_into("<I", changed, last.payload_offset, length)
    framing = walk(changed)
    assert framing.intact_bytes == last.header_offset - 4
    assert framing.damage is not None
    assert f"the payload at offset {last.payload_offset} is malformed" in framing.damage


def _with_block(header: bytes, payload: bytes) -> bytes:
    return REPORT + struct.pack("<I", len(header)) + header + payload


def test_fewer_entries_than_the_header_counts_is_damage() -> None:
    payload = struct.pack("<I", 1) + b"x"
    framing = walk(_with_block(integer(2, 2) + integer(5, len(payload)), payload))
    assert framing.intact_bytes == len(REPORT)
    assert framing.damage is not None
    assert "should have 2 entries, but has 1" in framing.damage


def test_payload_larger_than_the_file_is_damage() -> None:
    framing = walk(_with_block(integer(5, 1 << 40), b""))
    assert framing.intact_bytes == len(REPORT)
    assert framing.damage is not None
    assert "has 1099511627776 bytes, but only 0 are left" in framing.damage


def test_entries_of_an_unknown_kind_are_not_damage() -> None:
    payload = struct.pack("<I", 1) + b"x"
    framing = walk(_with_block(integer(10, 1) + integer(5, len(payload)), payload))
    assert (framing.n_workloads, framing.damage) == (3, None)


def test_zeros_after_the_last_block_are_damage() -> None:
    framing = walk(REPORT + bytes(64))
    assert framing.intact_bytes == len(REPORT)
    assert framing.damage == f"the block header at offset {len(REPORT)} is empty"


def test_a_file_is_walked_as_bytes_are(tmp_path: Path) -> None:
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(REPORT)
    with path.open("rb") as file:
        assert walk(StoredFile(file, path.name)) == walk(REPORT)


OTHER_FILES = [
    (b"", FileKind.EMPTY),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", FileKind.GIT_LFS),
    (b'"ID","Process ID","Kernel Name"\r\n', FileKind.TEXT),
    ("==PROF== Profiling µ".encode(), FileKind.TEXT),
    ("==PROF==".encode("utf-16"), FileKind.TEXT),
    (b"\x89PNG\r\n\x1a\n", FileKind.PNG),
    (b"\x1f\x8b\x08\0", FileKind.GZIP),
    (b"PK\x03\x04\x14\0", FileKind.ZIP),
    (b"\x7fELF\x02\x01", FileKind.ELF),
    (b"SQLite format 3\0", FileKind.SQLITE),
    (b"\x28\xb5\x2f\xfd\x04", FileKind.ZSTD),
    (b"\x00\x01\x02\x03", FileKind.UNKNOWN),
    (b"NVR", FileKind.TEXT),
]


@pytest.mark.parametrize(("head", "kind"), OTHER_FILES)
def test_file_of_a_different_kind_is_refused_by_its_name(head: bytes, kind: FileKind) -> None:
    assert sniff(head) is kind
    with pytest.raises(ReportFormatError) as caught:
        walk(head, where="run.ncu-rep")
    message = str(caught.value)
    assert message.startswith("run.ncu-rep: expected an Nsight Compute report")
    assert message.endswith(f": expected an Nsight Compute report (it begins with NVR), found {kind.value}")


def test_report_is_sniffed_by_its_magic() -> None:
    assert sniff(REPORT) is FileKind.REPORT


@pytest.mark.parametrize(
    "head",
    [b"NVR\0", b"NVR\0\x02\0\0\0", b"NVR\0\x02\0\0\0\x08", b"NVR\0\0\0\0\0", b"NVR\0\x01\0\0\0\xff"],
)
def test_broken_file_header_is_refused(head: bytes) -> None:
    with pytest.raises(ReportFormatError, match="expected the file header"):
        walk(head)


@pytest.mark.corpus
def test_every_corpus_report_is_intact_with_all_its_workloads() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the checkout")
    with (CORPUS / "catalog.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        with (CORPUS / row["file"]).open("rb") as file:
            framing = walk(StoredFile(file, row["file"]))
        found[row["file"]] = (framing.version, framing.damage, framing.n_workloads)
    assert found == {row["file"]: (7, None, int(row["n_actions"])) for row in rows}
