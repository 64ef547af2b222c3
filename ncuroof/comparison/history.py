"""Many runs in order: how the time of each kernel went from run to run."""

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
        name: short name in the run in which it was seen last.
        mean_ns: time of one launch, run by run; None where it was not there, or its time is not known.
        jumps: runs in which its time changed beyond chance from the run before, with that change as a share.
        first_comparable: the first run whose times can be compared with those of the last.
    """

    name: str
    mean_ns: list[float | None]
    jumps: dict[int, float] = field(default_factory=dict)
    first_comparable: int = 0

    @property
    def change_frac(self) -> float | None:
        """Its last known time over the first that can be compared with it, less one; None for fewer than two."""
        known = [value for value in self.mean_ns[self.first_comparable :] if value]
        return known[-1] / known[0] - 1 if len(known) > 1 else None


@dataclass(frozen=True, slots=True)
class History:
    """Runs in order, and the trends of their kernels.

    Attributes:
        runs: the runs.
        steps: each run compared with the one before.
        trends: those that changed the most time, up or down, first.
    """

    runs: tuple[Run, ...]
    steps: tuple[Comparison, ...]
    trends: tuple[Trend, ...]


def history(runs: Sequence[Run]) -> History:
    """Return how kernels went over two or more runs; one that was fused, cut into other launches or rewritten begins anew.

    A kernel that some runs lack goes on where one of the same name and shape is added in a later run.
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
        known = _carried_on(steps[number - 1], current, number) if number else {}
        loose = _loose(steps[number - 1].matching) if number else frozenset()
        current = {}
        for row in run.groups.iter_rows(named=True):
            key = (row["name"], row["workload"], tuple(row["grid"] or ()), tuple(row["block"] or ()), row["range"])
            trend = known.get(row["group"])
            if trend is None and row["group"] in loose and key in last_seen:
                trend = _back(*last_seen[key], row, number)
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


def _loose(matching: Matching) -> frozenset[int]:
    """Return the groups of the run after that nothing but a guess ties to the run before."""
    guessed = (found.after for found in matching.matches if found.sureness is Sureness.GUESS)
    return frozenset((*matching.added, *chain.from_iterable(guessed)))


def _back(trend: Trend, was: Row, row: Row, number: int) -> Trend | None:
    """Return the trend of a kernel that the runs before lack; None where it went on under another name or shape."""
    if trend.mean_ns[number - 1] is not None or trend.mean_ns[number] is not None:
        return None
    if other_clocks(MatchedGroups.of([was]), MatchedGroups.of([row])) is not None:
        trend.first_comparable = max(number, trend.first_comparable)
    return trend


def _carried_on(step: Comparison, current: dict[int, Trend], number: int) -> dict[int, Trend]:
    """Return the trends that go on in a run, by its groups, with the jumps into it noted."""
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
