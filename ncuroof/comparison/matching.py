"""Match the kernels of two runs: by name and shape, by the stable part of their names, and by their place in the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import polars as pl

from ncuroof.comparison.matched_groups import (
    DRAM_BYTES,
    FLOP,
    INSTRUCTIONS,
    MatchedGroups,
    Row,
    aligned,
    is_other_work,
    work_ratio,
)
from ncuroof.comparison.pairing import is_same_input, is_same_problem, match_by_place, pairs, pairs_of_same_problem
from ncuroof.comparison.run import Run
from ncuroof.comparison.signatures import numbered, texts_without_versions, with_arguments, without_versions
from ncuroof.comparison.unprofiled import CountedOnly, only_counted, surely_counted_only
from ncuroof.comparison.versions import Candidate, candidates, match_versions, work_words


class How(str, Enum):
    """What a match is based on."""

    SAME = "same"  # name, shape and NVTX range
    MOVED = "moved"  # name and shape, in another NVTX range
    SHAPE = "shape"  # name, launched with another grid or block
    RENAMED = "renamed"  # the name without numbers at its end, hashes and parameters
    VARIANT = "variant"  # the name without template arguments and numbers
    VERSION = "version"  # the words that say what is computed; see `versions`
    PLACE = "place"  # between the same kernels, with about the same work
    FUSED = "fused"  # several kernels before, one after, in the same place
    SPLIT = "split"  # one kernel before, several after, in the same place
    REWRITTEN = "rewritten"  # several before and several after, in the same place
    CHOSEN = "chosen"  # the user named both


class Sureness(str, Enum):
    """How sure a match is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


