"""How far below its roof a measured rate is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NEAR_FRAC = 0.8
NOTE_FRAC = 0.5
"""Of the roof: at it, some headroom, and less than half: much to gain (choices of the founding documents)."""


class Grade(str, Enum):
    """How a measured rate stands to its roof."""

    ABOVE = "above"
    NEAR = "near"
    NOTE = "note"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Distance:
    """A measured rate under its roof.

    Attributes:
        limit_flop_per_s: the roof at that intensity.
        achieved_flop_per_s: measured.
        efficiency_frac: achieved over limit.
        gap_factor: limit over achieved; None where nothing was achieved.
        grade: near from 80 % on, note from 50 % on, else warn; above 100 % the count of work or bytes does not fit what ran.
    """

    limit_flop_per_s: float
    achieved_flop_per_s: float
    efficiency_frac: float
    gap_factor: float | None
    grade: Grade


def distance(limit_flop_per_s: float, achieved_flop_per_s: float) -> Distance | None:
    """Return how far `achieved_flop_per_s` is below its limit; None where the limit is zero."""
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
