"""The time of each kernel over many runs, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from ncuroof.comparison.comparison import Comparison, compare
from ncuroof.comparison.distinct_names import with_distinct_names
from ncuroof.comparison.matched_groups import MatchedGroups, Row
from ncuroof.comparison.matching import Matching, Sureness
from ncuroof.comparison.noise import other_clocks
from ncuroof.comparison.run import Run


@dataclass(slots=True)
class Trend:
    """A kernel over the runs.

    Attributes:
        name: short name in the last run that has it.
        mean_ns: time of one launch, run by run; None if the run lacks the kernel, or its time is unknown.
        jumps: change from the run before, as a share, by the run in which it exceeds the noise.
        first_comparable: the first run whose times are comparable with the times of the last run.
    """

    name: str
    mean_ns: list[float | None]
    jumps: dict[int, float] = field(default_factory=dict)
    first_comparable: int = 0

    @property
    def change_frac(self) -> float | None:
        """Its last known time over its first comparable time, minus one; None if fewer than two times are known."""
        known = [value for value in self.mean_ns[self.first_comparable :] if value]
        return known[-1] / known[0] - 1 if len(known) > 1 else None


@dataclass(frozen=True, slots=True)
class History:
    """Runs in order, and the trends of their kernels.

    Attributes:
        runs: the runs.
        steps: each run compared with the one before.
        trends: the kernels, those whose time changed most, up or down, first.
    """

    runs: tuple[Run, ...]
    steps: tuple[Comparison, ...]
    trends: tuple[Trend, ...]


def history(runs: Sequence[Run]) -> History:
    """Return the trends of kernels over two or more runs.

    A kernel that was fused, split or rewritten begins a new trend. The trend of a kernel that some runs lack continues when a later
    run adds a kernel of the same name and shape.
    """
    runs = with_distinct_names(*runs)
    steps = [compare(before, after) for before, after in pairwise(runs)]
    first_comparable = max(
        (number for number, step in enumerate(steps, start=1) if not step.comparable.is_time_comparable), default=0
    )
    trends: list[Trend] = []
    current: dict[int, Trend] = {}
    last_seen: dict[tuple[object, ...], tuple[Trend, Row]] = {}
    for number, run in enumerate(runs):
        known = _continued(steps[number - 1], current, number) if number else {}
        unmatched = _without_sure_match(steps[number - 1].matching) if number else frozenset()
        current = {}
        for row in run.groups.iter_rows(named=True):
            key = (row["name"], row["workload"], tuple(row["grid"] or ()), tuple(row["block"] or ()), row["range"])
            trend = known.get(row["group"])
            if trend is None and row["group"] in unmatched and key in last_seen:
                trend = _resumed(*last_seen[key], row, number)
            if trend is None:
                trend = Trend("", [None] * len(runs), first_comparable=first_comparable)
                trends.append(trend)
            trend.name = row["short_name"]
            trend.mean_ns[number] = row["mean_ns"]
            current[row["group"]] = trend
            last_seen[key] = trend, row
    moved = sorted(
        trends, key=lambda trend: -abs((trend.change_frac or 0.0) * (next(filter(None, trend.mean_ns), 0.0) or 0.0))
    )
    return History(tuple(runs), tuple(steps), tuple(moved))


def _without_sure_match(matching: Matching) -> frozenset[int]:
    """Return the groups of the run after that have no match in the run before, or only a guess."""
    guessed = (found.after for found in matching.matches if found.sureness is Sureness.GUESS)
    return frozenset((*matching.added, *chain.from_iterable(guessed)))


def _resumed(trend: Trend, was: Row, row: Row, number: int) -> Trend | None:
    """Return the trend of a kernel that returns after a gap; None if the trend continued under a different name or shape."""
    if trend.mean_ns[number - 1] is not None or trend.mean_ns[number] is not None:
        return None
    if other_clocks(MatchedGroups.of([was]), MatchedGroups.of([row])) is not None:
        trend.first_comparable = max(number, trend.first_comparable)
    return trend


def _continued(step: Comparison, current: dict[int, Trend], number: int) -> dict[int, Trend]:
    """Return the trends that continue in a run, by its groups, and add the jumps into it to them."""
    carried = {}
    for delta in step.deltas:
        is_one = len(delta.match.before) == len(delta.match.after) == 1 and not delta.is_same_work_in_all
        if is_one and delta.match.sureness is not Sureness.GUESS and (trend := current.get(delta.match.before[0])):
            carried[delta.match.after[0]] = trend
            if delta.obstacle is not None:
                trend.first_comparable = max(number, trend.first_comparable)
            if delta.is_significant and delta.change_frac is not None and step.comparable.is_time_comparable:
                trend.jumps[number] = delta.change_frac
    return carried
