"""Groups of launches that are compared as one: their amounts, averages and work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ncuroof.comparison.rules import ACTIVE, ISSUED, OF_THE_GPU, WARPS, WORKING, Explanation, load_comparison_rules

Row = dict[str, Any]

FLOP, INSTRUCTIONS, DRAM_BYTES = "work.flop", "instructions.warp_executed", "traffic_bytes.dram"
WORK_WORDS = {FLOP: "FLOPs", INSTRUCTIONS: "instructions"}


@dataclass(frozen=True, slots=True)
class MatchedGroups:
    """The groups of one side of a match.

    Attributes:
        rows: rows of a run's `groups`.
        n_launches: how often they were launched together, taken as the largest number of launches of any of them.
        n_units: the divisor of amounts: launches, or how often the work of one launch of the run before was done.
    """

    rows: Sequence[Row]
    n_launches: int
    n_units: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> MatchedGroups:
        """Return groups that are compared launch for launch."""
        n_launches = max(int(row["n_launches"]) for row in rows)
        return cls(rows, n_launches, n_launches)

    @classmethod
    def in_all(cls, rows: Sequence[Row]) -> MatchedGroups:
        """Return groups that are compared by the total over all of their launches."""
        return cls(rows, sum(int(row["n_launches"]) for row in rows), 1)

    @property
    def longest(self) -> Row:
        """The group that took the most time."""
        return max(self.rows, key=lambda row: row["duration_ns"] or 0.0)

    @property
    def names(self) -> str:
        """Short names."""
        return " + ".join(row["short_name"] for row in self.rows)

    def amount(self, quantity: str) -> float | None:
        """Return an amount per unit; None if it is unknown for any group."""
        return whole_sum(
            None if row[quantity] is None else row[quantity] * row["n_launches"] / self.n_units for row in self.rows
        )

    def average(self, quantity: str) -> float | None:
        """Return a share or rate, averaged by time; None if it is unknown for any group."""
        values = [row[quantity] for row in self.rows]
        weights = [(row["mean_ns"] or 0.0) * row["n_launches"] for row in self.rows]
        if None in values or not sum(weights):
            return None
        return float(sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights))

    def latency(self) -> float | None:
        """Return the cycles from one instruction of a warp to its next; None if unknown.

        Resident warps over instructions issued per cycle, by Little's law: J. D. C. Little, Operations Research 9(3), 1961.
        """
        warps, issued = self.average(WARPS), self.average(ISSUED)
        return warps / issued if warps is not None and issued else None

    def busy_ns(self, unit: str) -> float | None:
        """Return for how long a unit is busy; None if unknown. A unit of the SMs counts only on SMs that have work."""
        busy, time_ns = self.average(unit), self.amount("mean_ns")
        if busy is None or time_ns is None:
            return None
        if unit in OF_THE_GPU:
            return busy * time_ns
        active, working = self.average(ACTIVE) or 1.0, self.average(WORKING)
        return min(busy / active, 1.0) * (1.0 if working is None else working) * time_ns

    def value(self, explanation: Explanation) -> float | None:
        """Return the value of an explanation, by its kind; None if it is unknown for any group."""
        if explanation.kind == "amount":
            return self.amount(explanation.quantity)
        if explanation.kind == "time":
            return self.busy_ns(explanation.quantity)
        value = self.average(explanation.quantity)
        if value is None or explanation.kind != "wait":
            return value
        latency = self.latency()
        return None if latency is None else value * latency


def aligned(before: MatchedGroups, after: MatchedGroups) -> tuple[MatchedGroups, MatchedGroups]:
    """Return both sides in the same unit.

    If the same work was cut into a different number of launches, the unit is the work of one launch of the run before. Otherwise
    the unit is a launch.
    """
    if before.n_launches == after.n_launches:
        return before, after
    ratios = _ratios(before, after, (FLOP, INSTRUCTIONS))
    if not ratios:
        return before, after
    work = ratios[0][1]
    in_all = [ratio * after.n_launches / before.n_launches for _, ratio in ratios]
    is_cut = abs(math.log(in_all[0])) < math.log(load_comparison_rules().work.cut_ratio) < abs(math.log(work))
    is_same = is_cut and not any(map(is_other_work, in_all))
    return (before, replace(after, n_units=before.n_units)) if is_same else (before, after)


def work_ratio(before: MatchedGroups, after: MatchedGroups) -> tuple[str, float] | None:
    """Return a measure of work and its ratio, after over before, per unit; None if no work was counted.

    The measure is FLOPs, or instructions if there are no FLOPs. If its ratio says that the work differs, but instructions or DRAM
    bytes say that it is the same, the latter count: for the same input, wider accesses take fewer instructions, and address
    arithmetic adds a few FLOPs. DRAM bytes alone do not measure work, because caches hold some of the data.
    """
    ratios = _ratios(before, after, (FLOP, INSTRUCTIONS))
    same = (ratio for ratio in (*ratios, *_ratios(before, after, (DRAM_BYTES,))) if not is_other_work(ratio[1]))
    return next(same, ratios[0]) if ratios else None


def _ratios(before: MatchedGroups, after: MatchedGroups, quantities: Sequence[str]) -> list[tuple[str, float]]:
    """Return the ratios of amounts, after over before, of those that both sides counted and that are not zero."""
    amounts = ((quantity, before.amount(quantity), after.amount(quantity)) for quantity in quantities)
    return [(quantity, became / was) for quantity, was, became in amounts if was and became]


def is_other_work(ratio: float) -> bool:
    """Return whether a ratio of work is so far from 1 that not only the code but the input may have changed."""
    most = load_comparison_rules().work.most_ratio
    return not 1 / most <= ratio <= most


def whole_sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None if any part is unknown."""
    parts = list(values)
    return None if None in parts else float(sum(part for part in parts if part is not None))
