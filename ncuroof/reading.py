"""Entry points that start from files: `read`, the reports that it returns, and `compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncuroof.analysis import Analysis, PathLike, names_in_short
from ncuroof.diagnosis import diagnose, summarise, unit_weights, weigh
from ncuroof.errors import ArgumentError, CountsError, ReportNotFoundError, UnknownNameError
from ncuroof.ingest import READERS, RawReport, ReaderName, open_reports
from ncuroof.metrics import measure, selection
from ncuroof.phases import measure_phases
from ncuroof.roofline import roofline, sheet_dram_bandwidth
from ncuroof.sidecars.calibration import Calibration
from ncuroof.sidecars.counts import Counts, counts_beside

if TYPE_CHECKING:
    from ncuroof.comparison import Comparison, Run

BASELINE_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Reports that were read and are not yet analysed. They are compared by identity.

    Attributes:
        raw: one report per file, in the order given; files with the same content are read once.
        repeated: pairs of a file that was left out and the earlier file with the same content.
        counts: per report, the launch counts of its counting run, or None; empty if no report has counts. Profilers leave long
            kernel names mangled: `analyse` demangles them as the report does.
    """

    raw: tuple[RawReport, ...]
    repeated: tuple[tuple[str, str], ...] = ()
    counts: tuple[Counts | None, ...] = ()

    def weighted_by(self, *traces: PathLike) -> Reports:
        """Return the reports with launch counts from profiler traces, in place of the counts found beside them.

        Each profiled launch then represents all launches of its kernel and shape in the trace.

        Args:
            traces: one per report, in the reports' order: a trace of `torch.profiler` (`export_chrome_trace`, gzip or not), a
                report of Nsight Systems (`.nsys-rep`), or its SQLite export.

        Raises:
            CountsError: a file cannot be read, is not a trace, or contains no kernel; or there is not one trace per report.
        """
        from ncuroof.sidecars.traces.read import read_trace  # noqa: PLC0415  most reports have no trace

        if len(traces) != len(self.raw):
            found = f"{len(traces)} for {len(self.raw)}"
            raise CountsError(
                f"expected a trace for each report, found {found}", hint="name them in the reports' order"
            )
        return replace(self, counts=tuple(read_trace(Path(trace)) for trace in traces))

    def __repr__(self) -> str:
        return f"<Reports: {names_in_short(self.raw)}; {sum(report.workloads.height for report in self.raw)} kernels>"

    def analyse(self, calibrations: Calibration | Sequence[Calibration] = ()) -> Analysis:
        """Return the analysis of all profiled kernels of all reports together.

        Args:
            calibrations: measured peaks of one or several GPUs, from `ncuroof.sidecars.calibration.read_calibration`; they become
                roofs in addition to those of counters and data sheets.

        Raises:
            ArgumentError: an argument is not a calibration.
        """
        reached = list(calibrations) if isinstance(calibrations, Iterable) else [calibrations]
        if wrong := [type(each).__name__ for each in reached if not isinstance(each, Calibration)]:
            raise ArgumentError(f"expected a calibration, found {wrong[0]}", hint="pass read_calibration(path)")
        counts = [each and each.renamed(report.demangled) for report, each in zip(self.raw, self.counts, strict=False)]
        measurements = measure(self.raw, sheet_bandwidth=sheet_dram_bandwidth, counts=counts)
        placed = roofline(measurements, reached)
        weighting = weigh(measurements.kernels, counts)
        weights = unit_weights(measurements.kernels) if weighting is None else weighting.weights
        phased = measure_phases(self.raw, measurements.kernels)
        diagnosis = diagnose(measurements, placed, weights, phased)
        return Analysis(
            reports=self.raw,
            measurements=measurements,
            roofline_tables=placed,
            diagnosis=diagnosis,
            summary=summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights),
            weights=weights,
            weighting=weighting,
        )


