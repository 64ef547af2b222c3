"""The control flow of a function: the instructions that can follow each one, and the loops that they form.

Source: branch offsets, and the kinds of branches: as the opcodes of `sass`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ncuroof.ingest.code import sass

_BY_UNIFORM_PREDICATE = 0x547
"""Full opcode of a branch by a predicate of the whole warp (BRA.U UP0, …)."""


def branch_offset(low: int, high: int, compute_capability: int) -> int:
    """Return the offset of a branch, in instructions from the next one.

    It is encoded in words of 4 bytes, in bits 34 to 81 and, from 9.0 on, also in bits 16 to 23 as its lowest byte.
    """
    words, n_bits = low >> 34 | (high & 0x3FFFF) << 30, 48
    if compute_capability >= sass.HOPPER:
        words, n_bits = words << 8 | low >> 16 & 255, n_bits + 8
    signed = words - (1 << n_bits) if words >> n_bits - 1 else words
    return signed * 4 // sass.INSTRUCTION_BYTES


def goes_on(low: int, high: int) -> bool:
    """Return whether execution can continue at the next instruction. Calls are assumed to return."""
    opcode, is_predicated = low & sass.OPCODE, low >> 12 & 15 != sass.ALWAYS
    if opcode == sass.BRANCH:
        by_lanes = low >> 32 & 2  # BRA.DIV and BRA.CONV ask whether lanes have parted
        by_warp = low & sass.FULL_OPCODE == _BY_UNIFORM_PREDICATE
        return is_predicated or bool(by_lanes) or by_warp or high >> 23 & 15 != sass.ALWAYS
    return is_predicated or opcode not in (sass.EXIT, sass.RETURN)


def successors(words: Sequence[tuple[int, int]], compute_capability: int) -> list[tuple[int, ...]]:
    """Return for each instruction, by number, those that can be executed next.

    Jumps to addresses that are computed at run time lead nowhere here.

    Args:
        words: `sass.words` of a function.
        compute_capability: its target, such as 86 for 8.6.
    """
    found = []
    for number, (low, high) in enumerate(words):
        next_ones = [number + 1] if goes_on(low, high) else []
        if low & sass.OPCODE == sass.BRANCH:
            next_ones.append(number + 1 + branch_offset(low, high, compute_capability))
        found.append(tuple(each for each in next_ones if 0 <= each < len(words)))
    return found


def loops(after: Sequence[Sequence[int]], within: Collection[int]) -> Iterator[frozenset[int]]:
    """Yield the outermost loops among the instructions `within`: sets of instructions that can all reach one another.

    Args:
        after: as returned by `successors`.
        within: numbers of instructions; paths through others do not count.

    Source: Kosaraju's algorithm (Sharir, Computers & Mathematics with Applications 7(1), 1981).
    """
    before: dict[int, list[int]] = {number: [] for number in within}
    for number in within:
        for each in after[number]:
            if each in before:
                before[each].append(number)
    left = set(within)

    def is_in_earlier_loop(each: int) -> bool:
        return each not in left

    for number in reversed(_by_completion(after, before)):
        if number in left:
            loop = reached([number], before, is_in_earlier_loop)
            left -= loop
            if len(loop) > 1 or number in after[number]:
                yield frozenset(loop)


def reached(
    starts: Iterable[int], after: Mapping[int, Sequence[int]] | Sequence[Sequence[int]], is_end: Callable[[int], bool]
) -> set[int]:
    """Return the instructions on all paths from the starts, starts included, without those at which a path ends."""
    ahead = [each for each in starts if not is_end(each)]
    found = set(ahead)
    while ahead:
        following = {each for each in after[ahead.pop()] if each not in found and not is_end(each)}
        found |= following
        ahead += following
    return found


def _by_completion(after: Sequence[Sequence[int]], within: Collection[int]) -> list[int]:
    """Return the instructions in the order in which a depth-first search leaves them."""
    seen: set[int] = set()
    done: list[int] = []
    for start in within:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(after[start]))]
        while path:
            number, following = path[-1]
            ahead = next((each for each in following if each in within and each not in seen), None)
            if ahead is None:
                done.append(number)
                path.pop()
            else:
                seen.add(ahead)
                path.append((ahead, iter(after[ahead])))
    return done
