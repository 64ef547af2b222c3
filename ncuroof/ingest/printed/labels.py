"""Maps the labels that ncu's details page prints in place of counter names to the counters.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.ingest.printed.breakdowns import SUFFIX
from ncuroof.resources import profile_file

_WITH_BREAKDOWNS = ("GPU Speed Of Light Throughput", "GPU Speed Of Light")

_COUNTER_MARK = "__"
"""Part of counter names, but of no label."""

_MARKED_NAME = re.compile(r"[A-Za-z][^\s,=/]*")
"""Name of a counter with the mark; what has it as well, in text around tables: command lines, paths and sentences."""

_NAME = re.compile(r"\w*_[\w.]+")
"""Name of a counter without the mark (a value per instruction); the raw page, which has no sections, prints only names."""


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
        if _COUNTER_MARK in label:
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
            section: the section under which the label is printed; in copied text, headings may be missing. A section that only has
                charts is always kept: its labels are its own.
            label: as printed.
        """
        is_of_charts = self.counter_by_label.get(section) == {}
        if is_of_charts or self.counter(section, label) is not None:
            return section
        found = {counters[label]: name for name, counters in self.counter_by_label.items() if label in counters}
        return next(iter(found.values())) if len(found) == 1 else section

    def is_label(self, section: str, words: str) -> bool:
        """Return whether words are a known label, not a counter's name or a label with a unit."""
        return _COUNTER_MARK not in words and self.knows(section, words)

    def has_unit(self, label: str) -> bool:
        """Return whether values of a label need a unit; after a counter's own name it may be missing."""
        return _COUNTER_MARK not in label and label not in self.without_unit

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
        if unit not in units:
            continue
        label = f"{units[unit]}: {name.replace('_', ' ').title()}"
        yield label, f"{member}{SUFFIX}"
        yield f"SOL {label}", f"{member}{SUFFIX}"
