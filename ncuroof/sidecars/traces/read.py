"""Turn traces of PyTorch's profiler or Nsight Systems into counts: how often kernels ran, and what the GPU did meanwhile."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from ncuroof.errors import CountsError
from ncuroof.ncu.settings import Settings, load_settings
from ncuroof.regular_files import oddity
from ncuroof.sidecars.counts import Counts, count_launches
from ncuroof.sidecars.traces.nsight_systems import is_nsys_trace, read_nsys_trace
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, break_down_time
from ncuroof.sidecars.traces.timeline import Timeline
from ncuroof.sidecars.traces.torch_profiler import read_torch_trace

_RECORD = {
    "torch.profiler": "record it with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    "nsys": "record it with nsys profile --trace=cuda",
}


def read_trace(path: str | os.PathLike[str]) -> Counts:
    """Return how often each kernel of a trace ran, and what the GPU did meanwhile.

    Args:
        path: a file that `torch.profiler.profile.export_chrome_trace` wrote, compressed with gzip or not, or a report of
            Nsight Systems (`.nsys-rep`) or its SQLite export.

    Raises:
        CountsError: the file cannot be read, is not a trace, or has no kernel.
    """
    path, settings = Path(path), load_settings()
    found = None
    with contextlib.suppress(OSError, ValueError):  # the reader reports a missing file
        found = oddity(path.stat())
    if found is not None:
        raise CountsError(
            f"{path}: expected the file of a trace, found {found}",
            hint="name the .json, .json.gz, .nsys-rep or .sqlite file",
        )
    if is_nsys_trace(path):
        timeline = read_nsys_trace(path, waiting_calls=settings.waiting_calls)
        counts = counts_of(timeline, settings, source="nsys")
    else:
        timeline, steps = read_torch_trace(path)
        counts = counts_of(timeline, settings, source="torch.profiler", steps=steps)
    if not counts.kernels:
        raise CountsError(f"{path}: the trace contains no GPU kernels", hint=_RECORD[counts.source])
    return counts


def counts_of(timeline: Timeline, settings: Settings, *, source: str, steps: CountedSteps | None = None) -> Counts:
    """Return how often each kernel of a timeline ran, and what the GPU did meanwhile.

    Args:
        timeline: the timeline of the steps or of the run.
        settings: the settings of profiles/collect.toml.
        source: the tool that recorded it, a key of `PROFILERS`.
        steps: the steps in the timeline; None for a whole run.
    """
    breakdown = break_down_time(
        timeline, collectives=settings.collectives, waiting_calls=settings.waiting_calls, steps=steps
    )
    return replace(count_launches(timeline, source=source), breakdown=breakdown)
