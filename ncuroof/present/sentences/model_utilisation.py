"""Model FLOP utilisation (MFU) in words, and where the rest of the peak went."""

from __future__ import annotations

from ncuroof import formatting
from ncuroof.present.schemas.analysis import SummaryEntry, UtilisationEntry
from ncuroof.present.sentences.actions import gpu_time, is_whole

_LEAST_EXTRAPOLATED_FRAC = 0.02
"""Least extrapolated share of the needed work to be mentioned: less is lost in rounding (a choice)."""


def mfu_line(found: UtilisationEntry, summary: SummaryEntry) -> str:
    """Return the MFU in one line. Arguments as for `utilisation_sentence`."""
    return f"MFU {_reached(found, summary)}"


def mfu_value(found: UtilisationEntry, summary: SummaryEntry) -> str:
    """Return the MFU alone: "about 40.0 % (30.0 % over wall-clock time)". Arguments as for `utilisation_sentence`."""
    return f"{mfu_share(found)}{_of_wall(found, summary)}"


def utilisation_sentence(found: UtilisationEntry | None, summary: SummaryEntry) -> str:
    """Return how much of the peak the model's matrix products reached (MFU), and where the rest went; empty where not known.

    Args:
        found: `expected.utilisation` of a document.
        summary: the document's: over wall-clock time, products that were not profiled are lacking.
    """
    if found is None:
        return ""
    losses = [
        (found["extra_work_frac"], "to work beyond what the operators need"),
        (found["tail_frac"], "to partial last waves (tail effect)"),
        (found["low_efficiency_frac"], "to matrix products running below the peak"),
        (found["unknown_products_frac"], "to tensor-core kernels without a known operator, whose work is not counted"),
        (found["memory_bound_frac"], "to memory-bound kernels"),
        (found["short_frac"], "to kernels too short for their launch"),
        (found["other_frac"], "to other kernels"),
    ]
    parts = [f"{formatting.share(share)} {where}" for share, where in sorted(losses, reverse=True) if share >= 0.005]
    rest = f"the rest goes {', '.join(parts)}." if parts else "nothing is lost."
    sentence = f"MFU: the model's matrix products reach {_reached(found, summary)}; {rest}"
    if not _is_extrapolated(found):
        return sentence
    return (
        f"{sentence} {formatting.share(found['extrapolated_frac'])} of their work is extrapolated from time: a profiled launch "
        "represents launches of other sizes, assumed to run at the same rate (--no-per-shape --kernel NAME profiles each of them)."
    )


def _reached(found: UtilisationEntry, summary: SummaryEntry) -> str:
    """Return which share of which peak was reached: "about 40.0 % of the BF16 tensor peak of 989 TFLOP/s over GPU time"."""
    peak = f"{formatting.label(found['precision'])} peak of {formatting.flop_rate(found['peak_flop_per_s'], found['precision'])}"
    return f"{mfu_share(found)} of the {peak} over {gpu_time(summary)}{_of_wall(found, summary)}"


def mfu_share(found: UtilisationEntry) -> str:
    """Return the MFU over GPU time: "about 40.0 %"."""
    return f"{'about ' if _is_extrapolated(found) else ''}{formatting.share(found['mfu_frac'])}"


def _of_wall(found: UtilisationEntry, summary: SummaryEntry) -> str:
    """Return the share over wall-clock time in parentheses, with a space before; empty where it is not known."""
    least = "" if is_whole(summary) else "at least "
    share = found["wall_mfu_frac"]
    return "" if share is None else f" ({least}{formatting.share(share)} over wall-clock time)"


def _is_extrapolated(found: UtilisationEntry) -> bool:
    return bool(found["extrapolated_frac"] >= _LEAST_EXTRAPOLATED_FRAC)
