"""Reads counters per instruction, the source line of each instruction, and what warps wait for there.

Instructions are looked up by the address at which they were loaded. For kernels whose code has a line table, all instructions are
read; for others, only those at which warps wait for data. Both are limited, because a report of thousands of launches contains
millions of instructions.

Source: Nsight Compute Customization Guide, "Report File Format": ProfileMetricResult's values by address, RelocationData.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import polars as pl

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.line_tables import ImportedSources, LineTable, LineTables, SourceLocation
from ncuroof.ingest.code.modules import CodeModule, decoded, kernel_spans, module_of
from ncuroof.ingest.code.sass import INSTRUCTION_BYTES
from ncuroof.ingest.code.scoreboards import Scoreboards
from ncuroof.ingest.file_content import Content
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.native.reader import string_table
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.native.values import name_id
from ncuroof.ingest.raw_report import GREATEST_VALUE, RAW_INSTRUCTIONS, CounterSelection
from ncuroof.ingest.wire import WireError

_MOST_KERNELS = 100
"""Kernels read with lines, and as many without."""

_MOST_LOOKED_AT = 1_000
"""Launches examined; most share a decoded module, so that finding out whether it has lines costs little."""

_MOST_INSTRUCTIONS = 20_000
"""Instructions of all kernels together; with ten counters each they take a tenth of a second. The kernel that exceeds the limit is
still read completely; of those after it, only the instructions at which warps wait for data."""

_N_MODULES = 16
"""Modules whose decoded code is cached for further kernels."""

_MOST_OF_ONE_KERNEL = 100_000
"""Counters with more values per kernel are left out: no kernel is that long."""

_FUNCTIONS = "launch__function_pcs"
_SCOREBOARD, _BARRIER = "scoreboard", "stalled_barrier"
"""Parts of the names of counters that sample warps waiting for an earlier instruction."""

_LEAST_FRAC = 0.01
"""Least fraction of a kernel's samples of a stall that an instruction must have for its dependencies to be looked up."""

_VALUES = ("short", "long", "double", "single")

_ByAddress = Mapping[int, float]
_Values = Mapping[str, _ByAddress]
_Cells = tuple[object, ...]

_LINE_TABLE = b".debug_line\0"
_N_FUNCTIONS = 64
"""Functions whose lines and scoreboards are cached for further launches."""

_MOST_PASSES = 4
"""Limit on decoded code, in multiples of the image's size: normally each byte is decoded once; hostile functions may overlap."""

_MOST_STEPS = 500_000
"""Limit on the steps of all searches in a module, which take a third of a second. Recorded modules needed 13 000 at most."""


def read_instructions(
    content: Content,
    framing: Framing,
    modules: Mapping[int, CodeModule],
    selection: CounterSelection,
    rows: Iterable[int],
) -> pl.DataFrame:
    """Return RAW_INSTRUCTIONS with a column for each counter that any kernel has by instruction, null if it has no value.

    Args:
        content: the report's bytes.
        framing: its blocks, which contain the string table.
        modules: the code in the report, by reference.
        selection: which counters are wanted.
        rows: workload rows, the most important first.
    """
    table = _Table()
    names = _strings(framing) if any(module.code for module in modules.values()) else []
    wanted = _Wanted(names, selection)
    if not wanted.with_lines and not wanted.without:
        return table.frame()
    spans = list(kernel_spans(framing))
    code_of = lru_cache(_N_MODULES)(_code)
    n_kernels = Counter[bool]()
    for row in islice(rows, _MOST_LOOKED_AT):
        span = spans[row]
        module = None if span is None else module_of(content, span, modules)
        code = None if module is None else code_of(module)
        if span is None or code is None or n_kernels[code.has_lines] >= _MOST_KERNELS:
            continue
        n_kernels[code.has_lines] += 1
        is_lined = code.has_lines and bool(wanted.with_lines) and len(table) < _MOST_INSTRUCTIONS
        kernel = decoded("Kernel", content, span) if is_lined or wanted.without else None
        if kernel is not None:
            table.add(row, *_of_kernel(kernel, code, wanted, is_lined=is_lined))
    return table.frame()


class _Wanted:
    """The wanted counters by their index in the report's string table, for kernels with lines and for those without.

    Attributes:
        waits: names of the counters of warps that wait for data.
        with_lines: counters to read for kernels with lines.
        without: counters to read for kernels without.
    """

    def __init__(self, names: Sequence[str | None], selection: CounterSelection) -> None:
        self.waits = selection.waits
        self.without = self._numbers(names, selection.waits)
        self.with_lines = (
            self._numbers(names, selection.by_instruction) | self.without if selection.by_instruction else {}
        )

    @staticmethod
    def _numbers(names: Sequence[str | None], wanted: frozenset[str]) -> dict[int, str]:
        found = {number: name for number, name in enumerate(names) if name in wanted}
        return found | {number: name for number, name in enumerate(names) if found and name == _FUNCTIONS}


