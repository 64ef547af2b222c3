"""What the GPU did while launches were counted: kernels, communication, copies, and idle time by what it waited for.

The parts are those of Holistic Trace Analysis (docs.pytorch.org/tutorials, hta_intro_tutorial: "Temporal Breakdown", "Idle Time
Breakdown"), where a wait for the host is divided once more: the host may itself wait for the GPU, or not have launched yet.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from ncuroof.collect.traces.host_ranges import outermost
from ncuroof.collect.traces.idle_places import Gap, Place, before, during, half_in_gaps_of
from ncuroof.collect.traces.timeline import MOST_NS, Activity, Call, Timeline, name_of

_KINDS = ("computation", "communication", "memory")
"""What the GPU does, and at once: time with a kernel is computation whatever else goes on."""

_TIMES_OF_STEPS = ("duration_ns", "batches_ns", "earlier_step_ns")
_RESOLUTION_NS = 10.0
"""Times in PyTorch's traces count from years ago; as floating-point numbers they are a few nanoseconds off."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time.

    Attributes:
        name: "computation", "communication" (collectives alone) or "memory" (copies alone); or of idle time what was waited for:
            "first_launch", "synchronisation", "host_wait", "kernel_wait" or "other_wait".
        duration_ns: of all steps together.
        n_gaps: how often the GPU went idle for it; None for what is no idle time.
        half_in_gaps_of_ns: half of it was in gaps at least that long; None where not known.
        during: what the host did meanwhile, the most first, where it came late and the trace names what it does.
        before: the kernels that ended idle time, the most first.
    """

    name: str
    duration_ns: float
    n_gaps: int | None = None
    half_in_gaps_of_ns: float | None = None
    during: tuple[Place, ...] = ()
    before: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class CountedSteps:
    """What is known of the counted steps beside what the GPU did.

    Attributes:
        n_steps: how many there were.
        duration_ns: from their beginning, on an idle GPU, until it had done all their work; None where not known: the time is then
            from their first activity on the GPU to their last.
        batches_ns: for which the host waited in them for batches of a DataLoader, whether the GPU was idle or not; None where not
            known.
        earlier_step_ns: median time of the steps just before, which ran without PyTorch's profiler; None where there were none.
    """

    n_steps: int
    duration_ns: float | None = None
    batches_ns: float | None = None
    earlier_step_ns: float | None = None


@dataclass(frozen=True, slots=True)
class TemporalBreakdown:
    """The time of the counted steps, or of a whole run from its first activity on the GPU to its last, in parts that add up to it.

    Attributes:
        parts: what has any time.
        steps: that were counted; None for a whole run.
    """

    parts: tuple[Part, ...]
    steps: CountedSteps | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> TemporalBreakdown:
        """Return what `to_dict` gave.

        Raises:
            KeyError, TypeError, ValueError: it is not as `to_dict` gives it.
        """
        parts = tuple(_part(part) for part in entry["parts"])
        steps = entry["steps"]
        if steps is None:
            return TemporalBreakdown(parts)
        times = {name: None if (value := steps[name]) is None else _time(value) for name in _TIMES_OF_STEPS}
        return TemporalBreakdown(parts, CountedSteps(_count(steps["n_steps"]), **times))


def break_down_time(
    timeline: Timeline, *, collectives: str, waiting_calls: str, steps: CountedSteps | None = None
) -> TemporalBreakdown | None:
    """Return what the GPU with most work did; None where nothing ran, or gaps say nothing.

    A GPU that has run dry waits for the host where the next launch had not returned by then: "synchronisation" where the thread
    that launches was inside a call that waits for the GPU, else "host_wait". Where it had, the kernel was queued ("kernel_wait").

    Args:
        timeline: of the steps or the run.
        collectives: regular expression of the names of kernels that communicate, whatever their case.
        waiting_calls: of calls of the CUDA API that wait for the GPU.
        steps: that it holds; None for a whole run.
    """
    activities = _on_busiest_gpu(timeline.activities)
    if not activities or timeline.is_stretched:
        return None
    parts = [*_busy_parts(activities, re.compile(collectives, re.IGNORECASE))]
    parts += _idle_parts(activities, timeline, re.compile(waiting_calls))
    if steps is None or steps.duration_ns is None:
        return TemporalBreakdown(tuple(parts), steps)
    before_ns = steps.duration_ns - (max(each.end_ns for each in activities) - activities[0].start_ns)
    if before_ns > 0:
        parts.append(Part("first_launch", before_ns, 1))
    return TemporalBreakdown(tuple(parts), steps)


def _on_busiest_gpu(activities: Iterable[Activity]) -> list[Activity]:
    """Return what ran on the GPU with most work, by time."""
    by_gpu: dict[object, list[Activity]] = defaultdict(list)
    for activity in activities:
        by_gpu[activity.gpu].append(activity)
    most = max(by_gpu.values(), key=lambda found: sum(each.duration_ns for each in found), default=[])
    return sorted(most, key=lambda each: each.start_ns)


def _busy_parts(activities: Sequence[Activity], collectives: re.Pattern[str]) -> list[Part]:
    """Return how long the GPU worked, by kind."""
    kinds = [_kind(each, collectives) for each in activities]
    parts, told_ns = [], 0.0
    for n_kinds, kind in enumerate(_KINDS, start=1):
        counted = _KINDS[:n_kinds]
        merged = _merged(each for each, its_kind in zip(activities, kinds, strict=True) if its_kind in counted)
        so_far_ns = sum(end - start for start, end in merged)
        if so_far_ns - told_ns > _RESOLUTION_NS:
            parts.append(Part(kind, so_far_ns - told_ns))
        told_ns = so_far_ns
    return parts


def _kind(activity: Activity, collectives: re.Pattern[str]) -> str:
    if activity.is_copy:
        return "memory"
    return "communication" if collectives.search(activity.name) else "computation"


def _idle_parts(activities: Sequence[Activity], timeline: Timeline, waiting: re.Pattern[str]) -> list[Part]:
    """Return how long the GPU was idle between its first activity and its last, by what it waited for."""
    first_by_start = {each.start_ns: each for each in reversed(activities)}
    by_start = sorted(timeline.calls, key=lambda call: call.start_ns)
    launches = {
        call.launch: call for call in reversed(by_start) if call.launch is not None
    }  # the first: the runtime's, which calls the driver
    waits_by_thread: dict[object, list[Call]] = defaultdict(list)
    for call in by_start:
        if waiting.search(call.name):
            waits_by_thread[call.thread].append(call)
    gaps_by_cause: dict[str, list[Gap]] = defaultdict(list)
    for (_, ran_dry), (start, _) in pairwise(_merged(activities)):
        following = first_by_start[start]
        launch = launches.get(following.launch)
        cause = _cause(launch, ran_dry, [] if launch is None else waits_by_thread[launch.thread])
        gaps_by_cause[cause].append(Gap(ran_dry, start, following, launch))
    ranges = outermost(timeline.ranges)
    return [
        Part(
            cause,
            sum(gap.duration_ns for gap in gaps),
            len(gaps),
            half_in_gaps_of(gaps),
            during(gaps, ranges),
            before(gaps),
        )
        for cause, gaps in gaps_by_cause.items()
    ]


def _cause(launch: Call | None, ran_dry_ns: float, waits: Sequence[Call]) -> str:
    """Return what a GPU that ran dry waited for, by the next launch and the waiting calls of its thread, sorted by start."""
    if launch is None:
        return "other_wait"
    if launch.end_ns <= ran_dry_ns:
        return "kernel_wait"
    place = bisect_right(waits, ran_dry_ns, key=lambda call: call.start_ns) - 1
    is_waiting = place >= 0 and waits[place] is not launch and waits[place].end_ns >= ran_dry_ns
    return "synchronisation" if is_waiting else "host_wait"


def _merged(activities: Iterable[Activity]) -> list[tuple[float, float]]:
    """Return the time that any of the activities, sorted by start, takes: intervals that do not touch."""
    merged: list[tuple[float, float]] = []
    for each in activities:
        if merged and each.start_ns <= merged[-1][1] + _RESOLUTION_NS:
            merged[-1] = (merged[-1][0], max(merged[-1][1], each.end_ns))
        else:
            merged.append((each.start_ns, each.end_ns))
    return merged


def _part(entry: Mapping[str, Any]) -> Part:
    n_gaps = entry["n_gaps"]
    half_ns = entry.get("half_in_gaps_of_ns")
    return Part(
        str(entry["name"]),
        _time(entry["duration_ns"]),
        None if n_gaps is None else _count(n_gaps),
        None if half_ns is None else _time(half_ns),
        *(_places(entry.get(key, ())) for key in ("during", "before")),
    )


def _places(entries: Sequence[Mapping[str, Any]]) -> tuple[Place, ...]:
    return tuple(Place(name_of(entry["name"]), _time(entry["duration_ns"])) for entry in entries)


def _time(value: Any) -> float:
    duration_ns = float(value)
    if not 0 <= duration_ns <= MOST_NS:
        raise ValueError(f"a time of {duration_ns} ns")
    return duration_ns


def _count(value: Any) -> int:
    number = int(value)
    if not 1 <= number <= MOST_NS:
        raise ValueError(f"{number} of something")
    return number
