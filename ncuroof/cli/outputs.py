"""Write the result of a command, by the same rule for all commands, and show an analysis.

A file's suffix sets its format; `--format` sets that of standard output, and of files whose suffix sets none. The result goes to
standard output if no file is named, and for `-o -`.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ncuroof.cli.options import STANDARD_OUTPUT, FileToWrite, keep_inputs, say, wants_color
from ncuroof.cli.streams import check_standard_output, echo
from ncuroof.errors import OutputError
from ncuroof.formatting import inert, printable
from ncuroof.present.formats import FORMATS, PAGE, TEXT, format_of, write
from ncuroof.present.output import check_place, write_whole

if TYPE_CHECKING:
    from ncuroof.analysis import Analysis
    from ncuroof.present.texts.terminal import TerminalOptions
    from ncuroof.reading import Reports


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

    def check(self, inputs: Iterable[Path]) -> None:
        """Check, before any work, that each output file can be written and is not an input.

        Raises:
            OutputError: a file cannot be written, is an input, or was not written by ncuroof.
        """
        keep_inputs(self.paths, inputs)
        for path in self.paths:
            check_place(path, force=self.force)

    def write(self, render: Callable[[str], str | bytes]) -> None:
        """Write the files and standard output; `render` returns the result in a format.

        Raises:
            OutputError: a file or standard output cannot be written, or a file was not written by ncuroof.
        """
        for path, form in self.files:
            write_whole(path, _encoded(render(form), form), force=self.force)
        self.show(render)

    def show(self, render: Callable[[str], str | bytes], show_text: Callable[[], object] | None = None) -> None:
        """Write to standard output, if wanted there: text through `show_text` if given, else what `render` returns.

        Raises:
            OutputError: standard output is closed.
            OutputFormatError: the format is binary, and standard output a terminal.
        """
        if self.printed is None:
            return
        check_standard_output(FORMATS[self.printed].binary or None, hint="name a file with -o FILE")
        if self.printed != TEXT:
            echo(_encoded(render(self.printed), self.printed), nl=False)
        elif show_text is not None:
            show_text()
        else:
            echo(_encoded(render(TEXT), TEXT).decode(), nl=False)


def _encoded(result: str | bytes, form: str) -> bytes:
    if isinstance(result, bytes):
        return result
    return (inert(result) if form == TEXT else result).encode()


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
            return command(_outputs_of(names, form, formats, force=force), **given)

        return with_outputs

    return decorated


def _outputs_of(names: Sequence[Path | str], form: str | None, formats: Sequence[str], *, force: bool) -> Outputs:
    """Return the outputs that -o and --format ask for.

    Raises:
        OutputFormatError: a suffix stands for no format, or for one that the command does not write.
        UsageError: --format applies to no output.
    """
    files: tuple[tuple[Path, str], ...] = ()
    if named := [path for path in names if isinstance(path, Path)]:
        files = tuple((path, format_of(path, formats, form)) for path in named)
    is_printed = not names or STANDARD_OUTPUT in names
    by_default = TEXT if TEXT in formats else formats[0]
    if form is not None and not is_printed and form not in {each for _, each in files}:
        raise click.UsageError(
            f"--format {form} applies to no output: the suffix of each file sets its format; add -o - for standard output"
        )
    return Outputs(files, (form or by_default) if is_printed else None, not names and form is None, force)


def warn(found: Reports, analysis: Analysis) -> None:
    """Print warnings about the files on standard error: repeated or damaged reports, dropped counters."""
    for repeated, first in found.repeated:
        say(f"warning: {repeated} has the same content as {first}: its kernels are counted once")
    for raw in found.raw:
        if raw.damage is not None:
            say(f"warning: {raw.file} is damaged: {raw.damage}")
        for line in raw.warnings:
            say(f"warning: {raw.file}: {line}")
    for dropped in analysis.measurements.dropped:
        say(f"warning: {dropped}")


def show_summary(analysis: Analysis, *, no_color: bool, view: TerminalOptions | None = None) -> None:
    """Print the summary on standard output: the first screen, or what `view` asks for."""
    from ncuroof.present.texts.terminal import print_summary  # noqa: PLC0415

    print_summary(analysis, color=wants_color(no_color=no_color), view=view)


def write_page(analysis: Analysis, page: Path, *, of: Path, force: bool) -> None:
    """Write the page beside a report and print its path.

    Raises:
        OutputError: the page cannot be written, or would replace a file that ncuroof did not write.
    """
    try:
        write(analysis, page, "html", force=force)
    except OutputError as error:
        raise OutputError(str(error), hint=f"ncuroof report {shlex.quote(str(of))} -o other.html") from error
    echo(f"page: {printable(str(page))}")


opened = click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")


def page_to_open(outputs: Outputs, by_default: Path | None) -> Path:
    """Return the page that --open opens: the one that the command writes.

    Raises:
        UsageError: the command writes no page.
    """
    pages = [by_default] if outputs.is_default else [path for path, form in outputs.files if form == PAGE]
    if not pages or pages[0] is None:
        raise click.UsageError("--open needs a page: name one with -o FILE.html")
    return pages[0]


def open_page(page: Path) -> None:
    """Open a page in the browser, or say where the page is if this machine has no browser."""
    import webbrowser  # noqa: PLC0415  most commands open nothing

    if not (_has_screen() and webbrowser.open(page.resolve().as_uri())):
        say(f"no browser here: copy {printable(str(page))}, which is one file, to a machine that has one")


def _has_screen() -> bool:
    """Return whether there is a screen. Without one, a text browser would open, which cannot show the page."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
