"""Matching by place: what stands between the same kernels, in the same NVTX range, and does about the same work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.comparison.matched_groups import DRAM_BYTES, FLOP, Row, is_other_work, whole_sum
from ncuroof.comparison.rules import load_comparison_rules

_FUNCTION = re.compile(r"(?:void )?(?:\w+::)*(?P<function>[A-Za-z]\w*)(?:<.*>)?(?P<parameters>\(.+\))")
_WORD = re.compile(r"[A-Z]*[a-z0-9]+|[A-Z0-9]+")
"""A word of a name, before the next underscore or capital: `transpose` of `transpose_naive` and `transposeNaive`."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Groups that take each other's place.

    Attributes:
        before, after: numbers of groups.
        is_same_work: whether the FLOPs of all in the gap agree, or where there are none, their DRAM bytes.
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


Rows = list[Row]
Gap = tuple[str, int | None, int | None]
"""NVTX range, and the anchors before and behind, by their number in the run before."""


def _gaps(groups: pl.DataFrame, anchor_by_group: Mapping[int, int]) -> dict[Gap, Rows]:
    """Return the groups that are no anchors by the gap in which they stand."""
    columns = ("group", "name", "range", "n_launches", FLOP, DRAM_BYTES)
    rows = list(groups.select(columns).iter_rows(named=True))
    behind: list[int | None] = [None] * len(rows)
    following: int | None = None
    for index in range(len(rows) - 1, -1, -1):
        behind[index] = following
        following = anchor_by_group.get(rows[index]["group"], following)
    gaps: dict[Gap, Rows] = {}
    leading: int | None = None
    for index, row in enumerate(rows):
        anchor = anchor_by_group.get(row["group"])
        if anchor is None:
            gaps.setdefault((row["range"], leading, behind[index]), []).append(row)
        else:
            leading = anchor
    return gaps


def _within(old: Rows, new: Rows) -> Iterator[Placed]:
    """Yield matches within one gap: one by one where their numbers are equal and the work agrees, else all with all.

    Where neither holds, one does the work of one. What does the work of none is matched where it stands in an NVTX range of the
    program's own, or is launched as often: a place alone is no evidence.
    """
    if len(old) == len(new) and all(_agrees([one], [other]) for one, other in zip(old, new, strict=True)):
        for one, other in zip(old, new, strict=True):
            yield Placed((one["group"],), (other["group"],), is_same_work=True)
        return
    is_same_work = _agrees(old, new)
    if is_same_work or (_is_marked(old, new) and _may_agree(old, new)) or _are_versions(old, new):
        yield Placed(tuple(row["group"] for row in old), tuple(row["group"] for row in new), is_same_work=is_same_work)
        return
    left = list(old)
    for row in new:
        if (alike := next((other for other in left if _agrees([other], [row])), None)) is not None:
            left.remove(alike)
            yield Placed((alike["group"],), (row["group"],), is_same_work=False)  # others may be meant: a guess


def _are_versions(old: Rows, new: Rows) -> bool:
    """Return whether one kernel each may be versions of one another by their names, and do work of the same order.

    Another algorithm may do more or less of it, and not all of it is counted: the additions of atomics are no FLOPs.
    """
    flop = [_total(rows, FLOP) for rows in (old, new)]
    is_one_each = len(old) == len(new) == 1 and old[0]["n_launches"] == new[0]["n_launches"]
    if not is_one_each or not flop[0] or not flop[1] or is_other_work(flop[1] / flop[0]):
        return False
    return _is_version(old[0], new[0])


def _is_marked(old: Rows, new: Rows) -> bool:
    """Return whether more than the place speaks for a match.

    That is the program's own range, or of one kernel each, launched as often, that this was more than once, or names that begin
    with the same word before equal parameters: `transpose_naive(const float *)`, `transposePadded(const float *)`.
    """
    counts = [row["n_launches"] for row in (*old, *new)]
    is_one_each = len(counts) == 2 and counts[0] == counts[1]
    return bool(old[0]["range"]) or (is_one_each and (counts[0] > 1 or _is_version(old[0], new[0])))


def _is_version(old: Row, new: Row) -> bool:
    """Return whether two functions have other names that begin with the same word, and equal parameters."""
    found = [_FUNCTION.fullmatch(row["name"] or "") for row in (old, new)]
    if None in found:
        return False
    functions, parameters = zip(*(match.group("function", "parameters") for match in found if match), strict=True)
    words = [match[0] if (match := _WORD.match(name)) else name for name in functions]
    return functions[0] != functions[1] and words[0] == words[1] and parameters[0] == parameters[1]


def _may_agree(old: Rows, new: Rows) -> bool:
    """Return whether nothing speaks against it: the FLOPs, where both sides have some, or DRAM bytes of another order."""
    if all(_total(rows, FLOP) for rows in (old, new)):
        return False
    moved = [_total(rows, DRAM_BYTES) for rows in (old, new)]
    if not moved[0] or not moved[1]:
        return True
    return max(moved[0] / moved[1], moved[1] / moved[0]) <= load_comparison_rules().work.most_traffic_ratio


def _agrees(old: Rows, new: Rows) -> bool:
    """Return whether FLOPs of all launches agree; where there are none on both sides, their DRAM bytes."""
    for quantity in (FLOP, DRAM_BYTES):
        amounts = [_total(rows, quantity) for rows in (old, new)]
        if None in amounts:
            return False
        least, most = sorted(amount for amount in amounts if amount is not None)
        if most > 0:
            return least >= most * (1 - load_comparison_rules().work.same_place_frac)
    return False


def _total(rows: Rows, quantity: str) -> float | None:
    return whole_sum(None if row[quantity] is None else row[quantity] * row["n_launches"] for row in rows)
