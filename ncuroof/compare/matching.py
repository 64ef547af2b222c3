"""Which kernels of one run are those of the other: by name and shape, by what is left of a name, and by place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import polars as pl

from ncuroof.compare.pairing import pairs
from ncuroof.compare.place import match_by_place
from ncuroof.compare.side import Side
from ncuroof.compare.together import DRAM_BYTES, FLOP, INSTRUCTIONS, Row, Together, aligned, is_other_work, work_ratio


class How(str, Enum):
    """By what a match was made."""

    SAME = "same"  # name, shape and NVTX range
    MOVED = "moved"  # name and shape, in another NVTX range
    SHAPE = "shape"  # name, launched with another grid or block
    RENAMED = "renamed"  # the name but for numbers at its end, hashes and parameters
    VARIANT = "variant"  # the name but for template arguments and numbers
    PLACE = "place"  # between the same kernels, with about the same work
    FUSED = "fused"  # several kernels before, one after, in the same place
    SPLIT = "split"  # one kernel before, several after, in the same place
    REWRITTEN = "rewritten"  # several before and several after, in the same place


class Sureness(str, Enum):
    """How sure a match is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    GUESS = "guess"


@dataclass(frozen=True, slots=True)
class Match:
    """Groups of launches that are taken for the same.

    Attributes:
        before, after: numbers of groups.
        how: by what.
        sureness: how sure it is.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    how: How
    sureness: Sureness


@dataclass(frozen=True, slots=True)
class Matching:
    """All groups of two runs.

    Attributes:
        matches: in order of the groups after, then before.
        removed: groups that are in the run before alone; none whose launches failed to profile after.
        added: groups that are in the run after alone; likewise.
    """

    matches: tuple[Match, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


_SHAPE = ("grid", "block")
_STAGES = (
    (("name", "workload", *_SHAPE, "range"), How.SAME, Sureness.CERTAIN),
    (("name", "workload", *_SHAPE), How.MOVED, Sureness.CERTAIN),
    (("name", "workload", "range"), How.SHAPE, Sureness.LIKELY),
    (("name", "workload"), How.SHAPE, Sureness.LIKELY),
    (("renamed", "workload", *_SHAPE, "range"), How.RENAMED, Sureness.LIKELY),
    (("renamed", "workload", *_SHAPE), How.RENAMED, Sureness.LIKELY),
    (("renamed", "workload", "range"), How.RENAMED, Sureness.LIKELY),
    (("renamed", "workload"), How.RENAMED, Sureness.LIKELY),
    (("variant", "workload", "range"), How.VARIANT, Sureness.LIKELY),
    (("variant", "workload"), How.VARIANT, Sureness.GUESS),
)
"""What has to be equal, the most first; of equal ones `pairs` tells which goes with which."""


def match(before: Side, after: Side) -> Matching:
    """Return which groups are the same; every group is in one match, removed, added, or failed to profile in the other run."""
    left, right = before.groups, after.groups
    matches: list[Match] = []
    for keys, how, sureness in _STAGES:
        found = [
            Match((old["group"],), (new["group"],), how, _of_work(sureness, old, new))
            for old, new in _equal(left, right, keys)
        ]
        left = left.filter(~pl.col("group").is_in([each.before[0] for each in found]))
        right = right.filter(~pl.col("group").is_in([each.after[0] for each in found]))
        matches += found
    anchors = {found.before[0]: found.after[0] for found in matches}
    for placed in match_by_place(before.groups, after.groups, anchors):
        how = _how(len(placed.before), len(placed.after))
        sureness = Sureness.LIKELY if placed.is_same_work else Sureness.GUESS
        matches.append(Match(placed.before, placed.after, how, sureness))
    old_groups = {group for found in matches for group in found.before}
    new_groups = {group for found in matches for group in found.after}
    return Matching(
        matches=tuple(sorted(matches, key=lambda found: (found.after, found.before))),
        removed=_alone(before.groups, old_groups, after.failed),
        added=_alone(after.groups, new_groups, before.failed),
    )


def _alone(groups: pl.DataFrame, matched: set[int], failed: Sequence[str]) -> tuple[int, ...]:
    """Return the groups without a match; what failed to profile in the other run was launched there, too."""
    left = Counter(filter(None, failed))
    found = []
    for group, name in groups.select("group", "name").iter_rows():
        if group in matched:
            continue
        if left[name]:
            left[name] -= 1
        else:
            found.append(group)
    return tuple(found)


def _of_work(sureness: Sureness, old: Row, new: Row) -> Sureness:
    """Return how sure a match is: where names or shapes differ and the work by far, other launches may be meant."""
    if sureness is Sureness.CERTAIN:
        return sureness
    work = work_ratio(*aligned(Together.of([old]), Together.of([new])))
    return Sureness.GUESS if work is not None and is_other_work(work[1]) else sureness


def _equal(left: pl.DataFrame, right: pl.DataFrame, keys: tuple[str, ...]) -> Iterator[tuple[Row, Row]]:
    """Yield pairs of groups with equal keys."""
    rows_after = _by_keys(right, keys)
    for key, old in _by_keys(left, keys).items():
        yield from pairs(old, rows_after.get(key, []))


def _by_keys(groups: pl.DataFrame, keys: tuple[str, ...]) -> dict[tuple[object, ...], list[Row]]:
    """Return the rows of groups by what has to be equal, in their order."""
    rows: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in groups.select("group", *keys, "n_launches", FLOP, INSTRUCTIONS, DRAM_BYTES).iter_rows(named=True):
        rows[tuple(tuple(row[key]) if isinstance(row[key], list) else row[key] for key in keys)].append(row)
    return rows


def _how(n_before: int, n_after: int) -> How:
    if n_before == n_after == 1:
        return How.PLACE
    if n_after == 1:
        return How.FUSED
    return How.SPLIT if n_before == 1 else How.REWRITTEN
