"""Which groups of one name belong together, by their work, their order, or their place.

Groups stand in the same place if they are between the same kernels, in the same NVTX range, and do about the same work.
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
    """Yield which group before goes with which after; what is left over of the longer side is in no pair.

    Where all of them do more or less work by the same factor, to 10 %, another input grew all of them, and the n-th goes with the
    n-th. Else those whose launches do the same FLOPs, or else as many instructions, to 10 % and the nearest first; of what is left,
    the n-th with the n-th.

    Args:
        old: rows of a run's groups, in order of first appearance.
        new: likewise of the run after.
    """
    if _is_scaled(old, new):
        yield from zip(old, new, strict=True)
        return
    within = load_comparison_rules().work.same_problem_ratio
    left, right = dict(enumerate(old)), dict(enumerate(new))
    for quantity in (FLOP, INSTRUCTIONS):
        yield from _of_same(quantity, left, right, within=within)
    yield from zip(left.values(), right.values(), strict=False)


def pairs_of_same_problem(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the pairs that are recognised by their work: as `pairs`, and none of what is left over.

    Of launches that do equal FLOPs, those of as many instructions, to 1 %, come first: so differs what a compiler made of the same
    operations. Else instructions tell only of launches without FLOPs.

    Args:
        old: rows of a run's groups, in order of first appearance.
        new: likewise of the run after.
    """
    if len(old) > 1 and _is_scaled(old, new):
        yield from zip(old, new, strict=True)
        return
    work = load_comparison_rules().work
    left, right = dict(enumerate(old)), dict(enumerate(new))
    right_by_flop = _by_flop(right)
    for flop, rows in _by_flop(left).items():
        of = rows, right_by_flop.get(flop, {})
        yield from _of_same(INSTRUCTIONS, left, right, within=work.same_input_ratio, of=of)
    yield from _of_same(FLOP, left, right, within=work.same_problem_ratio)
    without = tuple({key: row for key, row in rows.items() if not row[FLOP]} for rows in (left, right))
    yield from _of_same(INSTRUCTIONS, left, right, within=work.same_problem_ratio, of=without)


def is_same_input(one: Row, other: Row) -> bool:
    """Return whether two launches do the same FLOPs and as many instructions, to 1 %, of what both counted; something has to be."""
    known = [(one[name], other[name]) for name in (FLOP, INSTRUCTIONS) if None not in (one[name], other[name])]
    most = load_comparison_rules().work.same_input_ratio
    return any(map(max, known)) and all(max(each) <= most * min(each) for each in known)


def is_same_problem(one: Row, other: Row) -> bool:
    """Return whether two launches do the same FLOPs, or without any as many instructions, to 10 %."""
    most = load_comparison_rules().work.same_problem_ratio
    for name in (FLOP, INSTRUCTIONS):
        if one[name] and other[name]:
            return bool(max(one[name], other[name]) <= most * min(one[name], other[name]))
    return False


Rows = dict[int, Row]


def _of_same(
    quantity: str, left: Rows, right: Rows, *, within: float, of: tuple[Rows, ...] = ()
) -> Iterator[tuple[Row, Row]]:
    """Yield pairs that agree in a quantity to a ratio, the nearest first, and take them out; `of`: those that may be in one."""
    amounts = (
        {key: math.log(row[quantity]) for key, row in rows.items() if row[quantity]} for rows in of or (left, right)
    )
    for one, other in _nearest(*amounts, within=math.log(within)):
        yield left.pop(one), right.pop(other)


def _by_flop(rows: Rows) -> dict[str, Rows]:
    """Return rows by their FLOPs, to four digits."""
    found: dict[str, Rows] = defaultdict(dict)
    for key, row in rows.items():
        found["" if row[FLOP] is None else f"{row[FLOP]:.4g}"][key] = row
    return found


def _is_scaled(old: Sequence[Row], new: Sequence[Row]) -> bool:
    """Return whether the n-th after does the work of the n-th before times a factor that is the same for all."""
    if len(old) != len(new):
        return False
    for quantity in (FLOP, INSTRUCTIONS):
        if all(row[quantity] for row in (*old, *new)):
            ratios = [other[quantity] / one[quantity] for one, other in zip(old, new, strict=True)]
            return bool(max(ratios) <= min(ratios) * load_comparison_rules().work.same_problem_ratio)
    return False


def _nearest(left: dict[int, float], right: dict[int, float], *, within: float) -> Iterator[tuple[int, int]]:
    """Yield pairs of the keys of two sides, those with the nearest values first, of equal values the n-th with the n-th.

    In order of their values, the two nearest of different sides stand beside each other: what stood between would be as near to
    one of them. So only neighbours are looked at; where two leave, those around them become neighbours.
    """
    line = sorted(place for side, known in enumerate((left, right)) for place in _places(known, side))
    before, behind = list(range(-1, len(line) - 1)), list(range(1, len(line) + 1))
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
        outer = before[first], behind[second]
        if outer[0] >= 0:
            behind[outer[0]] = outer[1]
        if outer[1] < len(line):
            before[outer[1]] = outer[0]
        if (found := candidate(*outer)) is not None:
            heappush(near, found)


