"""Two runs compared: what matches, what changed in it, and what that means for the whole run."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ncuroof.compare.comparable import Comparable, comparable
from ncuroof.compare.deltas import Delta, deltas, noise_of_runs
from ncuroof.compare.matching import Matching, match
from ncuroof.compare.side import Side


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to another.

    Attributes:
        before, after: the runs.
        comparable: what of them can be compared.
        matching: which groups are the same, added and removed.
        deltas: what changed in the matches, in their order.
    """

    before: Side
    after: Side
    comparable: Comparable
    matching: Matching
    deltas: tuple[Delta, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed: every group has its like, and no time differs by more than chance."""
        return not (self.matching.added or self.matching.removed or any(delta.is_significant for delta in self.deltas))


def compare(before: Side, after: Side) -> Comparison:
    """Return what changed from one run to another."""
    matching = match(before, after)
    return Comparison(
        before=before,
        after=after,
        comparable=comparable(before.recording, after.recording),
        matching=matching,
        deltas=tuple(deltas(before, after, matching.matches)),
    )


def run_change(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the change of the run's GPU time as a share of it, and the change that chance alone makes seem possible."""
    was, became = total_ns(comparison.before), total_ns(comparison.after)
    if not was or became is None:
        return None, None
    return became / was - 1, noise_of_runs(comparison.before.groups, comparison.after.groups)


def total_ns(side: Side, groups: tuple[int, ...] | None = None) -> float | None:
    """Return the GPU time of a run, or of some of its groups; None where it is not known for any of them."""
    table = side.groups if groups is None else side.groups.filter(pl.col("group").is_in(list(groups)))
    durations = table["duration_ns"].drop_nulls()
    return float(durations.sum()) if len(durations) else None
