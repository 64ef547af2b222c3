"""Wall time of a step: how much of it kernels take, and what the GPU waits for in the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from ncuroof.resources import profile_file
from ncuroof.sidecars.traces.idle_places import IdleShare
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown

COMPUTATION = "computation"
_MOST_OF_IT_FRAC = 0.5


@dataclass(frozen=True, slots=True)
class PlaceOfTime:
    """Where in the program a part of a step's idle time was.

    Attributes:
        name: of the host's operator or range, or of a kernel; empty where the trace names nothing that the host was in.
        duration_ns: per step.
        share_frac: share of the step.
    """

    name: str
    duration_ns: float
    share_frac: float


@dataclass(frozen=True, slots=True)
class PartOfTime:
    """A part of a step's time, as measured under the profiler.

    Attributes:
        name: as in `profiles/temporal_breakdown.toml`.
        title: its name for people.
        is_idle: nothing ran on the GPU.
        duration_ns: per step.
        share_frac: share of the step under the profiler.
        n_gaps: idle gaps per step; None for parts that are not idle time.
        half_in_gaps_of_ns: half of the idle time was in gaps at least this long; None if unknown, or not idle time.
        during: what the host did while the GPU waited for its launches, the longest first; empty where the trace does not say.
        before: kernels that ended idle time, those after the most idle time first.
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
    """The wall time of a step, or of a whole run where no steps were counted.

    Attributes:
        source: the report's index.
        profiler: the profiler that recorded it, a value of `PROFILERS` of the counts.
        n_steps: counted steps; None for a whole run.
        duration_ns: per step: the shorter of the time under the profiler and that of the steps just before, without it.
        profiled_ns: per step under the profiler, which slows down launches.
        computation_frac: share of `duration_ns` in which kernels run: the most that faster kernels can save.
        idle_frac: share of `duration_ns` in which nothing runs.
        batches_ns: time per step that the host waits for batches of a DataLoader; None if unknown.
        parts: of `profiled_ns`: first what runs, then idle time, the longest first.
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
        """Return the fields as JSON values."""
        values = asdict(self)
        places = ("during", "before")
        return values | {"parts": [part | {name: list(part[name]) for name in places} for part in values["parts"]]}


@dataclass(frozen=True, slots=True)
class LongGaps:
    """What to do about idle time of which half was in long gaps.

    Attributes:
        least_ns: the length from which on a gap is long.
        advice: what to do about it in steps.
        advice_for_whole_run: the same where no steps were counted, so that start-up and warm-up belong to the time.
        advice_for_whole_run_without_torch: advice for programs that may not use PyTorch.
    """

    least_ns: float
    advice: str
    advice_for_whole_run: str
    advice_for_whole_run_without_torch: str

    def advice_for(self, *, is_whole_run: bool, is_torch: bool) -> str:
        """Return what to do about such time."""
        if not is_whole_run:
            return self.advice
        return self.advice_for_whole_run if is_torch else self.advice_for_whole_run_without_torch


@dataclass(frozen=True, slots=True)
class PartEntry:
    """An entry of `profiles/temporal_breakdown.toml`: a part of a step's time.

    Attributes:
        title: its name for people.
        doc: which time belongs to it.
        is_idle: nothing runs on the GPU.
        advice: what to do about it; None for kernels.
        advice_without_torch: advice for programs that may not use PyTorch; None if it is the same.
        long_gaps: what to do where much of the time was in long gaps; None if it is the same.
        advice_by_place: pairs of a pattern and the advice where at least half of the time was in a place whose name it matches.
        source: of the advice; None if there is none.
    """

    title: str
    doc: str
    is_idle: bool
    advice: str | None
    advice_without_torch: str | None
    long_gaps: LongGaps | None
    advice_by_place: tuple[tuple[re.Pattern[str], str], ...]
    source: str | None

    def advice_for(self, part: Part, profiler: str, *, is_whole_run: bool) -> str | None:
        """Return what to do about a part of the time: by place, by length of the gaps, or by the profiler that recorded it."""
        place = part.during[0] if part.during else None
        if place is not None and place.duration_ns >= _MOST_OF_IT_FRAC * part.duration_ns:
            for pattern, advice in self.advice_by_place:
                if pattern.search(place.name):
                    return advice
        is_torch = profiler == "torch.profiler"
        if self.long_gaps is not None and (part.half_in_gaps_of_ns or 0.0) >= self.long_gaps.least_ns:
            return self.long_gaps.advice_for(is_whole_run=is_whole_run, is_torch=is_torch)
        return self.advice if is_torch else self.advice_without_torch or self.advice


def wall_time(source: int, breakdown: TemporalBreakdown, *, profiler: str) -> WallTime | None:
    """Return the wall time of a step; None if the trace contains no time at all.

    Work on the GPU is assumed to take as long without the profiler as under it; the rest of the (shorter) step is idle.

    Args:
        source: the report's index.
        breakdown: of the counting run.
        profiler: the profiler that recorded it.

    Raises:
        ProfileError: `profiles/temporal_breakdown.toml` is malformed.
    """
    steps = breakdown.steps or CountedSteps(n_steps=1)
    n_steps = steps.n_steps
    profiled_ns = sum(part.duration_ns for part in breakdown.parts) / n_steps
    if not profiled_ns:
        return None
    parts = [
        _part(part, entry, n_steps, profiled_ns, entry.advice_for(part, profiler, is_whole_run=breakdown.steps is None))
        for part in breakdown.parts
        if (entry := load_parts().get(part.name)) is not None
    ]
    duration_ns = min(profiled_ns, steps.earlier_step_ns or profiled_ns)
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
        batches_ns=None if steps.batches_ns is None else steps.batches_ns / n_steps,
        parts=tuple(sorted(parts, key=lambda part: (part.is_idle, -part.duration_ns if part.is_idle else 0.0))),
    )


def _part(part: Part, entry: PartEntry, n_steps: int, step_ns: float, advice: str | None) -> PartOfTime:
    """Return a part of a step's time, of one of `n_steps` that took `step_ns` each under the profiler."""
    return PartOfTime(
        name=part.name,
        title=entry.title,
        is_idle=entry.is_idle,
        duration_ns=part.duration_ns / n_steps,
        share_frac=part.duration_ns / n_steps / step_ns,
        n_gaps=None if part.n_gaps is None else part.n_gaps / n_steps,
        half_in_gaps_of_ns=part.half_in_gaps_of_ns,
        during=_places(part.during, n_steps, step_ns),
        before=_places(part.before, n_steps, step_ns),
        advice=advice,
    )


def _places(places: Sequence[IdleShare], n_steps: int, step_ns: float) -> tuple[PlaceOfTime, ...]:
    times = ((place.name, place.duration_ns / n_steps) for place in places)
    return tuple(PlaceOfTime(name, duration_ns, duration_ns / step_ns) for name, duration_ns in times)


def _long_gaps(entry: Mapping[str, Any]) -> LongGaps:
    advices = (entry[key] for key in ("advice", "advice_for_whole_run", "advice_for_whole_run_without_torch"))
    return LongGaps(1e3 * entry["from_us"], *advices)


@cache
def load_parts() -> Mapping[str, PartEntry]:
    """Return the known parts of a step's time, by name.

    Raises:
        ProfileError: `profiles/temporal_breakdown.toml` is malformed.
    """
    with profile_file("temporal_breakdown.toml") as raw:
        return {
            name: PartEntry(
                entry["title"],
                entry["doc"],
                entry.get("idle", False),
                entry.get("advice"),
                entry.get("advice_without_torch"),
                None if (long := entry.get("long_gaps")) is None else _long_gaps(long),
                tuple((re.compile(place["pattern"]), place["advice"]) for place in entry.get("place", ())),
                entry.get("source"),
            )
            for name, entry in raw["part"].items()
        }
