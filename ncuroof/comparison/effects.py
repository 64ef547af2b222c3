"""How much of a change of time a quantity can account for, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.rules import LIMITING, ComparisonRules, Explanation
from ncuroof.words import Verdict

_ANY_UNIT = ""


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
        if not self._is_of_this(explanation):
            return 0.0
        if explanation.kind == "time":
            return self._of_time(slow - fast) if slow >= self.rules.least_busy_frac * self.slower_ns else 0.0
        if explanation.kind == "wait":
            return self._of_ratio(self._latency_without(slow - fast))
        if explanation.goes_with == "speed" and explanation.kind != "peak":
            return self._of_ratio(fast / slow if slow else math.inf)
        units = [unit for unit in explanation.busy if self.slower.busy_ns(unit) is not None]
        saved_ns = max(self.saved_ns(explanation, unit) for unit in units or (_ANY_UNIT,))
        return max(self._of_time(saved_ns), self._of_instructions(explanation, slow, fast))

    def _is_of_this(self, explanation: Explanation) -> bool:
        """Return whether a quantity matters in a kernel that is limited as the slower side is."""
        if explanation.bound_by and self.slower.longest["limiter"] not in explanation.bound_by:
            return False
        return self.is_slower_waiting or not explanation.while_waiting

    @property
    def is_slower_waiting(self) -> bool:
        """Whether no unit limits the slower side while SMs have work; without utilisations, what its verdict says."""
        busy = [frac for name in LIMITING if (frac := self.slower.average(name)) is not None]
        if not busy:
            return bool(self.slower.longest["verdict"] == Verdict.LATENCY.value)
        return max(busy) < self.rules.limiting_busy_frac

    def saved_ns(self, explanation: Explanation, unit: str) -> float:
        """Return how much less a unit has to work on an amount, or on a share of one, at most; 0 where it is hardly busy.

        At a higher peak it works on the same amount for as much less time as the peak is higher.

        Args:
            explanation: of an amount, or a share of one, that became less, or of a peak that became more.
            unit: the utilisation of what works on it; _ANY_UNIT, of which none is known, is taken to be busy all the time.
        """
        slow, fast = self.slower.value(explanation), self.faster.value(explanation)
        slow_ns, fast_ns = (None if unit == _ANY_UNIT else side.busy_ns(unit) for side in (self.slower, self.faster))
        if not slow or fast is None:
            return 0.0
        own_ns = (self.slower_ns if slow_ns is None else slow_ns) * self._own_part(explanation)
        if own_ns < self.rules.least_busy_frac * self.slower_ns:
            return 0.0
        less = {"share": slow - fast, "peak": 1 - slow / (fast or slow)}.get(explanation.kind, 1 - fast / slow)
        most_ns = math.inf if slow_ns is None or fast_ns is None else max(slow_ns - fast_ns, 0.0)
        return min(own_ns * less, most_ns)

    def _of_time(self, saved_ns: float) -> float:
        return min(saved_ns / (self.slower_ns - self.faster_ns), 1.0)

    def _of_ratio(self, ratio: float) -> float:
        """Return the share of the ratio of times, on a logarithmic scale: ratios multiply."""
        return min(math.log(ratio) / math.log(self.slower_ns / self.faster_ns), 1.0) if ratio > 1 else 0.0

    def _latency_without(self, cycles: float) -> float:
        """Return how much longer a warp takes from one instruction to the next than it would without so many cycles."""
        latency = self.slower.latency() or 0.0
        return latency / (latency - cycles) if latency > cycles else math.inf

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
