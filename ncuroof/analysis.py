"""`Analysis`: measurements, roofline and diagnosis of every kernel, and methods to select, compare and write them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import polars as pl

from ncuroof.diagnosis import (
    Diagnosis,
    Selection,
    Summary,
    Weighting,
    break_down,
    group_launches,
    kernel_table,
    of_part,
    rank_actions,
    restricted,
    select,
    summarise,
    total_work,
)
from ncuroof.errors import MissingExtraError, SelectionError, WhatIfError
from ncuroof.formatting import duration, first_of
from ncuroof.ingest import RawReport
from ncuroof.metrics import Measurements
from ncuroof.roofline import Roofline

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from ncuroof.comparison import Run
    from ncuroof.expected import Expected

PathLike = Union[str, "os.PathLike[str]"]

_MOST_NAMES = 3
"""Largest number of reports that a `repr` names."""


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """The analysis of a run: measurements, roofline and diagnosis of every kernel.

    Analyses are compared by identity; `ncuroof.compare` shows what differs. They can be pickled and copied, so worker processes can
    return them.

    Attributes:
        reports: the reports that were read.
        measurements: canonical quantities, work, bandwidth, devices.
        roofline_tables: points, ceilings, bounds.
        diagnosis: verdicts, decision paths, findings, missing quantities.
        summary: sums over the run.
        weights: WEIGHTS.
        weighting: how launches were weighted; None without a counting run: each launch then represents only itself.
        selection: which launches of `whole` are included; None if all are.
        whole: the analysis of the whole run; None if this analysis is of the whole run.
    """

    reports: tuple[RawReport, ...]
    measurements: Measurements
    roofline_tables: Roofline
    diagnosis: Diagnosis
    summary: Summary
    weights: pl.DataFrame
    weighting: Weighting | None = None
    selection: Selection | None = None
    whole: Analysis | None = None

    def __repr__(self) -> str:
        time = duration(self.summary.duration_ns)
        return f"<Analysis: {names_in_short(self.reports)}; {self.summary.n_kernels} kernels, {time} GPU time>"

    def _repr_html_(self) -> str:
        """Return the summary as HTML, for notebooks."""
        from ncuroof.present.texts.notebook import to_html  # noqa: PLC0415  presenting is not needed to analyse

        return to_html(self)

    @property
    def kernels(self) -> pl.DataFrame:
        """One row per profiled kernel: name, shape, all quantities, roofline time, verdict, and weights.

        It joins KERNELS, BOUNDS, VERDICTS and WEIGHTS, and spreads the long tables into the columns `work.<precision>.flop`,
        `work.<precision>.frac`, `bandwidth.<level>.bytes_per_s`, `bandwidth.<level>.frac`, `intensity.<level>` in FLOP/byte of the
        dominant precision, and `instruction_intensity.<level>` in warp instructions per transaction. All reports have the same
        columns (docs/columns.md), null where data is missing, so tables of several runs can be stacked with `polars.concat`.
        """
        return kernel_table(self.measurements, self.roofline_tables, self.diagnosis, self.weights)

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
        """FINDINGS: one row per kernel and finding."""
        return self.diagnosis.findings

    @property
    def phases(self) -> pl.DataFrame:
        """PHASES: one row per sampled kernel and phase of its time, with verdict and limiter."""
        return self.diagnosis.phases

    @property
    def samples(self) -> pl.DataFrame:
        """SAMPLES: one row per kernel with counters that were sampled while it ran."""
        return self.diagnosis.samples

    @property
    def groups(self) -> pl.DataFrame:
        """GROUPS: launches with the same kernel, shape and verdict, the most recoverable time first."""
        bounds, diagnosis = self.roofline_tables.bounds, self.diagnosis
        return group_launches(self.measurements.kernels, bounds, diagnosis.verdicts, diagnosis.findings, self.weights)

    @property
    def breakdowns(self) -> pl.DataFrame:
        """BREAKDOWNS: time by family and by NVTX range."""
        return break_down(self.measurements.kernels, self.roofline_tables.bounds, self.weights)

    @property
    def totals(self) -> pl.DataFrame:
        """TOTALS: work, rate and DRAM intensity of the whole run, by precision."""
        return total_work(self.measurements.kernels, self.roofline_tables.work, self.diagnosis.verdicts, self.weights)

    @property
    def expected(self) -> Expected:
        """What PyTorch's operators needed, compared with what their kernels did; empty if no NVTX range names operators."""
        from ncuroof.expected import expect, of_part  # noqa: PLC0415  most reports name no operators

        if self.whole is not None:
            return of_part(self.whole.expected, self.measurements.kernels["id"])
        placed = self.roofline_tables
        wall_ns = None if self.weighting is None else self.weighting.steps_ns
        return expect(self.kernels, placed.work, placed.ceilings, wall_ns)

    @property
    def actions(self) -> pl.DataFrame:
        """ACTIONS: what to do, by potential savings over the whole run."""
        return rank_actions(self.diagnosis.findings, self.summary.duration_ns, self.weights)

    def select(
        self,
        *,
        kernel: str | int | Sequence[str | int] | None = None,
        nvtx: str | None = None,
        skip: int = 0,
        count: int | None = None,
    ) -> Analysis:
        """Return the analysis of some of the launches, each judged as in the whole run; sums and shares are those of the selection.

            analysis.select(kernel="gemm|flash")     # in the demangled name
            analysis.select(kernel=39)               # launch 39 and those that are equal to it
            analysis.select(nvtx=r"^forward/.*mlp")  # in the names of NVTX ranges, joined by "/"

        Args:
            kernel: regular expression to find in a kernel's name, or the `id` of a launch, which stands for all launches of its
                group, or several patterns and ids, one of which has to match.
            nvtx: regular expression to find in the names of the NVTX ranges around a launch, joined by `/` from the outermost.
            skip: number of matching launches to leave out first.
            count: most launches to select; None for all.

        Raises:
            SelectionError: no launch matches, an expression is malformed, or a number is negative.
        """
        wanted = [kernel] if isinstance(kernel, (str, int)) else list(kernel or ())
        ids = self._chosen(wanted, nvtx=nvtx, skip=skip, count=count)
        measurements, diagnosis = restricted(self.measurements, ids), restricted(self.diagnosis, ids)
        placed = restricted(self.roofline_tables, ids)
        weights = self.weights.filter(pl.col("id").is_in(ids.implode()))
        summary = summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights)
        time_ns, of_ns = summary.duration_ns, self.summary.duration_ns
        share_frac = time_ns / of_ns if time_ns is not None and of_ns else None
        return replace(
            self,
            measurements=measurements,
            roofline_tables=placed,
            diagnosis=diagnosis,
            summary=summary,
            weights=weights,
            weighting=self.weighting and of_part(self.weighting, measurements.kernels),
            selection=Selection(_in_words(wanted), nvtx, skip, count, self.summary.n_kernels, share_frac),
            whole=self,
        )

    def _chosen(self, wanted: Sequence[str | int], *, nvtx: str | None, skip: int, count: int | None) -> pl.Series:
        """Return the ids of the launches of some kernels that pass the other filters; see `select`."""
        kernels = self.measurements.kernels
        if wanted:
            every = [
                self._of_group(each) if isinstance(each, int) else select(kernels, kernel=each).to_list()
                for each in wanted
            ]
            kernels = kernels.filter(pl.col("id").is_in([number for ids in every for number in ids]))
        return select(kernels, nvtx=nvtx, skip=skip, count=count)

    def _of_group(self, number: int) -> list[int]:
        """Return the launches of a launch's group.

        Raises:
            SelectionError: no launch has this number.
        """
        found = self.groups.filter(pl.col("launches").list.contains(number))
        if found.is_empty():
            raise SelectionError(
                f"expected the number of a launch, found {number}",
                hint="ncuroof report --kernels all lists the numbers",
            )
        return list(found["launches"][0])

    def run(self, label: str | None = None) -> Run:
        """Return the run to compare, called `label`; default: the names of its reports."""
        from ncuroof.comparison import run_of  # noqa: PLC0415  comparing is not needed to analyse

        return run_of(
            label or ", ".join(report.file for report in self.reports),
            reports=self.reports,
            measurements=self.measurements,
            kernels=self.kernels,
            findings=self.diagnosis.findings,
            n_failed=self.summary.n_failed,
            weighting=self.weighting,
        )

    def whatif(self, *targets: str, changes: str | Sequence[str] = (), only: str | None = None) -> pl.DataFrame:
        """Return PROJECTION: the expected time of each launch on different GPUs or after changes, all launches for each target.

        Args:
            targets: GPUs, optionally with an SM clock ("b200", "h100-sxm@1500MHz", "same@1.98GHz"); default: the same GPU.
                Repeated targets count once.
            changes: one or several changes in the syntax of `ncuroof whatif --change` ("bytes:0.5", "batch:4", "dtype:bf16").
            only: regular expression; changes apply only to kernels whose name it matches.

        Raises:
            ArgumentError: a target or change is not a string.
            UnknownNameError: there is no such GPU.
            WhatIfError: a change or target is malformed, two changes set a type, `only` is given without changes, is not a regular
                expression, or matches no kernel.
        """
        from ncuroof.whatif import parse_changes, parse_targets, tried  # noqa: PLC0415  not needed to analyse

        if only is not None and not changes:
            raise WhatIfError(
                f"only={only!r} names the kernels to change, but there are no changes",
                hint="pass changes=['bytes:0.5']",
            )
        is_one = isinstance(changes, str) or not isinstance(changes, Iterable)
        texts: Any = [changes] if is_one else changes
        wanted, at = parse_changes(texts), parse_targets(targets)
        return tried(self.kernels, self.roofline_tables, at, changes=wanted, only=only).projection

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as a JSON-ready dictionary: the document `ncuroof.analysis/1` (docs/documents.md)."""
        from ncuroof.present.documents.analysis import document  # noqa: PLC0415  presenting is not needed to analyse

        return dict(document(self))

    def roofline(self, *, device: int = 0, view: str = "flop", level: str | None = None) -> Figure:
        """Return the roofline chart of a GPU as a plotly figure, which notebooks display.

        Each dot is a group of equal launches: colour and symbol show its verdict, the area its time. Axes are logarithmic:
        FLOP/s over FLOP/byte, or warp instructions per second over warp instructions per transaction. If there is nothing to
        draw, the figure says why.

        Static images need kaleido, which `ncuroof[plot]` installs, and Chrome or Chromium:

            analysis.roofline().write_image("roofline.svg")  # also .pdf and .png

        Args:
            device: index of the GPU in the document's `devices`.
            view: "flop", or "instruction" for the instruction roofline.
            level: memory level of the dots ("dram", "l2", "l1", "shared"); default: the first of these with dots.

        Raises:
            MissingExtraError: plotly is not installed.
            UnknownNameError: no such GPU, view or level.
        """
        from ncuroof.present.charts.plotly_figure import roofline_figure  # noqa: PLC0415  presenting is not needed to analyse
        from ncuroof.present.documents.analysis import document  # noqa: PLC0415

        return roofline_figure(document(self), device=device, view=view, level=level)

    def to_pandas(self) -> pd.DataFrame:
        """Return `kernels` as a pandas DataFrame.

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
        """Write the HTML page to `path` and return the path; see `write`."""
        return self.write(path, "html", force=force)

    def write(self, path: PathLike, form: str | None = None, *, force: bool = False) -> Path:
        """Write the analysis to `path` and return the path.

        Args:
            path: file to write; its suffix selects the format: .html, .json, .md, .csv, .parquet, .sarif or .txt.
            form: format that overrides the suffix: html, json, md, csv, parquet, sarif or term.
            force: replace a file that ncuroof did not write; a report that was read is never replaced.

        Raises:
            OutputFormatError: neither suffix nor `form` is a known format.
            OutputError: the file cannot be written, or exists and was not written by ncuroof; it is left unchanged.
        """
        from ncuroof.present import write  # noqa: PLC0415  presenting is not needed to analyse

        return write(self, Path(path), form, force=force)


def _in_words(wanted: Sequence[str | int]) -> str | None:
    """Return the chosen kernels in words, such as "gemm|flash" or "#39"; None for all kernels."""
    return "|".join(f"#{each}" if isinstance(each, int) else each for each in wanted) or None


def names_in_short(reports: Sequence[RawReport]) -> str:
    """Return the names of the first reports, and how many more there are."""
    return first_of([report.file for report in reports], _MOST_NAMES)
