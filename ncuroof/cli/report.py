"""`ncuroof report`: reports in, summary and page out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ncuroof import read
from ncuroof.analysis import Analysis
from ncuroof.cli.kept_inputs import keep_inputs
from ncuroof.cli.options import common, say
from ncuroof.cli.progress import reading_progress
from ncuroof.cli.showing import show_summary, warn, write_page
from ncuroof.errors import OutputError, OutputFormatError
from ncuroof.ingest import READERS, ReaderName, available_cores
from ncuroof.present import FORMATS, format_of, render, write
from ncuroof.present.output import page_beside

if TYPE_CHECKING:
    from ncuroof.collect.calibration import Calibration

STANDARD_OUTPUT = "-"


@click.command()
@click.argument("reports", nargs=-1, required=True, type=click.Path(readable=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    help="File to write, its suffix names the format; '-' is standard output. Again for more.",
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Format, where the suffix does not say.")
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Roofs that a GPU was seen to reach, as ncuroof calibrate writes them; again for more GPUs.",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Trace of the same program, of PyTorch's profiler or Nsight Systems: weights sums by how often and how long kernels ran "
    "in it, and says how much the GPU idles; one for each report.",
)
@click.option("--force", is_flag=True, help="Replace a file that ncuroof did not write.")
@click.option(
    "--reader",
    type=click.Choice(READERS),
    default="auto",
    show_default=True,
    help="What reads the reports: ncuroof itself (native), NVIDIA's module (nvidia), or ncuroof, and the module where it declines.",
)
@common
def report(  # noqa: PLR0913  an argument per option
    *,
    reports: tuple[Path, ...],
    outputs: tuple[str, ...],
    form: str | None,
    calibrations: tuple[Path, ...],
    traces: tuple[Path, ...],
    force: bool,
    reader: ReaderName,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> None:
    """Read REPORTS (.ncu-rep, or what ncu --page raw --csv prints), diagnose every kernel, and write what was found.

    Without options: a summary on the terminal, and a page beside the first report.
    """
    form_by_output = {each: form or format_of(Path(each)) for each in outputs if each != STANDARD_OUTPUT}
    with reading_progress(quiet=quiet) as progress:
        found = read(reports, reader=reader, n_processes=available_cores(), on_progress=progress)
    keep_inputs([*outputs] or [page_beside(reports[0])], [*reports, *calibrations, *traces])
    if traces:
        found = found.weighted_by(*traces)
    analysis = found.analyse(_read_calibrations(calibrations))
    if not quiet:
        warn(found, analysis)
    if verbose:
        for line in (f"{raw.file}: {remark}" for raw in found.raw for remark in raw.remarks):
            say(line)
        say(f"read {analysis.summary.n_kernels} kernels of {len(found.raw)} reports")
    if not outputs and form is None:
        show_summary(analysis, no_color=no_color)
        write_page(analysis, reports[0], force=force)
    elif not outputs or STANDARD_OUTPUT in outputs:
        _to_standard_output(analysis, form or "term", no_color=no_color)
    for output, its_form in form_by_output.items():
        write(analysis, Path(output), its_form, force=force)


def _read_calibrations(paths: Sequence[Path]) -> list[Calibration]:
    if not paths:
        return []
    from ncuroof.collect.calibration import read_calibration  # noqa: PLC0415  most runs have no calibration

    return [read_calibration(path) for path in paths]


def _to_standard_output(analysis: Analysis, form: str, *, no_color: bool) -> None:
    if sys.stdout is None:
        raise OutputError("standard output is closed", hint="name a file with -o FILE")
    if form == "term":
        show_summary(analysis, no_color=no_color)
        return
    if form == "parquet" and sys.stdout.isatty():
        raise OutputFormatError("Parquet is binary and would garble the terminal", hint="name a file with -o FILE")
    sys.stdout.buffer.write(render(analysis, form))
    sys.stdout.buffer.flush()
