"""Converts printed text to numbers in the units in which a report stores them, whatever unit and locale it was printed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.ingest.printed.numbers import Notation, notation, texts
from ncuroof.ingest.printed.tables import Gathered
from ncuroof.ingest.printed.units import load_printed_units
from ncuroof.ingest.result_tables import GREATEST_VALUE, LEAST_VALUE, without_columns

_PER_CYCLE = ".per_cycle_"
"""Part of the names of counters that get multiplied by cycles: for these, a value below 0.005 that is printed as 0.00 is not
negligible. Percentages, fractions and waves printed as 0.00 can be taken as zero."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of all launches, one row per launch and one column per counter.

    Attributes:
        numbers: Float64, null where there is none.
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


def _of_launches(rows: Sequence[int], table: pl.DataFrame, printed: Mapping[str, str], how: Notation) -> _Part:
    """Return the values of a table that has a row per launch."""
    stored = {name: load_printed_units().stored(printed.get(name, "")) for name in table.columns}
    cells = {name: (pl.col(name), stored[name][1]) for name in table.columns}
    numbers = table.select(
        _known(how.numbers(cell) * factor, how.is_rounded_away(cell) & (_PER_CYCLE in name))
        for name, (cell, factor) in cells.items()
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
    is_per_cycle = pl.col("counter").str.contains(_PER_CYCLE, literal=True)
    cells = cells.select(
        "row",
        "counter",
        unit.alias("unit"),
        _known(number, how.is_rounded_away(pl.col("text")) & is_per_cycle).alias("number"),
        texts(pl.col("text")).alias("text"),
    )
    rows = cells["row"].unique(maintain_order=True)
    numbers, as_text = (_spread(cells.filter(pl.col(value).is_not_null()), value, rows) for value in ("number", "text"))
    counter_units = cells.filter(pl.col("number").is_not_null()).select("counter", "unit").unique(maintain_order=True)
    units = _merged({counter: unit} for counter, unit in counter_units.iter_rows())
    return _Part(rows.to_list(), numbers, as_text, units)


def _spread(cells: pl.DataFrame, value: str, rows: pl.Series) -> pl.DataFrame:
    if cells.is_empty():
        return without_columns(len(rows))
    wide = cells.pivot("counter", index="row", values=value, aggregate_function="first", maintain_order=True)
    return rows.to_frame().join(wide, on="row", how="left", maintain_order="left").drop("row")


def _known(number: pl.Expr, is_lost: pl.Expr) -> pl.Expr:
    """Return the numbers, null where rounding has left nothing of them."""
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
