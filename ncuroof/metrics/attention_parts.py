"""Which launches are parts of an attention that no kernel fuses, by the names and the work of the launches around them."""

from __future__ import annotations

import polars as pl

from ncuroof.metrics.entries import Neighbours
from ncuroof.metrics.launch_order import QUEUE, nearest
from ncuroof.metrics.names import matches

_OTHER = -1.0
"""In place of a product's FLOPs, for a launch that is neither a product nor pointwise."""

_BETWEEN = "launch.is_between_products"


def attention_parts(kernels: pl.DataFrame, work: pl.DataFrame, known: Neighbours) -> list[pl.Series]:
    """Return what each launch is of an attention in parts: three series of 1 or 0.

    `launch.is_between_products` is 1 for a launch between two matrix products of about as much work in its stream. Attention's two
    products, forward or backward, have the same FLOPs except for partly filled tiles; the last product of a classifier and the
    first one of its next call do not. A few pointwise kernels (masks, scales, dropout) may run in between. If a report contains
    each kernel and shape only once, the neighbours are those of the profiled launches.

    `launch.is_product_of_attention` is 1 for these two products where a softmax runs between them and, around a softmax's backward
    pass, for one more product of about as much work on either side: the gradient of each product takes two.
    `launch.is_pointwise_of_attention` is 1 for the pointwise kernels between the softmax and its products.

    Args:
        kernels: KERNELS, in the order of the run, with what was counted and not recorded (`with_unrecorded`).
        work: WORK.
        known: how to recognise the kernels, from the catalogue.
    """
    launches = _with_kinds(kernels, work, known).with_columns(_is_between(known).alias(_BETWEEN))
    of_attention = pl.col("is_softmax") & pl.col(_BETWEEN)
    launches = launches.with_columns(
        is_beside=_is_beside(of_attention, known),
        is_beside_backward=_is_beside(of_attention & pl.col("is_backward"), known),
    )
    is_one_gradient = pl.col("is_product") & pl.col("is_beside_backward")
    launches = launches.with_columns(flop_of_gradient=pl.when(is_one_gradient).then("flop"))
    is_other_gradient = pl.any_horizontal(
        _is_alike(pl.col("flop"), pl.col("flop_of_gradient").shift(places).over(QUEUE), known) for places in (1, -1)
    )
    parts = launches.select(
        pl.col(_BETWEEN),
        (pl.col("is_product") & (pl.col("is_beside") | is_other_gradient)).alias("launch.is_product_of_attention"),
        (pl.col("is_pointwise") & pl.col("is_beside")).alias("launch.is_pointwise_of_attention"),
    )
    return parts.select(pl.all().fill_null(value=False).cast(pl.Float64)).get_columns()


def _with_kinds(kernels: pl.DataFrame, work: pl.DataFrame, known: Neighbours) -> pl.DataFrame:
    """Return, per launch, the FLOPs that were counted and what kind of kernel its name says."""
    flop = work.group_by("id").agg(pl.col("flop").sum())
    name = pl.col("name")
    is_product = matches(name, known.product)
    is_softmax = matches(name, known.softmax) & ~matches(name, known.not_softmax)
    kinds = {
        "is_product": is_product,
        "is_pointwise": matches(name, known.pointwise) & ~is_product,
        "is_softmax": is_softmax,
        "is_backward": is_softmax & matches(name, known.softmax_backward),
    }
    launches = kernels.select(
        "id", *QUEUE, *(is_it.fill_null(value=False).alias(kind) for kind, is_it in kinds.items())
    )
    return launches.join(flop, on="id", how="left", maintain_order="left")


def _is_between(known: Neighbours) -> pl.Expr:
    """Return whether the products on both sides of a launch do about as much work."""
    around = (
        pl.when("is_product").then(pl.col("flop").fill_null(_OTHER)).when(~pl.col("is_pointwise")).then(pl.lit(_OTHER))
    )
    before, behind = (nearest(around, direction, known.most_pointwise) for direction in (-1, 1))
    return _is_alike(before, behind, known).fill_null(value=False)


def _is_alike(one: pl.Expr, other: pl.Expr, known: Neighbours) -> pl.Expr:
    most_ratio = known.most_work_ratio
    return (one > 0) & (other > 0) & (one <= most_ratio * other) & (other <= most_ratio * one)


def _is_beside(is_meant: pl.Expr, known: Neighbours) -> pl.Expr:
    """Return whether only pointwise kernels run between a launch and one that is meant, before or behind it."""
    marked = pl.when(is_meant).then(1.0).when(~pl.col("is_pointwise")).then(0.0)
    sides = (nearest(marked, direction, known.most_pointwise) for direction in (-1, 1))
    return pl.max_horizontal(*sides).fill_null(0.0) > 0
