"""The run's GPU time by kernel family and by NVTX range."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis.summary import known_sum, n_launches, with_weights
from ncuroof.tables import BOUNDS, BREAKDOWN_KINDS, BREAKDOWNS, KERNELS, check, conform

_UNNAMED = "(unnamed)"
"""Stands for a range whose name is not in the report."""


def break_down(kernels: pl.DataFrame, bounds: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Return sums over launches by family and by NVTX range (BREAKDOWN_KINDS), without failed launches.

    Each kind of breakdown covers the whole run, so its sums add up to the run's. share = ΣT of the key / ΣT of the run, null where
    either is unknown or the run took no time.

    Args:
        kernels: KERNELS.
        bounds: BOUNDS, rows as in `kernels`.
        weights: WEIGHTS, applied to sums and launch counts.

    Returns:
        BREAKDOWNS.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(bounds, BOUNDS, table="BOUNDS")
    ranges = pl.col("nvtx").list.eval(pl.element().fill_null(_UNNAMED))
    has_ranges = pl.col("nvtx").list.len() > 0
    launches = (
        with_weights(kernels.select("id", "failed", "duration_ns", "family", ranges, bounds["recoverable_ns"]), weights)
        .filter(~pl.col("failed"))
        .with_columns(
            pl.when(has_ranges).then(pl.col("nvtx").list.first()).alias("nvtx"),
            pl.when(has_ranges)
            .then(pl.col("nvtx").list.head(_branching_depth(kernels)).list.join("/"))
            .alias("nvtx_branch"),
            pl.when(has_ranges).then(pl.col("nvtx").list.join("/")).alias("nvtx_path"),
            pl.col("duration_ns", "recoverable_ns") * pl.col("weight"),
        )
    )
    return pl.concat(_sums(launches, kind) for kind in BREAKDOWN_KINDS)


def _branching_depth(kernels: pl.DataFrame) -> int:
    """Return how many of the outermost ranges to look at until launches differ: 1 if the outermost do; all if none do.

    A script's only outermost range (`step`) says nothing, and the ranges in it (`forward`, `backward`) say where its time goes.
    """
    paths = kernels.filter(pl.col("nvtx").list.len() > 0)["nvtx"]
    depths = range(1, max(map(len, paths), default=1) + 1)
    return next((depth for depth in depths if paths.list.head(depth).n_unique() > 1), depths[-1])


def _sums(launches: pl.DataFrame, kind: str) -> pl.DataFrame:
    total = launches.select(known_sum(pl.col("duration_ns"))).item()
    return (
        launches.group_by(pl.col(kind).alias("key"), maintain_order=True)
        .agg(n_launches(), known_sum(pl.col("duration_ns")), known_sum(pl.col("recoverable_ns")))
        .with_columns(
            pl.lit(kind).alias("kind"), (pl.col("duration_ns") / pl.lit(total or None, pl.Float64)).alias("share_frac")
        )
        .sort("duration_ns", descending=True, nulls_last=True, maintain_order=True)
        .pipe(conform, BREAKDOWNS)
    )
