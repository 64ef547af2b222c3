"""A planted kernel of the simulated report, and what its diagnosis has to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.report_parts import FocusMetric, Rule

if TYPE_CHECKING:
    from tests.support.constructed import Described


@dataclass(frozen=True)
class Planted:
    """A kernel with one planted property, and the verdict, limiter and findings that the diagnosis must have."""

    property: str
    verdict: str
    limiter: str | None
    findings: tuple[str, ...]
    kernel: Described


def bottleneck(title: str, message: str, *focus: FocusMetric) -> Rule:
    """Return a message that a Speed of Light rule could have written."""
    return Rule("SOLBottleneck", "Bottleneck", "SpeedOfLight", title, message, focus_metrics=focus)


MEMORY_RULE = bottleneck(
    "High Memory Throughput",
    "The memory system is much busier than the SMs. Look at which of its units is the busiest.",
)
