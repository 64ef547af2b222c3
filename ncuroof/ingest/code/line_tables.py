"""Maps instructions to source lines: decodes the DWARF line table in a kernel's machine code.

nvcc writes one for -lineinfo and -G; Triton and Julia usually do by default. The files themselves are in a report that was recorded
with --import-source. Files are named without their folders, except that Julia's own packages precede the name: Julia inlines
nearly all of Base into a kernel, and its line tables name no callers (JuliaGPU/CUDA.jl, issue 1115), so that `+` in int.jl has much
of a kernel's samples. Files of Base have only the folder "." (issue 2460), those of an installed package have
packages/NAME/SLUG/src in theirs (Pkg's documentation, "Glossary": depot), those of one in development NAME/src.

Source: DWARF Debugging Information Format 2 and 4, 6.2 "Line Number Information". An extended opcode of ptxas, 0x90, gives the row
of the call at which the following rows were inlined, and the function. Nsight Compute Customization Guide, "Report File Format":
SourceData.SourceFiles.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.native.annotations import c_text
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.wire import WireError

_SECTION = b".debug_line"
_VERSIONS = range(2, 5)
_MOST_ROWS = 50_000
"""Limit for one sequence: a row may be encoded in one byte, but takes a hundred in memory."""

_MOST_PASSES = 4
"""Limit on decoding, in multiples of the section's size: normally each byte is decoded once; hostile functions may share rows."""

_LAST_LINE = 10_000_000
_MOST_FRAMES = 32
"""Limit on the depth of inlined calls."""

_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL = 1, 2, 0x90
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_SET_FIRST_ADDRESS = bytes([0, 9, _SET_ADDRESS])

_SUFFIX = ".jl"
_BASE, _FOLDERS_OF_BASE = "Base", ("", ".")
_NAMES = "(CUDA|CUDACore|CUDAnative|GPUArrays|GPUCompiler|KernelAbstractions|LLVM)"
"""Packages of JuliaGPU whose functions kernels call. Nobody changes them to make a kernel faster."""

_PACKAGE = re.compile(
    rf"[/\\](?:packages[/\\]{_NAMES}[/\\][0-9A-Za-z]{{4,5}}[/\\]src|{_NAMES}(?:\.jl)?[/\\]src[/\\](?:device|host|interop))(?:[/\\]|$)"
)

_MOST_CHARACTERS = 200


class SourceLocation(NamedTuple):
    """The source position of an instruction.

    Attributes:
        file: name of the file without its folder; for Julia's own packages, with the package.
        line: line number, from 1.
        callers: file and line of the calls through which the line was inlined, innermost first; empty if it was not inlined.
    """

    file: str
    line: int
    callers: tuple[tuple[str, int], ...] = ()


class _Row(NamedTuple):
    """A row of a line table; `call` is the number of the row of the inlined call, from 1, or 0 for none."""

    address: int
    file: int
    line: int
    call: int


@dataclass(slots=True)
class _Sequence:
    """Rows by ascending address, starting at 0, and the state-machine registers from which the next row is made."""

    files: Mapping[int, str]
    rows: list[_Row] = field(default_factory=list)
    start: int | None = None
    address: int = 0
    file: int = 1
    line: int = 1
    call: int = 0

    def add_row(self) -> None:
        self.rows.append(_Row(self.address, self.file, self.line, self.call))

    def advance(self, n_bytes: int, n_lines: int = 0) -> None:
        self.address += n_bytes
        self.line += n_lines

    def set_address(self, address: int) -> None:
        self.start = address if self.start is None else self.start
        self.address = address - self.start


class LineTable:
    """The source lines of one function, by offset of the instruction in it."""

    def __init__(self, sequences: Iterable[tuple[int, _Sequence]]) -> None:
        self._parts = [(start, [row.address for row in part.rows], part) for start, part in sequences]

    def place(self, offset: int) -> SourceLocation | None:
        """Return the source position of the instruction at an offset in bytes; None if the table does not say."""
        for start, addresses, sequence in self._parts:
            index = bisect_right(addresses, offset - start) - 1
            if 0 <= index < len(addresses) - 1:  # the last row only marks the end of the sequence
                return _place(sequence, sequence.rows[index])
        return None


