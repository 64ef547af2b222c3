"""What a launch stands between in its stream, told from the names of the launches around it."""

from __future__ import annotations

from functools import cache

import polars as pl

from ncuroof.errors import ProfileError
from ncuroof.metrics.names import matches
from ncuroof.resources import folder, read_toml

_QUEUE = ("source", "process_id", "context", "stream")
_PRODUCT, _OTHER = "product", "other"


def between_products() -> pl.Expr:
    """Return 1 for a launch with a matrix product before and behind it in its stream, 0 for others.

    Few pointwise kernels may lie between: masks, scales, dropout. Kernels are rows of KERNELS in the order of the run; where a
    report holds each kernel and shape once, those around a launch are the ones that were recorded around it.
    """
    product, pointwise, most = _names()
    kind = (
        pl.when(matches(pl.col("name"), product))
        .then(pl.lit(_PRODUCT))
        .when(~matches(pl.col("name"), pointwise))
        .then(pl.lit(_OTHER))
    )
    before = kind.forward_fill(limit=most).shift(1).over(_QUEUE)
    behind = kind.backward_fill(limit=most).shift(-1).over(_QUEUE)
    is_between = (before == _PRODUCT).fill_null(value=False) & (behind == _PRODUCT).fill_null(value=False)
    return is_between.cast(pl.Float64).alias("launch.is_between_products")


@cache
def _names() -> tuple[str, str, int]:
    """Return the patterns of products and of pointwise kernels, and how many of these may lie between."""
    try:
        found = read_toml(folder("profiles") / "metrics.toml")["neighbours"]
        return str(found["product"]), str(found["pointwise"]), int(found["most_pointwise"])
    except KeyError as error:
        raise ProfileError(f"metrics.toml: neighbours: {error} is missing") from error
