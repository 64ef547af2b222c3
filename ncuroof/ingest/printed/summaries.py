"""Read from a summary how often each kernel was launched and how long its launches took, besides the averages of its counters.

With `--print-summary per-kernel`, `per-gpu` or `per-nvtx`, ncu prints each counter's least, greatest and mean value over the
launches of a kernel with one shape. The mean represents all of them, as a profiled launch represents the launches of a counting
run.

Source: what ncu 2024.1 prints of recorded reports; Nsight Compute CLI documentation, "Console Output".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ncuroof.formatting import duration, printable
from ncuroof.ingest.printed.records import INVOCATIONS, LEAST, MOST
from ncuroof.ingest.printed.tables import DURATION, function_name, is_number, launch_counters
from ncuroof.sidecars.counts import SUMMARY, Counts, KernelCount, together
from ncuroof.sidecars.traces.timeline import MOST_NS, Shape

DURATION_ENDS = tuple(f"{DURATION} {end}" for end in (LEAST, MOST))
"""Columns of the shortest and the longest launch."""

_MOST_INVOCATIONS = 10**12
_N_NAMED = 5
"""Most kernels whose shortest and longest launches are named."""


def invocation_counts(launches: Sequence[Mapping[str, str]], numbers: pl.DataFrame) -> Counts | None:
    """Return how many launches each row of a summary represents; None if the table is not a summary.

    Args:
        launches: the identity of each row.
        numbers: the counters of each row, with DURATION_ENDS, in nanoseconds.
    """
    unknown: list[float | None] = [None] * len(launches)
    times = [numbers[name].to_list() if name in numbers.columns else unknown for name in (DURATION, *DURATION_ENDS)]
    rows = zip(launches, *times, strict=True)
    kernels = [_kernel(launch, *durations) for launch, *durations in rows if INVOCATIONS in launch]
    known = [Counts((kernel,), source=SUMMARY) for kernel in kernels if kernel is not None]
    return together(known) if known else None


def _kernel(
    launch: Mapping[str, str], mean_ns: float | None, shortest_ns: float | None, longest_ns: float | None
) -> KernelCount | None:
    printed = launch[INVOCATIONS]
    n_launches = int(printed) if is_number(printed) else 0
    if not 1 <= n_launches <= _MOST_INVOCATIONS:
        return None
    counters = launch_counters(launch)
    times = [time if time is not None and 0 <= time <= MOST_NS else None for time in (mean_ns, shortest_ns, longest_ns)]
    return KernelCount(
        launch.get("Kernel Name", ""),
        _shape(counters, "launch__grid_dim"),
        _shape(counters, "launch__block_dim"),
        n_launches,
        n_launches * (times[0] or 0.0),
        shortest_ns=times[1],
        longest_ns=times[2],
    )


def _shape(counters: Mapping[str, float], extent: str) -> Shape:
    x, y, z = (int(counters.get(f"{extent}_{axis}", 0)) for axis in "xyz")
    return x, y, z


def spread_sentences(counts: Counts) -> Iterable[str]:
    """Yield that the rows are means over launches, and how much the durations of these launches differ."""
    yield (
        f"a summary of {counts.n_launches} launches (--print-summary): each value is the mean over the launches of a kernel and "
        "shape, and a share is a mean of shares, in which short launches count as much as long ones"
    )
    told = [
        f"{printable(function_name(kernel.name))} {duration(kernel.shortest_ns)} to {duration(kernel.longest_ns)} "
        f"({kernel.n_launches} launches, mean {duration(kernel.duration_ns / kernel.n_launches)})"
        for kernel in counts.kernels
        if kernel.n_launches > 1 and kernel.shortest_ns is not None and kernel.longest_ns is not None
    ]
    if told:
        more = f"; and {len(told) - _N_NAMED} more" if len(told) > _N_NAMED else ""
        yield f"shortest to longest launch: {'; '.join(told[:_N_NAMED])}{more}"
