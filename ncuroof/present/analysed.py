"""What presentations read: an analysis, as a protocol, or a JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ncuroof.diagnosis import Diagnosis, Selection, Summary, Weighting
    from ncuroof.expected import Expected
    from ncuroof.ingest import RawReport
    from ncuroof.metrics import Measurements
    from ncuroof.roofline import Roofline

Document = dict[str, Any]
"""A JSON document, or an object within one, as `present.documents` builds it."""

Record = Mapping[str, Any]
"""The same as pages, texts and charts read it."""


class Analysed(Protocol):
    """An analysis, as presentations see it."""

    @property
    def reports(self) -> Sequence[RawReport]:
        """The reports that were read."""

    @property
    def kernels(self) -> pl.DataFrame:
        """One row per profiled workload: quantities, bounds, verdict and weights."""

    @property
    def measurements(self) -> Measurements:
        """Canonical quantities of kernels, devices and source lines."""

    @property
    def roofline_tables(self) -> Roofline:
        """Points, ceilings, bounds."""

    @property
    def diagnosis(self) -> Diagnosis:
        """Verdicts, paths, findings."""

    @property
    def summary(self) -> Summary:
        """Sums over the run."""

    @property
    def weights(self) -> pl.DataFrame:
        """WEIGHTS."""

    @property
    def weighting(self) -> Weighting | None:
        """How many launches, and how much of their time, each profiled launch represents; None without a counting run."""

    @property
    def selection(self) -> Selection | None:
        """Which launches of a run these are; None if these are all."""

    @property
    def groups(self) -> pl.DataFrame:
        """GROUPS."""

    @property
    def breakdowns(self) -> pl.DataFrame:
        """BREAKDOWNS."""

    @property
    def totals(self) -> pl.DataFrame:
        """TOTALS."""

    @property
    def expected(self) -> Expected:
        """What the operators required against what their kernels did."""

    @property
    def actions(self) -> pl.DataFrame:
        """ACTIONS."""
