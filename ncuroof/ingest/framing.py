"""The framing of an Nsight Compute report: its blocks, the workloads in them, and where damage begins.

A report is a magic number, a length-prefixed file header, then blocks until the end of the file. A block is a
length-prefixed header, which says how many entries of each kind follow, and a payload: the entries as
length-prefixed messages. Nothing is decompressed and no payload is decoded here. Only lengths are followed, and
each is checked against the bytes available before it is trusted. The framing has not changed since 2019 (file
version 7); a report of another version is read as far as it makes sense.

Source: Nsight Compute Customization Guide, "Report File Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from ncuroof.errors import ReportFormatError
from ncuroof.ingest import wire
from ncuroof.ingest.file_content import Content, Part, part

Span = tuple[int, int]

MAGIC = b"NVR\0"
SNIFF_BYTES = 64
KNOWN_VERSION = 7
"""File format version of every report from 2019 to 2026."""

LENGTH = struct.Struct("<I")
"""The prefix of each message: its size in bytes."""

_SOURCE = "source"
_KIND_BY_COUNT = {1: _SOURCE, 2: "kernel", 7: "range", 8: "cmdlist", 9: "graph"}
"""Kind of a payload's messages, in their order, by the field of BlockHeader that says how many there are."""

FILE_VERSION, PAYLOAD_SIZE = 1, 5
"""Fields of FileHeader and BlockHeader."""


class FileKind(Enum):
    """What a file is, judged by its first bytes; the value is its name in error messages."""

    REPORT = "an Nsight Compute report"
    ZSTD = "a zstd-compressed file"
    EMPTY = "an empty file"
    GIT_LFS = "a Git LFS pointer, not the file itself"
    TEXT = "a text file"
    PNG = "a PNG image"
    GZIP = "a gzip archive"
    ZIP = "a zip archive"
    ELF = "an ELF program or library"
    SQLITE = "an SQLite database"
    UNKNOWN = "an unknown binary file"


_KIND_BY_MAGIC = {
    MAGIC: FileKind.REPORT,
    b"\x28\xb5\x2f\xfd": FileKind.ZSTD,
    b"version https://git-lfs": FileKind.GIT_LFS,
    b"\x89PNG": FileKind.PNG,
    b"\x1f\x8b": FileKind.GZIP,
    b"PK\x03\x04": FileKind.ZIP,
    b"\x7fELF": FileKind.ELF,
    b"SQLite format 3": FileKind.SQLITE,
}

_HINT_BY_KIND = {
    FileKind.ZSTD: "rename a compressed report to *.ncu-repz, or decompress it: zstd -d -o REPORT.ncu-rep FILE",
    FileKind.GIT_LFS: "fetch the report itself: git lfs pull",
    FileKind.GZIP: "unpack it first",
    FileKind.ZIP: "unpack it first",
    FileKind.TEXT: "pass the .ncu-rep file itself, not the output of ncu",
    FileKind.SQLITE: "an Nsight Systems export is a timeline without kernel counters; record with Nsight Compute: ncu -o FILE …",
}


@dataclass(frozen=True, slots=True)
class Block:
    """The layout of one complete block of a report; offsets are in bytes from the start of the file."""

    header_offset: int
    payload_offset: int
    payload_size: int
    header: bytes
    """The encoded BlockHeader."""

    spans: tuple[Span, ...]
    """Start and end offsets of each encoded message in the payload, as many as the header counts."""

    kinds: tuple[str, ...]
    """The kind of each of them, in this order: "source", "kernel", "range", "cmdlist", "graph"."""

    @property
    def end_offset(self) -> int:
        """Offset of the first byte after the block."""
        return self.payload_offset + self.payload_size

    @property
    def sources(self) -> tuple[Span, ...]:
        """Start and end offsets of the encoded message of each code module."""
        return self.spans[: self.kinds.count(_SOURCE)]

    @property
    def results(self) -> tuple[tuple[str, Span], ...]:
        """The kind of each workload, and the start and end offsets of its encoded message."""
        return tuple(zip(self.kinds, self.spans, strict=True))[len(self.sources) :]

    @property
    def n_workloads(self) -> int:
        """Profiled kernels, ranges, command lists and graphs in the block."""
        return len(self.spans) - len(self.sources)


