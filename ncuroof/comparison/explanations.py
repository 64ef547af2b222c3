"""What explains a change of time: quantities that moved the way the time did, and can account for a good part of it.

How much a quantity can account for, at most, is bounded first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.rules import FILLED, LIMITING, OF_THE_GPU, RESIDENT, WORKING, ComparisonRules, Explanation
from ncuroof.enums import Verdict

_FOLLOWS_RATIO = 1.1
"""A utilisation that moved by no more than this beyond its amount followed it."""

_MOVED_RATIO = 1.05
"""Bytes behind hits, and what a block takes, that differ by less are the same."""

_MOSTLY_FILLED_FRAC = 0.7
"""Of the warps that fit: with fewer, something else than the room for them is why they are few."""

_AS_BUSY = 0.95
"""Units whose times differ by less do the same: one contains the other."""

_ONLY_EXPLAINING = ("peak", "wait", "time")
"""Kinds that are told only where they explain a change of time."""

_CONSEQUENCES = ("wait", "time")
"""Kinds that tell nothing where the peak of what bounds a kernel explains its time: warps and other units wait for that."""

_AS_MUCH = 0.8
"""Of what a busy unit accounts for: an amount that accounts for so much of it says why it is busy."""

_ANY_UNIT = ""


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """A quantity before and after.

    Attributes:
        quantity, words, kind: as of `Explanation`.
        before, after: its values.
        accounts_for_frac: the share of the change of time that it can account for at most; None where it does not explain it.
        accompanies: whether it only moved with the time, as a utilisation of as much work has to.
        because: what moved the other way and is why: its name, words, and values before and after.
    """

    quantity: str
    words: str
    kind: str
    before: float
    after: float
    accounts_for_frac: float | None
    accompanies: bool = False
    because: tuple[tuple[str, str, float, float], ...] = ()

    @property
    def explains(self) -> bool:
        """Whether it explains the change of time."""
        return self.accounts_for_frac is not None


def changes(
    before: MatchedGroups, after: MatchedGroups, time_change: float | None, rules: ComparisonRules
) -> tuple[QuantityChange, ...]:
    """Return the quantities that changed by more than their least: first those that explain the change of time, by how much of it.

    Peaks, waits and busy times are among them only where they explain it.

    Args:
        before: what was launched before.
        after: what was launched after.
        time_change: of the time, as a share of it; None where it did not change beyond chance, and nothing explains that.
        rules: what may explain it.
    """
    moved = [each for each in rules.explanations if _has_moved(each, before, after)]
    explaining = _explaining(moved, before, after, time_change, rules) if time_change is not None else {}
    found = [
        QuantityChange(
            each.quantity,
            each.words,
            each.kind,
            _known(before, each),
            _known(after, each),
            explaining.get(each),
            accompanies=time_change is not None
            and not explaining
            and _is_as_the_time(each, before, after, time_change, rules),
            because=tuple(_causes(each, before, after)),
        )
        for each in moved
        if each in explaining or each.kind not in _ONLY_EXPLAINING
    ]
    return tuple(
        sorted(
            found, key=lambda change: (-(change.accounts_for_frac or 0.0), not change.explains, not change.accompanies)
        )
    )


def _causes(
    explanation: Explanation, before: MatchedGroups, after: MatchedGroups
) -> Iterator[tuple[str, str, float, float]]:
    """Yield the quantities that are why another one is less, or more, with their values before and after; then the blocks per SM.

    That is what leaves room for no more blocks than fit on the side with less, if these are mostly there.
    """
    own = _ratio(before.value(explanation), after.value(explanation))
    if not explanation.because or not own:
        return
    less = after if own < 0 else before
    filled, room = less.average(FILLED), less.average(RESIDENT)
    if filled is not None and filled < _MOSTLY_FILLED_FRAC:
        return
    is_any = False
    for name, words, limited_by in explanation.because:
        was, became, limit = before.average(name), after.average(name), less.average(limited_by)
        ratio = _ratio(was, became)
        is_limiting = room is None or limit is None or limit <= room
        if is_limiting and ratio and was and became and own * ratio < 0 and abs(ratio) >= math.log(_MOVED_RATIO):
            is_any = True
            yield name, words, was, became
    was, became = before.average(RESIDENT), after.average(RESIDENT)
    if is_any and explanation.quantity != RESIDENT and was and became and was != became:
        yield RESIDENT, "blocks per SM", was, became


def _explaining(
    moved: Iterable[Explanation],
    before: MatchedGroups,
    after: MatchedGroups,
    time_change: float,
    rules: ComparisonRules,
) -> Mapping[Explanation, float]:
    """Return the quantities that explain a change of time, with the share of it that each can account for."""
    slower, faster = (after, before) if time_change > 0 else (before, after)
    slowdown = Slowdown(slower, faster, slower.amount("mean_ns") or 0.0, faster.amount("mean_ns") or 0.0, rules)
    found = {
        each: frac
        for each in moved
        if not each.through
        and _is_by_itself(each, before, after, rules)
        and (frac := slowdown.accounted_frac(each)) >= rules.least_part_frac
    }
    for each in moved:
        if slowdown.accounted_frac(each) and _are_misses_moved(each, before, after):
            through = [frac for reason, frac in found.items() if reason.quantity in each.through]
            found |= {each: max(through)} if through else {}
    named = _unit_without_reason(found, slowdown)
    names = {each.quantity for each in found}
    is_by_peak = any(each.kind == "peak" for each in found)
    return {
        each: frac
        for each, frac in found.items()
        if names.isdisjoint(each.unless)
        and (each == named or each.kind != "time")
        and not (is_by_peak and each.kind in _CONSEQUENCES)
    }


def _unit_without_reason(found: Iterable[Explanation], slowdown: Slowdown) -> Explanation | None:
    """Return the unit that is busiest on the slower side, of those that work less without a reason; None where there is none."""
    units = [
        each
        for each in found
        if each.kind == "time"
        and max(
            (slowdown.saved_ns(reason, each.quantity) for reason in found if each.quantity in reason.busy), default=0.0
        )
        < _AS_MUCH * (_known(slowdown.slower, each) - _known(slowdown.faster, each))
    ]
    most_ns = max((_known(slowdown.slower, each) for each in units), default=0.0)
    return next((each for each in units if _known(slowdown.slower, each) >= _AS_BUSY * most_ns), None)


def _has_moved(explanation: Explanation, before: MatchedGroups, after: MatchedGroups) -> bool:
    was, became = before.value(explanation), after.value(explanation)
    if was is None or became is None:
        return False
    size = abs(became - was)
    return (size if explanation.kind == "share" else size / (max(abs(was), abs(became)) or 1.0)) >= explanation.least


def _known(side: MatchedGroups, explanation: Explanation) -> float:
    value = side.value(explanation)
    return math.nan if value is None else value


def _is_by_itself(
    explanation: Explanation, before: MatchedGroups, after: MatchedGroups, rules: ComparisonRules
) -> bool:
    """Return whether a quantity can be a reason: a utilisation is work over time, except where one run did not use the unit."""
    values = _known(before, explanation), _known(after, explanation)
    return explanation.amount is None or (min(values) < rules.unused_frac and max(values) >= rules.least_busy_frac)


def _is_as_the_time(
    explanation: Explanation, before: MatchedGroups, after: MatchedGroups, time_change: float, rules: ComparisonRules
) -> bool:
    """Return whether a utilisation is considerable, moved as the time did, and by more than what it is of."""
    was, became = _known(before, explanation), _known(after, explanation)
    if explanation.amount is None or (time_change > 0) == (became > was) or max(was, became) < rules.least_busy_frac:
        return False
    own = _ratio(was, became)
    amount = _ratio(before.amount(explanation.amount), after.amount(explanation.amount))
    follows = (
        own is not None
        and amount is not None
        and own * amount > 0
        and abs(own) <= abs(amount) + math.log(_FOLLOWS_RATIO)
    )
    return not follows


def _are_misses_moved(explanation: Explanation, before: MatchedGroups, after: MatchedGroups) -> bool:
    """Return whether the bytes behind hits became more where these became fewer, or the other way round."""
    if explanation.misses is None:
        return True
    own = _ratio(before.value(explanation), after.value(explanation))
    misses = _ratio(before.amount(explanation.misses), after.amount(explanation.misses))
    if own is None:  # there were none at all: of how much is not known
        return False
    return misses is None or (misses * own < 0 and abs(misses) >= math.log(_MOVED_RATIO))


def _ratio(was: float | None, became: float | None) -> float | None:
    """Return the logarithm of after over before; None where either is not known or zero."""
    return math.log(became / was) if was and became else None


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
            return self._of_time(slow - fast) if self._is_limit(slow, explanation.quantity) else 0.0
        if explanation.kind == "wait":
            return self._of_ratio(self._latency_without(slow - fast))
        if explanation.goes_with == "speed" and explanation.kind != "peak":
            return self._of_ratio(fast / slow if slow else math.inf)
        units = [unit for unit in explanation.busy if self.slower.busy_ns(unit) is not None]
        saved_ns = max(self.saved_ns(explanation, unit) for unit in units or (_ANY_UNIT,))
        return max(self._of_time(saved_ns), self._of_instructions(explanation, slow, fast))

    def _is_of_this(self, explanation: Explanation) -> bool:
        """Return whether a quantity matters in a kernel that is limited as the slower side is, and is not known better."""
        better = explanation.stands_for
        if better and None not in (self.slower.average(better), self.faster.average(better)):
            return False
        if explanation.bound_by and self.slower.longest["limiter"] not in explanation.bound_by:
            return False
        return self.is_slower_waiting or not explanation.while_waiting

    def _is_limit(self, busy_ns: float, unit: str) -> bool:
        """Return whether a unit that is busy for so long limits the slower side: one that is less busy only follows the time."""
        working = None if unit in OF_THE_GPU else self.slower.average(WORKING)
        return busy_ns >= self.rules.limiting_busy_frac * self.slower_ns * (1.0 if working is None else working)

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
