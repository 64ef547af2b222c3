"""Loads of neighbouring elements in machine code that is put together by hand."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code.static_code import adjacent_share
from tests.support.machine_code import ADD, BRANCH, STORE, instruction

ADA = 89
LDG, LD = 0x981, 0x980
BYTE, FLOAT, DOUBLE, VECTOR = 0, 4, 5, 6
"""Widths: an unsigned byte, 32, 64 and 128 bits."""


def access(offset: int, *, address: int = 10, width: int = FLOAT, into: int = 40, opcode: int = LDG) -> bytes:
    """Return a load: the register that it writes from bit 16, of its address from 24, offset from 40, width from 73."""
    word = int.from_bytes(instruction(opcode), "little")
    return (word | into << 16 | address << 24 | (offset & 0xFFFFFF) << 40 | width << 73).to_bytes(16, "little")


def adding(into: int) -> bytes:
    """Return an addition that writes a register."""
    return (int.from_bytes(instruction(ADD), "little") | into << 16).to_bytes(16, "little")


def share(*code: bytes) -> float | None:
    return adjacent_share(b"".join(code), ADA)


def test_loads_of_neighbouring_addresses_are_adjacent() -> None:
    assert share(access(0), access(4), access(8), access(16)) == pytest.approx(3 / 4)  # nothing reads at 12
    assert share(access(-4), access(0)) == 1
    assert share(access(3, width=BYTE), access(4, width=BYTE)) == 1
    assert share(access(8, width=DOUBLE, opcode=LD), access(0, width=DOUBLE, opcode=LD)) == 1
    assert share(access(0), access(4, width=DOUBLE)) == 0
    assert share(access(0), access(1, width=BYTE)) == 0
    assert share(access(0, width=VECTOR), access(16, width=VECTOR)) == 0  # as wide as they get
    assert share(access(0), access(4, address=12)) == 0


def test_an_address_changes_when_its_registers_are_written_and_after_branches() -> None:
    assert share(access(0), adding(into=10), access(4)) == 0
    assert share(access(0), adding(into=11), access(4)) == 0  # its upper half
    assert share(access(0), adding(into=12), access(4)) == 1
    assert share(access(0), instruction(BRANCH), access(4)) == 0
    assert share(access(0), access(0, opcode=STORE, into=10), access(4)) == 1  # a store writes no register
    assert share(access(0, into=10), access(4)) == 0  # the load itself writes it


@pytest.mark.parametrize(("code", "compute_capability"), [(b"", ADA), (access(0) + access(4), 62), (adding(3), ADA)])
def test_unknown_machine_code_gives_no_answer(code: bytes, compute_capability: int) -> None:
    assert adjacent_share(code, compute_capability) is None
