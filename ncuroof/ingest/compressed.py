"""Reports compressed as a whole (`.ncu-repz`, Nsight Compute 2025.4 and later): zstd, with a bound on what comes out."""

from __future__ import annotations

import tempfile
from typing import IO

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.stored import Content, StoredFile

COMPRESSED_SUFFIX = ".ncu-repz"

_MAX_RATIO = 64
"""Counters compress about tenfold; a file that grows more than this is not a report."""

_SMALL_BYTES = 64 << 20
"""What any file may grow to, however small it is."""

IN_MEMORY_BYTES = 64 << 20
"""What is larger is written to a temporary file."""

_CHUNK_BYTES = 1 << 17

_MAX_WINDOW_BYTES = 1 << 27
"""What zstd itself allows without being asked (`--long` aside): a file can ask for gigabytes before a byte comes out."""


def decompress(stored: Content, *, where: str) -> tuple[Content, str | None]:
    """Return the report inside a zstd-compressed file, and what is wrong with its compression, or None.

    Of a cut or damaged file, what comes out before the damage is returned. What is large is in a temporary file, which the
    caller closes.

    Raises:
        ReportFormatError: nothing comes out, or more than a report of that size can hold.
        OSError: there is no room for the temporary file.
    """
    content = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  a large one is closed by who reads it
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
    """Write what is in a compressed file to `content`, and return what is wrong with its compression, or None.

    Raises:
        ReportFormatError: more comes out than a report of that size can hold.
        OSError: there is no room.
    """
    import zstandard  # noqa: PLC0415  only compressed reports need it

    limit = max(_SMALL_BYTES, _MAX_RATIO * len(stored))
    source = stored.rewound() if isinstance(stored, StoredFile) else stored
    reader = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    try:
        with reader.stream_reader(source, read_across_frames=True, closefd=False) as stream:
            while chunk := stream.read1(_CHUNK_BYTES):  # `read` keeps back what comes out before damage
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
    """Return a report as Nsight Compute reads it from a `.ncu-repz` file."""
    import zstandard  # noqa: PLC0415  only compressed reports need it

    return zstandard.ZstdCompressor().compress(content)
