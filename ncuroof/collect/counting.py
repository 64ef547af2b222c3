"""From a first run's counts to the launches that are recorded, and what recording them costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ncuroof.collect.arguments import FUNCTION, Selection, kernel_pattern
from ncuroof.collect.counts import Counts, KernelCount, covering, functions_of
from ncuroof.collect.kernel_names import function_name
from ncuroof.collect.plan import Plan
from ncuroof.collect.request import Request
from ncuroof.collect.settings import Settings
from ncuroof.collect.status_line import clock
from ncuroof.collect.timeline import WHOLE_GRAPH, Shape
from ncuroof.errors import ProfileRequestError, ProfilingError


def select_launches(request: Request, plan: Plan, settings: Settings, counts: Counts) -> tuple[Selection, str]:
    """Return which launches to record, and in a sentence what that costs.

    Raises:
        ProfilingError: no kernel that was counted is wanted.
        ProfileRequestError: a pattern of --kernel is no regular expression, or the kernels of CUDA graphs are not known.
    """
    if request.graph_profiling == "node" and any(kernel.name == WHOLE_GRAPH for kernel in counts.kernels):
        raise ProfileRequestError(
            "--trace: single kernels were wanted, CUDA graphs recorded as wholes were found",
            hint="trace again with nsys profile --cuda-graph-trace=node",
        )
    pattern = kernel_pattern(request, Selection(), settings)
    wanted = Counts(tuple(kernel for kernel in counts.kernels if _passes(kernel.name, pattern)), counts.steps)
    if not wanted.kernels:
        raise ProfilingError(
            f"none of the {len(counts.kernels)} kernels and shapes that were counted is wanted (no-kernels)",
            hint=f"--kernel is looked for in the function's name; the longest is {function_name(counts.kernels[0].name)}",
        )
    functions = () if request.cover_frac is None else functions_of(covering(wanted, request.cover_frac))
    chosen = [kernel for kernel in wanted.kernels if not functions or function_name(kernel.name) in functions]
    is_long = sum(kernel.n_launches for kernel in chosen) > settings.per_shape_from_launches
    is_part = request.trace is not None and request.steps is None  # of a run that may be much longer
    per_shape = is_long or is_part if request.per_shape is None else request.per_shape
    selection = (
        _once_each(request, settings, chosen, functions, counts.n_to_meet_all)
        if per_shape
        else Selection(functions, n_launches=sum(kernel.n_launches for kernel in chosen))
    )
    sentence = (
        f"{counts.n_launches} launches of {len(counts.kernels)} kernels and shapes, "
        f"{counts.duration_ns / 1e6:.1f} ms of GPU time; recording "
        f"{_times(selection, len(chosen))}{_cost(chosen, plan, selection)}"
    )
    return selection if request.count is None else replace(selection, n_launches=None), sentence


def _once_each(
    request: Request,
    settings: Settings,
    chosen: Sequence[KernelCount],
    functions: tuple[str, ...],
    n_to_meet_all: int,
) -> Selection:
    """Return how to record each kernel and shape once.

    By the function's name ncu takes instantiations of a template with one shape for the same kernel. Where there are such it goes
    by the whole name, and gets the functions that the patterns of --kernel chose; else the patterns stay as they are.
    """
    n_by_function = Counter[tuple[str, Shape, Shape]]()
    for kernel in chosen:
        n_by_function[function_name(kernel.name), kernel.grid, kernel.block] += kernel.n_launches
    if len(n_by_function) == len(chosen):
        return Selection(functions, per_shape=True, n_launches=len(chosen))
    if settings.name_base == FUNCTION:
        n_launches = sum(min(n, n_to_meet_all) for n in n_by_function.values())
        return Selection(functions, per_shape=True, n_launches=n_launches, n_per_shape=n_to_meet_all)
    if request.kernels and not functions:
        functions = functions_of(chosen)
    return Selection(functions, per_shape=True, n_launches=len(chosen), name_base=settings.name_base)


def _times(selection: Selection, n_chosen: int) -> str:
    if not selection.per_shape:
        return "every launch"
    times = "once each" if selection.n_per_shape == 1 else f"up to {selection.n_per_shape} times each"
    return f"{n_chosen} of them, {times}"


def _passes(name: str, pattern: str | None) -> bool:
    """Return whether ncu's filter by name lets a kernel through."""
    try:
        return pattern is None or re.search(pattern, function_name(name)) is not None
    except re.error as error:
        raise ProfileRequestError(
            f"--kernel: a regular expression was wanted: {error}", hint="quote it for the shell"
        ) from error


def _cost(chosen: Sequence[KernelCount], plan: Plan, selection: Selection) -> str:
    """Return replays, and the GPU time of these, which is the least that recording can take; empty where passes are not known."""
    if plan.passes is None:
        return ""
    n_launches = selection.n_launches or 0
    once_ns = sum(each.duration_ns / each.n_launches for each in chosen)
    every_ns = sum(each.duration_ns for each in chosen)
    duration_ns = min(every_ns, selection.n_per_shape * once_ns) if selection.per_shape else every_ns
    least, most = plan.passes
    return f": {n_launches * least} to {n_launches * most} replays, at least {clock(duration_ns * least / 1e9)} of GPU time"
