"""`ncuroof report`: reads reports and produces a summary and a page, or other formats."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ncuroof.cli.inputs import files_of
from ncuroof.cli.options import STANDARD_INPUT, FileToRead, common, either, keep_inputs, say, wants_color
from ncuroof.cli.outputs import Outputs, open_page, opened, page_to_open, show_summary, warn, write_page, written_as
from ncuroof.cli.streams import echo, files_hold_result, reading_progress
from ncuroof.formatting import counted, printable
from ncuroof.present import render, write
from ncuroof.present.formats import WRITERS
from ncuroof.regular_files import require_existing

if TYPE_CHECKING:
    import polars as pl

    from ncuroof.analysis import Analysis
    from ncuroof.ingest import ReaderName
    from ncuroof.present.texts.terminal import TerminalOptions
    from ncuroof.reading import Reports
    from ncuroof.sidecars.calibration import Calibration


READERS = ("auto", "native", "nvidia")
"""Names of `ncuroof.ingest`, repeated because its import loads polars, which --help does not need."""

_N_KERNELS = 10
"""Number of kernels in the table if --kernels is given without a number."""
_ALL = "all"


class _Report(click.Command):
    """Accepts --kernels with and without a number: the word after it is its value only if that word is a number."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the default number added to --kernels if it has none."""
        end = args.index("--") if "--" in args else len(args)
        followers = [*args[1:], ""][: len(args)]
        with_number = [
            f"{word}={_N_KERNELS}" if place < end and word == "--kernels" and not _is_count(follower) else word
            for place, (word, follower) in enumerate(zip(args, followers, strict=True))
        ]
        return super().parse_args(ctx, with_number)


def _is_count(word: str) -> bool:
    return word == _ALL or word.isdecimal()


class _Count(click.ParamType[Any]):
    """A number of kernels, or `all`."""

    name = f"N|{_ALL}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or "all"."""
        if value == _ALL:
            return _ALL
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"expected a number from 1 or '{_ALL}', found {value!r}", param, ctx)
        return int(value)


@click.command(cls=_Report)
@click.argument("reports", nargs=-1, required=True, type=FileToRead())
@written_as(*WRITERS["analysis"])
@click.option(
    "-k",
    "--kernel",
    "chosen",
    multiple=True,
    metavar="NUMBER|REGEX",
    help="Show the kernel with this number in the table of --kernels, or kernels whose demangled name matches anywhere. "
    "Repeatable. A single kernel is also shown on its roofline.",
)
@click.option(
    "--kernels",
    "n_kernels",
    type=_Count(),
    metavar="[N|all]",
    help=f"Show the kernels as a table: the {_N_KERNELS}, N or all with the most time above the roofline.",
)
@click.option(
    "--chart",
    "is_chart",
    is_flag=True,
    help="Show the roofline in characters: a letter per group of launches, by verdict.",
)
@click.option(
    "--nvtx",
    "ranges",
    multiple=True,
    metavar="REGEX",
    help="Show launches inside NVTX ranges whose names, joined by / from the outermost, match anywhere. Repeatable.",
)
@click.option(
    "--launch-skip", "skip", type=click.IntRange(min=0), default=0, metavar="N", help="Skip N matching launches first."
)
@click.option("--launch-count", "count", type=click.IntRange(min=1), metavar="N", help="Show at most N of them.")
@click.option(
    "--calibration",
    "calibrations",
    multiple=True,
    type=FileToRead(),
    help="Roofs measured by ncuroof calibrate; repeat for more GPUs.",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=FileToRead(),
    help="Trace of the same program from PyTorch's profiler or Nsight Systems: weights sums by how often and how long each "
    "kernel ran in it, and shows how long the GPU is idle. One per report.",
)
@click.option(
    "--reader",
    type=click.Choice(READERS),
    default="auto",
    show_default=True,
    help="Reader to use: ncuroof's own (native), NVIDIA's Python module (nvidia), or native with nvidia as fallback (auto).",
)
@opened
@common("quiet", "verbose", "no_color")
def report(  # noqa: PLR0913  an argument per option
    outputs: Outputs,
    *,
    reports: tuple[Path, ...],
    chosen: tuple[str, ...],
    n_kernels: int | str | None,
    is_chart: bool,
    ranges: tuple[str, ...],
    skip: int,
    count: int | None,
    calibrations: tuple[Path, ...],
    traces: tuple[Path, ...],
    reader: ReaderName,
    is_opened: bool,
    quiet: bool,
    verbose: bool,
    no_color: bool,
) -> None:
    """Read REPORTS, diagnose every kernel, and write the results.

    REPORTS are .ncu-rep files, what ncu prints of them (--page raw --csv, or a log), folders for every report below them, or - for
    standard input. Without options: a summary on the terminal (-v: with every detail), and an HTML page beside the
    first report. With -k, --nvtx or --launch-…: the same for some launches, each judged as in the whole run.
    """
    require_existing(reports)
    from ncuroof import read  # noqa: PLC0415  loads polars, which --help and usage errors do not need
    from ncuroof.ingest import available_cores  # noqa: PLC0415
    from ncuroof.present.output import page_beside  # noqa: PLC0415
    from ncuroof.present.texts.terminal import TerminalOptions  # noqa: PLC0415

    files, nvtx = files_of(reports), either(ranges)
    is_part = bool(chosen) or nvtx is not None or skip > 0 or count is not None
    page = None if reports[0] == STANDARD_INPUT else page_beside(files[0], is_part=is_part)
    _check(outputs, page, [*files, *calibrations, *traces])
    to_open = page_to_open(outputs, page) if is_opened else None
    with reading_progress(quiet=quiet) as progress:
        found = read(files, reader=reader, n_processes=available_cores(), on_progress=progress)
    if traces:
        found = found.weighted_by(*traces)
    measured = _read_calibrations(calibrations)
    analysis = found.analyse(measured)
    if is_part:
        analysis = analysis.select(kernel=numbered(chosen, analysis), nvtx=nvtx, skip=skip, count=count)
    view = TerminalOptions(
        is_verbose=verbose, is_table=n_kernels is not None, n_kernels=n_kernels if isinstance(n_kernels, int) else None
    )
    if not quiet:
        warn(found, analysis)
        _warn_of_unused(calibrations, measured, analysis.measurements.devices)
        _warn_without_lines(analysis, outputs)
    if verbose:
        _say_what_was_read(found, analysis)
    show = partial(_show, analysis, view, no_color=no_color, is_chart=is_chart)
    if outputs.is_default:
        with files_hold_result():
            show()
            if page is not None:
                write_page(analysis, page, of=files[0], force=outputs.force)
    for path, form in outputs.files:
        write(analysis, path, form, force=outputs.force)
    if not outputs.is_default:
        outputs.show(lambda form: render(analysis, form), show_text=show)
    if to_open is not None:
        open_page(to_open)


