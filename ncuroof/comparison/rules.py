"""The rules of comparison, read from `profiles/comparison.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ncuroof import formatting
from ncuroof.resources import profile_file

STALLS = "stalls."
"""Prefix of the names of stall shares."""

WARPS, ISSUED, ACTIVE, WORKING, FILLED, RESIDENT = (
    "scheduler.n_active_warps",
    "scheduler.issue_per_cycle",
    "scheduler.sm_active_frac",
    "scheduler.working_frac",
    "occupancy.filled_frac",
    "occupancy.resident_blocks",
)
OF_THE_GPU = ("utilisation.dram", "utilisation.l2")
"""Utilisations of units that all SMs share. The other utilisations are averages over the SMs."""

LIMITING = (*OF_THE_GPU, "scheduler.l1_busy_frac", "scheduler.compute_busy_frac")
"""Utilisations of the units that can limit a kernel. Those of SMs count the time in which SMs have work."""

STATE = (WARPS, ISSUED, ACTIVE, WORKING, FILLED, RESIDENT, *LIMITING)
"""Quantities that say whether a unit limits a kernel, and how long a warp takes from one instruction to its next."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How much the times of launches vary by chance.

    Attributes:
        jitter_ns: part of the standard deviation of a launch's time that does not depend on its length.
        deviation_frac: part of the standard deviation of a launch's time that is proportional to the time.
        least_change_frac: smaller changes between two runs are noise.
        n_standard_errors: a change counts if it exceeds this number of standard errors.
        n_launches_to_estimate: number of launches from which on their own deviation is used.
        clock_difference_frac: times are not comparable if clocks differ by more.
        matters_frac: smallest change that matters; a match is ambiguous if such a change can be neither seen nor ruled out.
        most_clock_power: times that differ by more than the ratio of the clocks to this power are comparable anyway.
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
    """How far amounts of work may be apart, as larger over smaller; `profiles/comparison.toml` gives the reasons.

    Attributes:
        same_input_ratio: launches of one kernel with the same input.
        one_group_ratio: launches of one group whose times vary by chance only.
        same_problem_ratio: launches of the same problem with a different shape.
        same_place_frac: kernels in the same place that do the same, as a share of the larger.
        cut_ratio: total of the same work, cut into a different number of launches.
        most_ratio: a different algorithm for the same input.
        most_traffic_ratio: DRAM bytes of kernels in the same place.
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
        version_words: words that say how a kernel computes, not what.
        of_libraries: words in names of library templates that do not say what is computed.
        synonyms: new names by old names.
    """

    version_words: frozenset[str]
    of_libraries: frozenset[str]
    synonyms: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CodeRules:
    """What counts as a change of the code, and what counts as a cause if the code stayed the same.

    Attributes:
        least_resource_ratio: registers, bytes and lengths that differ by less are the same.
        least_opcode_frac: an opcode that has a smaller share of the executed instructions is left out.
        least_opcode_ratio: an opcode changed if its count changed by this factor, up or down.
        least_clock_frac: SM clocks that differ by more explain a time.
        least_traffic_frac: DRAM bytes that differ by more point to different data or cache contents.
        words: what an opcode does, by opcode.
    """

    least_resource_ratio: float
    least_opcode_frac: float
    least_opcode_ratio: float
    least_clock_frac: float
    least_traffic_frac: float
    words: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A quantity whose change can explain a change of time; `profiles/comparison.toml` says how much it accounts for.

    Attributes:
        quantity: canonical name.
        words: the quantity for people.
        kind: an "amount" adds up over kernels; a "rate", a "ratio" and a "share" do not; "peak" is what the GPU can reach; "time"
            is how long the unit of a utilisation is busy, in ns; "wait" is how long a warp waits for the reason of a stall, in
            cycles per instruction.
        goes_with: "time" if more of it takes longer, "speed" if more of it is faster.
        least: smaller changes explain nothing.
        busy: utilisations of the units that the quantity keeps busy; the largest counts.
        part_of: amounts that share the unit.
        part: the amount in `part_of` that the quantity is a share of; "" if the quantity is an amount itself.
        counts_in_latency: whether the amount also takes time in a kernel that no unit limits.
        while_waiting: whether the quantity matters only in kernels that no unit limits.
        amount: the work of a utilisation; a utilisation that moved with its work explains nothing.
        misses: missed bytes of a hit rate; a hit rate explains nothing if they did not change.
        through: quantities through which it changes the time.
        unless: quantities that it is only a consequence of.
        stands_for: a better quantity, which replaces this one if both runs collected it.
        bound_by: limiters that a peak belongs to; it explains only kernels with one of these limiters in the slower run.
        because: quantities that lower it when they rise, each with its words and with the number of blocks that it leaves room for.
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
        """Return the quantities of kernels that a comparison reads, each once."""
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
