"""What a line of ncu's terminal output begins: the message of a rule, or a value of a table; either may go on below.

Their cells are those of the same page printed as CSV.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ncuroof.ingest.printed.records import METRIC_NAME, METRIC_UNIT, METRIC_VALUE, RULE_COLUMNS, SECTION_NAME, Header

_COLUMNS = (
    "ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
    SECTION_NAME, METRIC_NAME, METRIC_UNIT, METRIC_VALUE, *RULE_COLUMNS,
)  # fmt: skip
_HEADER = Header(_COLUMNS, ",", is_quoted=True, number=1)

_SPEEDUP = re.compile(r"Est(?:\.|imated) (Local )?Speedup: ([\d.,]+(?:[eE][-+]?\d+)?)\s*%\s*")


@dataclass(frozen=True, slots=True)
class Place:
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

    place: Place
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
    """

    place: Place
    section: str
    label: str
    unit: str
    lines: list[str]
    width: int

    @property
    def text(self) -> str:
        """The value as printed, in one line."""
        return "".join(line if len(line) == self.width else f"{line} " for line in self.lines).strip()

    @property
    def cells(self) -> dict[str, str]:
        """Its cells, by column, besides those of the launch."""
        return {SECTION_NAME: self.section, METRIC_NAME: self.label, METRIC_UNIT: self.unit, METRIC_VALUE: self.text}


def row(cells: Mapping[str, str]) -> tuple[Header, list[str]]:
    """Return cells as a row of the page printed as CSV, with its header."""
    return _HEADER, [cells.get(name, "") for name in _COLUMNS]
