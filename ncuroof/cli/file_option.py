"""Parameter types for paths: they refuse empty ones, and respect what pathlib would lose: "out/", and "./-" for a file "-"."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ncuroof.errors import OutputError

STANDARD_OUTPUT = "-"


class FileToRead(click.Path):
    """A path of a file to read; whether it can be read is found out, and told, by what reads it."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        return super().convert(_not_empty(self, value, param, ctx), param, ctx)


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
    """Return the value; an empty one, such as an unset variable in quotes, is a usage error: pathlib would read it as "here"."""
    if str(value) == "":
        kind.fail("expected a path, found an empty one", param, ctx)
    return value
