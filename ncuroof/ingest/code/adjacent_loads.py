"""Finds loads of neighbouring elements: narrow loads that one wide load could replace.

A thread that works on consecutive elements loads them one by one unless their type or a vector type says that they are aligned:
the compiler then emits loads with the same address register at offsets that follow each other.

Source: width, address register and offset of LD and LDG: 1 169 loads in recorded code for compute capability 7.5 to 9.0, compared
with its SASS.
"""

from __future__ import annotations

from ncuroof.ingest.code.sass import CONTROL, GLOBAL_LOADS, LOADED_BYTES, OPCODE, STORES, words

_WIDEST = LOADED_BYTES[-1]


def adjacent_share(code: bytes, compute_capability: int) -> float | None:
    """Return the share of a function's loads from global memory that read right beside another load of their width.

    Loads of 16 bytes, the widest there are, never count as such. Each load counts once, however often it is executed. None if the
    function has no loads, or its code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and the result is None.
    """
    n_loads = 0
    groups: list[tuple[int, set[int]]] = []
    # Offsets, by address register and width, since that register was written.
    open_groups: dict[tuple[int, int], set[int]] = {}
    for low, high in words(code, compute_capability):
        opcode, result = low & OPCODE, low >> 16 & 0xFF
        if opcode in GLOBAL_LOADS:
            n_loads += 1
            width = LOADED_BYTES[min(high >> 9 & 7, len(LOADED_BYTES) - 1)]
            group = open_groups.setdefault((low >> 24 & 0xFF, width), set())
            if not group:
                groups.append((width, group))
            group.add(_signed(low >> 40))
        if opcode in CONTROL:
            open_groups.clear()
        elif opcode not in STORES:
            written = (result, result - 1)  # addresses take a pair of registers
            open_groups = {key: group for key, group in open_groups.items() if key[0] not in written}
    return sum(_n_adjacent(offsets, width) for width, offsets in groups) / n_loads if n_loads else None


def _n_adjacent(offsets: set[int], width: int) -> int:
    """Return how many of the loads at these offsets have another one right before or behind them."""
    if width == _WIDEST:
        return 0
    return sum(offset - width in offsets or offset + width in offsets for offset in offsets)


def _signed(bits: int) -> int:
    """Return a number of 24 bits in two's complement."""
    return bits - (1 << 24) if bits >> 23 else bits
