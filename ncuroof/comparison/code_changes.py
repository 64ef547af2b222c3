"""Changes of the machine code of a match: registers, shared memory, spills, instructions by opcode.

If the code stayed the same, something else made the kernel slower or faster: the clocks, the input, or the machine.
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
_LAUNCH_PARAMETERS = ("grid", "block", "launch.shared_bytes_per_block")
"""Parameters of a launch, which the caller chooses."""

_LENGTH = "n_instructions"
_NEARLY_ALL = 0.9
"""Share of a change of time, in logarithms, from which on the clock is named as the only cause. A choice."""

_MOST_OPCODES = 6


class Code(str, Enum):
    """Whether two kernels have the same machine code."""

    SAME = "same"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CodeChange:
    """A change in the code of a match.

    Attributes:
        what: a quantity, "n_instructions", or "opcode." followed by an opcode.
        words: the same for people.
        before, after: its values per launch; for "n_instructions", those of the whole code. 0 for an opcode that was not executed.
    """

    what: str
    words: str
    before: float
    after: float

    @property
    def is_telling(self) -> bool:
        """Whether the change says what kind of work changed. Most opcodes do not, nor does the length of the code."""
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
    """Return whether two sides have the same code; unknown if a side has no code, or calls functions outside of its code."""
    sides = [{row["sha256"] for row in rows} for rows in (old, new)]
    if None in sides[0] | sides[1]:
        return Code.UNKNOWN
    if sides[0] != sides[1]:
        return Code.CHANGED
    return Code.SAME if all(row["is_whole"] for row in (*old, *new)) else Code.UNKNOWN


def code_changes(old: Sequence[Row], new: Sequence[Row]) -> tuple[CodeChange, ...]:
    """Return the changes from the code of one kernel to the code of another, as far as the reports show them.

    Resources come first, then executed opcodes, then the length of the code.
    """
    if len(old) != 1 or len(new) != 1:
        return ()
    before, after = old[0], new[0]
    return (
        *_amount_changes(before, after, _RESOURCES),
        *_opcode_changes(before["opcodes"], after["opcodes"]),
        *_amount_changes(before, after, ((_LENGTH, "instructions in the code"),)),
    )


def executed(row: Row, opcode: str) -> float | None:
    """Return how many warp instructions of an opcode a launch executes; None if they were not collected."""
    return None if row["opcodes"] is None else float(_counts(row["opcodes"])[opcode])


def _amount_changes(before: Row, after: Row, quantities: Sequence[tuple[str, str]]) -> Iterator[CodeChange]:
    least = load_comparison_rules().code.least_resource_ratio
    for name, words in quantities:
        was, became = before[name], after[name]
        if was is not None and became is not None and max(was, became) >= least * min(was, became) and was != became:
            yield CodeChange(name, words, float(was), float(became))


def _opcode_changes(before: str | None, after: str | None) -> list[CodeChange]:
    """Return the opcodes that a launch executes considerably more or less often.

    Opcodes that say what kind of work changed come first, and among them the largest difference.
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
    """Parse executed instructions by opcode, as `instances_text` writes them."""
    words = text.split()
    return Counter({opcode: int(count) for opcode, count in zip(words[::2], words[1::2], strict=True)})


def _count(value: float) -> str:
    return "none" if not value else formatting.scaled(value)


def cause_under_same_code(before: MatchedGroups, after: MatchedGroups, clock_frac: float, *, is_explained: bool) -> str:
    """Return the cause of a change of time under unchanged code, as far as the counters show it.

    The clock is not the cause if it accounts for little of the change, nor are DRAM bytes that moved the opposite way.

    Args:
        before: groups of the match before.
        after: groups of the match after.
        clock_frac: change of the SM clock.
        is_explained: whether a changed amount of work or traffic explains the change of time.
    """
    rules = load_comparison_rules()
    launches = [[row[size] for row in side.rows for size in _LAUNCH_PARAMETERS] for side in (before, after)]
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
