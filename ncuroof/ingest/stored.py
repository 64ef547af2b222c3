"""The bytes of a file: small ones in memory, large ones as a map, so that memory does not grow with the file.

Pages of a map that were read count as memory of the process until they are given back; a reader that goes through a large report
gives back what is behind it.
"""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from threading import Thread
from typing import IO

Content = bytes | mmap.mmap
Buffer = Content | bytearray | memoryview

LARGE_BYTES = 16 << 20
"""Files below it are read at once, and stay as read should they be overwritten meanwhile; larger ones are faster mapped."""

RELEASE_BYTES = 16 << 20
"""How far a reader goes before it gives pages back."""

_CHUNK_BYTES = 1 << 20


def load(path: Path) -> Content:
    """Return the bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        return file.read() if path.stat().st_size < LARGE_BYTES else mapped(file)


class Digest:
    """The SHA-256 of a content, which a thread of its own computes while the content is read.

    Args:
        content: what to hash.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self._found: str | None = None
        self._thread = Thread(target=self._find, daemon=True)  # an interrupt does not wait for it
        self._thread.start()

    def hexdigest(self) -> str:
        """Return it in hexadecimal, as soon as it is known."""
        self._thread.join()
        return self._found or _sha256_of(self._content)  # a thread can fail where memory is short

    def _find(self) -> None:
        self._found = _sha256_of(self._content)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def mapped(file: IO[bytes]) -> mmap.mmap:
    """Return a read-only map of an open file, which may be closed afterwards."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release(content: Buffer, end: int) -> None:
    """Give back the pages of a map before the offset `end`; what is read there again comes from the file again."""
    if isinstance(content, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        n_bytes = end - end % mmap.PAGESIZE
        if n_bytes:
            content.madvise(mmap.MADV_DONTNEED, 0, n_bytes)


def _sha256_of(content: Content) -> str:
    """Return the SHA-256 of a content, whose pages are given back."""
    digest = hashlib.sha256()
    with memoryview(content) as view:
        for start in range(0, len(view), RELEASE_BYTES):
            end = start + RELEASE_BYTES
            digest.update(view[start:end])
            release(content, min(end, len(view)))
    return digest.hexdigest()
