"""Maps the labels that ncu's details page prints in place of counter names to the counters.

Printed tables lack the list of counters that the breakdown of each Speed of Light throughput has in a report; it is reconstructed.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from ncuroof.ingest.raw_report import CounterSelection
from ncuroof.resources import profile_file

_WITH_BREAKDOWNS = ("GPU Speed Of Light Throughput", "GPU Speed Of Light")

_CHART = "Chart"
"""Part of the names of sections that show charts."""

COUNTER_MARK = "__"
"""Part of counter names, but of no label."""

_MARKED_NAME = re.compile(r"[A-Za-z][^\s,=/]*")
"""Name of a counter with the mark; what has it as well, in text around tables: command lines, paths and sentences."""

_NAME = re.compile(r"\w*_[\w.]+")
"""Name of a counter without the mark (a value per instruction); the raw page, which has no sections, prints only names."""

_ACTIVE_CYCLES = "__cycles_active"

SUFFIX = ".avg.pct_of_peak_sustained_elapsed"
"""Suffix of the counter of each member."""


@dataclass(frozen=True, slots=True)
class PrintedLabels:
    """The names of sections and counters on the details page.

    Attributes:
        identifier_by_section: identifier of each section, by its printed name.
        counter_by_label: counters by printed section name, then by label.
        without_unit: labels whose values have no unit.
    """

    identifier_by_section: Mapping[str, str]
    counter_by_label: Mapping[str, Mapping[str, str]]
    without_unit: frozenset[str]

    def counter(self, section: str, label: str) -> str | None:
        """Return the counter that a label stands for, or None if it is not known.

        Args:
            section: as printed, empty for none; the same label can stand for different counters in different sections.
            label: as printed. It may be the counter's own name, as for counters requested with --metrics, or end with it in
                parentheses (--print-metric-name label-name).
        """
        if COUNTER_MARK in label:
            name = label.rpartition("(")[2].rstrip(")") if label.endswith(")") else label
            return name if _MARKED_NAME.fullmatch(name) else None
        if not section and _NAME.fullmatch(label):
            return label
        return self.counter_by_label.get(section, {}).get(label)

    def section(self, printed: str) -> str:
        """Return the identifier of a section by its printed name; an identifier, as printed for rules, is returned unchanged."""
        return self.identifier_by_section.get(printed, printed)

    def section_of(self, section: str, label: str) -> str:
        """Return the section that a label belongs to: `section` if it has the label, else the one section that has it, if only one.

        Args:
            section: the section under which the label is printed; in copied text, headings may be missing, and other versions of
                ncu print some labels in other sections ("Waves Per SM" also in Speed of Light). A section of charts is always
                kept: its labels are its own, as "SM Frequency" is that of a roofline there.
            label: as printed.
        """
        if _CHART in section or self.counter(section, label) is not None:
            return section
        found = {
            counters[label]: name
            for name, counters in self.counter_by_label.items()
            if label in counters and _CHART not in name
        }
        return next(iter(found.values())) if len(found) == 1 else section

    def is_label(self, section: str, words: str) -> bool:
        """Return whether words are a known label, not a counter's name or a label with a unit."""
        return COUNTER_MARK not in words and self.knows(section, words)

    def has_unit(self, label: str) -> bool:
        """Return whether values of a label need a unit; after a counter's own name it may be missing."""
        return COUNTER_MARK not in label and label not in self.without_unit

    def knows(self, section: str, label: str) -> bool:
        """Return whether a counter is known for a label printed under a section."""
        return self.counter(self.section_of(section, label), label) is not None


@cache
def load_printed_labels() -> PrintedLabels:
    """Return what ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("printed.toml") as printed:
        sections = printed["section"]
        parts = dict(_of_breakdowns(printed["breakdown"].values(), printed["breakdown_units"]))
        counters = {name: section.get("counters", {}) for name, section in sections.items()}
        for name in _WITH_BREAKDOWNS:
            counters[name] = {**counters[name], **parts}
        identifiers = {name: section["identifier"] for name, section in sections.items()}
        return PrintedLabels(identifiers, counters, frozenset(printed["units"]["labels_without"]))


def _of_breakdowns(breakdowns: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield label and counter of each breakdown member: "L1: Lsu Writeback Active", formerly "SOL L1: Lsu Writeback Active"."""
    for member in (member for breakdown in breakdowns for member in breakdown["members"]):
        unit, _, name = member.partition("__")
        words = " ".join(word.capitalize() for word in name.split("_"))  # "Lts2xbar": str.title would write "Lts2Xbar"
        label = f"{units[unit]}: {words}"
        yield label, f"{member}{SUFFIX}"
        yield f"SOL {label}", f"{member}{SUFFIX}"


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
    """Return the selection with what its counters are computed from: parts of breakdowns, and cycles of shares."""
    if selection is None:
        return None
    wanted = [each for each in load_printed_breakdowns() if each.listing in selection.lists]
    parts = frozenset(name for each in wanted for name in (each.throughput, *each.members))
    cycles = (cycles_of_share(name) for name in selection.names)
    return selection.and_names(parts.union(*(names for names in cycles if names is not None)))


def cycles_of_share(name: str) -> tuple[str, str] | None:
    """Return the counters of active and of elapsed cycles whose ratio a counter is; None for other counters."""
    unit, active, suffix = name.partition(_ACTIVE_CYCLES)
    return (f"{unit}{active}.avg", f"{unit}__cycles_elapsed.avg") if active and suffix == SUFFIX else None


def with_listings(texts: pl.DataFrame, counters: pl.DataFrame) -> pl.DataFrame:
    """Return the texts with the listings that a report would contain, in place of any printed ones."""
    listings = [each for breakdown in load_printed_breakdowns() if (each := breakdown.listed(counters)) is not None]
    held = texts.drop(each.name for each in listings if each.name in texts.columns)
    return pl.DataFrame([*held.iter_columns(), *listings]) if listings else texts


def with_same_clocks(numbers: pl.DataFrame, units: Mapping[str, str]) -> tuple[pl.DataFrame, Mapping[str, str]]:
    """Return the counters and their units, with those added that ncu prints under a label of another counter of the same clock."""
    columns, known = {column.name: column for column in numbers.iter_columns()}, dict(units)
    with profile_file("printed.toml") as raw:
        same_clocks: Mapping[str, str] = raw["same_clock"]
    for name, printed in same_clocks.items():
        if printed in columns and known.setdefault(name, known[printed]) == known[printed]:
            values = columns[printed].alias(name)
            columns[name] = columns[name].fill_null(values) if name in columns else values
    return pl.DataFrame(list(columns.values())) if columns else numbers, known
