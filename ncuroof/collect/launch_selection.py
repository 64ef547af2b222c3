"""Choose the launches to record from the counts, and estimate what recording them costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ncuroof.collect.arguments import LaunchFilter, kernel_pattern
from ncuroof.collect.plan import Plan
from ncuroof.collect.progress import clock
from ncuroof.collect.request import Request
from ncuroof.errors import ProfileRequestError, ProfilingError
from ncuroof.ncu.kernel_names import function_name
from ncuroof.ncu.settings import Settings
from ncuroof.sidecars.counts import Counts, KernelCount, covering, functions_of
from ncuroof.sidecars.traces.timeline import WHOLE_GRAPH

_APPLICATION_REPLAY = "application"


def select_launches(request: Request, plan: Plan, settings: Settings, counts: Counts) -> tuple[LaunchFilter, str]:
    """Return which launches to record, and a sentence that says which they are and what they cost.

    Raises:
        ProfilingError: no counted kernel passes the filters.
        ProfileRequestError: a pattern of --kernel is not a regular expression, or CUDA graphs were traced as a whole.
    """
    wanted = _wanted(request, settings, counts)
    is_long = wanted.n_launches > settings.per_shape_from_launches
    is_part = request.trace is not None and request.steps is None  # the run may be much longer than the trace
    per_shape = is_long or is_part if request.per_shape is None else request.per_shape
    functions: tuple[str, ...] = ()
    if request.cover_frac is not None:
        functions = covering(wanted, request.cover_frac, once_each=per_shape)
    chosen = [kernel for kernel in wanted.kernels if not functions or function_name(kernel.name) in functions]
    selection = (
        _once_each(request, chosen, functions)
        if per_shape
        else LaunchFilter(functions, n_launches=sum(kernel.n_launches for kernel in chosen))
    )
    sentence = (
        f"{counts.n_launches} launches of {len(counts.kernels)} kernels and shapes, "
        f"{counts.duration_ns / 1e6:.1f} ms of GPU time; recording "
        f"{_recorded(request, chosen, counts, per_shape=per_shape)}{_cost(request, chosen, plan, settings, per_shape=per_shape)}"
    )
    return selection if request.count is None else replace(selection, n_launches=None), sentence


def _wanted(request: Request, settings: Settings, counts: Counts) -> Counts:
    """Return the counts of the kernels that pass the filters.

    Raises:
        ProfilingError, ProfileRequestError: as in `select_launches`.
    """
    if request.graph_profiling == "node" and any(kernel.name == WHOLE_GRAPH for kernel in counts.kernels):
        raise ProfileRequestError(
            "--trace: expected single kernels, found CUDA graphs traced as a whole",
            hint="trace again with nsys profile --cuda-graph-trace=node",
        )
    pattern = kernel_pattern(request, LaunchFilter(), settings)
    collectives = re.compile(settings.collectives) if request.leaves_collectives_out else None
    passing = tuple(
        kernel
        for kernel in counts.kernels
        if _passes(kernel.name, pattern, in_whole_name=request.asks_for_whole_names)
        and not (collectives and collectives.search(kernel.name))
    )
    if not passing:
        raise ProfilingError(
            f"none of the {len(counts.kernels)} counted kernels and shapes passes the filters (no-kernels)",
            hint="--kernel searches the function name, or the whole demangled name if it contains < > or ::; "
            f"the function that takes longest is {function_name(counts.kernels[0].name):.80}",
        )
    return Counts(passing, counts.steps)


def _once_each(request: Request, chosen: Sequence[KernelCount], functions: tuple[str, ...]) -> LaunchFilter:
    """Return how to record each kernel and shape once.

    By function name, ncu cannot distinguish instantiations of a template that have the same shape. If there are any, mangled names
    are used, and the patterns of --kernel are replaced by the functions that they match. If the patterns match whole demangled
    names, ncu distinguishes kernels by demangled names.
    """
    if request.asks_for_whole_names:
        return LaunchFilter(per_shape=True, n_launches=len(chosen))
    distinct = {(function_name(kernel.name), kernel.grid, kernel.block) for kernel in chosen}
    if len(distinct) == len(chosen):
        return LaunchFilter(functions, per_shape=True, n_launches=len(chosen))
    if request.kernels and not functions:
        functions = functions_of(chosen)
    return LaunchFilter(functions, per_shape=True, n_launches=len(chosen), by_mangled_names=True)


def _passes(name: str, pattern: str | None, *, in_whole_name: bool) -> bool:
    """Return whether ncu's filter by name accepts a kernel."""
    try:
        return pattern is None or re.search(pattern, name if in_whole_name else function_name(name)) is not None
    except re.error as error:
        raise ProfileRequestError(
            f"--kernel: expected a regular expression: {error}", hint="quote it for the shell"
        ) from error


def _recorded(request: Request, chosen: Sequence[KernelCount], counts: Counts, *, per_shape: bool) -> str:
    """Return in words which launches are recorded; with `per_shape`, --launch-count applies to each kernel and shape."""
    is_all, some = len(chosen) == len(counts.kernels), f"{len(chosen)} of these {len(counts.kernels)}"
    if per_shape:
        is_once = request.count is None or request.count == 1
        most = "one launch" if is_once else f"at most {request.count} launches"
        return f"{most} of each" if is_all else f"{some}, {most} each"
    n_launches = sum(kernel.n_launches for kernel in chosen)
    if request.count is not None and request.count < n_launches:
        return f"at most {request.count} of {n_launches} launches"
    return "every launch" if is_all else f"every launch of {some}"


def _cost(request: Request, chosen: Sequence[KernelCount], plan: Plan, settings: Settings, *, per_shape: bool) -> str:
    """Return the number of replays and their estimated time, in words; empty if the number of passes is unknown."""
    if plan.passes is None:
        return ""
    if request.replay_mode == _APPLICATION_REPLAY:  # one pass per run (Kernel Profiling Guide, "Application Replay")
        return f": {_range(*map(str, plan.passes))} runs of the program"
    n_launches, duration_s = _work(request, chosen, per_shape=per_shape)
    replays = _range(*(str(n_launches * passes) for passes in plan.passes))
    times = _range(*(clock(passes * (n_launches * settings.replay_s + duration_s)) for passes in plan.passes))
    return (
        f": {replays} replays, about {times} at "
        f"{settings.replay_s * 1e3:.0f} ms per replay plus GPU time, as measured on an H100"
    )


def _work(request: Request, chosen: Sequence[KernelCount], *, per_shape: bool) -> tuple[int, float]:
    """Return how many launches are recorded, and their GPU time in seconds, from the mean time of the launches they represent."""
    if per_shape:
        n_by_kernel = [min(request.count or 1, kernel.n_launches) for kernel in chosen]
        means = zip(n_by_kernel, chosen, strict=True)
        return sum(n_by_kernel), sum(n * kernel.duration_ns / kernel.n_launches for n, kernel in means) / 1e9
    n_counted = sum(kernel.n_launches for kernel in chosen)
    n_launches = n_counted if request.count is None else min(request.count, n_counted)
    return n_launches, n_launches / n_counted * sum(kernel.duration_ns for kernel in chosen) / 1e9


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
