"""The verdict of NVIDIA's own rule on a kernel, and whether ours agrees with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ncuroof.enums import Verdict

SAME, REFINED, DIFFERENT = "same", "refined", "different"

_BEYOND = 0.05
"""Least lead of a unit over the total that leaves it out: passes differ by less."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """A verdict of NVIDIA's rule and a more specific one of ours, which do not contradict each other.

    Attributes:
        theirs: verdict that NVIDIA's rule gives.
        ours: verdict of the tree.
        why: why they do not contradict each other, as a sentence.
        node: node of the tree whose yes led to our verdict; None for any path.
    """

    theirs: str
    ours: str
    why: str
    node: str | None = None


@dataclass(frozen=True, slots=True)
class VendorRule:
    """What NVIDIA's SpeedOfLight rule says.

    Attributes:
        id: its identifier.
        verdicts: our verdict, by the title of its message.
        refinements: differences between its verdict and ours that do not contradict it.
        beyond: why ours differs where it rests on a unit that the memory total leaves out, as a sentence.
        contradicted: why any other difference exists, as a sentence.
    """

    id: str
    verdicts: Mapping[str, str]
    refinements: tuple[Refinement, ...]
    beyond: str
    contradicted: str


@dataclass(frozen=True, slots=True)
class VendorVerdict:
    """The verdict of NVIDIA's rule.

    Attributes:
        verdict: in our names; None where the rule names no side, or the report lacks its message.
        agreement: `SAME`, `REFINED` (ours is more specific) or `DIFFERENT`; None where it gave no verdict.
        why: why the two differ, as a sentence; None where they do not.
    """

    verdict: str | None
    agreement: str | None
    why: str | None


def vendor_verdict(
    messages: Iterable[Mapping[str, Any]], ours: str, path: Iterable[Mapping[str, Any]], rule: VendorRule
) -> VendorVerdict:
    """Return the verdict of NVIDIA's rule on a kernel, and whether ours agrees with it.

    Args:
        messages: `rule_id` and `title` of the messages of NVIDIA's rules for this kernel.
        ours: verdict of the tree.
        path: rows of PATH for this kernel, which led to it.
        rule: what its messages mean.
    """
    titles = (message["title"] for message in messages if message["rule_id"] == rule.id)
    theirs = next((rule.verdicts[title] for title in titles if title in rule.verdicts), None)
    if theirs is None:
        return VendorVerdict(None, None, None)
    if theirs == ours:
        return VendorVerdict(theirs, SAME, None)
    steps = list(path)
    passed = {step["node"] for step in steps if step["outcome"]}
    for each in rule.refinements:
        if (each.theirs, each.ours) == (theirs, ours) and (each.node is None or each.node in passed):
            return VendorVerdict(theirs, REFINED, each.why)
    is_beyond = ours == Verdict.MEMORY.value and _is_beyond(steps)
    return VendorVerdict(theirs, DIFFERENT, rule.beyond if is_beyond else rule.contradicted)


def _is_beyond(steps: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the busiest unit is clearly busier than the memory total."""
    value_by_node = {step["node"]: step.get("value") for step in steps}
    total, busiest = value_by_node.get("memory_known"), value_by_node.get("busy_enough")
    return total is not None and busiest is not None and busiest > total + _BEYOND
