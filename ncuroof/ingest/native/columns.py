"""Collects the counters of all results into columns; where the wanted counters are is determined once per layout.

The results of a report store nearly the same counters in the same order. The layout of a result is the sequence of its counters'
identifiers; the positions of the wanted counters are cached by layout. Only wanted values are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import polars as pl

from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.native.repeats import Imprint, Repeats
from ncuroof.ingest.native.values import Decoder, Place, Value, decode, name_id
from ncuroof.ingest.raw_report import DeclinedError

_SHORT_PREFIX_BYTES, _LONG_PREFIX_BYTES = 3, 4
_N_SHORT_NAMES, _N_LONG_NAMES = 1 << 14, 1 << 21
"""Identifiers below these take up to two and three bytes as varints, so that tag and identifier fit into the prefix bytes above."""


ROWS_PER_CHUNK = 2048
"""Results whose values are held as Python objects before they become a table, which needs a quarter of the memory."""

_NUMBER, _TEXT = pl.Float64(), pl.String()
_ROWS = "\0"
"""Name of a placeholder column; no counter has it, because names end at a zero byte."""

_MAX_LAYOUTS = 256
"""Layouts kept at a time. Recorded reports have a few; if every result has its own, each takes as much memory as its values."""


@dataclass(slots=True)
class _Cells:
    """The values of all results that have the same layout and the same listed counters.

    Attributes:
        names: names of the wanted counters.
        decoder: decodes their values.
        listings: places of the text metrics that list further wanted counters.
        rows: row of each result within the current chunk.
        values: values of each result, in the order of `names`.
    """

    names: list[str]
    decoder: Decoder
    listings: list[Place]
    rows: list[int] = field(default_factory=list)
    values: list[list[Value]] = field(default_factory=list)


@dataclass(slots=True)
class _Layout:
    """Where a layout has its counters.

    Attributes:
        place_by_name: places by counter name, sorted by name.
        listings: places of the text metrics that list further counters.
    """

    place_by_name: dict[str, Place]
    listings: list[Place]


class CounterColumns:
    """Collects the wanted counters of results, one after another.

    Args:
        names: the report's string table; None for strings that cannot be names.
        choice: which counters to read.

    Raises:
        DeclinedError: the report has far more names than any recorded report.
    """

    def __init__(self, names: Sequence[str | None], choice: CounterChoice) -> None:
        if len(names) > _N_LONG_NAMES:
            raise DeclinedError(f"it has {len(names)} counter names")
        self._names = names
        self._choice = choice
        self._prefix_bytes = _SHORT_PREFIX_BYTES if len(names) <= _N_SHORT_NAMES else _LONG_PREFIX_BYTES
        self._prefix = itemgetter(slice(self._prefix_bytes))
        self._layouts: dict[object, _Layout] = {}
        self._chunks: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        self._first_row = 0
        self._columns: dict[str, list[Value]] = {}
        self._cells: dict[tuple[object, ...], _Cells] = {}
        self._repeats = Repeats()
        self._cells_by_imprint: dict[Imprint, _Cells] = {}

    def repeated(self, row: int, result: bytes, start: int) -> Imprint | None:
        """Return the imprint of an earlier launch that the result in row `row` repeats, or None.

        Args:
            row: row of the tables; higher than any before.
            result: the encoded result.
            start: offset at which its counters begin.
        """
        self._make_room(row)
        return self._repeats.find(result, start)

    def add_repeated(self, row: int, imprint: Imprint, result: bytes, start: int) -> None:
        """Read the wanted counters of a result that repeats an earlier launch.

        Args:
            row: row of the tables, as passed to `repeated`.
            imprint: the imprint that `repeated` returned.
            result: the encoded result.
            start: offset at which its counters begin.

        Raises:
            WireError, DecodeError: a counter is malformed; nothing of the result is kept.
        """
        cells = self._cells_by_imprint[imprint]
        values = imprint.values(result, start)
        cells.rows.append(row - self._first_row)
        cells.values.append(values)

    def add(self, row: int, metrics: Sequence[bytes], result: bytes, start: int | None) -> None:
        """Read the wanted counters of a result counter by counter, and make an imprint when its kind has recurred often enough.

        Args:
            row: row of the tables; higher than any before.
            metrics: the result's encoded counters.
            result: the encoded result.
            start: offset at which its counters begin, or None if not known.

        Raises:
            WireError: a counter is malformed; nothing of the result is kept.
            DecodeError: a counter cannot be decoded; nothing of the result is kept.
            ReportFormatError: the report lists more counters of a kind than any GPU has.
        """
        self._make_room(row)
        cells = self._cells_of(metrics)
        values = cells.decoder.values(metrics)
        cells.rows.append(row - self._first_row)
        cells.values.append(values)
        if start is not None and self._repeats.is_due(hash((id(cells), *map(len, metrics)))):
            self._remember(cells, metrics, result, start)

    def _remember(self, cells: _Cells, metrics: Sequence[bytes], result: bytes, start: int) -> None:
        if not cells.decoder.is_as_expected(metrics):
            return
        imprint = Imprint(metrics, cells.decoder, self._prefix_bytes, {position for position, _ in cells.listings})
        if imprint.is_of(result, start):
            self._cells_by_imprint[imprint] = cells
            self._repeats.keep(imprint)

    def _make_room(self, row: int) -> None:
        if row - self._first_row >= ROWS_PER_CHUNK:
            self._close(row)
        if len(self._layouts) > _MAX_LAYOUTS or len(self._cells) > _MAX_LAYOUTS:
            self._flush(row - self._first_row)

    def _cells_of(self, metrics: Sequence[bytes]) -> _Cells:
        """Return the cells that take the values of a result with these encoded counters, creating them if they are new."""
        prefixes = list(map(self._prefix, metrics))
        joined = b"".join(prefixes)
        key = joined if len(joined) == self._prefix_bytes * len(prefixes) else tuple(prefixes)
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(metrics)
        listed_in = decode(metrics, layout.listings)
        stored = (key, *listed_in)
        cells = self._cells.get(stored)
        if cells is None:
            wanted = self._choice.of(list(layout.place_by_name), listed_in)
            prefixes_by_index = {
                index: some for index, name in enumerate(wanted) if (some := self._choice.instances_of(name))
            }
            decoder = Decoder([layout.place_by_name[name] for name in wanted], metrics, prefixes_by_index)
            cells = _Cells([wanted[index] for index in decoder.order], decoder, layout.listings)
            self._cells[stored] = cells
        return cells

    def _layout(self, metrics: Sequence[bytes]) -> _Layout:
        places: dict[str, Place] = {}
        for position, metric in enumerate(metrics):
            identifier, n_bytes = name_id(metric, self._prefix_bytes)
            name = self._names[identifier] if identifier < len(self._names) else None
            if name is not None:
                places[name] = position, n_bytes  # if a name is stored twice, the last value wins
        listings = [places[name] for name in self._choice.listings if name in places]
        return _Layout(dict(sorted(places.items())), listings)

    def tables(self, n_rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the numbers (Float64) and the texts (String), one column per name, in the order of their first values."""
        self._close(n_rows)
        numbers, texts = ([chunk[part] for chunk in self._chunks] for part in (0, 1))
        return _joined(numbers), _joined(texts)

    def _close(self, end: int) -> None:
        """Turn the pending rows, those before `end`, into a chunk of the tables."""
        self._chunks.append(self._chunk(end - self._first_row))
        self._columns, self._first_row = {}, end
        self._forget()

    def _chunk(self, n_rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        parts = [_series(name, column) for name, column in self._by_name(n_rows).items()]
        numbers, texts = zip(*parts, strict=True) if parts else ((), ())
        return _frame(numbers, n_rows), _frame(texts, n_rows)

    def _by_name(self, n_rows: int) -> Mapping[str, Sequence[Value]]:
        """Return the values of each name in the pending rows, by a shortcut if all of these have the same layout."""
        if not self._columns and len(self._cells) == 1:
            (cells,) = self._cells.values()
            if len(cells.rows) == n_rows > 0:
                return dict(zip(cells.names, zip(*cells.values, strict=True), strict=True))
        self._flush(n_rows)
        for column in self._columns.values():
            column.extend([None] * (n_rows - len(column)))
        return self._columns

    def _flush(self, n_rows: int) -> None:
        """Move the collected values into columns of `n_rows` rows, and drop the layouts."""
        for cells in self._cells.values():
            for name, values in zip(cells.names, zip(*cells.values, strict=True), strict=False):
                column = self._columns.setdefault(name, [])
                column += [None] * (n_rows - len(column))
                for row, value in zip(cells.rows, values, strict=True):
                    column[row] = value
        self._forget()

    def _forget(self) -> None:
        """Drop the cached layouts, cells and imprints."""
        self._layouts, self._cells, self._cells_by_imprint, self._repeats = {}, {}, {}, Repeats()


def _values_of_kind(kind: type, column: Sequence[Value]) -> list[Value]:
    return [value if type(value) is kind else None for value in column]


def _series(name: str, column: Sequence[Value]) -> tuple[pl.Series, pl.Series | None]:
    """Return the numbers of a column, and its texts (None if it has none)."""
    try:
        return pl.Series(name, column, dtype=_NUMBER), None
    except TypeError:
        return pl.Series(name, _values_of_kind(float, column), dtype=_NUMBER), pl.Series(
            name, _values_of_kind(str, column), dtype=_TEXT
        )


def _frame(columns: Iterable[pl.Series | None], n_rows: int) -> pl.DataFrame:
    """Return the columns that have values, in the order of their first values.

    A placeholder column comes first, to keep the number of rows when there are no others.
    """
    rows = pl.Series(_ROWS, [None] * n_rows, dtype=pl.Null)
    with_values = [column for column in columns if column is not None and column.null_count() < n_rows]
    return pl.DataFrame([rows, *sorted(with_values, key=lambda column: (_first_row(column), column.name))])


def _first_row(column: pl.Series) -> int:
    """Return the row of a column's first non-null value."""
    return 0 if column[0] is not None else column.is_not_null().arg_true()[0]  # type: ignore[no-any-return]


def _joined(chunks: Sequence[pl.DataFrame]) -> pl.DataFrame:
    together = chunks[0] if len(chunks) == 1 else pl.concat(chunks, how="diagonal", rechunk=True)
    return pl.DataFrame([column for column in together.get_columns() if column.name != _ROWS])
