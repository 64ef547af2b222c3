"""`Reports`: reports that were read and are ready to be analysed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ncuroof.analysis import Analysis, PathLike, names_in_short
from ncuroof.collect.calibration import Calibration
from ncuroof.collect.counts import Counts
from ncuroof.diagnosis import diagnose, summarise, unit_weights, weigh
from ncuroof.errors import ArgumentError, CountsError
from ncuroof.ingest import RawReport
from ncuroof.metrics import measure
from ncuroof.roofline import roofline, sheet_dram_bandwidth


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
        from ncuroof.collect.traces.read import read_trace  # noqa: PLC0415  most reports have no trace

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
            calibrations: measured peaks of one or several GPUs, from `ncuroof.collect.calibration.read_calibration`; they become
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
        diagnosis = diagnose(measurements, placed, weights)
        return Analysis(
            reports=self.raw,
            measurements=measurements,
            roofline_tables=placed,
            diagnosis=diagnosis,
            summary=summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights),
            weights=weights,
            weighting=weighting,
        )
