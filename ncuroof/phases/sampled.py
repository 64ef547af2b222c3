"""Which sampled counters give which quantity over a kernel's time, from `profiles/samples.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ncuroof.resources import FrozenMapping, profile_file

STALL_PREFIX = "stalls."

_PERCENT = 100.0
_NO_REFERENCE = re.compile(r"hit_rate|\.ratio|per_cycle_active|\.pct$")
"""Names of ratios of what happened: they are as large where little happens, and do not say when a kernel runs."""

_BESIDE_SMS = ("dram", "lts", "fbpa", "pcie", "nvl", "syslts", "ltc")
"""Units beside the SMs: something else can use them before and after the kernel."""


@dataclass(frozen=True, slots=True)
class SampledCounter:
    """How samples of one counter become a quantity.

    Attributes:
        kind: "percent", "cycles", "per_active_cycle" or "counts", as in profiles/samples.toml.
        peak: what 1 is, of the kind "per_active_cycle".
    """

    kind: str
    peak: float = 1.0

    @property
    def is_total(self) -> bool:
        """Whether a sample is what was counted in it, and not a mean over it."""
        return self.kind in {"cycles", "counts"}


@dataclass(frozen=True, slots=True)
class Sampled:
    """The quantities that sampled counters give.

    Attributes:
        utilisation: by unit, its counters: each with how it is read.
        courses: by name, likewise, of what is no utilisation.
        stall: pattern of the counters of warps in a state; its group `reason` names the state.
    """

    utilisation: Mapping[str, Mapping[str, SampledCounter]]
    courses: Mapping[str, Mapping[str, SampledCounter]]
    stall: re.Pattern[str]

    def sources(self, counters: Sequence[str]) -> Iterator[tuple[str, str, SampledCounter]]:
        """Yield, of the given counters, each that gives a quantity, with the quantity's name and how it is read."""
        for counter in counters:
            for name, sources in (*self.utilisation.items(), *self.courses.items()):
                if counter in sources:
                    yield counter, name, sources[counter]
            if (found := self.stall.fullmatch(counter)) is not None:
                yield counter, f"{STALL_PREFIX}{found['reason']}", SampledCounter("counts")


@cache
def load_sampled() -> Sampled:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("samples.toml") as raw:
        utilisation, courses = (
            FrozenMapping({name: _sources(entry) for name, entry in raw[part].items()})
            for part in ("utilisation", "course")
        )
        return Sampled(utilisation, courses, re.compile(raw["stall"]["pattern"]))


def _sources(entry: Mapping[str, object]) -> Mapping[str, SampledCounter]:
    peak = entry.get("peak", 1)
    kinds = {key: names for key, names in entry.items() if isinstance(names, list)}
    return FrozenMapping(
        {name: SampledCounter(kind, float(str(peak))) for kind, names in kinds.items() for name in map(str, names)}
    )


def is_of_sms(counter: str) -> bool:
    """Return whether a counter is above zero exactly while SMs have work."""
    return not (counter.startswith(_BESIDE_SMS) or _NO_REFERENCE.search(counter))


def can_show_activity(counter: str) -> bool:
    """Return whether a counter is larger while a kernel runs than before and after it."""
    return not _NO_REFERENCE.search(counter)


def in_base_units(
    source: SampledCounter, value: float, cell_ns: float, sm_clock_hz: float | None, active_frac: float | None
) -> float | None:
    """Return the value of a cell as a share of the unit's peak, or as a count; None where what it is divided by is not known.

    Args:
        source: how the counter is read.
        value: its mean over the cell; per ns where samples are totals.
        cell_ns: length of the cell.
        sm_clock_hz: clock of the SMs.
        active_frac: share of the cell in which an SM had work.
    """
    if source.kind == "percent":
        return value / _PERCENT
    if source.kind == "cycles":
        return value * 1e9 / sm_clock_hz if sm_clock_hz else None
    if source.kind == "per_active_cycle":
        return None if active_frac is None else value * active_frac / source.peak
    return value * cell_ns
