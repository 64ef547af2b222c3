"""Counts arithmetic, loads and conversions in a kernel's machine code: each instruction once, however often it is executed."""

from __future__ import annotations

from collections import Counter

from ncuroof.ingest.code import sass

_KINDS = {
    **sass.ARITHMETIC,
    **dict.fromkeys((*sass.GLOBAL_LOADS, sass.ASYNC_COPY), "global_load"),
    **dict.fromkeys(sass.SHARED_LOADS, "shared_load"),
    **dict.fromkeys(sass.CONVERSIONS, "conversion"),
}
_UNKNOWN = "beyond_integers"
"""Instructions that are not known to be without floating-point arithmetic: it, tensor instructions, atomics, calls."""

OPERATIONS = (*dict.fromkeys(_KINDS.values()), *sass.MUFU_FUNCTIONS.values(), _UNKNOWN)

_WITHOUT_FLOATS = {
    *sass.MOVES_AND_INTEGERS,
    *sass.LOADS_AND_STORES,
    sass.BARRIER,
    *sass.WITHIN_FUNCTION,
}


def operations_in(code: bytes, compute_capability: int) -> dict[str, int] | None:
    """Return how many instructions of each of the OPERATIONS a function has.

    None if its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if not code or compute_capability < sass.VOLTA:
        return None
    found = dict.fromkeys(OPERATIONS, 0)
    low, high, functions = (code[byte :: sass.INSTRUCTION_BYTES] for byte in (0, 1, sass.REGISTER_BYTE))
    for (first, second, function), n in Counter(zip(low, high, functions, strict=False)).items():
        if second >> 4 == sass.NEVER:
            continue
        opcode = (first | second << 8) & sass.OPCODE
        is_mufu = opcode == sass.MUFU
        operation = sass.MUFU_FUNCTIONS.get(function >> 2 & 15) if is_mufu else _KINDS.get(opcode)
        if operation is not None:
            found[operation] += n
        if opcode not in _WITHOUT_FLOATS:
            found[_UNKNOWN] += n
    return found
