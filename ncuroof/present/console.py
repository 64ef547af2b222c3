"""The console that results are printed on: plain where it is asked for, and silent about a reader that went away."""

from __future__ import annotations

from rich.console import Console


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line what a closed pipe (`| head`) means; rich would exit with 1."""
        raise BrokenPipeError


def result_console(*, color: bool | None = None) -> Console:
    """Return a console on standard output that takes text as it is, without markup.

    Args:
        color: False for plain text without any escape sequence; None lets the terminal decide.
    """
    return _ResultConsole(color_system=None if color is False else "auto", highlight=False, markup=False)
