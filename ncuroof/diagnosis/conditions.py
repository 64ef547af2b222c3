"""Conditions on quantities: the building blocks of the rules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.errors import ProfileError

_COMPARISONS: Mapping[str, tuple[Callable[[Any, float], Any], bool | None]] = {
    "<": (operator.lt, None),
    "<=": (operator.le, None),
    ">": (operator.gt, None),
    ">=": (operator.ge, None),
    "not <": (operator.ge, True),  # at least the threshold, or missing
    "not >": (operator.le, True),
    "not >=": (operator.lt, True),
    "known >": (operator.gt, False),  # above the threshold, and not missing
    "known >=": (operator.ge, False),
}
"""By operator: how to compare a value with the threshold, and the answer for a missing value (None: unknown)."""

_IS_MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a quantity with a threshold, or the claim that the quantity is missing."""

    quantity: str
    op: str
    threshold: float | None

    def __str__(self) -> str:
        """Return the condition as the rules write it."""
        threshold = "" if self.threshold is None else f" {self.threshold:g}"
        return f"{self.quantity} {self.op}{threshold}"

    def holds(self) -> pl.Expr:
        """Return true or false. Of a missing quantity: null, but true for "not …" and "missing", and false for "known …"."""
        value = pl.col(self.quantity)
        if self.threshold is None:
            return value.is_null()
        compare, of_missing = _COMPARISONS[self.op]
        held: pl.Expr = compare(value, self.threshold)
        return held if of_missing is None else held.fill_null(of_missing)

    def holds_for(self, quantities: Mapping[str, Any]) -> bool:
        """Return whether the condition holds for one kernel's quantities; false where that is unknown."""
        value = quantities.get(self.quantity)
        if self.threshold is None:
            return value is None
        compare, of_missing = _COMPARISONS[self.op]
        return bool(of_missing) if value is None else bool(compare(value, self.threshold))


def all_hold(all_of: Iterable[Condition], any_of: Sequence[Condition] = ()) -> pl.Expr:
    """Return whether all conditions of one kind hold and, if there are any, one of another; null where that is not decided."""
    alternatives = [pl.any_horizontal(condition.holds() for condition in any_of)] if any_of else []
    return pl.all_horizontal(*(condition.holds() for condition in all_of), *alternatives)


def read_conditions(entries: Iterable[Mapping[str, Any]]) -> tuple[Condition, ...]:
    """Return the conditions that entries of `profiles/rules.toml` and `profiles/rules/` state (see `read_condition`)."""
    return tuple(map(read_condition, entries))


def read_condition(entry: Mapping[str, Any]) -> Condition:
    """Return the condition that one of these entries states.

    Raises:
        ProfileError: the comparison operator is unknown.
    """
    op = entry["op"]
    if op == _IS_MISSING:
        return Condition(entry["quantity"], op, None)
    if op not in _COMPARISONS:
        raise ProfileError(f"rules.toml: comparison {op!r} is not one of {', '.join(_COMPARISONS)}, {_IS_MISSING}")
    return Condition(entry["quantity"], op, float(entry["threshold"]))
