"""Findings that a kernel had before a change and has no more, with what they promised, and those that it has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.comparison.matched_groups import Row
from ncuroof.comparison.rules import ISSUED, STALLS, WARPS
from ncuroof.diagnosis import load_rules

FOUND = "findings"
"""Column of the groups of a run: FOUND_TYPE, of the group's longest launch; null where it is not known."""

_STALL = "stall_"
"""Begins the names of findings about what warps wait for."""

Gains = Mapping[str, float | None]

FOUND_TYPE = pl.List(pl.Struct({"finding": pl.String(), "gain_frac": pl.Float64()}))
"""Findings, each with what it saves at most, as a share of the launch's time; null where the counters do not show it."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """Findings of one side only.

    Attributes:
        gone: those before, with the share of the time that they promised at most; None where they promised none.
        new: those after, likewise.
    """

    gone: Gains
    new: Gains


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
    """Return the findings that one of two groups lacks; None where they are not known of both.

    A finding is not gone where another one stands in its place, or where what it is about takes as long as before: a stall whose
    share fell because others grew.
    """
    if before[FOUND] is None or after[FOUND] is None:
        return None
    was, became = ({each["finding"]: each["gain_frac"] for each in row[FOUND]} for row in (before, after))
    return FindingChange(gone=_without(before, after, was, became), new=_without(after, before, became, was))


def _without(side: Row, other: Row, own: Gains, others: Gains) -> Gains:
    findings = load_rules().findings
    known = [findings[name] for name in others if name in findings]
    replaced = {name for finding in known for name in (*finding.instead_of, *finding.covers)}
    return {
        name: gain
        for name, gain in own.items()
        if name not in others and name not in replaced and not _waits_as_long(name, side, other)
    }


def _waits_as_long(finding: str, side: Row, other: Row) -> bool:
    """Return whether a warp waits no less for the reason of a stall, in cycles per instruction, where that is known of both."""
    stall = finding.removeprefix(_STALL)
    waits = [_wait_cycles(row, STALLS + stall) for row in (side, other)]
    if stall == finding or waits[0] is None or waits[1] is None:
        return False
    return waits[1] >= waits[0]


def _wait_cycles(row: Row, quantity: str) -> float | None:
    share, warps, issued = (row.get(name) for name in (quantity, WARPS, ISSUED))
    return share * warps / issued if share is not None and warps is not None and issued else None
