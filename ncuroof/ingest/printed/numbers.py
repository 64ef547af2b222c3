"""Parses numbers as ncu prints them in any locale: 1,234.56 or 1.234,56 or 1 234,56; the notation is inferred from the whole file.

ncu prints two or six decimals, or none. So three digits after a separator are a group of thousands, unless the same separator
occurs elsewhere in the file before another number of digits. A file with contradictory evidence is rejected: a guess could be wrong
by a factor of 1000.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from ncuroof.errors import ReportFormatError

_SPACES = "[ \u00a0\u202f'’]"
_NOT_FINITE = r"^(?:\(!\) ?)?[-+]?(?:nan|inf|infinity|1\.#\w+)(?:\([^)]*\))?$"
_MISSING = ("", "n/a", "(!) n/a", "no data")
_INSTANCES = r"\s+\(.*$"
"""Instance values after the number of a counter, as printed with --print-metric-instances."""

_WITH_SIGNS = r"^[-+]?(?:\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,]\d*)?(?:[eE][-+]?\d+)?$"
"""A number, possibly with points or commas between its digits, in any notation; 1.2.3 is not one."""

_LOOKS_NUMERIC = rf"^[-+]?\d(?:[\d.,]|{_SPACES})*(?:[eE][-+]?\d+)?$"


@dataclass(frozen=True, slots=True)
class Notation:
    """How a file writes numbers.

    Attributes:
        decimal: the decimal separator.
        grouping: the thousands separator, besides spaces and apostrophes.
        has_plain_zero: whether zero is written as 0. Then 0.00 is a small value; otherwise, with --print-fp, it can be either.
    """

    decimal: str
    grouping: str
    has_plain_zero: bool

    def is_rounded_away(self, cells: pl.Expr) -> pl.Expr:
        """Return whether a cell is a non-zero number that two decimals round to zero."""
        return pl.lit(self.has_plain_zero) & cells.str.strip_chars().str.contains(rf"^-?0[{self.decimal}]00$")

    def numbers(self, cells: pl.Expr) -> pl.Expr:
        """Return text as numbers; null for text that is not a number, NaN for NaN and infinity."""
        text = cells.str.strip_chars().str.replace(_INSTANCES, "")
        plain = text.str.replace_all(_SPACES, "").str.replace_all(self.grouping, "", literal=True)
        number = plain.str.replace(self.decimal, ".", literal=True).cast(pl.Float64, strict=False)
        return pl.when(text.str.contains(_LOOKS_NUMERIC)).then(number).when(_is_not_finite(text)).then(float("nan"))


def texts(cells: pl.Expr) -> pl.Expr:
    """Return the cells that are text; null for numbers, and for cells that say that there is no value."""
    text = cells.str.strip_chars()
    is_number = text.str.replace(_INSTANCES, "").str.contains(_LOOKS_NUMERIC) | _is_not_finite(text)
    return pl.when(~(is_number | text.is_in(_MISSING))).then(text)


def _is_not_finite(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.contains(_NOT_FINITE)


def notation(columns: Iterable[pl.Series], where: str) -> Notation:
    """Return how a file writes its numbers.

    Raises:
        ReportFormatError: the file uses two notations.
    """
    cells = pl.concat([pl.Series("cell", [], pl.String), *(column.alias("cell").unique() for column in columns)])
    text = cells.unique().str.strip_chars().str.replace(_INSTANCES, "").str.replace_all(_SPACES, "")
    text = text.filter(text.str.contains(_WITH_SIGNS) & text.str.contains("[.,]"))
    decimals = {sign: _with_decimals(text, sign) for sign in ".,"}
    groups = {sign: _first(text, rf"[{sign}]\d+[{sign}]") for sign in ".,"}
    for one, other in ((decimals["."], decimals[","]), *((decimals[sign], groups[sign]) for sign in ".,")):
        if one is not None and other is not None:
            raise ReportFormatError(
                f"{where}: numbers are written in two notations, as in {one} and in {other}",
                hint="print it again in one locale: LC_ALL=C ncu --import REPORT --page raw --csv",
            )
    is_point_grouping = decimals["."] is None and text.str.contains(".", literal=True).any()
    decimal = "," if decimals[","] is not None or is_point_grouping else "."
    return Notation(decimal, "." if decimal == "," else ",", has_plain_zero=(cells == "0").any())


def _with_decimals(text: pl.Series, decimal: str) -> str | None:
    """Return a number in which `decimal` can only be the decimal separator, or None if there is none."""
    other = "," if decimal == "." else "."
    sign = f"[{decimal}]"
    # After it, not exactly three digits; before it, a group with the other separator, a lone zero, or more than three digits.
    shapes = (
        rf"{sign}(?:\d{{0,2}}|\d{{4,}})(?:[eE]|$)",
        rf"[{other}]\d{{3}}{sign}\d",
        rf"^[-+]?0{sign}",
        rf"^[-+]?\d{{4,}}{sign}",
        rf"{sign}\d+[eE]",
    )
    return _first(text, "|".join(f"(?:{shape})" for shape in shapes))


def _first(text: pl.Series, pattern: str) -> str | None:
    """Return the first match in sorted order, as an example for the error message."""
    found = text.filter(text.str.contains(pattern))
    return None if found.is_empty() else str(found.sort()[0])
