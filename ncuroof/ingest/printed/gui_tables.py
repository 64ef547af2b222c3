"""Extract the records of tables that Nsight Compute's user interface saved or copied as CSV: its Raw page and its summary.

They have the same cells as the raw page that ncu prints, under other names, with the unit in the name: `Block Size [block]`,
`gpu__time_duration.sum [us]`. The Raw page may be transposed, with a row per counter and a column per launch; a shape that lost its
quotes then takes three cells.

Source: exports of the Raw page and of the summary in published logs; `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice

from ncuroof.ingest.printed.records import Header, cells_of
from ncuroof.resources import profile_file

_SEPARATORS = ",;\t"
_NAMES = ("Demangled Name", "Kernel Name", "Function Name")
"""Columns with a kernel's name, the best first."""

_WITH_UNIT = re.compile(r"(.*\S)\s*\[([^\[\]]*)\]")
_PROCESS = re.compile(r"\[?(\d+)\]?\s*(.*)")
_DEVICE = re.compile(r"(?:(\d+)\s*-\s*)?(.*)")
_COUNTER = re.compile(r"\w+__\w[\w.]*")
_SHAPES = ("Grid Size", "Block Size")
_EXTENTS = 3
_IDENTITY = ("ID", "Process ID", "Process Name", "Kernel Name", *_SHAPES, "Context", "Stream", "Device", "CC")
_DEVICE_NAME = "device__attribute_display_name"
_MOST_LINES_BEFORE = 20
"""Lines without a table before one: a title, or lines of another program."""


class GuiRecords:
    """Reads the records of a file.

    Attributes:
        n_lost: number of rows so far with too few or too many cells.
        n_tables: number of tables so far: 0 or 1.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.n_lost = self.n_tables = 0
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[tuple[Header, list[str]]]:
        """Yield the units of the table and a row per launch, with the header that ncu would have printed."""
        for line in islice(self._lines, _MOST_LINES_BEFORE):
            if not any(name in line for name in (*_NAMES, "__")):
                continue
            separator = _separator(line)
            if separator is None:
                continue
            cells = cells_of(line, separator)
            if _name_column(cells) is not None and _n_counters(cells):
                yield from self._upright(cells, separator)
                return
            rest = chain([line], self._lines)
            rows = [row for each in rest if (row := cells_of(each, separator)) and row[0].strip()]
            if (
                len(rows) > 1
                and _name_column([row[0] for row in rows]) is not None
                and _n_counters([row[0] for row in rows])
            ):
                yield from self._transposed(rows, separator)
            return

    def _upright(self, names: Sequence[str], separator: str) -> Iterator[tuple[Header, list[str]]]:
        units = [_unit(name) for name in names]
        launches: list[list[str]] = []
        for line in self._lines:
            cells = cells_of(line, separator)
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                self.n_lost += 1
            elif not launches and not cells[_name_column(names) or 0].strip():
                units = [
                    own or cell.strip() for own, cell in zip(units, cells, strict=True)
                ]  # a row of units, as ncu prints it
            else:
                launches.append(cells)
        yield from self._rows(names, units, launches, separator)

    def _transposed(self, rows: Sequence[Sequence[str]], separator: str) -> Iterator[tuple[Header, list[str]]]:
        names = [row[0] for row in rows]
        n_launches = len(rows[_name_column(names) or 0]) - 1
        columns: list[list[str]] = []
        for row in rows:
            values = list(row[1:])
            if _label(row[0]) in _SHAPES and len(values) == _EXTENTS * n_launches:
                values = [", ".join(values[place : place + _EXTENTS]) for place in range(0, len(values), _EXTENTS)]
            self.n_lost += len(values) != n_launches
            columns.append(values if len(values) == n_launches else [""] * n_launches)
        launches = [list(launch) for launch in zip(*columns, strict=True)]
        yield from self._rows(names, [_unit(name) for name in names], launches, separator)

    def _rows(
        self, names: Sequence[str], units: Sequence[str], launches: Iterable[Sequence[str]], separator: str
    ) -> Iterator[tuple[Header, list[str]]]:
        self.n_tables = 1
        counters = _counters(names)
        header = Header((*_IDENTITY, *counters, _DEVICE_NAME), separator, is_quoted=True, number=1)
        yield header, [*("" for _ in _IDENTITY), *(units[place] for place in counters.values()), ""]
        for number, cells in enumerate(launches):
            identity, device = _identity(dict(zip(map(_label, names), cells, strict=True)), number)
            yield header, [*identity, *(cells[place] for place in counters.values()), device]


def _separator(line: str) -> str | None:
    found = max(_SEPARATORS, key=line.count)
    return found if found in line else None


def _label(name: str) -> str:
    """Return the name of a column without its unit."""
    match = _WITH_UNIT.fullmatch(name.strip())
    return match[1] if match else name.strip()


def _unit(name: str) -> str:
    match = _WITH_UNIT.fullmatch(name.strip())
    return match[2].strip() if match else ""


def _name_column(names: Sequence[str]) -> int | None:
    labels = [_label(name) for name in names]
    return next((labels.index(name) for name in _NAMES if name in labels), None)


def _n_counters(names: Sequence[str]) -> int:
    return len(_counters(names))


def _counters(names: Sequence[str]) -> dict[str, int]:
    """Return the columns of counters by name; the first column if a counter has two."""
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        label = _label(name)
        counter = label if _COUNTER.fullmatch(label) else _counter_by_label().get(label)
        if counter is not None and counter != _DEVICE_NAME:
            found.setdefault(counter, place)
    return found


@cache
def _counter_by_label() -> Mapping[str, str]:
    """Return the counters that the summary shows, by its labels."""
    with profile_file("printed.toml") as raw:
        return dict(raw["gui_summary"])


def _identity(cells: Mapping[str, str], number: int) -> tuple[list[str], str]:
    """Return the cells of a launch in the columns `_IDENTITY`, and the name of its GPU."""
    process = _PROCESS.fullmatch(cells.get("Process", "").strip())
    device = _DEVICE.fullmatch((cells.get("Device Name") or cells.get("GPU") or cells.get(_DEVICE_NAME, "")).strip())
    own = {
        "ID": cells.get("ID", "").strip() or str(number),
        "Process ID": cells.get("Process ID") or (process[1] if process else ""),
        "Process Name": cells.get("Process Name") or (process[2] if process else ""),
        "Kernel Name": next((cells[name] for name in _NAMES if cells.get(name, "").strip()), ""),
        "Device": cells.get("Device") or ((device[1] or "") if device else ""),
        **{name: cells.get(name) or cells.get(name.replace(" ", ""), "") for name in _SHAPES},
    }
    return [own.get(name, cells.get(name, "")) for name in _IDENTITY], device[2] if device else ""