def _places(known: dict[int, float], side: int) -> Iterator[tuple[float, int, int, int]]:
    """Yield value, which of equal ones it is, side and key: sorted, equal values of both sides take turns."""
    n_seen: Counter[float] = Counter()
    for key, value in known.items():
        yield value, n_seen[value], side, key
        n_seen[value] += 1


@dataclass(frozen=True, slots=True)
class Placed:
    """Groups that take each other's place.

    Attributes:
        before, after: numbers of groups.
        is_same_work: whether both sides do the same FLOPs in all; if they do none, whether they move the same DRAM bytes.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    is_same_work: bool


def match_by_place(before: pl.DataFrame, after: pl.DataFrame, anchors: Mapping[int, int]) -> list[Placed]:
    """Return what takes the place of what, among the groups that are no anchors.

    Args:
        before: `groups` of the run before, in order of first appearance.
        after: likewise of the run after.
        anchors: groups that are matched already, those after by those before.
    """
    back = {new: old for old, new in anchors.items()}
    old_gaps = _gaps(before, {group: group for group in anchors})
    new_gaps = _gaps(after, back)
    return [
        placed
        for gap, old in old_gaps.items()
        if (new := new_gaps.get(gap)) is not None
        for placed in _within(old, new)
    ]


RowList = list[Row]
Gap = tuple[str, int | None, int | None]
"""NVTX range, and the anchors before and behind, by their number in the run before."""


def _gaps(groups: pl.DataFrame, anchor_by_group: Mapping[int, int]) -> dict[Gap, RowList]:
    """Return the groups that are no anchors by the gap in which they stand."""
    columns = ("group", "name", "range", "n_launches", FLOP, DRAM_BYTES)
    rows = list(groups.select(columns).iter_rows(named=True))
    behind: list[int | None] = [None] * len(rows)
    following: int | None = None
    for index in range(len(rows) - 1, -1, -1):
        behind[index] = following
        following = anchor_by_group.get(rows[index]["group"], following)
    gaps: dict[Gap, RowList] = {}
    leading: int | None = None
    for index, row in enumerate(rows):
        anchor = anchor_by_group.get(row["group"])
        if anchor is None:
            gaps.setdefault((row["range"], leading, behind[index]), []).append(row)
        else:
            leading = anchor
    return gaps


def _within(old: RowList, new: RowList) -> Iterator[Placed]:
    """Yield matches within one gap: one by one where their numbers are equal and the work agrees, else all with all.

    Where neither holds, one does the work of one, and of no other. What does the work of none is matched where it stands in an NVTX
    range of the program's own, or is launched as often: a place alone is no evidence.
    """
    if len(old) == len(new) and all(_agrees([one], [other]) for one, other in zip(old, new, strict=True)):
        for one, other in zip(old, new, strict=True):
            yield Placed((one["group"],), (other["group"],), is_same_work=True)
        return
    is_same_work = _agrees(old, new)
    if is_same_work or (_is_marked(old, new) and _may_agree(old, new)):
        yield Placed(tuple(row["group"] for row in old), tuple(row["group"] for row in new), is_same_work=is_same_work)
        return
    alike = [(one, other) for one in old for other in new if _agrees([one], [other])]
    n_alike = Counter(each["group"] for each, _ in alike), Counter(each["group"] for _, each in alike)
    for one, other in alike:
        if n_alike[0][one["group"]] == n_alike[1][other["group"]] == 1:  # else another may be meant
            yield Placed((one["group"],), (other["group"],), is_same_work=False)


def _is_marked(old: RowList, new: RowList) -> bool:
    """Return whether more than the place speaks for a match.

    That is the program's own range, or of one kernel each, launched as often, that this was more than once.
    """
    counts = [row["n_launches"] for row in (*old, *new)]
    is_one_each = len(counts) == 2 and counts[0] == counts[1]
    return bool(old[0]["range"]) or (is_one_each and counts[0] > 1)


def _may_agree(old: RowList, new: RowList) -> bool:
    """Return whether nothing speaks against it: the FLOPs, where both sides have some, or DRAM bytes of another order."""
    if all(_total(rows, FLOP) for rows in (old, new)):
        return False
    moved = [_total(rows, DRAM_BYTES) for rows in (old, new)]
    if not moved[0] or not moved[1]:
        return True
    return max(moved[0] / moved[1], moved[1] / moved[0]) <= load_comparison_rules().work.most_traffic_ratio


def _agrees(old: RowList, new: RowList) -> bool:
    """Return whether both sides do the same FLOPs in all; if they do none, whether they move the same DRAM bytes."""
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
