"""Formulas of the catalogue: arithmetic over counters and canonical quantities, turned into polars expressions.

Grammar: sums, products and quotients of numbers, counter names, canonical quantities in braces, parentheses, and the
functions `max`, `min` and `sum`, which skip what is absent (their result is null only when everything is), `ceil`, and
`above_zero`, which turns what is negative into 0.
Everywhere else an absent counter or a null makes the whole formula null, and so does a division by zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.errors import ProfileError

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)(?![\w.])|(?P<function>max|min|sum|ceil|above_zero)\s*(?=\()"
    r"|\{(?P<quantity>[\w.]+)\}|(?P<counter>[A-Za-z_][\w.:]*)|(?P<symbol>[-+*/(),]))"
)

_FUNCTIONS: Mapping[str, Callable[..., pl.Expr]] = {
    "max": pl.max_horizontal,
    "min": pl.min_horizontal,
    "sum": lambda *terms: pl.when(pl.any_horizontal(*(t.is_not_null() for t in terms))).then(pl.sum_horizontal(*terms)),
    "ceil": lambda term: term.ceil(),
    "above_zero": lambda term: term.clip(lower_bound=0),
}


class _AbsentError(Exception):
    """A counter that the formula needs is not in the table."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula.

    Attributes:
        text: the formula as the catalogue writes it.
        counters: the counters it reads.
        quantities: the canonical quantities it reads.
    """

    text: str
    counters: frozenset[str]
    quantities: frozenset[str]

    def expression(self, counter: Callable[[str], pl.Expr | None], known: frozenset[str]) -> pl.Expr | None:
        """Return the formula as an expression, or None where it needs what the table does not hold.

        Args:
            counter: gives the expression of a counter in base units, or None if the table lacks it.
            known: canonical quantities that are columns of the table by now.
        """
        try:
            return _Parser(self.text, counter, known).parse()
        except _AbsentError:
            return None


def parse(text: str) -> Formula:
    """Return the formula that `text` spells.

    Raises:
        ProfileError: the text is not a formula.
    """
    tokens = _tokens(text)
    formula = Formula(
        text,
        frozenset(value for kind, value in tokens if kind == "counter"),
        frozenset(value for kind, value in tokens if kind == "quantity"),
    )
    _Parser(text, pl.col, formula.quantities).parse()
    return formula


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
    """Recursive descent over one formula: sum → product → atom."""

    def __init__(self, text: str, counter: Callable[[str], pl.Expr | None], known: frozenset[str]) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._counter = counter
        self._known = known

    def parse(self) -> pl.Expr:
        expression = self._sum()
        if self._next != len(self._tokens):
            raise ProfileError(f"formula {self._text!r}: stray {self._tokens[self._next][1]!r}")
        return expression

    def _sum(self) -> pl.Expr:
        total = self._product()
        while self._peek() in {"+", "-"}:
            total = total + self._product() if self._take() == "+" else total - self._product()
        return total

    def _product(self) -> pl.Expr:
        product = self._atom()
        while self._peek() in {"*", "/"}:
            if self._take() == "*":
                product = product * self._atom()
            else:
                is_number = self._next < len(self._tokens) and self._tokens[self._next][0] == "number"
                divisor = self._atom()
                product = product / (divisor if is_number else pl.when(divisor != 0).then(divisor))
        return product

    def _atom(self) -> pl.Expr:
        if self._next >= len(self._tokens):
            raise ProfileError(f"formula {self._text!r}: ends too early")
        kind, value = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return pl.lit(float(value))
        if kind == "function":
            return self._function(value)
        if kind == "quantity":
            if value not in self._known:
                raise _AbsentError(value)
            return pl.col(value)
        if kind == "counter":
            expression = self._counter(value)
            if expression is None:
                raise _AbsentError(value)
            return expression
        if value != "(":
            raise ProfileError(f"formula {self._text!r}: stray {value!r}")
        inner = self._sum()
        self._expect(")")
        return inner

    def _function(self, name: str) -> pl.Expr:
        self._expect("(")
        terms: list[pl.Expr] = []
        absent: _AbsentError | None = None
        while True:
            start = self._next
            try:
                terms.append(self._sum())
            except _AbsentError as error:
                absent = error
                self._next = start
                self._skip_argument()
            if self._take() == ")":
                break
        if not terms:
            raise absent or ProfileError(f"formula {self._text!r}: {name}() of nothing")
        return _FUNCTIONS[name](*terms)

    def _skip_argument(self) -> None:
        depth = 0
        while depth > 0 or self._peek() not in {",", ")"}:
            depth += {"(": 1, ")": -1}.get(self._take(), 0)

    def _peek(self) -> str | None:
        if self._next < len(self._tokens) and self._tokens[self._next][0] == "symbol":
            return self._tokens[self._next][1]
        return None

    def _take(self) -> str:
        if self._next >= len(self._tokens):
            raise ProfileError(f"formula {self._text!r}: ends too early")
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _expect(self, symbol: str) -> None:
        if self._take() != symbol:
            raise ProfileError(f"formula {self._text!r}: expected {symbol!r}")
