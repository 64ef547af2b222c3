"""Counts arithmetic instructions in a kernel's machine code: each once, however often it is executed."""

from __future__ import annotations

from collections import Counter

from ncuroof.ingest.code import sass

OPERATIONS = (*sass.ARITHMETIC.values(), *sass.MUFU_FUNCTIONS.values())


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
        opcode = (first | second << 8) & sass.OPCODE
        is_mufu = opcode == sass.MUFU
        operation = sass.MUFU_FUNCTIONS.get(function >> 2 & 15) if is_mufu else sass.ARITHMETIC.get(opcode)
        if operation is not None:
            found[operation] += n
    return found
