"""Runs a program once without ncu, for counting; under Nsight Systems, nsys's closing messages are removed from its output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType

from ncuroof.collect.child import started, write_all
from ncuroof.collect.signals import forwarding_signals

_LAST_WORDS = re.compile(rb"Generating '[^'\n]*\.(?:qdstrm|nsys-rep)'\r?\n")
"""First of nsys's closing messages, on standard output: the program has ended, and nsys starts to write its report."""

_BEGIN = b"Generating '"
_BEGUN = re.compile(rb"Generating '[^'\n]*'?\r?")
_CHUNK = 65536
_STDOUT = 1
_GRACE_S = 10.0
"""Time that the program has to clean up before it is killed, after an interrupt or another error here."""


def run_to_end(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit status.

    Args:
        words: the command.
        environment: variables to set where our environment lacks them.

    Raises:
        NcuNotFoundError: it cannot be run.
    """
    with _running(words, environment) as process:
        return process.wait()


def run_nsys(words: Sequence[str]) -> int:
    """Run a command of nsys, relay the program's output, and return nsys's exit status.

    Raises:
        NcuNotFoundError: nsys cannot be run.
    """
    ours, theirs = os.pipe()
    with (
        os.fdopen(ours, "rb", buffering=0),
        os.fdopen(theirs, "wb", buffering=0) as end,
        _running(words, stdout=theirs) as process,
    ):
        end.close()  # so that reading ends with the process
        try:
            _relay(ours)
        except OSError:  # our output is gone: keep reading, so that nsys can still write its trace
            while os.read(ours, _CHUNK):
                pass
        return process.wait()


@contextmanager
def _running(
    words: Sequence[str], environment: Mapping[str, str] = MappingProxyType({}), *, stdout: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; if the block fails, give the command `_GRACE_S` to end, then kill it."""
    for stream in (sys.stdout, sys.stderr):  # so that the command's output comes after ours
        if stream is not None:
            stream.flush()
    process = started(words, environment, stdout=stdout)
    with process, forwarding_signals(process):
        try:
            yield process
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):  # that signal reached the child too
                process.terminate()
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(_GRACE_S)
            if process.poll() is None:
                process.kill()
            raise


def _relay(source: int) -> None:
    """Pass on the program's output, up to nsys's closing messages."""
    held = b""
    while chunk := os.read(source, _CHUNK):
        held += chunk
        last_words = _LAST_WORDS.search(held)
        if last_words is not None:
            write_all(_STDOUT, held[: last_words.start()])
            while os.read(source, _CHUNK):
                pass
            return
        begin = _may_begin(held)
        write_all(_STDOUT, held[:begin])
        held = held[begin:]
    write_all(_STDOUT, held)


def _may_begin(output: bytes) -> int:
    """Return where nsys's closing message may have begun, its rest still to come; the end of the output if nowhere."""
    last_line = output.rfind(b"\n") + 1
    for letter in re.finditer(_BEGIN[:1], output[last_line:]):
        rest = output[last_line + letter.start() :]
        if _BEGIN.startswith(rest) or _BEGUN.fullmatch(rest):
            return last_line + letter.start()
    return len(output)
