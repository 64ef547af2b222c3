"""What changed in a match: whether its time changed by more than noise, by how much, and what explains it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import polars as pl

from ncuroof.comparison.code_changes import Code, CodeChange, cause_under_same_code, code_changes, code_of_match
from ncuroof.comparison.explanations import QuantityChange, changes
from ncuroof.comparison.finding_changes import FindingChange, LineChange, finding_change, line_changes
from ncuroof.comparison.matched_groups import MatchedGroups, Row, aligned, whole_sum, work_ratio
from ncuroof.comparison.matching import How, Match
from ncuroof.comparison.noise import (
    Chance,
    by_clocks,
    chance_of_match,
    clock_change,
    is_beyond,
    noise_of_counted,
    other_clocks,
)
from ncuroof.comparison.rules import ComparisonRules, Noise, load_comparison_rules
from ncuroof.comparison.run import COUNTED, Run


class Outcome(str, Enum):
    """What became of the time of a match."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  # no change large enough to matter
    AMBIGUOUS = "ambiguous"  # a change that matters is neither seen nor ruled out
    UNKNOWN = "unknown"  # a time is unknown, or the times are not comparable


@dataclass(frozen=True, slots=True)
class Delta:
    """A match and what changed in it.

    Attributes:
        match: the groups that are compared.
        names: short names before and after.
        n_launches: launches before and after.
        is_in_all: whether all launches of each side are compared as one, because the user chose several kernels: amounts and times
            are totals.
        is_same_work_in_all: whether both sides do the same work in all, in different numbers of launches: amounts and times after
            are then per the work of one launch before.
        duration_ns: GPU time of all launches, before and after; None if unknown.
        mean_ns: time of one launch, before and after; for several groups, their total time over how often they were launched
            together.
        obstacle: why the times are not compared; None if they are.
        change_frac: `mean_ns` after over before, minus one; None if either is unknown, or if the times are not compared.
        chance: the uncertainty of `change_frac`; None if `change_frac` is.
        clock_frac: SM clock after over before, minus one; 0 if unknown.
        work: the measure of work, FLOPs or instructions, and its ratio after over before; None if neither was counted.
        verdicts, limiters: of the longest group, before and after.
        recoverable_ns, roof_frac: before and after.
        changes: quantities that changed by more than their threshold; those that explain the change of time come first.
        lines: source lines whose time changed, the largest change first; empty if the change is not significant.
        findings: findings of only one side, if one group is matched with one; None if they are unknown, or if the runs collected
            different sections.
        code: whether the machine code is the same.
        code_changes: what changed in the code.
        cause: why unchanged code took more or less time; "" if the time did not change, or if the code did.
        n_recorded: recorded launches, before and after.
        counted_ns: mean time of a launch in the counting runs, without ncu, before and after; None unless all launches of both runs
            were counted.
    """

    match: Match
    names: tuple[str, str]
    n_launches: tuple[int, int]
    is_in_all: bool
    is_same_work_in_all: bool
    duration_ns: tuple[float | None, float | None]
    mean_ns: tuple[float | None, float | None]
    obstacle: str | None
    change_frac: float | None
    chance: Chance | None
    clock_frac: float
    work: tuple[str, float] | None
    verdicts: tuple[str, str]
    limiters: tuple[str | None, str | None]
    recoverable_ns: tuple[float | None, float | None]
    roof_frac: tuple[float | None, float | None]
    changes: tuple[QuantityChange, ...]
    lines: tuple[LineChange, ...] = ()
    findings: FindingChange | None = None
    counted_ns: tuple[float, float] | None = None
    code: Code = Code.UNKNOWN
    code_changes: tuple[CodeChange, ...] = ()
    cause: str = ""
    n_recorded: tuple[int, int] = (1, 1)

    def noise_of(self, n_changes: int) -> float | None:
        """Return the noise of the change if `n_changes` changes are judged together, clocks included; None if unknown."""
        if self.chance is None or self.change_frac is None:
            return None
        return self.chance.noise_frac(n_changes) + by_clocks(self.change_frac, self.clock_frac)

    @property
    def noise_frac(self) -> float | None:
        """Changes smaller than this are noise; None if unknown."""
        return self.noise_of(1)

    @property
    def is_significant(self) -> bool:
        """Whether the change exceeds the noise."""
        noise = self.noise_frac
        return self.change_frac is not None and noise is not None and is_beyond(self.change_frac, noise)

    @property
    def outcome(self) -> Outcome:
        """What became of the time."""
        return self.outcome_of(1)

    def outcome_of(self, n_changes: int) -> Outcome:
        """Return what became of the time if `n_changes` changes are judged together."""
        noise = self.noise_of(n_changes)
        if self.change_frac is None or noise is None or self.change_frac <= -1:
            return Outcome.UNKNOWN
        if is_beyond(self.change_frac, noise):
            return Outcome.SLOWER if self.change_frac > 0 else Outcome.FASTER
        most = abs(math.log1p(self.change_frac)) + math.log1p(noise)
        is_same = most <= math.log1p(load_comparison_rules().noise.matters_frac)
        return Outcome.SAME if is_same else Outcome.AMBIGUOUS

    @property
    def n_to_settle(self) -> int | None:
        """How many launches of each run would settle an ambiguous outcome; None if it is clear, or if more launches do not help."""
        if self.outcome is not Outcome.AMBIGUOUS or self.chance is None or self.change_frac is None:
            return None
        noise = load_comparison_rules().noise
        change, matters = abs(math.log1p(self.change_frac)), math.log1p(noise.matters_frac)
        room = max(change, matters - change) - by_clocks(self.change_frac, self.clock_frac)
        if room <= noise.least_change_frac:
            return None
        n_errors = noise.n_standard_errors * self.chance.error_frac / room
        return max(
            math.ceil(min(self.n_recorded) * n_errors**2), min(self.n_recorded) + 1, noise.n_launches_to_estimate
        )

    @property
    def is_counted_otherwise(self) -> bool:
        """Whether the counting runs, without ncu, show a change that the launches under ncu do not show."""
        if self.counted_ns is None or self.obstacle is not None:
            return False
        change = self.counted_ns[1] / self.counted_ns[0] - 1
        is_shown = self.is_significant and (self.change_frac or 0.0) * change > 0
        return not is_shown and is_beyond(change, noise_of_counted(self.counted_ns, self.n_launches))


