"""The records of tables that ncu printed as CSV, out of a file in which other programs may have written, too.

Lines of ncu itself (`==PROF==`), what the profiled program printed, and repeated headers stand before, between and behind the rows.
A row is told by its beginning, the number of a launch, and by its number of cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ncuroof.errors import ReportFormatError

_HEADER = re.compile(r'\ufeff?"?ID"?([,;\t])"?Process ID"?\1')
_QUOTED_ROW = re.compile(r'"\d*(?:"|$)')
_PLAIN_ROW = {separator: re.compile(rf"\d*{separator}\d*{separator}") for separator in ",;\t"}
_OF_NCU = re.compile(r"==[A-Z]+==")
_OTHER_HEADER = re.compile(r'"[A-Za-z][^"]*"(?:[,;\t]"[^"]*")+\s*$')
"""Of a table that a section holds besides, with `--print-details all`: NUMA affinity, NVLink."""

_ENCODING_BY_MARK = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_LONGEST_LINE = 1 << 22
"""In characters; a row of every counter of a recorded full set has 30 000, one with all instance values a million."""

_MOST_LINES = 1000
"""Of one row; the longest text of a rule has a few."""

METRIC_NAME, METRIC_VALUE = "Metric Name", "Metric Value"


@dataclass(frozen=True, slots=True)
class Header:
    """The first record of a table.

    Attributes:
        names: of the columns.
        separator: between cells.
        is_quoted: every cell is in quotes, as ncu writes them; a spreadsheet leaves them out.
        number: of the table in its file.
    """

    names: tuple[str, ...]
    separator: str
    is_quoted: bool
    number: int

    @property
    def is_long(self) -> bool:
        """Whether there is a row per counter, and not a row per launch."""
        return METRIC_NAME in self.names and METRIC_VALUE in self.names

    def begins(self, line: str) -> bool:
        """Return whether a line begins a row of the table."""
        row = _QUOTED_ROW if self.is_quoted else _PLAIN_ROW[self.separator]
        return row.match(line) is not None

    def holds(self, cells: list[str]) -> bool:
        """Return whether a record is a row of the table; in the long form the cells of rules may be left out at its end."""
        least = len(self.names)
        if self.is_long:
            least = 1 + max(self.names.index(name) for name in (METRIC_NAME, METRIC_VALUE))
        return least <= len(cells) <= len(self.names)


class PrintedRecords:
    """Reads the records of a file.

    Attributes:
        n_lost: rows that are cut or hold too many cells, so far.
        n_tables: tables, so far.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.n_lost = 0
        self.n_tables = 0
        self._lines = lines
        self._header: Header | None = None
        self._n_cells_of_other = 0
        """In a row of another table that has begun; 0 where none has."""

    def __iter__(self) -> Iterator[tuple[Header, list[str]]]:
        """Yield each row with the header of its table; rows of units are rows."""
        pending: list[str] = []
        is_open = False
        for line in self._lines:
            if found := _HEADER.match(line):
                yield from self._row(pending)
                self._header = self._begun(line, found)
                continue
            if self._header is None or _OF_NCU.match(line):
                continue
            if self._header.begins(line):
                yield from self._row(pending)
                is_open = False
            elif not pending:
                if _OTHER_HEADER.match(line):
                    self._n_cells_of_other = len(_cells(line, self._header.separator))
                continue
            pending.append(line)  # a text with line breaks goes on
            is_open ^= line.count('"') % 2 == 1
            if not is_open or len(pending) > _MOST_LINES:
                yield from self._row(pending)
        yield from self._row(pending)

    def _begun(self, line: str, found: re.Match[str]) -> Header:
        names = tuple(name.strip() for name in _cells(line.removeprefix("\ufeff"), found[1]))
        self.n_tables += 1
        return Header(names, found[1], '"' in found[0], self.n_tables)

    def _row(self, pending: list[str]) -> Iterator[tuple[Header, list[str]]]:
        """Yield what was collected as a row, if it is one, and forget it."""
        if pending and self._header is not None:
            cells = _cells("".join(pending), self._header.separator)
            if self._header.holds(cells):
                self._n_cells_of_other = 0
                yield self._header, cells
            else:
                self.n_lost += len(cells) != self._n_cells_of_other
        pending.clear()


def _cells(record: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([record], delimiter=separator), [])
    except csv.Error:  # a cell longer than the module takes
        return []


def printed_lines(path: Path, where: str) -> Iterator[str]:
    """Yield the lines of a text file, in whatever encoding a shell has redirected them.

    Raises:
        ReportFormatError: a line is longer than any that ncu prints.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(3)
    encoding = next((name for mark, name in _ENCODING_BY_MARK.items() if start.startswith(mark)), "utf-8")
    with path.open(encoding=encoding, errors="replace") as text:
        while line := text.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE and not line.endswith("\n"):
                raise ReportFormatError(
                    f"{where}: expected a table printed by ncu, found a line of more than {_LONGEST_LINE} characters",
                    hint="pass a .ncu-rep file, or the output of ncu --import REPORT --page raw --csv",
                )
            yield line
