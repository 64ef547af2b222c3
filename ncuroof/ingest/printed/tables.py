"""Gathers printed rows into columns, from tables with a row per launch (`--page raw`) or a row per counter (`--page details`).

Besides counters, a row says of its launch: name, process, NVTX ranges, shape, stream and GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.printed.labels import PrintedLabels
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
from ncuroof.ingest.printed.unknown_counters import UNAVAILABLE

_ROWS_PER_CHUNK, _CELLS_PER_CHUNK = 1 << 10, 1 << 16
"""Rows and cells kept as Python strings before they become a table, which needs a fraction of the memory."""

CELLS = pl.Schema({"row": pl.UInt32(), "counter": pl.String(), "unit": pl.String(), "text": pl.String()})
"""One row per printed value: the launch, the counter, the unit as printed, and the value as printed."""

DURATION = "gpu__time_duration.sum"

PUSHED, STARTED = (
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)
IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", PUSHED, STARTED, "Kernel Name", "Kernel Time", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", INVOCATIONS,
)  # fmt: skip
"""Columns that are not counters. Old versions print the time and no shape; NVTX columns are printed if NVTX was recorded."""

_OF_A_LAUNCH = ("ID", "Process ID", "Kernel Name")
_OF_A_SUMMARY = (
    "Process ID",
    "Kernel Name",
    "Block Size",
    "Grid Size",
    "Device",
    "Domain",
    *(f"Range:{attributes.partition('Range:')[2]}" for attributes in (PUSHED, STARTED)),
)
"""Columns that identify a launch, and a row of a summary."""

_COUNTER_BY_COLUMN = {"Context": "launch__context_id", "Stream": "launch__stream_id", "Device": "launch__device_id"}
_EXTENTS = {"Block Size": "launch__block_dim", "Grid Size": "launch__grid_dim"}
_CAPABILITY = tuple(f"device__attribute_compute_capability_{part}" for part in ("major", "minor"))
_NO_DEVICE = "255"
"""Number that ncu prints if the report does not name the GPU."""

_TRIPLE = re.compile(r"\(?\s*(\d+),\s*(\d+),\s*(\d+)\s*\)?")
_BETWEEN_RANGES = re.compile(r'"\s+"')
_N_ATTRIBUTES = 6
"""Fields after a range's name: payload, colour and message, each with its type. The domain comes before the name."""

_MOST_DIGITS = 18

_AFTER_PARAMETERS = re.compile(r"\)(?:\s*const|\s*\[[^\]]*\])*\s*$")


@dataclass(frozen=True, slots=True)
class PrintedRule:
    """A message of one of NVIDIA's rules about a launch.

    Attributes:
        row: row of the launch.
        section: name of the section, as printed.
        cells: the cells of the rule, by column.
    """

    row: int
    section: str
    cells: Mapping[str, str]


@dataclass(slots=True)
class Gathered:
    """The rows of a file, gathered.

    Attributes:
        launches: the cells of each launch in the columns IDENTITY.
        wide: for each table with a row per launch: the rows of its launches, its chosen columns as text, and the units by column.
        long: CELLS of the tables with a row per counter.
        rules: the printed messages of NVIDIA's rules.
        sections: names of sections as printed, in order of first appearance.
        unknown_labels: labels for which no single counter is known.
        unavailable: labels for which ncu printed that there is no value.
    """

    launches: list[dict[str, str]] = field(default_factory=list)
    wide: list[tuple[list[int], pl.DataFrame, Mapping[str, str]]] = field(default_factory=list)
    long: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CELLS))
    rules: list[PrintedRule] = field(default_factory=list)
    sections: dict[str, None] = field(default_factory=dict)
    unknown_labels: dict[str, None] = field(default_factory=dict)
    unavailable: dict[str, None] = field(default_factory=dict)


class Gatherer:
    """Gathers printed rows.

    Args:
        choice: which counters to keep.
        labels: the counters behind the labels of the details page.
        where: the file's name, for messages.
    """

    def __init__(self, choice: CounterChoice, labels: PrintedLabels, where: str) -> None:
        self._choice = choice
        self._where = where
        self._labels = labels
        self._found = Gathered()
        self._tables: dict[int, _WideTable | _LongTable] = {}

    def gather(self, records: Iterable[tuple[Header, Sequence[str]]]) -> Gathered:
        """Return the gathered contents of the records.

        Raises:
            ReportFormatError: the file lists more counters of a kind than any GPU has, or gives no units.
        """
        for header, cells in records:
            table = self._tables.get(header.number)
            if table is None:
                table = self._tables[header.number] = (
                    _LongTable(header, self._found, self._choice, self._labels)
                    if header.is_long
                    else _WideTable(header, self._found, self._choice)
                )
            if not table.add(cells):
                raise ReportFormatError(
                    f"{self._where}: expected a table with the units of its counters, found one without",
                    hint="keep all of ncu's output: the line below the header (raw page), the column Metric Unit (details page)",
                )
        for table in self._tables.values():
            table.finish()
        return self._found


