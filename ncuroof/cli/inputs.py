"""Find the files that a command reads: named files, the reports below named folders, and standard input.

Standard input is copied to a temporary file, because a report is read in parts and twice. The copy is removed when the command
ends.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ncuroof.cli.options import STANDARD_INPUT
from ncuroof.errors import ReportAccessError, ReportEmptyError, ReportNotFoundError
from ncuroof.ncu.file_names import REPORT_SUFFIXES
from ncuroof.temporary_files import temporary_folder

_NAME = "standard input"
"""Name of the copy, which the output shows as the name of the report."""


def files_of(named: Sequence[Path]) -> list[Path]:
    """Return the files to read: named files, every report below a named folder, and a copy of standard input for `-`.

    Raises:
        UsageError: standard input is named twice.
        ReportNotFoundError: there is no report below a folder.
        ReportAccessError: standard input is closed, or a terminal.
        ReportEmptyError: standard input is empty.
    """
    return [file for each in with_standard_input(named) for file in (_reports_below(each) if each.is_dir() else [each])]


def with_standard_input(named: Sequence[Path]) -> list[Path]:
    """Return the named files, with a copy of standard input in place of `-`. See `files_of`, which also accepts folders."""
    if named.count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input can be read only once: give a single -")
    return [_copied() if each == STANDARD_INPUT else each for each in named]


def _reports_below(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*") if path.suffix in REPORT_SUFFIXES)
    if not found:
        raise ReportNotFoundError(
            f"{folder}: expected reports in this folder or below it, found none",
            hint=f"reports end in {' or '.join(REPORT_SUFFIXES)}; name other files one by one",
        )
    return found


def _copied() -> Path:
    """Copy standard input to a file that is removed when the command ends."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ReportAccessError(
            "-: expected a report on standard input, found none",
            hint="pipe what ncu prints into it: ncu --import A.ncu-rep --page raw --csv | ncuroof report -",
        )
    folder = click.get_current_context().with_resource(temporary_folder())
    path = folder / _NAME
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not path.stat().st_size:
        raise ReportEmptyError(
            "-: standard input is empty", hint="the command before the pipe printed nothing on standard output"
        )
    return path