def read(
    paths: PathLike | Sequence[PathLike],
    *,
    reader: ReaderName = "auto",
    n_processes: int = 1,
    lines: bool = True,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Reports:
    """Return one or several Nsight Compute reports, read and ready to be analysed.

        analysis = ncuroof.read("run.ncu-rep").analyse()

    Files with the same content are read once. Launch counts beside a report (`run.counts.json` beside `run.ncu-rep`, written by
    `ncuroof profile`) are read with it.

    Args:
        paths: path of a report (.ncu-rep), or of what `ncu` printed of one; or a sequence of paths.
        reader: "native" for ncuroof's own reader, "nvidia" for NVIDIA's Python module (ncu_report), "auto" for the native reader
            with NVIDIA's module for reports that it declines.
        n_processes: largest number of processes that read several large files. Further processes are spawned, so a script that
            asks for them must be importable (`if __name__ == "__main__":`).
        lines: whether to read measurements per source line; without them, findings have no source locations.
        on_progress: called repeatedly with the share of all bytes read so far, 1 at the end.

    Returns:
        The reports, in the order given.

    Raises:
        ReportNotFoundError: no path is given, or a path does not exist or is a directory.
        ReportAccessError: a file cannot be read.
        ReportFormatError: a file is not a report, or nothing in it can be read.
        ReportEmptyError: a report contains no profiled kernel.
        ReaderDeclinedError: the native reader declines a report, and NVIDIA's module is not installed or not to be used.
        MissingExtraError: reader="nvidia", and NVIDIA's module is not installed.
        CountsError: the counts file beside a report is not one that ncuroof writes.
        UnknownNameError: there is no such reader.
        ArgumentError: `paths` contains something other than paths, or `n_processes` is not an integer.
    """
    if reader not in READERS:
        raise UnknownNameError(f"no reader {reader!r}", hint=f"use one of: {', '.join(READERS)}")
    is_one = isinstance(paths, (str, bytes, os.PathLike, IOBase)) or not isinstance(paths, Iterable)
    named: Any = [paths] if is_one else paths
    files: list[PathLike] = list(named)
    if wrong := [type(each).__name__ for each in files if not isinstance(each, (str, os.PathLike))]:
        raise ArgumentError(f"expected the path of a report, found {wrong[0]}", hint="pass a path, or a list of them")
    if not isinstance(n_processes, int) or isinstance(n_processes, bool) or n_processes < 1:
        raise ArgumentError(
            f"expected a number of processes, found {n_processes!r}",
            hint="pass a whole number from 1 on, as n_processes=4",
        )
    if not files:
        raise ReportNotFoundError("expected a report, found none", hint="name one .ncu-rep file or more")
    every = open_reports(
        [Path(file) for file in files],
        selection=selection(lines=lines),
        reader=reader,
        n_processes=n_processes,
        on_progress=on_progress,
    )
    by_content: dict[str, RawReport] = {}
    counts: list[Counts | None] = []
    repeated = []
    for file, report in zip(files, every, strict=True):
        first = by_content.setdefault(report.sha256, report)
        if first is not report:
            repeated.append((report.file, first.file))
            continue
        counts.append(counts_beside(Path(file)) or report.counts)
    return Reports(tuple(by_content.values()), tuple(repeated), tuple(counts))


def compare(
    before: Analysis | PathLike, after: Analysis | PathLike, *, pairs: Iterable[tuple[str, str]] = ()
) -> Comparison:
    """Return the comparison of two runs: which kernels match, how their times changed and why, and what can be compared.

    Args:
        before: an analysis, or the path of a report, or of a baseline (.json) from `ncuroof compare --save-baseline`.
        after: the same for the run after the change.
        pairs: the only kernels to compare, if their names do not say which belong together: pairs of regular expressions,
            `[("naive", "tiled")]`; both runs can be the same.

    Raises:
        NcuroofError: a report cannot be read (see `read`), or a file is not a baseline.
        SelectionError: an expression of `pairs` is malformed, or matches no kernel.
        ArgumentError: an argument is neither an analysis nor a path.
    """
    from ncuroof.comparison import ChosenPair, with_distinct_labels  # noqa: PLC0415  comparing is not needed to read
    from ncuroof.comparison import compare as compared  # noqa: PLC0415

    wanted = [ChosenPair(*pair) for pair in pairs]
    runs = [(read_run(each), None if isinstance(each, Analysis) else Path(each)) for each in (before, after)]
    old, new = with_distinct_labels(runs)
    return replace(compared(old, new, wanted), written=_text)


def _text(comparison: Comparison) -> str:
    """Return a comparison as the terminal shows it."""
    from ncuroof.present.documents.comparison import comparison_document  # noqa: PLC0415  not needed to compare
    from ncuroof.present.texts.comparison import to_text  # noqa: PLC0415

    return to_text(comparison_document(comparison))


def read_run(run: Analysis | PathLike) -> Run:
    """Return a run to compare: of an analysis, or from the path of a report or of a baseline."""
    from ncuroof.comparison import read_baseline  # noqa: PLC0415  comparing is not needed to read

    if isinstance(run, Analysis):
        return run.run()
    if not isinstance(run, (str, os.PathLike)):
        raise ArgumentError(
            f"expected an analysis or the path of a report, found {type(run).__name__}",
            hint="pass a path, or ncuroof.read(path).analyse()",
        )
    path = Path(run)
    return read_baseline(path) if path.suffix == BASELINE_SUFFIX else read(path).analyse().run()
