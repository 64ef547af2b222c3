"""Rows of the table of kernels, with and without scripts: equal launches as one row, with the sum of their times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncuroof.present.analysed import Record


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A group of equal launches, or a single launch.

    Attributes:
        position: of the representative launch, in the document's kernels.
        launches: positions of all profiled launches of the group.
        n_launches: launches that they represent, with a counting run; else the number of profiled ones.
        duration_ns, recoverable_ns: sums over all represented launches; None where not known.
    """

    position: int
    launches: tuple[int, ...]
    n_launches: int
    duration_ns: float | None
    recoverable_ns: float | None


def launch_rows(document: Record) -> list[LaunchRow]:
    """Return a row per group of the document, then one per launch outside all groups, whose collection failed."""
    kernels = document["kernels"]
    position_by_id = {kernel["id"]: position for position, kernel in enumerate(kernels)}
    rows = [
        LaunchRow(
            position_by_id[group["id"]],
            tuple(position_by_id[number] for number in group["launches"]),
            group["n_launches"],
            group["duration_ns"],
            group["recoverable_ns"],
        )
        for group in document["groups"]
    ]
    grouped = {position for row in rows for position in row.launches}
    alone = [position for position in position_by_id.values() if position not in grouped]
    return rows + [LaunchRow(position, (position,), 1, kernels[position]["duration_ns"], None) for position in alone]


def most_recoverable_first(rows: Iterable[LaunchRow]) -> list[LaunchRow]:
    """Return rows by recoverable time, then by duration, both descending with unknown values last."""

    def rank(row: LaunchRow) -> tuple[float, float, int]:
        times = (row.recoverable_ns, row.duration_ns)
        recoverable, duration = (math.inf if time is None else -time for time in times)
        return recoverable, duration, row.position

    return sorted(rows, key=rank)


def n_represented(kernels: Sequence[Record]) -> list[float] | None:
    """Return how many launches each kernel represents, 1 if it failed, as it is in no sum; None without a counting run."""
    if not kernels or "n_represented" not in kernels[0]:
        return None
    return [1.0 if kernel["failed"] else kernel["n_represented"] for kernel in kernels]
