"""Access to a file's bytes: small files are held in memory, large ones read part by part, so that memory stays bounded.

Whole-file zstd reports (`.ncu-repz`, Nsight Compute 2025.4 and later) are decompressed, with a limit on the output size.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from pathlib import Path
from threading import Thread
from typing import IO

from ncuroof.errors import ReportAccessError, ReportFormatError

LARGE_BYTES = 16 << 20
"""Smaller files are read whole, so that overwriting them in the meantime has no effect."""

_CHUNK_BYTES = 8 << 20
"""Bytes hashed or copied at a time; the hashing thread has to wait for the GIL after each chunk."""

_MAX_RATIO = 64
"""Maximum decompressed to compressed size. Counters compress about tenfold; a file that exceeds this is not a report."""

_SMALL_BYTES = 64 << 20
"""Decompressed size allowed for any file, whatever its ratio."""

IN_MEMORY_BYTES = 64 << 20
"""Larger reports are decompressed into a temporary file."""

_READ_BYTES = 1 << 17

_MAX_WINDOW_BYTES = 1 << 27
"""The zstd tool's own default limit (without `--long`): a file can demand a window of gigabytes before any output."""


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
            while chunk := stream.read1(_READ_BYTES):  # `read` would withhold the bytes that precede damage
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
