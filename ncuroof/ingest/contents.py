"""What a reader gets out of a report's results, and what every reader makes of it alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

ALWAYS_STORED = ("device__", "launch__", "profiler__", "smsp__maximum_", "sm__maximum_")
"""Counters that need no collection: a launch whose collection failed still has them."""

LEAST_VALUE, GREATEST_VALUE = 1e-30, 1e30
"""Counters lie far inside these, in any unit; products and ratios of a few values within them stay finite. NaN, infinity and what
only flipped bits give are not values."""


@dataclass(slots=True)
class Contents:
    """The tables of `RawReport` that come from the results of a report."""

    workloads: pl.DataFrame
    counters: pl.DataFrame
    units: Mapping[str, str]
    texts: pl.DataFrame
    rules: pl.DataFrame
    sections: tuple[str, ...]


def instances_text(values: Iterable[tuple[str, float]]) -> str:
    """Return the values of a counter's instances as a text: "HMMA.16816.F32 4096 HMMA.1688.F32 32"."""
    counts: dict[str, float] = {}
    for name, value in values:
        if 0 <= value <= GREATEST_VALUE and len(name.split()) == 1:
            counts[name] = counts.get(name, 0.0) + value
    return " ".join(f"{name} {value:.0f}" for name, value in sorted(counts.items()))


class DeclinedError(Exception):
    """A reader does not read this report; the message says why. Raised and handled within `ingest`, not shown to users."""
