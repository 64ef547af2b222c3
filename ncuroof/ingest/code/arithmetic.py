"""Counts arithmetic instructions in a kernel's machine code: each once, however often it is executed.

Source: CUDA Binary Utilities, "Instruction Set Reference" (FADD, FMUL, FFMA, DADD, DMUL, DFMA, MUFU). Opcodes and functions of
MUFU: recorded code for compute capability 8.0 and 8.9, compared with its SASS.
"""

from __future__ import annotations

from collections import Counter

_OPERATIONS = {0x20: "fmul", 0x21: "fadd", 0x23: "ffma", 0x28: "dmul", 0x29: "dadd", 0x2B: "dfma"}
"""Operation by opcode."""

_MUFU = 0x108
_FUNCTIONS = {6: "rcp64h", 7: "rsq64h"}
"""Operation by function of MUFU: the first approximation of an FP64 reciprocal, and of a reciprocal square root."""

OPERATIONS = (*_OPERATIONS.values(), *_FUNCTIONS.values())

_INSTRUCTION_BYTES, _FUNCTION_BYTE = 16, 9
_VOLTA = 70


def operations_in(code: bytes, compute_capability: int) -> dict[str, int] | None:
    """Return how many instructions of each of the OPERATIONS a function has.

    None if its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    if not code or compute_capability < _VOLTA:
        return None
    found = dict.fromkeys(OPERATIONS, 0)
    low, high, functions = (code[byte::_INSTRUCTION_BYTES] for byte in (0, 1, _FUNCTION_BYTE))
    for (first, second, function), n in Counter(zip(low, high, functions, strict=False)).items():
        opcode = first | (second & 1) << 8
        operation = _FUNCTIONS.get(function >> 2 & 15) if opcode == _MUFU else _OPERATIONS.get(opcode)
        if operation is not None:
            found[operation] += n
    return found
