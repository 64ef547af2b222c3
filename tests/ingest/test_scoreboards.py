from __future__ import annotations

import csv
import io
import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import CounterSelection, open_report
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.line_tables import LineTables
from ncuroof.ingest.code.scoreboards import Scoreboards
from tests.support.machine_code import (
    BARRIER,
    COMMIT,
    COPY,
    EXIT,
    LOAD,
    P0,
    RETURN,
    STORE,
    WAIT_FOR_COPIES,
    WARP_GROUP,
    branch,
    instruction,
)
from tests.support.ncu import find_ncu, print_page

AMPERE, HOPPER = 80, 90
AWAITED = Path(__file__).parents[1] / "support" / "line_tables" / "awaited.cu"


def awaited(*code: bytes, by: int, compute_capability: int = AMPERE) -> list[int]:
    return sorted(Scoreboards(b"".join(code), compute_capability, itertools.repeat(True)).awaited_by(by))


def test_an_instruction_waits_for_those_that_count_its_scoreboards() -> None:
    code = (
        instruction(LOAD, result=0),
        instruction(LOAD, result=1),
        instruction(LOAD, operands=2),  # a store: it reads its operands when it can
        instruction(),
        instruction(waits=(0, 2)),
        instruction(waits=(1,)),
    )
    assert awaited(*code, by=4) == [0, 2]
    assert awaited(*code, by=5) == [1]
    assert awaited(*code, by=3) == []


def test_an_instruction_waits_for_all_in_flight_and_for_none_already_awaited() -> None:
    before, load = instruction(LOAD, result=0), instruction(LOAD, result=0)
    waiter = instruction(waits=(0,))
    assert awaited(before, waiter, load, load, waiter, by=4) == [2, 3]
    waits_and_loads = instruction(LOAD, waits=(0,), result=0)
    assert awaited(before, waits_and_loads, waiter, by=2) == [1]


@pytest.mark.parametrize("opcode", [0x9A8, 0x3A9, 0x98A, 0x38B])
def test_atomics_are_waited_for_as_loads_are(opcode: int) -> None:
    """ATOMG and ATOM, plain and compare-and-swap: opcodes of what nvcc 13 compiles for 7.5 to 12.1."""
    code = (
        instruction(opcode, result=0),
        instruction(LOAD, result=1),
        instruction(waits=(0,)),
        instruction(waits=(1,)),
    )
    found = Scoreboards(b"".join(code), AMPERE, itertools.repeat(True))
    assert [found.waits_for_atomic(number) for number in range(4)] == [None, None, True, False]
    assert [found.loads_in_flight(number) for number in (2, 3)] == [0, 1]


def test_waits_for_copies_are_distinguished_from_waits_for_loads() -> None:
    """DEPBAR waits for groups of copies, and warps are sampled behind it."""
    copies = (instruction(COPY, operands=1), instruction(COMMIT, result=0))
    of_scoreboard_1 = WAIT_FOR_COPIES | 1 << 44
    code = (
        *(instruction(LOAD, result=2), *copies, instruction(WAIT_FOR_COPIES)),
        *(instruction(BARRIER), instruction(waits=(2,)), instruction()),
        *(*copies, instruction(of_scoreboard_1), instruction(BARRIER)),
        *(*copies, instruction(LOAD, result=3), instruction(WAIT_FOR_COPIES), instruction(waits=(3,))),
    )
    found = Scoreboards(b"".join(code), AMPERE, itertools.repeat(True))
    assert [found.waits_for_copies(number) for number in (4, 5, 6)] == [True, False, None]
    assert found.waits_for_copies(10) is False  # DEPBAR of another scoreboard
    assert found.waits_for_copies(15) is False  # it waits for a load as well
    assert [found.waits_for_copies(number) for number in (-1, 0, len(code))] == [None, None, None]


