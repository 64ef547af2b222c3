"""Puts the series of a kernel on one time axis: from its start to its end, without the idle time around it.

ncu samples a few counters per pass, and runs the kernel once per pass. Each pass has times of its own, begins a while before the
kernel and ends after it. In each pass the kernel begins where its series leave zero, which is known to a sample; the passes are
laid on each other there. Where a pass saw the kernel to its end, its time is stretched to the kernel's duration: the clock can
differ between passes by a few percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median

from ncuroof.phases.sampled import can_show_activity, is_of_sms

MOST_CELLS = 512
"""Cells of the time axis at most: finer samples are averaged."""

_IDLE_OF_SMS, _IDLE_BESIDE = 0.01, 0.05
"""Share of a series' maximum below which a sample counts as idle: what is not the SMs' also serves the display and other
contexts."""

_LEAST_PERCENT = 0.5
"""A unit beside the SMs that stays below this has no beginning that could be told from noise."""

_LONGER = 1.3
"""A pass that is active for longer than this times the kernel's duration contains something else as well."""

_FARTHEST_SAMPLES = 3
"""Idle samples within a kernel that do not end a run of active ones."""

_LEAST_COVERED = 0.5
"""Share of the kernel's time that a pass has to see; otherwise its series do not stand for the kernel (a choice)."""

_ROUNDING = 0.01
"""Share of a cell by which it may reach beyond what was sampled."""


@dataclass(frozen=True, slots=True)
class Series:
    """One sampled counter: the end of each sample in ns, ascending, and the values."""

    times: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Pass:
    """The series of one run of the kernel, on the kernel's time.

    Attributes:
        series: by counter.
        start_ns, end_ns: when the kernel began and ended, in the time of the series; if the samples end first, their end.
        sampled_from_ns: from when on its samples are used.
        interval_ns: usual time between two samples.
        is_whole: whether the samples show its beginning and its end.
        ends_early: whether they end before the kernel.
    """

    series: Mapping[str, Series]
    start_ns: float
    sampled_from_ns: float
    end_ns: float
    interval_ns: float
    is_whole: bool
    ends_early: bool

    @property
    def active_ns(self) -> float:
        """How long the kernel was seen to run."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Course:
    """A series on the kernel's time axis.

    Attributes:
        values: mean of each cell, as recorded, or per ns where samples are totals; None where it was not sampled.
        cell_ns: SM time of a cell in this pass.
        interval_ns: time between two samples, on the kernel's time axis.
    """

    values: list[float | None]
    cell_ns: float
    interval_ns: float


@dataclass(frozen=True, slots=True)
class Aligned:
    """All series of a kernel on one axis of equal cells.

    Attributes:
        courses: by counter.
        n_cells: cells between the kernel's start and its end.
        passes: the passes that the courses come from.
        left_out: counters of passes in which the kernel is not found, or for too short.
    """

    courses: dict[str, Course]
    n_cells: int
    passes: tuple[Pass, ...]
    left_out: list[str] = field(default_factory=list)


def align(series: Mapping[str, Series], duration_ns: float, wanted: Iterable[str], totals: Iterable[str]) -> Aligned:
    """Return the series on the kernel's time axis, in cells as long as the finest samples.

    Args:
        series: by counter, all of the kernel.
        duration_ns: the kernel's duration, above zero.
        wanted: the counters to lay on the axis; the others only help to find the kernel.
        totals: those of them whose samples are totals; their courses are per ns.
    """
    passes: list[Pass] = []
    left_out: list[str] = []
    for members in _by_pass(series):
        found = _located(members, duration_ns)
        if found is None or not _stands_for(found, duration_ns):
            left_out += members
        else:
            passes.append(found)
    of_interest, of_totals = set(wanted), set(totals)
    used = tuple(each for each in passes if of_interest & each.series.keys())
    finest = min((each.interval_ns * _stretch(each, duration_ns) for each in used), default=duration_ns)
    n_cells = min(MOST_CELLS, max(1, round(duration_ns / finest)))
    courses = {
        counter: _course(each, one, n_cells, duration_ns, is_total=counter in of_totals)
        for each in used
        for counter, one in each.series.items()
        if counter in of_interest
    }
    return Aligned(courses, n_cells, used, [counter for counter in left_out if counter in of_interest])


def _stands_for(found: Pass, duration_ns: float) -> bool:
    """Return whether a pass shows enough of the kernel; one whose units rest for a part of it does not say where that part is."""
    least = _LEAST_COVERED if found.ends_early else 1 / _LONGER
    return found.active_ns >= least * duration_ns


def _by_pass(series: Mapping[str, Series]) -> list[dict[str, Series]]:
    """Return the series by pass: those of one pass begin at the same time, from which their times are counted then.

    Times since 1970 in nanoseconds are beyond what a float holds exactly.
    """
    passes: dict[int, dict[str, Series]] = {}
    for counter, each in series.items():
        begin = each.times[0]
        passes.setdefault(begin, {})[counter] = Series([time - begin for time in each.times], each.values)
    return list(passes.values())


def _located(series: dict[str, Series], duration_ns: float) -> Pass | None:
    """Return a pass with the kernel's beginning and end in it; None where no series shows them."""
    times = max((each.times for each in series.values()), key=len)
    interval = median(after - before for before, after in pairwise(times))
    for is_reference, idle, least in (
        (is_of_sms, _IDLE_OF_SMS, 0.0),
        (can_show_activity, _IDLE_BESIDE, _LEAST_PERCENT),
    ):
        members = [each for counter, each in series.items() if is_reference(counter) and max(each.values) > least]
        level = _levels(times, members)
        active = [index for index, value in enumerate(level) if value > idle]
        if active:
            first, last = _run(active, times, duration_ns, interval)
            return _bounded(series, times, level, first, last, interval, duration_ns)
    return None


