"""What to collect or print to know why a kernel is slow."""

from __future__ import annotations

from collections.abc import Sequence

from ncuroof.present.analysed import Record
from ncuroof.present.sentences.collect_options import RAW_PAGE, SHARED_SLICE, is_on_shared_slice, raw_page_tells

_N_OPTIONS = 2
"""Most ncu options to name where advice needs more counters."""


def to_know_more(kernel: Record, sources: Sequence[Record], *, only: str | None = None) -> str:
    """Return how to know quantities (`only`, or all) that a kernel lacks, as "collect --section X"; empty where none is missing.

    Args:
        kernel: an entry of the document.
        sources: of the document.
        only: name of a quantity.
    """
    if is_on_shared_slice(kernel):
        return SHARED_SLICE
    options = list(dict.fromkeys(entry["collect"] for entry in kernel["missing"] if only in (None, entry["quantity"])))
    if not options:
        return ""
    if raw_page_tells(kernel, sources):
        return f"print the raw page: ncu {RAW_PAGE}"
    return f"collect {' '.join(options[:_N_OPTIONS])}"
