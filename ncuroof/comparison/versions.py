"""Match kernels whose names say that they are versions of each other, such as `transpose_naive` and `transpose_float4`.

A name says what a kernel computes and how. The words for *how* (`naive`, `tiled`, `float4`, `v2`) change from version to version,
and `profiles/comparison.toml` lists them; the other words have to agree. If a match is ambiguous, none is made: the kernels become
candidates, which the user can compare with `--pair`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from ncuroof.comparison.matched_groups import DRAM_BYTES, FLOP, INSTRUCTIONS, Row, is_other_work
from ncuroof.comparison.pairing import pairs
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.metrics.names import GENERIC
from ncuroof.ncu.kernel_names import UNNAMED, function_name, template_arguments

_OF_A_GENERIC = re.compile(rf"(?:void )?(?:\w+::)*{GENERIC}<", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\b(?!::)", re.ASCII)
"""The function's own name: what no `::` follows."""

_MOST_SHAPES = 8
"""Largest number of groups of a function whose work is compared."""

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", re.ASCII)
"""A word of a name: up to the next underscore, capital or digit; capitals in a row are one."""

_VECTOR_TYPE = re.compile(
    r"(?i:u?(?:char|short|int|long|float|double|half|bfloat16|bf16|fp16))_?(?:2|4|8|x2|x4|x8)(?![\d])"
)
_BLAS = re.compile(r"[sdhcziqb](gemm|gemv|axpy|dot|syrk|trsm|spmv|spmm)")
"""BLAS names with the letter of their type: `sgemm` is a `gemm`."""

_MOST_WITH_A_WORD = 50
"""Words that more functions have are ignored: they distinguish nothing, and would make the search quadratic."""

_LEAST_ALIKE = 0.5
"""Share of the words of the longer name that the shorter one must have."""

_MOST_CANDIDATES = 3
"""Candidates of a function; more do not help."""


class Alike(IntEnum):
    """How much two names agree."""

    NOT = 0
    PARTLY = 1  # they begin with the same word, or share half of their words
    BUT_FOR_VERSION = 2  # all words that say what is computed
    BUT_FOR_PLACE = 3  # the function's name, in another namespace or with other template arguments


@dataclass(frozen=True, slots=True)
class Version:
    """Two groups that are versions of each other.

    Attributes:
        old, new: rows of the groups.
        is_sure: whether names and work leave little doubt.
        why: what speaks for it.
    """

    old: Row
    new: Row
    is_sure: bool
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Groups that may be versions of each other, which only the user can know.

    Attributes:
        before, after: a group of each run.
        pair: what `--pair` takes to compare them.
        why: what speaks for it, and what against.
    """

    before: int
    after: int
    pair: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of one run: its groups, and the words of its name that say what it computes."""

    name: str
    rows: tuple[Row, ...]
    words: tuple[str, ...]
    is_generic: bool
    workload: str


def match_versions(old: Sequence[Row], new: Sequence[Row], matched: Collection[str]) -> Iterator[Version]:
    """Yield the groups that are versions of each other, if the match is unambiguous.

    Args:
        old: rows of groups that have no match yet, in order.
        new: the same for the run after.
        matched: names that both runs have. A kernel that differs from one of them only by words for *how* is another member of a
            series, such as the steps of a tutorial, and need not succeed a kernel that is gone.
    """
    sides = _functions(old), _functions(new)
    series = {_words(name)[0] for name in matched}
    found = _alike(*sides)
    taken: tuple[set[int], set[int]] = set(), set()
    for alike in sorted(Alike, reverse=True)[:-1]:
        edges = [edge for edge in found if found[edge] >= alike and edge[0] not in taken[0] and edge[1] not in taken[1]]
        for first, second in _unambiguous(edges, sides):
            before, after = sides[0][first], sides[1][second]
            if not _may_match(before, after, alike, series, is_alone=len(sides[0]) == len(sides[1]) == 1):
                continue
            taken[0].add(first)
            taken[1].add(second)
            why = _name_words(before, after, alike)
            for one, other in pairs(before.rows, after.rows):
                is_sure = alike > Alike.PARTLY and _work(one, other) is not None
                yield Version(one, other, is_sure or is_same_work(one, other), (why, work_words(one, other)))


