"""Start child processes, pass on their output, and end them properly.

A program that runs several times gets the same standard input each time. SIGTERM and SIGHUP act like Ctrl-C: the child is
interrupted first, so that it can close its report.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

from ncuroof.errors import NcuNotFoundError
from ncuroof.interrupts import interrupted_by_signals

_STDIN = 0
_CHUNK = 65536
_PATIENCE_S = 5.0
_BUSY_S, _IDLE_S = 0.001, 0.05
"""Polling intervals for whether the program has read what it was given, while it reads and while it does not; there is no event."""

_AT_ONCE = 2
"""SPLICE_F_NONBLOCK of tee(2)."""

_kept: list[_File | _Pipe] = []
"""Standard input while it is kept; at most one. Global because standard input is the process's."""


@contextlib.contextmanager
def kept_input() -> Iterator[None]:
    """Within the block, keep what programs read from standard input (a file, pipe or socket), for `from_the_beginning`."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:  # it is closed
        mode = 0
    with contextlib.ExitStack() as kept:
        if stat.S_ISREG(mode):
            _kept.append(_File())
        elif sys.platform == "linux" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            _kept.append(_Pipe(kept, _tee if stat.S_ISFIFO(mode) else _peek))
        try:
            yield
        finally:
            _kept.clear()


def from_the_beginning() -> None:
    """Rewind standard input, so that the next program reads what the previous one has read; no effect outside `kept_input`."""
    for each in _kept:
        each.rewind()


class _File:
    """A file as standard input, whose position the started programs share with this process."""

    def __init__(self) -> None:
        self._place = os.lseek(_STDIN, 0, os.SEEK_CUR)

    def rewind(self) -> None:
        os.lseek(_STDIN, self._place, os.SEEK_SET)


class _Pipe:
    """A pipe or socket: a thread gives the program a copy of its content, and moves what the program has read to a spool file.

    What no program reads stays in the pipe for whoever reads it after us: the shell of a loop `… | while read`, or a shell that
    reads its script from there.
    """

    def __init__(self, stack: contextlib.ExitStack, copy: Callable[[int, int], int | None]) -> None:
        self._source, self._copy = os.dup(_STDIN), copy
        stack.callback(os.close, self._source)
        self._spool: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._thread: threading.Thread | None = None
        self._has_ended = threading.Event()
        stack.callback(self._end)

    def rewind(self) -> None:
        self._end()
        self._has_ended.clear()
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        os.dup2(ours, _STDIN)
        self._spool.seek(0)
        self._thread = threading.Thread(target=self._copy_to_program, args=(ours, theirs), daemon=True)
        self._thread.start()

    def _end(self) -> None:
        """Stop the thread and restore standard input."""
        if self._thread is not None:
            self._has_ended.set()
            os.dup2(self._source, _STDIN)
            self._thread.join(_PATIENCE_S)
            self._thread = None

    def _copy_to_program(self, ours: int, theirs: int) -> None:
        n_copied, pause_s = 0, _BUSY_S
        with contextlib.suppress(OSError), os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs, "wb", buffering=0):
            while not self._has_ended.wait(pause_s):
                pause_s = min(2 * pause_s, _IDLE_S)
                if _n_unread(ours):
                    continue
                self._take(n_copied)
                n_copied = 0
                chunk = self._spool.read(_CHUNK)
                n_handed = os.write(theirs, chunk) if chunk else self._copy(self._source, theirs)
                if chunk:
                    self._spool.seek((n_handed or 0) - len(chunk), os.SEEK_CUR)
                elif n_handed == 0:
                    return
                else:
                    n_copied = n_handed or 0
                if n_handed:
                    pause_s = _BUSY_S
            self._take(n_copied - min(n_copied, _n_unread(ours)))

    def _take(self, n_bytes: int) -> None:
        while n_bytes:
            chunk = os.read(self._source, n_bytes)
            self._spool.write(chunk)
            n_bytes -= len(chunk)


def _n_unread(pipe: int) -> int:
    import fcntl  # noqa: PLC0415  missing on Windows, where ncuroof must still read reports
    import termios  # noqa: PLC0415

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _tee(source: int, target: int) -> int | None:
    """Copy a pipe's content to another without consuming it; return the bytes copied, 0 at its end, None if there are none yet."""
    n_bytes = int(ctypes.CDLL(None, use_errno=True).tee(source, target, _CHUNK, _AT_ONCE))
    if n_bytes >= 0:
        return n_bytes
    if ctypes.get_errno() == errno.EAGAIN:
        return None
    raise OSError(ctypes.get_errno(), "tee")


def _peek(source: int, target: int) -> int | None:
    """Do the same as `_tee` for a socket."""
    with socket.socket(fileno=os.dup(source)) as stream:
        try:
            chunk = stream.recv(_CHUNK, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
    return os.write(target, chunk) if chunk else 0


def started(
    words: Sequence[str], environment: Mapping[str, str], *, stdout: int | None, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Return a started command, which inherits our standard input from its beginning.

    Args:
        words: the command.
        environment: variables to set if the environment lacks them.
        stdout: descriptor to write to; None for standard output.
        stderr: descriptor to write to; None for standard error.

    Raises:
        NcuNotFoundError: the command cannot be run.
    """
    from_the_beginning()
    try:
        return subprocess.Popen(words, stdout=stdout, stderr=stderr, env={**environment, **os.environ})  # noqa: S603  the arguments as given, no shell
    except OSError as error:
        raise NcuNotFoundError(
            f"{words[0]} cannot be run: {error.strerror}", hint="check the machine with ncuroof doctor"
        ) from error


def write_all(descriptor: int, output: bytes) -> None:
    """Write all of `output`, in parts if a pipe or a terminal accepts only a part at a time.

    Raises:
        OSError: the other end is gone.
    """
    view = memoryview(output)
    while view:
        view = view[os.write(descriptor, view) :]


def forwarding_signals(process: subprocess.Popen[bytes]) -> contextlib.AbstractContextManager[None]:
    """On SIGTERM and SIGHUP, send SIGINT to the child, as Ctrl-C in a terminal does, and raise KeyboardInterrupt here."""
    return interrupted_by_signals(lambda: process.send_signal(signal.SIGINT))
