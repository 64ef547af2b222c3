"""The remark on verdicts that are less certain than the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.actions import gpu_time

_LEAST_FRAC = 0.1
"""Share of the time from which on it is worth a remark: a choice."""
_MOST_CAVEATS = 3


@dataclass(frozen=True, slots=True)
class Doubt:
    """A caveat for which verdicts are less certain."""

    name: Annotated[str, "of the caveat"]
    title: Annotated[str, "the same in words"]
    share: Annotated[str, "of the time"]


def doubts_sentence(summary: Record) -> str:
    """Return the remark, with the names that `ncuroof explain` knows; empty where little of the time is concerned.

    Args:
        summary: of a document; its `by_doubt` has the largest doubts first. So for all functions here.
    """
    claim = doubts_claim(summary)
    shown = ", ".join(f"{doubt.name} {doubt.share}" for doubt in doubted(summary))
    return f"{claim}: {shown} (ncuroof explain NAME)" if claim else ""


def doubts_claim(summary: Record) -> str:
    """Return the remark without the caveats."""
    doubted_frac = summary["doubted_frac"]
    if doubted_frac is None or doubted_frac < _LEAST_FRAC:
        return ""
    return f"verdicts are less certain for {wording.share(doubted_frac)} of {gpu_time(summary)}"


def doubted(summary: Record) -> Sequence[Doubt]:
    """Return the caveats with the largest shares of the time."""
    shown = list(summary["by_doubt"].items())[:_MOST_CAVEATS]
    return [Doubt(name, wording.label(name), wording.share(frac)) for name, frac in shown]
