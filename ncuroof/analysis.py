"""The chain from reports to an analysis, and the verbs on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import polars as pl

from ncuroof.collect.calibration import Calibration
from ncuroof.collect.counts import Counts
from ncuroof.diagnosis import (
    Diagnosis,
    Summary,
    Weighting,
    break_down,
    diagnose,
    group_launches,
    kernel_table,
    rank_actions,
    summarise,
    total_work,
    weigh,
)
from ncuroof.errors import ArgumentError, CountsError, MissingExtraError, WhatIfError
from ncuroof.ingest import RawReport
from ncuroof.metrics import Measurements, measure
from ncuroof.roofline import Roofline, roofline, sheet_dram_bandwidth

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from ncuroof.compare import Side
    from ncuroof.expected import Expected

PathLike = Union[str, "os.PathLike[str]"]

_MOST_NAMES = 3
"""Reports that a representation names."""


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Reports that were read and not yet analysed; each is equal to itself alone.

    Attributes:
        raw: one per file, in the order given, each content once.
        counts: by report, what a first run counted, or None; empty where nothing was. Profilers leave long names mangled: they are
            demangled as the report demangles them.
        repeated: files left out because an earlier one has the same content, and that one: nothing counts double.
    """

    raw: tuple[RawReport, ...]
    repeated: tuple[tuple[str, str], ...] = ()
    counts: tuple[Counts | None, ...] = ()

    def weighted_by(self, *traces: PathLike) -> Reports:
        """Return the reports with the counts of traces (`read_trace`), one for each report, in place of those beside them.

        Raises:
            CountsError: a trace cannot be read, is none, or holds no kernel; or there is not one for each report.
        """
        from ncuroof.collect.traces.read import read_trace  # noqa: PLC0415  most reports have no trace

        if len(traces) != len(self.raw):
            found = f"{len(traces)} for {len(self.raw)}"
            raise CountsError(f"a trace for each report was wanted: {found}", hint="name them in the reports' order")
        return replace(self, counts=tuple(read_trace(Path(trace)) for trace in traces))

    def __repr__(self) -> str:
        return f"<Reports: {_named(self.raw)}; {sum(report.workloads.height for report in self.raw)} kernels>"

    def analyse(self, calibrations: Calibration | Sequence[Calibration] = ()) -> Analysis:
        """Return the analysis of all workloads of all reports together.

        Args:
            calibrations: what one or several GPUs were seen to reach (`read_calibration`): roofs beside those of counters and data
                sheets.

        Raises:
            ArgumentError: something else than calibrations is given.
        """
        reached = list(calibrations) if isinstance(calibrations, Iterable) else [calibrations]
        if wrong := [type(each).__name__ for each in reached if not isinstance(each, Calibration)]:
            raise ArgumentError(f"a calibration was wanted, found {wrong[0]}", hint="pass read_calibration(path)")
        counts = [each and each.renamed(report.demangled) for report, each in zip(self.raw, self.counts, strict=False)]
        measurements = measure(self.raw, sheet_bandwidth=sheet_dram_bandwidth, counts=counts)
        placed = roofline(measurements, reached)
        weighting = weigh(measurements.kernels, counts)
        weights = None if weighting is None else weighting.weights
        diagnosis = diagnose(measurements, placed, weights=weights)
        return Analysis(
            reports=self.raw,
            measurements=measurements,
            roofline_tables=placed,
            diagnosis=diagnosis,
            summary=summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights),
            weighting=weighting,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """What is known of a run: measurements, roofline and diagnosis of every kernel.

    Equal to itself alone; `ncuroof.compare` tells what is different. Pickles and copies are whole: processes can return analyses.

    Attributes:
        reports: what was read.
        measurements: canonical quantities, work, bandwidth, devices.
        roofline_tables: points, ceilings, bounds.
        diagnosis: verdicts, paths, findings, what is missing.
        summary: sums over the run.
        weighting: for how much each recorded launch stands in sums; None where each stands for itself.
    """

    reports: tuple[RawReport, ...]
    measurements: Measurements
    roofline_tables: Roofline
    diagnosis: Diagnosis
    summary: Summary
    weighting: Weighting | None = None

    def __repr__(self) -> str:
        from ncuroof.present.format import duration  # noqa: PLC0415  presenting is not needed to analyse

        time = duration(self.summary.duration_ns)
        return f"<Analysis: {_named(self.reports)}; {self.summary.n_kernels} kernels, {time} GPU time>"

    def _repr_html_(self) -> str:
        """Return the summary of the terminal, for notebooks."""
        from ncuroof.present.texts.terminal import to_text  # noqa: PLC0415  presenting is not needed to analyse

        return f"<pre>{escape(to_text(self))}</pre>"

    @property
    def kernels(self) -> pl.DataFrame:
        """One row per workload: KERNELS with all quantities, BOUNDS, VERDICTS, WEIGHTS, and the long tables spread into columns.

        The spread columns are `work.<precision>.flop`, `work.<precision>.frac`, `bandwidth.<level>.bytes_per_s`,
        `bandwidth.<level>.frac`, `intensity.<level>` in flop/byte of the dominant precision, and
        `instruction_intensity.<level>` in warp instructions per transaction. Every report has the same columns (docs/columns.md),
        null where it does not know: `polars.concat` puts tables below each other.
        """
        return kernel_table(self.measurements, self.roofline_tables, self.diagnosis, self._weights)

    @property
    def points(self) -> pl.DataFrame:
        """POINTS: one row per kernel, memory level and precision."""
        return self.roofline_tables.points

    @property
    def instruction_points(self) -> pl.DataFrame:
        """INSTRUCTION_POINTS: one row per kernel and memory level."""
        return self.roofline_tables.instruction_points

    @property
    def findings(self) -> pl.DataFrame:
        """FINDINGS: one row per kernel and cause."""
        return self.diagnosis.findings

    @property
    def groups(self) -> pl.DataFrame:
        """GROUPS: equal launches together, the most recoverable time first."""
        bounds = self.roofline_tables.bounds
        return group_launches(self.measurements.kernels, bounds, self.diagnosis.verdicts, self._weights)

    @property
    def breakdowns(self) -> pl.DataFrame:
        """BREAKDOWNS: time by family and by NVTX range."""
        return break_down(self.measurements.kernels, self.roofline_tables.bounds, self._weights)

    @property
    def totals(self) -> pl.DataFrame:
        """TOTALS: work, rate and DRAM intensity of the whole run in each precision."""
        return total_work(self.measurements.kernels, self.roofline_tables.work, self.diagnosis.verdicts, self._weights)

    @property
    def expected(self) -> Expected:
        """What PyTorch's operators asked for against what their kernels did; empty where no NVTX range names operators."""
        from ncuroof.expected import expect  # noqa: PLC0415  most reports name no operators

        kernels, placed = self.kernels, self.roofline_tables
        return expect(kernels, placed.work, placed.ceilings)

    @property
    def actions(self) -> pl.DataFrame:
        """ACTIONS: what to do, by what it gives over the whole run."""
        return rank_actions(self.diagnosis.findings, self.summary.duration_ns, self._weights)

    @property
    def _weights(self) -> pl.DataFrame | None:
        return None if self.weighting is None else self.weighting.weights

    def side(self, label: str | None = None) -> Side:
        """Return the run as one side of a comparison; `label` is what to call it, by default its reports' names."""
        from ncuroof.compare import run_side  # noqa: PLC0415  comparing is not needed to analyse

        return run_side(
            label or ", ".join(report.file for report in self.reports),
            reports=self.reports,
            measurements=self.measurements,
            kernels=self.kernels,
            findings=self.diagnosis.findings,
            n_failed=self.summary.n_failed,
            weighting=self.weighting,
        )

    def whatif(self, *targets: str, changes: str | Sequence[str] = (), only: str | None = None) -> pl.DataFrame:
        """Return what each launch would take on other GPUs, or after changes: PROJECTION, all launches for each target.

        Args:
            targets: GPUs, each once, perhaps with an SM clock ("b200", "h100-sxm@1500MHz", "same@1.98GHz"); by default the same.
            changes: one or several, as `ncuroof whatif --change` takes them ("bytes:0.5", "batch:4", "dtype:bf16").
            only: regular expression of the names that the changes concern.

        Raises:
            ArgumentError: a target or change is no text.
            UnknownNameError: there is no such GPU.
            WhatIfError: a change or target is none, two changes are of the type, `only` names kernels of none, or no kernel has
                such a name.
        """
        from ncuroof.whatif import (  # noqa: PLC0415  projecting is not needed to analyse
            busy_times,
            change,
            parse_changes,
            parse_targets,
            project,
            recorded_dram,
            with_recorded_dram,
        )

        if only is not None and not changes:
            raise WhatIfError(
                f"only={only!r} names the kernels that changes concern, and there is none",
                hint="pass changes=['bytes:0.5']",
            )
        placed = self.roofline_tables
        profiles = with_recorded_dram(placed.profiles, recorded_dram(self.kernels))
        busy = busy_times(self.kernels, placed.work)
        is_one = isinstance(changes, str) or not isinstance(changes, Iterable)
        texts: Any = [changes] if is_one else changes
        for wanted in parse_changes(texts):
            busy = change(busy, wanted, only, profiles)
        return project(busy, profiles, parse_targets(targets))

    def to_dict(self) -> dict[str, Any]:
        """Return the document `ncuroof.analysis/1`."""
        from ncuroof.present.documents.analysis import document  # noqa: PLC0415  presenting is not needed to analyse

        return document(self)

    def roofline(self, *, device: int = 0, view: str = "flop", level: str | None = None) -> Figure:
        """Return the roofline chart of a GPU as a plotly figure, which a notebook shows by itself.

        Each dot is a group of equal launches: colour and symbol tell its verdict, the area its time. Axes are logarithmic:
        FLOP/s over FLOP/byte, or warp instructions per second over warp instructions per transaction. Where nothing can be
        drawn, the figure says why.

        Static pictures need kaleido, which `ncuroof[plot]` brings, and Chrome or Chromium:

            analysis.roofline().write_image("roofline.svg")  # also .pdf and .png

        Args:
            device: index of the GPU in the document's `devices`.
            view: "flop", or "instruction" for the instruction roofline.
            level: memory level of the dots ("dram", "l2", "l1", "shared"); by default the first of them that has dots.

        Raises:
            MissingExtraError: plotly is not installed.
            UnknownNameError: no such GPU, view or level.
        """
        from ncuroof.present.charts.plotly_figure import roofline_figure  # noqa: PLC0415  presenting is not needed to analyse

        return roofline_figure(self.to_dict(), device=device, view=view, level=level)

    def to_pandas(self) -> pd.DataFrame:
        """Return `kernels` as a pandas table.

        Raises:
            MissingExtraError: pandas or pyarrow is not installed.
        """
        try:
            return self.kernels.to_pandas()
        except ImportError as error:
            raise MissingExtraError(
                f"to_pandas() needs pandas and pyarrow: {error}", hint="pip install 'ncuroof[pandas]'"
            ) from error

    def to_html(self, path: PathLike, *, force: bool = False) -> Path:
        """Write the page to `path` and return it; see `write`."""
        return self.write(path, "html", force=force)

    def write(self, path: PathLike, form: str | None = None, *, force: bool = False) -> Path:
        """Write the analysis to `path` and return it.

        Args:
            path: its suffix names the format: .html, .json, .md, .csv, .parquet or .txt.
            form: the format, where the suffix does not say: html, json, md, csv, parquet or term.
            force: replace a file that ncuroof did not write; never one of the reports that were read.

        Raises:
            OutputFormatError: no format fits.
            OutputError: the file cannot be written, or holds something that ncuroof did not write; it is left as it was.
        """
        from ncuroof.present import write  # noqa: PLC0415  presenting is not needed to analyse

        return write(self, Path(path), form, force=force)


def _named(reports: Sequence[RawReport]) -> str:
    """Return the names of the first reports, and how many more there are."""
    more = len(reports) - _MOST_NAMES
    return ", ".join(report.file for report in reports[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
