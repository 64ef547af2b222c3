"""Launches that are alike as one row, with the times of all that it stands for: what the table holds, with scripts and without."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ncuroof.present.analysed import Record


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """Launches that are alike.

    Attributes:
        position: in the document, of the launch that stands for them.
        launches: positions of those that were recorded.
        n_launches: that they stand for, where launches were counted; else how many were recorded.
        duration_ns, recoverable_ns: of all that they stand for; None where not known.
    """

    position: int
    launches: tuple[int, ...]
    n_launches: int
    duration_ns: float | None
    recoverable_ns: float | None


def launch_rows(document: Record) -> list[LaunchRow]:
    """Return the groups of the document, and each launch that is in none (as its collection failed) by itself."""
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
    """Return rows by recoverable time, then by duration, both descending and the unknown last."""

    def rank(row: LaunchRow) -> tuple[float, float, int]:
        times = (row.recoverable_ns, row.duration_ns)
        recoverable, duration = (math.inf if time is None else -time for time in times)
        return recoverable, duration, row.position

    return sorted(rows, key=rank)


def n_represented(kernels: Sequence[Record]) -> list[float] | None:
    """Return for how many launches each stands, one for a failed one, which is in no sum; None where none were counted."""
    if not kernels or "n_represented" not in kernels[0]:
        return None
    return [1.0 if kernel["failed"] else kernel["n_represented"] for kernel in kernels]
