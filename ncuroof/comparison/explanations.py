"""What explains a change of time: quantities that moved the way the time did, where the kernel needs what they are of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.rules import ComparisonRules, Explanation
from ncuroof.words import Verdict

_FOLLOWS_RATIO = 1.1
"""A utilisation that moved by no more than this beyond its amount followed it."""

_MOVED_RATIO = 1.05
"""Bytes behind hits that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """A quantity before and after.

    Attributes:
        quantity, words, kind: as of `Explanation`.
        before, after: its values.
        explains: whether it explains the change of time.
        accompanies: whether it only moved with the time, as a utilisation of as much work has to.
    """

    quantity: str
    words: str
    kind: str
    before: float
    after: float
    explains: bool
    accompanies: bool = False


def changes(
    before: MatchedGroups, after: MatchedGroups, time_change: float | None, rules: ComparisonRules
) -> tuple[QuantityChange, ...]:
    """Return the quantities that changed by more than their least, those that explain the change of time first.

    Args:
        before: what was launched before.
        after: what was launched after.
        time_change: of the time, as a share of it; None where it did not change beyond chance, and nothing explains that.
        rules: what may explain it.
    """
    moved = [
        (each, was, became)
        for each in rules.explanations
        if (was := before.value(each)) is not None
        and (became := after.value(each)) is not None
        and _size(each, was, became) >= each.least
    ]
    slower = after if time_change is not None and time_change > 0 else before
    found = [
        QuantityChange(
            each.quantity,
            each.words,
            each.kind,
            was,
            became,
            explains=time_change is not None
            and _goes_with(time_change, each, was, became)
            and _matters(each, slower, (was, became), rules)
            and _is_no_consequence(each, before, after),
        )
        for each, was, became in moved
    ]
    if not any(
        change.explains and _is_by_itself(each, change) for (each, _, _), change in zip(moved, found, strict=True)
    ):
        found = [replace(change, explains=False, accompanies=change.explains) for change in found]
    return tuple(sorted(found, key=lambda change: not (change.explains or change.accompanies)))


def _is_by_itself(explanation: Explanation, change: QuantityChange) -> bool:
    """Return whether a quantity can be the only reason: a utilisation is an amount over the time, but where it was zero."""
    return explanation.amount is None or not change.before or not change.after


def _size(explanation: Explanation, was: float, became: float) -> float:
    size = abs(became - was)
    return size if explanation.kind == "share" else size / (max(abs(was), abs(became)) or 1.0)


def _goes_with(time_change: float, explanation: Explanation, was: float, became: float) -> bool:
    return (time_change > 0) == ((became > was) == (explanation.goes_with == "time"))


def _matters(
    explanation: Explanation, slower: MatchedGroups, values: tuple[float, float], rules: ComparisonRules
) -> bool:
    """Return whether the kernel uses what the explanation is about: bytes through a DRAM that is known to idle take no time.

    An amount has to be of what keeps the slower side busy, a utilisation to be considerable on either side.
    """
    if explanation.amount is not None:
        return max(values) >= rules.least_busy_frac
    if explanation.busy is None:
        return True
    if explanation.counts_in_latency and slower.longest["verdict"] == Verdict.LATENCY.value:
        return True
    busy = slower.average(explanation.busy)
    return busy is None or busy >= rules.least_busy_frac


def _is_no_consequence(explanation: Explanation, before: MatchedGroups, after: MatchedGroups) -> bool:
    """Return whether a utilisation moved by more than its amount did, and hits together with the bytes behind them.

    What was not collected speaks against nothing.
    """
    own = _ratio(before.value(explanation), after.value(explanation))
    if explanation.amount is not None and own is not None:
        amount = _ratio(before.amount(explanation.amount), after.amount(explanation.amount))
        if amount is not None and own * amount > 0 and abs(own) <= abs(amount) + math.log(_FOLLOWS_RATIO):
            return False
    if explanation.misses is not None and own is not None:
        misses = _ratio(before.amount(explanation.misses), after.amount(explanation.misses))
        return misses is None or (misses * own < 0 and abs(misses) >= math.log(_MOVED_RATIO))
    return True


def _ratio(was: float | None, became: float | None) -> float | None:
    """Return the logarithm of after over before; None where either is not known or zero."""
    return math.log(became / was) if was and became else None
