"""Extracts the records of CSV tables that ncu printed from a file that may also contain other programs' output.

ncu's own log lines (`==PROF==`), output of the profiled program, and repeated headers may come before, between and after the rows,
and other programs may have written around each line. A row is recognised by its beginning, the number of a launch, and by its
number of cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEADER = re.compile(
    r'\ufeff?"?(?:ID"?([,;\t])"?Process ID"?\1|Process ID"?([,;\t])"?Process Name"?\2|Domain"?([,;\t])"?Range:)'
)
"""Headers of tables of launches, of summaries per kernel or GPU, and of summaries per NVTX range."""
_QUOTED_ROW = re.compile(r'"\d*(?:"|$)')
_QUOTED_ROW_OF_RANGE = re.compile('"')
_PLAIN_ROW = {separator: re.compile(rf"\d*{separator}\d*{separator}") for separator in ",;\t"}
_OF_NCU = re.compile(r"==[A-Z]+==")
_OTHER_HEADER = re.compile(r'"[A-Za-z][^"]*"(?:[,;\t]"[^"]*")+\s*$')
"""Header of a different table that a section prints with `--print-details all`: NUMA affinity, NVLink."""

_MOST_LINES = 1000
"""Lines of one row; the longest text of a rule has a few."""

SECTION_NAME, METRIC_NAME, METRIC_UNIT, METRIC_VALUE = "Section Name", "Metric Name", "Metric Unit", "Metric Value"
INVOCATIONS, LEAST, MOST = "Invocations", "Minimum", "Maximum"
"""Columns of a summary (`--print-summary`): the number of launches of a row, and their least and greatest value."""

_AVERAGE = {"Average": METRIC_VALUE}
"""Name of the column of values in a summary."""

RULE_COLUMNS = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")
"""Columns of tables with a row per counter or rule (details page)."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a table.

    Attributes:
        names: names of the columns.
        separator: the character between cells.
        is_quoted: whether every cell is in quotes, as ncu writes them; spreadsheets omit the quotes.
        number: number of the table in its file, from 1.
    """

    names: tuple[str, ...]
    separator: str
    is_quoted: bool
    number: int

    @property
    def is_long(self) -> bool:
        """Whether the table has a row per counter (details page), not a row per launch (raw page)."""
        return METRIC_NAME in self.names and METRIC_VALUE in self.names

    def begins(self, line: str) -> bool:
        """Return whether a line begins a row of the table."""
        quoted = _QUOTED_ROW_OF_RANGE if self.names[0] == "Domain" else _QUOTED_ROW
        row = quoted if self.is_quoted else _PLAIN_ROW[self.separator]
        return row.match(line) is not None

    def holds(self, cells: list[str]) -> bool:
        """Return whether a record is a row of the table; in the long form, trailing cells of rules may be missing."""
        least = len(self.names)
        if self.is_long:
            least = 1 + max(self.names.index(name) for name in (METRIC_NAME, METRIC_VALUE))
        if INVOCATIONS in self.names and not self._is_of_summary(cells):
            return False
        return least <= len(cells) <= len(self.names)

    def _is_of_summary(self, cells: list[str]) -> bool:
        """Return whether cells are below their names: ncu 2024.1 mixes up those of the raw page's summary per GPU."""
        by_name = dict(zip(self.names, cells, strict=False))
        is_shape = by_name.get("Grid Size", "").startswith(("(", "n/a"))
        return by_name.get(INVOCATIONS, "").isdecimal() and is_shape


class PrintedRecords:
    """Reads the records of a file.

    Attributes:
        n_lost: number of rows so far with too few or too many cells.
        n_tables: number of tables so far.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.n_lost = 0
        self.n_tables = 0
        self._lines = lines
        self._header: Header | None = None
        self._n_cells_of_other = 0
        """Cells per row of a different table that has begun (see `_OTHER_HEADER`); 0 if none has."""

    def __iter__(self) -> Iterator[tuple[Header, list[str]]]:
        """Yield each row, including rows of units, with the header of its table."""
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
                    self._n_cells_of_other = len(cells_of(line, self._header.separator))
                continue
            pending.append(line)  # the first line of a row, or the continuation of a text with line breaks
            is_open ^= line.count('"') % 2 == 1
            if not is_open or len(pending) > _MOST_LINES:
                yield from self._row(pending)
        yield from self._row(pending)

    def _begun(self, line: str, found: re.Match[str]) -> Header:
        separator = found[1] or found[2] or found[3]
        names = tuple(
            _AVERAGE.get(name.strip(), name.strip()) for name in cells_of(line.removeprefix("\ufeff"), separator)
        )
        self.n_tables += 1
        return Header(names, separator, '"' in found[0], self.n_tables)

    def _row(self, pending: list[str]) -> Iterator[tuple[Header, list[str]]]:
        """Yield the collected lines as a row if they form one, and clear them."""
        if pending and self._header is not None:
            cells = cells_of("".join(pending), self._header.separator)
            if self._header.holds(cells):
                self._n_cells_of_other = 0
                yield self._header, cells
            else:
                self.n_lost += len(cells) != self._n_cells_of_other
        pending.clear()


def cells_of(record: str, separator: str) -> list[str]:
    """Return the cells of a CSV record; empty if it is not CSV."""
    try:
        return next(csv.reader([record], delimiter=separator), [])
    except csv.Error:  # a cell exceeds the csv module's size limit
        return []
