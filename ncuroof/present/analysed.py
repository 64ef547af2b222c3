"""What presenting needs of an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ncuroof.diagnosis import Diagnosis, Summary, Weighting
    from ncuroof.expected import Expected
    from ncuroof.ingest import RawReport
    from ncuroof.metrics import Measurements
    from ncuroof.roofline import Roofline

Record = Mapping[str, Any]
"""A document of `present.documents`, or an object in one: what pages, texts and charts are made from."""


class Analysed(Protocol):
    """What the document is made of."""

    @property
    def reports(self) -> Sequence[RawReport]:
        """What was read."""

    @property
    def kernels(self) -> pl.DataFrame:
        """One row per workload, with all that is known of it."""

    @property
    def measurements(self) -> Measurements:
        """Canonical quantities."""

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
    def weighting(self) -> Weighting | None:
        """For how much each recorded launch stands."""

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
        """What operators asked for against what their kernels did."""

    @property
    def actions(self) -> pl.DataFrame:
        """ACTIONS."""