def _check(outputs: Outputs, page: Path | None, inputs: Sequence[Path]) -> None:
    """Check that no output is an input, and that named files can be written. The page is checked when it is written."""
    outputs.check(inputs)
    keep_inputs([page] if outputs.is_default else [], inputs)


def _warn_without_lines(analysis: Analysis, outputs: Outputs) -> None:
    if "sarif" in outputs.forms and analysis.measurements.lines.is_empty():
        say("warning: no source line is known, so the SARIF log is empty: record with ncuroof profile --lines")


def _say_what_was_read(found: Reports, analysis: Analysis) -> None:
    for line in (f"{raw.file}: {remark}" for raw in found.raw for remark in raw.remarks):
        say(line)
    kernels, reports_read = counted(analysis.summary.n_kernels, "kernel"), counted(len(found.raw), "report")
    say(f"read {kernels} from {reports_read}")


def _show(analysis: Analysis, view: TerminalOptions, *, no_color: bool, is_chart: bool) -> None:
    """Print the summary; or, if asked for, the chart instead, with the table below it."""
    if is_chart:
        from ncuroof.present.charts.characters import print_chart  # noqa: PLC0415  most runs show no chart

        print_chart(analysis, color=wants_color(no_color=no_color))
        if view.is_table:
            echo("")
    if view.is_table or not is_chart:
        show_summary(analysis, no_color=no_color, view=view)


def numbered(chosen: Sequence[str], analysis: Analysis) -> list[str | int] | None:
    """Return the choices of -k: an integer for digits that number a launch, else the expression; None without choices."""
    launches = set(analysis.measurements.kernels["id"])
    return [int(each) if each.isdecimal() and int(each) in launches else each for each in chosen] or None


def _warn_of_unused(paths: Sequence[Path], calibrations: Sequence[Calibration], devices: pl.DataFrame) -> None:
    """Warn about calibrations that are not used: their GPU is in no report, or an earlier file is of the same GPU."""
    from ncuroof.roofline.roof_shares import by_device  # noqa: PLC0415  as above

    used = [each for each in by_device(calibrations, devices).values() if each is not None]
    for path, calibration in zip(paths, calibrations, strict=True):
        if any(calibration is each for each in used):
            continue
        fits = any(by_device([calibration], devices).values())
        why = "for which an earlier file has roofs" if fits else "which is in no report"
        gpu = f"{printable(calibration.gpu)} ({calibration.sm_count} SMs)"
        say(f"warning: {printable(path.name)} was measured on {gpu}, {why}: its roofs are not used")


def _read_calibrations(paths: Sequence[Path]) -> list[Calibration]:
    if not paths:
        return []
    from ncuroof.sidecars.calibration import read_calibration  # noqa: PLC0415  most runs have no calibration

    return [read_calibration(path) for path in paths]
