"""How far below its roof a measured rate is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NEAR_FRAC = 0.8
NOTE_FRAC = 0.5
"""Limits of the grades, as shares of the roof: from 0.8 near it, from 0.5 some headroom, below much headroom (a choice)."""


class Grade(str, Enum):
    """How close a measured rate is to its roof; `Distance.grade` has the limits."""

    ABOVE = "above"
    NEAR = "near"
    NOTE = "note"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Distance:
    """A measured rate against its roof.

    Attributes:
        limit_flop_per_s: roof at the operation's intensity.
        achieved_flop_per_s: measured rate.
        efficiency_frac: achieved over limit.
        gap_factor: limit over achieved; None if nothing was achieved.
        grade: near from 80 %, note from 50 %, else warn; above 100 %, what ran did less work or moved fewer bytes than is counted.
    """

    limit_flop_per_s: float
    achieved_flop_per_s: float
    efficiency_frac: float
    gap_factor: float | None
    grade: Grade


def distance(limit_flop_per_s: float, achieved_flop_per_s: float) -> Distance | None:
    """Return how far `achieved_flop_per_s` is below its limit; None if the limit is zero."""
    if not limit_flop_per_s:
        return None
    efficiency = achieved_flop_per_s / limit_flop_per_s
    gap = limit_flop_per_s / achieved_flop_per_s if achieved_flop_per_s else None
    return Distance(limit_flop_per_s, achieved_flop_per_s, efficiency, gap, _grade(efficiency))


def _grade(efficiency_frac: float) -> Grade:
    if efficiency_frac > 1:
        return Grade.ABOVE
    if efficiency_frac >= NEAR_FRAC:
        return Grade.NEAR
    return Grade.NOTE if efficiency_frac >= NOTE_FRAC else Grade.WARN
