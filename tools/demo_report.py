"""Writes the report that `ncuroof demo` analyses: that of a training step in fixtures/, without the kernels' machine code.

    python -m tools.demo_report

The machine code is 55 % of the report, and nearly all of it once compressed: 0.3 MB are left of 3.7, which a wheel can hold. What
the terminal says of both is the same; what only machine code shows (quantities that end in `_by_code`) is not known without it.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import zstandard

from ncuroof.ingest import wire

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "fixtures/h200/train_transformer.roofline.ncu-repz"
SHIPPED = ROOT / "demo" / RECORDED.name
_COUNTS = ".counts.json"
_LENGTH = struct.Struct("<I")
_MAGIC = b"NVR\0"
_N_SOURCES, _PAYLOAD_BYTES = 1, 5
"""Fields of a block's header: how many of its messages are sources, and how long all of them are together."""

_CODE = 4
"""Field of a source that has the machine code."""


def without_code(report: bytes) -> bytes:
    """Return an uncompressed report without machine code; everything else stays byte for byte."""
    header, position = _prefixed(report, len(_MAGIC))
    parts = [_MAGIC, _LENGTH.pack(len(header)), header]
    while position < len(report):
        block, position = _block(report, position)
        parts.append(block)
    return b"".join(parts)


def _block(report: bytes, position: int) -> tuple[bytes, int]:
    header, position = _prefixed(report, position)
    numbers = {number: value for number, _, value in wire.fields(header) if isinstance(value, int)}
    stop = position + numbers.get(_PAYLOAD_BYTES, 0)
    entries: list[bytes] = []
    while position < stop:
        entry, position = _prefixed(report, position)
        kept = _without_field(entry, _CODE) if len(entries) < numbers.get(_N_SOURCES, 0) else entry
        entries.append(_LENGTH.pack(len(kept)) + kept)
    payload = b"".join(entries)
    header = wire.with_number(header, _PAYLOAD_BYTES, len(payload))
    return _LENGTH.pack(len(header)) + header + payload, position


def _without_field(message: bytes, unwanted: int) -> bytes:
    kept = (message[start:stop] for number, start, _, stop in wire.placed_fields(message) if number != unwanted)
    return b"".join(kept)


def _prefixed(report: bytes, position: int) -> tuple[bytes, int]:
    (size,) = _LENGTH.unpack_from(report, position)
    start = position + _LENGTH.size
    return report[start : start + size], start + size


def main() -> None:
    """Write the report, and the launch counts beside it."""
    report = decompressed(RECORDED)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, source_size=len(report), window_log=27, enable_ldm=True
    )
    SHIPPED.parent.mkdir(exist_ok=True)
    SHIPPED.write_bytes(zstandard.ZstdCompressor(compression_params=parameters).compress(without_code(report)))
    counts = RECORDED.with_suffix(_COUNTS)
    shutil.copyfile(counts, SHIPPED.with_suffix(_COUNTS))


def decompressed(path: Path) -> bytes:
    """Return the report in a compressed file."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
        return stream.read()


if __name__ == "__main__":
    main()
