"""The native reader: decodes the results of a report from its bytes, without NVIDIA's module.

It returns what the module returns, and declines a report if that is not certain; the module is then used instead. Reports store
numbers without units, so the unit of a counter is derived from its name.

Source: Nsight Compute Customization Guide, "Report File Format". `profiles/units.toml`, which is checked against the units that
NVIDIA's module gives for recorded reports.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import polars as pl

from ncuroof.ingest import wire
from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.file_content import Content, Part, part
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.native.annotations import c_text, open_ranges, rule_rows, section_identifiers, text
from ncuroof.ingest.native.columns import CounterColumns
from ncuroof.ingest.native.repeats import counters_start
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.raw_report import (
    GREATEST_VALUE,
    LEAST_VALUE,
    RAW_RULES,
    RAW_WORKLOADS,
    CounterSelection,
    DeclinedError,
    ResultTables,
    is_measured,
    telling,
)
from ncuroof.resources import profile_file

_N_UNITS_SHOWN = 3

_PERCENT = re.compile(r".*\.pct(_of_peak_\w+)?")
_NAME = re.compile(
    r"(?P<counted>.+?)\.(?:sum|avg|min|max)(?:\.(?P<rate>per_cycle_\w+|peak_sustained|(?:.*\.)?per_second))?"
)
_MAX_NAME_LENGTH = 512
"""The longest counter name in a recorded report has 143 characters; longer ones come from damage and are not matched."""

_N_CACHED = 1 << 12
"""Counter names whose unit is cached: reports of one program store the same counters."""


@dataclass(slots=True)
class _Tables:
    """The tables under construction; every result appends to them."""

    counters: CounterColumns
    workloads: list[tuple[str, str, str | None, str, tuple[str, ...]]] = field(default_factory=list)
    rules: list[tuple[object, ...]] = field(default_factory=list)
    sections: dict[bytes, None] = field(default_factory=dict)


def read_native(
    content: Content,
    framing: Framing,
    selection: CounterSelection | None,
    report: str,
    on_bytes: Callable[[int], None],
) -> ResultTables:
    """Return the results of a report with the selected counters; malformed results are left out.

    Args:
        content: the report's bytes.
        framing: its intact blocks.
        selection: the counters to read; None for all of them.
        report: the file's name, for error messages.
        on_bytes: called repeatedly with the number of bytes read so far.

    Raises:
        ReportFormatError: the report lists more counters of a kind than any GPU has.
        DeclinedError: it has a counter whose unit is not known, a malformed string table, or too many counter names.
        ReportAccessError: the file was truncated while it was being read.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    schema = messages()
    try:
        names = string_table(framing)
    except DecodeError as error:
        raise DeclinedError(f"its string table is malformed: {error}") from error
    tables = _Tables(CounterColumns(names, CounterChoice(selection, report)))
    for kind, encoded in _results(content, framing, on_bytes):
        # A malformed result is dropped; the caller compares the number of results with the expected one.
        with contextlib.suppress(DecodeError, wire.WireError):
            _read_result(tables, kind, encoded, schema)
    return _result_tables(tables)


def string_table(framing: Framing) -> list[str | None]:
    """Return the string table, which continues from block to block.

    A string that cannot be a counter's name, because it is not UTF-8 or contains a zero byte, is None.

    Raises:
        DecodeError: the table is malformed.
    """
    decode = messages()["Header"].FromString
    names: list[str | None] = []
    for block in framing.blocks:
        for encoded in decode(block.header).string_table.strings:
            name = c_text(encoded)
            names.append(name if name.encode() == encoded else None)
    return names


def _results(content: Content, framing: Framing, on_bytes: Callable[[int], None]) -> Iterator[tuple[str, Part]]:
    """Yield the kind and the encoded message of each result in file order, and report progress after each block."""
    for block in framing.blocks:
        for kind, span in block.results:
            yield kind, part(content, *span)
        on_bytes(block.end_offset)


