"""The path to a verdict through the decision tree, as text: the questions on it, and where each answer leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof.diagnosis.conditions import Condition
from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node
from ncuroof.present import format as text

_YES, _NO, _NOT_KNOWN = "yes", "no", "not known"
_ALWAYS_ANSWERED = ("not ", "known ", "missing")
"""Begin the comparisons that have an answer for a missing quantity too."""


def path_lines(verdict: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the questions from which a verdict can be reached, numbered, with the answers that lead to it.

    Args:
        verdict: its name.
        nodes: parents before children, the first is the root.
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


def answers_by_target(node: Node, nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return where each answer of a question leads; "not known" only where the quantity can be missing."""
    ways = [(node.yes, _YES), (node.no, _NO)]
    if _can_be_missing(node, nodes):
        ways.append((node.unknown, _NOT_KNOWN))
    targets: dict[str, list[str]] = {}
    for target, answer in ways:
        targets.setdefault(target, []).append(answer)
    return targets


def _can_be_missing(node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether a question's quantity can be missing: not where every question before it established that it is known."""
    if node.condition.op.startswith(_ALWAYS_ANSWERED):
        return False
    before = [parent for parent in nodes if node.id in (parent.yes, parent.no, parent.unknown)]
    return not before or not all(_settles(parent, node) for parent in before)


def _settles(parent: Node, node: Node) -> bool:
    """Return whether the answer that leads from one question to the next establishes that the quantity of both is known."""
    if parent.condition.quantity != node.condition.quantity:
        return False
    if parent.condition.op.startswith(_ALWAYS_ANSWERED):
        return parent.condition.op.startswith("known") and parent.no != node.id
    return parent.unknown != node.id


def condition(asked: Condition) -> str:
    """Return a condition as text: "occupancy.waves ≥ 1"."""
    if asked.threshold is None:
        return f"{asked.quantity} is missing"
    return f"{asked.quantity} {text.operator(asked.op)} {asked.threshold:g}"
