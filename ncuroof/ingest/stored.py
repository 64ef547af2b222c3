"""The bytes of a file: small ones in memory, large ones as a map, so that memory does not grow with the file.

Pages of a map that were read count as memory of the process until they are given back; a reader that goes through a large report
gives back what is behind it.
"""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import IO

Content = bytes | mmap.mmap
Buffer = Content | bytearray | memoryview

LARGE_BYTES = 16 << 20
"""Files below it are read at once, and stay as read should they be overwritten meanwhile; larger ones are faster mapped."""

RELEASE_BYTES = 16 << 20
"""How far a reader goes before it gives pages back."""

_CHUNK_BYTES = 1 << 20


def load(path: Path) -> tuple[Content, str]:
    """Return the bytes of a file, and their SHA-256 in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        if path.stat().st_size < LARGE_BYTES:
            content = file.read()
            return content, hashlib.sha256(content).hexdigest()
        digest = _digest(file)
        return mapped(file), digest


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return _digest(file)


def mapped(file: IO[bytes]) -> mmap.mmap:
    """Return a read-only map of an open file, which may be closed afterwards."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release(content: Buffer, end: int) -> None:
    """Give back the pages of a map before the offset `end`; what is read there again comes from the file again."""
    if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        n_bytes = end - end % mmap.PAGESIZE
        if n_bytes:
            content.madvise(mmap.MADV_DONTNEED, 0, n_bytes)


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
