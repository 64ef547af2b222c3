"""Cuts the time of each kernel into phases: parts in which its units are used evenly, and what kind of part each is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ncuroof.phases.change_points import change_points, noise
from ncuroof.phases.sampled import STALL_PREFIX, load_sampled
from ncuroof.phases.timelines import BLOCKS_LAUNCHED, SM_ACTIVE, KernelTimeline, Values

_LEAST_NOISE = 0.02
"""Deviation of a utilisation that is taken for noise at least: two points (a choice)."""

_LEAST_CHANGE = 0.08
"""Neighbouring phases differ by this much in the use of a unit, or in the share of SMs with work, at least (a choice): smaller
changes are not worth a reader's time."""

_SHORTEST_CELLS = 2
_SHORTEST_FRAC, _SHORTEST_INNER_FRAC = 0.01, 0.04
"""Share of the kernel's time that a phase has at least, and one between two others: waves of blocks that run in step, and so use
the units in turn, are one phase (choices)."""

_MOST_PHASES = 25

_MAIN_FRAC = 0.75
"""Phases whose busiest unit is used this much of the most that any longer phase uses it are what the kernel mainly does (a
choice)."""

_LONG_FRAC = 0.1
"""Share of the kernel's time from which a phase counts as long (a choice)."""

_BRIEF_FRAC = 0.03
"""Share of the kernel's time up to which a weaker last phase is the tail, whatever the SMs do (a choice)."""

_FEWER_SMS = 0.9
"""An SM share below this times the largest one means that blocks start or run out (a choice)."""

_IDLE_FRAC = 0.05
"""Share of SMs with work below which a phase within the kernel is a gap (a choice)."""

_LATER_LAUNCHES = 0.1
"""Share of a kernel's blocks launched after its beginning from which on blocks replaced others, so that they can run out (a
choice)."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a kernel's time.

    Attributes:
        start_ns, duration_ns: on the kernel's time.
        kind: "ramp", "steady", "tail" or "gap".
        means: mean of each sampled quantity, as sampled.
    """

    start_ns: float
    duration_ns: float
    kind: str
    means: Mapping[str, float]


def find_phases(timeline: KernelTimeline) -> list[Phase]:
    """Return the phases of a kernel in order of time, which together are its duration; empty where it has too few samples."""
    if not timeline.is_enough:
        return []
    bounds = _bounds(timeline)
    cell_ns = timeline.duration_ns / timeline.n_cells
    means = [_means(timeline, start, end) for start, end in pairwise(bounds)]
    kinds = _kinds(means, bounds, timeline)
    return [
        Phase(start * cell_ns, (end - start) * cell_ns, kind, mean)
        for (start, end), kind, mean in zip(pairwise(bounds), kinds, means, strict=True)
    ]


def _bounds(timeline: KernelTimeline) -> list[int]:
    """Return the cells at which phases begin, and the number of cells."""
    telling = {name: _filled(values) for name, values in timeline.values.items() if _tells(name)}
    scales = []
    for name, values in telling.items():
        # A series with long samples says the same thing in several cells; together they are one sample.
        n_repeats = max(1, round(timeline.interval_by_quantity[name] / timeline.interval_ns))
        scales.append(noise(values[::n_repeats], _LEAST_NOISE) * n_repeats**0.5)
    shortest = max(_SHORTEST_CELLS, math.ceil(_SHORTEST_FRAC * timeline.n_cells))
    starts = change_points(list(telling.values()), scales, shortest=shortest)
    return _merged([0, *starts, timeline.n_cells], [[0.0, *accumulate(values)] for values in telling.values()])


def _tells(name: str) -> bool:
    """Return whether a quantity's changes are changes of phase: how units and SMs are used, and not when blocks begin."""
    return name != BLOCKS_LAUNCHED and not name.startswith(STALL_PREFIX)


def _filled(values: Values) -> list[float]:
    """Return the cells with the value beside them in those that were not sampled, so that nothing changes where samples end."""
    known = next((value for value in values if value is not None), 0.0)
    filled = []
    for value in values:
        known = known if value is None else value
        filled.append(known)
    return filled


