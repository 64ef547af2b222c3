"""Tells how many of a kernel's memory instructions access local memory: spilled registers, and arrays that are no registers."""

from __future__ import annotations

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
    n_accesses, n_local = (
        sum(n for beginning, n in sass.beginnings(code).items() if beginning & sass.OPCODE in opcodes)
        for opcodes in (sass.MEMORY_ACCESSES, sass.LOCAL_ACCESSES)
    )
    return n_local / n_accesses if n_accesses else None
