"""Where a command's result goes: one rule for all commands with several formats.

A file's suffix sets its format; `--format` sets that of standard output, and of files whose suffix sets none. The result goes to
standard output if no file is named, and for `-o -`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ncuroof.cli.file_option import STANDARD_OUTPUT, FileToWrite
from ncuroof.cli.plain_characters import echo
from ncuroof.cli.standard_output import check_standard_output

_TEXT, _BINARY = "term", "parquet"


@dataclass(frozen=True)
class Outputs:
    """What a user wants written.

    Attributes:
        files: files to write, each with its format.
        printed: format for standard output; None if nothing goes there.
        is_default: neither a file nor a format was named.
        force: replace files that ncuroof did not write.
    """

    files: tuple[tuple[Path, str], ...]
    printed: str | None
    is_default: bool
    force: bool

    @property
    def paths(self) -> list[Path]:
        """The files without their formats."""
        return [path for path, _ in self.files]

    @property
    def forms(self) -> set[str]:
        """All wanted formats."""
        return {form for _, form in self.files} | ({self.printed} if self.printed is not None else set())

    def write(self, render: Callable[[str], str | bytes]) -> None:
        """Write the files and standard output; `render` returns the result in a format.

        Raises:
            OutputError: a file or standard output cannot be written, or a file was not written by ncuroof.
        """
        from ncuroof.present.output import write_whole  # noqa: PLC0415  loads polars, which --help does not need

        for path, form in self.files:
            write_whole(path, _encoded(render(form)), force=self.force)
        self.show(render)

    def show(self, render: Callable[[str], str | bytes], show_text: Callable[[], object] | None = None) -> None:
        """Write to standard output, if wanted there: text through `show_text` if given, else what `render` returns.

        Raises:
            OutputError: standard output is closed.
            OutputFormatError: the format is binary, and standard output a terminal.
        """
        if self.printed is None:
            return
        check_standard_output("Parquet" if self.printed == _BINARY else None, hint="name a file with -o FILE")
        if self.printed != _TEXT:
            echo(_encoded(render(self.printed)), nl=False)
        elif show_text is not None:
            show_text()
        else:
            echo(render(_TEXT), nl=False)


def _encoded(result: str | bytes) -> bytes:
    return result.encode() if isinstance(result, str) else result


def written_as(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add -o, --format and --force to a command that writes these formats; it gets an `Outputs` as its first argument."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "-o",
            "--output",
            "names",
            multiple=True,
            type=FileToWrite(),
            metavar="FILE",
            help="File to write; its suffix sets the format. '-' is standard output. Repeatable.",
        )
        @click.option(
            "--format",
            "form",
            type=click.Choice(formats),
            help="Format of standard output, and of files whose suffix sets none.",
        )
        @click.option("--force", is_flag=True, help="Overwrite files that ncuroof did not write.")
        @functools.wraps(command)
        def with_outputs(names: tuple[Path | str, ...], form: str | None, *, force: bool, **given: Any) -> Any:
            return command(_chosen(names, form, formats, force=force), **given)

        return with_outputs

    return decorated


def _chosen(names: Sequence[Path | str], form: str | None, formats: Sequence[str], *, force: bool) -> Outputs:
    """Return the outputs that -o and --format ask for.

    Raises:
        OutputFormatError: a suffix stands for no format, or for one that the command does not write.
        UsageError: --format applies to no output.
    """
    from ncuroof.present.output_formats import format_of  # noqa: PLC0415  loads polars, which --help does not need

    files = tuple((path, format_of(path, formats, form)) for path in names if isinstance(path, Path))
    is_printed = not names or STANDARD_OUTPUT in names
    if form is not None and not is_printed and form not in {each for _, each in files}:
        raise click.UsageError(
            f"--format {form} applies to no output: each file's suffix sets another; add -o - for standard output"
        )
    return Outputs(files, (form or _TEXT) if is_printed else None, not names and form is None, force)
