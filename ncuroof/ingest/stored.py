"""Access to a file's bytes: small files are held in memory, large ones read part by part, so that memory stays bounded."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from pathlib import Path
from threading import Thread
from typing import IO

from ncuroof.errors import ReportAccessError

LARGE_BYTES = 16 << 20
"""Smaller files are read whole, so that overwriting them in the meantime has no effect."""

_CHUNK_BYTES = 8 << 20
"""Bytes hashed or copied at a time; the hashing thread has to wait for the GIL after each chunk."""


class StoredFile:
    """A file whose parts are read on demand.

    Args:
        file: open and seekable; nobody else may move its position.
        where: the file's name, for error messages.
    """

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file = file
        self._where = where
        self._n_bytes = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self._n_bytes

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`.

        Raises:
            ReportAccessError: the file no longer contains them, or cannot be read.
        """
        try:
            return self._read(start, end - start)
        except OSError as error:
            raise _gone(self._where, error) from error

    def rewound(self) -> IO[bytes]:
        """Return the underlying file, positioned at its start."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, start: int, n_bytes: int) -> bytes:
        self._file.seek(start)
        found = self._file.read(n_bytes)
        while len(found) < n_bytes:  # a read may return fewer bytes than requested
            more = self._file.read(n_bytes - len(found))
            if not more:
                raise OSError(errno.EIO, "it was truncated while being read")
            found += more
        return found


Content = bytes | StoredFile
Part = bytes | memoryview
"""A view of bytes in memory, or a copy read from a file."""


def part(content: Content, start: int, end: int) -> Part:
    """Return the bytes of `content` from `start` to `end`, both within it.

    Raises:
        ReportAccessError: the file was truncated in the meantime, or cannot be read.
    """
    return content.part(start, end) if isinstance(content, StoredFile) else memoryview(content)[start:end]


def close(content: Content) -> None:
    """Close `content` if it is a file."""
    if isinstance(content, StoredFile):
        content.close()


def copy_part(content: Content, n_bytes: int, path: Path) -> None:
    """Write the first `n_bytes` of `content` to the file at `path`.

    Raises:
        ReportAccessError: the source file was truncated in the meantime, or cannot be read.
        OSError: the copy cannot be written, for example on a full disk.
    """
    with path.open("wb") as file:
        for start in range(0, n_bytes, _CHUNK_BYTES):
            file.write(part(content, start, min(start + _CHUNK_BYTES, n_bytes)))


class LoadedFile:
    """A file's content and its SHA-256, which a background thread computes while the content is being read.

    Args:
        path: path of the file.

    Attributes:
        content: the file's bytes.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        is_small = path.stat().st_size < LARGE_BYTES
        self.content = path.read_bytes() if is_small else StoredFile(path.open("rb", buffering=0), str(path))
        self._sha256: str | None = None
        self._thread = Thread(target=self._find, daemon=True)  # daemon: Ctrl-C does not wait for it
        self._thread.start()

    def __enter__(self) -> LoadedFile:
        return self

    def __exit__(self, *raised: object) -> None:
        close(self.content)

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal, waiting for the thread if necessary.

        Raises:
            ReportAccessError: the file can no longer be read.
        """
        self._thread.join()
        return self._sha256 or self._hash()  # if the thread failed, hash again here so that the error is raised

    def _find(self) -> None:
        with contextlib.suppress(Exception):  # `sha256` runs into the same error and raises it
            self._sha256 = self._hash()

    def _hash(self) -> str:
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        try:
            return sha256(self._path)
        except OSError as error:
            raise _gone(str(self._path), error) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    chunk = memoryview(bytearray(_CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        while n_bytes := file.readinto(chunk):
            digest.update(chunk[:n_bytes])
    return digest.hexdigest()


def _gone(where: str, error: OSError) -> ReportAccessError:
    return ReportAccessError(
        f"{where}: can no longer be read: {error.strerror or error}",
        hint="read it again when nothing is writing it, or check the disk or network it is on",
    )


def readable(text: str) -> str:
    """Return a path or other text in valid UTF-8, with U+FFFD for surrogate escapes: a file name on disk need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
