"""Converts printed text to numbers in the units in which a report stores them, whatever unit and locale it was printed in.

A locale prints 1,234.56 or 1.234,56 or 1 234,56; the notation is inferred from the whole file. ncu prints two or six decimals, or
none. So three digits after a separator are a group of thousands, unless the same separator occurs elsewhere in the file before
another number of digits. A file with contradictory evidence is rejected: a guess could be wrong by a factor of 1000.

Units are printed with prefixes that fit the column. Source: `profiles/printed.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import polars as pl

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.printed.labels import SUFFIX, cycles_of_share
from ncuroof.ingest.printed.tables import DURATION, Gathered, is_without_extent
from ncuroof.ingest.printed.unknown_counters import UNAVAILABLE
from ncuroof.ingest.raw_report import GREATEST_VALUE, LEAST_VALUE, is_measured, without_columns
from ncuroof.resources import profile_file

_PER_CYCLE = ".per_cycle_"
"""Part of the names of counters that get multiplied by cycles: for these, a value below 0.005 that is printed as 0.00 is not
negligible. Percentages, fractions and waves printed as 0.00 can be taken as zero."""

_SPACES = "[ \u00a0\u202f'’]"
_NOT_FINITE = r"^(?:\(!\) ?)?[-+]?(?:nan|inf|infinity|1\.#\w+)(?:\([^)]*\))?$"
_MISSING = ("", "n/a", UNAVAILABLE, "no data")
_INSTANCES = r"\s+\(.*$"
"""Instance values after the number of a counter, as printed with --print-metric-instances."""

_WITH_SIGNS = r"^[-+]?(?:\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,]\d*)?(?:[eE][-+]?\d+)?$"
"""A number, possibly with points or commas between its digits, in any notation; 1.2.3 is not one."""

_LOOKS_NUMERIC = rf"^[-+]?\d(?:[\d.,]|{_SPACES})*(?:[eE][-+]?\d+)?$"

_NANOSECONDS_PER_SECOND = 1e9

_CLOCKS = (
    DURATION,
    *(f"{unit}__cycles_elapsed.{each}" for unit in ("gpc", "sm", "smsp") for each in ("avg", "max", "sum")),
)
"""Counters that are never zero for a measured launch."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of all launches, one row per launch and one column per counter.

    Attributes:
        numbers: Float64; null if there is no number.
        not_finite: Boolean, the columns of `numbers`: whether the printed value is a number that is not finite or not possible.
        texts: String.
        units: unit of each column of `numbers`, as a report stores it.
    """

    numbers: pl.DataFrame
    not_finite: pl.DataFrame
    texts: pl.DataFrame
    units: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Part:
    """Values of some of the launches, in rows `rows`; see `Values`."""

    rows: Sequence[int]
    numbers: pl.DataFrame
    texts: pl.DataFrame
    units: Mapping[str, str]


def values_of(gathered: Gathered, where: str) -> Values:
    """Return the values of the gathered rows.

    Raises:
        ReportFormatError: numbers are written in two notations.
    """
    columns = [column for _, table, _ in gathered.wide for column in table.iter_columns()]
    how = notation([*columns, gathered.long["text"]], where)
    parts = [_of_launches(rows, table, units, how) for rows, table, units in gathered.wide if table.width]
    if not gathered.long.is_empty():
        parts.append(_of_cells(gathered.long, how))
    n_rows = len(gathered.launches)
    numbers = _joined([(part.rows, part.numbers) for part in parts], n_rows)
    is_possible = (pl.all() == 0) | pl.all().abs().is_between(LEAST_VALUE, GREATEST_VALUE)
    possible = numbers.select(pl.when(is_possible).then(pl.all())) if numbers.width else numbers
    has_number = numbers.select(pl.all().is_not_null())
    return Values(
        numbers=possible,
        not_finite=has_number.select(pl.col(name) & possible[name].is_null() for name in has_number.columns),
        texts=_joined([(part.rows, part.texts) for part in parts], n_rows),
        units=_merged(part.units for part in parts),
    )


def without_failed(values: Values, launches: Sequence[Mapping[str, str]]) -> Values:
    """Return the values without those of failed launches, for which no measured value is finite.

    With `--print-units auto`, ncu prints zeros in place of the `nan` of a failed launch. Every launch takes time and cycles, and
    has a block.

    Args:
        values: the values of all launches.
        launches: the cells of each launch in the columns IDENTITY.
    """
    has_shape = pl.Series([not is_without_extent(launch) for launch in launches], dtype=pl.Boolean)
    clocks = values.numbers.select(name for name in _CLOCKS if name in values.numbers.columns)
    collected = [name for name in values.numbers.columns if is_measured(name)]
    if not collected or (has_shape.all() and not clocks.width):
        return values
    longest = clocks.max_horizontal() if clocks.width else pl.repeat(None, len(launches), dtype=pl.Float64, eager=True)
    has_failed = (longest == 0).fill_null(value=False) | (longest.is_null() & ~has_shape)
    measured = pl.col(collected)
    return replace(
        values,
        numbers=values.numbers.with_columns(pl.when(~has_failed).then(measured)),
        not_finite=values.not_finite.with_columns(
            values.not_finite[name] | (has_failed & values.numbers[name].is_not_null()) for name in collected
        ),
    )


def _of_launches(rows: Sequence[int], table: pl.DataFrame, printed: Mapping[str, str], how: Notation) -> _Part:
    """Return the values of a table that has a row per launch."""
    stored = {name: load_printed_units().stored(printed.get(name, "")) for name in table.columns}
    cells = {name: (pl.col(name), stored[name][1]) for name in table.columns}
    numbers = table.select(
        _known(how.numbers(cell) * factor, how.is_lost(cell, pl.lit(name))) for name, (cell, factor) in cells.items()
    )
    as_text = table.select(texts(pl.all()))
    held, held_texts = (_held(each) for each in (numbers, as_text))
    return _Part(rows, numbers.select(held), as_text.select(held_texts), {name: stored[name][0] for name in held})


def _of_cells(cells: pl.DataFrame, how: Notation) -> _Part:
    """Return the values of tables that have a row per value; if a counter is printed twice, the first value wins."""
    stored = {unit: load_printed_units().stored(unit) for unit in cells["unit"].unique()}
    factor, unit = (
        pl.col("unit").replace_strict({name: each[place] for name, each in stored.items()}, return_dtype=dtype)
        for place, dtype in ((1, pl.Float64), (0, pl.String))
    )
    number = how.numbers(pl.col("text")) * factor
    cells = cells.select(
        "row",
        "counter",
        unit.alias("unit"),
        _known(number, how.is_lost(pl.col("text"), pl.col("counter"))).alias("number"),
        texts(pl.col("text")).alias("text"),
    )
    rows = cells["row"].unique(maintain_order=True)
    numbers, as_text = (_spread(cells.filter(pl.col(value).is_not_null()), value, rows) for value in ("number", "text"))
    counter_units = cells.filter(pl.col("number").is_not_null()).select("counter", "unit").unique(maintain_order=True)
    units = _merged({counter: unit} for counter, unit in counter_units.iter_rows())
    return _Part(rows.to_list(), numbers, as_text, units)


def with_exact_shares(numbers: pl.DataFrame, units: Mapping[str, str]) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """Return the counters and their units, with each share of active cycles computed from the cycles if these are known."""
    exact, known = [], dict(units)
    for active in numbers.columns:
        share = f"{active.removesuffix('.avg')}{SUFFIX}"
        cycles = cycles_of_share(share)
        if cycles is not None and cycles[0] == active and cycles[1] in numbers.columns:
            elapsed = pl.col(cycles[1])
            computed = pl.when(elapsed > 0).then(100 * pl.col(active) / elapsed)
            exact.append((pl.coalesce(computed, share) if share in numbers.columns else computed).alias(share))
            known.setdefault(share, "%")
    return (numbers.with_columns(exact) if exact else numbers), known


def _spread(cells: pl.DataFrame, value: str, rows: pl.Series) -> pl.DataFrame:
    if cells.is_empty():
        return without_columns(len(rows))
    wide = cells.pivot("counter", index="row", values=value, aggregate_function="first", maintain_order=True)
    return rows.to_frame().join(wide, on="row", how="left", maintain_order="left").drop("row")


def _known(number: pl.Expr, is_lost: pl.Expr) -> pl.Expr:
    """Return the numbers; null if rounding has lost them."""
    return pl.when(~is_lost).then(number)


def _held(table: pl.DataFrame) -> list[str]:
    return [name for name in table.columns if table[name].null_count() < table.height]


def _joined(parts: Sequence[tuple[Sequence[int], pl.DataFrame]], n_rows: int) -> pl.DataFrame:
    """Return the tables concatenated into one of `n_rows` rows, in the order of the launches."""
    parts = [(rows, table) for rows, table in parts if table.width]
    if not parts:
        return without_columns(n_rows)
    if len(parts) == 1 and list(parts[0][0]) == list(range(n_rows)):
        return parts[0][1]
    numbered = [table.with_columns(pl.Series("", rows, pl.UInt32)) for rows, table in parts]
    every = pl.DataFrame({"": pl.Series(range(n_rows), dtype=pl.UInt32)})
    together = pl.concat(numbered, how="diagonal")
    return every.join(together, on="", how="left", maintain_order="left").drop("")


def _merged(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the units of all parts. If two parts disagree, the result names both units, so that no scale is known for it."""
    units: dict[str, str] = {}
    for part in parts:
        for name, unit in part.items():
            before = units.setdefault(name, unit)
            if before != unit:
                units[name] = f"{before} and {unit}" if before and unit else before or unit
    return units


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

    def is_lost(self, cells: pl.Expr, counter: pl.Expr) -> pl.Expr:
        """Return whether two decimals are too few for what is computed from a number.

        For a counter per cycle, they are if the number is rounded to zero. For a share that is multiplied up, they also are if a
        single digit is left.
        """
        text = cells.str.strip_chars()
        is_zero = pl.lit(self.has_plain_zero) & text.str.contains(rf"^-?0[{self.decimal}]00$")
        is_coarse = text.str.contains(rf"^0[{self.decimal}]0\d?$")
        multiplied_up = load_printed_units().multiplied_up
        return (is_zero & counter.str.contains(_PER_CYCLE, literal=True)) | (is_coarse & counter.is_in(multiplied_up))

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


