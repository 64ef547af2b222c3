"""A program that runs several times reads the same standard input each time."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

_STDIN = 0
_CHUNK = 65536
_PATIENCE_S = 5.0

_kept: list[_File | _Pipe] = []
"""What standard input is, while it is kept; it is the process's, as this is."""


@contextlib.contextmanager
def kept_input() -> Iterator[None]:
    """Keep what the program reads from standard input, a file or a pipe, for `from_the_beginning`."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:  # it is closed
        mode = 0
    with contextlib.ExitStack() as kept:
        if stat.S_ISREG(mode):
            _kept.append(_File())
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            _kept.append(_Pipe(kept))
        try:
            yield
        finally:
            _kept.clear()


def from_the_beginning() -> None:
    """Let the program that is started next read what the one before has read; nothing where none is kept."""
    for each in _kept:
        each.rewind()


class _File:
    """A file, whose place what we start shares with us."""

    def __init__(self) -> None:
        self._place = os.lseek(_STDIN, 0, os.SEEK_CUR)

    def rewind(self) -> None:
        os.lseek(_STDIN, self._place, os.SEEK_SET)


class _Pipe:
    """A pipe, of which as much is read as programs take; a thread hands it on, and writes it to a file for the next one."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._source = os.dup(_STDIN)
        stack.callback(os.close, self._source)
        self._spool: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._thread: threading.Thread | None = None
        self._wake = -1
        stack.callback(self._end)

    def rewind(self) -> None:
        self._end()
        (ours, theirs), (woken, self._wake) = os.pipe(), os.pipe()
        os.dup2(ours, _STDIN)
        os.close(ours)
        self._thread = threading.Thread(target=self._hand_on, args=(theirs, woken), daemon=True)
        self._thread.start()

    def _end(self) -> None:
        """Hand on no more, and be what we were."""
        if self._thread is not None:
            os.close(self._wake)
            os.dup2(self._source, _STDIN)  # what the program has not read has no reader now
            self._thread.join(_PATIENCE_S)
            self._thread = None

    def _hand_on(self, target: int, woken: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(target, "wb", buffering=0), os.fdopen(woken, "rb"):
            self._spool.seek(0)
            while chunk := self._spool.read(_CHUNK):
                _write(target, chunk)
            while woken not in select.select([self._source, woken], [], [])[0]:
                chunk = os.read(self._source, _CHUNK)
                if not chunk:
                    return
                self._spool.write(chunk)
                _write(target, chunk)


def _write(target: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(target, view) :]
