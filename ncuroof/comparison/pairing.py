"""Which groups of one name are which of the other run, by their work and by the order in which they come."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from ncuroof.comparison.matched_groups import FLOP, INSTRUCTIONS, Row
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
