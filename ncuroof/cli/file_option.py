"""Parameter types for files to write, which respect what pathlib would lose: the slash in "out/", and "./-" for a file "-"."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ncuroof.errors import OutputError

STANDARD_OUTPUT = "-"


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
        return value if value == STANDARD_OUTPUT else super().convert(value, param, ctx)


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
        return super().convert(value, param, ctx)


def _names_folder(value: Any) -> bool:
    return str(value).endswith(("/", os.sep))
