"""The brief: the answer of an analysis in a few kilobytes, for programs and prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.brief.markdown import to_markdown
from ncuroof.present.brief.packet import BUDGET_BYTES, LEAST_BUDGET_BYTES, brief, to_json

__all__ = ["BUDGET_BYTES", "LEAST_BUDGET_BYTES", "brief_text"]

_WRITTEN: Mapping[str, Callable[[Record], str]] = {"json": to_json, "md": to_markdown}


def brief_text(analysed: Analysed, form: str, *, budget: int = BUDGET_BYTES, kernel: str | None = None) -> str:
    """Return the brief of an analysis, of at most `budget` bytes of UTF-8.

    Args:
        analysed: the analysis.
        form: "json" or "md".
        budget: most bytes, at least LEAST_BUDGET_BYTES.
        kernel: id of a launch, or regular expression, to describe one kernel in depth; None for the run.

    Raises:
        SelectionError: no kernel has the id, no name matches, or the expression is malformed.
    """
    written = _WRITTEN[form]
    return written(brief(analysed, budget=budget, kernel=kernel, size=lambda packet: len(written(packet).encode())))
