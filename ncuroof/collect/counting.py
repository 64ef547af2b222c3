"""From a first run's counts to the launches that are recorded, and what recording them costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from ncuroof.collect.arguments import Selection, kernel_pattern
from ncuroof.collect.counts import Counts, KernelCount, covering, functions_of
from ncuroof.collect.kernel_names import function_name
from ncuroof.collect.plan import Plan
from ncuroof.collect.request import Request, Steps
from ncuroof.collect.settings import Settings
from ncuroof.collect.status_line import clock
from ncuroof.collect.temporal_breakdown import CountedSteps
from ncuroof.collect.torch_trace import counts_of, trace_events
from ncuroof.errors import CountsError, ProfileRequestError


def read_trace(path: Path, request: Request, settings: Settings, journal: Iterable[Mapping[str, Any]]) -> Counts:
    """Return the counts of a trace that PyTorch's profiler left.

    Args:
        path: of the trace.
        request: what was counted.
        settings: of profiles/collect.toml.
        journal: what the runner told.

    Raises:
        CountsError: it is not as expected.
    """
    try:
        events = trace_events(path)
    except CountsError as error:
        raise CountsError(
            f"the first run's trace cannot be counted: {error}", hint="update PyTorch, or count nothing: --no-per-shape"
        ) from error
    steps = None if request.steps is None else _counted_steps(request.steps, journal)
    counts = counts_of(events, settings, steps=steps)
    if request.steps is None:
        return counts
    return replace(counts, steps=request.steps.text, breakdown=None if steps is None else counts.breakdown)


def _counted_steps(wanted: Steps, journal: Iterable[Mapping[str, Any]]) -> CountedSteps | None:
    """Return what the runner saw of the counted steps; None where it did not see the last end: what came then is no step."""
    told = {str(entry.get("event")): entry for entry in journal}
    stop, counted = told.get("stop"), told.get("counted")
    if stop is None or counted is None or stop["after"] != wanted.last:
        return None
    earlier = counted["earlier_steps_ns"]
    return CountedSteps(
        wanted.last - wanted.first + 1,
        counted["duration_ns"],
        counted["batches_ns"],
        median(earlier) if earlier else None,
    )


def select_launches(request: Request, plan: Plan, settings: Settings, counts: Counts) -> tuple[Selection, str]:
    """Return which launches to record, and in a sentence what that costs.

    Raises:
        ProfileRequestError: a pattern of --kernel is no regular expression.
    """
    pattern = kernel_pattern(request, Selection(), settings)
    wanted = Counts(tuple(kernel for kernel in counts.kernels if _passes(kernel.name, pattern)), counts.steps)
    functions = () if request.cover_frac is None else functions_of(covering(wanted, request.cover_frac))
    chosen = [kernel for kernel in wanted.kernels if not functions or function_name(kernel.name) in functions]
    is_long = sum(kernel.n_launches for kernel in chosen) > settings.per_shape_from_launches
    is_part = request.trace is not None and request.steps is None  # of a run that may be much longer
    per_shape = is_long or is_part if request.per_shape is None else request.per_shape
    n_launches = len(chosen) if per_shape else sum(kernel.n_launches for kernel in chosen)
    sentence = (
        f"{counts.n_launches} launches of {len(counts.kernels)} kernels and shapes, "
        f"{counts.duration_ns / 1e6:.1f} ms of GPU time; recording "
        f"{f'{len(chosen)} of them, once each' if per_shape else 'every launch'}{_cost(chosen, plan, per_shape=per_shape)}"
    )
    return Selection(functions, per_shape, n_launches if request.count is None else None), sentence


def _passes(name: str, pattern: str | None) -> bool:
    """Return whether ncu's filter by name lets a kernel through."""
    try:
        return pattern is None or re.search(pattern, function_name(name)) is not None
    except re.error as error:
        raise ProfileRequestError(
            f"--kernel: a regular expression was wanted: {error}", hint="quote it for the shell"
        ) from error


def _cost(chosen: Sequence[KernelCount], plan: Plan, *, per_shape: bool) -> str:
    """Return replays, and the GPU time of these, which is the least that recording can take; empty where passes are not known."""
    if plan.passes is None:
        return ""
    times = [
        (1, each.duration_ns / each.n_launches) if per_shape else (each.n_launches, each.duration_ns) for each in chosen
    ]
    n_launches, duration_ns = sum(n for n, _ in times), sum(time for _, time in times)
    least, most = plan.passes
    return f": {n_launches * least} to {n_launches * most} replays, at least {clock(duration_ns * least / 1e9)} of GPU time"
