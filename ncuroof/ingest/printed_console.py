"""The records of what ncu prints on a terminal, out of a file in which others may have written, too: a log, or a note about it.

A launch is told by the line with its name and its context; below it stand tables of labels, units and values, each under the name
of its section, and the words of NVIDIA's rules. The records are those of the same page printed as CSV, one per value or rule.

Source: what ncu 2024.1 prints of 138 recorded reports with `--page details` and `--page raw`, and what ncu 2020 to 2026 wrote into
published logs; Nsight Compute CLI documentation, "Console Output".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncuroof.ingest.printed_records import METRIC_NAME, METRIC_VALUE, Header

_COLUMNS = (
    "ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC",
    "Section Name", METRIC_NAME, "Metric Unit", METRIC_VALUE,
    "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
)  # fmt: skip
_HEADER = Header(_COLUMNS, ",", is_quoted=True, number=1)

_QUOTING = re.compile(r"(?:\s*(?:>|//|#(?! [A-Z])|│|\d+[:|](?=\s)))*")
"""What stands before lines that are quoted: marks of mails, of notes and of comments, numbers of lines. "# SMs" is a label."""

_OUTSIDE = re.compile(r"==[A-Z]+==|```")
_PROCESS = re.compile(r"\[(\d+)\] (\S.*)@\S+$")
_LAUNCH = re.compile(
    r"(\S.*?)"
    r"(?: \((\d+, \d+, \d+)\)x\((\d+, \d+, \d+)\))?"
    r"(?:, \d{4}-\w{3}-\d{1,2} \d{1,2}:\d\d:\d\d)?"
    r", Context (\d+)(?:, Stream (\d+))?(?:, Device (\d+), CC (\d+\.\d+))?$"
)
_OF_LAUNCH = ("Kernel Name", "Grid Size", "Block Size", "Context", "Stream", "Device", "CC")
_SECTION = re.compile(r"Section: (.+)")
_TABLE = re.compile(r"Metric Name\s+Metric Unit\s+Metric Value$")
_SUMMARY = re.compile(r"Metric Name\s+Metric Unit\s+Minimum\s+Maximum\s+Average$")
_RULER = re.compile(r"-{3,}(?:\s+-{3,})*$")
_RULE = re.compile(r"(OPT|INF|WRN|ERR)\s+(\S.*)")
_SPEEDUP = re.compile(r"Est\. (Local )?Speedup: ([\d.,]+)\s*%\s*")
_UNIT = re.compile(r"%|[KMGTP]?(?:byte|hz)\b\S*|[a-zµμ][a-zµμ/]*|SM|TPC")
"""Words of units begin with a small letter, and words of labels do not, but for these."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What stands of one of NVIDIA's rules.

    Attributes:
        place: the cells of its launch and section.
        kind: of its message.
        lines: of its text, so far.
    """

    place: Mapping[str, str]
    kind: str
    lines: list[str]

    def cells(self) -> dict[str, str]:
        text = " ".join(self.lines)
        told = _SPEEDUP.match(text)
        return {
            **self.place,
            "Rule Name": self.place["Section Name"],
            "Rule Type": self.kind,
            "Rule Description": text[told.end() :] if told else text,
            "Estimated Speedup Type": ("local" if told[1] else "global") if told else "",
            "Estimated Speedup": told[2] if told else "",
        }


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a table.

    Attributes:
        place: the cells of its launch and section.
        label: as printed.
        unit: as printed, empty for none.
        lines: of the value, so far: the raw page breaks long ones, between words and where one fills the column.
        width: of the column.
    """

    place: Mapping[str, str]
    label: str
    unit: str
    lines: list[str]
    width: int

    def cells(self) -> dict[str, str]:
        value = "".join(line if len(line) == self.width else f"{line} " for line in self.lines).strip()
        return {**self.place, METRIC_NAME: self.label, "Metric Unit": self.unit, METRIC_VALUE: value}


