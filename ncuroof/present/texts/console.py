"""The console on which results are printed: plain if requested; a closed pipe raises BrokenPipeError."""

from __future__ import annotations

import os
import re

from rich.console import Console

_SIZE = re.compile(r"0*[1-9][0-9]{0,5}")
"""Valid values of COLUMNS and LINES: rich would accept 0, and fail on non-ASCII digits."""


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line handle a closed pipe (`| head`); rich would exit with status 1."""
        raise BrokenPipeError


def result_console(*, color: bool | None = None) -> Console:
    """Return a console on standard output that prints text as it is, without markup.

    Args:
        color: False for plain text without any escape sequence; None lets the terminal decide.
    """
    return _ResultConsole(
        color_system=None if color is False else "auto", highlight=False, markup=False, _environ=_environment()
    )


def is_width_set() -> bool:
    """Return whether COLUMNS is set to a valid width."""
    return "COLUMNS" in _environment()


def _environment() -> dict[str, str]:
    """Return the environment without invalid values of COLUMNS and LINES."""
    return {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES") or _SIZE.fullmatch(value)
    }
