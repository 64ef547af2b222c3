"""What changed: first whether a difference of time is more than chance, then how large it is, then what explains it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ncuroof.compare.line_changes import LineChange, line_changes
from ncuroof.compare.matching import Match
from ncuroof.compare.rules import ComparisonRules, Explanation, Noise, load_comparison_rules
from ncuroof.compare.side import Side

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A quantity before and after."""

    quantity: str
    words: str
    kind: str
    before: float
    after: float
    explains: bool


@dataclass(frozen=True, slots=True)
class Delta:
    """A match and what changed in it.

    Attributes:
        match: which groups.
        names: short names before and after.
        n_launches: launches before and after.
        duration_ns: GPU time of all launches, before and after; None where not known.
        mean_ns: time of one launch, before and after; of several groups that of all, over how often they were launched together.
        change_frac: of `mean_ns`, after over before less one; None where either is not known.
        noise_frac: a smaller change is none.
        is_significant: whether the change is more than chance.
        verdicts, limiters: of the longest group, before and after.
        recoverable_ns, roof_frac: before and after.
        changes: quantities that differ by more than their least, those that explain the change of time first.
        lines: where in the source the time changed, the most first; nothing where the change is not significant.
    """

    match: Match
    names: tuple[str, str]
    n_launches: tuple[int, int]
    duration_ns: tuple[float | None, float | None]
    mean_ns: tuple[float | None, float | None]
    change_frac: float | None
    noise_frac: float | None
    is_significant: bool
    verdicts: tuple[str, str]
    limiters: tuple[str | None, str | None]
    recoverable_ns: tuple[float | None, float | None]
    roof_frac: tuple[float | None, float | None]
    changes: tuple[Change, ...]
    lines: tuple[LineChange, ...] = ()


def deltas(before: Side, after: Side, matches: Sequence[Match]) -> list[Delta]:
    """Return what changed in every match, in their order."""
    old_rows, new_rows = _by_group(before.groups), _by_group(after.groups)
    lines = _lines_by_group(before.lines), _lines_by_group(after.lines)
    rules = load_comparison_rules()
    return [
        _with_lines(
            _delta(
                found, [old_rows[group] for group in found.before], [new_rows[group] for group in found.after], rules
            ),
            lines,
            rules.noise,
        )
        for found in matches
    ]


def _by_group(groups: pl.DataFrame) -> dict[int, Row]:
    return {row["group"]: row for row in groups.iter_rows(named=True)}


def _lines_by_group(lines: pl.DataFrame) -> dict[int, list[Row]]:
    return {rows[0]["group"]: rows for part in lines.partition_by("group") if (rows := part.to_dicts())}


def _with_lines(delta: Delta, lines: tuple[dict[int, list[Row]], dict[int, list[Row]]], noise: Noise) -> Delta:
    """Return a change with where in the source it is, where one kernel stands against one."""
    old, new = delta.match.before, delta.match.after
    before_ns, after_ns = delta.mean_ns
    if not delta.is_significant or len(old) > 1 or len(new) > 1 or before_ns is None or after_ns is None:
        return delta
    found = line_changes(lines[0].get(old[0], []), lines[1].get(new[0], []), (before_ns, after_ns), noise)
    return replace(delta, lines=found)


def _delta(found: Match, old: list[Row], new: list[Row], rules: ComparisonRules) -> Delta:
    means = tuple(_per_launch(rows, "mean_ns") for rows in (old, new))
    noise = _noise_frac(old, new, rules.noise)
    change = means[1] / means[0] - 1 if means[0] and means[1] else None
    is_significant = change is not None and noise is not None and abs(math.log1p(change)) > math.log1p(noise)
    longest = tuple(max(rows, key=lambda row: row["duration_ns"] or 0.0) for rows in (old, new))
    return Delta(
        match=found,
        names=(_names(old), _names(new)),
        n_launches=(_launches(old), _launches(new)),
        duration_ns=(_known_sum(row["duration_ns"] for row in old), _known_sum(row["duration_ns"] for row in new)),
        mean_ns=(means[0], means[1]),
        change_frac=change,
        noise_frac=noise,
        is_significant=is_significant,
        verdicts=(longest[0]["verdict"], longest[1]["verdict"]),
        limiters=(longest[0]["limiter"], longest[1]["limiter"]),
        recoverable_ns=(
            _known_sum(row["recoverable_ns"] for row in old),
            _known_sum(row["recoverable_ns"] for row in new),
        ),
        roof_frac=(longest[0]["roof_frac"], longest[1]["roof_frac"]),
        changes=_changes(old, new, change if is_significant else None, rules),
    )