class LineTables:
    """The line tables of an image; those of a function are decoded on request.

    Raises:
        WireError: a header is truncated or malformed.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        section = image.content(_SECTION)
        self._n_left = _MOST_PASSES * len(section)
        self._units = list(_units(section))
        self._targets = list(image.relocations(_SECTION)) if self._units else []

    def of(self, function: bytes, address: int) -> LineTable:
        """Return the lines of a function; an empty table if there are none.

        Args:
            function: its mangled name.
            address: its load address, subtracted from the table's addresses if the image was copied after loading.

        Raises:
            WireError: the table is truncated or malformed, or has more rows than any kernel.
        """
        section = self._image.function(function)
        number = None if section is None else section.number
        return LineTable(
            (start - address if start >= address else start, self._sequence(operand, unit))
            for operand, target, start in self._targets
            if target == number
            for unit in self._units
            if unit.holds(operand)
        )

    def _sequence(self, operand: int, unit: _Unit) -> _Sequence:
        if self._n_left <= 0:
            raise WireError("functions share their line tables")
        try:
            return unit.sequence(operand)
        finally:
            self._n_left -= unit.position - operand


def _place(sequence: _Sequence, row: _Row) -> SourceLocation | None:
    frames: list[tuple[str, int]] = []
    while row.file in sequence.files and 0 < row.line <= _LAST_LINE and len(frames) < _MOST_FRAMES:
        frames.append((sequence.files[row.file], row.line))
        if not 0 < row.call <= len(sequence.rows):
            break
        row = sequence.rows[row.call - 1]
    return SourceLocation(*frames[0], tuple(frames[1:])) if frames else None


def _units(section: bytes) -> Iterator[_Unit]:
    """Yield the units of a section, except those of unsupported DWARF versions.

    Raises:
        WireError: the section is truncated or malformed.
    """
    start = 0
    while start < len(section):
        end = start + 4 + int.from_bytes(section[start : start + 4], "little")
        if end > len(section):
            raise WireError("a line table is truncated")
        if int.from_bytes(section[start + 4 : start + 6], "little") in _VERSIONS:
            yield _Unit(section, start, end)
        start = end


class _Unit:
    """One unit of the section: its header, and the line-number program that produces the rows.

    Raises:
        WireError: the header is truncated or malformed.
    """

    def __init__(self, section: bytes, start: int, end: int) -> None:
        self._code, self._start, self._end = section, start, end
        version = section[start + 4]
        self._at = start + 10
        self._step = self._byte()
        self._at += 2 if version >= 4 else 1  # maximum_operations_per_instruction (DWARF 4), default_is_stmt
        self._line_base = (self._byte() ^ 0x80) - 0x80
        self._line_range = max(self._byte(), 1)
        self._opcode_base = self._byte()
        self._n_operands = [0, *(self._byte() for _ in range(1, self._opcode_base))]
        packages = [julia_package(""), *(julia_package(c_text(folder)) for folder in iter(self._text, b""))]
        self._files = dict(enumerate(self._file_names(packages), start=1))

    @property
    def position(self) -> int:
        """Current read position in the section."""
        return self._at

    def holds(self, operand: int) -> bool:
        """Return whether offset `operand` of the section is in the unit and can be the operand of a sequence's first opcode."""
        return self._start + len(_SET_FIRST_ADDRESS) <= operand < self._end

    def sequence(self, operand: int) -> _Sequence:
        """Return the rows of the sequence that begins with DW_LNE_set_address, whose operand is at offset `operand`.

        Raises:
            WireError: there are too many rows, or the program is truncated or begins with another opcode.
        """
        self._at = operand - len(_SET_FIRST_ADDRESS)
        if not self._code.startswith(_SET_FIRST_ADDRESS, self._at):
            raise WireError("a line table does not begin with an address")
        sequence = _Sequence(self._files)
        while len(sequence.rows) < _MOST_ROWS:
            opcode = self._byte()
            if opcode >= self._opcode_base:
                steps, lines = divmod(opcode - self._opcode_base, self._line_range)
                sequence.advance(steps * self._step, self._line_base + lines)
                sequence.add_row()
            elif opcode == 0:
                following = self._number() + self._at
                if self._extended(sequence, following):
                    return sequence
                self._at = following
            else:
                self._standard(sequence, opcode)
        raise WireError(f"a line table has more than {_MOST_ROWS} rows")

    def _extended(self, sequence: _Sequence, following: int) -> bool:
        """Execute an extended opcode; return whether it ends the sequence."""
        opcode = self._byte()
        if opcode == _END_SEQUENCE:
            sequence.add_row()
        elif opcode == _SET_ADDRESS:
            sequence.set_address(int.from_bytes(self._code[self._at : following], "little"))
        elif opcode == _INLINED_CALL:
            sequence.call = self._number()
        return opcode == _END_SEQUENCE

    def _standard(self, sequence: _Sequence, opcode: int) -> None:
        if opcode == _COPY:
            sequence.add_row()
        elif opcode == _ADVANCE_PC:
            sequence.advance(self._number() * self._step)
        elif opcode == _ADVANCE_LINE:
            sequence.advance(0, self._number(is_signed=True))
        elif opcode == _SET_FILE:
            sequence.file = self._number()
        elif opcode == _CONST_ADD_PC:
            sequence.advance((255 - self._opcode_base) // self._line_range * self._step)
        elif opcode == _FIXED_ADVANCE_PC:
            sequence.advance(self._byte() | self._byte() << 8)
        else:
            for _ in range(self._n_operands[opcode]):
                self._number()

    def _file_names(self, packages: Sequence[str]) -> Iterator[str]:
        """Yield the names of the files; `packages` has the package of each folder, of which number 0 is where the compiler ran."""
        while path := c_text(self._text()):
            folder = self._number()
            for _ in range(2):  # modification time, size
                self._number()
            package = packages[folder] if folder < len(packages) else ""
            yield source_name(path, package)

    def _byte(self) -> int:
        if self._at >= self._end:
            raise WireError("a line table is truncated")
        self._at += 1
        return self._code[self._at - 1]

    def _text(self) -> bytes:
        start = self._at
        self._at = self._code.find(b"\0", start, self._end) + 1
        if not self._at:
            raise WireError("a line table is truncated")
        return self._code[start : self._at - 1]

    def _number(self, *, is_signed: bool = False) -> int:
        """Return the LEB128 number at the read position.

        Raises:
            WireError: it has more than 64 bits.
        """
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value - (128 << shift) if is_signed and byte & 0x40 else value
        raise WireError("a line table is malformed")


def source_name(path: str, package: str = "") -> str:
    """Return the name of a file without its folder, on one line; with the package if it is one of Julia's own: "Base/int.jl".

    Args:
        path: a path of any operating system.
        package: `julia_package` of the folder that a path without folder is in.
    """
    start = max(path.rfind("/"), path.rfind("\\")) + 1
    name = path[start:].replace("\n", " ")
    package = julia_package(path[:start]) if start else package
    return f"{package}/{name}" if package and name.endswith(_SUFFIX) else name


def julia_package(folder: str) -> str:
    """Return the package of Julia that the .jl files in a folder belong to; empty if they belong to none of Julia's own."""
    if folder.rstrip("/\\") in _FOLDERS_OF_BASE:
        return _BASE
    found = _PACKAGE.search(folder)
    return found[1] or found[2] if found else ""


class ImportedSources:
    """The source lines of one module.

    Args:
        encoded: encoded SourceFiles messages; malformed ones are ignored.
    """

    def __init__(self, encoded: Iterable[bytes]) -> None:
        self._content_by_file: dict[str, bytes | None] = {}
        for file in _files(encoded):
            name = source_name(c_text(file.name))
            if self._content_by_file.setdefault(name, file.content) != file.content:
                self._content_by_file[name] = None  # two folders have different files of this name: ambiguous
        self._lines_by_file: dict[str, list[bytes]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return line `number` (from 1) of a file, stripped and truncated if long; None if not known or blank."""
        if file not in self._lines_by_file:
            self._lines_by_file[file] = (self._content_by_file.get(file) or b"").split(b"\n")
        lines = self._lines_by_file[file]
        text = c_text(lines[number - 1]).strip() if 0 < number <= len(lines) else ""
        return text[:_MOST_CHARACTERS] or None


def _files(encoded: Iterable[bytes]) -> Iterator[Any]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    for each in encoded:
        with contextlib.suppress(DecodeError):
            yield from messages()["SourceFiles"].FromString(each).files
