"""Which launches run between two matrix products in their stream, by the names and the work of the launches around them."""

from __future__ import annotations

import polars as pl

from ncuroof.metrics.entries import Neighbours
from ncuroof.metrics.launch_order import QUEUE
from ncuroof.metrics.names import matches

_OTHER = -1.0
"""In place of a product's FLOPs, for a launch that is neither a product nor pointwise."""


def between_products(kernels: pl.DataFrame, work: pl.DataFrame, known: Neighbours) -> pl.Series:
    """Return 1 for a launch between two matrix products of about as much work in its stream, 0 for others.

    Attention's two products, forward or backward, have the same FLOPs except for partly filled tiles; the last product of a
    classifier and the first one of its next call do not. A few pointwise kernels (masks, scales, dropout) may run in between. If
    a report contains each kernel and shape only once, the neighbours are those of the profiled launches.

    Args:
        kernels: KERNELS, in the order of the run.
        work: WORK.
        known: how to recognise the kernels, from the catalogue.
    """
    flop = kernels.select("id").join(
        work.group_by("id").agg(pl.col("flop").sum()), on="id", how="left", maintain_order="left"
    )
    around = (
        pl.when(matches(pl.col("name"), known.product))
        .then(pl.col("flop").fill_null(_OTHER))
        .when(~matches(pl.col("name"), known.pointwise))
        .then(pl.lit(_OTHER))
    )
    before = around.forward_fill(limit=known.most_pointwise).shift(1).over(QUEUE)
    behind = around.backward_fill(limit=known.most_pointwise).shift(-1).over(QUEUE)
    most_ratio = known.most_work_ratio
    are_alike = (before > 0) & (behind > 0) & (before <= most_ratio * behind) & (behind <= most_ratio * before)
    is_between = kernels.with_columns(flop["flop"]).select(are_alike.fill_null(value=False).cast(pl.Float64))
    return is_between.to_series().alias("launch.is_between_products")
