"""Finds asynchronous copies that are awaited before anything is done meanwhile: loops that copy, wait and only then compute.

A copy to shared memory (LDGSTS, cp.async) runs beside the instructions that follow it until one waits for its group (DEPBAR). It
hides its latency only where there is work in between. Work is what is computed from tiles: floating-point arithmetic, matrix
products, and loads from shared memory, which they begin with. Integer arithmetic is not: addresses are computed by it, too.

Source: PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy". Encodings: recorded code for compute capability
8.0 to 9.0, and known programs that nvcc 13.0 compiled for 8.0 to 12.0, compared with their SASS.
"""

from __future__ import annotations

import re

from ncuroof.ingest.code import sass
from ncuroof.ingest.code.control_flow import loops, reached, successors

_MOST_BYTES = 1 << 20
"""Longer functions are not searched. A large kernel has 0.1 MB."""

_COPY = re.compile(re.escape(bytes([sass.ASYNC_COPY & 0xFF])))

_COMPUTING = (*sass.ARITHMETIC, *sass.MATRIX_PRODUCTS)

_HIDING = (sass.CALL, sass.CALL_ABSOLUTE, sass.WARP_GROUP, *sass.WARP_GROUP_PRODUCTS)
"""Calls, whose functions are not searched, and products that run asynchronously themselves: work may be hidden in them."""

_JUMPS = {*sass.CONTROL} - {*sass.WITHIN_FUNCTION, sass.BARRIER, sass.CALL, sass.CALL_ABSOLUTE} | {sass.INDEXED_BRANCH}
"""Control flow whose targets are not known."""


def serial_copies(code: bytes, compute_capability: int) -> int | None:
    """Return how many copies of a function are awaited before their loop does any work; 0 if any overlap with work.

    Each counts once, however often it is executed. Copies outside of the loops that compute do not count. None if copies are
    awaited at barriers in shared memory (mbarrier), if warps of a block may take turns at copying and computing, if the control
    flow is not clear, or if the code is not known.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 8.0 there are no such copies.
    """
    if not code or compute_capability < sass.VOLTA:
        return None
    if not _COPY.search(code) or compute_capability < sass.AMPERE:
        return 0
    if len(code) % sass.INSTRUCTION_BYTES or len(code) > _MOST_BYTES:
        return None
    return _Copies(code, compute_capability).n_serial()


class _Copies:
    """The instructions of a function by what they mean for its copies, by number from 0."""

    def __init__(self, code: bytes, compute_capability: int) -> None:
        self._words = list(sass.words(code, compute_capability))
        self._after = successors(self._words, compute_capability)
        opcodes = [low & sass.OPCODE if low >> 12 & 15 != sass.NEVER else None for low, _ in self._words]
        self._opcodes = set(opcodes)
        self._copies = _numbers_of(opcodes, sass.ASYNC_COPY)
        self._waits = {
            each for each in _numbers_of(opcodes, sass.WAIT_FOR_COPIES) if sass.is_wait_for_copies(self._low_word(each))
        }
        self._barriers = _numbers_of(opcodes, sass.BARRIER)
        self._computing = _numbers_of(opcodes, *_COMPUTING)
        self._work = self._computing | _numbers_of(opcodes, *sass.SHARED_LOADS)
        self._hiding = _numbers_of(opcodes, *_HIDING)

    def n_serial(self) -> int | None:
        """Return `serial_copies`."""
        if not self._copies:
            return 0
        if self._opcodes & {*sass.MBARRIER, *_JUMPS}:
            return None
        computing = [loop for loop in loops(self._after, range(len(self._words))) if loop & self._computing]
        found = [self._n_serial_in_loop(loop) for loop in computing if loop & self._copies]
        if 0 in found:
            return 0
        # A loop with barriers that does not copy may be that of other warps, which compute meanwhile.
        has_others = any(loop & self._barriers and not loop & self._copies for loop in computing)
        return None if None in found or (found and has_others) else sum(filter(None, found))

    def _n_serial_in_loop(self, loop: frozenset[int]) -> int | None:
        """Return the number of copies in a loop that copies and computes if all are awaited at once, else 0; None if not clear."""
        waits = loop & self._waits
        if not waits or any(sass.n_groups_left(self._low_word(each)) for each in waits):
            return 0
        copies = loop & self._copies
        in_flight = reached(copies, self._after, lambda each: each in waits or each not in loop)
        if in_flight & self._work:
            return 0
        # Without the waits there is no way around the loop, unless warps that do not copy compute meanwhile.
        around = loops(self._after, loop - waits)
        takes_turns = any(each & self._computing and each & self._barriers for each in around)
        return None if takes_turns or loop & self._hiding else len(copies)

    def _low_word(self, number: int) -> int:
        return self._words[number][0]


def _numbers_of(opcodes: list[int | None], *wanted: int) -> set[int]:
    """Return the numbers of the instructions with one of these opcodes."""
    return {number for number, opcode in enumerate(opcodes) if opcode in wanted}
