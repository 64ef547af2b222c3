"""Counters of all results as columns: which values a result holds is found out once for each distinct layout.

The results of a report store nearly the same counters in the same order. What a result stores is its layout, the identifiers of
its counters; where the wanted ones stand among them is looked up by it. Only wanted values are decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from ncuroof.ingest.contents import DeclinedError
from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.native_annotations import c_text
from ncuroof.ingest.native_schema import messages
from ncuroof.ingest.wire import WireError

Value = float | str | None

_NAME_TAG, _VALUE_TAG = b"\x08", 0x12
_LONGEST_SHORT_VALUE = 0x7F
_DOUBLE = b"\x12\x09\x19"
"""A value (field 2) of nine bytes that is a double (field 3, 64 bits)."""

_DOUBLE_BYTES = 8
_SHORT_PREFIX_BYTES, _LONG_PREFIX_BYTES = 3, 4
_N_SHORT_NAMES, _N_LONG_NAMES = 1 << 14, 1 << 21
"""Identifiers below these take up to two and three bytes: with the tag before them they are in the first bytes of a counter."""

_N_CACHED_VALUES = 1 << 14


@dataclass(slots=True)
class _Cells:
    """Where the wanted counters of a layout stand, and what the results with that layout hold there.

    Attributes:
        names: of the wanted counters.
        places: position in the result, and length of the name's field, of each.
        rows: of the results.
        values: of each result, in the order of `names`.
    """

    names: list[str]
    places: list[tuple[int, int]]
    rows: list[int] = field(default_factory=list)
    values: list[Sequence[Value]] = field(default_factory=list)


@dataclass(slots=True)
class _Layout:
    """Positions by name, each name once, sorted; and those of the metrics that list further counters."""

    place_by_name: dict[str, tuple[int, int]]
    listings: list[tuple[int, int]]


class CounterColumns:
    """Collects the wanted counters of results, one after another.

    Args:
        names: the report's string table; None for what can be no name.
        choice: which counters to read.

    Raises:
        DeclinedError: the report has more names than any recorded one by far.
    """

    def __init__(self, names: Sequence[str | None], choice: CounterChoice) -> None:
        if len(names) > _N_LONG_NAMES:
            raise DeclinedError(f"it has {len(names)} names of counters")
        self._names = names
        self._choice = choice
        self._prefix_bytes = _SHORT_PREFIX_BYTES if len(names) <= _N_SHORT_NAMES else _LONG_PREFIX_BYTES
        self._layouts: dict[object, _Layout] = {}
        self._cells: dict[tuple[object, ...], _Cells] = {}

    def add(self, row: int, metrics: Sequence[bytes]) -> None:
        """Read the wanted counters of the result in row `row`.

        Args:
            row: of the tables; higher than any before.
            metrics: the result's encoded counters.

        Raises:
            WireError: a counter is malformed; then nothing of the result is kept.
            DecodeError: likewise.
            ReportFormatError: the report lists more counters of a kind than any GPU has.
        """
        cells = self._cells_of(metrics)
        values = _values(metrics, cells.places)
        cells.rows.append(row)
        cells.values.append(values)

    def _cells_of(self, metrics: Sequence[bytes]) -> _Cells:
        n = self._prefix_bytes
        prefixes = [metric[:n] for metric in metrics]
        joined = b"".join(prefixes)
        key = joined if len(joined) == n * len(prefixes) else tuple(prefixes)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(metrics)
        listed_in = _values(metrics, layout.listings)
        stored = (key, *listed_in)
        cells = self._cells.get(stored)
        if cells is None:
            wanted = self._choice.of(list(layout.place_by_name), listed_in)
            cells = _Cells(wanted, [layout.place_by_name[name] for name in wanted])
            self._cells[stored] = cells
        return cells

    def _layout(self, metrics: Sequence[bytes]) -> _Layout:
        places: dict[str, tuple[int, int]] = {}
        for position, metric in enumerate(metrics):
            identifier, n_bytes = _name_id(metric, self._prefix_bytes)
            name = self._names[identifier] if identifier < len(self._names) else None
            if name is not None:
                places[name] = (
                    position,
                    n_bytes,
                )  # of a name that is stored twice the last value counts, as for the module
        listings = [places[name] for name in self._choice.listings if name in places]
        return _Layout(dict(sorted(places.items())), listings)

    def tables(self, n_rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the numbers (Float64) and the texts (String), a column per name in order of its first value."""
        numbers: list[tuple[int, pl.Series]] = []
        texts: list[tuple[int, pl.Series]] = []
        for name, column in self._by_name(n_rows).items():
            kinds = set(map(type, column))
            if float in kinds:
                numbers.append(_series(name, _only(float, column) if str in kinds else column, pl.Float64()))
            if str in kinds:
                texts.append(_series(name, _only(str, column) if float in kinds else column, pl.String()))
        return _frame(numbers, n_rows), _frame(texts, n_rows)

    def _by_name(self, n_rows: int) -> dict[str, Sequence[Value]]:
        """Return the cells of each name, and free what was collected."""
        by_name: dict[str, Sequence[Value]] = {}
        while self._cells:
            _, cells = self._cells.popitem()
            if not cells.rows:
                continue  # every result with this layout is malformed
            columns = zip(*cells.values, strict=True)
            if len(cells.rows) == n_rows:
                return dict(zip(cells.names, columns, strict=True))
            for name, column in zip(cells.names, columns, strict=True):
                whole = by_name.setdefault(name, [None] * n_rows)
                for row, value in zip(cells.rows, column, strict=True):
                    whole[row] = value  # type: ignore[index]
        return by_name


