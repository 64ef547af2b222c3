"""From one column of rows per precision or memory level to one long table, ordered by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.tables import conform, finite
from ncuroof.words import CeilingSource


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


def stacked(parts: Sequence[pl.DataFrame], schema: pl.Schema, achieved: str, peak: str) -> pl.DataFrame:
    """Return the parts as one table of `schema`, ordered by kernel, with `frac`, `peak_source` and `is_from_chart` filled in.

    Args:
        parts: tables with some of the columns of `schema`.
        schema: WORK or BANDWIDTH.
        achieved: name of the column with the achieved rate.
        peak: name of the column with the peak, which comes from counters.
    """
    together = finite(pl.concat([pl.DataFrame(schema=schema), *parts], how="diagonal_relaxed"))
    return (
        together.with_columns(
            (pl.col(achieved) / pl.col(peak)).alias("frac"),
            pl.when(pl.col(peak).is_not_null()).then(pl.lit(CeilingSource.COUNTERS.value)).alias("peak_source"),
            pl.lit(value=False).alias("is_from_chart"),
        )
        .pipe(conform, schema)
        .pipe(finite)
        .sort("id", maintain_order=True)
    )
