"""The rules of comparing, read from `profiles/comparison.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ncuroof import formatting
from ncuroof.resources import profile_file

STALLS = "stalls."
"""Begins the names of shares of what warps wait for."""

WARPS, ISSUED, ACTIVE, WORKING, FILLED, RESIDENT = (
    "scheduler.n_active_warps",
    "scheduler.issue_per_cycle",
    "scheduler.sm_active_frac",
    "scheduler.working_frac",
    "occupancy.filled_frac",
    "occupancy.resident_blocks",
)
OF_THE_GPU = ("utilisation.dram", "utilisation.l2")
"""Utilisations of units that all SMs share; all others are averages over the SMs."""

LIMITING = (*OF_THE_GPU, "scheduler.l1_busy_frac", "scheduler.compute_busy_frac")
"""How busy the units are that can limit a kernel, those of SMs while SMs have work."""

STATE = (WARPS, ISSUED, ACTIVE, WORKING, FILLED, RESIDENT, *LIMITING)
"""Quantities of a kernel that tell whether a unit limits it, and how long a warp takes from one instruction to the next."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How much launches differ by chance.

    Attributes:
        jitter_ns: standard deviation of a launch's time, whatever its length.
        deviation_frac: standard deviation of a launch's time, as a share of it.
        least_change_frac: a smaller change between two runs is none.
        n_standard_errors: a change counts where it exceeds so many standard errors.
        n_launches_to_estimate: from so many launches on their own deviation counts.
        clock_difference_frac: clocks that differ by more make times incomparable.
        matters_frac: a change that matters: a match of which such a one can be neither seen nor ruled out is ambiguous.
        most_clock_power: unless the times differ by more than the ratio of the clocks to this power.
        least_line_frac: a line whose time changed by a smaller share of the kernel's is not reported.
    """

    jitter_ns: float
    deviation_frac: float
    least_change_frac: float
    n_standard_errors: float
    n_launches_to_estimate: int
    clock_difference_frac: float
    matters_frac: float
    most_clock_power: float
    least_line_frac: float


@dataclass(frozen=True, slots=True)
class WorkTolerances:
    """How far work may be apart, as a ratio of the larger over the smaller; `profiles/comparison.toml` gives the reasons.

    Attributes:
        same_input_ratio: launches of one kernel with the same input.
        one_group_ratio: launches whose times deviate by chance alone.
        same_problem_ratio: launches of the same problem, launched otherwise.
        same_place_frac: what takes a kernel's place and does the same, as a share of the larger.
        cut_ratio: the same work cut into other launches, in all.
        most_ratio: another algorithm for the same input.
        most_traffic_ratio: DRAM bytes of what takes a kernel's place.
    """

    same_input_ratio: float
    one_group_ratio: float
    same_problem_ratio: float
    same_place_frac: float
    cut_ratio: float
    most_ratio: float
    most_traffic_ratio: float


@dataclass(frozen=True, slots=True)
class Names:
    """Words of kernel names.

    Attributes:
        version_words: that say how a kernel computes, and not what.
        of_libraries: in names of libraries' templates: what says nothing of what is computed.
        synonyms: what was renamed, by its old name.
    """

    version_words: frozenset[str]
    of_libraries: frozenset[str]
    synonyms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CodeRules:
    """What counts as a change of the code, and what speaks for another cause where it stayed the same.

    Attributes:
        least_resource_ratio: registers, bytes and lengths that differ by less are the same.
        least_opcode_frac: an opcode that has a smaller share of the executed instructions is left out.
        least_opcode_ratio: an opcode that is executed so many times as often, or as rarely, changed.
        least_clock_frac: SM clocks that differ by more explain a time.
        least_traffic_frac: DRAM bytes that differ by more are those of other cache contents, or data.
        words: what instructions of an opcode do.
    """

    least_resource_ratio: float
    least_opcode_frac: float
    least_opcode_ratio: float
    least_clock_frac: float
    least_traffic_frac: float
    words: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A quantity whose change can explain a change of time; `profiles/comparison.toml` says how much of it each accounts for.

    Attributes:
        quantity: canonical name.
        words: what there is more or less of.
        kind: an amount adds up over kernels, a rate, a ratio and a share do not; "peak" is what the GPU can reach, "time" is how
            long the unit of a utilisation is busy, in ns, and "wait" how long a warp waits for the reason of a stall, in cycles per
            instruction.
        goes_with: "time" where more of it takes longer, "speed" where more of it is faster.
        least: a smaller change explains nothing.
        busy: utilisations of what the quantity keeps busy, of which the largest counts.
        part_of: amounts that share that unit.
        part: which of these the quantity is a share of; "" where it is an amount itself.
        counts_in_latency: whether the amount takes time in a kernel that no unit limits, too.
        while_waiting: whether the quantity matters in such kernels only.
        amount: what a utilisation is of: where both moved alike, that is arithmetic and no reason.
        misses: bytes behind a hit rate: without a change of these, hits cost or save nothing.
        through: quantities by which it changes the time.
        unless: quantities of which it only is the consequence.
        stands_for: a quantity that says it better, where both runs collected that.
        bound_by: limiters of the slower run's kernel that a peak is of: it explains nothing else.
        because: quantities that make it less where they are more, each with its words, and how many blocks it leaves room for.
    """

    quantity: str
    words: str
    kind: Literal["amount", "rate", "ratio", "share", "peak", "time", "wait"]
    goes_with: Literal["time", "speed"]
    least: float
    busy: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    part: str = ""
    counts_in_latency: bool = False
    while_waiting: bool = False
    amount: str | None = None
    misses: str | None = None
    through: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    stands_for: str = ""
    bound_by: tuple[str, ...] = ()
    because: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """All of `profiles/comparison.toml`."""

    noise: Noise
    work: WorkTolerances
    names: Names
    code: CodeRules
    least_part_frac: float
    least_busy_frac: float
    limiting_busy_frac: float
    unused_frac: float
    explanations: tuple[Explanation, ...]
    for_gates: tuple[str, ...]

    def quantities(self) -> list[str]:
        """Return the quantities of kernels that comparing reads, each once."""
        explaining = [each.quantity for each in self.explanations]
        behind = [name for each in self.explanations for name in (*each.busy, *_of_causes(each))]
        return list(dict.fromkeys([*explaining, *behind, *STATE, *self.for_gates]))


