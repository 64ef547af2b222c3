"""Whether the machine code of a match changed, and what in it: registers, shared memory, spills, instructions by opcode.

Code that stayed the same did not make a kernel slower: the clocks did, the input, or the machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ncuroof import formatting
from ncuroof.comparison.matched_groups import DRAM_BYTES, INSTRUCTIONS, MatchedGroups, Row
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.metrics.catalogue import quantity_unit

_RESOURCES = (
    ("launch.n_registers_per_thread", "registers per thread"),
    ("launch.shared_bytes_per_block", "shared memory per block"),
    ("access.local_bytes", "local memory (spills, indexed arrays)"),
)
_OF_A_LAUNCH = ("grid", "block", "launch.shared_bytes_per_block")
"""What the caller chooses, and not the code."""

_LENGTH = "n_instructions"
_NEARLY_ALL = 0.9
"""Least share of a change of time (logarithms) that the clock accounts for, for it to be named alone (a choice)."""

_MOST_OPCODES = 6


class Code(str, Enum):
    """Whether two kernels have the same machine code."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CodeChange:
    """What changed in the code of a match.

    Attributes:
        what: a quantity, "n_instructions", or "opcode." and an opcode.
        words: what to call it.
        before, after: a launch's, or of the whole code; 0 for an opcode that was not executed.
    """

    what: str
    words: str
    before: float
    after: float

    @property
    def is_telling(self) -> bool:
        """Whether it says what kind of work changed: most opcodes do not, nor does the length of the code."""
        kind, _, opcode = self.what.partition("opcode.")
        return opcode in load_comparison_rules().code.words if not kind else self.what != _LENGTH

    @property
    def sentence(self) -> str:
        """The change in words: "registers per thread 76 → 64"."""
        if self.what.startswith("opcode."):
            return f"{self.words} {_count(self.before)} → {_count(self.after)}"
        values = (self.before, self.after)
        if self.what == _LENGTH:
            return f"{self.words} {' → '.join(f'{value:.0f}' for value in values)}"
        return f"{self.words} {' → '.join(formatting.quantity(value, quantity_unit(self.what)) for value in values)}"


def code_of_match(old: Sequence[Row], new: Sequence[Row]) -> Code:
    """Return whether the groups of two sides have the same code; unknown where one has none, or calls functions elsewhere."""
    sides = [{row["sha256"] for row in rows} for rows in (old, new)]
    if None in sides[0] | sides[1]:
        return Code.UNKNOWN
    if sides[0] != sides[1]:
        return Code.CHANGED
    return Code.SAME if all(row["is_whole"] for row in (*old, *new)) else Code.UNKNOWN


def code_changes(old: Sequence[Row], new: Sequence[Row]) -> tuple[CodeChange, ...]:
    """Return what changed from the code of one kernel to that of another, of what the reports say.

    Resources come first, then executed opcodes, then the length of the code.
    """
    if len(old) != 1 or len(new) != 1:
        return ()
    before, after = old[0], new[0]
    return (
        *_of_amounts(before, after, _RESOURCES),
        *_of_opcodes(before["opcodes"], after["opcodes"]),
        *_of_amounts(before, after, ((_LENGTH, "instructions in the code"),)),
    )


def executed(row: Row, opcode: str) -> float | None:
    """Return how many warp instructions of an opcode a launch executes; None where they were not collected."""
    return None if row["opcodes"] is None else float(_counts(row["opcodes"])[opcode])


def _of_amounts(before: Row, after: Row, quantities: Sequence[tuple[str, str]]) -> Iterator[CodeChange]:
    least = load_comparison_rules().code.least_resource_ratio
    for name, words in quantities:
        was, became = before[name], after[name]
        if was is not None and became is not None and max(was, became) >= least * min(was, became) and was != became:
            yield CodeChange(name, words, float(was), float(became))


def _of_opcodes(before: str | None, after: str | None) -> list[CodeChange]:
    """Return the opcodes of which a launch executes considerably more or fewer.

    Those that say what kind of work it is come first, of these the largest difference.
    """
    if before is None or after is None:
        return []
    rules = load_comparison_rules().code
    was, became = _counts(before), _counts(after)
    totals = sum(was.values()), sum(became.values())
    if not all(totals):
        return []
    found = []
    for opcode in was.keys() | became.keys():
        shares = was[opcode] / totals[0], became[opcode] / totals[1]
        amounts = sorted((was[opcode], became[opcode]))
        if max(shares) >= rules.least_opcode_frac and amounts[1] >= rules.least_opcode_ratio * amounts[0]:
            words = rules.words.get(opcode)
            found.append(
                CodeChange(
                    f"opcode.{opcode}",
                    f"executed {opcode}{f' ({words})' if words else ''}",
                    float(was[opcode]),
                    float(became[opcode]),
                )
            )
    found.sort(
        key=lambda change: (
            not change.is_telling,
            -abs(change.after - change.before),
            change.what,
        )
    )
    return found[:_MOST_OPCODES]


def _counts(text: str) -> Counter[str]:
    """Return executed instructions by opcode, of a text as of `instances_text`."""
    words = text.split()
    return Counter({opcode: int(count) for opcode, count in zip(words[::2], words[1::2], strict=True)})


def _count(value: float) -> str:
    return "none" if not value else formatting.scaled(value)


def same_code_words(before: MatchedGroups, after: MatchedGroups, clock_frac: float, *, is_explained: bool) -> str:
    """Return where a change of time comes from that the code cannot be the cause of, as far as the counters show it.

    A clock that can account for little of the change is not its cause, nor are bytes that moved the other way.

    Args:
        before: groups of the match before.
        after: groups of the match after.
        clock_frac: change of the SM clock.
        is_explained: whether an amount of work or traffic explains the change.
    """
    rules = load_comparison_rules()
    launches = [[row[size] for row in side.rows for size in _OF_A_LAUNCH] for side in (before, after)]
    if launches[0] != launches[1]:
        return "another launch: grid, block or shared memory"
    n_executed = _ratio(before.amount(INSTRUCTIONS), after.amount(INSTRUCTIONS))
    if n_executed is not None and abs(n_executed - 1) > rules.work.same_input_ratio - 1:
        return f"another input: instructions executed ×{n_executed:.3g}"
    time = math.log(_ratio(before.amount("mean_ns"), after.amount("mean_ns")) or 1.0)
    of_clock = -math.log1p(clock_frac) / (time or math.inf)
    if abs(clock_frac) > rules.code.least_clock_frac and of_clock >= rules.least_part_frac:
        how = ", in part" if of_clock < _NEARLY_ALL else ""
        return f"the SM clock{how}: {'+' if clock_frac > 0 else '−'}{formatting.share(abs(clock_frac))}"
    moved = _ratio(before.amount(DRAM_BYTES), after.amount(DRAM_BYTES))
    if moved is not None and abs(moved - 1) > rules.code.least_traffic_frac and (moved > 1) == (time > 0):
        return f"its arguments, its data or what the caches held: DRAM bytes ×{moved:.3g}"
    if is_explained:
        return "its arguments or its data"
    return "no counted quantity: memory clock, temperature, placement or other work on the GPU may differ"


def _ratio(was: float | None, became: float | None) -> float | None:
    return became / was if was and became else None
