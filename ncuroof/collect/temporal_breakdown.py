"""What the GPU did while launches were counted: kernels, communication, copies, and idle time by what it waited for.

The parts are those of Holistic Trace Analysis (docs.pytorch.org/tutorials, hta_intro_tutorial: "Temporal Breakdown", "Idle Time
Breakdown"), where a wait for the host is divided once more: the host may itself wait for the GPU, or not have launched yet.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

from ncuroof.errors import CountsError

_KINDS = ("computation", "communication", "memory")
"""What the GPU does, and at once: time with a kernel is computation whatever else goes on."""

_COPIES = ("gpu_memcpy", "gpu_memset")
_HOST_CALLS = ("cuda_runtime", "cuda_driver")

_TIMES_OF_STEPS = ("duration_ns", "batches_ns", "earlier_step_ns")
_MOST = 1e18
"""Nanoseconds in thirty years: what is more was neither measured nor counted."""

_RESOLUTION_US = 0.01
"""Times in a trace count from years ago; as floating-point numbers they are a few nanoseconds off."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time.

    Attributes:
        name: "computation", "communication" (collectives alone) or "memory" (copies alone); or of idle time what was waited for:
            "first_launch", "synchronisation", "host_wait", "kernel_wait" or "other_wait".
        duration_ns: of all steps together.
        n_gaps: how often the GPU went idle for it; None for what is no idle time.
    """

    name: str
    duration_ns: float
    n_gaps: int | None = None


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


@dataclass(frozen=True, slots=True)
class _Activity:
    """A kernel or copy on the GPU; times in µs."""

    start: float
    end: float
    kind: str
    correlation: object


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the CUDA API on the host; times in µs."""

    start: float
    end: float
    name: str
    thread: object


def break_down_time(
    events: Sequence[Mapping[str, Any]], *, collectives: str, waiting_calls: str, steps: CountedSteps | None = None
) -> TemporalBreakdown | None:
    """Return what the GPU with most work did; None where the trace does not tell when.

    A GPU that has run dry waits for the host where the next launch had not returned by then: "synchronisation" where the thread
    that launches was inside a call that waits for the GPU, else "host_wait". Where it had, the kernel was queued ("kernel_wait").

    Args:
        events: of a trace of PyTorch's profiler (Chrome's trace format, times in µs).
        collectives: regular expression of the names of kernels that communicate, whatever their case.
        waiting_calls: of calls of the CUDA API that wait for the GPU.
        steps: that the trace holds; None for a whole run.

    Raises:
        CountsError: an event lacks what the format promises.
    """
    try:
        activities = _activities(events, re.compile(collectives, re.IGNORECASE))
        parts = [*_busy_parts(activities), *_idle_parts(activities, list(_calls(events)), re.compile(waiting_calls))]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise CountsError(
            f"PyTorch's trace: an event is not as it should be: {error!r}", hint="update PyTorch"
        ) from error
    if not activities:
        return None
    if steps is None or steps.duration_ns is None:
        return TemporalBreakdown(tuple(parts), steps)
    before_ns = steps.duration_ns - 1e3 * (max(each.end for each in activities) - activities[0].start)
    if before_ns > 0:
        parts.append(Part("first_launch", before_ns, 1))
    return TemporalBreakdown(tuple(parts), steps)


def _activities(events: Iterable[Mapping[str, Any]], collectives: re.Pattern[str]) -> list[_Activity]:
    """Return what ran on the GPU with most work, by time; empty where times are missing."""
    by_device: dict[object, list[_Activity]] = defaultdict(list)
    for event in events:
        category = event.get("cat")
        if category not in ("kernel", *_COPIES) or "ts" not in event:
            continue
        arguments = event["args"]
        start, end = _interval(event)
        kind = "memory" if category in _COPIES else "computation"
        if kind == "computation" and collectives.search(str(event["name"])):
            kind = "communication"
        by_device[arguments.get("device")].append(_Activity(start, end, kind, arguments.get("correlation")))
    most = max(by_device.values(), key=lambda found: sum(each.end - each.start for each in found), default=[])
    return sorted(most, key=lambda each: each.start)


def _calls(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[object, _Call]]:
    """Yield calls of the CUDA API by correlation, the latest first: the runtime's, which calls the driver, after the driver's."""
    found = [event for event in events if event.get("cat") in _HOST_CALLS and "ts" in event]
    for event in sorted(found, key=lambda each: -float(each["ts"])):
        yield event["args"].get("correlation"), _Call(*_interval(event), str(event["name"]), event.get("tid"))


def _interval(event: Mapping[str, Any]) -> Interval:
    start, duration = float(event["ts"]), float(event["dur"])
    if not (isfinite(start) and 0 <= duration < _MOST):
        raise ValueError(f"{duration} µs from {start}")
    return start, start + duration


def _busy_parts(activities: Sequence[_Activity]) -> list[Part]:
    """Return how long the GPU worked, by kind."""
    parts, told = [], 0.0
    for n_kinds, kind in enumerate(_KINDS, start=1):
        merged = _merged([(each.start, each.end) for each in activities if each.kind in _KINDS[:n_kinds]])
        so_far = sum(end - start for start, end in merged)
        if so_far - told > _RESOLUTION_US:
            parts.append(Part(kind, 1e3 * (so_far - told)))
        told = so_far
    return parts


def _idle_parts(
    activities: Sequence[_Activity], calls: Sequence[tuple[object, _Call]], waiting: re.Pattern[str]
) -> list[Part]:
    """Return how long the GPU was idle between its first activity and its last, by what it waited for."""
    first_by_start = {each.start: each for each in reversed(activities)}
    launches = dict(calls)
    waits_by_thread: dict[object, list[_Call]] = defaultdict(list)
    for _, call in reversed(calls):
        if waiting.search(call.name):
            waits_by_thread[call.thread].append(call)
    durations: dict[str, list[float]] = defaultdict(list)
    for (_, ran_dry), (start, _) in pairwise(_merged([(each.start, each.end) for each in activities])):
        launch = launches.get(first_by_start[start].correlation)
        cause = _cause(launch, ran_dry, [] if launch is None else waits_by_thread[launch.thread])
        durations[cause].append(start - ran_dry)
    return [Part(cause, 1e3 * sum(gaps), len(gaps)) for cause, gaps in durations.items()]


def _cause(launch: _Call | None, ran_dry: float, waits: Sequence[_Call]) -> str:
    """Return what a GPU that ran dry waited for, by the next launch and the waiting calls of its thread, sorted by start."""
    if launch is None:
        return "other_wait"
    if launch.end <= ran_dry:
        return "kernel_wait"
    place = bisect_right(waits, ran_dry, key=lambda call: call.start) - 1
    is_waiting = place >= 0 and waits[place] is not launch and waits[place].end >= ran_dry
    return "synchronisation" if is_waiting else "host_wait"


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the time that any of the intervals, sorted by start, takes: intervals that do not touch."""
    merged: list[Interval] = []
    for start, end in intervals:
        if merged and start <= merged[-1][1] + _RESOLUTION_US:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _part(entry: Mapping[str, Any]) -> Part:
    n_gaps = entry["n_gaps"]
    return Part(str(entry["name"]), _time(entry["duration_ns"]), None if n_gaps is None else _count(n_gaps))


def _time(value: Any) -> float:
    duration_ns = float(value)
    if not 0 <= duration_ns <= _MOST:
        raise ValueError(f"a time of {duration_ns} ns")
    return duration_ns


def _count(value: Any) -> int:
    number = int(value)
    if not 1 <= number <= _MOST:
        raise ValueError(f"{number} of something")
    return number
