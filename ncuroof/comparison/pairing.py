"""Pair groups by their work, by their order, or by their place.

Groups are in the same place if they run between the same kernels, in the same NVTX range, and do about the same work.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import polars as pl

from ncuroof.comparison.matched_groups import DRAM_BYTES, FLOP, INSTRUCTIONS, Row, whole_sum
from ncuroof.comparison.rules import load_comparison_rules


def pairs(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield pairs of groups before and after. Surplus groups of the longer side are in no pair.

    If the work of all groups changed by the same factor, within 10 %, the input changed, and groups are paired in order. Otherwise,
    groups whose launches do the same FLOPs within 10 % are paired, the nearest first; then those with the same number of
    instructions; then the remaining groups in order.

    Args:
        old: rows of a run's groups, in order of first appearance.
        new: the same for the run after.
    """
    if _is_scaled(old, new):
        yield from zip(old, new, strict=True)
        return
    within = load_comparison_rules().work.same_problem_ratio
    left, right = dict(enumerate(old)), dict(enumerate(new))
    for quantity in (FLOP, INSTRUCTIONS):
        yield from _nearest_pairs(quantity, left, right, within=within)
    yield from zip(left.values(), right.values(), strict=False)


def pairs_of_same_problem(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the pairs of `pairs` that their work identifies, without those that are only paired in order.

    Among launches with equal FLOPs, those with the same number of instructions within 1 % are paired first: instructions
    distinguish kernels that a compiler generated for the same operations. Otherwise, instructions are used only for launches
    without FLOPs.

    Args:
        old: rows of a run's groups, in order of first appearance.
        new: the same for the run after.
    """
    if len(old) > 1 and _is_scaled(old, new):
        yield from zip(old, new, strict=True)
        return
    work = load_comparison_rules().work
    left, right = dict(enumerate(old)), dict(enumerate(new))
    right_by_flop = _by_flop(right)
    for flop, rows in _by_flop(left).items():
        of = rows, right_by_flop.get(flop, {})
        yield from _nearest_pairs(INSTRUCTIONS, left, right, within=work.same_input_ratio, of=of)
    yield from _nearest_pairs(FLOP, left, right, within=work.same_problem_ratio)
    without = tuple({key: row for key, row in rows.items() if not row[FLOP]} for rows in (left, right))
    yield from _nearest_pairs(INSTRUCTIONS, left, right, within=work.same_problem_ratio, of=without)


def is_same_input(one: Row, other: Row) -> bool:
    """Return whether the FLOPs and instructions that both launches counted agree within 1 %; false if neither was counted."""
    known = [(one[name], other[name]) for name in (FLOP, INSTRUCTIONS) if None not in (one[name], other[name])]
    most = load_comparison_rules().work.same_input_ratio
    return any(map(max, known)) and all(max(each) <= most * min(each) for each in known)


def is_same_problem(one: Row, other: Row) -> bool:
    """Return whether two launches do the same FLOPs within 10 %; without FLOPs, the same number of instructions."""
    most = load_comparison_rules().work.same_problem_ratio
    for name in (FLOP, INSTRUCTIONS):
        if one[name] and other[name]:
            return bool(max(one[name], other[name]) <= most * min(one[name], other[name]))
    return False


Rows = dict[int, Row]


def _nearest_pairs(
    quantity: str, left: Rows, right: Rows, *, within: float, of: tuple[Rows, ...] = ()
) -> Iterator[tuple[Row, Row]]:
    """Yield pairs whose quantity agrees within a ratio, the nearest first, and remove them; `of` restricts the rows."""
    amounts = (
        {key: math.log(row[quantity]) for key, row in rows.items() if row[quantity]} for rows in of or (left, right)
    )
    for one, other in _nearest(*amounts, within=math.log(within)):
        yield left.pop(one), right.pop(other)


def _by_flop(rows: Rows) -> dict[str, Rows]:
    """Return rows by their FLOPs, rounded to four digits."""
    found: dict[str, Rows] = defaultdict(dict)
    for key, row in rows.items():
        found["" if row[FLOP] is None else f"{row[FLOP]:.4g}"][key] = row
    return found


def _is_scaled(old: Sequence[Row], new: Sequence[Row]) -> bool:
    """Return whether the work of all groups, paired in order, changed by the same factor."""
    if len(old) != len(new):
        return False
    for quantity in (FLOP, INSTRUCTIONS):
        if all(row[quantity] for row in (*old, *new)):
            ratios = [other[quantity] / one[quantity] for one, other in zip(old, new, strict=True)]
            return bool(max(ratios) <= min(ratios) * load_comparison_rules().work.same_problem_ratio)
    return False


def _nearest(left: dict[int, float], right: dict[int, float], *, within: float) -> Iterator[tuple[int, int]]:
    """Yield pairs of keys of two sides, those with the nearest values first; equal values are paired in order.

    If the values of both sides are sorted together, the nearest two of different sides are neighbours, because a value between them
    would be as near to one of the two. So only neighbours are compared. When a pair is taken out, its outer neighbours become
    neighbours.
    """
    line = sorted(place for side, known in enumerate((left, right)) for place in _sortable(known, side))
    before, following = list(range(-1, len(line) - 1)), list(range(1, len(line) + 1))
    has_left = [False] * len(line)

    def candidate(first: int, second: int) -> tuple[float, int, int, int, int] | None:
        if first < 0 or second >= len(line) or line[first][2] == line[second][2]:
            return None
        distance = line[second][0] - line[first][0]
        one, other = sorted((first, second), key=lambda place: line[place][2])
        return (distance, line[one][3], line[other][3], first, second) if distance <= within else None

    near = [found for place in range(len(line) - 1) if (found := candidate(place, place + 1)) is not None]
    heapify(near)
    while near:
        _, one, other, first, second = heappop(near)
        if has_left[first] or has_left[second]:
            continue
        yield one, other
        has_left[first] = has_left[second] = True
        outer = before[first], following[second]
        if outer[0] >= 0:
            following[outer[0]] = outer[1]
        if outer[1] < len(line):
            before[outer[1]] = outer[0]
        if (found := candidate(*outer)) is not None:
            heappush(near, found)


def _sortable(known: dict[int, float], side: int) -> Iterator[tuple[float, int, int, int]]:
    """Yield value, rank among equal values, side and key. Sorted, equal values of both sides alternate."""
    n_seen: Counter[float] = Counter()
    for key, value in known.items():
        yield value, n_seen[value], side, key
        n_seen[value] += 1


@dataclass(frozen=True, slots=True)
class Placed:
    """Groups that are in the same place.

    Attributes:
        before, after: numbers of groups.
        is_same_work: whether both sides do the same FLOPs in total; without FLOPs, whether they move the same DRAM bytes.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    is_same_work: bool


def match_by_place(before: pl.DataFrame, after: pl.DataFrame, anchors: Mapping[int, int]) -> list[Placed]:
    """Match groups that are in the same place, between the anchors.

    Args:
        before: `groups` of the run before, in order of first appearance.
        after: the same for the run after.
        anchors: groups after that are matched already, by their group before.
    """
    back = {new: old for old, new in anchors.items()}
    old_gaps = _gaps(before, {group: group for group in anchors})
    new_gaps = _gaps(after, back)
    return [
        placed
        for gap, old in old_gaps.items()
        if (new := new_gaps.get(gap)) is not None
        for placed in _matches_in_gap(old, new)
    ]


RowList = list[Row]
Gap = tuple[str, int | None, int | None]
"""NVTX range, previous anchor and next anchor. Anchors are numbered as in the run before."""


def _gaps(groups: pl.DataFrame, anchor_by_group: Mapping[int, int]) -> dict[Gap, RowList]:
    """Return the groups that are not anchors, by the gap that they are in."""
    columns = ("group", "name", "range", "n_launches", FLOP, DRAM_BYTES)
    rows = list(groups.select(columns).iter_rows(named=True))
    next_anchors: list[int | None] = [None] * len(rows)
    next_anchor: int | None = None
    for index in range(len(rows) - 1, -1, -1):
        next_anchors[index] = next_anchor
        next_anchor = anchor_by_group.get(rows[index]["group"], next_anchor)
    gaps: dict[Gap, RowList] = {}
    previous_anchor: int | None = None
    for index, row in enumerate(rows):
        anchor = anchor_by_group.get(row["group"])
        if anchor is None:
            gaps.setdefault((row["range"], previous_anchor, next_anchors[index]), []).append(row)
        else:
            previous_anchor = anchor
    return gaps


def _matches_in_gap(old: RowList, new: RowList) -> Iterator[Placed]:
    """Yield matches within one gap.

    If both sides have the same number of groups and the work of each pair agrees, groups are matched in order. Otherwise all are
    matched with all, if the total work agrees, or if an NVTX range or the number of launches is evidence beyond the place.
    Otherwise, two groups are matched if they do the same work and no third group does.
    """
    if len(old) == len(new) and all(_agrees([one], [other]) for one, other in zip(old, new, strict=True)):
        for one, other in zip(old, new, strict=True):
            yield Placed((one["group"],), (other["group"],), is_same_work=True)
        return
    is_same_work = _agrees(old, new)
    if is_same_work or (_has_evidence(old, new) and _may_agree(old, new)):
        yield Placed(tuple(row["group"] for row in old), tuple(row["group"] for row in new), is_same_work=is_same_work)
        return
    alike = [(one, other) for one in old for other in new if _agrees([one], [other])]
    n_alike = Counter(each["group"] for each, _ in alike), Counter(each["group"] for _, each in alike)
    for one, other in alike:
        if n_alike[0][one["group"]] == n_alike[1][other["group"]] == 1:  # otherwise the match is ambiguous
            yield Placed((one["group"],), (other["group"],), is_same_work=False)


def _has_evidence(old: RowList, new: RowList) -> bool:
    """Return whether there is evidence for a match beyond the place.

    The evidence is an NVTX range of the program, or one kernel on each side that is launched equally often and more than once.
    """
    counts = [row["n_launches"] for row in (*old, *new)]
    is_one_each = len(counts) == 2 and counts[0] == counts[1]
    return bool(old[0]["range"]) or (is_one_each and counts[0] > 1)


def _may_agree(old: RowList, new: RowList) -> bool:
    """Return whether nothing contradicts a match: neither known FLOPs nor DRAM bytes of a different magnitude."""
    if all(_total(rows, FLOP) for rows in (old, new)):
        return False
    moved = [_total(rows, DRAM_BYTES) for rows in (old, new)]
    if not moved[0] or not moved[1]:
        return True
    return max(moved[0] / moved[1], moved[1] / moved[0]) <= load_comparison_rules().work.most_traffic_ratio


def _agrees(old: RowList, new: RowList) -> bool:
    """Return whether both sides do the same FLOPs in total; without FLOPs, whether they move the same DRAM bytes."""
    for quantity in (FLOP, DRAM_BYTES):
        amounts = [_total(rows, quantity) for rows in (old, new)]
        if None in amounts:
            return False
        least, most = sorted(amount for amount in amounts if amount is not None)
        if most > 0:
            return least >= most * (1 - load_comparison_rules().work.same_place_frac)
    return False


def _total(rows: RowList, quantity: str) -> float | None:
    return whole_sum(None if row[quantity] is None else row[quantity] * row["n_launches"] for row in rows)
