"""The bytes of a file: small ones in memory, large ones part by part, so that memory does not grow with the file."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import IO

from ncuroof.errors import ReportAccessError

LARGE_BYTES = 16 << 20
"""Files below it are read at once, and stay as read should they be overwritten meanwhile."""

_CHUNK_BYTES = 8 << 20
"""Hashed or copied at a time; a thread that hashes waits for a turn with the interpreter after each."""


class StoredFile:
    """A file of which parts are read when they are asked for.

    Args:
        file: open and seekable; nobody else moves in it.
        where: its name, for error messages.
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
            ReportAccessError: the file does not hold them any more, or cannot be read.
        """
        try:
            return self._read(start, end - start)
        except OSError as error:
            raise _gone(self._where, error) from error

    def rewound(self) -> IO[bytes]:
        """Return the file itself, at its beginning."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, start: int, n_bytes: int) -> bytes:
        self._file.seek(start)
        found = self._file.read(n_bytes)
        while len(found) < n_bytes:  # the system may give less than was asked for
            more = self._file.read(n_bytes - len(found))
            if not more:
                raise OSError(errno.EIO, "it was truncated while being read")
            found += more
        return found


Content = bytes | StoredFile
Part = bytes | memoryview
"""Of what is in memory a view, of a file a copy."""


def part(content: Content, start: int, end: int) -> Part:
    """Return the bytes of a content from `start` to `end`, both of them inside it.

    Raises:
        ReportAccessError: the file was cut meanwhile, or cannot be read.
    """
    return content.part(start, end) if isinstance(content, StoredFile) else memoryview(content)[start:end]


@contextlib.contextmanager
def closing(content: Content) -> Iterator[None]:
    """Close a content at the end, where it is a file."""
    try:
        yield
    finally:
        if isinstance(content, StoredFile):
            content.close()


def copy_part(content: Content, n_bytes: int, path: Path) -> None:
    """Write the first bytes of a content to a file.

    Raises:
        ReportAccessError: the content was cut meanwhile.
        OSError: there is no room.
    """
    with path.open("wb") as file:
        for start in range(0, n_bytes, _CHUNK_BYTES):
            file.write(part(content, start, min(start + _CHUNK_BYTES, n_bytes)))


class LoadedFile:
    """The content of a file, and its SHA-256, which a thread of its own computes while the content is read.

    Args:
        path: of the file.

    Attributes:
        content: its bytes.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        is_small = path.stat().st_size < LARGE_BYTES
        self.content = path.read_bytes() if is_small else StoredFile(path.open("rb", buffering=0), str(path))
        self._sha256: str | None = None
        self._thread = Thread(target=self._find, daemon=True)  # an interrupt does not wait for it
        self._thread.start()

    def __enter__(self) -> LoadedFile:
        return self

    def __exit__(self, *raised: object) -> None:
        with closing(self.content):
            pass

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal, as soon as it is known.

        Raises:
            ReportAccessError: the file cannot be read any more.
        """
        self._thread.join()
        return self._sha256 or self._hash()  # a thread that failed cannot say why

    def _find(self) -> None:
        with contextlib.suppress(Exception):  # whatever it is, `sha256` meets it again
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
    """Return a path, or text that Python read, as every file can hold it: a name on disk need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
