"""Assembles 128-bit instructions from the fields described in Jia et al. (2018), 2.1."""

from __future__ import annotations

ADD, LOAD, STORE, COPY, COMMIT, WAIT_FOR_COPIES = 0x210, 0x981, 0x986, 0xFAE, 0x9AF, 0x91A
BRANCH, EXIT, RETURN = 0x947, 0x94D, 0x950
BARRIER, WARP_GROUP = 0xB1D, 0x9C5
TRUE, P0 = 7, 0


def instruction(
    opcode: int = ADD, *, waits: tuple[int, ...] = (), result: int = 7, operands: int = 7, predicate: int = TRUE
) -> bytes:
    """Return an instruction.

    Args:
        opcode: bits 0 to 11.
        waits: the wait mask, one bit per scoreboard, from bit 116.
        result: the scoreboard that is held until the result is there, bits 110 to 112; 7 for none.
        operands: the scoreboard that is held until the operands are read, bits 113 to 115; 7 for none.
        predicate: bits 12 to 15.
    """
    mask = sum(1 << board for board in waits)
    word = opcode | predicate << 12 | TRUE << 87 | result << 110 | operands << 113 | mask << 116
    return word.to_bytes(16, "little")


def branch(n_instructions: int, *, predicate: int = TRUE, is_hopper: bool = False) -> bytes:
    """Return a branch over a number of instructions: words of 4 bytes, from bit 34; on Hopper the lowest eight bits are at 16."""
    words = 4 * n_instructions
    low = int.from_bytes(instruction(BRANCH, predicate=predicate), "little")
    fields = (words & 255) << 16 | (words >> 8 & (1 << 48) - 1) << 34 if is_hopper else (words & (1 << 48) - 1) << 34
    return (low | fields).to_bytes(16, "little")
