"""The time inside a kernel in words and as a strip: how long what limited it, and how busy its busiest unit was.

The terminal, the page and the brief share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.present.analysed import Document
from ncuroof.present.schemas.kernels import KernelEntry

UNLIKE = "unlike_phases"
"""The caveat of a kernel whose verdict is a mean of unlike phases."""

_HEIGHTS = "▁▂▃▄▅▆▇█"
_NOT_SAMPLED = " "
_NOT_UNITS = ("sm_active",)
_MOST_SHARES = 3
"""Limits that a sentence names; what is left is summed up."""

_KINDS = {"ramp": "ramp-up", "tail": "tail", "gap": "gap"}
"""Words of the kinds of phases that stand in place of a limiter that is not known."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a kernel's time one thing limited.

    Attributes:
        share: of the time.
        verdict: name of the verdict.
        limiter: the limiter, else the kind of the phase if that says something, else None.
    """

    share: float
    verdict: str
    limiter: str | None


def limits(kernel: KernelEntry) -> list[Limit]:
    """Return what limited a kernel for how much of its time, longest first; empty where it has no phases."""
    phases = kernel.get("phases") or ()
    total = sum(phase["duration_ns"] for phase in phases)
    times: dict[tuple[str, str | None], float] = {}
    for phase in phases:
        key = phase["verdict"], phase["limiter"] or (phase["kind"] if phase["kind"] in _KINDS else None)
        times[key] = times.get(key, 0.0) + phase["duration_ns"]
    found = [Limit(time / total, *key) for key, time in times.items()]
    return sorted(found, key=lambda limit: -limit.share)


def limits_sentence(kernel: KernelEntry) -> str:
    """Return what limited a kernel for how much of its time; "" without phases.

    Example: "60 % of the time compute-bound (tensor), 40 % latency-bound (tail)".
    """
    found = limits(kernel)
    if not found:
        return ""
    shown = found[:_MOST_SHARES] if len(found) > _MOST_SHARES + 1 else found
    left = 1 - sum(limit.share for limit in shown)
    said = [f"{formatting.percent(limit.share)} {_named(limit)}" for limit in shown]
    said[0] = said[0].replace(" %", " % of the time", 1)
    return ", ".join(said) + (f", {formatting.percent(left)} others" if len(shown) < len(found) else "")


def _named(limit: Limit) -> str:
    title = load_rules().verdicts[limit.verdict].title
    of = None if limit.limiter is None else _KINDS.get(limit.limiter) or formatting.label(limit.limiter)
    return title if of is None else f"{title} ({of})"


def strip(kernel: KernelEntry, n_places: int) -> str:
    """Return how busy the busiest sampled unit was over a kernel's time, a block of one of eight heights per part of it.

    Args:
        kernel: an entry of the document; "" where it has no phases.
        n_places: the most blocks.
    """
    values = busiest_course(kernel)
    if not values:
        return ""
    n_shown = min(n_places, len(values))
    bounds = [round(place * len(values) / n_shown) for place in range(n_shown + 1)]
    return "".join(
        _block([value for value in values[start:end] if value is not None]) for start, end in pairwise(bounds)
    )


def _block(values: Sequence[float]) -> str:
    if not values:
        return _NOT_SAMPLED
    height = sum(values) / len(values) * len(_HEIGHTS)
    return _HEIGHTS[min(len(_HEIGHTS) - 1, int(height))]


def busiest_course(kernel: KernelEntry) -> list[float | None]:
    """Return the use of the unit that is busiest in each part of a kernel's time; empty where it has no phases."""
    courses = {name: each for name, each in _courses(kernel).items() if name not in _NOT_UNITS}
    return [
        max((value for value in at if value is not None), default=None) for at in zip(*courses.values(), strict=True)
    ]


def _courses(kernel: KernelEntry) -> Document:
    return dict(kernel["samples"]["courses"]) if kernel.get("phases") else {}
