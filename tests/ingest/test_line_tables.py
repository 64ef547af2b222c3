from __future__ import annotations

import struct
from typing import Any

import pytest

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.line_tables import LineTables, SourceLocation
from ncuroof.ingest.wire import WireError
from tests.support.elf_image import elf_with
from tests.support.lined import COMPILED, SCALE

FUNCTION = SCALE.encode()

# DWARF 2, 6.2.4: bytes per instruction, whether rows begin a statement, line base -5, range 14, ten opcodes; a folder, two files.
TABLES = b"/home/someone\0\0" + b"a.cu\0\1\0\0" + b"b.h\0\1\0\0" + b"\0"
LENGTHS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
SET_ADDRESS, END = b"\0\x09\x02" + bytes(8), b"\0\1\1"


def section(program: bytes, *, version: int = 2, line_range: int = 14, tables: bytes = TABLES) -> bytes:
    head = bytes([16]) + (b"\1" if version == 4 else b"") + bytes([1, 0xFB, line_range, 10]) + LENGTHS + tables
    body = struct.pack("<HI", version, len(head)) + head + program
    return struct.pack("<I", len(body)) + body


def tables_of(program: bytes) -> LineTables:
    return LineTables(Image(image(program)))


def image(program: bytes, *, address: int = 0, **of_section: Any) -> bytes:
    """Return an image with a function whose line table the loader places: a symbol, and a relocation of the first SET_ADDRESS."""
    table = section(program, **of_section)
    operand = table.index(program) + program.index(SET_ADDRESS) + 3
    symbol = struct.pack("<IBBHQQ", 0, 2, 0, 4, address, 64)  # in section 4, counted from none
    return elf_with(
        {
            ".debug_line": table,
            ".rel.debug_line": struct.pack("<QQ", operand, 1 << 32),
            ".symtab": bytes(24) + symbol,
            ".text._Z5scalePfi": bytes(256),
        }
    )


def lines(code: bytes, address: int = 0x7F0000) -> list[str]:
    table = LineTables(Image(code)).of(FUNCTION, address)
    return [f"{place.file}:{place.line}" if (place := table.place(at)) else "-" for at in range(0, 0x80, 16)]


def test_each_opcode_moves_address_and_line() -> None:
    program = (
        SET_ADDRESS
        + b"\3\7\1"  # line 8, a row at 0
        + bytes([10 + 14 + 5 + 3])  # special: one instruction and three lines on: 11 at 0x10
        + b"\4\2\2\2\1"  # b.h, two instructions on: 11 at 0x30
        + b"\5\7\6\7"  # column, is_stmt, basic block: nothing of these
        + b"\3\x7a\1"  # six lines back at the same address: 5, which is what counts there
        + b"\x09\x10\0\4\1\3\1\1"  # fixed advance of 16 bytes, a.cu: 6 at 0x40
        + b"\x08\3\2\1"  # as far as opcode 255 goes, 17 instructions: 8 at 0x150
        + END
    )
    places = tables_of(program).of(FUNCTION, 0)
    found = {at: places.place(at) for at in (0, 8, 0x10, 0x20, 0x30, 0x40, 0x140, 0x150)}
    assert found == {
        0: SourceLocation("a.cu", 8),
        8: SourceLocation("a.cu", 8),
        0x10: SourceLocation("a.cu", 11),
        0x20: SourceLocation("a.cu", 11),
        0x30: SourceLocation("b.h", 5),
        0x40: SourceLocation("a.cu", 6),
        0x140: SourceLocation("a.cu", 6),
        0x150: None,  # the end of the function
    }


def test_an_inlined_line_names_the_calls_from_the_innermost_out() -> None:
    program = (
        SET_ADDRESS
        + b"\3\x09\1"  # row 1: a.cu:10 at 0
        + b"\4\2\0\3\x90\1\0\3\x7c\2\1\1"  # row 2: b.h:6 at 0x10, inlined at row 1
        + b"\0\3\x90\2\5\3\x7d\2\1\1"  # row 3: b.h:3 at 0x20, inlined at row 2
        + b"\0\3\x90\x63\0\2\1\1"  # row 4: inlined at row 99, which there is not
        + b"\2\1"
        + END
    )
    table = tables_of(program).of(FUNCTION, 0)
    assert [table.place(at) for at in (0, 0x10, 0x20, 0x30)] == [
        SourceLocation("a.cu", 10),
        SourceLocation("b.h", 6, (("a.cu", 10),)),
        SourceLocation("b.h", 3, (("b.h", 6), ("a.cu", 10))),
        SourceLocation("b.h", 3),
    ]


def test_a_line_that_no_file_has_is_not_known() -> None:
    program = SET_ADDRESS + b"\3" + b"\xff" * 8 + b"\x3f" + b"\1\2\1" + END  # line 2^62
    assert lines(image(program))[0] == "-"


def test_calls_in_a_circle_end() -> None:
    program = SET_ADDRESS + b"\0\3\x90\1\0\1\2\1" + END
    place = tables_of(program).of(FUNCTION, 0).place(0)
    assert place == SourceLocation("a.cu", 1, (("a.cu", 1),) * 31)


