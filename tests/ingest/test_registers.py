"""Which loads an address depends on: by hand, and by what the compiler of this machine makes of a known source."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.line_tables import LineTables
from ncuroof.ingest.code.scoreboards import Scoreboards
from tests.support.machine_code import EXIT, P0, TRUE, branch, instruction

AMPERE = 80
SOURCE = Path(__file__).parents[1] / "support" / "line_tables" / "addressed.cu"
RZ = 255
IADD3, WIDE_PRODUCT, WIDE_PRODUCT_OF_CONSTANT, LOAD_SHARED = 0x210, 0x225, 0x625, 0x984


def on(opcode: int, result: int, first: int, second: int = RZ, third: int = RZ, *, predicate: int = TRUE) -> bytes:
    """Return an instruction with its registers: the result from bit 16, and operands from bits 24, 32 and 64."""
    word = int.from_bytes(instruction(opcode, predicate=predicate), "little")
    return (word | result << 16 | first << 24 | second << 32 | third << 64).to_bytes(16, "little")


def load(result: int, address: int, *, n_bytes: int = 4, predicate: int = TRUE) -> bytes:
    """Return an LDG from an address of 64 bits: bit 72, and the width from bit 73."""
    word = int.from_bytes(on(0x981, result, address, 0, 0, predicate=predicate), "little")
    return (word | 1 << 72 | {4: 4, 8: 5, 16: 6}[n_bytes] << 73).to_bytes(16, "little")


def addressed(*code: bytes, by: int) -> list[int]:
    return Scoreboards(b"".join(code), AMPERE, itertools.repeat(True)).addressed_by(by)


def test_an_address_depends_on_the_load_that_gives_its_index() -> None:
    code = (load(8, 2), on(IADD3, 9, 8, 4), on(WIDE_PRODUCT, 10, 9, 5, 6), load(12, 10))
    assert addressed(*code, by=3) == [0]
    assert addressed(*code, by=0) == []


@pytest.mark.parametrize("register", [9, 10, 11])
def test_a_register_that_is_written_between_cuts_the_dependence(register: int) -> None:
    overwritten = on(IADD3, register, 30, 31)
    code = (load(8, 2), on(IADD3, 9, 8), overwritten, on(WIDE_PRODUCT, 10, 9, 5, 6), load(12, 10))
    assert addressed(*code, by=4) == ([] if register == 9 else [0])


def test_a_register_that_is_written_in_some_threads_keeps_the_dependence() -> None:
    code = (load(8, 2), on(IADD3, 8, 30, predicate=P0), on(WIDE_PRODUCT, 10, 8, 5, 6), load(12, 10))
    assert addressed(*code, by=3) == [0]


def test_either_half_of_an_address_counts_and_neighbouring_registers_do_not() -> None:
    assert addressed(load(10, 2), load(12, 10), by=1) == [0]
    assert addressed(load(11, 2), load(12, 10), by=1) == [0]
    assert addressed(load(12, 2), load(14, 10), by=1) == addressed(load(9, 2), load(14, 10), by=1) == []
    assert addressed(load(8, 2, n_bytes=16), load(14, 10), by=1) == [0]


def test_a_constant_factor_does_not_make_the_other_factor_a_pair() -> None:
    """Of IMAD.WIDE R10, R8, R9, c[…], the register in the last place is the second operand, one register wide."""
    of_constant = on(WIDE_PRODUCT_OF_CONSTANT, 10, 8, 0, 9)
    assert addressed(load(20, 2), on(IADD3, 9, 20), of_constant, load(12, 10), by=3) == [0]
    next_one = (load(10, 2), on(IADD3, 9, 30), of_constant, load(12, 10))
    assert addressed(*next_one, by=3) == []
    of_pair = (load(7, 2), on(WIDE_PRODUCT, 10, 8, 9, 6), load(12, 10))
    assert addressed(*of_pair, by=2) == [0]  # the addend R6 is a pair


def test_loads_from_shared_memory_are_not_followed() -> None:
    assert addressed(load(8, 2), on(LOAD_SHARED, 10, 8, 0, 0), load(12, 10), by=2) == []


def test_the_nearest_load_comes_first() -> None:
    code = (load(8, 2), load(9, 8), on(WIDE_PRODUCT, 10, 9, 5, 6), load(12, 10))
    assert addressed(*code, by=3) == [1]  # the load of the load's own address is another link of the chain
    two = (load(8, 2), load(9, 4), on(WIDE_PRODUCT, 10, 8, 9, 6), load(12, 10))
    assert addressed(*two, by=3) == [1, 0]


def test_the_next_element_of_a_list_depends_on_itself() -> None:
    code = (load(10, 2, n_bytes=8), load(10, 10, n_bytes=8), branch(-2, predicate=P0), instruction(EXIT))
    assert addressed(*code, by=1) == [1]


def test_in_a_loop_only_the_loads_of_the_loop_count() -> None:
    start, index, value = load(4, 2, n_bytes=8), load(8, 4), load(12, 10)
    code = (start, index, on(WIDE_PRODUCT, 10, 8, 20, 6), value, branch(-4, predicate=P0), instruction(EXIT))
    assert addressed(*code, by=1) == []
    assert addressed(*code, by=3) == [1]
    assert addressed(start, index, instruction(EXIT), by=1) == [0]


@pytest.mark.parametrize("number", [-1, 1, 10**9])
def test_an_address_outside_a_function_depends_on_nothing(number: int) -> None:
    assert addressed(load(8, 2), by=number) == []


def test_a_search_ends_with_its_steps() -> None:
    code = b"".join((load(10, 2), *[instruction(0x918)] * 500, load(12, 10)))
    assert Scoreboards(code, AMPERE, iter(range(400))).addressed_by(501) == []


@pytest.mark.long
@pytest.mark.parametrize("compute_capability", [75, 80, 90, 120])
def test_lines_depend_on_the_lines_that_give_their_addresses(tmp_path: Path, compute_capability: int) -> None:
    """By the source of addressed.cu, as this machine's compiler translates it for each architecture."""
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc on this machine")
    compiled = tmp_path / "addressed.cubin"
    command = ["nvcc", f"-arch=sm_{compute_capability}", "-lineinfo", "-cubin", "-o", str(compiled), str(SOURCE)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"this nvcc does not know sm_{compute_capability}")
    image = Image(compiled.read_bytes())
    assert _addressed(image, b"_Z6gatherPKfPKiPf") == {(3, 2)}
    rows = _addressed(image, b"_Z4rowsPKfPKiS0_S2_Pf")
    assert {(13, 10)} <= rows <= {(13, 10), (10, 9), (11, 9)}  # what is peeled off the loop needs its start
    assert _addressed(image, b"_Z7dividedPKfPfi") == set()
    assert _addressed(image, b"_Z5chasePKlPli") == {(24, 24)}


def _addressed(image: Image, function: bytes) -> set[tuple[int, int]]:
    """Return which lines load from addresses that depend on which lines."""
    code = image.code(function)
    boards = Scoreboards(code, image.compute_capability, itertools.repeat(True))
    table = LineTables(image).of(function, 0)
    lines = [place.line if (place := table.place(offset)) else 0 for offset in range(0, len(code), 16)]
    return {(line, lines[other]) for number, line in enumerate(lines) for other in boards.addressed_by(number)}