class _WideTable:
    """A table with a row per launch and a column per counter; the first row contains the units."""

    def __init__(self, header: Header, found: Gathered, choice: CounterChoice) -> None:
        self._found = found
        self._names = header.names
        place_by_name = {name: place for place, name in reversed([*enumerate(header.names)])}
        stored = [name for name in place_by_name if name not in IDENTITY]
        wanted = choice.of(stored, ())
        self._identity = {name: place_by_name[name] for name in IDENTITY if name in place_by_name}
        self._place_by_counter = {name: place_by_name[name] for name in wanted}
        self._units: dict[str, str] | None = None
        self._rows: list[int] = []
        self._pending: list[list[str]] = []
        self._chunks: list[pl.DataFrame] = []

    def add(self, cells: Sequence[str]) -> bool:
        """Add a row; return False for a launch without a row of units before it."""
        chosen = [cells[place] for place in self._place_by_counter.values()]
        identity = {name: cells[place].strip() for name, place in self._identity.items()}
        if not identity.get("ID"):
            self.finish()
            self._units = dict(zip(self._place_by_counter, chosen, strict=True))
            return True
        if self._units is None:
            return False
        if UNAVAILABLE in cells:
            names = zip(self._names, cells, strict=False)
            self._found.unavailable.update(dict.fromkeys(name for name, cell in names if cell.strip() == UNAVAILABLE))
        self._rows.append(len(self._found.launches))
        self._found.launches.append(identity)
        self._pending.append(chosen)
        if len(self._pending) >= _ROWS_PER_CHUNK:
            self._store()
        return True

    def _store(self) -> None:
        schema = dict.fromkeys(self._place_by_counter, pl.String())
        columns = zip(*self._pending, strict=True) if self._pending else [()] * len(schema)
        self._chunks.append(pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema))
        self._pending = []

    def finish(self) -> None:
        if self._pending and self._place_by_counter:
            self._store()
        if self._chunks:
            self._found.wide.append((self._rows, pl.concat(self._chunks), self._units or {}))
        self._rows, self._chunks = [], []


class _LongTable:
    """A table with a row per counter or rule of a launch."""

    def __init__(self, header: Header, found: Gathered, choice: CounterChoice, labels: PrintedLabels) -> None:
        self._found = found
        self._choice = choice
        self._labels = labels
        self._names = header.names
        self._row_by_launch: dict[tuple[str, ...], int] = {}
        self._wanted: dict[str, bool] = {}
        self._cells: list[tuple[int, str, str, str]] = []
        self._chunks: list[pl.DataFrame] = []

    def add(self, cells: Sequence[str]) -> bool:
        """Add a row; return False if the table has no column of units."""
        by_column = dict(zip(self._names, cells, strict=False))
        if METRIC_UNIT not in by_column:
            return False
        row = self._row(by_column)
        section, label = by_column.get(SECTION_NAME, ""), by_column[METRIC_NAME].strip()
        if section:
            self._found.sections[section] = None
        if by_column.get("Rule Name"):
            rule = {name: by_column.get(name, "") for name in RULE_COLUMNS}
            self._found.rules.append(PrintedRule(row, section, rule))
        if label:
            self._add_value(row, section, label, by_column)
        return True

    def _add_value(self, row: int, section: str, label: str, by_column: Mapping[str, str]) -> None:
        counter = self._labels.counter(self._labels.section_of(section, label), label)
        if by_column[METRIC_VALUE].strip() == UNAVAILABLE:
            self._found.unavailable[label] = None
        elif counter is None:
            self._found.unknown_labels[label] = None
        elif self._is_wanted(counter):
            self._cells.append((row, counter, by_column[METRIC_UNIT], by_column[METRIC_VALUE]))
            if counter == DURATION:  # of a summary, the shortest and the longest launch
                ends = ((f"{counter} {end}", by_column.get(end, "")) for end in (LEAST, MOST))
                self._cells += [(row, name, by_column[METRIC_UNIT], text) for name, text in ends if text]
            if len(self._cells) >= _CELLS_PER_CHUNK:
                self._store()

    def _row(self, by_column: Mapping[str, str]) -> int:
        """Return the row of the launch, identified by number, process and kernel: launch numbers repeat between processes.

        In a summary, which has no numbers, each kernel and launch shape of a GPU and NVTX range has a row.
        """
        identity = {name: by_column[name].strip() for name in IDENTITY if name in by_column}
        names = _OF_A_LAUNCH if "ID" in identity else _OF_A_SUMMARY
        key = tuple(by_column.get(name, "") for name in names)
        row = self._row_by_launch.get(key)
        if row is None:
            row = self._row_by_launch[key] = len(self._found.launches)
            self._found.launches.append(identity)
        return row

    def _is_wanted(self, counter: str) -> bool:
        if counter not in self._wanted:
            self._wanted[counter] = bool(self._choice.of([counter], ()))
        return self._wanted[counter]

    def _store(self) -> None:
        self._chunks.append(pl.DataFrame(self._cells, schema=CELLS, orient="row"))
        self._cells = []

    def finish(self) -> None:
        self._store()
        self._found.long = pl.concat([self._found.long, *self._chunks])


