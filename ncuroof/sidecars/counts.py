"""How often each kernel ran and how long, from a counting run without ncu: the document `ncuroof.counts/1`.

The file lies beside a report (`run.counts.json` beside `run.ncu-rep`) and says how many launches each recorded launch represents.

Schema history:
    1  2026-11-20  first version; 2026-11-22 adds breakdown; 2026-11-23 adds shortest_ns and longest_ns of a kernel;
        2026-11-24 adds its predecessors.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ncuroof.errors import CountsError, complaint
from ncuroof.json_files import MALFORMED, read_document
from ncuroof.ncu.file_names import without_suffix
from ncuroof.ncu.kernel_names import function_name
from ncuroof.sidecars.predecessors import KernelKey, Predecessor, kernel_key, predecessors_of, summed
from ncuroof.sidecars.traces.temporal_breakdown import TemporalBreakdown
from ncuroof.sidecars.traces.timeline import MOST_NS, Shape, Timeline, as_shape

SCHEMA = "ncuroof.counts/1"
_SUFFIX = ".counts.json"
_HINT = "delete the file, or count again with ncuroof profile --per-shape"
_MOST_LAUNCHES = 10**12

PROFILERS = {"torch.profiler": "PyTorch's profiler", "nsys": "Nsight Systems"}
"""Display names of the sources of counts."""

SUMMARY = "ncu"
"""Source of counts that ncu itself printed, in a summary over the profiled launches."""


@dataclass(frozen=True, slots=True)
class KernelCount:
    """The launches of one kernel with one shape.

    Attributes:
        name: as the profiler writes it.
        grid: x, y, z.
        block: x, y, z.
        n_launches: how often it ran.
        duration_ns: total of all launches.
        shortest_ns, longest_ns: shortest and longest launch; None if unknown.
        predecessors: kernels that ran right before it in its stream, most frequent first, without copies; None if unknown.
    """

    name: str
    grid: Shape
    block: Shape
    n_launches: int
    duration_ns: float
    shortest_ns: float | None = None
    longest_ns: float | None = None
    predecessors: tuple[Predecessor, ...] | None = None

    @property
    def key(self) -> KernelKey:
        """Name, grid and block."""
        return self.name, self.grid, self.block

    def with_launches_of(self, other: KernelCount) -> KernelCount:
        """Return the sum of both counts, which must be of the same kernel and shape."""
        ends = (self.shortest_ns, self.longest_ns, other.shortest_ns, other.longest_ns)
        known = [end for end in ends if end is not None]
        return replace(
            self,
            n_launches=self.n_launches + other.n_launches,
            duration_ns=self.duration_ns + other.duration_ns,
            shortest_ns=min(known) if len(known) == len(ends) else None,
            longest_ns=max(known) if len(known) == len(ends) else None,
            predecessors=None
            if self.predecessors is None or other.predecessors is None
            else summed(*self.predecessors, *other.predecessors),
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """The launches of a whole run, or of its profiled steps.

    Attributes:
        kernels: one entry per kernel and launch shape, by descending total time.
        steps: the counted steps, as `--step` takes them; None for the whole run.
        breakdown: what the GPU did meanwhile; None if unknown.
        source: the tool that counted, a key of `PROFILERS`, or SUMMARY.
    """

    kernels: tuple[KernelCount, ...]
    steps: str | None = None
    breakdown: TemporalBreakdown | None = None
    source: str = "torch.profiler"

    @property
    def n_launches(self) -> int:
        """Number of launches of all kernels."""
        return sum(kernel.n_launches for kernel in self.kernels)

    @property
    def duration_ns(self) -> float:
        """Total GPU time of all kernels."""
        return sum(kernel.duration_ns for kernel in self.kernels)

    def renamed(self, names: Mapping[str, str]) -> Counts:
        """Return the counts with some kernels renamed; `names` maps old names to new ones, such as mangled to demangled."""

        def with_name(kernel: KernelCount) -> KernelCount:
            before = kernel.predecessors and tuple(
                replace(each, name=names.get(each.name, each.name)) for each in kernel.predecessors
            )
            return replace(kernel, name=names.get(kernel.name, kernel.name), predecessors=before)

        return replace(self, kernels=tuple(map(with_name, self.kernels)))


def counts_path(report: Path) -> Path:
    """Return the path of a report's counts, which lie beside it."""
    return report.with_name(without_suffix(report.name) + _SUFFIX)


