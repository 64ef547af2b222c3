"""Shows an analysis, for several commands: warnings, the summary, the page beside a report."""

from __future__ import annotations

import shlex
from pathlib import Path

from ncuroof.analysis import Analysis
from ncuroof.cli.options import say, wants_color
from ncuroof.cli.plain_characters import echo
from ncuroof.errors import OutputError
from ncuroof.present import write
from ncuroof.present.output import page_beside
from ncuroof.reading import Reports
from ncuroof.wording import printable


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
        say(f"warning: {dropped}; the counter is left out")


def show_summary(analysis: Analysis, *, no_color: bool) -> None:
    """Print the summary on standard output."""
    from ncuroof.present.texts.terminal import print_summary  # noqa: PLC0415

    print_summary(analysis, color=wants_color(no_color=no_color))


def write_page(analysis: Analysis, report: Path, *, force: bool) -> None:
    """Write the page beside a report and print its path.

    Raises:
        OutputError: the page cannot be written, or would replace a file that ncuroof did not write.
    """
    try:
        page = write(analysis, page_beside(report, is_part=analysis.selection is not None), "html", force=force)
    except OutputError as error:
        raise OutputError(str(error), hint=f"ncuroof report {shlex.quote(str(report))} -o other.html") from error
    echo(f"page: {printable(str(page))}")
