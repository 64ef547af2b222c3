"""What the counting run of a report says of a run as a whole: which part of the program it is, and what was not profiled of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ncuroof.diagnosis import UnrecordedLaunches, Weighting

_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of a run; of several reports what all of their counting runs say.

    Attributes:
        is_counted: whether anything was, of the program of the reports.
        not_recorded_ns: GPU time of kernels that were not profiled; None where it is not known.
        unrecorded: launches of these kernels, by kernel and shape.
        steps: the steps that were counted, as `--step` takes them; "" for the whole run, None where it is not known.
        n_steps: how many these are; None where it is not known.
    """

    is_counted: bool = False
    not_recorded_ns: float | None = None
    unrecorded: tuple[UnrecordedLaunches, ...] = ()
    steps: str | None = None
    n_steps: int | None = None


def counted_of(weighting: Weighting | None) -> Counted:
    """Return what was counted of a run; nothing where none of its launches was: that was another program."""
    if weighting is None or weighting.covered_frac == 0:
        return Counted()
    covered_frac = weighting.covered_frac
    return Counted(
        is_counted=True,
        not_recorded_ns=None if covered_frac is None else weighting.duration_ns * (1 - covered_frac),
        unrecorded=weighting.unrecorded,
        steps=_the_same([steps or "" for steps in weighting.steps]),
        n_steps=_the_same([time.n_steps for time in weighting.wall_times]),
    )


def _the_same(values: Sequence[_Value | None]) -> _Value | None:
    return values[0] if len(set(values)) == 1 else None
