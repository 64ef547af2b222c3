"""The remark on verdicts that are less certain than the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import wording

_LEAST_FRAC = 0.1
"""Share of the time from which on it is worth a remark: a choice."""
_MOST_CAVEATS = 3


@dataclass(frozen=True, slots=True)
class Doubt:
    """A caveat for which verdicts are less certain."""

    name: Annotated[str, "of the caveat"]
    title: Annotated[str, "the same in words"]
    share: Annotated[str, "of the time"]


def doubts_sentence(doubted_frac: float | None, by_doubt: Mapping[str, float], of_time: str) -> str:
    """Return the remark, with the names that `ncuroof explain` knows; empty where little of the time is concerned.

    Args:
        doubted_frac: share of the time of kernels with a caveat that lowers the confidence; None where not known.
        by_doubt: the share with each of these caveats, the largest first.
        of_time: what that is a share of, in words.
    """
    claim = doubts_claim(doubted_frac, of_time)
    shown = ", ".join(f"{doubt.name} {doubt.share}" for doubt in doubted(by_doubt))
    return f"{claim}: {shown} (ncuroof explain NAME)" if claim else ""


def doubts_claim(doubted_frac: float | None, of_time: str) -> str:
    """Return the remark without the caveats; arguments as above."""
    if doubted_frac is None or doubted_frac < _LEAST_FRAC:
        return ""
    return f"verdicts are less certain for {wording.share(doubted_frac)} of {of_time}"


def doubted(by_doubt: Mapping[str, float]) -> Sequence[Doubt]:
    """Return the caveats with the largest shares; the argument is as above."""
    return [
        Doubt(name, wording.label(name), wording.share(frac)) for name, frac in list(by_doubt.items())[:_MOST_CAVEATS]
    ]