def deltas(before: Run, after: Run, matches: Sequence[Match]) -> list[Delta]:
    """Return what changed in every match, in the order of the matches."""
    old_rows, new_rows = _by_group(before.groups), _by_group(after.groups)
    lines = _lines_by_group(before.lines), _lines_by_group(after.lines)
    rules = load_comparison_rules()
    is_collected_alike = before.setup.sections == after.setup.sections
    found = []
    for match in matches:
        old, new = [old_rows[group] for group in match.before], [new_rows[group] for group in match.after]
        delta = _with_lines(_delta(match, old, new, rules), lines, rules.noise)
        if is_collected_alike and len(old) == len(new) == 1:
            delta = replace(delta, findings=finding_change(old[0], new[0]))
        found.append(delta)
    return found


def _by_group(groups: pl.DataFrame) -> dict[int, Row]:
    return {row["group"]: row for row in groups.iter_rows(named=True)}


def _lines_by_group(lines: pl.DataFrame) -> dict[int, list[Row]]:
    """Return by group the source lines whose text is known: lines are matched by their text."""
    known = lines.filter(pl.col("text").is_not_null())
    return {rows[0]["group"]: rows for part in known.partition_by("group") if (rows := part.to_dicts())}


def _with_lines(delta: Delta, lines: tuple[dict[int, list[Row]], dict[int, list[Row]]], noise: Noise) -> Delta:
    """Add the source lines whose time changed, if the change is significant and one group is matched with one."""
    old, new = delta.match.before, delta.match.after
    before_ns, after_ns = delta.mean_ns
    if not delta.is_significant or len(old) > 1 or len(new) > 1 or before_ns is None or after_ns is None:
        return delta
    found = line_changes(lines[0].get(old[0], []), lines[1].get(new[0], []), (before_ns, after_ns), noise)
    return replace(delta, lines=found)


def _delta(found: Match, old: list[Row], new: list[Row], rules: ComparisonRules) -> Delta:
    is_in_all = found.how is How.CHOSEN and (len(old) > 1 or len(new) > 1)
    before, after = (
        (MatchedGroups.in_all(old), MatchedGroups.in_all(new))
        if is_in_all
        else aligned(MatchedGroups.of(old), MatchedGroups.of(new))
    )
    was, became = before.amount("mean_ns"), after.amount("mean_ns")
    obstacle, clock = other_clocks(before, after), clock_change(before, after)
    chance = chance_of_match(before, after) if obstacle is None else None
    change = became / was - 1 if was and became and obstacle is None else None
    longest = before.longest, after.longest
    code = code_of_match(old, new)
    counted_before, counted_after = before.amount(COUNTED), after.amount(COUNTED)
    delta = Delta(
        match=found,
        names=(before.names, after.names),
        n_launches=(before.n_launches, after.n_launches),
        is_in_all=is_in_all,
        is_same_work_in_all=not is_in_all and after.n_units != after.n_launches,
        duration_ns=_both(old, new, "duration_ns"),
        mean_ns=(was, became),
        obstacle=obstacle,
        change_frac=change,
        chance=chance,
        clock_frac=clock,
        work=work_ratio(before, after),
        verdicts=(longest[0]["verdict"], longest[1]["verdict"]),
        limiters=(longest[0]["limiter"], longest[1]["limiter"]),
        recoverable_ns=_both(old, new, "recoverable_ns"),
        roof_frac=(longest[0]["roof_frac"], longest[1]["roof_frac"]),
        changes=(),
        counted_ns=(counted_before, counted_after) if counted_before and counted_after else None,
        code=code,
        code_changes=code_changes(old, new) if code is Code.CHANGED else (),
        n_recorded=(sum(row["n_recorded"] for row in old), sum(row["n_recorded"] for row in new)),
    )
    is_moved = delta.is_significant
    found_changes = changes(before, after, change if is_moved else None, rules)
    is_explained = any(each.explains and each.kind == "amount" for each in found_changes)
    cause = (
        cause_under_same_code(before, after, clock, is_explained=is_explained) if code is Code.SAME and is_moved else ""
    )
    return replace(delta, changes=found_changes, cause=cause)


def _both(old: list[Row], new: list[Row], quantity: str) -> tuple[float | None, float | None]:
    return whole_sum(row[quantity] for row in old), whole_sum(row[quantity] for row in new)
