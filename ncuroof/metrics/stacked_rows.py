"""From one column of rows per precision or memory level to one table, ordered by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.tables import conform
from ncuroof.words import CeilingSource


def rows_by_key(frame: pl.DataFrame, rows: Mapping[str, pl.Expr], key: str) -> list[pl.LazyFrame]:
    """Return, for each key, the rows that are not null, with the kernel's `id`.

    Args:
        frame: the columns that the rows are made of, one row per kernel.
        rows: a struct per key; null for kernels without such a row.
        key: column that says which key a row belongs to.
    """
    if not rows:
        return []
    wide = frame.select(row.alias(name) for name, row in rows.items()).with_row_index("id").lazy()
    return [
        wide.select("id", pl.lit(name).alias(key), pl.col(name).alias("row"))
        .filter(pl.col("row").is_not_null())
        .unnest("row")
        for name in rows
    ]


def stacked(parts: Sequence[pl.LazyFrame], schema: pl.Schema, achieved: str, peak: str) -> pl.DataFrame:
    """Return the parts as one table of `schema`, ordered by kernel, with what follows from achieved and peak."""
    if not parts:
        return pl.DataFrame(schema=schema)
    together = pl.concat(parts, how="diagonal_relaxed").with_columns(
        (pl.col(achieved) / pl.col(peak)).alias("frac"),
        pl.when(pl.col(peak).is_not_null()).then(pl.lit(CeilingSource.COUNTERS.value)).alias("peak_source"),
        pl.lit(value=False).alias("is_from_chart"),
    )
    names = together.collect_schema().names()
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in names]
    return together.with_columns(missing).pipe(conform, schema).sort("id", maintain_order=True).collect()
