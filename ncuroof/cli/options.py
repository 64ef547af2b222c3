"""Options that every command takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ncuroof.cli.plain_characters import echo
from ncuroof.wording import printable

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_INTERRUPTED = 130

_FLAGS_AND_HELP = {
    "no_color": (["--no-color"], "Plain text without colours, as with NO_COLOR in the environment."),
    "verbose": (["-v", "--verbose"], "Print more detail on standard error."),
    "quiet": (["-q", "--quiet"], "Print nothing but errors on standard error."),
}


_OPPOSED = {"quiet", "verbose"}
_GIVEN = f"{__name__}.given"
"""Key of the flags that were given, in what contexts of click share."""


def common(*read: str) -> Callable[[Command], Command]:
    """Add --quiet, --verbose and --no-color, which every command takes, also before its name.

    Args:
        read: those of `quiet`, `verbose` and `no_color` that the command gets; the others change nothing in it.
    """

    def decorated(command: Command) -> Command:
        for name, (flags, text) in _FLAGS_AND_HELP.items():
            option = click.option(*flags, is_flag=True, help=text, callback=_or_given_before, expose_value=name in read)
            command = option(command)
        return command

    return decorated


def _or_given_before(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Return whether a flag was given here or before the command's name.

    Raises:
        UsageError: both --quiet and --verbose were.
    """
    name = str(parameter.name)
    is_given = value or bool(ctx.find_root().params.get(name))
    given: set[str] = ctx.meta.setdefault(_GIVEN, set())
    given.update({name} if is_given else ())
    if given >= _OPPOSED:
        raise click.UsageError("--quiet and --verbose exclude each other")
    return is_given


def say(message: str) -> None:
    """Print a line on standard error; control characters in it, such as from names in a report, do not reach the terminal."""
    echo(printable(message), err=True)


def wants_color(*, no_color: bool) -> bool | None:
    """Return False if the user refuses colour, None to let the terminal decide."""
    return False if no_color or os.environ.get("NO_COLOR") else None