def _levels(times: Sequence[int], members: Sequence[Series]) -> list[float]:
    """Return the largest value of the series in each sample, as a share of each series' maximum."""
    level = dict.fromkeys(times, 0.0)
    for each in members:
        peak = max(each.values)
        for time, value in zip(each.times, each.values, strict=True):
            level[time] = max(level.get(time, 0.0), value / peak)
    return [level[time] for time in times]


def _run(active: Sequence[int], times: Sequence[int], duration_ns: float, interval: float) -> tuple[int, int]:
    """Return the first and the last active sample of the kernel; of several runs, if they are too long together, the longest."""
    first, last = active[0], active[-1]
    if times[last] - times[first] <= _LONGER * duration_ns + 2 * interval:
        return first, last
    breaks = [index for index, (a, b) in enumerate(pairwise(active), start=1) if b - a > _FARTHEST_SAMPLES]
    runs = [active[start:end] for start, end in pairwise([0, *breaks, len(active)])]
    longest = max(runs, key=len)
    return longest[0], longest[-1]


def _bounded(
    series: dict[str, Series], times: Sequence[int], level: Sequence[float], first: int, last: int,
    interval: float, duration_ns: float,
) -> Pass:  # fmt: skip
    """Return the pass between its first and last active samples.

    The kernel fills a part of these two only, as much as their values say. When the very first sample began is not stored, and it
    can count more than its own time: where the kernel begins in it, it is not used, and the kernel's beginning is where its
    duration says, at most an interval before.
    """

    def part(index: int, neighbour: int) -> float:
        return min(1.0, level[index] / level[neighbour]) if level[neighbour] > 0 else 1.0

    is_seen_to_end = last + 1 < len(times)
    end = float(times[last])
    if is_seen_to_end and last > first > 0:
        end -= (times[last] - times[last - 1]) * (1 - part(last, last - 1))
    if first:
        start = sampled_from = times[first] - (times[first] - times[first - 1]) * part(first, min(first + 1, last))
    else:
        sampled_from = float(times[0])
        start = sampled_from - min(interval, max(0.0, duration_ns - (end - sampled_from)))
    is_whole = is_seen_to_end and first > 0 and 1 / _LONGER <= (end - start) / duration_ns <= _LONGER
    return Pass(series, start, sampled_from, end, interval, is_whole, ends_early=not is_seen_to_end)


def _stretch(each: Pass, duration_ns: float) -> float:
    """Return the kernel's time over that of a pass; 1 where the pass did not see its end."""
    return duration_ns / each.active_ns if each.is_whole and each.active_ns > 0 else 1.0


def _course(each: Pass, series: Series, n_cells: int, duration_ns: float, *, is_total: bool) -> Course:
    """Return the mean of each cell: the integral of the samples over it, divided by its length.

    What the first and the last sample counted belongs to the part of them in which the kernel ran.
    """
    stretch = _stretch(each, duration_ns)
    cell = duration_ns / n_cells / stretch
    edges, totals = _integral(each, series, is_total=is_total)
    bounds = [each.start_ns + index * cell for index in range(n_cells + 1)]
    at_bounds = _interpolated(edges, totals, bounds)
    first, last = edges[0] - _ROUNDING * cell, edges[-1] + _ROUNDING * cell
    values = [
        (total_after - total_before) / cell if first <= before and after <= last else None
        for (before, after), (total_before, total_after) in zip(pairwise(bounds), pairwise(at_bounds), strict=True)
    ]
    return Course(values, cell, each.interval_ns * stretch)


def _integral(each: Pass, series: Series, *, is_total: bool) -> tuple[list[float], list[float]]:
    """Return the edges of the samples within the kernel, and the integral of the series up to each."""
    start, end = each.sampled_from_ns, each.end_ns
    samples = [
        (max(before, start), min(after, end), value if is_total else value * (after - before))
        for (before, after), value in zip(pairwise(series.times), series.values[1:], strict=True)
        if after > start and before < end
    ]
    if not samples:
        return [start, start], [0.0, 0.0]
    edges = [samples[0][0], *(end for _, end, _ in samples)]
    return edges, [0.0, *accumulate(area for _, _, area in samples)]


def _interpolated(edges: Sequence[float], totals: Sequence[float], at: Sequence[float]) -> list[float]:
    """Return a piecewise linear function at ascending places; outside of its edges it is constant."""
    found = []
    index = 0
    for place in at:
        while index + 2 < len(edges) and edges[index + 1] < place:
            index += 1
        low, high = edges[index], edges[index + 1]
        share = min(1.0, max(0.0, (place - low) / (high - low))) if high > low else 1.0
        found.append(totals[index] + share * (totals[index + 1] - totals[index]))
    return found
