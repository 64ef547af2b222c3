"""The paths through the decision tree to a verdict, as text: the questions, and where each answer leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof import wording
from ncuroof.diagnosis.conditions import Condition
from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node

_YES, _NO, _NOT_KNOWN = "yes", "no", "not known"
_ALWAYS_ANSWERED = ("not ", "known ", "missing")
"""Prefixes of comparison operators that give yes or no for a missing quantity, too."""


def path_lines(verdict: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the numbered questions from which a verdict can be reached, with the answers that lead towards it.

    Args:
        verdict: name of the verdict.
        nodes: of the tree, parents before children; the first is the root.
    """
    goal = VERDICT_PREFIX + verdict
    leading: dict[str, dict[str, list[str]]] = {}
    for node in reversed(nodes):
        answers = {
            target: given
            for target, given in answers_by_target(node, nodes).items()
            if target == goal or target in leading
        }
        if answers:
            leading[node.id] = answers
    asked = [node for node in nodes if node.id in leading]
    number_by_id = {node.id: str(number) for number, node in enumerate(asked, start=1)}
    for node in asked:
        ways = (
            f"{' or '.join(given)} → {number_by_id.get(target, verdict)}" for target, given in leading[node.id].items()
        )
        yield f"  {number_by_id[node.id]}. {node.question} ({condition(node.condition)}): {', '.join(ways)}"


def node_lines(node: Node, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the explanation of a question: what it compares, and the question or verdict to which each answer leads.

    Args:
        node: of the tree.
        nodes: of the tree, parents before children; the first is the root.
    """
    yield from (f"{node.id}: question of the decision path", "", node.question, "")
    yield f"Asked: {condition(node.condition)}"
    for target, given in answers_by_target(node, nodes).items():
        verdict = target.removeprefix(VERDICT_PREFIX)
        yield f"  {' or '.join(given)} → {target if verdict == target else f'verdict {verdict}'}"
    if node.source:
        yield from ("", f"Source: {node.source}")


def answers_by_target(node: Node, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return the answers to a question by where they lead; "not known" only if its quantity can be missing."""
    ways = [(node.yes, _YES), (node.no, _NO)]
    if _can_be_missing(node, nodes):
        ways.append((node.unknown, _NOT_KNOWN))
    targets: dict[str, list[str]] = {}
    for target, answer in ways:
        targets.setdefault(target, []).append(answer)
    return targets


def _can_be_missing(node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether the quantity of a question can be missing: unless every question that leads to it proves it known."""
    if node.condition.op.startswith(_ALWAYS_ANSWERED):
        return False
    before = [parent for parent in nodes if node.id in (parent.yes, parent.no, parent.unknown)]
    return not before or not all(_settles(parent, node) for parent in before)


def _settles(parent: Node, node: Node) -> bool:
    """Return whether reaching `node` through `parent` proves its quantity known; only a question about the same quantity can."""
    if parent.condition.quantity != node.condition.quantity:
        return False
    if parent.condition.op.startswith(_ALWAYS_ANSWERED):
        return parent.condition.op.startswith("known") and parent.no != node.id
    return parent.unknown != node.id


def condition(asked: Condition) -> str:
    """Return a condition as text: "occupancy.waves ≥ 1"."""
    if asked.threshold is None:
        return f"{asked.quantity} is missing"
    return f"{asked.quantity} {wording.operator(asked.op)} {asked.threshold:g}"