_MESSAGE_BY_KIND = {"kernel": "Kernel", "range": "Range", "cmdlist": "CommandList", "graph": "Graph"}


def _read_result(tables: _Tables, kind: str, encoded: Part, schema: Mapping[str, Any]) -> None:
    """Append a result to the tables; of a malformed result, nothing is appended.

    Raises:
        DecodeError, WireError: the result is malformed.
    """
    row = len(tables.workloads)
    content = bytes(encoded)
    decode = schema[_MESSAGE_BY_KIND[kind]].FromString
    start = counters_start(content) if kind == "kernel" else None
    imprint = tables.counters.repeated(row, content, start) if start is not None else None
    if start is not None and imprint is not None:
        result = decode(imprint.without_counters(content, start))
        if result.metrics:  # the result has further counters elsewhere
            imprint = None
    if imprint is None:
        result = decode(content)
    sections = list(section_identifiers(result.sections, schema))
    nvtx = open_ranges(result.nvtx, result.thread) if result.HasField("nvtx") else ()
    rules = list(rule_rows(row, result.rules)) if kind in {"kernel", "cmdlist"} else []
    if start is not None and imprint is not None:
        tables.counters.add_repeated(row, imprint, content, start)
    else:
        tables.counters.add(row, result.metrics[:], content, start)
    tables.workloads.append((*_workload_names(kind, result), kind, nvtx))
    tables.rules += rules
    tables.sections.update(dict.fromkeys(sections))


def _workload_names(kind: str, result: Any) -> tuple[str, str, str | None]:
    """Return the short, demangled and mangled name. Ranges and graphs have no name and get their kind; only kernels are mangled."""
    if kind == "kernel":
        name, demangled = result.name or result.mangled, result.demangled or result.mangled
        return c_text(name), c_text(demangled), c_text(result.mangled) or None
    name = c_text(result.name) if kind == "cmdlist" else kind
    return name, name, None


def _result_tables(tables: _Tables) -> ResultTables:
    n_rows = len(tables.workloads)
    numbers, texts = tables.counters.tables(n_rows)
    counters = _possible(numbers)
    collected = [name for name in numbers.columns if is_measured(name)]
    n_collected = _n_values(numbers, collected, n_rows)
    n_not_finite = pl.repeat(0, n_rows, dtype=pl.UInt32, eager=True)
    if counters is not numbers:
        n_possible = _n_values(counters, collected, n_rows)
        not_zero = counters.select(pl.when(pl.col(collected) != 0).then(pl.col(collected)))
        n_not_finite = n_collected - n_possible
        n_collected = telling(n_collected, n_not_finite, n_possible - _n_values(not_zero, collected, n_rows))
    names, demangled, mangled, kinds, ranges = list(zip(*tables.workloads, strict=True)) or [()] * 5
    columns = [names, demangled, mangled, kinds, _lists(ranges), n_collected, n_not_finite]
    workloads = dict(zip(RAW_WORKLOADS, columns, strict=True))
    return ResultTables(
        workloads=pl.DataFrame(workloads, schema=RAW_WORKLOADS),
        counters=counters,
        units=_units(numbers.columns),
        texts=texts,
        rules=pl.DataFrame(tables.rules, schema=RAW_RULES, orient="row"),
        sections=tuple(dict.fromkeys(map(text, tables.sections))),
    )


def _lists(rows: Sequence[tuple[str, ...]]) -> pl.Series:
    """Return the rows as a series of lists, building each distinct list once.

    Building a list takes polars 20 µs, and successive launches are usually within the same NVTX ranges.
    """
    distinct = list(dict.fromkeys(rows))
    index = {names: number for number, names in enumerate(distinct)}
    return pl.Series(distinct, dtype=pl.List(pl.String)).gather([index[names] for names in rows])


