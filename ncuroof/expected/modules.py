"""Operator calls summed by module; each module includes the modules within it."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis import known_sum
from ncuroof.expected.ranges import SEPARATOR
from ncuroof.expected.schemas import CALLS, MODULES
from ncuroof.tables import check, conform


def expected_modules(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the calls summed by module, including nested modules, forward and backward together.

    Args:
        calls: CALLS.

    Returns:
        MODULES, the longest first; a call counts in its module and in each module around it.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(calls, CALLS, table="CALLS")
    paths = calls["module"].to_list()
    around = [_around(path) for path in paths]
    is_product = pl.col("needed_flop") > 0
    has_bytes = pl.col("compulsory_bytes").is_not_null() & pl.col("dram_bytes").is_not_null()
    return (
        calls.with_columns(pl.Series("around", around, dtype=pl.List(pl.String)))
        .explode("around")
        .group_by(pl.col("around").alias("module"), maintain_order=True)
        .agg(
            pl.len().alias("n_calls"),
            pl.col("duration_ns").sum(),
            pl.col("needed_flop").sum(),
            pl.when(pl.col("counted_flop").filter(is_product).is_not_null().all())
            .then(known_sum(pl.col("counted_flop").filter(is_product)))
            .alias("counted_flop"),
            *(known_sum(pl.col(name).filter(has_bytes)).alias(name) for name in ("compulsory_bytes", "dram_bytes")),
            known_sum(pl.col("roofline_ns")).alias("roofline_ns"),
            known_sum((pl.col("duration_ns") - pl.col("roofline_ns")).clip(lower_bound=0)).alias("above_ns"),
        )
        .sort("duration_ns", descending=True, maintain_order=True)
        .pipe(conform, MODULES)
    )


def _around(path: str | None) -> list[str | None]:
    """Return a module's path and those of the modules around it, the outermost first."""
    if path is None:
        return [None]
    parts = path.split(SEPARATOR)
    return [SEPARATOR.join(parts[: end + 1]) for end in range(len(parts))]
