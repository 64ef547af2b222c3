"""Traces of PyTorch's profiler, as it exports them (Chrome's trace format), to what they say of a run."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncuroof.collect.counts import Counts, count_trace
from ncuroof.collect.settings import Settings, load_settings
from ncuroof.collect.temporal_breakdown import CountedSteps, break_down_time
from ncuroof.errors import CountsError

_GZIP = b"\x1f\x8b"
_STEP = "ProfilerStep#"
"""Begins the name of what `torch.profiler.profile(schedule=…)` leaves for a step."""

_BATCH = "enumerate(DataLoader)#"
"""Begins the name of what a DataLoader leaves when it is asked for a batch."""

_MOST_US = 1e15
_MOST_BYTES = 2 * 2**30
_HOST_RANGES = ("user_annotation", "cpu_op")
_HINT = "name what torch.profiler.profile.export_chrome_trace() wrote"

Events = Sequence[Mapping[str, Any]]


def read_torch_trace(path: Path) -> Counts:
    """Return how often each kernel of a trace ran, and what the GPU did meanwhile.

    Args:
        path: of what `torch.profiler.profile.export_chrome_trace` wrote, compressed with gzip or not.

    Raises:
        CountsError: it cannot be read, is no such trace, or holds no kernel.
    """
    events = trace_events(path)
    counts = counts_of(events, load_settings(), steps=_steps(events))
    if not counts.kernels:
        raise CountsError(
            f"{path}: kernels on a GPU were wanted, the trace holds none",
            hint="record it with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        )
    return counts


def counts_of(events: Events, settings: Settings, *, steps: CountedSteps | None) -> Counts:
    """Return how often each kernel of a trace's events ran, and what the GPU did meanwhile.

    Args:
        events: of a trace.
        settings: of profiles/collect.toml.
        steps: that the trace holds; None for a whole run.

    Raises:
        CountsError: an event lacks what the format promises.
    """
    patterns = {"collectives": settings.collectives, "waiting_calls": settings.waiting_calls}
    return replace(count_trace(events), breakdown=break_down_time(events, steps=steps, **patterns))


def trace_events(path: Path) -> Events:
    """Return the events of a trace.

    Raises:
        CountsError: it cannot be read, or is no such trace.
    """
    try:
        content = _content(path)
        events = json.loads(content)["traceEvents"]
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise TypeError("traceEvents are no list of events")
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CountsError(
            f"{path}: a trace of PyTorch's profiler was wanted: {type(error).__name__}, {error}", hint=_HINT
        ) from error
    except OSError as error:
        raise CountsError(f"{path}: {error.strerror or error}", hint=_HINT) from error
    return events


def _content(path: Path) -> bytes:
    """Return a trace's text, unpacked.

    Raises:
        ValueError: it is longer than a trace may be.
    """
    with path.open("rb") as file:
        is_packed = file.read(len(_GZIP)) == _GZIP
    with gzip.open(path) if is_packed else path.open("rb") as file:
        content: bytes = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 30} GiB: trace fewer steps")
    return content


def _steps(events: Events) -> CountedSteps | None:
    """Return the steps that the profiler was told of, and the waits for their batches; None where it was told of none."""
    names = {name for event in events if (name := str(event.get("name"))).startswith(_STEP)}
    if not names:
        return None
    waits = [
        event["dur"]
        for event in events
        if event.get("cat") in _HOST_RANGES
        and str(event.get("name")).startswith(_BATCH)
        and isinstance(event.get("dur"), (int, float))
        and 0 <= event["dur"] < _MOST_US
    ]
    return CountedSteps(len(names), batches_ns=1e3 * sum(waits) if waits else None)
