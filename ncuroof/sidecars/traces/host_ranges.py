"""Turn nested host ranges into ranges that do not overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import inf

from ncuroof.sidecars.traces.timeline import HostRange

_LAST = HostRange("", inf, inf, None)
"""Sentinel: starts when all others have ended."""


def outermost(ranges: Iterable[HostRange]) -> Mapping[Hashable, Sequence[HostRange]]:
    """Return each thread's outermost ranges, by start."""
    found: dict[Hashable, list[HostRange]] = {}
    for thread, its_ranges in _by_thread(ranges).items():
        found[thread] = []
        for each in its_ranges:
            if not found[thread] or each.start_ns >= found[thread][-1].end_ns:
                found[thread].append(each)
    return found


def innermost(ranges: Iterable[HostRange]) -> Iterator[HostRange]:
    """Yield pieces of ranges that do not overlap: at each time, the open range of each thread that started last."""
    for its_ranges in _by_thread(ranges).values():
        open_ranges: list[HostRange] = []
        reached_ns = -inf
        for each in (*its_ranges, _LAST):
            while open_ranges and open_ranges[-1].end_ns <= each.start_ns:
                ended = open_ranges.pop()
                yield from _piece(ended, reached_ns, ended.end_ns)
                reached_ns = max(reached_ns, ended.end_ns)
            if open_ranges:
                yield from _piece(open_ranges[-1], reached_ns, each.start_ns)
            reached_ns = max(reached_ns, each.start_ns)
            open_ranges.append(each)


def without_children(ranges: Iterable[HostRange]) -> Iterator[HostRange]:
    """Yield the ranges that contain no other range of their thread."""
    for its_ranges in _by_thread(ranges).values():
        for each, following in zip(its_ranges, (*its_ranges[1:], _LAST), strict=True):
            if following.start_ns >= each.end_ns:
                yield each


def _by_thread(ranges: Iterable[HostRange]) -> dict[Hashable, list[HostRange]]:
    """Return each thread's ranges by start, outer ranges before inner ones."""
    found: dict[Hashable, list[HostRange]] = defaultdict(list)
    for each in sorted(ranges, key=lambda each: (each.start_ns, -each.end_ns)):
        found[each.thread].append(each)
    return found


def _piece(of: HostRange, start_ns: float, end_ns: float) -> Iterator[HostRange]:
    start_ns = max(start_ns, of.start_ns)
    if start_ns < end_ns:
        yield HostRange(of.name, start_ns, end_ns, of.thread)
