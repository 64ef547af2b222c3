"""How much of a change of time a quantity can account for, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.rules import ACTIVE, BUSIEST, ComparisonRules, Explanation
from ncuroof.words import Verdict


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The slower of two sides against the faster one, whichever came first.

    Attributes:
        slower, faster: the sides.
        slower_ns, faster_ns: times of a unit of work.
        rules: of comparing.
    """

    slower: MatchedGroups
    faster: MatchedGroups
    slower_ns: float
    faster_ns: float
    rules: ComparisonRules

    def accounted_frac(self, explanation: Explanation) -> float:
        """Return the share of the change that a quantity can account for at most: 0 where it went the other way or does not matter.

        What was not collected speaks against nothing: a unit whose utilisation is not known is taken to be busy all the time.
        """
        slow, fast = self.slower.value(explanation), self.faster.value(explanation)
        if slow is None or fast is None or (slow > fast) != (explanation.goes_with == "time"):
            return 0.0
        if explanation.while_waiting and not self.is_slower_waiting:
            return 0.0
        if explanation.kind == "time":
            return self._of_time(slow - fast) if slow >= self.rules.least_busy_frac * self.slower_ns else 0.0
        if explanation.kind == "wait":
            return self._of_ratio(self._latency_without(slow - fast))
        if explanation.goes_with == "speed":
            return self._of_ratio(fast / slow if slow else math.inf)
        return max(self._of_unit(explanation, slow, fast), self._of_instructions(explanation, slow, fast))

    @property
    def is_slower_waiting(self) -> bool:
        """Whether no unit limits the slower side while SMs have work; without utilisations, what its verdict says."""
        busy, active = self.slower.average(BUSIEST), self.slower.average(ACTIVE)
        if busy is None:
            return bool(self.slower.longest["verdict"] == Verdict.LATENCY.value)
        return busy < self.rules.limiting_busy_frac * (active or 1.0)

    def _of_time(self, saved_ns: float) -> float:
        return min(saved_ns / (self.slower_ns - self.faster_ns), 1.0)

    def _of_ratio(self, ratio: float) -> float:
        """Return the share of the ratio of times, on a logarithmic scale: ratios multiply."""
        return min(math.log(ratio) / math.log(self.slower_ns / self.faster_ns), 1.0) if ratio > 1 else 0.0

    def _latency_without(self, cycles: float) -> float:
        """Return how much longer a warp takes from one instruction to the next than it would without so many cycles."""
        latency = self.slower.latency() or 0.0
        return latency / (latency - cycles) if latency > cycles else math.inf

    def _of_unit(self, explanation: Explanation, slow: float, fast: float) -> float:
        """Return what a unit can account for that works less on an amount, or on a share of one."""
        known = [busy for name in explanation.busy if (busy := self.slower.average(name)) is not None]
        busy = max(known, default=1.0) * self._own_part(explanation)
        if busy < self.rules.least_busy_frac:
            return 0.0
        return self._of_time(
            busy * self.slower_ns * ((slow - fast) / slow if explanation.kind != "share" else slow - fast)
        )

    def _own_part(self, explanation: Explanation) -> float:
        """Return a quantity's part of what its unit works on; 0 where that became more in all, 1 where it is not known."""
        if not explanation.part_of:
            return 1.0
        own = self.slower.amount(explanation.part or explanation.quantity)
        slow, fast = (_known_sum(side, explanation.part_of) for side in (self.slower, self.faster))
        if own is None or slow is None or fast is None or not slow:
            return 1.0
        return min(own / slow, 1.0) if slow > fast else 0.0

    def _of_instructions(self, explanation: Explanation, slow: float, fast: float) -> float:
        """Return what instructions can account for that run one after the other."""
        if not (explanation.counts_in_latency and self.is_slower_waiting):
            return 0.0
        return self._of_ratio(slow / fast if fast else math.inf)


def _known_sum(side: MatchedGroups, quantities: tuple[str, ...]) -> float | None:
    known = [value for name in quantities if (value := side.amount(name)) is not None]
    return sum(known) if len(known) == len(quantities) else None
