"""Finds the loads from whose results the address of a load is computed, by following registers backwards through the code.

Source: recorded code for compute capability 7.5 to 12.0, compared with its SASS: where each opcode has its operands. An instruction
has its result in bits 16 to 23, its first operand in bits 24 to 31, and others in bits 32 to 39 and 64 to 71, by its form.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ncuroof.ingest.code import sass

_NO_REGISTER = 255
"""RZ, which reads as zero."""

_REGISTERS, _THIRD_LAST = 1, (1, 4, 5, 6)
"""Forms of an instruction, in bits 9 to 11: that without constants and uniform registers among its operands, and those with the
third operand in bits 64 to 71. The others have the second one there, and as the third a constant or uniform register."""

_WIDE_PRODUCT = 0x025
"""IMAD.WIDE, whose third operand and result are pairs of registers."""

_IN_PAIRS = (_WIDE_PRODUCT, 0x028, 0x029, 0x02B)
"""IMAD.WIDE, DMUL, DADD and DFMA: their results are pairs of registers."""

_OF_FIRST = (0x189,)
"""SHFL: its first operand is the value."""

_OF_SECOND = (0x002, 0x013, 0x045, 0x100, 0x101, 0x105, 0x106, 0x109, 0x111, 0x112)
"""MOV, IABS, I2FP, FLO, BREV, F2I, I2F, POPC, and F2I and I2F with 64 bits: their only operand is encoded as a second one."""

_OF_TWO = (0x007, 0x017, 0x01A, 0x01B, 0x036)
"""SEL, IMNMX, SGXT, BMSK and VIADD."""

_OF_THREE = (0x010, 0x011, 0x012, 0x016, 0x019, 0x024, _WIDE_PRODUCT, 0x027)
"""IADD3, LEA, LOP3, PRMT, SHF and IMAD (three)."""

_LOADS = (*sass.GLOBAL_LOADS, *sass.ATOMICS_WITH_RESULT)
"""Loads of global memory, and atomics on it that return a result."""

_OTHER_RESULTS = (
    0x003, 0x005, 0x006, 0x008, 0x009, 0x020, 0x021, 0x023, 0x028, 0x029, 0x02B, 0x030, 0x031, 0x032, 0x035, 0x037, 0x039, 0x03A,
    0x03B, 0x03C, 0x03E, 0x108, 0x110, 0x113, 0x119, 0x11C, 0x14E, 0x155, 0x182, 0x183, 0x184, 0x18C, 0x18D, 0x1AA,
)  # fmt: skip
"""Further instructions that write a register. What they read is not followed, such as an address in shared or local memory."""

_ARITHMETIC = frozenset((*_OF_FIRST, *_OF_SECOND, *_OF_TWO, *_OF_THREE))
_WRITERS = _ARITHMETIC | frozenset((*_LOADS, *_OTHER_RESULTS))


def loads_of_address(
    words: Sequence[tuple[int, int]], before: Sequence[Sequence[int]], number: int, steps: Iterator[object]
) -> list[int]:
    """Return the loads, by number, from whose results the address of a load is computed, nearest first; empty if unknown.

    In a loop this may be the load itself, in the iteration before. Addresses that pass through uniform registers or memory are not
    followed further.

    Args:
        words: `sass.words` of a function.
        before: the possible predecessors of each instruction.
        number: number of the load.
        steps: a step budget: one item is consumed per instruction visited and register sought.
    """
    found: dict[int, None] = {}
    ahead = deque((each, register) for register in _address(*words[number]) for each in before[number])
    seen = set(ahead)
    while ahead and next(steps, None) is not None:
        at, register = ahead.popleft()
        low, high = words[at]
        sought = [register]
        if register in _results(low, high):
            if low & sass.OPCODE in _LOADS:
                found[at] = None
            operands = _operands(low, high)
            sought = [*operands, register] if _is_predicated(low) else operands
        further = [(each, register) for register in sought for each in before[at] if (each, register) not in seen]
        seen.update(further)
        ahead.extend(further)
    return list(found)


def _address(low: int, high: int) -> list[int]:
    """Return the registers of the address of a load: one, or two for an address of 64 bits."""
    first = low >> 24 & 255
    if low & sass.OPCODE not in _LOADS or first == _NO_REGISTER:
        return []
    return [first, first + 1] if high >> 8 & 1 else [first]


def _results(low: int, high: int) -> range:
    """Return the registers that an instruction writes."""
    opcode, first = low & sass.OPCODE, low >> 16 & 255
    if opcode not in _WRITERS or first == _NO_REGISTER:
        return range(0)
    n_bytes = 8 if opcode in _IN_PAIRS else 4
    if opcode in sass.LOADS_AND_STORES or opcode in sass.LOADS:
        n_bytes = dict(enumerate(sass.LOADED_BYTES)).get(high >> 9 & 7, 4)
    return range(first, first + max(1, n_bytes // 4))


def _operands(low: int, high: int) -> list[int]:
    """Return the registers that an instruction of `_ARITHMETIC` reads; empty for any other instruction."""
    opcode, form, last = low & sass.OPCODE, low >> 9 & 7, high & 255
    found = [low >> 24 & 255] if opcode in (*_OF_FIRST, *_OF_TWO, *_OF_THREE) else []
    if form == _REGISTERS and opcode in (*_OF_SECOND, *_OF_TWO, *_OF_THREE):
        found.append(low >> 32 & 255)
    if opcode in _OF_THREE:
        found.append(last)
        if opcode == _WIDE_PRODUCT and form in _THIRD_LAST and last != _NO_REGISTER:
            found.append(last + 1)
    return [register for register in found if register != _NO_REGISTER]


def _is_predicated(low: int) -> bool:
    return low >> sass.PREDICATE_BIT & 15 != sass.ALWAYS
