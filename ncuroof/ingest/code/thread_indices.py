"""Finds the thread and block indices that a kernel's code never reads: threads that differ only in these do the same work.

Source: CUDA Binary Utilities, "Instruction Set Reference" (S2R, S2UR: special register to register). Opcodes and numbers of special
registers: test programs that read known registers, compiled for compute capability 7.5 to 12.1.
"""

from __future__ import annotations

import re

INDICES = {
    0x21: "launch__block_dim_x",
    0x22: "launch__block_dim_y",
    0x23: "launch__block_dim_z",
    0x25: "launch__grid_dim_x",
    0x26: "launch__grid_dim_y",
    0x27: "launch__grid_dim_z",
}
"""By number of a special register (SR_TID.X to SR_CTAID.Z), the counter with the launch extent along which it numbers threads or
blocks."""

BY_LANE = "by_lane"
"""Marker that accompanies the extents if the code exchanges values within warps: its threads can then differ without an index."""

_READS = (0x119, 0x1C3)
"""S2R and S2UR."""

_OTHERWISE_DIFFERENT = (0x02F, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A6, 0x1A8, 0x1A9)
"""ELECT, which picks one lane, and the atomics ATOM, ATOMS, RED, REDG and ATOMG, whose result or effect differs by thread."""

_LANE_WISE = (0x037, 0x03A, 0x03B, 0x03C, 0x03F, 0x07A, 0x189)
"""IMMA, LDSM, HMMA, DMMA, QMMA and similar, and SHFL: what a thread gets depends on its lane in the warp."""

_CLOCKS = (0x005, 0x0CB)
"""CS2R and similar, which read clocks: the value differs by thread. They also write zeros, by reading the register SRZ."""

_ZERO = 0xFF
"""The special register SRZ."""

_CALLS_ELSEWHERE = 0x143
"""CALL.ABS: the called function is in another section, which is not searched."""

_CALL, _CALL_NEARBY = 0x144, 0x944
"""Opcode of CALL.REL, and its full opcode with a constant offset, which stays within the section."""

_OPCODE, _FULL_OPCODE = 0x1FF, 0xFFF
_INSTRUCTION_BYTES, _REGISTER_BYTE = 16, 9
_VOLTA = 70
_TELLING = re.compile(
    b"["
    + b"".join(
        re.escape(bytes([opcode & 0xFF]))
        for opcode in (*_READS, *_CLOCKS, *_LANE_WISE, *_OTHERWISE_DIFFERENT, _CALLS_ELSEWHERE, _CALL)
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
    if not code or compute_capability < _VOLTA:
        return None
    read, is_by_lane = set(), False
    low, high, registers = (code[byte::_INSTRUCTION_BYTES] for byte in (0, 1, _REGISTER_BYTE))
    for match in _TELLING.finditer(low[: len(registers)]):
        number = match.start()
        full = (low[number] | high[number] << 8) & _FULL_OPCODE
        opcode = full & _OPCODE
        if opcode in _READS or (opcode in _CLOCKS and registers[number] != _ZERO):
            read.add(registers[number])
        elif opcode in _LANE_WISE:
            is_by_lane = True
        elif opcode in _OTHERWISE_DIFFERENT or opcode == _CALLS_ELSEWHERE or (opcode == _CALL and full != _CALL_NEARBY):
            return None
    unread = frozenset(INDICES[register] for register in INDICES.keys() - read)
    return (unread | {BY_LANE} if is_by_lane else unread) if read <= INDICES.keys() else None
