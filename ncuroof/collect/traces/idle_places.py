"""Where in a program a GPU was left without work: how long at a time, what the host did meanwhile, which kernel came next."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ncuroof.collect.kernel_names import function_name
from ncuroof.collect.traces.timeline import Activity, Call, HostRange

BETWEEN_RANGES = ""
"""The host was in no range that the trace names."""

_MOST_PLACES = 5
_LEAST_SHARE_FRAC = 0.02


@dataclass(frozen=True, slots=True)
class Place:
    """A part of idle time.

    Attributes:
        name: of what the host did, as the trace names it, or `BETWEEN_RANGES`; or of the kernel's function that came next.
        duration_ns: idle time that belongs to it.
    """

    name: str
    duration_ns: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Time in which a GPU had nothing to do.

    Attributes:
        start_ns: when it had run dry.
        end_ns: when it worked again.
        next: what ended it.
        launch: the call that launched that; None where not known.
    """

    start_ns: float
    end_ns: float
    next: Activity
    launch: Call | None

    @property
    def duration_ns(self) -> float:
        """How long it lasted."""
        return self.end_ns - self.start_ns


def half_in_gaps_of(gaps: Iterable[Gap]) -> float:
    """Return the length of gaps, itself and longer ones, that make up half of the time, in nanoseconds; 0 without gaps."""
    longest_first = sorted((gap.duration_ns for gap in gaps), reverse=True)
    so_far = accumulate(longest_first)
    half_ns = sum(longest_first) / 2
    return next((length for length, sum_ns in zip(longest_first, so_far, strict=True) if sum_ns >= half_ns), 0.0)


def during(gaps: Iterable[Gap], ranges: Mapping[Hashable, Sequence[HostRange]]) -> tuple[Place, ...]:
    """Return what the host did in gaps that ended with late launches, the most first; empty where the trace names nothing.

    A gap belongs to what its launching thread did from the moment the GPU ran dry until the launch returned, in proportion.

    Args:
        gaps: that waited for the host.
        ranges: of each thread by start, which do not overlap.
    """
    total: dict[str, float] = defaultdict(float)
    for gap in gaps:
        if gap.launch is None or gap.launch.end_ns <= gap.start_ns:
            continue
        scale = gap.duration_ns / (gap.launch.end_ns - gap.start_ns)
        for name, duration_ns in _shares(ranges.get(gap.launch.thread, ()), gap.start_ns, gap.launch.end_ns):
            total[name] += scale * duration_ns
    told = _most(total)
    return told if any(place.name != BETWEEN_RANGES for place in told) else ()


def before(gaps: Iterable[Gap]) -> tuple[Place, ...]:
    """Return which kernels ended gaps, by function, and copies and memsets together, the most idle time first."""
    by_name: dict[str, float] = defaultdict(float)
    for gap in gaps:
        by_name["" if gap.next.is_copy else gap.next.name] += gap.duration_ns
    by_function: dict[str, float] = defaultdict(float)
    for name, duration_ns in by_name.items():
        by_function[function_name(name) or "copy"] += duration_ns
    return _most(by_function)


def _shares(ranges: Sequence[HostRange], start_ns: float, end_ns: float) -> Iterator[tuple[str, float]]:
    """Yield how long a thread was in each of its ranges, and in none, between two moments."""
    place = max(bisect_right(ranges, start_ns, key=lambda each: each.start_ns) - 1, 0)
    named_ns = 0.0
    for each in ranges[place:]:
        if each.start_ns >= end_ns:
            break
        overlap_ns = min(each.end_ns, end_ns) - max(each.start_ns, start_ns)
        if overlap_ns > 0:
            named_ns += overlap_ns
            yield each.name, overlap_ns
    yield BETWEEN_RANGES, end_ns - start_ns - named_ns


def _most(total: Mapping[str, float]) -> tuple[Place, ...]:
    whole_ns = sum(total.values())
    told = [Place(name, ns) for name, ns in total.items() if ns > 0 and ns >= _LEAST_SHARE_FRAC * whole_ns]
    return tuple(sorted(told, key=lambda place: -place.duration_ns)[:_MOST_PLACES])
