"""Reports compressed as a whole (`.ncu-repz`, Nsight Compute 2025.4 and later): zstd, with a bound on what comes out."""

from __future__ import annotations

import io

from ncuroof.errors import ReportFormatError

COMPRESSED_SUFFIX = ".ncu-repz"

_MAX_RATIO = 64
"""Counters compress about tenfold; a file that grows more than this is not a report."""

_SMALL_BYTES = 64 << 20
"""What any file may grow to, however small it is."""

_CHUNK_BYTES = 1 << 17


def decompress(stored: bytes, *, where: str) -> tuple[bytes, str | None]:
    """Return the report inside a zstd-compressed file, and what is wrong with its compression, or None.

    Of a cut or damaged file, what comes out before the damage is returned.

    Raises:
        ReportFormatError: nothing comes out, or more than a report of that size can hold.
    """
    import zstandard  # noqa: PLC0415  only compressed reports need it

    limit = max(_SMALL_BYTES, _MAX_RATIO * len(stored))
    content = io.BytesIO()
    loss = None
    try:
        with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                content.write(chunk)
                if content.tell() > limit:
                    raise ReportFormatError(
                        f"{where}: decompresses to more than a report of its size does ({limit} bytes)",
                        hint="the file is not what it says; record it again",
                    )
    except zstandard.ZstdError as error:
        loss = f"the compression is damaged: {error}"
    if not content.tell():
        raise ReportFormatError(
            f"{where}: a compressed report was wanted, {loss or 'nothing comes out of it'}",
            hint="copy or record it again",
        )
    return content.getvalue(), loss


def compress(content: bytes) -> bytes:
    """Return a report as Nsight Compute reads it from a `.ncu-repz` file."""
    import zstandard  # noqa: PLC0415  only compressed reports need it

    return zstandard.ZstdCompressor().compress(content)
