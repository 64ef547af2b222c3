"""Pairs of kernels that the user names: one kernel of the run before, one of the run after, whatever they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from ncuroof.comparison.matching import How, Match, Matching, Sureness
from ncuroof.comparison.run import Run
from ncuroof.diagnosis.selection import matching_names
from ncuroof.errors import SelectionError
from ncuroof.ncu.kernel_names import function_name

_BETWEEN = "="


@dataclass(frozen=True, slots=True)
class ChosenPair:
    """Kernels to compare.

    Attributes:
        before, after: regular expressions, searched for in the demangled names and the function names of a run's kernels.
    """

    before: str
    after: str


def parse_pair(text: str) -> ChosenPair:
    """Parse a pair: "naive=tiled", or "gemm" for the same kernel in both runs.

    Raises:
        SelectionError: a side is empty.
    """
    before, has_two, after = text.partition(_BETWEEN)
    if not before or (has_two and not after):
        raise SelectionError(f"expected two kernels as OLD=NEW, found {text!r}", hint="for example --pair naive=tiled")
    return ChosenPair(before, after or before)


def chosen_kernels(before: Run, after: Run, pairs: Sequence[ChosenPair]) -> tuple[Run, Run, Matching]:
    """Return both runs reduced to the chosen kernels, and how these match.

    A kernel has several groups if it is launched with several shapes or in several NVTX ranges. If both runs have the same number
    of groups, they are matched in order; otherwise all of them together form one match.

    Raises:
        SelectionError: an expression is malformed, or matches no kernel of its run.
    """
    sides = [(_groups_named(before, pair.before), _groups_named(after, pair.after)) for pair in pairs]
    kept = [sorted({group for side in sides for group in side[which]}) for which in (0, 1)]
    matches = [
        match
        for old, new in sides
        for match in _matches([kept[0].index(group) for group in old], [kept[1].index(group) for group in new])
    ]
    matching = Matching(tuple(dict.fromkeys(matches)), removed=(), added=())
    return _reduced_to(before, kept[0]), _reduced_to(after, kept[1]), matching


def _matches(old: Sequence[int], new: Sequence[int]) -> Iterator[Match]:
    if len(old) != len(new):
        yield Match(tuple(old), tuple(new), How.CHOSEN, Sureness.CERTAIN)
        return
    for one, other in zip(old, new, strict=True):
        yield Match((one,), (other,), How.CHOSEN, Sureness.CERTAIN)


def _groups_named(run: Run, pattern: str) -> list[int]:
    """Return the groups of the function with exactly this name; if there is none, those whose name matches the expression."""
    known = [name for name in run.groups["name"].to_list() if name]
    exact = [name for name in known if function_name(name) == pattern]
    names = exact or matching_names(known, pattern, what="kernel")
    return run.groups.filter(pl.col("name").is_in(names))["group"].to_list()


def _reduced_to(run: Run, groups: Sequence[int]) -> Run:
    """Return a run reduced to some groups. Its steps and its unprofiled launches are unknown then."""
    numbers = pl.DataFrame(
        {"group": groups, "number": range(len(groups))}, schema=dict.fromkeys(("group", "number"), pl.UInt32)
    )
    kept, lines = (
        table.join(numbers, on="group", how="inner", maintain_order="left").with_columns(group="number").drop("number")
        for table in (run.groups, run.lines)
    )
    return replace(
        run,
        groups=kept,
        n_kernels=int(kept["n_recorded"].sum()),
        n_failed=0,
        failed=(),
        lines=lines,
        step_ns=None,
        idle_frac=None,
        not_recorded_ns=None,
        unprofiled=(),
    )
