"""Formulas of the catalogue, and conditions of the rules: parsed once and turned into polars expressions.

Formulas: `+`, `-`, `*` and `/` over numbers, counter names, canonical quantities in braces, parenthesised terms and functions.
`max`, `min` and `sum` skip absent arguments and are null only if all are absent; `ceil` rounds up, `above_zero` raises negative
values to 0, `at_most_one` lowers larger values to 1. A formula, a function's argument or a parenthesised term may end in
conditions, `if` one `and` another. Its value is null unless all conditions hold. Everywhere else an absent counter or a null
makes the whole formula null, and so does division by 0.

Conditions: two sums compared by `<`, `<=`, `>` or `>=`, or a sum that `is known` or `is unknown`. A comparison with an unknown
value is unknown, but true if `or unknown` follows it, and false if `and known` does. A condition of the rules has a quantity's
name, without braces, on its left, and a number on its right.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import polars as pl

from ncuroof.errors import ProfileError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?![\w.])|(?P<function>max|min|sum|ceil|above_zero|at_most_one)\s*(?=\()"
    r"|(?P<keyword>if|and|or|is|known|unknown)(?![\w.:])"
    r"|\{(?P<quantity>[\w.]+)\}|(?P<counter>[A-Za-z_][\w.:]*)|(?P<symbol>[<>]=?|[-+*/(),]))"
)


def sum_of(terms: Iterable[pl.Expr]) -> pl.Expr:
    """Return the row-wise sum of the terms, added from left to right, with null as 0.

    `pl.sum_horizontal` adds in the order in which its threads finish, so that the last digit differs from run to run.
    """
    return reduce(operator.add, (term.fill_null(0) for term in terms))


def sum_of_known(terms: Sequence[pl.Expr]) -> pl.Expr:
    """Return the row-wise sum of the terms that are not null; null where all are null."""
    return pl.when(pl.any_horizontal(term.is_not_null() for term in terms)).then(sum_of(terms))


_FUNCTIONS: Mapping[str, Callable[..., pl.Expr]] = {
    "max": pl.max_horizontal,
    "min": pl.min_horizontal,
    "sum": lambda *terms: sum_of_known(terms),
    "ceil": lambda term: term.ceil(),
    "above_zero": lambda term: term.clip(lower_bound=0),
    "at_most_one": lambda term: term.clip(upper_bound=1),
}

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_ANSWER_BY_WORD = {"known": False, "unknown": True}
"""What holds of an unknown value, by the last word of a condition."""

Counter = Callable[[str], pl.Expr | None]
"""Maps a counter's name to its expression in base units, or to None if the table lacks it."""

_FORMULA, _CONDITION = "formula", "condition"
"""What messages call the text that is wrong."""

_Term = Callable[[Counter, frozenset[str]], pl.Expr | None]
"""Part of a formula: returns its expression for a table, or None if the table lacks something that it needs."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula.

    Attributes:
        text: the formula as written in the catalogue.
        counters: names of the counters that it reads.
        quantities: names of the canonical quantities that it reads.
        term: the parsed formula.
    """

    text: str
    counters: frozenset[str]
    quantities: frozenset[str]
    term: _Term = field(repr=False, compare=False)

    def expression(self, counter: Counter, known: frozenset[str]) -> pl.Expr | None:
        """Return the formula as an expression, or None if the table lacks something that it needs.

        Args:
            counter: maps a counter's name to its expression in base units, or to None if the table lacks it.
            known: canonical quantities that the table has as columns so far.
        """
        return self.term(counter, known)


def parse(text: str) -> Formula:
    """Return the formula written in `text`.

    Raises:
        ProfileError: the text is not a formula.
    """
    tokens = _tokens(text, _FORMULA)
    return Formula(
        text,
        frozenset(value for kind, value in tokens if kind == "counter"),
        frozenset(value for kind, value in tokens if kind == "quantity"),
        _Parser(text, tokens, _FORMULA).parse(),
    )


@dataclass(frozen=True, slots=True)
class Comparator:
    """How a condition asks about a value.

    Attributes:
        op: one of COMPARISONS; None where the condition asks only whether the value is known.
        if_unknown: whether the condition holds of an unknown value; None if that is unknown, too.
    """

    op: str | None
    if_unknown: bool | None

    def holds(self, left: pl.Expr, right: pl.Expr | float | None) -> pl.Expr:
        """Return true or false, or null where an unknown value leaves it undecided."""
        if self.op is None:
            return left.is_null() if self.if_unknown else left.is_not_null()
        held: pl.Expr = COMPARISONS[self.op](left, right)
        return held if self.if_unknown is None else held.fill_null(self.if_unknown)


def parse_condition(text: str) -> tuple[str, Comparator, float | None]:
    """Return a condition of the rules: a quantity's name, how it is compared, and with which number, if with one.

    Raises:
        ProfileError: the text is not a condition.
    """
    return _Parser(text, _tokens(text, _CONDITION), _CONDITION).parse_condition()


