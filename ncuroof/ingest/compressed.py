"""Decompresses whole-file zstd reports (`.ncu-repz`, Nsight Compute 2025.4 and later), with a limit on the output size."""

from __future__ import annotations

import tempfile
from typing import IO

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.stored import Content, StoredFile

_MAX_RATIO = 64
"""Maximum decompressed to compressed size. Counters compress about tenfold; a file that exceeds this is not a report."""

_SMALL_BYTES = 64 << 20
"""Decompressed size allowed for any file, whatever its ratio."""

IN_MEMORY_BYTES = 64 << 20
"""Larger reports are decompressed into a temporary file."""

_CHUNK_BYTES = 1 << 17

_MAX_WINDOW_BYTES = 1 << 27
"""The zstd tool's own default limit (without `--long`): a file can demand a window of gigabytes before any output."""


def decompress(stored: Content, *, where: str) -> tuple[Content, str | None]:
    """Return the report inside a zstd-compressed file, and what is wrong with its compression, or None.

    Of a truncated or damaged file, everything before the damage is returned. A large report is in a temporary file, which the
    caller has to close.

    Raises:
        ReportFormatError: nothing can be decompressed, or the output is too large for a report of that size.
        OSError: the temporary file cannot be written, for example on a full disk.
    """
    content = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  the caller closes a large one
    try:
        loss = _decompress_into(content, stored, where)
        n_bytes = content.tell()
        if not n_bytes:
            raise ReportFormatError(
                f"{where}: the compressed report cannot be read: {loss or 'nothing in it can be decompressed'}",
                hint="copy or record it again",
            )
        content.seek(0)
        if n_bytes > IN_MEMORY_BYTES:
            return StoredFile(content, where), loss
        small = content.read()
    except BaseException:
        content.close()
        raise
    content.close()
    return small, loss


def _decompress_into(content: IO[bytes], stored: Content, where: str) -> str | None:
    """Decompress `stored` into `content`, and return what is wrong with the compression, or None.

    Raises:
        ReportFormatError: the output is too large for a report of that size.
        OSError: `content` cannot be written, for example on a full disk.
    """
    import zstandard  # noqa: PLC0415  only compressed reports need it

    limit = max(_SMALL_BYTES, _MAX_RATIO * len(stored))
    source = stored.rewound() if isinstance(stored, StoredFile) else stored
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    try:
        with reader.stream_reader(source, read_across_frames=True, closefd=False) as stream:
            while chunk := stream.read1(_CHUNK_BYTES):  # `read` would withhold the bytes that precede damage
                content.write(chunk)
                if content.tell() > limit:
                    raise ReportFormatError(
                        f"{where}: decompresses to more than {limit} bytes, too much for a report of its size",
                        hint="the file is not an intact report; record it again",
                    )
    except zstandard.ZstdError as error:
        return f"the compression is damaged: {error}"
    return None


def compress(content: bytes) -> bytes:
    """Return a report compressed as in a `.ncu-repz` file, which Nsight Compute can open."""
    import zstandard  # noqa: PLC0415  only compressed reports need it

    return zstandard.ZstdCompressor().compress(content)
