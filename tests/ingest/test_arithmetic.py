"""Arithmetic in machine code that is put together by hand."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code.arithmetic import OPERATIONS, operations_in
from tests.support.machine_code import EXIT, LOAD, instruction

ADA = 89
FADD, FADD_OF_CONSTANT, FMUL, FFMA, DADD, DMUL, DFMA, MUFU, DSETP = (
    0x221, 0x421, 0x820, 0x223, 0x229, 0x228, 0x22B, 0x308, 0x22A,
)  # fmt: skip
RCP, RSQ, RCP64H, RSQ64H = 4, 5, 6, 7


def special(function: int) -> bytes:
    """Return a MUFU, whose function stands in bits 74 to 77."""
    return (int.from_bytes(instruction(MUFU), "little") | function << 74).to_bytes(16, "little")


def test_each_kind_of_arithmetic_is_counted() -> None:
    opcodes = [FADD, FADD_OF_CONSTANT, FMUL, FFMA, FFMA, FFMA, DADD, DMUL, DMUL, DFMA, LOAD, DSETP, EXIT]
    code = b"".join(map(instruction, opcodes)) + b"".join(map(special, [RCP, RSQ, RCP64H, RCP64H, RSQ64H]))
    found = operations_in(code, ADA)
    assert found == {
        "fadd": 2, "fmul": 1, "ffma": 3, "dadd": 1, "dmul": 2, "dfma": 1, "rcp64h": 2, "rsq64h": 1,
    }  # fmt: skip
    assert set(found) == set(OPERATIONS)


@pytest.mark.parametrize(("code", "compute_capability"), [(b"", ADA), (instruction(FADD), 62)])
def test_other_machine_code_tells_nothing(code: bytes, compute_capability: int) -> None:
    assert operations_in(code, compute_capability) is None