def _only(kind: type, column: Sequence[Value]) -> list[Value]:
    return [value if type(value) is kind else None for value in column]


def _series(name: str, column: Sequence[Value], dtype: pl.DataType) -> tuple[int, pl.Series]:
    """Return a column and the row of its first value."""
    series = pl.Series(name, column, dtype=dtype)
    return series.is_not_null().arg_max() or 0, series


def _frame(columns: list[tuple[int, pl.Series]], n_rows: int) -> pl.DataFrame:
    if not columns:
        return pl.DataFrame({"": [None] * n_rows}).select([])
    return pl.DataFrame([series for _, series in sorted(columns, key=lambda column: (column[0], column[1].name))])


def _name_id(metric: bytes, n_prefix: int) -> tuple[int, int]:
    """Return the identifier of a counter's name, and how many bytes it takes with its tag.

    Raises:
        WireError: the counter does not begin with it, or it is longer than that of any name.
    """
    identifier = 0
    if metric[:1] != _NAME_TAG:
        raise WireError("a counter does not begin with its name")
    for index, byte in enumerate(metric[1:n_prefix]):
        identifier |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return identifier, 2 + index
    raise WireError("the name of a counter is cut or too long")


def _values(metrics: Sequence[bytes], places: Iterable[tuple[int, int]]) -> list[Value]:
    values: list[Value] = []
    put = values.append
    for position, start in places:
        metric = metrics[position]
        if metric[start : start + 3] == _DOUBLE and len(metric) >= start + 3 + _DOUBLE_BYTES:
            put(_unpack_double(metric, start + 3)[0])
        else:
            put(_value(metric[start:]))
    return values


_unpack_double = struct.Struct("<d").unpack_from


def _value(encoded: bytes) -> Value:
    """Return the value of a counter, without its name: None where it has only instances."""
    if len(encoded) > 1 and encoded[0] == _VALUE_TAG and encoded[1] <= _LONGEST_SHORT_VALUE:
        end = 2 + encoded[1]
        if end <= len(encoded):
            return _decoded(encoded[2:end])
    metric = messages()["Metric"].FromString(encoded)
    return _decoded(metric.value) if metric.HasField("value") else None


@lru_cache(maxsize=_N_CACHED_VALUES)
def _decoded(encoded: bytes) -> Value:
    """Return an encoded value; integers become doubles. Attributes of the device are the same in every result."""
    value = messages()["Value"].FromString(encoded)
    for kind in ("long", "double", "single", "short"):
        if value.HasField(kind):
            return float(getattr(value, kind))
    return c_text(value.text) if value.HasField("text") else None
