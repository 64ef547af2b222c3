"""The warning about launches whose profiling failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ncuroof import wording

_N_NAMED, _MOST_NAME = 3, 60
"""Most kernels to name, and most characters of a name."""


def failed_sentence(names: Sequence[str]) -> str:
    """Return which launches were not measured, and what to do about it; empty where profiling failed for none.

    Args:
        names: short name of each launch that failed.
    """
    if not names:
        return ""
    n_by_name = Counter(wording.shortened(wording.printable(name), _MOST_NAME) for name in names).most_common()
    named = [f"{name} ×{n}" if n > 1 else name for name, n in n_by_name[:_N_NAMED]]
    n_more = len(n_by_name) - len(named)
    which = ", ".join(named) + (f" and {wording.counted(n_more, 'other kernel')}" if n_more else "")
    failed, them, they = (
        ("a launch failed to profile and is", "it", "it")
        if len(names) == 1
        else (f"{len(names)} launches failed to profile and are", "them", "they")
    )
    what_to_do = f"see in ncu's output why {they} failed, then record {them} again"
    return f"{failed} in no sum: {which}; {what_to_do} (kernels that wait for other GPUs cannot be replayed)"
