"""That a clock is below boost because ncu locks it by default, as a remark."""

from __future__ import annotations

from collections.abc import Collection, Sequence

_LOCKED_CLOCK = "reduced_clock"
"""Caveat of launches that ran well below boost because ncu locks the clock to base by default."""

_FAILED = "failed"
"""Caveat of launches whose clock was not measured."""

_MOSTLY = 0.5
"""Of a GPU's measured launches."""


def locked_clock_remark(caveats: Collection[Sequence[str]]) -> str:
    """Return "; ncu locks clocks by default" where that holds for most launches of a GPU, whose caveats are given; else nothing."""
    measured = [each for each in caveats if _FAILED not in each]
    n_locked = sum(_LOCKED_CLOCK in each for each in measured)
    return "; ncu locks clocks by default" if n_locked > _MOSTLY * len(measured) else ""
