"""What an instruction waits for: those before it whose scoreboards it waits on; and which loads are under way meanwhile.

An instruction whose latency varies (a load, a special function) counts a scoreboard up when it is issued, and down when it has
its result or has read its operands. Whoever needs either waits until the scoreboards in its wait mask are at zero. A warp has six.

Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), 2.1: the control bits of an
instruction of 128 bits. Opcodes and offsets of branches: recorded code of compute capability 7.5 to 9.0, beside its SASS; known
programs, compiled for 7.5 to 12.1. Barriers: the suite's kernels, recorded on an H100.
"""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

INSTRUCTION_BYTES = 16

_WORDS = struct.Struct("<QQ")
_OPCODE, _BRANCH, _EXIT, _RETURN = 0x1FF, 0x147, 0x14D, 0x150
_WAIT_FOR_COPIES, _ASYNC_COPY = 0x11A, 0x1AE
"""DEPBAR and LDGSTS. The one waits for groups of the other, without a wait mask; what follows is where warps are found waiting."""

_BARRIER, _WARP_GROUP = 0x11D, 0x1C5
"""BAR, of a block, and WARPGROUP, which waits for matrix products."""

_LOADS = (0x180, 0x181, 0x183)
"""LD, LDG and LDL: loads into registers that L1 answers."""

_ATOMICS = (0x18A, 0x18B, 0x1A8, 0x1A9)
"""ATOM and ATOMG, plain and compare-and-swap: of global memory, with a result."""

_ALWAYS = 7
"""The predicate PT, not negated."""

_VOLTA, _HOPPER = 70, 90

_N_SCOREBOARDS = 6
_MOST_BRANCHES = 64
"""To one instruction, and what a search follows of them: code can be hostile."""

_MOST_PASSES = 4
"""Over the code of a function: one, another for its loops, and rarely more."""

_MANY = 1 << 20


