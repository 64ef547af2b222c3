"""ncu options that collect what a report lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from ncuroof.present.schemas.analysis import SourceEntry
from ncuroof.present.schemas.kernels import KernelEntry

_SECTION = "--section"

RAW_PAGE = "--page raw --csv"
"""ncu options that print all counters; with --import, those of a report."""


SHARED_SLICE = (
    "record it in a MIG compute instance that owns its whole GPU instance: a shared one has no counters for L2 and DRAM"
)


def is_on_shared_slice(kernel: KernelEntry) -> bool:
    """Return whether a kernel ran on a shared MIG slice, where no section can collect L2 and DRAM counters; see SHARED_SLICE.

    Args:
        kernel: an entry of the document.
    """
    return "shared_slice" in kernel["caveats"]


def raw_page_tells(kernel: KernelEntry, sources: Sequence[SourceEntry]) -> bool:
    """Return whether printing the raw page would add what a kernel lacks.

    That is the case if the kernel was read from a printed details page and the sections that collect something missing are on it.

    Args:
        kernel: an entry of the document.
        sources: of the document; a printed raw page has no section names.
    """
    if "printed_table" not in kernel["caveats"]:
        return False
    printed = sources[kernel["source"]]["sections"]
    wanted = [_sections(entry["collect"]) for entry in kernel["missing"]]
    return any(sections and sections.issubset(printed) for sections in wanted)


def _sections(options: str) -> set[str]:
    return {value for flag, value in pairwise(options.split()) if flag == _SECTION}


def collect_options(options: Iterable[str]) -> str:
    """Return the options of several lines merged into one, without duplicates and without remarks in brackets."""
    sections: dict[str, None] = {}
    metrics: dict[str, None] = {}
    for words in map(str.split, options):
        for flag, value in pairwise(words):
            if flag == "--metrics":
                metrics |= dict.fromkeys(value.split(","))
            elif flag.startswith("--"):
                sections[f"{flag} {value}"] = None
    return " ".join([*sections, *([f"--metrics {','.join(metrics)}"] if metrics else [])])
