"""Compare two runs: match their kernels, find what changed in each match, and sum the changes up for the run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from ncuroof.comparison.chosen_pairs import ChosenPair, chosen_kernels
from ncuroof.comparison.deltas import Delta, deltas
from ncuroof.comparison.distinct_names import names_of_failed, with_distinct_names
from ncuroof.comparison.matching import Matching, Sureness, match
from ncuroof.comparison.noise import by_clocks, is_by_clocks, noise_of_runs
from ncuroof.comparison.obstacles import Comparable, comparable, coverage_obstacle, n_units
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.run import Run
from ncuroof.comparison.signatures import texts_without_versions

_MOST_NAMES = 3
_MOST_AT_DIFFERENT_CLOCKS = 0.1
"""Share of the matched time at differing clocks above which the times of the whole runs are not compared."""

_LEAST_MATCHED = 0.5
"""Share of the time of both runs below which the matches do not represent the clocks of the runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What changed from one run to another.

    Attributes:
        before, after: the runs.
        comparable: whether their times can be compared, and why not.
        matching: which groups match, were added and were removed.
        deltas: what changed in the matches, in their order.
        is_chosen: whether the runs hold only kernels that the user named.
        written: returns the text that a notebook shows.
    """

    before: Run
    after: Run
    comparable: Comparable
    matching: Matching
    deltas: tuple[Delta, ...]
    is_chosen: bool = False
    written: Callable[[Comparison], str] = repr

    def __repr__(self) -> str:
        n_alone = f"{len(self.matching.added)} added, {len(self.matching.removed)} removed"
        return f"<Comparison: {self.before.label} → {self.after.label}; {len(self.deltas)} kernels matched, {n_alone}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.written(self))}</pre>"

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed: every group has a match, no time differs by more than noise, and all times are comparable."""
        is_moved = (
            self.matching.added
            or self.matching.removed
            or self.matching.not_recorded_before
            or self.matching.not_recorded_after
            or any(delta.is_significant or delta.is_counted_otherwise for delta in self.deltas)
        )
        return not (is_moved or run_obstacle(self))


def compare(before: Run, after: Run, pairs: Sequence[ChosenPair] = ()) -> Comparison:
    """Return what changed between two runs, or, with `pairs`, between chosen kernels.

    Raises:
        SelectionError: a run has no kernel that a pair names.
    """
    before, after = with_distinct_names(before, after)
    if pairs:
        before, after, matching = chosen_kernels(before, after, pairs)
    runs = before, after
    precisions = before.setup.precisions, after.setup.precisions
    if all(precisions) and precisions[0] != precisions[1]:  # FLOPs that only one run counted are no change
        runs = before.without_flop(), after.without_flop()
    if not pairs:
        matching = match(*runs)
    return Comparison(
        before=before,
        after=after,
        comparable=comparable(before.setup, after.setup),
        matching=matching,
        deltas=tuple(deltas(*runs, matching.matches)),
        is_chosen=bool(pairs),
    )


def run_obstacle(comparison: Comparison) -> str | None:
    """Return why the GPU times of the whole runs cannot be compared, or None if they can.

    Reasons are: several chosen kernels, a damaged run, launches that failed in only one run, unknown times, runs that cover
    different parts of the program, launches that were counted in only one run, or different clocks.
    """
    return (
        _chosen_obstacle(comparison)
        or damage_of({"before": comparison.before, "after": comparison.after})
        or _failure_difference(comparison.before, comparison.after)
        or _unknown_times(comparison.before, comparison.after)
        or coverage_obstacle(comparison.before, comparison.after)
        or _count_difference(comparison.before, comparison.after)
        or _clock_difference(comparison)
    )


def _chosen_obstacle(comparison: Comparison) -> str:
    """Return that several kernels were chosen, so that their sum has no meaning: they may be steps of a series; else ""."""
    return "several kernels were chosen" if comparison.is_chosen and len(comparison.deltas) > 1 else ""


