"""Explain a change of time by quantities that moved the way the time did and can account for a good part of it.

For each quantity, an upper bound of what it can account for is computed first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.rules import FILLED, LIMITING, OF_THE_GPU, RESIDENT, WORKING, ComparisonRules, Explanation
from ncuroof.enums import Verdict

_FOLLOWS_RATIO = 1.1
"""A utilisation that moved by no more than this factor beyond its amount of work only followed the work."""

_MOVED_RATIO = 1.05
"""Missed bytes, and resources of a block, that differ by a smaller factor are the same."""

_MOSTLY_FILLED_FRAC = 0.7
"""Share of the warps that fit. If fewer are resident, their number is limited by something else than resources."""

_AS_BUSY = 0.95
"""Two units whose busy times differ by less do the same work: one contains the other."""

_ONLY_EXPLAINING = ("peak", "wait", "time")
"""Kinds that are reported only if they explain a change of time."""

_CONSEQUENCES = ("wait", "time")
"""Kinds that are left out if the peak of the limiting unit explains the time: warps and the other units wait for that unit."""

_AS_MUCH = 0.8
"""An amount that accounts for this share of a unit's busy time is the reason why the unit is busy."""

_ANY_UNIT = ""


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """A quantity before and after.

    Attributes:
        quantity, words, kind: as in `Explanation`.
        before, after: its values.
        accounts_for_frac: the largest share of the change of time that it can account for; None if it does not explain the change.
        accompanies: whether it only moved with the time, as the utilisation of a unit with unchanged work must.
        because: quantities that caused its change: name, words, and values before and after.
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
    """Return the quantities that changed by more than their threshold. Those that explain most of the change of time come first.

    Peaks, waits and busy times are included only if they explain the change of time.

    Args:
        before: the groups before.
        after: the groups after.
        time_change: change of the time, as a share of the time before; None if it is noise, so that there is nothing to explain.
        rules: which quantities may explain it.
    """
    moved = [each for each in rules.explanations if _has_moved(each, before, after)]
    explaining = _explaining(moved, before, after, time_change, rules) if time_change is not None else {}
    found = [
        QuantityChange(
            each.quantity,
            each.words,
            each.kind,
            _value_or_nan(before, each),
            _value_or_nan(after, each),
            explaining.get(each),
            accompanies=time_change is not None
            and not explaining
            and _moved_with_speed(each, before, after, time_change, rules),
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
    """Yield the quantities that caused the change of an explanation, with their values before and after; then the blocks per SM.

    These are the resources that limit the resident blocks on the side with the smaller value. If that side hardly fills the warps
    that fit, resources are not what limits it, and nothing is yielded.
    """
    own = _log_ratio(before.value(explanation), after.value(explanation))
    if not explanation.because or not own:
        return
    less = after if own < 0 else before
    filled, room = less.average(FILLED), less.average(RESIDENT)
    if filled is not None and filled < _MOSTLY_FILLED_FRAC:
        return
    is_any = False
    for name, words, limited_by in explanation.because:
        was, became, limit = before.average(name), after.average(name), less.average(limited_by)
        ratio = _log_ratio(was, became)
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
    """Return the quantities that explain a change of time, each with the share that it can account for."""
    slower, faster = (after, before) if time_change > 0 else (before, after)
    slowdown = Slowdown(slower, faster, slower.amount("mean_ns") or 0.0, faster.amount("mean_ns") or 0.0, rules)
    found = {
        each: frac
        for each in moved
        if not each.through
        and _can_be_a_cause(each, before, after, rules)
        and (frac := slowdown.accounted_frac(each)) >= rules.least_part_frac
    }
    for each in moved:
        if slowdown.accounted_frac(each) and _did_misses_move(each, before, after):
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
    """Return the busiest unit, on the slower side, whose longer busy time no amount of work explains; None if there is none."""
    units = [
        each
        for each in found
        if each.kind == "time"
        and max(
            (slowdown.saved_ns(reason, each.quantity) for reason in found if each.quantity in reason.busy), default=0.0
        )
        < _AS_MUCH * (_value_or_nan(slowdown.slower, each) - _value_or_nan(slowdown.faster, each))
    ]
    most_ns = max((_value_or_nan(slowdown.slower, each) for each in units), default=0.0)
    return next((each for each in units if _value_or_nan(slowdown.slower, each) >= _AS_BUSY * most_ns), None)


def _has_moved(explanation: Explanation, before: MatchedGroups, after: MatchedGroups) -> bool:
    was, became = before.value(explanation), after.value(explanation)
    if was is None or became is None:
        return False
    size = abs(became - was)
    return (size if explanation.kind == "share" else size / (max(abs(was), abs(became)) or 1.0)) >= explanation.least


def _value_or_nan(side: MatchedGroups, explanation: Explanation) -> float:
    value = side.value(explanation)
    return math.nan if value is None else value


def _can_be_a_cause(
    explanation: Explanation, before: MatchedGroups, after: MatchedGroups, rules: ComparisonRules
) -> bool:
    """Return whether a quantity can be a cause. A utilisation (work over time) is a cause only if one run did not use the unit."""
    values = _value_or_nan(before, explanation), _value_or_nan(after, explanation)
    return explanation.amount is None or (min(values) < rules.unused_frac and max(values) >= rules.least_busy_frac)


def _moved_with_speed(
    explanation: Explanation, before: MatchedGroups, after: MatchedGroups, time_change: float, rules: ComparisonRules
) -> bool:
    """Return whether a utilisation is high, moved with the speed, and moved by more than the work of its unit."""
    was, became = _value_or_nan(before, explanation), _value_or_nan(after, explanation)
    if explanation.amount is None or (time_change > 0) == (became > was) or max(was, became) < rules.least_busy_frac:
        return False
    own = _log_ratio(was, became)
    amount = _log_ratio(before.amount(explanation.amount), after.amount(explanation.amount))
    follows = (
        own is not None
        and amount is not None
        and own * amount > 0
        and abs(own) <= abs(amount) + math.log(_FOLLOWS_RATIO)
    )
    return not follows


def _did_misses_move(explanation: Explanation, before: MatchedGroups, after: MatchedGroups) -> bool:
    """Return whether the missed bytes rose where the hit rate fell, or fell where it rose."""
    if explanation.misses is None:
        return True
    own = _log_ratio(before.value(explanation), after.value(explanation))
    misses = _log_ratio(before.amount(explanation.misses), after.amount(explanation.misses))
    if own is None:  # no hits at all on one side: the ratio is unknown
        return False
    return misses is None or (misses * own < 0 and abs(misses) >= math.log(_MOVED_RATIO))


def _log_ratio(was: float | None, became: float | None) -> float | None:
    """Return the logarithm of after over before; None if either is unknown or zero."""
    return math.log(became / was) if was and became else None


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The slower of two sides compared with the faster one.

    Attributes:
        slower, faster: the sides.
        slower_ns, faster_ns: their times per unit of work.
        rules: the thresholds.
    """

    slower: MatchedGroups
    faster: MatchedGroups
    slower_ns: float
    faster_ns: float
    rules: ComparisonRules

    def accounted_frac(self, explanation: Explanation) -> float:
        """Return the largest share of the slowdown that a quantity can account for; 0 if it moved the wrong way or does not matter.

        A unit of unknown utilisation is taken to be busy all the time, so that missing counters rule nothing out.
        """
        slow, fast = self.slower.value(explanation), self.faster.value(explanation)
        if slow is None or fast is None or (slow > fast) != (explanation.goes_with == "time"):
            return 0.0
        if not self._matters(explanation):
            return 0.0
        if explanation.kind == "time":
            return self._frac_of_time(slow - fast) if self._is_limit(slow, explanation.quantity) else 0.0
        if explanation.kind == "wait":
            return self._frac_of_ratio(self._latency_ratio_without(slow - fast))
        if explanation.goes_with == "speed" and explanation.kind != "peak":
            return self._frac_of_ratio(fast / slow if slow else math.inf)
        units = [unit for unit in explanation.busy if self.slower.busy_ns(unit) is not None]
        saved_ns = max(self.saved_ns(explanation, unit) for unit in units or (_ANY_UNIT,))
        return max(self._frac_of_time(saved_ns), self._frac_by_instructions(explanation, slow, fast))

    def _matters(self, explanation: Explanation) -> bool:
        """Return whether a quantity matters to what limits the slower side, and no better quantity was collected in its place."""
        better = explanation.stands_for
        if better and None not in (self.slower.average(better), self.faster.average(better)):
            return False
        if explanation.bound_by and self.slower.longest["limiter"] not in explanation.bound_by:
            return False
        return self.is_slower_waiting or not explanation.while_waiting

    def _is_limit(self, busy_ns: float, unit: str) -> bool:
        """Return whether a unit is busy for long enough to limit the slower side."""
        working = None if unit in OF_THE_GPU else self.slower.average(WORKING)
        return busy_ns >= self.rules.limiting_busy_frac * self.slower_ns * (1.0 if working is None else working)

    @property
    def is_slower_waiting(self) -> bool:
        """Whether no unit limits the slower side while SMs have work. Without utilisations, its verdict decides."""
        busy = [frac for name in LIMITING if (frac := self.slower.average(name)) is not None]
        if not busy:
            return bool(self.slower.longest["verdict"] == Verdict.LATENCY.value)
        return max(busy) < self.rules.limiting_busy_frac

    def saved_ns(self, explanation: Explanation, unit: str) -> float:
        """Return an upper bound of the busy time that a unit saves on the faster side; 0 if the unit is hardly busy.

        Less work saves in proportion. A higher peak does the same work in inversely less time.

        Args:
            explanation: an amount, or a share of an amount, that fell; or a peak that rose.
            unit: the utilisation of the unit that works on it; _ANY_UNIT is taken to be busy all the time.
        """
        slow, fast = self.slower.value(explanation), self.faster.value(explanation)
        slow_ns, fast_ns = (None if unit == _ANY_UNIT else side.busy_ns(unit) for side in (self.slower, self.faster))
        if not slow or fast is None:
            return 0.0
        own_ns = (self.slower_ns if slow_ns is None else slow_ns) * self._share_of_work(explanation)
        if own_ns < self.rules.least_busy_frac * self.slower_ns:
            return 0.0
        less = {"share": slow - fast, "peak": 1 - slow / (fast or slow)}.get(explanation.kind, 1 - fast / slow)
        most_ns = math.inf if slow_ns is None or fast_ns is None else max(slow_ns - fast_ns, 0.0)
        return min(own_ns * less, most_ns)

    def _frac_of_time(self, saved_ns: float) -> float:
        return min(saved_ns / (self.slower_ns - self.faster_ns), 1.0)

    def _frac_of_ratio(self, ratio: float) -> float:
        """Return the share of the slowdown that a ratio accounts for, on a logarithmic scale, because ratios multiply."""
        return min(math.log(ratio) / math.log(self.slower_ns / self.faster_ns), 1.0) if ratio > 1 else 0.0

    def _latency_ratio_without(self, cycles: float) -> float:
        """Return the latency of an instruction over what it would be with so many cycles fewer."""
        latency = self.slower.latency() or 0.0
        return latency / (latency - cycles) if latency > cycles else math.inf

    def _share_of_work(self, explanation: Explanation) -> float:
        """Return the quantity's share of the work of its unit; 0 if the total did not fall, 1 if it is unknown."""
        if not explanation.part_of:
            return 1.0
        own = self.slower.amount(explanation.part or explanation.quantity)
        slow, fast = (_known_sum(side, explanation.part_of) for side in (self.slower, self.faster))
        if own is None or slow is None or fast is None or not slow:
            return 1.0
        return min(own / slow, 1.0) if slow > fast else 0.0

    def _frac_by_instructions(self, explanation: Explanation, slow: float, fast: float) -> float:
        """Return what the number of instructions accounts for in a kernel that waits: its instructions run one after the other."""
        if not (explanation.counts_in_latency and self.is_slower_waiting):
            return 0.0
        return self._frac_of_ratio(slow / fast if fast else math.inf)


def _known_sum(side: MatchedGroups, quantities: tuple[str, ...]) -> float | None:
    known = [value for name in quantities if (value := side.amount(name)) is not None]
    return sum(known) if len(known) == len(quantities) else None
