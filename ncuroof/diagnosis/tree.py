"""Walking the decision tree: all kernels at once, node by node, keeping the path."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node
from ncuroof.errors import ProfileError
from ncuroof.tables import PATH, conform


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
    answers = quantities.select("id", *(node.condition.holds().alias(node.id) for node in nodes))
    reached, verdict = _follow(nodes)
    walked = answers.select(verdict.alias("verdict"), *(expr.alias(f"at.{name}") for name, expr in reached.items()))
    if walked["verdict"].null_count():
        raise ProfileError("rules.toml: a path of the tree ends without a verdict")
    rows = quantities.hstack(walked).lazy()
    steps = [rows.filter(f"at.{node.id}").select(_step(node)) for node in nodes if node.id in reached]
    path = pl.concat(steps).sort("id", maintain_order=True)
    numbered = path.with_columns(pl.int_range(pl.len()).over("id").alias("step")).collect()
    return walked["verdict"], numbered.pipe(conform, PATH)


def _follow(nodes: Sequence[Node]) -> tuple[dict[str, pl.Expr], pl.Expr]:
    """Return, over the nodes' answers, whether each node is reached, and the verdict."""
    reached = {nodes[0].id: pl.lit(value=True)}
    seen: set[str] = set()
    verdict = pl.lit(None, pl.String)
    for node in nodes:
        seen.add(node.id)
        is_here = reached.get(node.id, pl.lit(value=False))
        for answer, target in ((True, node.yes), (False, node.no), (None, node.unknown)):
            leads_there = is_here & pl.col(node.id).eq_missing(pl.lit(answer, pl.Boolean))
            if target.startswith(VERDICT_PREFIX):
                name = pl.lit(target.removeprefix(VERDICT_PREFIX))
                verdict = pl.when(leads_there).then(name).otherwise(verdict)
            elif target in seen:
                raise ProfileError(f"rules.toml: node {node.id!r} leads back to {target!r}; parents must come first")
            else:
                reached[target] = reached.get(target, pl.lit(value=False)) | leads_there
    if unknown := reached.keys() - seen:
        raise ProfileError(f"rules.toml: the tree leads to {', '.join(sorted(unknown))}, which is no node")
    return reached, verdict


def _step(node: Node) -> list[pl.Expr]:
    condition = node.condition
    value = pl.col(condition.quantity).cast(pl.Float64)
    threshold = pl.lit(condition.threshold, pl.Float64)
    return [
        pl.col("id"),
        pl.lit(node.id).alias("node"),
        pl.lit(condition.quantity).alias("quantity"),
        value.alias("value"),
        pl.lit(condition.op).alias("op"),
        threshold.alias("threshold"),
        condition.holds().alias("outcome"),
        pl.when(threshold != 0).then((value - threshold).abs() / threshold.abs()).alias("margin_frac"),
    ]
