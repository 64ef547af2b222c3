"""Standard output that cannot take the result: closed (`>&-`), or a terminal for something binary."""

from __future__ import annotations

import io
import sys
from typing import Any, NoReturn

from ncuroof.errors import OutputError, OutputFormatError


class ClosedOutput(io.TextIOBase):
    """Stands for a closed standard output, and refuses the first word, which would else be lost unnoticed."""

    encoding = "utf-8"
    errors = "strict"

    def write(self, _: Any) -> NoReturn:
        """Refuse to print.

        Raises:
            OutputError: always.
        """
        raise _closed("redirect it to a file: > FILE")

    @property
    def buffer(self) -> ClosedOutput:
        """The stream for bytes: this one, which takes none either."""
        return self


def refuse_where_closed() -> None:
    """Make whatever prints raise an `OutputError` if standard output is closed, which Python tells by None."""
    if sys.stdout is None:
        sys.stdout = ClosedOutput()


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
