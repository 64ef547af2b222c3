"""Reconstructs the breakdowns of the two Speed of Light throughputs: reports list their counters, printed tables do not.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import polars as pl

from ncuroof.ingest.raw_report import CounterSelection
from ncuroof.resources import profile_file

SUFFIX = ".avg.pct_of_peak_sustained_elapsed"
"""Suffix of the counter of each member."""


@dataclass(frozen=True, slots=True)
class PrintedBreakdown:
    """A throughput and the counters that can be part of it.

    Attributes:
        listing: the text metric that lists its parts in a report.
        throughput: the counter of the throughput itself.
        members: counters that are parts of it if they are printed.
    """

    listing: str
    throughput: str
    members: tuple[str, ...]

    def listed(self, counters: pl.DataFrame) -> pl.Series | None:
        """Return the text that a report would contain for each launch: the members that were printed, or null.

        It is null if the throughput or all members are missing; without any such column, the result is None.
        """
        held = [name for name in self.members if name in counters.columns]
        if not held or self.throughput not in counters.columns:
            return None
        names = [pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in held]
        listed = pl.concat_str(names, separator=",", ignore_nulls=True)
        is_listed = pl.col(self.throughput).is_not_null() & (listed != "")
        return counters.select(pl.when(is_listed).then(listed).alias(self.listing)).to_series()


@cache
def load_printed_breakdowns() -> tuple[PrintedBreakdown, ...]:
    """Return what ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("printed.toml") as raw:
        return tuple(
            PrintedBreakdown(
                entry["listing"], entry["throughput"], tuple(f"{name}{SUFFIX}" for name in entry["members"])
            )
            for entry in raw["breakdown"].values()
        )


def with_members(selection: CounterSelection | None) -> CounterSelection | None:
    """Return the selection with the throughputs and members of the breakdowns that it lists added."""
    if selection is None:
        return None
    wanted = [each for each in load_printed_breakdowns() if each.listing in selection.lists]
    return selection.and_names(frozenset(name for each in wanted for name in (each.throughput, *each.members)))


def with_listings(texts: pl.DataFrame, counters: pl.DataFrame) -> pl.DataFrame:
    """Return the texts with the listings that a report would contain, in place of any printed ones."""
    listings = [each for breakdown in load_printed_breakdowns() if (each := breakdown.listed(counters)) is not None]
    held = texts.drop(each.name for each in listings if each.name in texts.columns)
    return pl.DataFrame([*held.iter_columns(), *listings]) if listings else texts
