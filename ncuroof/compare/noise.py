"""Whether a difference of time is more than chance."""

from __future__ import annotations

import math

import polars as pl

from ncuroof.compare.rules import Noise, load_comparison_rules
from ncuroof.compare.together import Row, Together


def is_beyond(change_frac: float, noise_frac: float) -> bool:
    """Return whether a change is more than chance, faster or slower alike: the factor counts, not the difference."""
    return change_frac > -1 and abs(math.log1p(change_frac)) > math.log1p(noise_frac)


def noise_of_match(before: Together, after: Together) -> float | None:
    """Return the change that chance alone makes seem possible; None where a time is not known.

    Standard errors of the means: the launches' own deviation where there are enough of them, else what launches of such a length
    have been seen to differ by; of both runs, root of the sum of squares; times `n_standard_errors`, at least `least_change_frac`.
    """
    noise = load_comparison_rules().noise
    errors_frac: list[float] = []
    for side in (before, after):
        mean = side.amount("mean_ns")
        if not mean:
            return None
        errors_frac += [_standard_error_ns(row, noise) * row["n_launches"] / side.n_units / mean for row in side.rows]
    return _of_errors(errors_frac, noise)


def noise_of_runs(before: pl.DataFrame, after: pl.DataFrame) -> float | None:
    """Return the change of a run's whole time that chance alone makes seem possible; None where a time is not known."""
    noise = load_comparison_rules().noise
    errors_frac: list[float] = []
    for groups in (before, after):
        rows = list(groups.filter(pl.col("mean_ns").is_not_null()).iter_rows(named=True))
        total = sum(row["mean_ns"] * row["n_launches"] for row in rows)
        if not total:
            return None
        errors_frac += [_standard_error_ns(row, noise) * row["n_launches"] / total for row in rows]
    return _of_errors(errors_frac, noise)


def other_clocks(before: Together, after: Together) -> str | None:
    """Return how much the SM clock of launches differs, where that makes their times incomparable; else None.

    Clocks are cycles over time, and of short launches as uncertain as the time.
    """
    noise = load_comparison_rules().noise
    clocks = before.average("sm_clock_hz"), after.average("sm_clock_hz")
    times = [(side.amount("mean_ns") or 0.0) * side.n_units / side.n_launches for side in (before, after)]
    if not clocks[0] or not clocks[1] or not all(times):
        return None
    difference = abs(clocks[1] / clocks[0] - 1)
    if difference <= noise.clock_difference_frac + noise.n_standard_errors * noise.jitter_ns / min(times):
        return None
    return f"the SM clock differs by {100 * difference:.1f} % ({clocks[0] / 1e6:.0f} MHz → {clocks[1] / 1e6:.0f} MHz)"


def _of_errors(errors_frac: list[float], noise: Noise) -> float:
    return max(noise.least_change_frac, noise.n_standard_errors * math.hypot(*errors_frac))


def _standard_error_ns(row: Row, noise: Noise) -> float:
    n_launches = row["n_recorded"]
    seen = math.hypot(noise.jitter_ns, noise.deviation_frac * (row["mean_ns"] or 0.0))
    own = row["deviation_ns"] if n_launches >= noise.n_launches_to_estimate else None
    return (own if own is not None else seen) / math.sqrt(n_launches)
