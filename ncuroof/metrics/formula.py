"""Formulas of the catalogue: arithmetic over counters and canonical quantities, parsed once and turned into polars expressions.

Grammar: `+`, `-`, `*` and `/` over numbers, counter names, canonical quantities in braces, parenthesised terms and functions.
`max`, `min` and `sum` skip absent arguments and are null only if all are absent; `ceil` rounds up, `above_zero` raises negative
values to 0, `at_most_one` lowers larger values to 1. A formula, a function's argument or a parenthesised term may end in
conditions, `if` one `and` another: two sums compared by `<`, `<=`, `>` or `>=`, or a sum followed by `known`. Its value is null
unless all conditions hold. Everywhere else an absent counter or a null makes the whole formula null, and so does division by 0.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import polars as pl

from ncuroof.errors import ProfileError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?![\w.])|(?P<function>max|min|sum|ceil|above_zero|at_most_one)\s*(?=\()"
    r"|(?P<keyword>if|and|known)(?![\w.:])"
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

_COMPARISONS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Counter = Callable[[str], pl.Expr | None]
"""Maps a counter's name to its expression in base units, or to None if the table lacks it."""

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
    tokens = _tokens(text)
    return Formula(
        text,
        frozenset(value for kind, value in tokens if kind == "counter"),
        frozenset(value for kind, value in tokens if kind == "quantity"),
        _Parser(text, tokens).parse(),
    )


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ProfileError(f"formula {text!r}: cannot read {text[position : position + 20]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over one formula: conditional → sum → product → atom."""

    def __init__(self, text: str, tokens: Sequence[tuple[str, str]]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def parse(self) -> _Term:
        term = self._conditional()
        if self._next != len(self._tokens):
            raise ProfileError(f"formula {self._text!r}: stray {self._tokens[self._next][1]!r}")
        return term

    def _conditional(self) -> _Term:
        term, word = self._sum(), "if"
        while self._peek() == word:
            self._take()
            term, word = _both(_where, term, self._condition()), "and"
        return term

    def _condition(self) -> _Term:
        left, word = self._sum(), self._peek()
        if word == "known":
            self._take()
            return _applied(pl.Expr.is_not_null, [left])
        if word not in _COMPARISONS:
            raise ProfileError(f"formula {self._text!r}: expected a comparison or 'known', found {self._found()}")
        return _both(_COMPARISONS[self._take()], left, self._sum())

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

    def _peek(self) -> str | None:
        if self._next < len(self._tokens) and self._tokens[self._next][0] in {"symbol", "keyword"}:
            return self._tokens[self._next][1]
        return None

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _expect(self, symbol: str) -> None:
        if self._peek() != symbol:
            raise ProfileError(f"formula {self._text!r}: expected {symbol!r}, found {self._found()}")
        self._take()

    def _found(self) -> str:
        return repr(self._tokens[self._next][1]) if self._next < len(self._tokens) else "its end"


def _both(combine: Callable[[pl.Expr, pl.Expr], pl.Expr], left: _Term, right: _Term) -> _Term:
    """Return two terms combined; absent (None) for a table where either is absent."""

    def term(counter: Counter, known: frozenset[str]) -> pl.Expr | None:
        first, second = left(counter, known), right(counter, known)
        return None if first is None or second is None else combine(first, second)

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