@dataclass(frozen=True, slots=True)
class Framing:
    """The blocks of a report up to its end, or up to where it is damaged.

    Attributes:
        version: file format version; 7 in every report from 2019 to 2026.
        blocks: the complete, well-formed blocks, in file order.
        intact_bytes: offset at which the last of them ends; the first `intact_bytes` bytes are an undamaged report.
        n_bytes: size of the whole file.
        damage: what is wrong after `intact_bytes`, and at which offset; None if the file is undamaged.
    """

    version: int
    blocks: tuple[Block, ...]
    intact_bytes: int
    n_bytes: int
    damage: str | None

    @property
    def results(self) -> Iterator[tuple[str, Span]]:
        """The `Block.results` of all blocks, in file order."""
        return (result for block in self.blocks for result in block.results)

    @property
    def n_workloads(self) -> int:
        """Profiled workloads in the intact blocks."""
        return sum(block.n_workloads for block in self.blocks)


class _DamageError(Exception):
    """A block is truncated or malformed; the message says how and at which offset."""


def sniff(head: wire.Bytes) -> FileKind:
    """Return what kind of file this is, judged by its first bytes.

    Args:
        head: the first `SNIFF_BYTES` bytes of the file, or the whole file if it is shorter.
    """
    start = bytes(head[:SNIFF_BYTES])
    for magic, kind in _KIND_BY_MAGIC.items():
        if start.startswith(magic):
            return kind
    if not start:
        return FileKind.EMPTY
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return FileKind.TEXT  # UTF-16 with a byte-order mark: what redirection in a Windows shell writes
    is_text = not any(byte < 0x20 and byte not in b"\a\b\t\n\f\r\x1b" for byte in start)
    return FileKind.TEXT if is_text else FileKind.UNKNOWN


def may_be_report(head: wire.Bytes) -> bool:
    """Return whether a file that begins so may be a report, stored or compressed, or what ncu printed of one."""
    return sniff(head) in (FileKind.REPORT, FileKind.ZSTD, FileKind.TEXT)


def walk(content: Content, *, where: str = "the file") -> Framing:
    """Return the blocks of a report; of the payloads only the length prefixes are read.

    Args:
        content: the whole file.
        where: the file's name, for the error message.

    Raises:
        ReportFormatError: the file does not begin like a report. Damage further on does not raise; it is
            described in `Framing.damage`.
        ReportAccessError: the file was truncated while it was being read.
    """
    version, position = _file_header(content, where)
    blocks: list[Block] = []
    damage = None
    try:
        while position < len(content):
            block = _block(content, position)
            blocks.append(block)
            position = block.end_offset
    except _DamageError as err:
        damage = str(err)
    return Framing(version=version, blocks=tuple(blocks), intact_bytes=position, n_bytes=len(content), damage=damage)


def entries(content: Content, block: Block) -> Iterator[Part]:
    """Yield the encoded messages of a block's payload, in order: sources, results, ranges, command lists, graphs, newer kinds.

    Raises:
        ReportAccessError: the file was truncated in the meantime, or cannot be read.
    """
    return (part(content, *span) for span in _spans(content, block.payload_offset, block.end_offset))


