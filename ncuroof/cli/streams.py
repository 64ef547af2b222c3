"""Handle standard output and standard error in unusual states.

Standard output may be closed (`>&-`), or a terminal that is to show binary data, or have an encoding that lacks characters of the
text, which are replaced by similar ASCII. Standard error shows the progress of reading if it is a terminal.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import click

from ncuroof.errors import OutputError, OutputFormatError

_STANDARD_OUTPUT = 1

ERRORS = "ncuroof.plain"
_PLAIN_BY_CHARACTER = {
    "µ": "u", "μ": "u", "×": "x", "·": ".", "…": "~", "−": "-", "–": "-", "—": "-", "→": ">", "›": ">", "«": "<<", "±": "+-",
    "≥": ">=", "≤": "<=", "÷": "/", "√": "sqrt", "²": "^2", "█": "#", "▓": "=", "▒": "+", "░": ":", "Σ": "sum ", "β": "beta",
    "γ": "gamma", "ε": "eps", "σ": "sigma", "φ": "phi", "Φ": "Phi", "“": '"', "”": '"', "’": "'",
    "▲": "^", "▼": "v",
}  # fmt: skip
_UNKNOWN = "?"

_FIRST_AFTER_S = 0.5
"""Shorter work shows no progress."""

_AGAIN_AFTER_S = 0.1

_WIDTH = len("reading: 100 %")


class ClosedOutput(io.TextIOBase):
    """Replaces a closed standard output, and raises an error on the first write, which would be lost silently otherwise."""

    encoding = "utf-8"
    errors = "strict"
    may_be_lost = False

    def write(self, text: Any) -> int:
        """Raise an error, or discard the text if a file holds the result, too.

        Raises:
            OutputError: no file holds the result.
        """
        if self.may_be_lost:
            return len(text)
        raise _closed("redirect it to a file: > FILE")

    @property
    def buffer(self) -> ClosedOutput:
        """The stream for bytes, which behaves the same."""
        return self


def refuse_closed_output() -> None:
    """Make every print raise an `OutputError` if standard output is closed, that is, if Python set it to None.

    Descriptor 1 is reserved. Otherwise the next opened file would get it, and a profiled program would print into that file.
    """
    if sys.stdout is not None:
        return
    sys.stdout = ClosedOutput()
    try:
        os.fstat(_STANDARD_OUTPUT)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STANDARD_OUTPUT)
        os.set_inheritable(_STANDARD_OUTPUT, True)


@contextlib.contextmanager
def files_hold_result() -> Iterator[None]:
    """Discard what is printed in this block if standard output is closed, because files hold the result."""
    output = sys.stdout
    if isinstance(output, ClosedOutput):
        output.may_be_lost = True
    try:
        yield
    finally:
        if isinstance(output, ClosedOutput):
            output.may_be_lost = False


def check_standard_output(binary: str | None, *, hint: str) -> None:
    """Check, before any work, that standard output is open, and not a terminal if the result is binary.

    Args:
        binary: name of the result if it is binary, else None.
        hint: what to do instead.

    Raises:
        OutputError: standard output is closed.
        OutputFormatError: the result is binary, and standard output a terminal.
    """
    if isinstance(sys.stdout, ClosedOutput):
        raise _closed(hint)
    if binary is not None and sys.stdout.isatty():
        raise OutputFormatError(f"{binary} is binary and would garble the terminal", hint=hint)


def _closed(hint: str) -> OutputError:
    return OutputError("standard output is closed", hint=hint)


def replace_what_cannot_be_encoded() -> None:
    """Make standard output and standard error replace characters that their encoding lacks, instead of failing."""
    codecs.register_error(ERRORS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def echo(message: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    """Print on standard output, or on standard error, in the stream's own encoding.

    `click.echo` alone would choose UTF-8 in place of ASCII, and an ASCII terminal would show several wrong characters for each.
    """
    click.echo(message, file=sys.stderr if err else sys.stdout, nl=nl, err=err)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_similar_ascii, error.object[error.start : error.end])), error.end


def _similar_ascii(character: str) -> str:
    """Return the ASCII character to print instead: "e" for "é", "?" if nothing resembles it."""
    if character in _PLAIN_BY_CHARACTER:
        return _PLAIN_BY_CHARACTER[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or _UNKNOWN


@contextlib.contextmanager
def reading_progress(*, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Yield a function that shows the share read so far, from 0 to 1, in a line on the terminal, if there is one."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    next_s = time.monotonic() + _FIRST_AFTER_S
    is_drawn = False

    def tell(share: float) -> None:
        nonlocal next_s, is_drawn
        if time.monotonic() > next_s:
            next_s, is_drawn = time.monotonic() + _AGAIN_AFTER_S, True
            echo(f"\r{f'reading: {100 * share:.0f} %':<{_WIDTH}}", nl=False, err=True)

    try:
        yield tell
    finally:
        if is_drawn:
            echo(
                f"\r{'':{_WIDTH}}\r", nl=False, err=True
            )  # no escape sequence: not every terminal has one that clears a line
