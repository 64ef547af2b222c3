"""Read the runner's journal: which steps were seen, and why nothing was counted or recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ncuroof.collect.request import Request, Steps
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps

Journal = Sequence[Mapping[str, Any]]


def read_status(path: Path) -> list[dict[str, Any]]:
    """Return the runner's journal; empty if there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]  # the last line may be cut off
    except (OSError, ValueError):
        return []


def refused(journals: Iterable[Journal]) -> str | None:
    """Return why the runner ended the script before its first step; None if it did not."""
    return next((str(each["why"]) for journal in journals for each in _entries_of(journal, "refused")), None)


def lacks_torch(journals: Iterable[Journal]) -> bool:
    """Return whether the script's Python has no PyTorch."""
    return any(_entries_of(journal, "no-torch") for journal in journals)


def is_cut_off(journals: Iterable[Journal]) -> bool:
    """Return whether a full disk explains missing traces: a journal is empty, or says that a trace was written."""
    return any(not journal or _entries_of(journal, "counted") for journal in journals)


def why_not_counted(journals: Iterable[Journal]) -> str:
    """Return why a script that ran to its end left no trace."""
    events = {str(each.get("event")) for journal in journals for each in journal}
    if "not-counted" in events:
        return "the script uses the GPU from a thread of its own, where PyTorch's profiler cannot count"
    if "start" in events and "stop" not in events:
        return "the script ended with os._exit, before PyTorch's profiler could write its counts"
    return "PyTorch did not use the GPU in the script's own process"


def steps_hint(request: Request, journal: Journal) -> str | None:
    """Return what to do if the requested steps were not seen on the GPU; None if they were, or none were requested."""
    if request.steps is None or not journal:
        return None
    n_steps = len(_entries_of(journal, "step"))
    if _entries_of(journal, "start") and (n_steps or request.steps.first > 1):
        return None
    if n_steps >= request.steps.first:
        return (
            f"the script made {n_steps} steps ({request.steps.of}), but did not use the GPU through PyTorch; "
            "with another library, steps can be profiled from the second on: --step 2"
        )
    made = (
        f"the script made {n_steps} steps ({request.steps.of}) and never reached --step {request.steps.text}; "
        if n_steps
        else f"the script made no step ({request.steps.of}) in its own process, and steps of processes that it "
        "starts are not counted; "
    )
    n_others = sum(entry.get("n_steps", 0) for entry in _entries_of(journal, "passed-over"))
    others = f"{n_others} steps of other optimizers do not count; " if n_others else ""
    if not n_steps and request.steps.are_calls:
        others = "a function that a decorator keeps for itself, as a registry does, is called uncounted: name one that it calls; "
    return f"{made}{others}--step-of sets what counts as a step"


def cut_short(request: Request, journal: Journal) -> str | None:
    """Return a warning if the script ended before the last of the wanted steps; None if not."""
    steps, stops = request.steps, _entries_of(journal, "stop")
    if steps is None or not stops or stops[0]["after"] >= steps.last:
        return None
    n_steps = stops[0]["after"]
    return (
        f"the script ended after step {n_steps}: {n_steps - steps.first + 1} of the "
        f"{steps.last - steps.first + 1} steps of --step {steps.text} were seen"
    )


def _entries_of(journal: Journal, event: str) -> list[Mapping[str, Any]]:
    """Return the entries of an event."""
    return [entry for entry in journal if entry.get("event") == event]


def counted_steps(wanted: Steps, journal: Iterable[Mapping[str, Any]]) -> CountedSteps | None:
    """Return the times of the counted steps; None if the last one did not end: the time would then include an unfinished step."""
    by_event = {str(entry.get("event")): entry for entry in journal}
    stop, counted = by_event.get("stop"), by_event.get("counted")
    if stop is None or counted is None or stop["after"] != wanted.last:
        return None
    earlier = counted["earlier_steps_ns"]
    return CountedSteps(
        wanted.last - wanted.first + 1,
        counted["duration_ns"],
        counted["batches_ns"],
        median(earlier) if earlier else None,
    )
