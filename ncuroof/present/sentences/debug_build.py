"""The warning about kernels that were compiled for debugging."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.present.analysed import Record

_MOST_FRAC = 0.5
"""Share of the time: where debug builds take more, they come before any other advice."""


def debug_build_sentence(n_debug_builds: int, n_kernels: int, share_frac: float | None, of_time: str) -> str:
    """Return the warning; empty where no kernel is a debug build.

    Args:
        n_debug_builds: kernels whose machine code is a debug build.
        n_kernels: kernels of the run.
        share_frac: share of the time that debug builds take; None where not known.
        of_time: what that is a share of, in words.
    """
    if not n_debug_builds:
        return ""
    one = n_debug_builds == 1
    if n_debug_builds == n_kernels:
        compiled, share_frac = (
            "the kernel was" if one else f"{'both' if n_kernels == 2 else f'all {n_kernels}'} kernels were",
            None,
        )
    else:
        compiled = f"{n_debug_builds} of {n_kernels} kernels {'was' if one else 'were'}"
    takes = "" if share_frac is None else f", and {'takes' if one else 'take'} {wording.share(share_frac)} of {of_time}"
    is_first = n_debug_builds == n_kernels or come_first(share_frac)
    them = "" if is_first else " it" if one else " them"
    return (
        f"{compiled} compiled for debugging (nvcc -G), without optimisation{takes}: rebuild{them} with optimisation and record "
        f"again before {'anything else' if is_first else f'changing{them}'}"
    )


def come_first(share_frac: float | None) -> bool:
    """Return whether debug builds with this share of the time must be rebuilt before anything else is worth doing."""
    return share_frac is not None and share_frac > _MOST_FRAC


def is_debug_build(kernel: Record) -> bool:
    """Return whether a kernel of the document is a debug build."""
    return bool(kernel["check"].get("debug_build"))
