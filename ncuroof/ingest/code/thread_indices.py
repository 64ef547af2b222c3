"""Finds the thread and block indices that a kernel's code never reads: threads that differ only in these do the same work."""

from __future__ import annotations

import re

from ncuroof.ingest.code import sass

INDICES = {
    sass.TID_X: "launch__block_dim_x",
    sass.TID_Y: "launch__block_dim_y",
    sass.TID_Z: "launch__block_dim_z",
    sass.CTAID_X: "launch__grid_dim_x",
    sass.CTAID_Y: "launch__grid_dim_y",
    sass.CTAID_Z: "launch__grid_dim_z",
}
"""By special register, the counter with the launch extent along which it numbers threads or blocks."""

BY_LANE = "by_lane"
"""Marker that accompanies the extents if the code exchanges values within warps: its threads can then differ without an index."""

_OTHERWISE_DIFFERENT = (sass.ELECT, *sass.ATOMICS_WITH_RESULT, *sass.OTHER_ATOMICS, sass.CALL_ABSOLUTE)
"""Instructions whose result or effect differs by thread, and calls of functions that are not searched."""

_TELLING = re.compile(
    b"["
    + b"".join(
        re.escape(bytes([opcode & 0xFF]))
        for opcode in (
            *sass.SPECIAL_REGISTER_READS,
            *sass.CLOCK_READS,
            *sass.LANE_WISE,
            *_OTHERWISE_DIFFERENT,
            sass.CALL,
        )
    )
    + b"]"
)


def unread_in(code: bytes, compute_capability: int) -> frozenset[str] | None:
    """Return the extents along which a function reads no index, plus BY_LANE if it applies.

    None if its threads can differ in other ways, or the code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if not code or compute_capability < sass.VOLTA:
        return None
    read, is_by_lane = set(), False
    low, high, registers = (code[byte :: sass.INSTRUCTION_BYTES] for byte in (0, 1, sass.REGISTER_BYTE))
    for match in _TELLING.finditer(low[: len(registers)]):
        number = match.start()
        full = (low[number] | high[number] << 8) & sass.FULL_OPCODE
        opcode = full & sass.OPCODE
        reads_clock = opcode in sass.CLOCK_READS and registers[number] != sass.ZERO  # of SRZ, they write zeros
        if opcode in sass.SPECIAL_REGISTER_READS or reads_clock:
            read.add(registers[number])
        elif opcode in sass.LANE_WISE:
            is_by_lane = True
        elif opcode in _OTHERWISE_DIFFERENT or (opcode == sass.CALL and full != sass.CALL_NEARBY):
            return None
    unread = frozenset(INDICES[register] for register in INDICES.keys() - read)
    return (unread | {BY_LANE} if is_by_lane else unread) if read <= INDICES.keys() else None
