"""How long a step takes on the wall's clock, how much of it kernels can give back, and what the GPU waits for in the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from ncuroof.collect.traces.idle_places import Place
from ncuroof.collect.traces.temporal_breakdown import Part, TemporalBreakdown
from ncuroof.resources import stated

COMPUTATION = "computation"
_MOST_OF_IT_FRAC = 0.5


@dataclass(frozen=True, slots=True)
class PlaceOfTime:
    """Where in the program a part of a step's idle time was.

    Attributes:
        name: of what the host did, or of a kernel; empty where the host was in nothing that the trace names.
        duration_ns: of a step.
        share_frac: of the step.
    """

    name: str
    duration_ns: float
    share_frac: float


@dataclass(frozen=True, slots=True)
class PartOfTime:
    """A part of a step's time, as it was under the profiler.

    Attributes:
        name: as in `profiles/temporal_breakdown.toml`.
        title: what it is called.
        is_idle: nothing ran on the GPU.
        duration_ns: of a step.
        share_frac: of the step.
        n_gaps: of a step, for idle time; else None.
        half_in_gaps_of_ns: half of it was in gaps at least that long; None for what is no idle time, or where not known.
        during: what the host did in idle time that it was late for, the most first; empty where the trace does not tell.
        before: kernels that ended idle time, the most first.
        advice: what to do about it; None for kernels.
    """

    name: str
    title: str
    is_idle: bool
    duration_ns: float
    share_frac: float
    n_gaps: float | None
    half_in_gaps_of_ns: float | None
    during: tuple[PlaceOfTime, ...]
    before: tuple[PlaceOfTime, ...]
    advice: str | None


@dataclass(frozen=True, slots=True)
class WallTime:
    """The time of a step, or of a whole run where no steps were counted.

    Attributes:
        source: the report's index.
        profiler: that recorded it, as `PROFILERS` of the counts names them.
        n_steps: that were counted; None for a whole run.
        duration_ns: of a step: the lesser of what it took under the profiler and of what the steps before it took without.
        profiled_ns: under the profiler, which makes launches slower.
        computation_frac: share of `duration_ns` in which kernels run: what they can give back at most.
        idle_frac: share of `duration_ns` in which nothing runs.
        batches_ns: of a step, in which the host waits for batches of a DataLoader; None where not known.
        parts: of `profiled_ns`, what runs first, then idle time, the longest first.
    """

    source: int
    profiler: str
    n_steps: int | None
    duration_ns: float
    profiled_ns: float
    computation_frac: float
    idle_frac: float
    batches_ns: float | None
    parts: tuple[PartOfTime, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        told = asdict(self)
        places = ("during", "before")
        return told | {"parts": [part | {name: list(part[name]) for name in places} for part in told["parts"]]}


@dataclass(frozen=True, slots=True)
class PartEntry:
    """What `profiles/temporal_breakdown.toml` says of a part of a step's time.

    Attributes:
        title: what it is called.
        doc: when time belongs to it.
        is_idle: nothing runs on the GPU.
        advice: what to do about it; None for kernels.
        advice_without_torch: the same for programs that may know nothing of PyTorch; None where it is no different.
        advice_for_long_gaps: the same where half of the time was in gaps at least as long as the first; None where it is no
            different.
        advice_by_place: the same where most of the time was in a place whose name the pattern is found in.
        source: of the advice; None where there is none.
    """

    title: str
    doc: str
    is_idle: bool
    advice: str | None
    advice_without_torch: str | None
    advice_for_long_gaps: tuple[float, str] | None
    advice_by_place: tuple[tuple[re.Pattern[str], str], ...]
    source: str | None

    def advice_for(self, part: Part, profiler: str) -> str | None:
        """Return what to do about a part of the time in a program that this profiler recorded."""
        place = part.during[0] if part.during else None
        if place is not None and place.duration_ns >= _MOST_OF_IT_FRAC * part.duration_ns:
            for pattern, advice in self.advice_by_place:
                if pattern.search(place.name):
                    return advice
        if self.advice_for_long_gaps is not None:
            least_ns, advice = self.advice_for_long_gaps
            if (part.half_in_gaps_of_ns or 0.0) >= least_ns:
                return advice
        return self.advice if profiler == "torch.profiler" else self.advice_without_torch or self.advice


def wall_time(source: int, breakdown: TemporalBreakdown, *, profiler: str) -> WallTime | None:
    """Return a step's time; None where the trace holds no time at all.

    What runs on the GPU takes as long under the profiler as without; what is left of the shorter step is idle.

    Args:
        source: the report's index.
        breakdown: of its first run.
        profiler: that recorded it.

    Raises:
        ProfileError: `profiles/temporal_breakdown.toml` is malformed.
    """
    n_steps = 1 if breakdown.steps is None else breakdown.steps.n_steps
    batches_ns = None if breakdown.steps is None else breakdown.steps.batches_ns
    profiled_ns = sum(part.duration_ns for part in breakdown.parts) / n_steps
    if not profiled_ns:
        return None
    entries = load_parts()
    parts = [
        PartOfTime(
            name=part.name,
            title=entries[part.name].title,
            is_idle=entries[part.name].is_idle,
            duration_ns=part.duration_ns / n_steps,
            share_frac=part.duration_ns / n_steps / profiled_ns,
            n_gaps=None if part.n_gaps is None else part.n_gaps / n_steps,
            half_in_gaps_of_ns=part.half_in_gaps_of_ns,
            during=_places(part.during, n_steps, profiled_ns),
            before=_places(part.before, n_steps, profiled_ns),
            advice=entries[part.name].advice_for(part, profiler),
        )
        for part in breakdown.parts
        if part.name in entries
    ]
    earlier_ns = None if breakdown.steps is None else breakdown.steps.earlier_step_ns
    duration_ns = profiled_ns if not earlier_ns else min(profiled_ns, earlier_ns)
    busy_ns = sum(part.duration_ns for part in parts if not part.is_idle)
    computation_ns = sum(part.duration_ns for part in parts if part.name == COMPUTATION)
    return WallTime(
        source=source,
        profiler=profiler,
        n_steps=None if breakdown.steps is None else n_steps,
        duration_ns=duration_ns,
        profiled_ns=profiled_ns,
        computation_frac=min(computation_ns / duration_ns, 1.0),
        idle_frac=max(1 - busy_ns / duration_ns, 0.0),
        batches_ns=None if batches_ns is None else batches_ns / n_steps,
        parts=tuple(sorted(parts, key=lambda part: (part.is_idle, -part.duration_ns if part.is_idle else 0.0))),
    )


def _places(places: Sequence[Place], n_steps: int, step_ns: float) -> tuple[PlaceOfTime, ...]:
    times = ((place.name, place.duration_ns / n_steps) for place in places)
    return tuple(PlaceOfTime(name, duration_ns, duration_ns / step_ns) for name, duration_ns in times)


@cache
def load_parts() -> Mapping[str, PartEntry]:
    """Return the parts of a step's time by name.

    Raises:
        ProfileError: `profiles/temporal_breakdown.toml` is malformed.
    """
    with stated("temporal_breakdown.toml") as raw:
        return {
            name: PartEntry(
                entry["title"],
                entry["doc"],
                entry.get("idle", False),
                entry.get("advice"),
                entry.get("advice_without_torch"),
                None if (long := entry.get("long_gaps")) is None else (1e3 * long["from_us"], long["advice"]),
                tuple((re.compile(place["pattern"]), place["advice"]) for place in entry.get("place", ())),
                entry.get("source"),
            )
            for name, entry in raw["part"].items()
        }
