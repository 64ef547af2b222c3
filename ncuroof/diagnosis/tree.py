"""Walking the decision tree: all kernels at once, node by node, keeping the path."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node
from ncuroof.errors import ProfileError
from ncuroof.tables import PATH


def walk_tree(quantities: pl.DataFrame, nodes: Sequence[Node]) -> tuple[pl.Series, pl.DataFrame]:
    """Return each kernel's verdict and the path that led to it.

    A node's answer is yes, no, or not known where its quantity is missing; each leads on, or to a verdict.

    Args:
        quantities: one row per kernel with `id` and a column per quantity that the nodes ask for.
        nodes: parents before children, the first is the root.

    Returns:
        The verdicts, rows as in `quantities`, and PATH by kernel and step.

    Raises:
        ProfileError: an answer leads to a node that does not come later, or to none.
    """
    place = pl.Series("place", [nodes[0].id]).new_from_index(0, quantities.height)
    steps = []
    for node in nodes:
        answers = quantities.select("id", outcome=node.condition.holds()).with_columns(place)
        is_here = pl.col("place") == node.id
        steps.append(_step(quantities, node).filter(place == node.id))
        place = answers.select(
            pl.when(~is_here)
            .then("place")
            .when(pl.col("outcome").is_null())
            .then(pl.lit(node.unknown))
            .when(pl.col("outcome"))
            .then(pl.lit(node.yes))
            .otherwise(pl.lit(node.no))
            .alias("place")
        )["place"]
    if not place.str.starts_with(VERDICT_PREFIX).all():
        raise ProfileError("rules.toml: a path of the tree ends without a verdict: parents must come before children")
    path = pl.concat(steps).sort("id", maintain_order=True)
    numbered = path.with_columns(pl.int_range(pl.len()).over("id").alias("step"))
    return place.str.strip_prefix(VERDICT_PREFIX).alias("verdict"), numbered.select(*PATH).cast(dict(PATH))


def _step(quantities: pl.DataFrame, node: Node) -> pl.DataFrame:
    condition = node.condition
    value = pl.col(condition.quantity)
    threshold = pl.lit(condition.threshold, pl.Float64)
    return quantities.select(
        "id",
        pl.lit(node.id).alias("node"),
        pl.lit(condition.quantity).alias("quantity"),
        value.cast(pl.Float64).alias("value"),
        pl.lit(condition.op).alias("op"),
        threshold.alias("threshold"),
        condition.holds().alias("outcome"),
        pl.when(threshold != 0).then((value - threshold).abs() / threshold.abs()).alias("margin_frac"),
    )
