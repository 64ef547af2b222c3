"""The tables that every reader produces from a report's results, and the conventions that all readers share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

ALWAYS_STORED = ("device__", "launch__", "profiler__", "smsp__maximum_", "sm__maximum_")
"""Prefixes of counters that need no collection: a launch whose collection failed still has them."""

LEAST_VALUE, GREATEST_VALUE = 1e-30, 1e30
"""Magnitudes that no counter but zero comes close to, in any unit; products and ratios of a few values within them stay finite.
Anything outside, NaN and infinity is treated as missing: only failed collection or corrupted bits produce it."""

RULE_SCOPES = {1: "local", 2: "global"}
"""What the estimated speedup of a rule is of, by NVIDIA's numbering."""


@dataclass(slots=True)
class ResultTables:
    """The tables of `RawReport` that come from the results of a report."""

    workloads: pl.DataFrame
    counters: pl.DataFrame
    units: Mapping[str, str]
    texts: pl.DataFrame
    rules: pl.DataFrame
    sections: tuple[str, ...]


def without_columns(n_rows: int) -> pl.DataFrame:
    """Return a table of rows without columns."""
    return pl.DataFrame({"": [None] * n_rows}).select([])


def instances_text(values: Iterable[tuple[str, float]]) -> str:
    """Return the values of a counter's instances as text, sorted by name: "HMMA.16816.F32 4096 HMMA.1688.F32 32".

    Values of the same name are added. Negative, non-finite and implausibly large values and names with blanks are dropped.
    """
    counts: dict[str, float] = {}
    for name, value in values:
        if 0 <= value <= GREATEST_VALUE and len(name.split()) == 1:
            counts[name] = counts.get(name, 0.0) + value
    return " ".join(f"{name} {value:.0f}" for name, value in sorted(counts.items()))


class DeclinedError(Exception):
    """A reader declines to read this report; the message says why. Raised and handled inside `ingest`, not shown as it is."""
