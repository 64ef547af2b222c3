"""Reports compressed as a whole (`.ncu-repz`, Nsight Compute 2025.4 and later): zstd, with a bound on what comes out."""

from __future__ import annotations

import io

from ncuroof.errors import ReportFormatError

_MAX_RATIO = 64
"""Counters compress about tenfold; a file that grows more than this is not a report."""

_SMALL_BYTES = 64 << 20
"""What any file may grow to, however small it is."""

_CHUNK_BYTES = 1 << 20


def decompress(stored: bytes, *, where: str) -> bytes:
    """Return the report inside a zstd-compressed file.

    A cut file gives what comes out of its beginning.

    Raises:
        ReportFormatError: the file is not zstd, or grows beyond what a report of its size can.
    """
    import zstandard  # noqa: PLC0415  only compressed reports need it

    limit = max(_SMALL_BYTES, _MAX_RATIO * len(stored))
    content = io.BytesIO()
    try:
        with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                content.write(chunk)
                if content.tell() > limit:
                    raise ReportFormatError(
                        f"{where}: decompresses to more than {_MAX_RATIO} times its size, which no report does",
                        hint="the file is not what it says; record it again",
                    )
    except zstandard.ZstdError as error:
        if not content.tell():
            raise ReportFormatError(
                f"{where}: a zstd-compressed report was wanted, its compression is damaged: {error}",
                hint="copy or record it again",
            ) from error
    return content.getvalue()
