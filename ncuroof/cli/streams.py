"""Standard output and standard error, whatever is at their other end.

Standard output may be closed (`>&-`), a terminal that is asked to show something binary, or lack characters of the text; similar
ASCII then replaces these. Standard error shows the progress of reading if it is a terminal.
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
    """Stands for a closed standard output, and refuses the first word, which would else be lost unnoticed."""

    encoding = "utf-8"
    errors = "strict"
    may_be_lost = False

    def write(self, text: Any) -> int:
        """Refuse to print, or lose what a file holds as well.

        Raises:
            OutputError: no file holds it.
        """
        if self.may_be_lost:
            return len(text)
        raise _closed("redirect it to a file: > FILE")

    @property
    def buffer(self) -> ClosedOutput:
        """The stream for bytes: this one, which takes none either."""
        return self


def refuse_where_closed() -> None:
    """Make whatever prints raise an `OutputError` if standard output is closed, which Python tells by None.

    Its descriptor is kept from files, into which a program that is profiled would else print.
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
    """Let a closed standard output lose what is printed in this block: files hold the result."""
    output = sys.stdout
    if isinstance(output, ClosedOutput):
        output.may_be_lost = True
    try:
        yield
    finally:
        if isinstance(output, ClosedOutput):
            output.may_be_lost = False


def check_standard_output(binary: str | None, *, hint: str) -> None:
    """Refuse, before there is a result, to print to a closed standard output, or a binary result to a terminal.

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

    Where that is ASCII, `click.echo` would choose UTF-8, of which such a terminal shows most characters as several wrong ones.
    """
    click.echo(message, file=sys.stderr if err else sys.stdout, nl=nl, err=err)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_alike, error.object[error.start : error.end])), error.end


def _alike(character: str) -> str:
    """Return the ASCII character to print instead: "e" for "é", "?" if nothing resembles it."""
    if character in _PLAIN_BY_CHARACTER:
        return _PLAIN_BY_CHARACTER[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or _UNKNOWN


@contextlib.contextmanager
def reading_progress(*, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Yield a function to call with the share read so far, from 0 to 1; it updates a line on the terminal, if there is one."""
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
            echo(f"\r{'':{_WIDTH}}\r", nl=False, err=True)  # no escape: not every terminal knows one that clears a line
