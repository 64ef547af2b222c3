"""The warning about kernels that were compiled for debugging."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.actions import gpu_time

_MOST_FRAC = 0.5
"""Share of the time: where debug builds take more, they come before any other advice."""


def debug_build_sentence(summary: Record) -> str:
    """Return the warning; empty where no kernel is a debug build.

    Args:
        summary: of a document.
    """
    n_debug_builds, n_kernels, share_frac = (
        summary[key] for key in ("n_debug_builds", "n_kernels", "debug_build_frac")
    )
    if not n_debug_builds:
        return ""
    is_one, are_all = n_debug_builds == 1, n_debug_builds == n_kernels
    every = {1: "the kernel", 2: "both kernels"}.get(n_kernels, f"all {n_kernels} kernels")
    which = every if are_all else f"{n_debug_builds} of {n_kernels} kernels"
    time = "" if are_all or share_frac is None else f"{wording.share(share_frac)} of {gpu_time(summary)}"
    takes = f", and {'takes' if is_one else 'take'} {time}" if time else ""
    is_first = are_all or come_first(share_frac)
    them = "" if is_first else " it" if is_one else " them"
    return (
        f"{which} {'was' if is_one else 'were'} compiled for debugging (nvcc -G), without optimisation{takes}: "
        f"rebuild{them} with optimisation and record again before {'anything else' if is_first else f'changing{them}'}"
    )


def come_first(share_frac: float | None) -> bool:
    """Return whether debug builds with this share of the time must be rebuilt before anything else is worth doing."""
    return share_frac is not None and share_frac > _MOST_FRAC


def is_debug_build(kernel: Record) -> bool:
    """Return whether a kernel of the document is a debug build."""
    return bool(kernel["check"].get("debug_build"))
