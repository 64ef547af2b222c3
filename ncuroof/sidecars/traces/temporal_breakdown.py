"""Divide the time of a trace by what the GPU did: kernels, communication, copies, and idle time by what it waited for.

The parts are those of Holistic Trace Analysis (docs.pytorch.org/tutorials, hta_intro_tutorial: "Temporal Breakdown", "Idle Time
Breakdown"), except that waiting for the host is divided further: either the host itself waits for the GPU, or it has not launched
yet.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from ncuroof.sidecars.traces.host_ranges import outermost
from ncuroof.sidecars.traces.idle_places import Gap, IdleShare, before, during, half_in_gaps_of
from ncuroof.sidecars.traces.timeline import MOST_NS, Activity, ApiCall, Timeline, name_of

_KINDS = ("computation", "communication", "memory")
"""Kinds of GPU work. If they overlap, the first one counts: time with a computation kernel is computation."""

_TIMES_OF_STEPS = ("duration_ns", "batches_ns", "earlier_step_ns")
_RESOLUTION_NS = 10.0
"""Shorter gaps and parts are ignored: PyTorch's traces count time from years ago, so that floats are off by a few nanoseconds."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time.

    Attributes:
        name: "computation", "communication" (only collectives) or "memory" (only copies); for idle time, what the GPU waited for:
            "first_launch", "synchronisation", "host_wait", "kernel_wait" or "other_wait".
        duration_ns: of all steps together.
        n_gaps: number of gaps with this cause; None if it is not idle time.
        half_in_gaps_of_ns: half of the time was in gaps at least this long; None if unknown.
        during: what the host did meanwhile, by descending idle time, if the GPU waited for it and the trace has host ranges.
        before: the kernels that ended the gaps, by descending idle time.
    """

    name: str
    duration_ns: float
    n_gaps: int | None = None
    half_in_gaps_of_ns: float | None = None
    during: tuple[IdleShare, ...] = ()
    before: tuple[IdleShare, ...] = ()


@dataclass(frozen=True, slots=True)
class CountedSteps:
    """Times of the counted steps that do not come from GPU activities.

    Attributes:
        n_steps: number of steps.
        duration_ns: from the start of the first step, on an idle GPU, until the GPU had finished the work of all steps; None if
            unknown: the breakdown then covers the time from the first GPU activity to the last.
        batches_ns: time that the host waited for batches of a DataLoader, whether the GPU was idle or not; None if unknown.
        earlier_step_ns: median time of the steps just before, which ran without PyTorch's profiler; None without such steps.
    """

    n_steps: int
    duration_ns: float | None = None
    batches_ns: float | None = None
    earlier_step_ns: float | None = None


@dataclass(frozen=True, slots=True)
class TemporalBreakdown:
    """The time of the counted steps, or of a whole run from the first GPU activity to the last, in parts that add up to it.

    Attributes:
        parts: the parts that are not empty.
        steps: the counted steps; None for a whole run.
    """

    parts: tuple[Part, ...]
    steps: CountedSteps | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self)

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> TemporalBreakdown:
        """Return the breakdown that `to_dict` turned into `entry`.

        Raises:
            KeyError, TypeError, ValueError: `entry` is malformed.
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
    """Return the breakdown for the busiest GPU; None if nothing ran, or if gaps mean nothing (`Timeline.is_stretched`).

    The cause of a gap follows from the call that launched the next activity. If it had not returned when the GPU ran out of work,
    the GPU waited for the host: "synchronisation" if the launching thread was in a call that waits for the GPU, else
    "host_wait". If the call had returned, the activity was already queued: "kernel_wait". If the call is unknown: "other_wait".

    Args:
        timeline: the timeline of the steps or of the run.
        collectives: regular expression for names of communication kernels; case is ignored.
        waiting_calls: regular expression for names of CUDA API calls that wait for the GPU.
        steps: the steps in the timeline; None for a whole run.
    """
    activities = _on_busiest_gpu(timeline.activities)
    if not activities or timeline.is_stretched:
        return None
    parts = _busy_parts(activities, re.compile(collectives, re.IGNORECASE))
    parts += _idle_parts(activities, timeline, re.compile(waiting_calls))
    if steps is not None and steps.duration_ns is not None:
        before_ns = steps.duration_ns - (max(each.end_ns for each in activities) - activities[0].start_ns)
        if before_ns > 0:
            parts.append(Part("first_launch", before_ns, 1))
    return TemporalBreakdown(tuple(parts), steps)