class _Table:
    """The instructions of one kernel after another; a counter that a kernel lacks is null."""

    def __init__(self) -> None:
        self._places: list[tuple[object, ...]] = []
        self._counters: dict[str, list[float | None]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, row: int, places: Iterable[_Cells], counters: Mapping[str, Sequence[float | None]]) -> None:
        """Add the instructions of a kernel.

        Args:
            row: the kernel's row among the workloads.
            places: the further cells of RAW_INSTRUCTIONS, per instruction.
            counters: values per instruction, by counter.
        """
        n_before = len(self)
        self._places += ((row, *place) for place in places)
        for name, values in counters.items():
            column = self._counters.setdefault(name, [])
            column += [None] * (n_before - len(column))
            column += values

    def frame(self) -> pl.DataFrame:
        """Return RAW_INSTRUCTIONS with a column per counter."""
        n_rows = len(self)
        return pl.DataFrame(self._places, schema=RAW_INSTRUCTIONS, orient="row").with_columns(
            pl.Series(name, values + [None] * (n_rows - len(values)), pl.Float64)
            for name, values in self._counters.items()
        )


def _code(module: CodeModule) -> DecodedModule | None:
    """Return the decoded code of a module; None if it has none or it is malformed."""
    with contextlib.suppress(WireError):
        if module.image is not None:
            return DecodedModule(module, module.image)
    return None


def _of_kernel(
    kernel: Any, code: DecodedModule, wanted: _Wanted, *, is_lined: bool
) -> tuple[list[_Cells], dict[str, list[float | None]]]:
    """Return the cells of a kernel's instructions, by address, and their values by counter.

    These are all instructions if any source line is known, else those at which warps wait for data.
    """
    values = dict(_values(kernel.metrics, wanted.with_lines if is_lined else wanted.without))
    functions = values.pop(_FUNCTIONS, {})
    by_function = code.address_by_function
    if not by_function and len(functions) == 1:  # JIT-compiled code: only this counter has the load address
        by_function = {kernel.mangled: int(*functions.values())}
    loaded = LoadedCode(code, by_function)
    places = _places(loaded, values) if is_lined else {}
    waiting = _where_most(values[counter] for counter in wanted.waits & values.keys())
    addresses = sorted(places or waiting)
    awaited = _looked_up(loaded.awaited_by, _SCOREBOARD, addresses, values) if places else {}
    barriers = _looked_up(loaded.barriers_before, _BARRIER, addresses, values) if places else {}
    addressed = _found(
        loaded.addressed_by, addresses, {addresses[each] for found in awaited.values() for each in found}
    )
    cells = [
        (
            number,
            awaited.get(number),
            barriers.get(number),
            addressed.get(number),
            (loaded.loads_in_flight(address) or None) if address in waiting else None,
            loaded.waits_for_atomic(address) if address in waiting else None,
            loaded.waits_for_copies(address) if address in waiting else None,
            loaded.opcode(address),
            *_place_cells(places.get(address), code.sources),
        )
        for number, address in enumerate(addresses)
    ]
    return cells, {name: list(map(by_address.get, addresses)) for name, by_address in values.items()}


def _places(loaded: LoadedCode, values: _Values) -> dict[int, SourceLocation | None]:
    """Return the source position of each instruction, by address; empty if none is known."""
    found = {address: loaded.place(address) for address in set().union(*values.values())}
    return found if any(found.values()) else {}


def _where_most(samples: Iterable[_ByAddress]) -> set[int]:
    """Return the addresses with at least one sample and at least `_LEAST_FRAC` of the kernel's samples of any one counter."""
    return {
        address
        for by_address in samples
        for least in [max(_LEAST_FRAC * sum(by_address.values()), 1)]
        for address, n_samples in by_address.items()
        if n_samples >= least
    }


def _looked_up(
    find: Callable[[int], list[int]], stall: str, addresses: Sequence[int], values: _Values
) -> dict[int, list[int]]:
    """Return the numbers of the instructions that are waited for, by number of the waiting instruction.

    Args:
        find: returns the addresses of what the instruction at an address waits for.
        stall: part of the names of the counters that sample the stall.
        addresses: the addresses of the instructions, in ascending order.
        values: values by address, by counter.
    """
    return _found(
        find, addresses, _where_most(by_address for counter, by_address in values.items() if stall in counter)
    )


