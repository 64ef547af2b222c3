"""Findings that a kernel had before a change and has no more, with what they promised, and those that it has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.comparison.matched_groups import Row

FOUND = "findings"
"""Column of the groups of a run: FOUND_TYPE, of the group's longest launch; null where it is not known."""

FOUND_TYPE = pl.List(pl.Struct({"finding": pl.String(), "gain_frac": pl.Float64()}))
"""Findings, each with what it saves at most, as a share of the launch's time; null where the counters do not show it."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """Findings of one side only.

    Attributes:
        gone: those before, with the share of the time that they promised at most; None where they promised none.
        new: those after, likewise.
    """

    gone: Mapping[str, float | None]
    new: Mapping[str, float | None]


def found_in(kernels: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of each launch that has any: `id` and FOUND.

    Args:
        kernels: one row per launch, with id and duration_ns.
        findings: FINDINGS.
    """
    return (
        findings.join(kernels.select("id", "duration_ns"), on="id", how="left", maintain_order="left")
        .group_by("id", maintain_order=True)
        .agg(pl.struct("finding", (pl.col("gain_ns") / pl.col("duration_ns")).alias("gain_frac")).alias(FOUND))
    )


def finding_change(before: Row, after: Row) -> FindingChange | None:
    """Return the findings that one of two groups lacks; None where they are not known of both."""
    if before[FOUND] is None or after[FOUND] is None:
        return None
    was, became = ({each["finding"]: each["gain_frac"] for each in row[FOUND]} for row in (before, after))
    return FindingChange(
        gone={name: gain for name, gain in was.items() if name not in became},
        new={name: gain for name, gain in became.items() if name not in was},
    )
