"""The remark on verdicts that are less certain than the others."""

from __future__ import annotations

from collections.abc import Mapping

from ncuroof import wording

_LEAST_FRAC = 0.1
"""Share of the time from which on it is worth a remark: a choice."""
_MOST_CAVEATS = 3


def doubts_sentence(doubted_frac: float | None, by_doubt: Mapping[str, float], of_time: str) -> str:
    """Return the remark; empty where little of the time is concerned.

    Args:
        doubted_frac: share of the time of kernels with a caveat that lowers the confidence; None where not known.
        by_doubt: the share with each of these caveats, the largest first.
        of_time: what that is a share of, in words.
    """
    if doubted_frac is None or doubted_frac < _LEAST_FRAC:
        return ""
    shown = [f"{name} {wording.share(frac)}" for name, frac in list(by_doubt.items())[:_MOST_CAVEATS]]
    return f"verdicts are less certain for {wording.share(doubted_frac)} of {of_time}: {', '.join(shown)} (ncuroof explain NAME)"