def test_a_branch_by_lanes_or_by_a_predicate_of_the_warp_can_be_passed() -> None:
    """BRA.DIV, of which bit 33 is set, and BRA.U UP0: without a predicate of their own, and yet not always taken."""
    load, waiter = instruction(LOAD, result=0), instruction(waits=(0,))
    by_lanes = (int.from_bytes(branch(1), "little") | 1 << 33).to_bytes(16, "little")
    by_warp = (int.from_bytes(branch(1), "little") & ~0xFFF | 0x547).to_bytes(16, "little")
    for conditional in (by_lanes, by_warp):
        assert awaited(load, conditional, waiter, instruction(EXIT), by=2) == [0]
    assert awaited(load, branch(1), waiter, instruction(EXIT), by=2) == []


def test_the_nearest_comes_first() -> None:
    loads = (instruction(LOAD, result=0), instruction(LOAD, result=1), instruction(LOAD, result=0))
    code = b"".join((*loads, instruction(waits=(0, 1))))
    assert Scoreboards(code, AMPERE, itertools.repeat(True)).awaited_by(3) == [2, 1, 0]


def test_a_load_for_the_next_pass_of_a_loop_is_waited_for_at_its_beginning() -> None:
    code = (
        instruction(LOAD, result=0),
        instruction(waits=(0,)),  # the loop
        instruction(LOAD, result=0),
        branch(-3, predicate=P0),
    )
    assert awaited(*code, by=1) == [0, 2]


@pytest.mark.parametrize("end", [instruction(EXIT), instruction(RETURN), branch(5)])
def test_nothing_is_awaited_after_an_instruction_that_never_falls_through(end: bytes) -> None:
    load, waiter = instruction(LOAD, result=0), instruction(waits=(0,))
    assert awaited(load, end, waiter, by=2) == []


def test_code_goes_on_after_instructions_of_only_some_threads() -> None:
    load, waiter = instruction(LOAD, result=0), instruction(waits=(0,))
    for end in (instruction(EXIT, predicate=P0), branch(5, predicate=P0)):
        assert awaited(load, end, waiter, by=2) == [0]


@pytest.mark.parametrize("n_instructions", [2, 70, 700])
def test_branches_of_hopper_keep_eight_bits_of_their_offset_elsewhere(n_instructions: int) -> None:
    skipped = (instruction(EXIT),) * n_instructions
    for is_hopper, capability in ((False, AMPERE), (True, HOPPER)):
        jump = branch(n_instructions, is_hopper=is_hopper)
        code = (instruction(LOAD, result=3), jump, *skipped, instruction(waits=(3,)))
        assert awaited(*code, by=n_instructions + 2, compute_capability=capability) == [0]


def test_a_wait_for_copies_shows_at_the_instruction_behind_it() -> None:
    code = (
        instruction(COPY, operands=1),  # waited for before
        instruction(COMMIT, result=0),
        instruction(WAIT_FOR_COPIES),
        instruction(LOAD, result=0),
        instruction(COPY, operands=1),
        instruction(COMMIT, result=0),
        instruction(WAIT_FOR_COPIES),
        instruction(),  # a barrier, as a rule
    )
    assert awaited(*code, by=7) == [4]


def in_flight(*code: bytes, at: int) -> int:
    return Scoreboards(b"".join(code), AMPERE, itertools.repeat(True)).loads_in_flight(at)


def test_loads_are_in_flight_until_their_scoreboards_are_waited_for() -> None:
    code = (
        *(
            instruction(LOAD, result=board) for board in (0, 0, 1, 2)
        ),  # an unrolled loop: four loads on three scoreboards
        instruction(waits=(0,)),
        instruction(waits=(1,)),
        instruction(waits=(2,)),
    )
    assert [in_flight(*code, at=number) for number in (4, 5, 6)] == [4, 2, 1]


def test_a_load_for_the_next_pass_of_a_loop_is_in_flight() -> None:
    code = (
        instruction(LOAD, result=0),
        instruction(LOAD, result=1),  # the loop
        instruction(waits=(0,)),
        instruction(LOAD, result=0),
        instruction(waits=(1,)),
        branch(-5, predicate=P0),
    )
    assert in_flight(*code, at=2) == 2  # of this pass, and of the one before or of before the loop
    assert in_flight(*code, at=4) == 2


def test_the_path_with_fewer_loads_counts() -> None:
    code = (
        *[instruction(LOAD, result=0)] * 19,  # before the loop
        instruction(LOAD, result=1),  # the loop
        instruction(waits=(1,)),
        instruction(waits=(0,)),
        branch(-4, predicate=P0),
    )
    assert in_flight(*code, at=20) == 1
    assert in_flight(*code, at=21) == 1  # in its first pass 19