def _names(rows: list[Row]) -> str:
    return " + ".join(row["short_name"] or row["name"] or "(no name)" for row in rows)


def _launches(rows: list[Row]) -> int:
    """Return how often the groups were launched together: as often as the one that was launched the most."""
    return max(int(row["n_launches"]) for row in rows)


def _per_launch(rows: list[Row], quantity: str) -> float | None:
    """Return an amount of all groups over how often they were launched together; None where it is not known for any."""
    return _known_sum(
        None if row[quantity] is None else row[quantity] * row["n_launches"] / _launches(rows) for row in rows
    )


def _noise_frac(old: list[Row], new: list[Row], noise: Noise) -> float | None:
    """Return the change that chance alone makes seem possible.

    Standard errors of the means: the launches' own deviation where there are enough of them, else what launches of such a length
    have been seen to differ by; of both runs, root of the sum of squares; times `n_standard_errors`, at least `least_change_frac`.
    """
    errors_frac: list[float] = []
    for rows in (old, new):
        mean = _per_launch(rows, "mean_ns")
        if not mean:
            return None
        errors_frac += [_standard_error_ns(row, noise) * row["n_launches"] / _launches(rows) / mean for row in rows]
    return max(noise.least_change_frac, noise.n_standard_errors * math.hypot(*errors_frac))


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
    return max(noise.least_change_frac, noise.n_standard_errors * math.hypot(*errors_frac))


def _standard_error_ns(row: Row, noise: Noise) -> float:
    n_launches = row["n_recorded"]
    seen = math.hypot(noise.jitter_ns, noise.deviation_frac * (row["mean_ns"] or 0.0))
    own = row["deviation_ns"] if n_launches >= noise.n_launches_to_estimate else None
    return (own if own is not None else seen) / math.sqrt(n_launches)


def _changes(old: list[Row], new: list[Row], time_change: float | None, rules: ComparisonRules) -> tuple[Change, ...]:
    found = [change for explanation in rules.explanations if (change := _change(old, new, explanation, time_change))]
    return tuple(sorted(found, key=lambda change: not change.explains))


def _change(old: list[Row], new: list[Row], explanation: Explanation, time_change: float | None) -> Change | None:
    """Return how a quantity changed, where it did by more than its least."""
    was, became = (_over_groups(rows, explanation) for rows in (old, new))
    if was is None or became is None:
        return None
    size = abs(became - was)
    if explanation.kind != "share":
        size /= max(abs(was), abs(became)) or 1.0
    if size < explanation.least:
        return None
    explains = time_change is not None and (time_change > 0) == ((became > was) == (explanation.goes_with == "time"))
    return Change(explanation.quantity, explanation.words, explanation.kind, was, became, explains)


def _over_groups(rows: list[Row], explanation: Explanation) -> float | None:
    """Return a quantity of the groups: an amount per launch, a share or rate averaged by time; None where any is not known."""
    if explanation.kind == "amount":
        return _per_launch(rows, explanation.quantity)
    values = [row[explanation.quantity] for row in rows]
    weights = [(row["mean_ns"] or 0.0) * row["n_launches"] for row in rows]
    if None in values or not sum(weights):
        return None
    return float(sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights))


def _known_sum(values: Iterable[float | None]) -> float | None:
    """Return the sum; None where any part is not known."""
    parts = list(values)
    return None if None in parts else float(sum(part for part in parts if part is not None))
