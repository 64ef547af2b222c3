"""Two runs compared: what matches, what changed in it, and what that means for the whole run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from ncuroof.comparison.chosen_pairs import ChosenPair, chosen
from ncuroof.comparison.deltas import Delta, deltas
from ncuroof.comparison.distinct_names import names_of_failed, with_distinct_names
from ncuroof.comparison.matching import Matching, Sureness, match
from ncuroof.comparison.noise import by_clocks, is_by_clocks, noise_of_runs
from ncuroof.comparison.obstacles import Comparable, comparable, coverage_obstacle, n_units
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.run import Run
from ncuroof.comparison.signatures import texts_without_versions

_MOST_NAMES = 3
_MOST_AT_OTHER_CLOCKS = 0.1
"""Of the matched time of both runs: with more at other clocks a run's whole time is that of its clocks, too."""

_LEAST_MATCHED = 0.5
"""Of the time of both runs: with less in matches, these do not speak for the clocks of the runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What changed from one run to another.

    Attributes:
        before, after: the runs.
        comparable: what of them can be compared.
        matching: which groups are the same, added and removed.
        deltas: what changed in the matches, in their order.
        is_chosen: whether the runs hold only kernels that the user named.
        written: writes the text that notebooks show of it.
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
        """Whether nothing changed: every group has its like, no time differs by more than chance, and all could be compared."""
        is_moved = (
            self.matching.added
            or self.matching.removed
            or self.matching.not_recorded_before
            or self.matching.not_recorded_after
            or any(delta.is_significant or delta.is_counted_otherwise for delta in self.deltas)
        )
        return not (is_moved or run_obstacle(self))


def compare(before: Run, after: Run, pairs: Sequence[ChosenPair] = ()) -> Comparison:
    """Return what changed from one run to another, or with `pairs` from kernels of one run to kernels of the other.

    Raises:
        SelectionError: a run has no kernel that a pair names.
    """
    before, after = with_distinct_names(before, after)
    if pairs:
        before, after, matching = chosen(before, after, pairs)
    runs = before, after
    precisions = before.setup.precisions, after.setup.precisions
    if all(precisions) and precisions[0] != precisions[1]:  # what one run alone counted is no change of the program's
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
    """Return why the GPU times of the whole runs say nothing, else None.

    A run is damaged, launches failed or were counted in one run alone, times are not known or were left out of the sums, the runs
    cover other parts of the program, or the clocks are others.
    """
    return (
        _several_chosen(comparison)
        or damage_of({"before": comparison.before, "after": comparison.after})
        or _failed_otherwise(comparison.before, comparison.after)
        or _of_unknown_time(comparison.before, comparison.after)
        or coverage_obstacle(comparison.before, comparison.after)
        or _counted_otherwise(comparison.before, comparison.after)
        or _at_other_clocks(comparison)
    )


def _several_chosen(comparison: Comparison) -> str:
    """Return that chosen kernels have no sum: they may be steps of a series; "" for one pair, or where none were chosen."""
    return "several kernels were chosen" if comparison.is_chosen and len(comparison.deltas) > 1 else ""


def damage_of(runs: Mapping[str, Run]) -> str:
    """Return how runs, by when they ran, are damaged: launches may be missing in them; "" where all are whole."""
    return ", ".join(f"the run {when} is damaged ({'; '.join(run.damage)})" for when, run in runs.items() if run.damage)


def _of_unknown_time(before: Run, after: Run) -> str:
    """Return of which kernels the time is not known, where that of others is: sums lack it; "" where there are none."""
    is_known = (pl.col("duration_ns") > 0).fill_null(value=False)
    clauses = []
    for run, when in ((before, "before"), (after, "after")):
        unknown = run.groups.filter(~is_known)["short_name"].to_list()
        if 0 < len(unknown) < run.groups.height:
            clauses.append(f"the time of {some(unknown)} is not known {when}")
    return ", ".join(clauses)


def _counted_otherwise(before: Run, after: Run) -> str | None:
    """Return that launches were counted in one run alone, or that what was counted and not recorded takes another time; else None.

    That time is in no sum, and with another one kernels may have come to it or left it. Beyond chance is what would be a change of
    all that was counted.
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


def _at_other_clocks(comparison: Comparison) -> str | None:
    at_other_clocks = [delta for delta in comparison.deltas if delta.obstacle is not None]
    if sum(map(_time_ns, at_other_clocks)) > _MOST_AT_OTHER_CLOCKS * sum(map(_time_ns, comparison.deltas)):
        longest = max(at_other_clocks, key=_time_ns)
        return f"{longest.names[1]}: {longest.obstacle}"
    change = _run_clock_change(comparison)  # of short launches one by one it may be chance
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
    """Return the time of a match in both runs together, as far as it is known."""
    return sum(time or 0.0 for time in delta.duration_ns)


def _run_clock_change(comparison: Comparison) -> float:
    """Return the SM clock of the runs, after over before, less one: over the matches, or over all launches where few match."""
    if _are_mostly_matched(comparison):
        return _clock_change(comparison)
    was, became = (_average_clock_hz(run) for run in (comparison.before, comparison.after))
    return became / was - 1 if was and became else 0.0


def _average_clock_hz(run: Run) -> float | None:
    """Return the average SM clock of a run by time: kernels that take long say more of it than many short ones."""
    known = run.groups.drop_nulls(["sm_clock_hz", "duration_ns"])
    total = float(known["duration_ns"].sum())
    return float((known["sm_clock_hz"] * known["duration_ns"]).sum()) / total if total else None


def _clock_change(comparison: Comparison) -> float:
    """Return the SM clock after over before, less one: the average by time over the matches."""
    total = sum(map(_time_ns, comparison.deltas))
    return sum(_time_ns(delta) * delta.clock_frac for delta in comparison.deltas) / total if total else 0.0


def _failed_otherwise(before: Run, after: Run) -> str:
    """Return which launches failed in one run alone; "" where as many failed in both, and none of them is known to be another."""
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
    """Return some of the names, as they are shown, and their numbers."""
    return some([f"{count} launches of {shown[name]}" if count > 1 else shown[name] for name, count in names.items()])


def some(names: Sequence[str]) -> str:
    """Return the first of some names, each once, and how many more there are."""
    known = list(dict.fromkeys(names))
    more = [f"{len(known) - _MOST_NAMES} more"] if len(known) > _MOST_NAMES else []
    return ", ".join(known[:_MOST_NAMES] + more)


def run_change(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the change of the run's GPU time as a share of it, and the change that chance alone makes seem possible.

    Per step, where the runs cover another number of steps. Of a chosen kernel that of a launch. None where a time is not known, or
    there is an obstacle (`run_obstacle`).
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
    """Return the change of what both runs launched, launch for launch, and the change that chance alone makes seem possible.

    Time of the matched kernels after, as often as they were launched before, over their time before, less one: what is left of a
    run's change without kernels and launches that one run has more of, and without what is matched by a guess. None where no time
    of a kernel is known on both runs.
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
    """Return the GPU times of both runs, per step where they cover another number of steps; None where one is not known."""
    units = n_units(comparison.before, comparison.after)
    was, became = total_ns(comparison.before), total_ns(comparison.after)
    return None if was is None else was / units[0], None if became is None else became / units[1]


def total_ns(run: Run) -> float | None:
    """Return the GPU time of a run; None where it is not known for any of them."""
    durations = run.groups["duration_ns"].drop_nulls()
    return float(durations.sum()) if len(durations) else None
