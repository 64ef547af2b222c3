"""From one column of rows per precision or memory level to one table, ordered by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.tables import conform
from ncuroof.words import CeilingSource


def rows_by_key(frame: pl.DataFrame, rows: Mapping[str, pl.Expr], key: str) -> list[pl.DataFrame]:
    """Return, for each key, the rows that are not null, with the kernel's `id`.

    Args:
        frame: the columns that the rows are made of, one row per kernel.
        rows: a struct per key; null for kernels without such a row.
        key: column that says which key a row belongs to.
    """
    if not rows:
        return []
    wide = frame.select(row.alias(name) for name, row in rows.items())
    ids = pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias("id")
    parts = []
    for column in wide:
        is_there = column.is_not_null()
        found = column.filter(is_there)
        keys = pl.repeat(column.name, len(found), dtype=pl.String, eager=True).alias(key)
        parts.append(found.struct.unnest().insert_column(0, keys).insert_column(0, ids.filter(is_there)))
    return parts


def stacked(parts: Sequence[pl.DataFrame], schema: pl.Schema, achieved: str, peak: str) -> pl.DataFrame:
    """Return the parts as one table of `schema`, ordered by kernel, with what follows from achieved and peak."""
    if not parts:
        return pl.DataFrame(schema=schema)
    together = pl.concat(parts, how="diagonal_relaxed")
    columns = {name: pl.lit(None, dtype) for name, dtype in schema.items() if name not in together.columns}
    columns |= {
        "frac": pl.col(achieved) / pl.col(peak),
        "peak_source": pl.when(pl.col(peak).is_not_null()).then(pl.lit(CeilingSource.COUNTERS.value)),
        "is_from_chart": pl.lit(value=False),
    }
    return together.with_columns(**columns).pipe(conform, schema).sort("id", maintain_order=True)
