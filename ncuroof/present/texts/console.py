"""The console that results are printed on: plain where it is asked for, and silent about a reader that went away."""

from __future__ import annotations

import os
import re

from rich.console import Console

_SIZE = re.compile(r"0*[1-9][0-9]{0,5}")
"""What COLUMNS and LINES may say: rich would take 0 as told, and fail at other writing systems' digits."""


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line what a closed pipe (`| head`) means; rich would exit with 1."""
        raise BrokenPipeError


def result_console(*, color: bool | None = None) -> Console:
    """Return a console on standard output that takes text as it is, without markup.

    Args:
        color: False for plain text without any escape sequence; None lets the terminal decide.
    """
    return _ResultConsole(
        color_system=None if color is False else "auto", highlight=False, markup=False, _environ=_environment()
    )


def is_width_told() -> bool:
    """Return whether COLUMNS says a width."""
    return "COLUMNS" in _environment()


def _environment() -> dict[str, str]:
    """Return the environment, without a COLUMNS or LINES that says no size."""
    return {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES") or _SIZE.fullmatch(value)
    }