def covering(counts: Counts, share_frac: float, *, once_each: bool = True) -> tuple[str, ...]:
    """Return functions whose kernels make up at least `share_frac` of the run's GPU time, with few launches to record.

    ncu selects by function name, so selecting one instantiation of a template selects all its instantiations and shapes. Functions
    are ranked by GPU time per launch to record. Then, from the lowest rank up, each function is dropped that is not needed to reach
    the share.

    Args:
        counts: the counts of the run.
        share_frac: from 0 to 1.
        once_each: record each kernel and shape once, instead of every launch.
    """
    duration_ns: dict[str, float] = defaultdict(float)
    n_recorded: dict[str, int] = defaultdict(int)
    for kernel in counts.kernels:
        function = function_name(kernel.name)
        duration_ns[function] += kernel.duration_ns
        n_recorded[function] += 1 if once_each else kernel.n_launches
    wanted_ns, chosen_ns = share_frac * counts.duration_ns, sum(duration_ns.values())
    chosen = sorted(duration_ns, key=lambda each: -duration_ns[each] / n_recorded[each])
    for function in chosen[::-1]:
        if chosen_ns - duration_ns[function] >= wanted_ns and len(chosen) > 1:
            chosen.remove(function)
            chosen_ns -= duration_ns[function]
    return tuple(chosen)


def functions_of(kernels: Iterable[KernelCount]) -> tuple[str, ...]:
    """Return the kernels' function names without repeats."""
    return tuple(dict.fromkeys(function_name(kernel.name) for kernel in kernels))


def count_launches(timeline: Timeline, *, source: str) -> Counts:
    """Return how often each kernel of a timeline ran, and its total time.

    CUDA graphs that were traced as a whole count as one kernel with grid and block 0.

    Args:
        timeline: the timeline of a run.
        source: the tool that recorded it, a key of `PROFILERS`.
    """
    launches: dict[KernelKey, list[float]] = {}
    for activity in timeline.activities:
        if not activity.is_copy:
            launches.setdefault(kernel_key(activity), []).append(activity.duration_ns)
    before = predecessors_of(timeline)
    kernels = (
        KernelCount(*key, len(each), sum(each), min(each), max(each), None if before is None else before[key])
        for key, each in launches.items()
    )
    return Counts(_by_time(kernels), source=source)


def together(counts: Iterable[Counts]) -> Counts:
    """Return the sum of the counts of several processes, without a breakdown if there is more than one."""
    all_counts = list(counts)
    if len(all_counts) == 1:
        return all_counts[0]
    totals: dict[KernelKey, KernelCount] = {}
    for kernel in (kernel for each in all_counts for kernel in each.kernels):
        known = totals.get(kernel.key)
        totals[kernel.key] = kernel if known is None else known.with_launches_of(kernel)
    return replace(all_counts[0], kernels=_by_time(totals.values()), breakdown=None)


def _by_time(kernels: Iterable[KernelCount]) -> tuple[KernelCount, ...]:
    return tuple(sorted(kernels, key=lambda each: -each.duration_ns))