class ConsoleRecords:
    """Reads the records of a file.

    Attributes:
        n_lost: lines of tables that hold no label and value, so far.
        n_tables: launches, so far.
        is_summary: whether a table sums up several launches (`--print-summary`), which says nothing of any one.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.n_lost = 0
        self.n_tables = 0
        self.is_summary = False
        self._lines = lines
        self._process: dict[str, str] = {}
        self._place: dict[str, str] = {}
        self._columns: Sequence[tuple[int, int]] = ()
        self._is_table = self._has_values = False
        self._open: _Rule | _Value | None = None

    def __iter__(self) -> Iterator[tuple[Header, list[str]]]:
        """Yield a row per value and per rule."""
        for line in self._lines:
            quoting = _QUOTING.match(line)
            before = self._open
            self._take(line[quoting.end() if quoting else 0 :].rstrip())
            if before is not None and self._open is not before:
                yield _HEADER, _row(before.cells())
        if self._open is not None:
            yield _HEADER, _row(self._open.cells())

    def _take(self, shown: str) -> None:
        text, before = shown.strip(), self._open
        if self._begins(text, shown):
            self._open = None if self._open is before else self._open
        elif isinstance(before, _Rule):
            before.lines.append(text)
        elif self._is_table:
            self._take_value(shown)

    def _begins(self, text: str, shown: str) -> bool:
        """Return whether a line ends what stood before it, and begin what it begins."""
        if not text or _OUTSIDE.match(text):
            self._is_table = False
        elif ", Context " in text and (found := _LAUNCH.match(text)):
            self._begin_launch(found)
        elif found := _PROCESS.match(text):
            self._process = {"Process ID": found[1], "Process Name": found[2]}
        elif _SUMMARY.match(text):
            self.is_summary = True
        elif not self._place:
            return False
        elif found := _SECTION.match(text):
            self._place = {**self._place, "Section Name": found[1]}
            self._is_table = False
        elif found := _RULE.match(text):
            self._open, self._is_table = _Rule(self._place, found[1], [found[2]]), False
        elif _TABLE.match(text):
            self._columns, self._is_table, self._has_values = (), True, False
        elif _RULER.match(text):
            self._columns = [found.span() for found in re.finditer("-+", shown)]
            self._is_table &= not self._has_values
        else:
            return False
        return True

    def _begin_launch(self, found: re.Match[str]) -> None:
        told = {name: cell for name, cell in zip(_OF_LAUNCH, found.groups(), strict=True) if cell}
        self._place = {"ID": str(self.n_tables), "Process ID": "", **self._process, **told, "Section Name": ""}
        self.n_tables += 1
        self._is_table = False

    def _take_value(self, shown: str) -> None:
        columns, before = self._columns, self._open
        start, end = columns[-1] if len(columns) == 3 else (0, 0)
        if isinstance(before, _Value) and not shown[:start].strip() and start:
            before.lines.append(shown.strip())
        elif cells := _by_columns(shown, columns) or _by_words(shown):
            label, unit, value = cells
            self._open, self._has_values = _Value(self._place, label, unit, [value], end - start), True
        else:
            self._open = None
            self.n_lost += 1


def _row(cells: Mapping[str, str]) -> list[str]:
    return [cells.get(name, "") for name in _COLUMNS]


def _by_columns(shown: str, columns: Sequence[tuple[int, int]]) -> tuple[str, str, str] | None:
    """Return label, unit and value as they stand below the rulers of a table; None where they do not stand so."""
    if (
        len(columns) != 3
        or len(shown) > columns[-1][1]
        or any(shown[start - 1 : start].strip() for start, _ in columns[1:])
    ):
        return None
    label, unit, value = (shown[start:end].strip() for start, end in columns)
    return (label, unit, value) if label and " " not in unit else None


def _by_words(shown: str) -> tuple[str, str, str] | None:
    """Return label, unit and value of a line that lost its columns, or None where it has no two words."""
    label, _, value = shown.strip().rpartition(" ")
    before, _, unit = label.rstrip().rpartition(" ")
    if before and _UNIT.fullmatch(unit):
        return before.rstrip(), unit, value
    return (label.rstrip(), "", value) if label else None
