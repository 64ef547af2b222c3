"""A file to write, as an option or argument: what ends in a slash is a folder, and pathlib does not keep the slash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ncuroof.errors import OutputError


class FileToWrite(click.Path):
    """Path of a file to write, or of a folder that is there."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        Raises:
            OutputError: it ends in a slash, and no folder is there.
        """
        if str(value).endswith(("/", os.sep)) and not Path(value).is_dir():
            raise OutputError(f"{value}: a folder was wanted, none is there", hint=f"mkdir -p {value}")
        return super().convert(value, param, ctx)
