"""Accesses to local memory in machine code that is put together by hand."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code.static_code import local_share
from tests.support.machine_code import ADD, COPY, EXIT, LOAD, STORE, instruction

ADA = 89
LDL, STL, LDS, STS, LDSM, LDC = 0x983, 0x387, 0x984, 0x388, 0x83B, 0xB82
ATOM, RED, ATOMS = 0x38A, 0x98E, 0x38C


def share(*opcodes: int, target: int = ADA) -> float | None:
    return local_share(b"".join(map(instruction, opcodes)), target)


def test_loads_from_local_memory_and_stores_to_it_count() -> None:
    assert share(LDL, STL, STL, LOAD, ADD, EXIT) == 3 / 4
    assert share(LOAD, STORE, LDS, STS) == 0
    # nine others: each kind of global and shared access once
    assert share(LDL, LOAD, STORE, LDS, STS, LDSM, COPY, ATOM, RED, ATOMS) == 1 / 10


def test_reads_of_constants_are_not_accesses() -> None:
    assert share(STL, LDC, LDC, LDC) == 1
    assert share(LDC, ADD, EXIT) is None


@pytest.mark.parametrize(("opcodes", "target"), [((), ADA), ((LDL, STL), 62)])
def test_unknown_machine_code_gives_no_answer(opcodes: tuple[int, ...], target: int) -> None:
    assert share(*opcodes, target=target) is None