def _merged(bounds: Sequence[int], sums: Sequence[Sequence[float]]) -> list[int]:
    """Return the bounds without those of phases that are too short, and between phases that hardly differ; least change first.

    Args:
        bounds: where phases begin, and the end.
        sums: of each series, the sum of the cells before each place.
    """
    bounds = list(bounds)
    while len(bounds) > 2:
        changes = [_change(sums, *bounds[at - 1 : at + 2]) for at in range(1, len(bounds) - 1)]
        at_short = _beside_short(bounds)
        candidates = at_short or range(len(changes))
        least = min(candidates, key=changes.__getitem__)
        if not at_short and changes[least] >= _LEAST_CHANGE and len(bounds) <= _MOST_PHASES + 1:
            break
        del bounds[1 + least]
    return bounds


def _beside_short(bounds: Sequence[int]) -> list[int]:
    """Return the numbers of the inner bounds at a phase that is too short."""
    last = len(bounds) - 2
    found = set()
    for at in range(last + 1):
        least = _SHORTEST_INNER_FRAC if 0 < at < last else _SHORTEST_FRAC
        if bounds[at + 1] - bounds[at] < least * bounds[-1]:
            found |= {at - 1, at}
    return sorted(found & set(range(last)))


def _change(sums: Sequence[Sequence[float]], start: int, middle: int, end: int) -> float:
    """Return by how much the mean of a series changes at most from one part to the next."""
    return max(
        abs((each[middle] - each[start]) / (middle - start) - (each[end] - each[middle]) / (end - middle))
        for each in sums
    )


def _means(timeline: KernelTimeline, start: int, end: int) -> dict[str, float]:
    """Return the means of the quantities over some cells; a quantity that was not sampled there is left out."""
    known = {
        name: [value for value in values[start:end] if value is not None] for name, values in timeline.values.items()
    }
    return {name: sum(values) / len(values) for name, values in known.items() if values}


def _kinds(means: Sequence[Mapping[str, float]], bounds: Sequence[int], timeline: KernelTimeline) -> list[str]:
    """Return the kind of each phase.

    What comes before the first phase that uses its busiest unit nearly as much as any is a ramp if it is short, or SMs are still
    without work; what comes after the last of them is the tail if SMs run out of work, or no block is left to launch.
    """
    units = load_sampled().utilisation
    is_brief = [end - start <= max(_SHORTEST_CELLS, _BRIEF_FRAC * timeline.n_cells) for start, end in pairwise(bounds)]
    lengths = [end - start for start, end in pairwise(bounds)]
    busiest = [max((value for name, value in mean.items() if name in units), default=0.0) for mean in means]
    active = [mean.get(SM_ACTIVE, 1.0) for mean in means]
    is_long = [length >= _LONG_FRAC * timeline.n_cells for length in lengths]
    most = max((value for value, long in zip(busiest, is_long, strict=True) if long), default=max(busiest))
    has_all_sms = [value >= _FEWER_SMS * max(active) for value in active]
    is_busy = [value >= _MAIN_FRAC * most for value in busiest]
    is_main = [busy and full for busy, full in zip(is_busy, has_all_sms, strict=True)]
    is_main = is_main if any(is_main) else is_busy
    first, last = is_main.index(True), len(is_main) - 1 - is_main[::-1].index(True)
    last_launch = _last_launch(timeline)
    kinds = []
    for index in range(len(means)):
        is_out_of_blocks = last_launch is not None and bounds[index] >= last_launch
        if 0 < index < len(means) - 1 and active[index] < _IDLE_FRAC:
            kinds.append("gap")
        elif index < first and not (is_long[index] and has_all_sms[index]):
            kinds.append("ramp")
        elif index > last and (is_out_of_blocks or is_brief[index] or not has_all_sms[index]):
            kinds.append("tail")
        else:
            kinds.append("steady")
    return kinds


def _last_launch(timeline: KernelTimeline) -> int | None:
    """Return the cell after which no block is launched; None where all begin together, or it is not known."""
    launched = [value or 0.0 for value in timeline.values.get(BLOCKS_LAUNCHED, [])]
    total = sum(launched)
    if total <= 0:
        return None
    begun = max(2, len(launched) // 20)
    later = sum(launched[begun:])
    if later < _LATER_LAUNCHES * total:
        return None
    return max(index for index, value in enumerate(launched) if value > 0)
