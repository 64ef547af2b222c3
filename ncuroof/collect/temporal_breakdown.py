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
from typing import Any

from ncuroof.errors import CountsError

_KINDS = ("computation", "communication", "memory")
"""What the GPU does, and at once: time with a kernel is computation whatever else goes on."""

_COPIES = ("gpu_memcpy", "gpu_memset")
_HOST_CALLS = ("cuda_runtime", "cuda_driver")

_LONGEST_NS = 1e18
"""Thirty years: what is longer was not counted."""

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
    """What the runner saw of the counted steps.

    Attributes:
        n_steps: how many there were.
        duration_ns: from their beginning, on an idle GPU, until it had done all their work.
        batches_ns: for which the host waited in them for batches of a DataLoader, whether the GPU was idle or not.
        earlier_step_ns: median time of the steps just before, which ran without PyTorch's profiler; None where there were none.
    """

    n_steps: int
    duration_ns: float
    batches_ns: float
    earlier_step_ns: float | None


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
        earlier = steps["earlier_step_ns"]
        counted = CountedSteps(
            _count(steps["n_steps"]),
            _time(steps["duration_ns"]),
            _time(steps["batches_ns"]),
            None if earlier is None else _time(earlier),
        )
        return TemporalBreakdown(parts, counted)


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


def break_down(
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
        calls = dict(_calls(events))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CountsError(f"PyTorch's trace: an event lacks {error}", hint="update PyTorch") from error
    if not activities:
        return None
    parts = [*_busy_parts(activities), *_idle_parts(activities, calls, re.compile(waiting_calls))]
    if steps is None:
        return TemporalBreakdown(tuple(parts))
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
        start = float(event["ts"])
        kind = "memory" if category in _COPIES else "computation"
        if kind == "computation" and collectives.search(str(event["name"])):
            kind = "communication"
        by_device[arguments.get("device")].append(
            _Activity(start, start + float(event["dur"]), kind, arguments.get("correlation"))
        )
    most = max(by_device.values(), key=lambda found: sum(each.end - each.start for each in found), default=[])
    return sorted(most, key=lambda each: each.start)


def _calls(events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[object, _Call]]:
    """Yield calls of the CUDA API by correlation, the outer of two last: a call of the runtime makes one of the driver."""
    found = [event for event in events if event.get("cat") in _HOST_CALLS and "ts" in event]
    for event in sorted(found, key=lambda each: -float(each["ts"])):
        start = float(event["ts"])
        call = _Call(start, start + float(event["dur"]), str(event["name"]), event.get("tid"))
        yield event["args"].get("correlation"), call


def _busy_parts(activities: Sequence[_Activity]) -> list[Part]:
    """Return how long the GPU worked, by kind."""
    parts, told = [], 0.0
    for n_kinds, kind in enumerate(_KINDS, start=1):
        merged = _merged([(each.start, each.end) for each in activities if each.kind in _KINDS[:n_kinds]])
        so_far = sum(end - start for start, end in merged)
        if so_far > told:
            parts.append(Part(kind, 1e3 * (so_far - told)))
        told = so_far
    return parts


def _idle_parts(activities: Sequence[_Activity], calls: Mapping[object, _Call], waiting: re.Pattern[str]) -> list[Part]:
    """Return how long the GPU was idle between its first activity and its last, by what it waited for."""
    first_by_start = {each.start: each for each in reversed(activities)}
    by_thread: dict[object, list[_Call]] = defaultdict(list)
    for call in sorted(calls.values(), key=lambda each: each.start):
        if waiting.search(call.name):
            by_thread[call.thread].append(call)
    starts_by_thread = {thread: [call.start for call in found] for thread, found in by_thread.items()}
    durations: dict[str, list[float]] = defaultdict(list)
    for (_, ran_dry), (start, _) in pairwise(_merged([(each.start, each.end) for each in activities])):
        launch = calls.get(first_by_start[start].correlation)
        cause = "other_wait"
        if launch is not None and launch.end <= ran_dry:
            cause = "kernel_wait"
        elif launch is not None:
            place = bisect_right(starts_by_thread.get(launch.thread, []), ran_dry) - 1
            call = by_thread[launch.thread][place] if place >= 0 else launch
            cause = "synchronisation" if call is not launch and call.end >= ran_dry else "host_wait"
        durations[cause].append(start - ran_dry)
    return [Part(cause, 1e3 * sum(gaps), len(gaps)) for cause, gaps in durations.items()]


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the time that any of the intervals, sorted by start, takes: intervals that do not touch."""
    merged: list[Interval] = []
    for start, end in intervals:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _part(entry: Mapping[str, Any]) -> Part:
    n_gaps = entry["n_gaps"]
    return Part(str(entry["name"]), _time(entry["duration_ns"]), None if n_gaps is None else _count(n_gaps))


def _time(value: Any) -> float:
    duration_ns = float(value)
    if not 0 <= duration_ns <= _LONGEST_NS:
        raise ValueError(f"a time of {duration_ns} ns")
    return duration_ns


def _count(value: Any) -> int:
    number = int(value)
    if not 1 <= number <= _LONGEST_NS:
        raise ValueError(f"{number} of something")
    return number