def candidates(old: Sequence[Row], new: Sequence[Row]) -> list[Candidate]:
    """Return the groups without a match that may belong together, the likeliest first.

    Their names are alike, or they are launched alike and do the same work.

    Args:
        old: rows of groups that are only in the run before.
        new: the same for the run after.
    """
    sides = _functions(old), _functions(new)
    alike = _alike(*sides)
    if len(sides[0]) * len(sides[1]) <= _MOST_WITH_A_WORD**2:
        for first, before in enumerate(sides[0]):
            for second, after in enumerate(sides[1]):
                if _is_same_launch(before.rows[0], after.rows[0]):
                    alike.setdefault((first, second), Alike.NOT)
    ranked = sorted(alike, key=lambda edge: (-alike[edge], not _is_any_work_same(sides, edge), edge))
    n_found: dict[tuple[int, int], int] = defaultdict(int)
    found = []
    for first, second in ranked:
        if n_found[0, first] >= _MOST_CANDIDATES or n_found[1, second] >= _MOST_CANDIDATES:
            continue
        n_found[0, first] += 1
        n_found[1, second] += 1
        before, after = sides[0][first], sides[1][second]
        one, other = before.rows[0], after.rows[0]
        names = _name_words(before, after, alike[first, second])
        pair = "=".join(side.name.replace("=", r"\x3d") for side in (before, after))
        found.append(Candidate(one["group"], other["group"], pair, (names, work_words(one, other))))
    return found


def is_same_work(one: Row, other: Row) -> bool:
    """Return whether two launches do the same work within 10 %, in FLOPs, else in instructions, else in DRAM bytes."""
    ratio = _work(one, other)
    most = load_comparison_rules().work.same_problem_ratio
    return ratio is not None and 1 / most <= ratio[1] <= most


def work_words(one: Row, other: Row) -> str:
    """Return how the work of a launch changed: "the same FLOPs per launch", "instructions per launch ×1.9"."""
    ratio = _work(one, other)
    if ratio is None:
        return "work not counted"
    what = {FLOP: "FLOPs", INSTRUCTIONS: "instructions", DRAM_BYTES: "DRAM bytes"}[ratio[0]]
    return f"the same {what} per launch" if is_same_work(one, other) else f"{what} per launch ×{ratio[1]:.3g}"


def _work(one: Row, other: Row) -> tuple[str, float] | None:
    """Return a measure of work that both launches counted, and its ratio: the first that agrees, else the first; else None."""
    ratios = [(name, other[name] / one[name]) for name in (FLOP, INSTRUCTIONS, DRAM_BYTES) if one[name] and other[name]]
    return next((each for each in ratios if not is_other_work(each[1])), ratios[0] if ratios else None)


def _functions(rows: Sequence[Row]) -> list[_Function]:
    """Return the functions of the groups that have a name, in the order of the groups."""
    by_key: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        name = row["name"] or ""
        function = function_name(name)
        whole = name if _OF_A_GENERIC.match(UNNAMED.sub("", name)) else ""
        if function:
            by_key[function, whole, row["workload"]].append(row)
    return [
        _Function(function, tuple(of_function), _words(of_function[0]["name"])[0], bool(whole), workload)
        for (function, whole, workload), of_function in by_key.items()
    ]