def _tokens(text: str, what: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ProfileError(f"{what} {text!r}: cannot read {text[position : position + 20]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over one formula: conditional → sum → product → atom. Or over one condition of the rules."""

    def __init__(self, text: str, tokens: Sequence[tuple[str, str]], what: str) -> None:
        self._text = text
        self._tokens = tokens
        self._what = what
        self._next = 0

    def parse(self) -> _Term:
        term = self._conditional()
        self._end()
        return term

    def parse_condition(self) -> tuple[str, Comparator, float | None]:
        name = self._take_kind("counter", "the name of a quantity")
        op = self._op()
        sign = "-" if op is not None and self._peek() == "-" and self._take() else ""
        threshold = None if op is None else float(sign + self._take_kind("number", "a number"))
        comparison = Comparator(op, self._if_unknown(op))
        self._end()
        return name, comparison, threshold

    def _conditional(self) -> _Term:
        term, word = self._sum(), "if"
        while self._peek() == word:
            self._take()
            term, word = _both(_where, term, self._condition()), "and"
        return term

    def _condition(self) -> _Term:
        left, op = self._sum(), self._op()
        right = left if op is None else self._sum()
        return _compared(left, right, Comparator(op, self._if_unknown(op)))

    def _op(self) -> str | None:
        """Take a comparison; or the word "is", for which the answer is None."""
        word = self._peek()
        if word != "is" and word not in COMPARISONS:
            raise self._unexpected("a comparison, 'is known' or 'is unknown'")
        self._take()
        return None if word == "is" else word

    def _if_unknown(self, op: str | None) -> bool | None:
        """Take what follows a comparison, or "is", and return what holds of an unknown value."""
        if op is None:
            return self._answer("'known' or 'unknown'", *_ANSWER_BY_WORD)
        if self._peek() == "or":
            self._take()
            return self._answer("'unknown'", "unknown")
        if self._peek() == "and" and self._peek(1) == "known":
            self._take()
            return self._answer("'known'", "known")
        return None

    def _answer(self, wanted: str, *words: str) -> bool:
        if self._peek() not in words:
            raise self._unexpected(wanted)
        return _ANSWER_BY_WORD[self._take()]

    def _sum(self) -> _Term:
        total = self._product()
        while self._peek() in {"+", "-"}:
            combine = operator.add if self._take() == "+" else operator.sub
            total = _both(combine, total, self._product())
        return total

    def _product(self) -> _Term:
        product = self._atom()
        while self._peek() in {"*", "/"}:
            if self._take() == "*":
                product = _both(operator.mul, product, self._atom())
            else:
                is_number = self._next < len(self._tokens) and self._tokens[self._next][0] == "number"
                product = _both(operator.truediv if is_number else _quotient, product, self._atom())
        return product

    def _atom(self) -> _Term:
        if self._next >= len(self._tokens):
            raise ProfileError(f"formula {self._text!r}: ends too early")
        kind, value = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return lambda _counter, _known: pl.lit(float(value))
        if kind == "function":
            return self._function(value)
        if kind == "quantity":
            return lambda _counter, known: pl.col(value) if value in known else None
        if kind == "counter":
            return lambda counter, _known: counter(value)
        if value != "(":
            raise ProfileError(f"formula {self._text!r}: stray {value!r}")
        inner = self._conditional()
        self._expect(")")
        return inner

    def _function(self, name: str) -> _Term:
        self._expect("(")
        arguments = [self._conditional()]
        while self._peek() == ",":
            self._take()
            arguments.append(self._conditional())
        self._expect(")")
        return _applied(_FUNCTIONS[name], arguments)

    def _peek(self, ahead: int = 0) -> str | None:
        place = self._next + ahead
        if place < len(self._tokens) and self._tokens[place][0] in {"symbol", "keyword"}:
            return self._tokens[place][1]
        return None

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _take_kind(self, kind: str, wanted: str) -> str:
        if self._next >= len(self._tokens) or self._tokens[self._next][0] != kind:
            raise self._unexpected(wanted)
        return self._take()

    def _expect(self, symbol: str) -> None:
        if self._peek() != symbol:
            raise self._unexpected(repr(symbol))
        self._take()

    def _end(self) -> None:
        if self._next != len(self._tokens):
            raise ProfileError(f"{self._what} {self._text!r}: stray {self._tokens[self._next][1]!r}")

    def _unexpected(self, wanted: str) -> ProfileError:
        found = repr(self._tokens[self._next][1]) if self._next < len(self._tokens) else "its end"
        return ProfileError(f"{self._what} {self._text!r}: expected {wanted}, found {found}")


def _both(combine: Callable[[pl.Expr, pl.Expr], pl.Expr], left: _Term, right: _Term) -> _Term:
    """Return two terms combined; absent (None) for a table where either is absent."""

    def term(counter: Counter, known: frozenset[str]) -> pl.Expr | None:
        first, second = left(counter, known), right(counter, known)
        return None if first is None or second is None else combine(first, second)

    return term


def _compared(left: _Term, right: _Term, comparison: Comparator) -> _Term:
    """Return a comparison of two terms. Where either is absent, it is true if it holds of unknown values, else absent (None)."""

    def term(counter: Counter, known: frozenset[str]) -> pl.Expr | None:
        first, second = left(counter, known), right(counter, known)
        if first is None or second is None:
            return pl.lit(value=True) if comparison.if_unknown else None
        return comparison.holds(first, second)

    return term


def _quotient(dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    return dividend / pl.when(divisor != 0).then(divisor)


def _where(value: pl.Expr, condition: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(value)


def _applied(function: Callable[..., pl.Expr], arguments: Sequence[_Term]) -> _Term:
    """Return a function applied to the arguments that are not absent; absent (None) for a table where all are."""

    def term(counter: Counter, known: frozenset[str]) -> pl.Expr | None:
        found = (argument(counter, known) for argument in arguments)
        present = [expression for expression in found if expression is not None]
        return function(*present) if present else None

    return term