def _on_busiest_gpu(activities: Iterable[Activity]) -> list[Activity]:
    """Return the activities of the GPU with the most GPU time, by start."""
    by_gpu: dict[object, list[Activity]] = defaultdict(list)
    for activity in activities:
        by_gpu[activity.gpu].append(activity)
    most = max(by_gpu.values(), key=lambda found: sum(each.duration_ns for each in found), default=[])
    return sorted(most, key=lambda each: each.start_ns)


def _busy_parts(activities: Sequence[Activity], collectives: re.Pattern[str]) -> list[Part]:
    """Return how long the GPU worked, by kind, without overlap."""
    kinds = [_kind(each, collectives) for each in activities]
    parts, previous_ns = [], 0.0
    for n_kinds, kind in enumerate(_KINDS, start=1):
        counted = _KINDS[:n_kinds]
        merged = _merged(each for each, its_kind in zip(activities, kinds, strict=True) if its_kind in counted)
        so_far_ns = sum(end - start for start, end in merged)
        if so_far_ns - previous_ns > _RESOLUTION_NS:
            parts.append(Part(kind, so_far_ns - previous_ns))
        previous_ns = so_far_ns
    return parts


def _kind(activity: Activity, collectives: re.Pattern[str]) -> str:
    if activity.is_copy:
        return "memory"
    return "communication" if collectives.search(activity.name) else "computation"


def _idle_parts(activities: Sequence[Activity], timeline: Timeline, waiting: re.Pattern[str]) -> list[Part]:
    """Return how long the GPU was idle between its first and last activity, by what it waited for."""
    first_by_start = {each.start_ns: each for each in reversed(activities)}
    by_start = sorted(timeline.calls, key=lambda call: call.start_ns)
    # the first of several calls, that is, the runtime's, which calls the driver
    launches = {call.launch: call for call in reversed(by_start) if call.launch is not None}
    waits_by_thread: dict[object, list[ApiCall]] = defaultdict(list)
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


def _cause(launch: ApiCall | None, ran_dry_ns: float, waits: Sequence[ApiCall]) -> str:
    """Return the cause of a gap, given the next launch and the waiting calls of its thread, sorted by start."""
    if launch is None:
        return "other_wait"
    if launch.end_ns <= ran_dry_ns:
        return "kernel_wait"
    place = bisect_right(waits, ran_dry_ns, key=lambda call: call.start_ns) - 1
    is_waiting = place >= 0 and waits[place] is not launch and waits[place].end_ns >= ran_dry_ns
    return "synchronisation" if is_waiting else "host_wait"


def _merged(activities: Iterable[Activity]) -> list[tuple[float, float]]:
    """Return the union of the activities' times, which are sorted by start, as intervals that do not touch."""
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


def _places(entries: Sequence[Mapping[str, Any]]) -> tuple[IdleShare, ...]:
    return tuple(IdleShare(name_of(entry["name"]), _time(entry["duration_ns"])) for entry in entries)


def _time(value: Any) -> float:
    duration_ns = float(value)
    if not 0 <= duration_ns <= MOST_NS:
        raise ValueError(f"expected a time, found {duration_ns} ns")
    return duration_ns


def _count(value: Any) -> int:
    number = int(value)
    if not 1 <= number <= MOST_NS:
        raise ValueError(f"expected a count, found {number}")
    return number
