"""The counters behind the labels that the details page of ncu prints in place of their names.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof import resources

_COUNTER_MARK = "__"
"""Counters have it in their names, and no label does."""

_NAME = re.compile(r"\w*_[\w.]+")
"""Of a value per instruction, without the mark: the raw page, which has no sections, prints names alone."""


@dataclass(frozen=True, slots=True)
class PrintedLabels:
    """What the details page calls sections and counters.

    Attributes:
        identifier_by_section: the section's identifier by the name that is printed.
        counter_by_label: by section as printed, then by label.
    """

    identifier_by_section: Mapping[str, str]
    counter_by_label: Mapping[str, Mapping[str, str]]

    def counter(self, section: str, label: str) -> str | None:
        """Return the counter behind a label, or None where it is not known.

        Args:
            section: as printed, empty for none; the same label stands for different counters in different sections.
            label: as printed. It may be the counter's own name, as of what was asked for with --metrics, or end with it in
                parentheses (--print-metric-name label-name).
        """
        if _COUNTER_MARK in label:
            return label.rpartition("(")[2].rstrip(")") if label.endswith(")") else label
        if not section and _NAME.fullmatch(label):
            return label
        return self.counter_by_label.get(section, {}).get(label)

    def section(self, printed: str) -> str:
        """Return a section's identifier; rules are printed with it, counters with the section's name."""
        return self.identifier_by_section.get(printed, printed)


@cache
def load_printed_labels() -> PrintedLabels:
    """Return what ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    sections = resources.read_toml(resources.folder("profiles") / "printed.toml")["section"]
    return PrintedLabels(
        {name: section["identifier"] for name, section in sections.items()},
        {name: section.get("counters", {}) for name, section in sections.items()},
    )
