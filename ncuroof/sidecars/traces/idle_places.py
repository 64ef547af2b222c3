"""Find where in a program a GPU was idle: for how long, what the host did meanwhile, and which kernel came next."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ncuroof.ncu.kernel_names import function_name
from ncuroof.sidecars.traces.timeline import Activity, ApiCall, HostRange

BETWEEN_RANGES = ""
"""Name for time in which the host was in no range of the trace."""

_MOST_PLACES = 5
_LEAST_SHARE_FRAC = 0.02


@dataclass(frozen=True, slots=True)
class IdleShare:
    """A share of idle time.

    Attributes:
        name: the range that the host was in, or `BETWEEN_RANGES`; or the function of the kernel that came next.
        duration_ns: its idle time.
    """

    name: str
    duration_ns: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a GPU was idle.

    Attributes:
        start_ns: when the GPU ran out of work.
        end_ns: when it started to work again.
        next: the activity that ended the gap.
        launch: the call that launched the activity; None if unknown.
    """

    start_ns: float
    end_ns: float
    next: Activity
    launch: ApiCall | None

    @property
    def duration_ns(self) -> float:
        """Length of the gap."""
        return self.end_ns - self.start_ns


def half_in_gaps_of(gaps: Iterable[Gap]) -> float:
    """Return the length, in ns, such that gaps at least that long make up half of the idle time; 0 without gaps."""
    longest_first = sorted((gap.duration_ns for gap in gaps), reverse=True)
    so_far = accumulate(longest_first)
    half_ns = sum(longest_first) / 2
    return next((length for length, sum_ns in zip(longest_first, so_far, strict=True) if sum_ns >= half_ns), 0.0)


def during(gaps: Iterable[Gap], ranges: Mapping[Hashable, Sequence[HostRange]]) -> tuple[IdleShare, ...]:
    """Return what the host did in gaps that waited for a launch, by descending idle time; empty if it was in no named range.

    Each gap is divided among what its launching thread did from when the GPU ran out of work until the launch call returned, in
    proportion to time.

    Args:
        gaps: gaps of one cause; those whose launch call had returned before they started are ignored.
        ranges: ranges by thread that do not overlap, by start.
    """
    total: dict[str, float] = defaultdict(float)
    for gap in gaps:
        if gap.launch is None or gap.launch.end_ns <= gap.start_ns:
            continue
        scale = gap.duration_ns / (gap.launch.end_ns - gap.start_ns)
        for name, duration_ns in _shares(ranges.get(gap.launch.thread, ()), gap.start_ns, gap.launch.end_ns):
            total[name] += scale * duration_ns
    places = _longest_places(total)
    return places if any(place.name != BETWEEN_RANGES for place in places) else ()


def before(gaps: Iterable[Gap]) -> tuple[IdleShare, ...]:
    """Return which kernels ended gaps, by function, with copies and memsets together as "copy"; by descending idle time."""
    by_name: dict[str, float] = defaultdict(float)
    for gap in gaps:
        by_name["" if gap.next.is_copy else gap.next.name] += gap.duration_ns
    by_function: dict[str, float] = defaultdict(float)
    for name, duration_ns in by_name.items():
        by_function[function_name(name) or "copy"] += duration_ns
    return _longest_places(by_function)


def _shares(ranges: Sequence[HostRange], start_ns: float, end_ns: float) -> Iterator[tuple[str, float]]:
    """Yield how long a thread was in each of its ranges, and in none, between two times."""
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


def _longest_places(total: Mapping[str, float]) -> tuple[IdleShare, ...]:
    whole_ns = sum(total.values())
    places = [IdleShare(name, ns) for name, ns in total.items() if ns > 0 and ns >= _LEAST_SHARE_FRAC * whole_ns]
    return tuple(sorted(places, key=lambda place: -place.duration_ns)[:_MOST_PLACES])
