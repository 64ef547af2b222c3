"""Noise: how large a difference of time has to be to mean more than chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import polars as pl

from ncuroof.comparison.matched_groups import MatchedGroups, Row
from ncuroof.comparison.rules import Noise, load_comparison_rules


@dataclass(frozen=True, slots=True)
class Chance:
    """How uncertain a change of time is.

    Attributes:
        error_frac: its standard error, as a share of the time.
        freedom: degrees of freedom of its estimate; infinite for the typical deviation of launches, which is not estimated.
    """

    error_frac: float
    freedom: float

    @classmethod
    def of(cls, errors: list[tuple[float, float]]) -> Chance:
        """Return the uncertainty of a sum of independent parts, each with its error and its freedom (Welch-Satterthwaite)."""
        error = math.hypot(*(part for part, _ in errors))
        shares = sum((part / error) ** 4 / freedom for part, freedom in errors) if error else 0.0
        return cls(error, 1 / shares if shares else math.inf)

    def noise_frac(self, n_changes: int = 1) -> float:
        """Return the noise: the largest change that chance alone explains, if `n_changes` changes are judged together (Šidák).

        For a single change it is `n_standard_errors` standard errors; more if the error is estimated from few launches; and never
        less than `least_change_frac`.
        """
        least = load_comparison_rules().noise.least_change_frac
        return max(least, _student(_n_errors(n_changes), self.freedom) * self.error_frac)


@cache
def _n_errors(n_changes: int) -> float:
    """Return the bound, in standard errors, that any of `n_changes` changes exceeds as rarely as one change exceeds its own."""
    normal = NormalDist()
    within = 1 - 2 * normal.cdf(-load_comparison_rules().noise.n_standard_errors)
    return normal.inv_cdf((1 + within ** (1 / n_changes)) / 2)


def is_beyond(change_frac: float, noise_frac: float) -> bool:
    """Return whether a change exceeds the noise. Factors are compared, so that faster and slower are treated alike."""
    return change_frac > -1 and abs(math.log1p(change_frac)) > math.log1p(noise_frac)


def chance_of_match(before: MatchedGroups, after: MatchedGroups) -> Chance | None:
    """Return the uncertainty of a change of time; None if a time is unknown.

    It is the root of the sum of squares of the standard errors of both means. A standard error comes from the deviation of the
    launches themselves if there are enough of them, and from the typical deviation of launches of this length otherwise.
    """
    noise = load_comparison_rules().noise
    errors: list[tuple[float, float]] = []
    for side in (before, after):
        mean = side.amount("mean_ns")
        if not mean:
            return None
        errors += [_error(row, row["n_launches"] / side.n_units / mean, noise) for row in side.rows]
    return Chance.of(errors)


def noise_of_counted(mean_ns: tuple[float, float], n_launches: tuple[int, int]) -> float:
    """Return the noise of a change of counted times.

    Jitter averages out over launches. Differences between runs, such as clocks, do not, because they affect all launches alike.

    Args:
        mean_ns: time of a launch, before and after.
        n_launches: launches, before and after.
    """
    noise = load_comparison_rules().noise
    errors = [
        math.hypot(noise.jitter_ns / math.sqrt(n) / mean, noise.deviation_frac)
        for mean, n in zip(mean_ns, n_launches, strict=True)
    ]
    return Chance(math.hypot(*errors), math.inf).noise_frac()


def noise_of_runs(before: pl.DataFrame, after: pl.DataFrame) -> float | None:
    """Return the noise of a change of a run's whole time; None if a run has no known time."""
    noise = load_comparison_rules().noise
    errors: list[tuple[float, float]] = []
    for groups in (before, after):
        rows = list(groups.filter(pl.col("mean_ns").is_not_null()).iter_rows(named=True))
        total = sum(row["mean_ns"] * row["n_launches"] for row in rows)
        if not total:
            return None
        errors += [_error(row, row["n_launches"] / total, noise) for row in rows]
    return Chance.of(errors).noise_frac()


def clock_change(before: MatchedGroups, after: MatchedGroups) -> float:
    """Return the SM clock after over before, minus one; 0 unless both are known."""
    was, became = before.average("sm_clock_hz"), after.average("sm_clock_hz")
    return became / was - 1 if was and became else 0.0


def by_clocks(change_frac: float, clock_frac: float) -> float:
    """Return the share of time that the clock may explain: its own change, if time and clock moved in opposite directions."""
    return abs(clock_frac) if change_frac * clock_frac < 0 else 0.0


def is_by_clocks(was_ns: float, became_ns: float, clock_frac: float) -> bool:
    """Return whether the clocks alone may explain a change of time, that is, whether it is not much larger than theirs."""
    most = load_comparison_rules().noise.most_clock_power * abs(math.log1p(clock_frac))
    return abs(math.log(became_ns / was_ns)) <= most


def other_clocks(before: MatchedGroups, after: MatchedGroups) -> str | None:
    """Return how much the SM clocks differ if that makes the times incomparable, else None.

    A clock is cycles over time, so for short launches it is as uncertain as the time. Times that differ by much more than the
    clocks remain comparable.
    """
    noise = load_comparison_rules().noise
    clocks = before.average("sm_clock_hz"), after.average("sm_clock_hz")
    times = [(side.amount("mean_ns") or 0.0) * side.n_units / side.n_launches for side in (before, after)]
    if not clocks[0] or not clocks[1] or not all(times):
        return None
    change = clock_change(before, after)
    difference = abs(change)
    if not is_by_clocks(
        times[0], times[1], change
    ) or difference <= noise.clock_difference_frac + noise.n_standard_errors * noise.jitter_ns / min(times):
        return None
    return f"the SM clock differs by {100 * difference:.1f} % ({clocks[0] / 1e6:.0f} MHz → {clocks[1] / 1e6:.0f} MHz)"


def _error(row: Row, scale: float, noise: Noise) -> tuple[float, float]:
    """Return the standard error of a group's mean, times a scale, and its degrees of freedom."""
    n_launches = row["n_recorded"]
    own = row["deviation_ns"] if n_launches >= noise.n_launches_to_estimate else None
    seen = math.hypot(noise.jitter_ns, noise.deviation_frac * (row["mean_ns"] or 0.0))
    deviation, freedom = (seen, math.inf) if own is None else (own, n_launches - 1.0)
    return scale * deviation / math.sqrt(n_launches), freedom


def _student(normal: float, freedom: float) -> float:
    """Return the quantile of Student's distribution at the probability of a normal quantile, from 2 degrees of freedom on.

    Hill, Algorithm 396, Communications of the ACM 13 (1970): within 0.05 % of the exact value from 1.5 standard errors on.
    """
    if math.isinf(freedom):
        return normal
    both_tails = 2 * NormalDist().cdf(-normal)
    a = 1 / (freedom - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * freedom
    y = (d * both_tails) ** (2 / freedom)
    if y > 0.05 + a:  # near the normal distribution
        x = -normal
        c += 0.3 * (freedom - 4.5) * (x + 0.6) if freedom < 5 else 0.0
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = x**2
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y**2)
    else:
        tail = 1 / (((freedom + 6) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2) * 3) + 0.5 / (freedom + 4)
        y = (tail * y - 1) * (freedom + 1) / (freedom + 2) + 1 / y
    return math.sqrt(freedom * y)
