"""Options of ncu that collect what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

RAW_PAGE = "--page raw --csv"
"""Options of `ncu --import` that print all counters of a report."""


def is_details_page(kernel: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a kernel was read from a printed page of details, which leaves out most counters of its report.

    Args:
        kernel: an entry of the document.
        sources: the document's; those of printed raw pages name no sections.
    """
    source = kernel.get("source")
    is_printed = "printed_table" in (kernel.get("caveats") or ())
    return is_printed and source is not None and bool(sources[source].get("sections"))


def collect_options(options: Iterable[str]) -> str:
    """Return one line of ncu options that collects what several lines would; remarks in brackets are dropped."""
    sections: dict[str, None] = {}
    metrics: dict[str, None] = {}
    for words in map(str.split, options):
        for flag, value in pairwise(words):
            if flag == "--metrics":
                metrics |= dict.fromkeys(value.split(","))
            elif flag.startswith("--"):
                sections[f"{flag} {value}"] = None
    return " ".join([*sections, *([f"--metrics {','.join(metrics)}"] if metrics else [])])