def _file_header(content: Content, where: str) -> tuple[int, int]:
    """Return the file format version and the offset of the first block."""
    kind = sniff(part(content, 0, min(SNIFF_BYTES, len(content))))
    if kind is not FileKind.REPORT:
        raise ReportFormatError(
            f"{where}: expected an Nsight Compute report (it begins with NVR), found {kind.value}",
            hint=_HINT_BY_KIND.get(kind, "pass the .ncu-rep file that ncu wrote (ncu -o NAME …)"),
        )
    try:
        size, start = _length_prefix(content, len(MAGIC))
        if size > len(content) - start:
            raise wire.WireError(f"a header of {size} bytes where only {len(content) - start} are left")
        for number, _, value in wire.fields(part(content, start, start + size)):
            if number == FILE_VERSION:
                return wire.as_int(value), start + size
        raise wire.WireError("no version")
    except wire.WireError as err:
        raise ReportFormatError(
            f"{where}: expected the file header of an Nsight Compute report, found: {err}",
            hint="the file is truncated or overwritten; copy or record it again",
        ) from err


def _block(content: Content, offset: int) -> Block:
    try:
        size, start = _length_prefix(content, offset)
    except wire.WireError as err:
        raise _DamageError(f"the file is truncated inside the length of the block at offset {offset}") from err
    payload_offset = start + size
    if payload_offset > len(content):
        raise _DamageError(
            f"the block header at offset {offset} has {size} bytes, but only {len(content) - start} are left"
        )
    if size == 0:
        raise _DamageError(f"the block header at offset {offset} is empty")
    header = bytes(part(content, start, payload_offset))
    try:
        counts = _header_counts(header)
    except wire.WireError as err:
        raise _DamageError(f"the block header at offset {offset} is malformed: {err}") from err
    return Block(
        header_offset=start,
        payload_offset=payload_offset,
        payload_size=counts[PAYLOAD_SIZE],
        header=header,
        spans=_payload_spans(content, payload_offset, counts),
        kinds=tuple(kind for number, kind in _KIND_BY_COUNT.items() for _ in range(counts[number])),
    )


def _header_counts(header: bytes) -> dict[int, int]:
    counts = dict.fromkeys((*_KIND_BY_COUNT, PAYLOAD_SIZE), 0)
    for number, _, value in wire.fields(header):
        if number in counts:
            counts[number] = wire.as_int(value)
    return counts


def _payload_spans(content: Content, offset: int, counts: Mapping[int, int]) -> tuple[Span, ...]:
    """Return the spans of the messages in a payload, as many as its header counts.

    Further messages are accepted and ignored: a newer Nsight Compute may append a kind of its own.
    """
    n_bytes, n_wanted = counts[PAYLOAD_SIZE], sum(counts[number] for number in _KIND_BY_COUNT)
    if offset + n_bytes > len(content):
        raise _DamageError(
            f"the payload at offset {offset} has {n_bytes} bytes, but only {len(content) - offset} are left"
        )
    found: list[Span] = []
    try:
        for n_entries, span in enumerate(_spans(content, offset, offset + n_bytes)):  # all, to check that the end fits
            if n_entries < n_wanted:
                found.append(span)
    except wire.WireError as err:
        raise _DamageError(f"the payload at offset {offset} is malformed: {err}") from err
    if len(found) < n_wanted:
        raise _DamageError(f"the payload at offset {offset} should have {n_wanted} entries, but has {len(found)}")
    return tuple(found)


def _spans(content: Content, offset: int, end: int) -> Iterator[Span]:
    """Yield the span of each message in a payload by following the length prefixes."""
    position = offset
    while position < end:
        start = position + LENGTH.size
        if start > end:
            raise wire.WireError(f"a length is truncated at offset {position - offset}")
        (size,) = LENGTH.unpack(part(content, position, start))
        position = start + size
        if position > end:
            raise wire.WireError(f"an entry of {size} bytes where only {end - start} are left")
        yield start, position


def _length_prefix(content: Content, position: int) -> tuple[int, int]:
    """Return the length stored at `position` and the position after it."""
    end = position + LENGTH.size
    if end > len(content):
        raise wire.WireError(f"a length is truncated at offset {position}")
    (size,) = LENGTH.unpack(part(content, position, end))
    return size, end
