"""From one column of rows per precision or memory level to one long table, ordered by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.enums import CeilingSource
from ncuroof.tables import BANDWIDTH, WORK, conform, finite


@dataclass(frozen=True, slots=True)
class RateTable:
    """A table of rates: its schema, and the names of the columns with a row's key, achieved rate and peak."""

    schema: pl.Schema
    key: str
    achieved: str
    peak: str


WORK_RATES = RateTable(WORK, "precision", "flop_per_s", "peak_flop_per_s")
TRAFFIC_RATES = RateTable(BANDWIDTH, "level", "bytes_per_s", "peak_bytes_per_s")


def rows_by_key(frame: pl.DataFrame, rows: Mapping[str, pl.Expr], key: str) -> pl.DataFrame:
    """Return the rows that are not null, all of the first key first, with the kernel's `id`.

    Args:
        frame: the columns that `rows` reads, one row per kernel.
        rows: by key, an expression for a struct with the same fields; null for kernels that have no such row.
        key: name of the column to add that holds a row's key.
    """
    if not rows:
        return pl.DataFrame(schema={"id": pl.UInt32, key: pl.String})
    wide = frame.select(row.alias(name) for name, row in rows.items())
    names = pl.Series(list(rows), dtype=pl.String)
    row = pl.concat(wide.get_columns()).alias("row")
    return (
        pl.DataFrame([row])
        .with_row_index("id")
        .filter(pl.col("row").is_not_null())
        .with_columns(pl.col("id") % frame.height, pl.lit(names).gather(pl.col("id") // frame.height).alias(key))
        .unnest("row")
    )


def stacked(parts: Sequence[pl.DataFrame], rates: RateTable) -> pl.DataFrame:
    """Return the parts as one table of rates, ordered by kernel, with `frac`, `peak_source` and `is_from_chart` filled in.

    Args:
        parts: tables with some of its columns; their peaks come from counters.
        rates: which table.
    """
    together = finite(pl.concat([pl.DataFrame(schema=rates.schema), *parts], how="diagonal_relaxed"))
    return (
        together.with_columns(
            (pl.col(rates.achieved) / pl.col(rates.peak)).alias("frac"),
            pl.when(pl.col(rates.peak).is_not_null()).then(pl.lit(CeilingSource.COUNTERS.value)).alias("peak_source"),
            pl.lit(value=False).alias("is_from_chart"),
        )
        .pipe(conform, rates.schema)
        .pipe(finite)
        .sort("id", maintain_order=True)
    )
