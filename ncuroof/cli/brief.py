"""`ncuroof brief`: say in a few kilobytes what matters in a report, for programs and prompts."""

from __future__ import annotations

from pathlib import Path

import click

from ncuroof.cli.inputs import files_of
from ncuroof.cli.options import FileToRead, common, either
from ncuroof.cli.outputs import Outputs, warn, written_as
from ncuroof.cli.streams import reading_progress
from ncuroof.present.formats import WRITERS
from ncuroof.regular_files import require_existing

BUDGET_BYTES, LEAST_BUDGET_BYTES = 4096, 1024
"""The constants of `ncuroof.present.brief`, repeated because its import loads polars, which --help does not need."""


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT…", type=FileToRead())
@written_as(*WRITERS["brief"])
@click.option(
    "-k",
    "--kernel",
    "wanted",
    multiple=True,
    metavar="ID|REGEX",
    help="Describe one kernel in depth: by its id, or the one that saves most among those whose name matches. Repeat REGEX "
    "for names that match any.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=LEAST_BUDGET_BYTES),
    default=BUDGET_BYTES,
    show_default=True,
    metavar="BYTES",
    help="Most bytes of UTF-8 to write; what does not fit is counted.",
)
@common("quiet")
def brief(outputs: Outputs, *, reports: tuple[Path, ...], wanted: tuple[str, ...], budget: int, quiet: bool) -> None:
    """Say what matters in REPORT in at most 4 KB: what bounds it, which numbers decide, what to do first, what is not known.

    JSON by default, Markdown with --format md. Every number has an id, such as k12.access.load_bytes_per_sector, that
    ncuroof explain understands.
    """
    if len(wanted) > 1 and any(map(str.isdecimal, wanted)):
        raise click.UsageError("-k takes one id, and describes one kernel: run the command once for each")
    require_existing(reports)
    from ncuroof import read  # noqa: PLC0415  loads polars, which --help and usage errors do not need
    from ncuroof.ingest import available_cores  # noqa: PLC0415

    kernel = either(wanted)
    files = files_of(reports)
    outputs.check(files)
    with reading_progress(quiet=quiet) as progress:
        found = read(files, n_processes=available_cores(), on_progress=progress)
    analysis = found.analyse()
    if not quiet:
        warn(found, analysis)
    outputs.write(lambda form: WRITERS["brief"][form](analysis, budget=budget, kernel=kernel))
