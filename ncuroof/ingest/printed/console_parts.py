"""Parts of ncu's terminal output: messages of rules, values of tables, and launches without a name.

A message or a value may continue on the lines below. Its cells are those of the same page printed as CSV. ncu prints each section
once per launch. A section that is repeated below the same name with a different value for a label therefore belongs to a launch
whose name was not copied. A section that is repeated with the same values is a quotation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ncuroof.ingest.printed.records import (
    INVOCATIONS,
    LEAST,
    METRIC_NAME,
    METRIC_UNIT,
    METRIC_VALUE,
    MOST,
    RULE_COLUMNS,
    SECTION_NAME,
    Header,
)

_COLUMNS = (
    "ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC", INVOCATIONS,
    SECTION_NAME, METRIC_NAME, METRIC_UNIT, METRIC_VALUE, LEAST, MOST, *RULE_COLUMNS,
)  # fmt: skip
_HEADER = Header(_COLUMNS, ",", is_quoted=True, number=1)

_SPEEDUP = re.compile(r"Est(?:\.|imated) (Local )?Speedup: ([\d.,]+(?:[eE][-+]?\d+)?)\s*%\s*")

_OF_GPU = ("Device", "CC")
"""Cells that an unnamed launch takes from the launch before it: a note mostly covers one GPU, but perhaps several programs."""


@dataclass(frozen=True, slots=True)
class PrintedContext:
    """Where something is printed.

    Attributes:
        launch: the cells of the launch to which the text assigns it.
        heading: name of the section above it, as printed; empty for none.
        table: number of that heading in the text.
        is_apart: whether it is in another piece of a note than the launch's name.
    """

    launch: Mapping[str, str]
    heading: str
    table: int
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A message of one of NVIDIA's rules.

    Attributes:
        place: where it is printed.
        kind: kind of the message: OPT, INF, WRN or ERR, and in 2020 OK.
        indent: indent of its first line; further lines are indented more.
        lines: the lines of its text so far.
    """

    place: PrintedContext
    kind: str
    indent: int
    lines: list[str]

    @property
    def cells(self) -> dict[str, str]:
        """Its cells, by column, besides those of the launch."""
        text = " ".join(self.lines)
        speedup = _SPEEDUP.match(text)
        return {
            SECTION_NAME: self.place.heading,
            "Rule Name": self.place.heading,
            "Rule Type": self.kind,
            "Rule Description": text[speedup.end() :] if speedup else text,
            "Estimated Speedup Type": ("local" if speedup[1] else "global") if speedup else "",
            "Estimated Speedup": speedup[2] if speedup else "",
        }


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a table.

    Attributes:
        place: where it is printed.
        section: the section that its label belongs to.
        label: as printed.
        unit: as printed, empty for none.
        lines: the lines of the value so far: the raw page wraps long values, between words or where a word fills the column.
        width: width of the value column, in characters.
        ends: the least and the greatest of several launches' values, as printed; empty for the value of one launch.
    """

    place: PrintedContext
    section: str
    label: str
    unit: str
    lines: list[str]
    width: int
    ends: tuple[str, str] = ("", "")

    @property
    def text(self) -> str:
        """The value as printed, in one line."""
        return "".join(line if len(line) == self.width else f"{line} " for line in self.lines).strip()

    @property
    def cells(self) -> dict[str, str]:
        """Its cells, by column, besides those of the launch."""
        named = {SECTION_NAME: self.section, METRIC_NAME: self.label, METRIC_UNIT: self.unit, METRIC_VALUE: self.text}
        return {**named, LEAST: self.ends[0], MOST: self.ends[1]}


def row(cells: Mapping[str, str]) -> tuple[Header, list[str]]:
    """Return cells as a row of the page printed as CSV, with its header."""
    return _HEADER, [cells.get(name, "") for name in _COLUMNS]


class RepeatedSections:
    """Assigns what a text contains to its launches.

    Attributes:
        n_apart: by kernel name, the number of tables assigned to it so far that are in another piece of a note than its name.
        n_unnamed: number of launches so far that have no name, below one that has.
    """

    def __init__(self) -> None:
        self.n_apart: Counter[str] = Counter()
        self.n_unnamed = 0
        self._place: PrintedContext | None = None
        self._counted: PrintedContext | None = None
        self._launch: dict[str, str] = {}
        self._headings: set[str] = set()
        self._printed: dict[tuple[str, str], str] = {}
        self._is_repeat = False
        self._held: list[Rule | Value] = []
        """Parts of the repeated section, as long as all of it may be a quotation."""

    def rows(self, parts: Iterable[Rule | Value]) -> Iterator[tuple[Header, list[str]]]:
        """Yield a row per part, with the cells of its launch."""
        for part in parts:
            if self._place is None or part.place.table != self._place.table:
                yield from self._released()
                self._meet(part.place)
            if isinstance(part, Value) and self._begins_next_launch(part):
                self._begin_unnamed()
            self._held.append(part)
            if not self._is_repeat:
                yield from self._released()
        yield from self._released()

    def _meet(self, place: PrintedContext) -> None:
        """Begin a section."""
        if self._place is None or place.launch is not self._place.launch:
            self._begin(dict(place.launch))
        self._is_repeat = place.heading in self._headings
        self._headings.add(place.heading)
        self._place = place

    def _begin(self, launch: dict[str, str]) -> None:
        self._launch = launch
        self._headings, self._printed = set(), {}

    def _begins_next_launch(self, value: Value) -> bool:
        if not self._is_repeat or value.section != value.place.heading:
            return False
        return self._printed.get((value.section, value.label), value.text) != value.text

    def _begin_unnamed(self) -> None:
        """Begin an unnamed launch, whose GPU is assumed, with the parts that have been held back."""
        self.n_unnamed += 1
        heading = self._place.heading if self._place else ""
        shared = {name: cell for name, cell in self._launch.items() if name in _OF_GPU}
        self._begin({**shared, "ID": f"without a name {self.n_unnamed}"})
        self._headings.add(heading)
        self._is_repeat = False

    def _released(self) -> Iterator[tuple[Header, list[str]]]:
        for part in self._held:
            if isinstance(part, Value) and (key := (part.section, part.label)) not in self._printed:
                self._printed[key] = part.text
                self._count(part.place)
            yield row({**self._launch, **part.cells})
        self._held = []

    def _count(self, place: PrintedContext) -> None:
        if place.is_apart and place is not self._counted and "Kernel Name" in self._launch:
            self.n_apart[self._launch["Kernel Name"]] += 1
            self._counted = place
