"""Walking the decision tree: all kernels at once, node by node, recording each kernel's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node
from ncuroof.errors import ProfileError
from ncuroof.tables import PATH, conform


def walk_tree(quantities: pl.DataFrame, nodes: Sequence[Node]) -> tuple[pl.Series, pl.DataFrame]:
    """Return each kernel's verdict and the path that led to it.

    The answer to a node is yes, no, or unknown where its quantity is missing; each leads to a later node or to a verdict.

    Args:
        quantities: one row per kernel with `id` and a column per quantity that the nodes ask for.
        nodes: parents before children, the first is the root.

    Returns:
        The verdicts, rows as in `quantities`, and PATH by kernel and step.

    Raises:
        ProfileError: an answer leads to an earlier node or to none, or a path ends without a verdict.
    """
    answers = quantities.select(node.condition.holds().alias(node.id) for node in nodes)
    reached, ends = _follow(nodes, answers)
    none = pl.lit(None, pl.String)
    verdicts = pl.coalesce(none, *(pl.when(is_end).then(pl.lit(verdict)) for verdict, is_end in ends))
    verdict = answers.select(verdicts.alias("verdict")).to_series()
    if verdict.null_count():
        raise ProfileError("rules.toml: a path of the tree ends without a verdict")
    return verdict, _path(quantities, nodes, answers, reached)


def _path(
    quantities: pl.DataFrame, nodes: Sequence[Node], answers: pl.DataFrame, reached: Mapping[str, pl.Series]
) -> pl.DataFrame:
    """Return PATH: a row per kernel and node that it reached, in the order of the nodes."""
    n_before = pl.zeros(quantities.height, pl.UInt32, eager=True)
    steps: dict[str, list[pl.Series]] = {"row": [], "step": [], "node": [], "value": [], "outcome": []}
    for number, node in enumerate(nodes):
        if (is_here := reached.get(node.id)) is None:
            continue
        rows = is_here.arg_true()
        steps["row"].append(rows)
        steps["step"].append(n_before.gather(rows))
        steps["node"].append(pl.repeat(number, len(rows), dtype=pl.UInt32, eager=True))
        steps["value"].append(quantities[node.condition.quantity].gather(rows).cast(pl.Float64))
        steps["outcome"].append(answers[node.id].gather(rows))
        n_before = n_before + is_here.cast(pl.UInt32)
    path = pl.DataFrame({name: pl.concat(parts) for name, parts in steps.items()}).sort("row", maintain_order=True)
    asked = pl.DataFrame([_asked(node) for node in nodes], orient="row", schema=_ASKED)[path["node"]]
    value, threshold = path["value"], asked["threshold"]
    margin = pl.when(threshold != 0).then((value - threshold).abs() / threshold.abs()).alias("margin_frac")
    whole = path.drop("node").hstack(asked).with_columns(margin, quantities["id"].gather(path["row"]))
    return conform(whole, PATH)


def _follow(nodes: Sequence[Node], answers: pl.DataFrame) -> tuple[dict[str, pl.Series], list[tuple[str, pl.Series]]]:
    """Return masks of the kernels that reach each node, and of those that an answer sends to a verdict, without empty masks."""
    reached = {nodes[0].id: pl.repeat(value=True, n=answers.height, eager=True)}
    ends: list[tuple[str, pl.Series]] = []
    ids = [node.id for node in nodes]
    for index, node in enumerate(nodes):
        answer = answers[node.id]
        for target, is_given in ((node.yes, answer), (node.no, ~answer), (node.unknown, answer.is_null())):
            is_verdict = target.startswith(VERDICT_PREFIX)
            if not is_verdict and target not in ids[index + 1 :]:
                why = "which is no node" if target not in ids else "which comes no later; parents must come first"
                raise ProfileError(f"rules.toml: node {node.id!r} leads to {target!r}, {why}")
            leads_there = reached[node.id] & is_given.fill_null(value=False) if node.id in reached else None
            if leads_there is None or not leads_there.any():
                continue
            if is_verdict:
                ends.append((target.removeprefix(VERDICT_PREFIX), leads_there))
            else:
                reached[target] = reached[target] | leads_there if target in reached else leads_there
    return reached, ends


_ASKED = {name: PATH[name] for name in ("node", "quantity", "op", "threshold")}


def _asked(node: Node) -> tuple[str, str, str, float | None]:
    return node.id, node.condition.quantity, node.condition.op, node.condition.threshold
