"""Which indices of thread and block the code of a kernel never reads: threads that differ in these alone do the same.

Source: CUDA Binary Utilities, "Instruction Set Reference" (S2R, S2UR: special register to register). Opcodes and numbers of special
registers: programs of known reads, compiled for 7.5 to 12.1.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import CodeModule, kernel_spans, located
from ncuroof.ingest.container import Container
from ncuroof.ingest.stored import Content
from ncuroof.ingest.wire import WireError

INDICES = {
    0x21: "launch__block_dim_x",
    0x22: "launch__block_dim_y",
    0x23: "launch__block_dim_z",
    0x25: "launch__grid_dim_x",
    0x26: "launch__grid_dim_y",
    0x27: "launch__grid_dim_z",
}
"""By special register (SR_TID.X to SR_CTAID.Z), the counter of the extent along which it numbers threads or blocks."""

BY_LANE = "by_lane"
"""Stands beside the extents where the code exchanges values within warps: threads of one warp differ then without an index."""

_READS = (0x119, 0x1C3)
"""S2R and S2UR."""

_OTHERWISE_DIFFERENT = (0x02F, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, 0x1A6, 0x1A8, 0x1A9)
"""ELECT, which chooses a lane, and ATOM, ATOMS, RED, REDG and ATOMG, of which every thread has its own."""

_LANE_WISE = (0x037, 0x03A, 0x03B, 0x03C, 0x03F, 0x07A, 0x189)
"""IMMA, LDSM, HMMA, DMMA, QMMA and their like, and SHFL: what a lane holds depends on which of the warp it is."""

_CLOCKS = (0x005, 0x0CB)
"""CS2R and its like, which read clocks: every thread has its own. They also write zeros, by the register SRZ."""

_ZERO = 0xFF

_CALLS_ELSEWHERE = 0x143
"""CALL.ABS: what a function of another section reads is not looked up."""

_CALL, _CALL_NEARBY = 0x144, 0x944
"""CALL.REL, and that to a constant offset, which stays in the section."""

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

_MOST_LOOKED_AT = 1_000
"""Launches: of more, those that come first."""

_MOST_BYTES = 1 << 26
"""Of the code of all functions together. Large kernels have 0.1 MB."""

_N_FUNCTIONS, _N_MODULES = 4_096, 16
"""Of which what was found, and the sections, are kept for further launches."""


def unread_indices(
    content: Content, container: Container, modules: Mapping[int, CodeModule], rows: Iterable[int]
) -> tuple[frozenset[str] | None, ...]:
    """Return of each workload the extents along which its code reads no index, and BY_LANE; None where that is not known.

    Not known where the report holds no code, or threads can differ by anything else: atomics, numbers of lanes, calls.

    Args:
        content: the report's bytes.
        container: its blocks.
        modules: the code that it stores.
        rows: of the workloads, those first that are wanted most.
    """
    if modules and not any(module.image for module in modules.values()):
        return ()
    spans = list(kernel_spans(container))
    found: list[frozenset[str] | None] = [None] * len(spans)
    n_left = _MOST_BYTES

    image_of = lru_cache(_N_MODULES)(_image)

    @lru_cache(_N_FUNCTIONS)
    def unread(module: CodeModule, function: bytes) -> frozenset[str] | None:
        nonlocal n_left
        image = image_of(module)
        if image is None or n_left <= 0:
            return None
        code = image.code(function)
        n_left -= len(code)
        return unread_in(code, image.compute_capability)

    for row in islice(rows, _MOST_LOOKED_AT):
        span = spans[row]
        kernel = None if span is None else located(content, span, modules)
        if kernel is not None:
            found[row] = unread(*kernel)
    return tuple(found) if any(found) else ()


def _image(module: CodeModule) -> Image | None:
    """Return the image of a module, or None where it has none, or it is malformed."""
    with contextlib.suppress(WireError):
        if module.image:
            return Image(module.image)
    return None


def unread_in(code: bytes, compute_capability: int) -> frozenset[str] | None:
    """Return the extents along which a function reads no index, and BY_LANE; None where its threads can differ by anything else.

    Args:
        code: its machine code.
        compute_capability: that it was compiled for, 86 for 8.6. Before 7.0 instructions are others, and nothing is told.
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