class Scoreboards:
    """The instructions of one function by number, and which of them each waits for.

    Args:
        code: the function's machine code.
        compute_capability: that it was compiled for, 86 for 8.6. Before 7.0 instructions are others; nothing is told of them.
        steps: of which each search takes one for each instruction that it passes; where they end, it ends.
    """

    def __init__(self, code: bytes, compute_capability: int, steps: Iterator[object]) -> None:
        n_bytes = len(code) // INSTRUCTION_BYTES * INSTRUCTION_BYTES if compute_capability >= _VOLTA else 0
        self._words: list[tuple[int, int]] = list(_WORDS.iter_unpack(code[:n_bytes]))
        self._steps = steps
        self._awaited: dict[int, list[int]] = {}
        self._branches: dict[int, list[int]] = defaultdict(list)
        is_hopper = compute_capability >= _HOPPER
        for number, (low, high) in enumerate(self._words):
            if low & _OPCODE == _BRANCH:
                sources = self._branches[number + 1 + _offset(low, high, is_hopper)]
                if len(sources) < _MOST_BRANCHES:
                    sources.append(number)

    def awaited_by(self, number: int) -> list[int]:
        """Return the instructions that an instruction waits for, the nearest before it first; none where that is not known."""
        if number not in self._awaited and 0 <= number < len(self._words):
            by_distance = sorted(self._searched(number))
            self._awaited[number] = list(dict.fromkeys(found for _, found in by_distance))
        return self._awaited.get(number, [])

    def barriers_before(self, number: int) -> list[int]:
        """Return the barriers that a warp can be waiting at which is found at an instruction, the nearest before it first.

        BAR.SYNC.DEFER_BLOCKING is issued, and the warp found where it may not go on: behind it, or at the next access to memory.
        What waits for matrix products is found waiting at a barrier as well, and there is none.
        """
        if not 0 <= number < len(self._words) or self._opcode(number) == _WARP_GROUP:
            return []
        return [found for _, found in sorted(self._search(number, self._is(_BARRIER), self._is(_BARRIER)))]

    def loads_in_flight(self, number: int) -> int:
        """Return how many loads are under way while an instruction waits for one: issued before it, not waited for since.

        Of several ways to it that with fewest; 0 where it waits for something else, or that is not known.
        """
        if not any(self._opcode(each) in _LOADS for each in self.awaited_by(number)):
            return 0
        return max(1, self._n_loads[number])

    def waits_for_atomic(self, number: int) -> bool | None:
        """Return whether an instruction waits for the result of an atomic on global memory; None where it is not known for what."""
        awaited = self.awaited_by(number)
        return any(self._opcode(each) in _ATOMICS for each in awaited) if awaited else None

    @cached_property
    def _n_loads(self) -> list[int]:
        """How many loads are under way at each instruction."""
        loads = [number for number, (low, _) in enumerate(self._words) if low & _OPCODE in _LOADS]
        boards = {self._words[number][1] >> 46 & 7 for number in loads} & set(range(_N_SCOREBOARDS))
        by_board = [self._fewest_loads(board) for board in sorted(boards)]
        return list(map(sum, zip(*by_board, strict=True))) or [0] * len(self._words)

    def _fewest_loads(self, board: int) -> list[int]:
        """Return how many loads have counted a scoreboard up since it was waited for, on the way to each that has fewest.

        From the beginning to the end of the code, and again while branches back bring fewer.
        """
        loads = [low & _OPCODE in _LOADS and high >> 46 & 7 == board for low, high in self._words]
        waits = [high >> 52 + board & 1 for _, high in self._words]
        at, after = [_MANY] * len(loads), [_MANY] * len(loads)
        for _ in range(_MOST_PASSES):
            known = list(at)
            deque(islice(self._steps, len(loads)), maxlen=0)
            for number, before in enumerate(self._before):
                at[number] = n_loads = min([after[each] for each in before], default=0)
                after[number] = loads[number] if waits[number] else n_loads + loads[number]
            if at == known or next(self._steps, None) is None:
                break
        return [n_loads if n_loads < _MANY else 0 for n_loads in at]

    def _searched(self, number: int) -> Iterator[tuple[int, int]]:
        mask = self._waits(number)
        for board in range(_N_SCOREBOARDS):
            if mask >> board & 1:
                yield from self._search(number, self._counts(board), self._waits_on(board))
        if not mask and number and self._opcode(number - 1) == _WAIT_FOR_COPIES:
            yield from self._search(number - 1, self._is(_ASYNC_COPY), self._is(_WAIT_FOR_COPIES))

    def _search(
        self, start: int, is_found: Callable[[int], bool], is_end: Callable[[int], bool]
    ) -> Iterator[tuple[int, int]]:
        """Yield how far before an instruction lies what is found on all ways to it, and its number, back to where each way ends."""
        seen = set(self._before[start])
        ahead = deque((1, each) for each in seen)
        while ahead and next(self._steps, None) is not None:
            distance, number = ahead.popleft()
            if is_found(number):
                yield distance, number
            if not is_end(number):
                before = [each for each in self._before[number] if each not in seen]
                seen.update(before)
                ahead.extend((distance + 1, each) for each in before)

    @cached_property
    def _before(self) -> list[list[int]]:
        """The instructions after which each can come. Calls return; paths that diverged meet in the order of the code."""
        found = [self._branches.get(number, []) for number in range(len(self._words))]
        for number in range(1, len(found)):
            if self._goes_on(number - 1):
                found[number] = [number - 1, *found[number]]
        return found

    def _goes_on(self, number: int) -> bool:
        low, high = self._words[number]
        opcode, is_predicated = low & _OPCODE, low >> 12 & 15 != _ALWAYS
        if opcode == _BRANCH:
            return is_predicated or high >> 23 & 15 != _ALWAYS
        return is_predicated or opcode not in (_EXIT, _RETURN)

    def _opcode(self, number: int) -> int:
        return self._words[number][0] & _OPCODE

    def _waits(self, number: int) -> int:
        return self._words[number][1] >> 52 & 63

    def _is(self, opcode: int) -> Callable[[int], bool]:
        return lambda number: self._opcode(number) == opcode

    def _waits_on(self, board: int) -> Callable[[int], bool]:
        return lambda number: bool(self._waits(number) >> board & 1)

    def _counts(self, board: int) -> Callable[[int], bool]:
        """Return whether an instruction counts a scoreboard: until its result is there, or until its operands are read."""
        return lambda number: board in (self._words[number][1] >> 46 & 7, self._words[number][1] >> 49 & 7)


def _offset(low: int, high: int, is_hopper: bool) -> int:
    """Return how far behind the next instruction a branch leads: bits 34 to 81 in words of 4 bytes, since 9.0 and bits 16 to 23."""
    words, n_bits = low >> 34 | (high & 0x3FFFF) << 30, 48
    if is_hopper:
        words, n_bits = words << 8 | low >> 16 & 255, n_bits + 8
    signed = words - (1 << n_bits) if words >> n_bits - 1 else words
    return signed * 4 // INSTRUCTION_BYTES
