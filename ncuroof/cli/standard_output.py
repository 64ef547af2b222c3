"""Standard output that cannot take the result: closed (`>&-`), or a terminal for something binary."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from ncuroof.errors import OutputError, OutputFormatError

_STANDARD_OUTPUT = 1


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
