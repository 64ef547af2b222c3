"""Looks up instructions by the address at which they were loaded: their source line, and what they wait for."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.imported_sources import ImportedSources
from ncuroof.ingest.code.line_tables import LineTable, LineTables, Place
from ncuroof.ingest.code.modules import CodeModule
from ncuroof.ingest.code.sass import INSTRUCTION_BYTES
from ncuroof.ingest.code.scoreboards import Scoreboards
from ncuroof.ingest.wire import WireError

_LINE_TABLE = b".debug_line\0"
_N_FUNCTIONS = 64
"""Functions whose lines and scoreboards are cached for further launches."""

_MOST_PASSES = 4
"""Limit on decoded code, in multiples of the image's size: normally each byte is decoded once; hostile functions may overlap."""

_MOST_STEPS = 500_000
"""Limit on the steps of all searches in a module, which take a third of a second. Recorded modules needed 13 000 at most."""


class DecodedModule:
    """The decoded code of a module: source lines and scoreboards of its functions.

    Args:
        module: the module.
        image: its parsed code.

    Attributes:
        has_lines: whether the module has line tables.
        address_by_function: load address of each function, by mangled name; empty if the report does not say.
        sources: the source files imported into the report.
        lines: returns the line table of a function, given its mangled name and load address; empty if there is none.
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

    def place(self, address: int) -> Place | None:
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
        """Return the mangled name (empty if there is none) and the load address of the function that contains an address."""
        index = bisect_right(self._starts, address) - 1
        return (b"", 0) if index < 0 else (self._functions[index], self._starts[index])
