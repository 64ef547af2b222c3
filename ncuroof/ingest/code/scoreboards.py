"""Finds the instructions that an instruction waits for, from the scoreboards it waits on, and the loads in flight at that point.

An instruction of variable latency (a load, a special function) increments a scoreboard when it is issued, and decrements it when it
has its result or has read its operands. An instruction that depends on either waits until the scoreboards in its wait mask are
zero. A warp has six scoreboards.

Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), 2.1: the control bits of a 128-bit
instruction. Barriers: the suite's kernels, recorded on an H100.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

from ncuroof.ingest.code import sass
from ncuroof.ingest.code.control_flow import branch_offset, goes_on
from ncuroof.ingest.code.registers import loads_of_address

_N_SCOREBOARDS = 6
_MOST_BRANCHES = 64
"""Branches recorded per target, and thus followed by a search; the limit guards against hostile code."""

_MOST_PASSES = 4
"""Passes over the code of a function: one, a second for loops, rarely more."""

_MANY = 1 << 20
"""Number of loads of an instruction that has not been reached yet."""


class Scoreboards:
    """The instructions of one function, by number from 0, and which of them each waits for.

    Args:
        code: the function's machine code.
        compute_capability: its target, such as 86 for 8.6. Below 7.0 the instruction encoding differs and nothing is found.
        steps: a step budget: a search consumes one item per instruction it visits, and stops when the iterator is exhausted.
    """

    def __init__(self, code: bytes, compute_capability: int, steps: Iterator[object]) -> None:
        self._words = list(sass.words(code, compute_capability))
        self._steps = steps
        self._awaited: dict[int, list[int]] = {}
        self._branches: dict[int, list[int]] = defaultdict(list)
        for number, (low, high) in enumerate(self._words):
            if low & sass.OPCODE == sass.BRANCH:
                sources = self._branches[number + 1 + branch_offset(low, high, compute_capability)]
                if len(sources) < _MOST_BRANCHES:
                    sources.append(number)

    def opcode(self, number: int) -> int | None:
        """Return the opcode of an instruction: its low nine bits; None if there is no such instruction."""
        return self._opcode(number) if 0 <= number < len(self._words) else None

    def awaited_by(self, number: int) -> list[int]:
        """Return the numbers of the instructions that an instruction waits for, nearest first; empty if not known."""
        if number not in self._awaited and 0 <= number < len(self._words):
            by_distance = sorted(self._searched(number))
            self._awaited[number] = list(dict.fromkeys(found for _, found in by_distance))
        return self._awaited.get(number, [])

    def barriers_before(self, number: int) -> list[int]:
        """Return the numbers of the barriers at which a warp sampled at this instruction can be waiting, nearest first.

        A warp issues BAR.SYNC.DEFER_BLOCKING and is sampled where it then has to stop: behind the barrier, or at the next memory
        access. A warp that waits for matrix products is sampled with a barrier stall too, although there is no barrier.
        """
        if not 0 <= number < len(self._words) or self._opcode(number) == sass.WARP_GROUP:
            return []
        return [
            found
            for _, found in sorted(self._search(number, self._has_opcode(sass.BARRIER), self._has_opcode(sass.BARRIER)))
        ]

    def loads_in_flight(self, number: int) -> int:
        """Return how many loads are in flight while an instruction waits for one: issued before it and not yet waited for.

        If several paths lead to it, the path with the fewest loads counts. 0 if it waits for something else, or if that is unknown.
        """
        if not any(self._opcode(each) in sass.LOADS for each in self.awaited_by(number)):
            return 0
        return max(1, self._n_loads[number])

    def addressed_by(self, number: int) -> list[int]:
        """Return the numbers of the loads from whose results the address of a load is computed, nearest first; empty if not known.

        For a load in a loop, only loads of the loop are returned: loads before it run once and cost little.
        """
        if not 0 <= number < len(self._words):
            return []
        found = loads_of_address(self._words, self._before, number, self._steps)
        is_in_loop = bool(found) and self._can_precede(number, number)
        return [each for each in found if not is_in_loop or self._can_precede(number, each)]

    def waits_for_atomic(self, number: int) -> bool | None:
        """Return whether an instruction waits for the result of a global atomic; None if it is not known what it waits for."""
        awaited = self.awaited_by(number)
        return any(self._opcode(each) in sass.ATOMICS_WITH_RESULT for each in awaited) if awaited else None

    def waits_for_copies(self, number: int) -> bool | None:
        """Return whether an instruction waits for asynchronous copies alone; None if it is not known what it waits for."""
        awaited = {self._opcode(each) for each in self.awaited_by(number)}
        if not 0 < number < len(self._words) or self._opcode(number - 1) != sass.WAIT_FOR_COPIES:
            return False if awaited else None
        return awaited == {sass.ASYNC_COPY} and sass.is_wait_for_copies(self._words[number - 1][0])

    @cached_property
    def _n_loads(self) -> list[int]:
        """Number of loads in flight at each instruction."""
        loads = [number for number, (low, _) in enumerate(self._words) if low & sass.OPCODE in sass.LOADS]
        boards = {self._words[number][1] >> 46 & 7 for number in loads} & set(range(_N_SCOREBOARDS))
        by_board = [self._fewest_loads(board) for board in sorted(boards)]
        return list(map(sum, zip(*by_board, strict=True))) or [0] * len(self._words)

    def _fewest_loads(self, board: int) -> list[int]:
        """Return for each instruction how many loads have incremented a scoreboard since it was last waited for.

        If several paths lead to an instruction, the one with the fewest loads counts. The code is passed from start to end, and
        again as long as backward branches lower a number.
        """
        loads = [low & sass.OPCODE in sass.LOADS and high >> 46 & 7 == board for low, high in self._words]
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
        if not mask and number and self._opcode(number - 1) == sass.WAIT_FOR_COPIES:
            yield from self._search(
                number - 1, self._has_opcode(sass.ASYNC_COPY), self._has_opcode(sass.WAIT_FOR_COPIES)
            )

    def _can_precede(self, number: int, other: int) -> bool:
        """Return whether an instruction can be executed before another one."""
        return next(self._search(other, number.__eq__, number.__eq__), None) is not None

    def _search(
        self, start: int, is_found: Callable[[int], bool], is_end: Callable[[int], bool]
    ) -> Iterator[tuple[int, int]]:
        """Search backwards on all paths that lead to an instruction; yield distance and number of each instruction found.

        Args:
            start: number of the instruction.
            is_found: whether to yield an instruction, by number.
            is_end: whether a path ends at an instruction, by number.
        """
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
        """The possible predecessors of each instruction.

        Calls are assumed to return, and diverged paths to reconverge in the order of the code.
        """
        found = [self._branches.get(number, []) for number in range(len(self._words))]
        for number in range(1, len(found)):
            if goes_on(*self._words[number - 1]):
                found[number] = [number - 1, *found[number]]
        return found

    def _opcode(self, number: int) -> int:
        return self._words[number][0] & sass.OPCODE

    def _waits(self, number: int) -> int:
        """Return the wait mask of an instruction: bit n is set if it waits for scoreboard n."""
        return self._words[number][1] >> 52 & 63

    def _has_opcode(self, opcode: int) -> Callable[[int], bool]:
        return lambda number: self._opcode(number) == opcode

    def _waits_on(self, board: int) -> Callable[[int], bool]:
        return lambda number: bool(self._waits(number) >> board & 1)

    def _counts(self, board: int) -> Callable[[int], bool]:
        """Return a predicate: whether an instruction increments a scoreboard, for its result or until its operands are read."""
        return lambda number: board in (self._words[number][1] >> 46 & 7, self._words[number][1] >> 49 & 7)