@cache
def load_comparison_rules() -> ComparisonRules:
    """Return the rules that ship with ncuroof.

    Raises:
        ProfileError: `profiles/comparison.toml` is malformed.
    """
    with profile_file("comparison.toml") as raw:
        stated = tuple(_stated(entry) for entry in raw["explanation"])
        names = raw["names"]
        return ComparisonRules(
            Noise(**raw["noise"]),
            WorkTolerances(**raw["work"]),
            Names(frozenset(names["version_words"]), frozenset(names["of_libraries"]), names["synonyms"]),
            CodeRules(**raw["code"]),
            float(raw["least_part_frac"]),
            float(raw["least_busy_frac"]),
            float(raw["limiting_busy_frac"]),
            float(raw["unused_frac"]),
            (*stated, *_waits(raw["waits"]), *_busy_times(raw["busy_times"])),
            tuple(raw["for_gates"]),
        )


def _stated(entry: Mapping[str, Any]) -> Explanation:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Explanation(**values | {"because": tuple(map(tuple, entry.get("because", ())))})


def _of_causes(explanation: Explanation) -> Iterator[str]:
    for quantity, _, limit in explanation.because:
        yield from (quantity, limit)


def _waits(raw: Mapping[str, Any]) -> Iterator[Explanation]:
    for reason in raw["reasons"]:
        quantity = STALLS + reason
        yield Explanation(quantity, formatting.label(reason), "wait", "time", float(raw["least"]), while_waiting=True)


def _busy_times(raw: Mapping[str, Any]) -> Iterator[Explanation]:
    for quantity, words in raw["words"].items():
        yield Explanation(quantity, words, "time", "time", float(raw["least"]))
