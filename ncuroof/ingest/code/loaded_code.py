"""Machine code as it was loaded: where the instruction at an address comes from, and what it waits for."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.imported_sources import ImportedSources
from ncuroof.ingest.code.line_tables import LineTable, LineTables, Place
from ncuroof.ingest.code.modules import CodeModule
from ncuroof.ingest.code.scoreboards import INSTRUCTION_BYTES, Scoreboards
from ncuroof.ingest.wire import WireError

_LINE_TABLE = b".debug_line\0"
_N_FUNCTIONS = 64
"""Whose lines and scoreboards are kept for further launches of them."""

_MOST_PASSES = 4
"""Over all bytes of an image. Each is decoded once; functions of a hostile image share theirs."""

_MOST_STEPS = 500_000
"""Of all searches in a module: a third of a second. Those in recorded modules took 13 000 at most."""


class DecodedModule:
    """A module's code: its functions, and their lines where it has line tables.

    Attributes:
        has_lines: whether it has.
        address_by_function: where each function was loaded, by mangled name; nothing where the report does not say.
        sources: the files that were imported.

    Raises:
        WireError: the image or a line table's header is cut or malformed.
    """

    def __init__(self, module: CodeModule) -> None:
        image = Image(module.image)
        tables = LineTables(image)

        def lines(function: bytes, address: int) -> LineTable:
            with contextlib.suppress(WireError):  # a malformed table tells nothing
                return tables.of(function, address)
            return LineTable(())

        n_left, steps = _MOST_PASSES * len(module.image), iter(range(_MOST_STEPS))

        def scoreboards(function: bytes) -> Scoreboards:
            nonlocal n_left
            code = image.code(function) if n_left > 0 else b""
            n_left -= len(code)
            return Scoreboards(code, image.compute_capability, steps)

        self.has_lines = _LINE_TABLE in module.image
        self.address_by_function: Mapping[bytes, int] = module.address_by_function
        self.sources = ImportedSources(module.files)
        self.lines = lru_cache(_N_FUNCTIONS)(lines)
        self.scoreboards = lru_cache(_N_FUNCTIONS)(scoreboards)


class LoadedCode:
    """The functions of a module where they were loaded: an address lies in the one that begins last before it."""

    def __init__(self, code: DecodedModule, address_by_function: Mapping[bytes, int]) -> None:
        self._code = code
        self._functions = sorted(address_by_function, key=address_by_function.__getitem__)
        self._starts = [address_by_function[function] for function in self._functions]

    def place(self, address: int) -> Place | None:
        """Return where the instruction at an address comes from; None where it is not known."""
        function, start = self._function(address)
        return self._code.lines(function, start).place(address - start) if function else None

    def awaited_by(self, address: int) -> list[int]:
        """Return the addresses of the instructions that the one at an address waits for; none where it is not known."""
        scoreboards, number, start = self._scoreboards(address)
        return [start + INSTRUCTION_BYTES * each for each in scoreboards.awaited_by(number)]

    def barriers_before(self, address: int) -> list[int]:
        """Return the addresses of the barriers that warps found at an address can be waiting at; none where it is not known."""
        scoreboards, number, start = self._scoreboards(address)
        return [start + INSTRUCTION_BYTES * each for each in scoreboards.barriers_before(number)]

    def loads_in_flight(self, address: int) -> int:
        """Return how many loads are under way at an address where a load is waited for; 0 where it is not known."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.loads_in_flight(number)

    def waits_for_atomic(self, address: int) -> bool | None:
        """Return whether an atomic's result is waited for at an address; None where it is not known what is."""
        scoreboards, number, _ = self._scoreboards(address)
        return scoreboards.waits_for_atomic(number)

    def _scoreboards(self, address: int) -> tuple[Scoreboards, int, int]:
        """Return the scoreboards of the function at an address, the instruction's number (-1 for none), and where it was loaded."""
        function, start = self._function(address)
        number, rest = divmod(address - start, INSTRUCTION_BYTES)
        return self._code.scoreboards(function), -1 if rest or not function else number, start

    def _function(self, address: int) -> tuple[bytes, int]:
        index = bisect_right(self._starts, address) - 1
        return (b"", 0) if index < 0 else (self._functions[index], self._starts[index])
