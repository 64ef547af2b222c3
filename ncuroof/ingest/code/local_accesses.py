"""Tells how many of a kernel's memory instructions access local memory: spilled registers, and arrays that are no registers."""

from __future__ import annotations

from collections import Counter

from ncuroof.ingest.code import sass


def local_share(code: bytes, compute_capability: int) -> float | None:
    """Return the share of a function's memory instructions that load from local memory or store to it.

    Loads, stores, atomics and asynchronous copies count, each once, however often it is executed; reads of constants do not. None
    if the function has none, or its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if compute_capability < sass.VOLTA:
        return None
    low, high = (code[byte :: sass.INSTRUCTION_BYTES] for byte in (0, 1))
    n_by_opcode: Counter[int] = Counter()
    for (first, second), n in Counter(zip(low, high, strict=False)).items():
        n_by_opcode[(first | second << 8) & sass.OPCODE] += n
    n_accesses = sum(n_by_opcode[opcode] for opcode in sass.MEMORY_ACCESSES)
    return sum(n_by_opcode[opcode] for opcode in sass.LOCAL_ACCESSES) / n_accesses if n_accesses else None
