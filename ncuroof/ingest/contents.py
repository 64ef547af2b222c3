"""What a reader gets out of a report's results, and what every reader makes of it alike."""

from __future__ import annotations

from collections.abc import Mapping
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


class DeclinedError(Exception):
    """A reader does not read this report; the message says why. Raised and handled within `ingest`, not shown to users."""