def test_an_instruction_that_waits_for_no_load_has_none_in_flight() -> None:
    stored = instruction(STORE, operands=3)
    copied = (instruction(COPY, operands=1), instruction(COMMIT, result=0), instruction(WAIT_FOR_COPIES))
    load, waiter = instruction(LOAD, result=0), instruction(waits=(3,))
    assert in_flight(load, stored, waiter, at=2) == 0
    assert in_flight(load, *copied, instruction(), at=4) == 0
    assert in_flight(load, instruction(), at=1) == in_flight(load, at=7) == 0


def test_code_before_volta_is_not_decoded() -> None:
    assert awaited(instruction(LOAD, result=0), instruction(waits=(0,)), by=1, compute_capability=61) == []


@pytest.mark.parametrize("number", [-1, 2, 10**9])
def test_an_address_outside_a_function_waits_for_nothing(number: int) -> None:
    assert awaited(instruction(LOAD, result=0), instruction(waits=(0,))[:15], by=number) == []


def test_a_search_ends_with_its_steps_and_is_made_once() -> None:
    waiters = instruction(waits=(0,)) + instruction(waits=(2,))
    code = instruction(LOAD, result=0) + instruction(LOAD, result=2) + instruction() * 600 + waiters
    boards = Scoreboards(code, AMPERE, iter(range(1000)))
    assert boards.awaited_by(602) == [0]
    assert boards.awaited_by(603) == []  # fewer than 400 steps are left
    assert boards.awaited_by(602) == [0]


def test_only_the_first_of_hundreds_of_branches_to_one_place_are_followed() -> None:
    n_branches = 100
    loads = [
        each for k in range(n_branches) for each in (instruction(LOAD, result=0), branch(2 * (n_branches - k) - 2))
    ]
    assert awaited(*loads, instruction(waits=(0,)), by=2 * n_branches) == [2 * k for k in range(64)]


@pytest.mark.long
@pytest.mark.parametrize("compute_capability", [75, 80, 89, 90, 100, 120])
def test_lines_wait_for_those_that_load_what_they_need(tmp_path: Path, compute_capability: int) -> None:
    """By the source of awaited.cu, as this machine's compiler translates it for each architecture."""
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc on this machine")
    compiled = tmp_path / "awaited.cubin"
    command = ["nvcc", f"-arch=sm_{compute_capability}", "-lineinfo", "-cubin", "-o", str(compiled), str(AWAITED)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"this nvcc does not know sm_{compute_capability}")
    image = Image(compiled.read_bytes())
    assert image.compute_capability == compute_capability
    chase, split = (_waits(image, name) for name in (b"_Z5chasePKiPii", b"_Z5splitPKfS0_Pfi"))
    assert {(4, 4), (6, 4)} <= chase  # the next step and the result wait for a step before
    assert {(4, 2), (6, 2)}.isdisjoint(chase)
    doubled, tripled = ({9}, {10}) if compute_capability < 100 else ({9, 10},) * 2  # Blackwell's has no branch left
    where = (13, 15) if compute_capability < 100 else (12, 12)
    for line, loaded in zip(where, (doubled, tripled), strict=True):
        assert {other for waiting, other in split if waiting == line and other in (9, 10)} == loaded


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["90a", "100a", "120a"])
def test_a_wait_for_a_bulk_copy_belongs_to_the_line_that_asks_its_barrier(tmp_path: Path, architecture: str) -> None:
    """`mbarrier.try_wait` answers by a predicate that a scoreboard guards: a stall of scoreboards, at its own line."""
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc on this machine")
    compiled, source = tmp_path / "bulk_copy.cubin", AWAITED.with_name("bulk_copy.cu")
    command = ["nvcc", f"-arch=sm_{architecture}", "-lineinfo", "-cubin", "-o", str(compiled), str(source)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"this nvcc does not know sm_{architecture}")
    waits = _waits(Image(compiled.read_bytes()), b"_Z11bulk_copiesPKfPfi")
    assert (14, 14) in waits
    assert (15, 13) not in waits  # the copy itself counts no scoreboard


