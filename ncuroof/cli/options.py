"""Options that every command takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def common(command: Command) -> Command:
    """Add --quiet, --verbose and --no-color."""
    for option in (
        click.option("--no-color", is_flag=True, help="Plain text; NO_COLOR in the environment does the same."),
        click.option("-v", "--verbose", is_flag=True, help="Say more about what is going on, on standard error."),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors."),
    ):
        command = option(command)
    return command


def say(message: str) -> None:
    """Print a line on standard error; names from a report or of a file cannot act on the terminal."""
    from ncuroof.present.format import printable  # noqa: PLC0415  loads polars, which --help does without

    click.echo(printable(message), err=True)


def wants_color(*, no_color: bool) -> bool | None:
    """Return False where colour is refused, None to let the terminal decide."""
    return False if no_color or os.environ.get("NO_COLOR") else None
