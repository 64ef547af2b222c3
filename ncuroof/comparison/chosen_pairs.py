"""Kernels that the user says to compare: one kernel of the run before with one of the run after, whatever they are called."""

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
        before, after: regular expressions to find in the demangled name, or in the function's name, of a run's kernels.
    """

    before: str
    after: str


def parse_pair(text: str) -> ChosenPair:
    """Return the pair that a text names: "naive=tiled", or "gemm" for the same kernel in both runs.

    Raises:
        SelectionError: a side is empty.
    """
    before, has_two, after = text.partition(_BETWEEN)
    if not before or (has_two and not after):
        raise SelectionError(f"expected two kernels as OLD=NEW, found {text!r}", hint="for example --pair naive=tiled")
    return ChosenPair(before, after or before)


def chosen(before: Run, after: Run, pairs: Sequence[ChosenPair]) -> tuple[Run, Run, Matching]:
    """Return the runs with the chosen kernels alone, and which of them are compared.

    Groups of launches (other shapes, other ranges) of a pair are matched in their order where both runs have equally many, else
    all with all.

    Raises:
        SelectionError: an expression is malformed, or found in no name of its run.
    """
    sides = [(_found(before, pair.before), _found(after, pair.after)) for pair in pairs]
    kept = [sorted({group for side in sides for group in side[which]}) for which in (0, 1)]
    matches = [
        match
        for old, new in sides
        for match in _matches([kept[0].index(group) for group in old], [kept[1].index(group) for group in new])
    ]
    matching = Matching(tuple(dict.fromkeys(matches)), removed=(), added=())
    return _only(before, kept[0]), _only(after, kept[1]), matching


def _matches(old: Sequence[int], new: Sequence[int]) -> Iterator[Match]:
    if len(old) != len(new):
        yield Match(tuple(old), tuple(new), How.CHOSEN, Sureness.CERTAIN)
        return
    for one, other in zip(old, new, strict=True):
        yield Match((one,), (other,), How.CHOSEN, Sureness.CERTAIN)


def _found(run: Run, pattern: str) -> list[int]:
    """Return the groups whose function has this very name, else those in whose name the expression is found."""
    known = [name for name in run.groups["name"].to_list() if name]
    exact = [name for name in known if function_name(name) == pattern]
    names = exact or matching_names(known, pattern, what="kernel")
    return run.groups.filter(pl.col("name").is_in(names))["group"].to_list()


def _only(run: Run, groups: Sequence[int]) -> Run:
    """Return a run as if it had launched these groups alone; of steps and of what was not recorded nothing is known then."""
    numbers = pl.DataFrame(
        {"group": groups, "number": range(len(groups))}, schema=dict.fromkeys(("group", "number"), pl.UInt32)
    )
    of_these, lines = (
        table.join(numbers, on="group", how="inner", maintain_order="left").with_columns(group="number").drop("number")
        for table in (run.groups, run.lines)
    )
    return replace(
        run,
        groups=of_these,
        n_kernels=int(of_these["n_recorded"].sum()),
        n_failed=0,
        failed=(),
        lines=lines,
        step_ns=None,
        idle_frac=None,
        not_recorded_ns=None,
        unprofiled=(),
    )