def damage_of(runs: Mapping[str, Run]) -> str:
    """Return which runs are damaged and how, so that launches may be missing; "" if all are whole."""
    return ", ".join(f"the run {when} is damaged ({'; '.join(run.damage)})" for when, run in runs.items() if run.damage)


def _unknown_times(before: Run, after: Run) -> str:
    """Return which kernels have no time in a run where others have one, so that its sum is too low; else ""."""
    is_known = (pl.col("duration_ns") > 0).fill_null(value=False)
    clauses = []
    for run, when in ((before, "before"), (after, "after")):
        unknown = run.groups.filter(~is_known)["short_name"].to_list()
        if 0 < len(unknown) < run.groups.height:
            clauses.append(f"the time of {first_few(unknown)} is not known {when}")
    return ", ".join(clauses)


def _count_difference(before: Run, after: Run) -> str | None:
    """Return that only one run was counted, or that the time of launches that were counted but not recorded differs; else None.

    That time is in no sum. If it differs by more than noise, a kernel may have moved from the recorded launches to the others, or
    back. The noise is the noise of all counted time.
    """
    if before.is_counted != after.is_counted:
        return f"only the run {'before' if before.is_counted else 'after'} has a counting run, without ncu"
    noise = noise_of_runs(before.groups, after.groups)
    if before.not_recorded_ns is None or after.not_recorded_ns is None or noise is None:
        return None
    units = n_units(before, after)
    was, became = before.not_recorded_ns / units[0], after.not_recorded_ns / units[1]
    if abs(became - was) <= noise * ((total_ns(before) or 0.0) / units[0] + was):
        return None
    per_step = "" if units == (1, 1) else " per step"
    return f"kernels that were counted but not profiled took {was / 1e6:.3g} ms{per_step} before, {became / 1e6:.3g} ms after"


def _clock_difference(comparison: Comparison) -> str | None:
    at_other_clocks = [delta for delta in comparison.deltas if delta.obstacle is not None]
    if sum(map(_time_ns, at_other_clocks)) > _MOST_AT_DIFFERENT_CLOCKS * sum(map(_time_ns, comparison.deltas)):
        longest = max(at_other_clocks, key=_time_ns)
        return f"{longest.names[1]}: {longest.obstacle}"
    change = _run_clock_change(comparison)  # of a single short launch it may be chance
    was, became = _unit_totals_ns(comparison)
    if was and became and not is_by_clocks(was, became, change):
        return None
    difference = abs(change)
    if difference <= load_comparison_rules().noise.clock_difference_frac:
        return None
    whole = "the kernels that both runs launched" if _are_mostly_matched(comparison) else "all launches of each run"
    return f"the SM clock differs by {100 * difference:.1f} % on average over {whole}"


def _are_mostly_matched(comparison: Comparison) -> bool:
    total = sum(total_ns(run) or 0.0 for run in (comparison.before, comparison.after))
    return sum(map(_time_ns, comparison.deltas)) >= _LEAST_MATCHED * total


def _time_ns(delta: Delta) -> float:
    """Return the time of a match in both runs together; an unknown time counts as 0."""
    return sum(time or 0.0 for time in delta.duration_ns)


def _run_clock_change(comparison: Comparison) -> float:
    """Return the SM clock after over before, minus one: over the matches, or over all launches if few match."""
    if _are_mostly_matched(comparison):
        return _clock_change(comparison)
    was, became = (_average_clock_hz(run) for run in (comparison.before, comparison.after))
    return became / was - 1 if was and became else 0.0


def _average_clock_hz(run: Run) -> float | None:
    """Return the SM clock of a run, averaged by time; None if no launch has a clock and a time."""
    known = run.groups.drop_nulls(["sm_clock_hz", "duration_ns"])
    total = float(known["duration_ns"].sum())
    return float((known["sm_clock_hz"] * known["duration_ns"]).sum()) / total if total else None