def counts_json(counts: Counts) -> bytes:
    """Return the document `ncuroof.counts/1`."""
    places = {kernel.key: place for place, kernel in enumerate(counts.kernels)}
    document = {
        "schema": SCHEMA,
        "source": counts.source,
        "steps": counts.steps,
        "n_launches": counts.n_launches,
        "duration_ns": counts.duration_ns,
        "breakdown": None if counts.breakdown is None else counts.breakdown.to_dict(),
        "kernels": [
            {
                "name": kernel.name,
                "grid": list(kernel.grid),
                "block": list(kernel.block),
                "n_launches": kernel.n_launches,
                "duration_ns": kernel.duration_ns,
                "shortest_ns": kernel.shortest_ns,
                "longest_ns": kernel.longest_ns,
                "predecessors": kernel.predecessors
                and [{"kernel": places[each.key], "n_launches": each.n_launches} for each in kernel.predecessors],
            }
            for kernel in counts.kernels
        ],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def counts_beside(report: Path) -> Counts | None:
    """Return the counts beside a report, or None.

    Raises:
        CountsError: the counts cannot be read, or do not follow the schema.
    """
    path = counts_path(report)
    return read_counts(path) if os.path.isfile(path) else None  # noqa: PTH113  Path.is_file raises if the name is too long


def read_counts(path: Path) -> Counts:
    """Return the counts in a file.

    Raises:
        CountsError: the file cannot be read, or does not follow the schema.
    """
    try:
        return read_document(path, _counts, schema=SCHEMA, what="launch counts", error=CountsError, hint=_HINT)
    except OSError as error:
        raise CountsError(f"{path}: cannot be read: {error.strerror}", hint=_HINT) from error


def _counts(document: Mapping[str, Any]) -> Counts:
    kernels, found = _kernels(document["kernels"]), document.get("breakdown")
    breakdown = None if found is None else TemporalBreakdown.from_dict(found)
    source = document.get("source", "torch.profiler")
    if source not in PROFILERS:
        raise ValueError(f"unknown source {source!r:.80}")
    return Counts(kernels, document.get("steps"), breakdown, source)


def _kernels(entries: Sequence[Mapping[str, Any]]) -> tuple[KernelCount, ...]:
    kernels = tuple(_kernel(entry, place) for place, entry in enumerate(entries))

    def predecessor(entry: Mapping[str, Any], most: int) -> Predecessor:
        place, n_launches = int(entry["kernel"]), int(entry["n_launches"])
        if not (0 <= place < len(kernels) and 1 <= n_launches <= most):
            raise ValueError(f"{n_launches} launches after kernel {place}")
        return Predecessor(*kernels[place].key, n_launches)

    return tuple(
        kernel
        if (before := entry.get("predecessors")) is None
        else replace(kernel, predecessors=tuple(predecessor(each, kernel.n_launches) for each in before))
        for kernel, entry in zip(kernels, entries, strict=True)
    )


def _kernel(entry: Mapping[str, Any], place: int) -> KernelCount:
    """Parse an entry.

    Raises:
        ValueError: the entry is malformed; the message states its place in the list.
    """
    try:
        n_launches, duration_ns = int(entry["n_launches"]), float(entry["duration_ns"])
        if not 1 <= n_launches <= _MOST_LAUNCHES or not _is_time(duration_ns):
            raise ValueError(f"{n_launches} launches in {duration_ns} ns")
        ends = [None if (end := entry.get(key)) is None else float(end) for key in ("shortest_ns", "longest_ns")]
        known = [end for end in ends if end is not None]
        if known != sorted(known) or not all(map(_is_time, known)):
            raise ValueError(f"launches of {ends[0]} to {ends[1]} ns")
        shapes = as_shape(entry["grid"]), as_shape(entry["block"])
        return KernelCount(str(entry["name"]), *shapes, n_launches, duration_ns, ends[0], ends[1])
    except MALFORMED as error:
        raise ValueError(f"kernels[{place}]: {complaint(error)}") from error


def _is_time(duration_ns: float) -> bool:
    """Return whether a duration is possible: 0, or at least the nanosecond that a GPU's clock resolves."""
    return duration_ns == 0 or 1 <= duration_ns <= MOST_NS