def _possible(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers with impossible values (NaN, infinite, implausible) as null; the same object if there are none."""
    if not numbers.width:
        return numbers
    every = pl.concat(numbers.get_columns())  # checking one long column is cheaper than checking hundreds
    is_possible = (every == 0) | every.abs().is_between(LEAST_VALUE, GREATEST_VALUE)
    if is_possible.all():
        return numbers
    possible = every.zip_with(is_possible.fill_null(value=False), pl.Series([None], dtype=pl.Float64))
    starts = range(0, len(possible), numbers.height)
    return pl.DataFrame(
        [possible.slice(start, numbers.height).alias(name) for start, name in zip(starts, numbers.columns, strict=True)]
    )


def _n_values(frame: pl.DataFrame, columns: list[str], n_rows: int) -> pl.Series:
    """Return for each row how many of the columns have a value."""
    with_gaps = [column.name for column in frame.select(columns).null_count() if column[0]]
    n_whole = len(columns) - len(with_gaps)
    if not with_gaps:
        return pl.repeat(n_whole, n_rows, dtype=pl.UInt32, eager=True)
    return frame.select((n_whole + pl.sum_horizontal(pl.col(with_gaps).is_not_null())).cast(pl.UInt32)).to_series()


def _units(counters: list[str]) -> dict[str, str]:
    """Return the unit of each counter.

    Raises:
        DeclinedError: the unit of a counter is not known.
    """
    unit_by_counter = {counter: unit_of(counter) for counter in counters}
    unknown = [counter for counter, unit in unit_by_counter.items() if unit is None]
    if unknown:
        more = f" and of {len(unknown) - _N_UNITS_SHOWN} more" if len(unknown) > _N_UNITS_SHOWN else ""
        raise DeclinedError(f"unknown unit of {', '.join(unknown[:_N_UNITS_SHOWN])}{more}")
    return {counter: unit for counter, unit in unit_by_counter.items() if unit is not None}


@dataclass(frozen=True, slots=True)
class UnitTable:
    """Patterns of counter names, tried in the order in which they are listed.

    Attributes:
        exactly: by unit, the pattern of the full names of counters with that unit.
        counted: by kind of thing counted, the pattern of the name's part before `.sum`, `.avg`, `.min` or `.max`.
        rates: by kind, then by rate ("sum", "per_cycle", "per_second"), the unit.
    """

    exactly: Mapping[str, re.Pattern[str]]
    counted: Mapping[str, re.Pattern[str]]
    rates: Mapping[str, Mapping[str, str]]

    def unit(self, counter: str) -> str | None:
        """Return a counter's unit, "" if it has none, or None if it is not known."""
        if len(counter) > _MAX_NAME_LENGTH:
            return None
        if _PERCENT.fullmatch(counter):
            return "%"
        unit = _first(self.exactly, counter)
        if unit is not None:
            return unit
        parts = _NAME.fullmatch(counter)
        kind = _first(self.counted, parts["counted"]) if parts else None
        return self.rates[kind].get(_rate(parts["rate"])) if parts and kind else None


@lru_cache(maxsize=_N_CACHED)
def unit_of(counter: str) -> str | None:
    """Return a counter's unit by the table that ships with ncuroof, "" if it has none, or None if it is not known.

    Raises:
        ProfileError: the installation is broken.
    """
    return load_units().unit(counter)


@cache
def load_units() -> UnitTable:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("units.toml") as raw:
        exactly, counted = ({key: _any_of(each) for key, each in raw[part].items()} for part in ("exactly", "counted"))
        return UnitTable(exactly, counted, raw["rates"])


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _first(patterns: Mapping[str, re.Pattern[str]], text: str) -> str | None:
    return next((key for key, pattern in patterns.items() if pattern.fullmatch(text)), None)


def _rate(suffix: str | None) -> str:
    """Return the key into a kind's units for a name suffix; `peak_sustained` is a value per cycle."""
    if not suffix:
        return "sum"
    return "per_second" if suffix.endswith("per_second") else "per_cycle"
