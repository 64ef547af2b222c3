"""Options and parameter types that several commands use.

Types for paths refuse an empty path, and distinguish what pathlib does not: "out/" from "out", and a file "./-" from "-". A command
does not overwrite its inputs, even with --force.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ncuroof.cli.streams import echo
from ncuroof.errors import OutputError
from ncuroof.formatting import printable

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_INTERRUPTED = 130

_FLAGS_AND_HELP = {
    "no_color": (["--no-color"], "Plain text without colours, as with NO_COLOR in the environment."),
    "verbose": (["-v", "--verbose"], "Print more detail on standard error."),
    "quiet": (["-q", "--quiet"], "Print nothing but errors on standard error."),
}


_OPPOSED = {"quiet", "verbose"}
_GIVEN = f"{__name__}.given"
"""Key of the given flags in the data that click's contexts share."""

STANDARD_OUTPUT = "-"
STANDARD_INPUT = Path("-")
"""Standard input as a file to read. A file named "-" has an absolute path instead."""


def common(*read: str) -> Callable[[Command], Command]:
    """Add --quiet, --verbose and --no-color, which every command accepts, after or before its name.

    Args:
        read: those of `quiet`, `verbose` and `no_color` that the command uses; the others have no effect on it.
    """

    def decorated(command: Command) -> Command:
        for name, (flags, text) in _FLAGS_AND_HELP.items():
            option = click.option(
                *flags, is_flag=True, help=text, callback=_given_here_or_before, expose_value=name in read
            )
            command = option(command)
        return command

    return decorated


def _given_here_or_before(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Return whether a flag was given here or before the command's name.

    Raises:
        UsageError: both --quiet and --verbose were given.
    """
    name = str(parameter.name)
    is_given = value or bool(ctx.find_root().params.get(name))
    given: set[str] = ctx.meta.setdefault(_GIVEN, set())
    given.update({name} if is_given else ())
    if given >= _OPPOSED:
        raise click.UsageError("--quiet and --verbose exclude each other")
    return is_given


def say(message: str) -> None:
    """Print a line on standard error, with control characters replaced: names from reports are untrusted."""
    echo(printable(message), err=True)


def wants_color(*, no_color: bool) -> bool | None:
    """Return False if the user refuses colour, None to let the terminal decide."""
    return False if no_color or os.environ.get("NO_COLOR") else None


def gpus_begun(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the GPUs whose names start with a word, for completion in a shell."""
    from ncuroof.roofline import load_profiles  # noqa: PLC0415  only where a shell asks

    return [profile.id for profile in load_profiles() if profile.id.startswith(begun)]


def keep_inputs(outputs: Iterable[str | Path | None], inputs: Iterable[Path]) -> None:
    """Refuse outputs that are inputs: the same file, even through a link, the counts of a report, or a file in an input folder.

    Raises:
        OutputError: an output is an input; nothing has been written.
    """
    from ncuroof.sidecars.counts import counts_path  # noqa: PLC0415  --help and usage errors need no file

    read = [path for named in inputs if named.name for path in (named, counts_path(named))]
    for output in (Path(name) for name in outputs if name not in (None, STANDARD_OUTPUT)):
        if any(_is_same_or_within(output, path) for path in read):
            raise OutputError(
                f"{output}: is an input of this command and would be overwritten",
                hint="choose another name; --force never overwrites an input",
            )


def _is_same_or_within(output: Path, path: Path) -> bool:
    try:
        if path.is_dir():
            return output.exists() and path.resolve() in output.resolve().parents
        return output.samefile(path)
    except (OSError, ValueError):  # a file does not exist, or is not a valid path
        return False


def either(patterns: Sequence[str]) -> str | None:
    """Return a regular expression that matches if any of several does; None if there are none."""
    return patterns[0] if len(patterns) == 1 else "|".join(f"(?:{each})" for each in patterns) or None


class FileToRead(click.Path):
    """A path to read. Not checked here; the reader reports errors."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path: STANDARD_INPUT for "-", and an absolute path for a file of that name, such as "./-"."""
        path = super().convert(_not_empty(self, value, param, ctx), param, ctx)
        return path.absolute() if path == STANDARD_INPUT and str(value) != str(STANDARD_INPUT) else path


class Location(click.types.StringParamType):
    """A path, pattern or URL, unchanged."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        return _not_empty(self, value, param, ctx)


class FileToWrite(click.Path):
    """A path of a file to write, or the string "-" for standard output."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or STANDARD_OUTPUT.

        Raises:
            OutputError: the value ends in a slash.
        """
        if _names_folder(value):
            raise OutputError(
                f"{value}: expected a file, found a folder's name", hint=f"name a file in it: {value}NAME"
            )
        return value if value == STANDARD_OUTPUT else super().convert(_not_empty(self, value, param, ctx), param, ctx)


class FileOrFolder(click.Path):
    """A path of a file to write, or of an existing folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            OutputError: the value ends in a slash, and there is no such folder.
        """
        if _names_folder(value) and not Path(value).is_dir():
            raise OutputError(f"{value}: no such folder", hint=f"create it: mkdir -p {value}")
        return super().convert(_not_empty(self, value, param, ctx), param, ctx)


def _names_folder(value: Any) -> bool:
    return str(value).endswith(("/", os.sep))


def _not_empty(kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    """Return the value. Refuse an empty one, such as an unset variable in quotes: pathlib would take it for this folder."""
    if str(value) == "":
        kind.fail("expected a path, found an empty one", param, ctx)
    return value