@lru_cache(4096)
def _words(name: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of a name that say what is computed, and whether they stand in the arguments of a generic template."""
    rules = load_comparison_rules().names
    plain = UNNAMED.sub("", name)
    if _OF_A_GENERIC.match(plain):
        found = (each.lower() for each in _IDENTIFIER.findall(template_arguments(plain)))
        known = (rules.synonyms.get(each, each) for each in found if "policy" not in each)
        saying = [each for each in known if each not in rules.of_libraries]
        return tuple(dict.fromkeys(saying)) or (plain,), True
    function = function_name(plain)
    tokens = [each.lower() for each in _TOKEN.findall(_VECTOR_TYPE.sub("_", function))]
    words = [match[1] if (match := _BLAS.fullmatch(each)) else each for each in tokens]
    saying = [each for each in words if len(each) > 1 and not each.isdigit() and each not in rules.version_words]
    return tuple(dict.fromkeys(saying)) or (function.lower(),), False


def _alike(old: Sequence[_Function], new: Sequence[_Function]) -> dict[tuple[int, int], Alike]:
    """Return how much names agree, for the pairs of functions whose names agree at all."""
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, function in enumerate(new):
        for word in {*function.words, function.name}:
            by_word[word].append(number)
    found = {}
    for number, function in enumerate(old):
        near = {
            other
            for word in {*function.words, function.name}
            if len(by_word[word]) <= _MOST_WITH_A_WORD
            for other in by_word[word]
        }
        for other in sorted(near):
            if alike := _how_alike(function, new[other]):
                found[number, other] = alike
    return found


def _how_alike(one: _Function, other: _Function) -> Alike:
    if one.is_generic != other.is_generic or one.workload != other.workload:
        return Alike.NOT
    if one.name == other.name and not one.is_generic:
        return Alike.BUT_FOR_PLACE
    if set(one.words) == set(other.words):
        return Alike.BUT_FOR_VERSION
    shared = len({*one.words} & {*other.words}) / max(len(one.words), len(other.words))
    begins_alike = not one.is_generic and one.words[0] == other.words[0]
    return Alike.PARTLY if begins_alike or shared >= _LEAST_ALIKE else Alike.NOT


def _unambiguous(
    edges: Sequence[tuple[int, int]], sides: tuple[Sequence[_Function], Sequence[_Function]]
) -> list[tuple[int, int]]:
    """Return the unambiguous pairs: both functions are in no other pair, or in no other pair that does the same work."""
    n_by_function = _n_by_function(edges)
    same = [edge for edge in edges if _is_any_work_same(sides, edge)]
    n_same = _n_by_function(same)
    return [
        edge
        for edge in edges
        if n_by_function[0, edge[0]] == n_by_function[1, edge[1]] == 1
        or (edge in same and n_same[0, edge[0]] == n_same[1, edge[1]] == 1)
    ]


def _n_by_function(edges: Sequence[tuple[int, int]]) -> Mapping[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = defaultdict(int)
    for first, second in edges:
        found[0, first] += 1
        found[1, second] += 1
    return found


def _is_any_work_same(sides: tuple[Sequence[_Function], Sequence[_Function]], edge: tuple[int, int]) -> bool:
    return any(
        is_same_work(one, other)
        for one in sides[0][edge[0]].rows[:_MOST_SHAPES]
        for other in sides[1][edge[1]].rows[:_MOST_SHAPES]
    )


def _may_match(
    before: _Function, after: _Function, alike: Alike, series: Collection[tuple[str, ...]], *, is_alone: bool
) -> bool:
    """Return whether names and work together suffice for a match: the less the names agree, the more the work must."""
    shapes = [side.rows[:_MOST_SHAPES] for side in (before, after)]
    best = max((_work_agreement(one, other) for one in shapes[0] for other in shapes[1]), default=None)
    is_known, is_same, is_near = best or (False, False, False)
    if alike is Alike.BUT_FOR_PLACE:
        return not is_known or is_near
    if not before.is_generic and {before.words, after.words} & set(series):
        return False
    if alike is Alike.BUT_FOR_VERSION:
        return is_near or (not is_known and is_alone)
    begins_alike = not before.is_generic and before.words[0] == after.words[0]
    return is_same or (is_alone and is_near and begins_alike)


def _work_agreement(one: Row, other: Row) -> tuple[bool, bool, bool]:
    """Return whether the work of both is known, whether it is the same, and whether it is of the same magnitude."""
    ratio = _work(one, other)
    return ratio is not None, is_same_work(one, other), ratio is not None and not is_other_work(ratio[1])


def _is_same_launch(one: Row, other: Row) -> bool:
    """Return whether two kernels have the same shape and do the same work."""
    is_alike = all(one[key] == other[key] for key in ("grid", "block", "workload"))
    return is_alike and is_same_work(one, other)


def _name_words(before: _Function, after: _Function, alike: Alike) -> str:
    if alike is Alike.NOT:
        return "the same shape"
    if alike is Alike.BUT_FOR_PLACE:
        return f"both are {after.name}"
    shared = [word for word in before.words if word in after.words]
    if before.is_generic:
        n_words = max(len(before.words), len(after.words))
        return f"{len(shared)} of {n_words} names in the template arguments agree"
    return f"both names say {' '.join(shared)}"