def _found(find: Callable[[int], list[int]], addresses: Sequence[int], wanted: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the instructions that `find` returns the addresses of, by number of each `wanted` instruction."""
    numbers = {address: number for number, address in enumerate(addresses)}
    found = ((numbers[address], find(address)) for address in sorted(wanted))
    return {number: [numbers[each] for each in before if each in numbers] for number, before in found if before}


def _place_cells(place: SourceLocation | None, sources: ImportedSources) -> _Cells:
    """Return the cells of RAW_INSTRUCTIONS for a source position: file, line, text and callers."""
    if place is None:
        return None, None, None, None
    callers = "\n".join(f"{file}:{line}" for file, line in place.callers)
    return place.file, place.line, sources.line(place.file, place.line), callers or None


def _strings(framing: Framing) -> list[str | None]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        return string_table(framing)
    except DecodeError:
        return []


def _values(metrics: Iterable[bytes], counters: Mapping[int, str]) -> Iterator[tuple[str, _ByAddress]]:
    """Yield each of the `counters` with its values by address; malformed ones are left out."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    decode = messages()["Instances"].FromString
    for metric in metrics:
        with contextlib.suppress(WireError, DecodeError):
            name = counters.get(name_id(metric, len(metric))[0])
            elements: Sequence[Any] = decode(metric).elements if name is not None else ()
            if name is not None and 0 < len(elements) <= _MOST_OF_ONE_KERNEL:
                kind = next((kind for kind in _VALUES if elements[0].value.HasField(kind)), _VALUES[0])
                values = ((each.name.long, float(getattr(each.value, kind))) for each in elements)
                yield name, {address: value for address, value in values if 0 <= value <= GREATEST_VALUE}


class DecodedModule:
    """The decoded code of a module: source lines and scoreboards of its functions.

    Args:
        module: the module.
        image: its parsed code.

    Attributes:
        has_lines: whether the module has line tables.
        address_by_function: load address of each function, by mangled name; empty if the report does not say.
        sources: the source files imported into the report.
        lines: returns the line table of a function, given its mangled name and load address; empty if the report has none.
        scoreboards: returns the scoreboards of a function, given its mangled name.

    Raises:
        WireError: the header of a line table is truncated or malformed.
    """

    def __init__(self, module: CodeModule, image: Image) -> None:
        tables = LineTables(image)

        def lines(function: bytes, address: int) -> LineTable:
            with contextlib.suppress(WireError):  # a malformed table counts as none
                return tables.of(function, address)
            return LineTable(())

        n_left, steps = _MOST_PASSES * len(module.code), iter(range(_MOST_STEPS))

        def scoreboards(function: bytes) -> Scoreboards:
            nonlocal n_left
            code = image.code(function) if n_left > 0 else b""
            n_left -= len(code)
            return Scoreboards(code, image.compute_capability, steps)

        self.has_lines = _LINE_TABLE in module.code
        self.address_by_function: Mapping[bytes, int] = module.address_by_function
        self.sources = ImportedSources(module.files)
        self.lines = lru_cache(_N_FUNCTIONS)(lines)
        self.scoreboards = lru_cache(_N_FUNCTIONS)(scoreboards)


class LoadedCode:
    """The functions of a module at their load addresses.

    An address belongs to the function with the highest load address at or below it.
    """

    def __init__(self, code: DecodedModule, address_by_function: Mapping[bytes, int]) -> None:
        self._code = code
        self._functions = sorted(address_by_function, key=address_by_function.__getitem__)
        self._starts = [address_by_function[function] for function in self._functions]

    def place(self, address: int) -> SourceLocation | None:
        """Return the source position of the instruction at an address; None if not known."""
        function, start = self._function(address)
        return self._code.lines(function, start).place(address - start) if function else None

    def awaited_by(self, address: int) -> list[int]:
        """Return the addresses of the instructions that the one at `address` waits for, nearest first; empty if not known."""
        scoreboards, number, start = self._scoreboards(address)
        return [start + INSTRUCTION_BYTES * each for each in scoreboards.awaited_by(number)]

    def barriers_before(self, address: int) -> list[int]:
        """Return the addresses of the barriers at which warps sampled at `address` can be waiting; empty if not known."""
        scoreboards, number, start = self._scoreboards(address)
        return [start + INSTRUCTION_BYTES * each for each in scoreboards.barriers_before(number)]

    def addressed_by(self, address: int) -> list[int]:
        """Return the addresses of the loads from whose results the address of the load at `address` is computed, nearest first."""
        scoreboards, number, start = self._scoreboards(address)
        return [start + INSTRUCTION_BYTES * each for each in scoreboards.addressed_by(number)]

    def loads_in_flight(self, address: int) -> int:
        """Return how many loads are in flight at an address where a load is waited for; 0 if none is, or if not known."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.loads_in_flight(number)

    def waits_for_atomic(self, address: int) -> bool | None:
        """Return whether the instruction at an address waits for an atomic's result; None if it is not known what it waits for."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.waits_for_atomic(number)

    def waits_for_copies(self, address: int) -> bool | None:
        """Return whether the instruction at an address waits for asynchronous copies; None if it is not known what it waits for."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.waits_for_copies(number)

    def opcode(self, address: int) -> int | None:
        """Return the low nine bits of the instruction at an address; None if it is not known."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.opcode(number)

    def _scoreboards(self, address: int) -> tuple[Scoreboards, int, int]:
        """Return the scoreboards of the function at an address, the instruction's number in it (-1: none), and its load address."""
        function, start = self._function(address)
        number, rest = divmod(address - start, INSTRUCTION_BYTES)
        return self._code.scoreboards(function), -1 if rest or not function else number, start

    def _function(self, address: int) -> tuple[bytes, int]:
        """Return the mangled name and the load address of the function at an address; an empty name outside of all functions."""
        index = bisect_right(self._starts, address) - 1
        return (b"", 0) if index < 0 else (self._functions[index], self._starts[index])
