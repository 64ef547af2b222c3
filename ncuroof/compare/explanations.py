"""What explains a change of time: quantities that moved the way the time did, where the kernel needs what they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ncuroof.compare.rules import ComparisonRules, Explanation
from ncuroof.compare.together import Together
from ncuroof.words import Verdict


@dataclass(frozen=True, slots=True)
class Change:
    """A quantity before and after."""

    quantity: str
    words: str
    kind: str
    before: float
    after: float
    explains: bool


def changes(before: Together, after: Together, time_change: float | None, rules: ComparisonRules) -> tuple[Change, ...]:
    """Return the quantities that changed by more than their least, those that explain the change of time first.

    Args:
        before: what was launched before.
        after: what was launched after.
        time_change: of the time, as a share of it; None where it did not change beyond chance, and nothing explains that.
        rules: what may explain it.
    """
    moved = {
        each.quantity: (each, was, became)
        for each in rules.explanations
        if (was := before.value(each)) is not None
        and (became := after.value(each)) is not None
        and _size(each, was, became) >= each.least
    }
    slower = after if time_change is not None and time_change > 0 else before
    found = [
        Change(
            each.quantity,
            each.words,
            each.kind,
            was,
            became,
            explains=time_change is not None
            and _goes_with(time_change, each, was, became)
            and _matters(each, slower, rules)
            and _is_no_consequence(each, became > was, moved),
        )
        for each, was, became in moved.values()
    ]
    return tuple(sorted(found, key=lambda change: not change.explains))


def _size(explanation: Explanation, was: float, became: float) -> float:
    size = abs(became - was)
    return size if explanation.kind == "share" else size / (max(abs(was), abs(became)) or 1.0)


def _goes_with(time_change: float, explanation: Explanation, was: float, became: float) -> bool:
    return (time_change > 0) == ((became > was) == (explanation.goes_with == "time"))


def _matters(explanation: Explanation, slower: Together, rules: ComparisonRules) -> bool:
    """Return whether the slower side uses what the amount is of: bytes through an idle DRAM take no time."""
    if explanation.busy is None:
        return True
    if explanation.counts_in_latency and slower.longest["verdict"] == Verdict.LATENCY.value:
        return True
    busy = slower.average(explanation.busy)
    return busy is not None and busy >= rules.least_busy_frac


def _is_no_consequence(
    explanation: Explanation, has_grown: bool, moved: Mapping[str, tuple[Explanation, float, float]]
) -> bool:
    """Return whether a utilisation moved otherwise than its amount, and hits together with the bytes behind them."""
    if explanation.amount is not None and explanation.amount in moved:
        _, was, became = moved[explanation.amount]
        if (became > was) == has_grown:
            return False
    if explanation.misses is not None:
        if explanation.misses not in moved:
            return False
        _, was, became = moved[explanation.misses]
        return (became > was) != has_grown
    return True
