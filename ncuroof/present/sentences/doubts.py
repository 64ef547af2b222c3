"""The remark on verdicts that are less certain than the others."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.actions import gpu_time

_LEAST_FRAC = 0.1
"""Share of the time from which on it is worth a remark: a choice."""
_MOST_CAVEATS = 3


def doubts_sentence(summary: Record) -> str:
    """Return the remark; empty where little of the time is concerned.

    Args:
        summary: of a document; its `by_doubt` has the largest doubts first.
    """
    doubted_frac = summary["doubted_frac"]
    if doubted_frac is None or doubted_frac < _LEAST_FRAC:
        return ""
    shown = [f"{name} {wording.share(frac)}" for name, frac in list(summary["by_doubt"].items())[:_MOST_CAVEATS]]
    return (
        f"verdicts are less certain for {wording.share(doubted_frac)} of {gpu_time(summary)}: {', '.join(shown)} "
        "(ncuroof explain NAME)"
    )
