"""Arithmetic in machine code that is put together by hand."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code.static_code import OPERATIONS, operations_in
from tests.support.machine_code import EXIT, LOAD, instruction

ADA = 89
FADD, FADD_OF_CONSTANT, FMUL, FFMA, DADD, DMUL, DFMA, MUFU, DSETP = (
    0x221, 0x421, 0x820, 0x223, 0x229, 0x228, 0x22B, 0x308, 0x22A,
)  # fmt: skip
LDS, LDGSTS, I2FP, LDC, ISETP, IMAD, BRA, CALL, HMMA = 0x984, 0xFAE, 0x245, 0xB82, 0x20C, 0x224, 0x947, 0x944, 0x23C
RCP, RSQ, RCP64H, RSQ64H = 4, 5, 6, 7


def special(function: int) -> bytes:
    """Return a MUFU, whose function stands in bits 74 to 77."""
    return (int.from_bytes(instruction(MUFU), "little") | function << 74).to_bytes(16, "little")


def test_each_kind_of_arithmetic_is_counted() -> None:
    opcodes = [
        FADD,
        FADD_OF_CONSTANT,
        FMUL,
        FFMA,
        FFMA,
        FFMA,
        DADD,
        DMUL,
        DMUL,
        DFMA,
        LOAD,
        DSETP,
        LDS,
        LDS,
        LDGSTS,
        I2FP,
        EXIT,
    ]
    code = b"".join(map(instruction, opcodes)) + b"".join(map(special, [RCP, RSQ, RCP64H, RCP64H, RSQ64H]))
    found = operations_in(code, ADA)
    assert found == {
        "fadd": 2, "fmul": 1, "ffma": 3, "dadd": 1, "dmul": 2, "dfma": 1, "rcp64h": 2, "rsq64h": 1,
        "global_load": 2, "shared_load": 2, "conversion": 1,
        "beyond_integers": 18,  # all but LDG, two LDS and EXIT
    }  # fmt: skip
    assert set(found) == set(OPERATIONS)


@pytest.mark.parametrize(("code", "compute_capability"), [(b"", ADA), (instruction(FADD), 62)])
def test_unknown_machine_code_gives_no_answer(code: bytes, compute_capability: int) -> None:
    assert operations_in(code, compute_capability) is None


@pytest.mark.parametrize(
    ("opcodes", "n"),
    [
        ([LOAD, IMAD, ISETP, LDC, LDS, BRA, EXIT], 0),
        ([LOAD, FMUL, EXIT], 1),
        ([HMMA, HMMA, EXIT], 2),
        ([CALL, EXIT], 1),
    ],
)
def test_instructions_that_may_be_floating_point_arithmetic_are_counted(opcodes: list[int], n: int) -> None:
    found = operations_in(b"".join(map(instruction, opcodes)), ADA)
    assert found is not None
    assert found["beyond_integers"] == n


def test_instructions_that_are_never_executed_are_not_counted() -> None:
    never = (int.from_bytes(instruction(LDS), "little") | 0xF << 12).to_bytes(16, "little")
    found = operations_in(never, ADA)
    assert found is not None
    assert (found["shared_load"], found["beyond_integers"]) == (0, 0)
