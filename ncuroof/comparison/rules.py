"""The rules of comparing, read from `profiles/comparison.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from ncuroof.resources import profile_file


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
        most_clock_power: unless the times differ by more than the ratio of the clocks to this power.
        least_line_frac: a line whose time changed by a smaller share of the kernel's is not reported.
    """

    jitter_ns: float
    deviation_frac: float
    least_change_frac: float
    n_standard_errors: float
    n_launches_to_estimate: int
    clock_difference_frac: float
    most_clock_power: float
    least_line_frac: float


@dataclass(frozen=True, slots=True)
class Work:
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
class Explanation:
    """A quantity whose change can explain a change of time.

    Attributes:
        quantity: canonical name.
        words: what there is more or less of.
        kind: an amount adds up over kernels, a rate and a share do not.
        goes_with: "time" where more of it takes longer, "speed" where more of it is faster.
        least: a smaller change explains nothing.
        busy: utilisation of what the amount is of: where the slower run hardly uses that, the amount takes no time.
        counts_in_latency: whether the amount takes time in a latency-bound kernel all the same.
        amount: what a utilisation is of: where both moved alike, that is arithmetic and no reason; it is none by itself, either.
        misses: bytes behind a hit rate: without a change of these, hits cost or save nothing.
    """

    quantity: str
    words: str
    kind: Literal["amount", "rate", "share"]
    goes_with: Literal["time", "speed"]
    least: float
    busy: str | None = None
    counts_in_latency: bool = False
    amount: str | None = None
    misses: str | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """All of `profiles/comparison.toml`."""

    noise: Noise
    work: Work
    least_busy_frac: float
    explanations: tuple[Explanation, ...]
    for_gates: tuple[str, ...]

    def quantities(self) -> list[str]:
        """Return the quantities of kernels that comparing reads, each once."""
        explaining = [each.quantity for each in self.explanations]
        busy = [each.busy for each in self.explanations if each.busy is not None]
        return list(dict.fromkeys([*explaining, *busy, *self.for_gates]))


@cache
def load_comparison_rules() -> ComparisonRules:
    """Return the rules that ship with ncuroof.

    Raises:
        ProfileError: `profiles/comparison.toml` is malformed.
    """
    with profile_file("comparison.toml") as raw:
        explanations = tuple(Explanation(**entry) for entry in raw["explanation"])
        return ComparisonRules(
            Noise(**raw["noise"]),
            Work(**raw["work"]),
            float(raw["least_busy_frac"]),
            explanations,
            tuple(raw["for_gates"]),
        )