@dataclass(frozen=True, slots=True)
class PrintedUnits:
    """How ncu prints units.

    Attributes:
        factor_by_prefix: factor of each decimal prefix.
        prefixed: units that are printed with prefixes.
        nanoseconds: nanoseconds in each unit of time, by the word for it.
        hertz: units that mean hertz.
        multiplied_up: percentages that are computed further, to bytes or instructions.
    """

    factor_by_prefix: Mapping[str, float]
    prefixed: frozenset[str]
    nanoseconds: Mapping[str, float]
    hertz: frozenset[str]
    multiplied_up: tuple[str, ...]

    def stored(self, unit: str) -> tuple[str, float]:
        """Return the unit in which a report stores a value printed in `unit`, and the factor from printed to stored values.

        Of a partly unknown unit, only the known parts are converted; code that scales counters rejects what remains.
        """
        counted, slash, per = unit.strip().partition("/")
        if not slash:
            return self._counted(counted)
        what, factor = self._counted(counted)
        if per in self.nanoseconds:
            stored, factor = f"{what or '1'}/s", factor * _NANOSECONDS_PER_SECOND / self.nanoseconds[per]
            return ("hz" if stored in self.hertz else stored), factor
        each, divisor = self._counted(per)
        if not what:
            return "", factor / divisor  # as in a report, where something counted per cycle may have no unit
        return (f"{what}/{each}" if each else what), factor / divisor

    def _counted(self, word: str) -> tuple[str, float]:
        if word in self.nanoseconds:
            return "ns", self.nanoseconds[word]
        if word[1:] in self.prefixed and word[0] in self.factor_by_prefix:
            return word[1:], self.factor_by_prefix[word[0]]
        return word, 1.0


@cache
def load_printed_units() -> PrintedUnits:
    """Return what ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("printed.toml") as raw:
        table = raw["units"]
        return PrintedUnits(
            table["prefixes"],
            frozenset(table["prefixed"]),
            table["nanoseconds"],
            frozenset(table["hertz"]),
            tuple(table["multiplied_up"]),
        )