def _waits(image: Image, function: bytes) -> set[tuple[int, int]]:
    """Return which lines wait for which."""
    boards = Scoreboards(image.code(function), image.compute_capability, itertools.repeat(True))
    table = LineTables(image).of(function, 0)
    lines = [place.line if (place := table.place(offset)) else 0 for offset in range(0, len(image.code(function)), 16)]
    return {(line, lines[other]) for number, line in enumerate(lines) for other in boards.awaited_by(number)}


@pytest.mark.corpus
@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["variant2.ncu-rep", "profiling__profiles__warpTiling.ncu-rep", "gemm_v1_alter.ncu-rep", "384.ncu-rep"]
)
def test_awaited_instructions_share_a_register_in_the_disassembly_of_ncu(corpus: list[Path], name: str) -> None:
    """NVIDIA prints registers, not scoreboards: of what an instruction waits for, one writes or reads a register that it names."""
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed; NCUROOF_NCU names it")
    path = next(each for each in corpus if each.name == name)
    counters = {f"smsp__pcsamp_warps_issue_stalled_{kind}_scoreboard" for kind in ("long", "short")}
    found = open_report(
        path, selection=CounterSelection(frozenset(), by_instruction=frozenset({"inst_executed", *counters}))
    ).instructions
    code = list(_disassembled(print_page(ncu, path, "--page", "source", "--print-source", "sass").decode()))
    n_waiting = n_alike = n_by_chance = 0
    for kernel, row in zip(code, found["row"].unique(maintain_order=False).sort(), strict=False):
        for number, others in found.filter(pl.col("row") == row).select("number", "awaited").drop_nulls().rows():
            if number < len(kernel) and "BAR" not in kernel[number]:
                n_waiting += 1
                n_alike += any(_registers(kernel[number]) & _registers(kernel[other]) for other in others)
                n_by_chance += any(_registers(kernel[number]) & _registers(kernel[other - 1]) for other in others)
    print(f"{name}: {n_alike} of {n_waiting}, {n_by_chance} with the instructions before those")
    assert n_waiting > 10
    assert n_alike >= 0.9 * n_waiting > n_by_chance


def _disassembled(text: str) -> Iterator[list[str]]:
    """Yield the instructions of each kernel."""
    kernel: list[str] = []
    for cells in csv.reader(io.StringIO(text)):
        if cells and cells[0] == "Kernel Name" and kernel:
            yield kernel
            kernel = []
        elif len(cells) > 1 and cells[0].startswith("0x"):
            kernel.append(cells[1])
    yield kernel


def _registers(text: str) -> set[str]:
    """Return the registers that an instruction names, those that follow them in wide accesses, and predicates."""
    width = 4 if ".128" in text or "MMA" in text or ".M88.4" in text else 2
    numbered = re.findall(r"\b(U?R)(\d+)", text)
    return {f"{kind}{int(first) + k}" for kind, first in numbered for k in range(width)} | set(
        re.findall(r"\bU?P\d", text)
    )


def barriers(*code: bytes, before: int) -> list[int]:
    return Scoreboards(b"".join(code), HOPPER, itertools.repeat(True)).barriers_before(before)


def test_warps_wait_at_the_barrier_before_where_they_are_found() -> None:
    """BAR.SYNC.DEFER_BLOCKING: recorded on an H100, samples stand at the next branch or access to memory."""
    barrier, other = instruction(BARRIER), instruction()
    assert barriers(other, barrier, other, barrier, other, instruction(LOAD), before=5) == [3]
    assert barriers(other, barrier, before=1) == []
    assert barriers(barrier, before=7) == []


def test_at_the_top_of_a_loop_they_wait_at_the_barrier_before_it_or_at_its_end() -> None:
    barrier, other = instruction(BARRIER), instruction()
    loop = (barrier, other, instruction(LOAD), other, barrier, branch(-5, predicate=P0, is_hopper=True))
    assert barriers(*loop, before=2) == [0, 4]


def test_a_wait_for_matrix_products_is_not_a_barrier() -> None:
    assert barriers(instruction(BARRIER), instruction(WARP_GROUP), before=1) == []
