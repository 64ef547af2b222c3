"""Two runs compared: what matches, what changed in it, and what that means for the whole run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from ncuroof.compare.comparable import Comparable, comparable
from ncuroof.compare.deltas import Delta, deltas, noise_of_runs
from ncuroof.compare.matching import Matching, match
from ncuroof.compare.rules import load_comparison_rules
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


def matched_change(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the change of what both runs launched, launch for launch, and the change that chance alone makes seem possible.

    Time of the matched kernels after, as often as they were launched before, over their time before, less one: what is left of a
    run's change without kernels and launches that one run has more of. None where no kernel's time is known on both sides.
    """
    was = became = 0.0
    noises_ns: list[float] = []
    for delta in comparison.deltas:
        if delta.change_frac is not None and delta.noise_frac is not None and delta.mean_ns[0]:
            time_ns = delta.n_launches[0] * delta.mean_ns[0]
            was += time_ns
            became += time_ns * (1 + delta.change_frac)
            noises_ns.append(time_ns * delta.noise_frac)
    if not was:
        return None, None
    return became / was - 1, max(load_comparison_rules().noise.least_change_frac, math.hypot(*noises_ns) / was)


def total_ns(side: Side, groups: tuple[int, ...] | None = None) -> float | None:
    """Return the GPU time of a run, or of some of its groups; None where it is not known for any of them."""
    table = side.groups if groups is None else side.groups.filter(pl.col("group").is_in(list(groups)))
    durations = table["duration_ns"].drop_nulls()
    return float(durations.sum()) if len(durations) else None
