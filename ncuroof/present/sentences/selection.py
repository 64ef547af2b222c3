"""Which launches of a run a summary or page shows, in a sentence."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.present.analysed import Record

_MOST_PATTERN = 60
"""Most characters of a regular expression."""


def selection_sentence(summary: Record) -> str:
    """Return what was selected, and that sums are its own; empty for a whole run.

    Args:
        summary: of a document.
    """
    selection = summary.get("selection")
    if selection is None:
        return ""
    kernel, nvtx, skip, count = (selection[key] for key in ("kernel", "nvtx", "skip", "count"))
    which = [f"kernels matching {_quoted(kernel)}" if kernel is not None else "launches"]
    which += [f"in NVTX ranges matching {_quoted(nvtx)}"] if nvtx is not None else []
    numbers = [f"without the first {skip}" if skip > 1 else "without the first"] if skip else []
    numbers += [f"at most {count}"] if count is not None else []
    which += [f"({', '.join(numbers)})"] if numbers else []
    if summary["n_kernels"] == selection["of_n_kernels"]:
        return f"{' '.join(which)}: all of the run's launches" if kernel is not None or nvtx is not None else ""
    share = f", {wording.share(selection['duration_frac'])} of its GPU time" if selection["duration_frac"] else ""
    return (
        f"only {' '.join(which)}: {summary['n_kernels']} of the run's {wording.launches(selection['of_n_kernels'])}{share}; "
        "all totals, shares and savings are of these"
    )


def _quoted(pattern: str) -> str:
    return f"'{wording.shortened(wording.printable(pattern), _MOST_PATTERN)}'"