def _clock_change(comparison: Comparison) -> float:
    """Return the SM clock after over before, minus one, averaged over the matches by time."""
    total = sum(map(_time_ns, comparison.deltas))
    return sum(_time_ns(delta) * delta.clock_frac for delta in comparison.deltas) / total if total else 0.0


def _failure_difference(before: Run, after: Run) -> str:
    """Return which launches failed in only one run. Without names, compare only their numbers. "" for no difference."""
    if "" in (*before.failed, *after.failed):
        n_failed = len(before.failed), len(after.failed)
        return (
            ""
            if n_failed[0] == n_failed[1]
            else f"launches failed to profile: {n_failed[0]} before, {n_failed[1]} after"
        )
    failed = [Counter(texts_without_versions(run.failed)) for run in (before, after)]
    shown = names_of_failed(before, after)
    only = [_short_list(part, shown) for part in (failed[0] - failed[1], failed[1] - failed[0])]
    return ", ".join(
        f"{names} failed to profile {when}" for names, when in zip(only, ("before", "after"), strict=True) if names
    )


def _short_list(names: Counter[str], shown: Mapping[str, str]) -> str:
    """Return the first few names as they are shown, each with its number of launches."""
    return first_few(
        [f"{count} launches of {shown[name]}" if count > 1 else shown[name] for name, count in names.items()]
    )


def first_few(names: Sequence[str]) -> str:
    """Return the first few names, each once, and how many more there are."""
    known = list(dict.fromkeys(names))
    more = [f"{len(known) - _MOST_NAMES} more"] if len(known) > _MOST_NAMES else []
    return ", ".join(known[:_MOST_NAMES] + more)


def run_change(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the change of the run's GPU time, as a share of it, and its noise.

    If the runs cover different numbers of steps, the change is per step; for a chosen kernel, it is per launch. Both are None if a
    time is unknown, or if there is an obstacle (`run_obstacle`).
    """
    if run_obstacle(comparison) is not None:
        return None, None
    if comparison.is_chosen:
        return matched_change(comparison)
    was, became = _unit_totals_ns(comparison)
    if not was or became is None:
        return None, None
    change, noise = became / was - 1, noise_of_runs(comparison.before.groups, comparison.after.groups)
    return (None, None) if noise is None else (change, noise + by_clocks(change, _run_clock_change(comparison)))


def matched_change(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the change of the kernels that both runs launched, launch for launch, and its noise.

    The change is the mean times after, weighted by the numbers of launches before, over the same sum of the times before, minus
    one. So additional kernels and additional launches do not count. Matches that are guesses do not count either. Both values are
    None if no kernel has a known time in both runs.
    """
    was = became = 0.0
    noises_ns: list[float] = []
    for delta in comparison.deltas:
        if delta.match.sureness is Sureness.GUESS:
            continue
        if delta.change_frac is not None and delta.chance is not None and delta.mean_ns[0]:
            time_ns = (1 if delta.is_in_all else delta.n_launches[0]) * delta.mean_ns[0]
            was += time_ns
            became += time_ns * (1 + delta.change_frac)
            noises_ns.append(time_ns * delta.chance.noise_frac())
    if not was:
        return None, None
    change = became / was - 1
    noise = max(load_comparison_rules().noise.least_change_frac, math.hypot(*noises_ns) / was)
    return change, noise + by_clocks(change, _clock_change(comparison))


def _unit_totals_ns(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the GPU times of both runs, per step if their numbers of steps differ; None for an unknown time."""
    units = n_units(comparison.before, comparison.after)
    was, became = total_ns(comparison.before), total_ns(comparison.after)
    return None if was is None else was / units[0], None if became is None else became / units[1]


def total_ns(run: Run) -> float | None:
    """Return the GPU time of a run; None if no launch has a known time."""
    durations = run.groups["duration_ns"].drop_nulls()
    return float(durations.sum()) if len(durations) else None