@dataclass(frozen=True, slots=True)
class Match:
    """Groups of launches that are taken to be the same kernels.

    Attributes:
        before, after: numbers of groups.
        how: what the match is based on.
        sureness: how sure it is.
        why: further evidence for the match.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    how: How
    sureness: Sureness
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matching:
    """All groups of two runs.

    Attributes:
        matches: sorted by the groups after, then before.
        removed: groups of only the run before, without those that failed to profile or were only counted in the run after.
        added: groups of only the run after, without those that failed to profile or were only counted in the run before.
        not_recorded_before: groups after that the run before launched, but did not profile.
        not_recorded_after: groups before that the run after launched, but did not profile.
        candidates: removed and added groups that may belong together, which the user can confirm.
    """

    matches: tuple[Match, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    not_recorded_before: tuple[CountedOnly, ...] = ()
    not_recorded_after: tuple[CountedOnly, ...] = ()
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stage:
    """A stage of matching: columns that must be equal, how sure a match is then, and how groups with equal columns are paired."""

    keys: tuple[str, ...]
    how: How
    sureness: Sureness
    pairs: Callable[[Sequence[Row], Sequence[Row]], Iterator[tuple[Row, Row]]] = pairs


def _pairs_of_same_input(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    return (pair for pair in pairs_of_same_problem(old, new) if is_same_input(*pair))


_SHAPE = ("grid", "block")
_NAME, _RENAMED, _VARIANT = ((name, "workload") for name in ("name", "renamed", "variant"))
_BY_NAME = (
    _Stage((*_NAME, *_SHAPE, "range"), How.SAME, Sureness.CERTAIN),
    _Stage((*_NAME, *_SHAPE), How.MOVED, Sureness.CERTAIN),
    _Stage((*_NAME, "range"), How.SHAPE, Sureness.LIKELY),
    _Stage(_NAME, How.SHAPE, Sureness.LIKELY),
)
_BY_WORK = (
    _Stage((*_NAME, *_SHAPE, "range"), How.SAME, Sureness.CERTAIN, _pairs_of_same_input),
    _Stage((*_NAME, *_SHAPE), How.MOVED, Sureness.CERTAIN, _pairs_of_same_input),
    _Stage((*_RENAMED, *_SHAPE, "range"), How.RENAMED, Sureness.LIKELY, pairs_of_same_problem),
    _Stage((*_RENAMED, "range"), How.RENAMED, Sureness.LIKELY, pairs_of_same_problem),
    _Stage(_RENAMED, How.RENAMED, Sureness.LIKELY, pairs_of_same_problem),
)
"""Stages for names that a compiler numbers. An equal number alone is no evidence."""

_BY_NUMBER = (
    _Stage((*_NAME, *_SHAPE, "range"), How.RENAMED, Sureness.LIKELY),
    _Stage(_NAME, How.RENAMED, Sureness.LIKELY),
)
"""Stages for numbered names that are the same in both runs, if the work does not decide. If numbers moved, order says more."""

_BY_REST = (
    _Stage((*_RENAMED, *_SHAPE, "range"), How.RENAMED, Sureness.LIKELY),
    _Stage((*_RENAMED, *_SHAPE), How.RENAMED, Sureness.LIKELY),
    _Stage((*_RENAMED, "range"), How.RENAMED, Sureness.LIKELY),
    _Stage(_RENAMED, How.RENAMED, Sureness.LIKELY),
    _Stage((*_VARIANT, "range"), How.VARIANT, Sureness.LIKELY),
    _Stage(_VARIANT, How.VARIANT, Sureness.GUESS),
)
"""Stages for all names, the strictest first. `pairs` decides between groups with equal columns."""

_OF_A_ROW = (
    *_NAME,
    *_SHAPE,
    "range",
    "n_launches",
    "renamed",
    "is_numbered",
    "with_arguments",
    FLOP,
    INSTRUCTIONS,
    DRAM_BYTES,
)


def match(before: Run, after: Run) -> Matching:
    """Match the groups of two runs.

    Every group is either in one match, or removed, or added, or it was launched in the other run, too, where it failed to profile
    or was only counted.
    """
    name = pl.col("name")
    groups = [
        run.groups.with_columns(
            name=without_versions(name), is_numbered=numbered(name), with_arguments=with_arguments(name)
        )
        for run in (before, after)
    ]
    unprofiled = _unprofiled_in_the_other(before, after)
    groups = [each.filter(~pl.col("group").is_in(rest)) for each, rest in zip(groups, unprofiled, strict=True)]
    n_by_name = [Counter(each.select(_RENAMED).iter_rows()) for each in groups]
    is_numbered, is_renumbered = pl.col("is_numbered"), _is_renumbered(*groups)
    matches: list[Match] = []
    stages = (
        *((stage, ~is_numbered) for stage in _BY_NAME),
        *((stage, is_numbered) for stage in _BY_WORK),
        *((stage, is_numbered & ~is_renumbered) for stage in _BY_NUMBER),
        *((stage, pl.lit(value=True)) for stage in _BY_REST),
    )
    for stage, of_these in stages:
        left, right = (each.filter(of_these) for each in groups)
        found = [
            Match((old["group"],), (new["group"],), _how_named(stage, old, new), _sureness(stage, old, new, n_by_name))
            for old, new in _equal_pairs(left, right, stage)
        ]
        for number, taken in enumerate(([each.before[0] for each in found], [each.after[0] for each in found])):
            groups[number] = groups[number].filter(~pl.col("group").is_in(taken))
        matches += found
    matches += _versions(groups, _matched_names(before, matches))
    anchors = {found.before[0]: found.after[0] for found in matches}
    rows = [{row["group"]: row for row in run.groups.iter_rows(named=True)} for run in (before, after)]
    in_place = [
        run.groups.filter(~pl.col("group").is_in(rest)) for run, rest in zip((before, after), unprofiled, strict=True)
    ]
    for placed in match_by_place(in_place[0], in_place[1], anchors):
        how = _how_placed(len(placed.before), len(placed.after))
        sureness = Sureness.LIKELY if placed.is_same_work else Sureness.GUESS
        is_one_each = how is How.PLACE
        why = (work_words(rows[0][placed.before[0]], rows[1][placed.after[0]]),) if is_one_each else ()
        matches.append(Match(placed.before, placed.after, how, sureness, why))
    old_alone = _unmatched(before.groups, {group for found in matches for group in found.before}, after.failed)
    new_alone = _unmatched(after.groups, {group for found in matches for group in found.after}, before.failed)
    not_after = only_counted(before.groups, old_alone, after.unprofiled)
    not_before = only_counted(after.groups, new_alone, before.unprofiled)
    removed, added = _without(old_alone, not_after), _without(new_alone, not_before)
    return Matching(
        matches=tuple(sorted(matches, key=lambda found: (found.after, found.before))),
        removed=removed,
        added=added,
        not_recorded_before=not_before,
        not_recorded_after=not_after,
        candidates=tuple(candidates([rows[0][group] for group in removed], [rows[1][group] for group in added])),
    )


def _versions(groups: Sequence[pl.DataFrame], matched: Collection[str]) -> Iterator[Match]:
    """Yield matches of versions among the groups without a match. Names made by a compiler are left out: they say too little."""
    old, new = (each.filter(~pl.col("is_numbered")).to_dicts() for each in groups)
    for found in match_versions(old, new, matched):
        sureness = Sureness.LIKELY if found.is_sure else Sureness.GUESS
        yield Match((found.old["group"],), (found.new["group"],), How.VERSION, sureness, found.why)


def _matched_names(before: Run, matches: Sequence[Match]) -> set[str]:
    """Return the names of the groups before that are matched."""
    both = [found.before[0] for found in matches]
    return set(before.groups.filter(pl.col("group").is_in(both))["name"].drop_nulls())


def _unprofiled_in_the_other(before: Run, after: Run) -> tuple[list[int], list[int]]:
    """Return the groups of each run that the other run counted but did not profile: they cannot be matched."""
    return (
        surely_counted_only(before.groups, after.groups, after.unprofiled),
        surely_counted_only(after.groups, before.groups, before.unprofiled),
    )


def _without(groups: Sequence[int], counted: Sequence[CountedOnly]) -> tuple[int, ...]:
    of_these = {each.group for each in counted}
    return tuple(group for group in groups if group not in of_these)


def _is_renumbered(before: pl.DataFrame, after: pl.DataFrame) -> pl.Expr:
    """Return whether the numbers of a name differ between the runs."""
    names = [set(each.select("renamed", "name").iter_rows()) for each in (before, after)]
    return pl.col("renamed").is_in(sorted({renamed for renamed, _ in names[0] ^ names[1] if renamed is not None}))


def _unmatched(groups: pl.DataFrame, matched: set[int], failed: Sequence[str]) -> tuple[int, ...]:
    """Return the groups without a match, except those that failed to profile in the other run: they were launched there."""
    left = Counter(filter(None, texts_without_versions(failed)))
    found = []
    for group, name in groups.select("group", without_versions(pl.col("name"))).iter_rows():
        if group in matched:
            continue
        if left[name]:
            left[name] -= 1
        else:
            found.append(group)
    return tuple(found)


def _how_named(stage: _Stage, old: Row, new: Row) -> How:
    """Return what a match is based on. A numbered name that is the same in both runs does not count as renamed."""
    if stage.how is not How.RENAMED or old["name"] != new["name"]:
        return stage.how
    if any(old[key] != new[key] for key in _SHAPE):
        return How.SHAPE
    return How.SAME if old["range"] == new["range"] else How.MOVED


def _sureness(stage: _Stage, old: Row, new: Row, n_by_name: Sequence[Counter[tuple[str, ...]]]) -> Sureness:
    """Return how sure a match is.

    It is a guess if names or shapes differ and the amount of work is very different. If only the order speaks for a pair, any
    difference of work makes it a guess: for numbered kernels whose number differs between the runs, and for instantiations of a
    template whose arguments may say what it computes.
    """
    if stage.sureness is Sureness.CERTAIN:
        return stage.sureness
    work = work_ratio(*aligned(MatchedGroups.of([old]), MatchedGroups.of([new])))
    if work is not None and is_other_work(work[1]):
        return Sureness.GUESS
    n_before, n_after = (
        counts[row["renamed"], row["workload"]] for counts, row in zip(n_by_name, (old, new), strict=True)
    )
    is_by_order_alone = old["is_numbered"] and n_before != n_after
    may_compute_another = stage.how is How.VARIANT and old["with_arguments"] != new["with_arguments"]
    return (
        Sureness.GUESS
        if (is_by_order_alone or may_compute_another) and not is_same_problem(old, new)
        else stage.sureness
    )


def _equal_pairs(left: pl.DataFrame, right: pl.DataFrame, stage: _Stage) -> Iterator[tuple[Row, Row]]:
    """Yield the pairs of groups that a stage matches."""
    rows_after = _by_keys(right, stage.keys)
    for key, old in _by_keys(left, stage.keys).items():
        yield from stage.pairs(old, rows_after.get(key, []))


def _by_keys(groups: pl.DataFrame, keys: tuple[str, ...]) -> dict[tuple[object, ...], list[Row]]:
    """Return the rows of groups by the values of the key columns, in their order."""
    rows: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    columns = dict.fromkeys(("group", *keys, *_OF_A_ROW))
    for row in groups.select(*columns).iter_rows(named=True):
        rows[tuple(tuple(row[key]) if isinstance(row[key], list) else row[key] for key in keys)].append(row)
    return rows


def _how_placed(n_before: int, n_after: int) -> How:
    if n_before == n_after == 1:
        return How.PLACE
    if n_after == 1:
        return How.FUSED
    return How.SPLIT if n_before == 1 else How.REWRITTEN
