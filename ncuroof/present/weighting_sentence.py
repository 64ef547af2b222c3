"""What the sums over a run are weighted by, in a sentence."""

from __future__ import annotations

from ncuroof.present import format as text


def weighting_sentence(*, n_launches: int, covered_frac: float | None, n_unmatched: int, **_: object) -> str:
    """Return it: counted launches, the share of their time that was recorded, and what was not counted.

    Args:
        n_launches: that were counted in a first run.
        covered_frac: share of their GPU time whose kernels were recorded; None where not known.
        n_unmatched: recorded launches of kernels that were not counted.
    """
    parts = [
        f"weighted by a first run without replays, which counted {n_launches} launches: sums, shares and gains are of that run, "
        "times of single launches are ncu's"
    ]
    if covered_frac is not None and covered_frac < 1:
        parts.append(f"kernels with {text.share(1 - covered_frac)} of its GPU time were not recorded and are in no sum")
    if n_unmatched:
        launches = "launch was" if n_unmatched == 1 else "launches were"
        parts.append(f"{n_unmatched} recorded {launches} not counted there, and stands for itself")
    return "; ".join(parts)
