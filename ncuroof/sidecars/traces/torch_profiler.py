"""Read traces of PyTorch's profiler, as it exports them (Chrome's trace format)."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ncuroof.errors import CountsError, complaint, found_json
from ncuroof.regular_files import head
from ncuroof.sidecars.traces.host_ranges import without_children
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps
from ncuroof.sidecars.traces.timeline import (
    MOST_NS,
    Activity,
    ApiCall,
    HostRange,
    Timeline,
    as_shape,
    checked_duration,
    name_of,
)

_GZIP = b"\x1f\x8b"
_STEP = "ProfilerStep#"
"""Prefix of the ranges that `torch.profiler.profile(schedule=…)` records for steps."""

_BATCH = "enumerate(DataLoader)#"
"""Prefix of the ranges that a DataLoader records when it is asked for a batch."""

_BACKWARD = "autograd::engine::evaluate_function"
_ALL_BACKWARD = "backward pass"
"""One name for all operators that the autograd engine evaluates."""

_MOST_US = 1e15
_MOST_BYTES = 2 * 2**30
_TOO_LARGE = f"more than {_MOST_BYTES >> 30} GiB: trace fewer steps"
_MAX_RATIO, _SMALL_BYTES = 200, 64 << 20
"""Most bytes of a trace per byte of its archive (PyTorch's traces compress ten- to thirtyfold); a size that is always allowed."""

_KERNEL = "kernel"
_COPIES = ("gpu_memcpy", "gpu_memset")
_HOST_CALLS = ("cuda_runtime", "cuda_driver")
_ANNOTATION, _OPERATOR = "user_annotation", "cpu_op"
_WANTED = "expected a trace of PyTorch's profiler"
_HINT = (
    "pass the file that torch.profiler.profile.export_chrome_trace() wrote, or a report of Nsight Systems (.nsys-rep, or the "
    "SQLite file that nsys export made of it)"
)

Events = Sequence[Mapping[str, Any]]
_Read = TypeVar("_Read")


def read_torch_trace(path: Path) -> tuple[Timeline, CountedSteps | None]:
    """Return the timeline of a trace, and its profiler steps; None without steps.

    Args:
        path: a file that `torch.profiler.profile.export_chrome_trace` wrote, compressed with gzip or not.

    Raises:
        CountsError: it cannot be read, or is not such a trace.
    """
    events = trace_events(path)
    return timeline_of(events, str(path)), _steps(events)


def timeline_of(events: Events, where: str = "PyTorch's trace") -> Timeline:
    """Return the timeline of a trace's events, whose times are in µs.

    Args:
        events: the events of a trace.
        where: the trace's name, for messages.

    Raises:
        CountsError: an event lacks what the format requires.
    """
    on_gpu = [event for event in events if event.get("cat") in (_KERNEL, *_COPIES)]
    calls = [event for event in events if event.get("cat") in _HOST_CALLS and "ts" in event]
    operators, annotations = (
        [event for event in events if event.get("cat") == category and _is_host_range(event)]
        for category in (_OPERATOR, _ANNOTATION)
    )

    def each(of_event: Callable[[Mapping[str, Any]], _Read], wanted: Events) -> Iterator[_Read]:
        event: Mapping[str, Any] = {}
        try:
            for event in wanted:
                yield of_event(event)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise CountsError(
                f"{where}: an event is malformed: {event['cat']} {name_of(event.get('name')):.80}: {complaint(error)}",
                hint="record the trace again, with a newer PyTorch if that does not help",
            ) from error

    origin_us = min(each(lambda event: _number(event, "ts"), on_gpu), default=0.0)
    return Timeline(
        [*each(lambda event: _activity(event, origin_us), on_gpu)],
        [*each(lambda event: _call(event, origin_us), calls)],
        [
            *each(lambda event: _range(event, origin_us), operators),
            *without_children(each(lambda event: _range(event, origin_us), annotations)),
        ],
    )


def _activity(event: Mapping[str, Any], origin_us: float) -> Activity:
    arguments = event["args"]
    is_copy = event["cat"] in _COPIES
    shape = None if is_copy else (as_shape(arguments["grid"]), as_shape(arguments["block"]))
    gpu, launch = _identifier(arguments.get("device")), _identifier(arguments.get("correlation"))
    number = _identifier(arguments.get("stream"))
    stream = None if number is None else (gpu, number)
    return Activity(name_of(event["name"]), *_times_ns(event, origin_us), gpu, launch, shape, is_copy, stream)


def _call(event: Mapping[str, Any], origin_us: float) -> ApiCall:
    start_ns, duration_ns = _times_ns(event, origin_us)
    launch = _identifier(event["args"].get("correlation"))
    return ApiCall(name_of(event["name"]), start_ns, start_ns + duration_ns, _identifier(event.get("tid")), launch)


def _range(event: Mapping[str, Any], origin_us: float) -> HostRange:
    start_ns, duration_ns = _times_ns(event, origin_us)
    return HostRange(
        _host_name(name_of(event.get("name"))), start_ns, start_ns + duration_ns, _identifier(event.get("tid"))
    )


def _host_name(name: str) -> str:
    """Return the name to sum a range under: the same for the whole backward pass, and for all batches of a DataLoader."""
    if name.startswith(_BACKWARD):
        return _ALL_BACKWARD
    return sys.intern(name.partition("#")[0] if name.startswith(_BATCH) else name)


def _is_host_range(event: Mapping[str, Any]) -> bool:
    """Return whether an event is a host range with valid times, and not a profiler step. Other events are ignored, not errors."""
    start, duration = event.get("ts"), event.get("dur")
    if not isinstance(start, (int, float)) or not isinstance(duration, (int, float)):
        return False
    is_time = abs(start) < MOST_NS and 0 <= duration < _MOST_US
    return is_time and not str(event.get("name")).startswith(_STEP)


def _times_ns(event: Mapping[str, Any], origin_us: float) -> tuple[float, float]:
    """Return an event's start, counted from `origin_us`, and its duration."""
    start_ns, duration_ns = 1e3 * (_number(event, "ts") - origin_us), 1e3 * _number(event, "dur")
    return start_ns, checked_duration(start_ns, duration_ns)


def _number(event: Mapping[str, Any], key: str) -> float:
    try:
        return float(event[key])
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{key!r}: expected a number, found {event[key]!r:.40}") from error


def _identifier(value: object) -> Hashable:
    if not isinstance(value, Hashable):
        raise ValueError(f"expected an identifier, found {value!r:.40}")
    return value


def trace_events(path: Path) -> Events:
    """Return the events of a trace.

    Raises:
        CountsError: it cannot be read, or is not such a trace.
    """
    try:
        content = _content(path)
        trace = json.loads(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CountsError(f"{path}: {_WANTED}, found a damaged archive: {error}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise CountsError(f"{path}: {_WANTED}, found a file that is not JSON: {error}", hint=_HINT) from error
    except OSError as error:
        raise CountsError(f"{path}: {error.strerror or error}", hint=_HINT) from error
    if not isinstance(trace, dict) or "traceEvents" not in trace:
        raise CountsError(f"{path}: {_WANTED}, found {found_json(trace)}", hint=_HINT)
    events = trace["traceEvents"]
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise CountsError(f"{path}: {_WANTED}, found traceEvents that are not a list of events", hint=_HINT)
    return events


def _content(path: Path) -> bytes:
    """Return a trace's content, decompressed if needed.

    Raises:
        ValueError: the trace is larger than `_MOST_BYTES`, or decompresses to more than a trace of its size can.
    """
    n_stored = path.stat().st_size
    if n_stored > _MOST_BYTES:
        raise ValueError(_TOO_LARGE)
    if head(path, len(_GZIP)) != _GZIP:
        return head(path, _MOST_BYTES)
    most = min(_MOST_BYTES, max(_SMALL_BYTES, _MAX_RATIO * n_stored))
    with gzip.open(path) as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:
        raise ValueError(_TOO_LARGE if most == _MOST_BYTES else f"more than {most} bytes in an archive of {n_stored}")
    return content


def _steps(events: Events) -> CountedSteps | None:
    """Return the number of profiler steps, and the time waited for batches; None if the trace has no such steps."""
    names = {name for event in events if (name := str(event.get("name"))).startswith(_STEP)}
    if not names:
        return None
    waits = [
        event["dur"]
        for event in events
        if event.get("cat") in (_ANNOTATION, _OPERATOR)
        and str(event.get("name")).startswith(_BATCH)
        and isinstance(event.get("dur"), (int, float))
        and 0 <= event["dur"] < _MOST_US
    ]
    return CountedSteps(len(names), batches_ns=1e3 * sum(waits) if waits else None)
