"""Finds shared memory that a kernel's code fills and never reads: the compiler removed what should have read it, or nothing did.

A compiler cannot remove such stores as it does others: all threads of the block see them. Where what a kernel computes from a
tile reaches no result, the tile is still filled, and no instruction is left that reads it.

Source: CUDA Binary Utilities, "Instruction Set Reference", of the instruction sets from Volta to Hopper: what reads shared memory.
Opcodes: what nvcc 13.0 makes for 7.5 to 9.0a of PTX that reads or writes shared memory, and 2 282 recorded launches on 7.5 to 9.0,
both compared with their SASS.
"""

from __future__ import annotations

from ncuroof.ingest.code import sass

_NEWEST_KNOWN = sass.HOPPER
"""Later instruction sets read shared memory in ways that are not known here: tcgen05, for one."""

_STORES = (sass.SHARED_STORE, sass.MATRIX_STORE, sass.ASYNC_COPY)
_READS = (*sass.SHARED_LOADS, *sass.SHARED_ATOMICS)

_FROM_MEMORY_ON = 0x180
"""Opcodes below belong to arithmetic, control flow and textures; of these, LDSM alone reads shared memory."""

_OF_OTHER_MEMORY = (
    *(opcode for opcode in (*sass.LOADS, *sass.STORES) if opcode != sass.GENERIC_LOAD),
    *sass.GLOBAL_ATOMICS,
    *sass.WITHOUT_MEMORY,
    sass.ASYNC_COPY,
)
"""Opcodes from `_FROM_MEMORY_ON` on that do not read shared memory. The others do, or may: generic accesses, copies in bulk and by
TMA, matrix products (WGMMA)."""


def unread_shared_stores(code: bytes, compute_capability: int) -> int | None:
    """Return how many instructions of a function store to shared memory, or copy there, if none reads it; 0 if one does.

    Each counts once, however often it is executed. It is 0 too if no instruction stores there. None if others can read shared
    memory (generic accesses, bulk copies, called functions), or the code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs, above 9.0 the instructions
            that read shared memory are not all known, and the result is None.
    """
    is_cut = len(code) % sass.INSTRUCTION_BYTES  # what is missing may read it
    if not code or is_cut or not sass.VOLTA <= compute_capability <= _NEWEST_KNOWN:
        return None
    executed = {each: n for each, n in sass.beginnings(code).items() if each >> sass.PREDICATE_BIT != sass.NEVER}
    n_stores = sum(n for each, n in executed.items() if each & sass.OPCODE in _STORES)
    if not n_stores or any(each & sass.OPCODE in _READS for each in executed):
        return 0
    return n_stores if all(_leaves_shared_memory(each & sass.FULL_OPCODE) for each in executed) else None


def _leaves_shared_memory(full: int) -> bool:
    """Return whether an instruction, by its full opcode, is known not to read shared memory, nor to call what may."""
    opcode = full & sass.OPCODE
    if opcode in sass.CONTROL:
        return opcode in sass.WITHIN_FUNCTION or full == sass.CALL_NEARBY
    return opcode < _FROM_MEMORY_ON or opcode in _OF_OTHER_MEMORY