def launch_counters(cells: Mapping[str, str]) -> dict[str, float]:
    """Return the values in a row's identity columns that are counters in a report, by counter name."""
    found = {
        counter: float(cells[column])
        for column, counter in _COUNTER_BY_COLUMN.items()
        if is_number(cells.get(column, "")) and (column != "Device" or cells[column] != _NO_DEVICE)
    }
    for column, counter in _EXTENTS.items():
        triple = _TRIPLE.fullmatch(cells.get(column, ""))
        extents = triple.groups() if triple else ()
        if extents and all(is_number(extent) and int(extent) for extent in extents):  # zeros: nothing was recorded
            found |= {f"{counter}_{axis}": float(extent) for axis, extent in zip("xyz", extents, strict=True)}
    numbers = re.split(r"[.,]", cells.get("CC", ""))
    if len(numbers) == 2 and all(map(is_number, numbers)):
        found |= dict(zip(_CAPABILITY, map(float, numbers), strict=True))
    return found


def is_without_extent(cells: Mapping[str, str]) -> bool:
    """Return whether grid or block of a row's launch are printed as zeros, as for a launch whose collection failed."""
    shapes = (_TRIPLE.fullmatch(cells.get(column, "")) for column in _EXTENTS)
    return any(shape is not None and not any(extent.strip("0") for extent in shape.groups()) for shape in shapes)


def is_number(text: str) -> bool:
    """Return whether a text is a non-negative integer that is certain to fit into 64 bits."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def open_ranges(cells: Mapping[str, str]) -> list[str]:
    """Return the names of the NVTX ranges that were open at the launch: push/pop ranges outermost first, then start/end ranges."""
    return [name for column in (PUSHED, STARTED) for name in _names(cells.get(column, ""))]


def _names(printed: str) -> Iterable[str]:
    """Yield the names of ranges, each printed in quotes; a name may itself contain colons and quotes."""
    _, _, quoted = printed.partition('"')
    for described in _BETWEEN_RANGES.split(quoted.rpartition('"')[0]):
        name, *attributes = described.partition(":")[2].rsplit(":", _N_ATTRIBUTES)
        if len(attributes) == _N_ATTRIBUTES:
            yield name


def workload_kind(cells: Mapping[str, str]) -> str:
    """Return the kind of workload; only kernels have a shape.

    A command list is printed like a range or graph, but under its own name.
    """
    if cells.get("Block Size") != "n/a":
        return "kernel"
    name = cells.get("Kernel Name", "")
    return name if name in {"range", "graph"} else "cmdlist"


def function_name(printed: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters.

    The printed name may already be that name (--print-kernel-base function), or a mangled one, which is returned unchanged.
    """
    name = printed.strip()
    if _AFTER_PARAMETERS.search(name):
        name = _before(name[: name.rindex(")") + 1], "(", ")")
    if name.endswith(">"):
        name = _before(name, "<", ">")
    return _last_word(name) or printed


def _before(text: str, opening: str, closing: str) -> str:
    """Return the text before the bracket that matches the last closing one; the whole text if there is none."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] == closing and text[position - 1 : position] not in {"-", "="}:
            depth += 1
        elif text[position] == opening:
            depth -= 1
            if depth == 0:
                return text[:position].rstrip()
    return text


def _last_word(name: str) -> str:
    """Return the part after the last space or `::` that is outside all brackets."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        character = name[position]
        depth += (character in ")>]}") - (character in "(<[{")
        if depth == 0 and (character == " " or name[position : position + 2] == "::"):
            return name[position:].lstrip(": ")
    return name