def test_files_of_julias_own_packages_are_named_with_them() -> None:
    # folders and files as in a report of CUDA.jl: 0 is the folder where the compiler ran, 9 one that there is not
    folders = (b"/home/me/.julia/packages/CUDA/DfvRa/src/device/intrinsics", b".", b"/home/me/kernels.jl/src")
    files = ((b"warp_shuffle.jl", 1), (b"int.jl", 2), (b"bb.jl", 3), (b"bool.jl", 0), (b"a.cu", 2), (b"odd.jl", 9))
    tables = b"".join(folder + b"\0" for folder in folders) + b"\0"
    tables += b"".join(name + bytes([0, folder, 0, 0]) for name, folder in files) + b"\0"
    rows = b"".join(
        bytes([4, number, 2, 1, 1]) for number in range(1, len(files) + 1)
    )  # a row, 16 bytes on, of each file
    code = image(SET_ADDRESS + rows + b"\2\1" + END, tables=tables)
    table = LineTables(Image(code)).of(FUNCTION, 0)
    places = [table.place(16 * number) for number in range(1, len(files) + 1)]
    assert [place and place.file for place in places] == [
        "CUDA/warp_shuffle.jl",
        "Base/int.jl",
        "bb.jl",
        "Base/bool.jl",
        "a.cu",
        "odd.jl",
    ]


def test_lines_of_compiled_code() -> None:
    # by `readelf --debug-dump=decodedline`, and the calls by reading inlined.cu
    tables = LineTables(Image(COMPILED))
    scale, divide = tables.of(b"_Z5scalePfi", 0), tables.of(b"_Z6dividePfi", 0)
    found = {at: scale.place(at) for at in (0, 0x10, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xE0, 0x170, 0x180)}
    inner, call = ("inlined.h", 8), ("inlined.cu", 4)
    assert found == {
        0: SourceLocation("inlined.cu", 3),
        0x10: SourceLocation("inlined.cu", 4),
        0x60: SourceLocation("inlined.cu", 4),
        0x70: SourceLocation("inlined.h", 4, (inner, call)),
        0xA0: SourceLocation("inlined.h", 4, (inner, call)),
        0xB0: SourceLocation("inlined.h", 9, (call,)),
        0xC0: SourceLocation("inlined.cu", 4),
        0xE0: SourceLocation("inlined.cu", 5),
        0x170: SourceLocation("inlined.cu", 5),
        0x180: None,
    }
    assert [divide.place(at) for at in (0xC0, 0xD0, 0x870)] == [
        SourceLocation("inlined.cu", 13),
        SourceLocation("inlined.cu", 8),  # `slow` is called, not inlined, and lies in the same section
        SourceLocation("inlined.cu", 8),
    ]
    assert tables.of(b"_Z9somethingv", 0).place(0) is None


def test_an_image_that_was_loaded_has_the_addresses_of_the_process() -> None:
    loaded = b"\0\x09\x02" + struct.pack("<Q", 0x7F0000)
    program = loaded + b"\1\2\1" + END
    table = image(SET_ADDRESS + b"\1\2\1" + END, address=0x7F0000)
    assert lines(table.replace(SET_ADDRESS + b"\1\2\1" + END, program))[:2] == ["a.cu:1", "-"]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_versions_of_dwarf_that_are_read(version: int) -> None:
    assert lines(image(SET_ADDRESS + b"\1\2\1" + END, version=version))[0] == "a.cu:1"


def test_an_unsupported_version_has_no_lines() -> None:
    assert set(lines(image(SET_ADDRESS + b"\1\2\1" + END, version=5))) == {"-"}


@pytest.mark.parametrize("damage", range(0, len(COMPILED), 61))
def test_whatever_is_cut_or_flipped_is_malformed_or_gives_no_more_lines(damage: int) -> None:
    flipped = bytearray(COMPILED)
    flipped[damage] ^= 0xFF
    for code in (COMPILED[:damage], bytes(flipped)):
        try:
            table = LineTables(Image(code)).of(FUNCTION, 0)
        except WireError:
            continue
        assert {type(table.place(at)) for at in range(0, 0x200, 16)} <= {SourceLocation, type(None)}


@pytest.mark.parametrize(
    "program",
    [b"\3" + b"\xff" * 20 + END, bytes([200]) * 50_001, b"\1\0\x7f\x90\1", b"\1"],
    ids=["a number without end", "more rows than any kernel has", "cut in an opcode", "without an end"],
)
def test_hostile_programs_are_refused(program: bytes) -> None:
    tables = tables_of(SET_ADDRESS + program)
    with pytest.raises(WireError):
        tables.of(FUNCTION, 0x7F0000)


def test_functions_that_share_their_lines_do_not_keep_it_busy_for_ever() -> None:
    tables = tables_of(SET_ADDRESS + b"\1\2\1" * 1000 + END)
    for _ in range(5):
        tables.of(FUNCTION, 0x7F0000)
    with pytest.raises(WireError):
        tables.of(FUNCTION, 0x7F0000)


def test_an_address_that_does_not_begin_a_sequence_is_malformed() -> None:
    tables = LineTables(Image(image(SET_ADDRESS + b"\1\2\1" + END).replace(SET_ADDRESS, b"\0\x09\x03" + bytes(8))))
    with pytest.raises(WireError):
        tables.of(FUNCTION, 0x7F0000)


def test_a_line_range_of_nothing_divides_nothing() -> None:
    assert lines(image(SET_ADDRESS + bytes([200]) + END, line_range=0))[0] == "-"


def test_long_names_of_sections_are_distinguished() -> None:
    long = ".text." + "a" * 100
    code = elf_with({f"{long}1": b"1", f"{long}2": b"2"})
    found = Image(code).named(f"{long}2".encode())
    assert found is not None
    assert found.number == 2
    assert Image(code).named(long.encode()) is None
