"""Conditions on quantities: the building blocks of the rules.

A condition is text that the parser of formulas reads: "occupancy.waves >= 1", "access.l2_load_waste_frac >= 0.05 or unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.errors import ProfileError
from ncuroof.metrics.formula import COMPARISONS, Comparator, parse_condition


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a quantity with a threshold, or the claim that the quantity is known or unknown.

    Attributes:
        quantity: its name.
        op: "<", "<=", ">" or ">="; None without a threshold.
        threshold: what the quantity is compared with; None where it only has to be known or unknown.
        if_unknown: whether the condition holds of a missing quantity; None if that is unknown, too.
    """

    quantity: str
    op: str | None
    threshold: float | None
    if_unknown: bool | None = None

    def __str__(self) -> str:
        """Return the condition as the rules write it."""
        word = "unknown" if self.if_unknown else "known"
        if self.op is None:
            return f"{self.quantity} is {word}"
        addition = {None: "", True: f" or {word}", False: f" and {word}"}[self.if_unknown]
        return f"{self.quantity} {self.op} {self.threshold:g}{addition}"

    def holds(self) -> pl.Expr:
        """Return true or false; of a missing quantity `if_unknown`, or null."""
        return Comparator(self.op, self.if_unknown).holds(pl.col(self.quantity), self.threshold)

    def holds_for(self, quantities: Mapping[str, Any]) -> bool:
        """Return whether the condition holds for one kernel's quantities; false where that is unknown."""
        value = quantities.get(self.quantity)
        if value is None:
            return bool(self.if_unknown)
        return not self.if_unknown if self.op is None else bool(COMPARISONS[self.op](value, self.threshold))


def all_hold(all_of: Iterable[Condition], any_of: Sequence[Condition] = ()) -> pl.Expr:
    """Return whether all conditions of one kind hold and, if there are any, one of another; null where that is not decided."""
    alternatives = [pl.any_horizontal(condition.holds() for condition in any_of)] if any_of else []
    return pl.all_horizontal(*(condition.holds() for condition in all_of), *alternatives)


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions of a list in `profiles/rules.toml` or `profiles/rules/`.

    Raises:
        ProfileError: it is no list, or an entry is no condition.
    """
    if not isinstance(texts, (list, tuple)):
        raise ProfileError(f"expected a list of conditions, found {texts!r}")
    return tuple(map(read_condition, texts))


def read_condition(text: str) -> Condition:
    """Return the condition that a text states.

    Raises:
        ProfileError: the text is not a condition.
    """
    if not isinstance(text, str):
        raise ProfileError(f"expected a condition, such as 'occupancy.waves >= 1', found {text!r}")
    quantity, comparison, threshold = parse_condition(text)
    return Condition(quantity, comparison.op, threshold, comparison.if_unknown)
