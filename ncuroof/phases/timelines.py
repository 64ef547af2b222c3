"""The quantities of each kernel over its time, from its sampled counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ncuroof import formatting
from ncuroof.ingest.native.reader import unit_of
from ncuroof.ingest.native.samples import sampled_counter
from ncuroof.phases.alignment import Aligned, Series, align
from ncuroof.phases.sampled import SampledCounter, in_base_units, load_sampled

SM_ACTIVE, BLOCKS_LAUNCHED = "sm_active", "blocks_launched"

Values = list[float | None]

_FEWEST_CELLS = 8
"""With fewer samples than this, a boundary between phases would be a guess (a choice)."""

_DIFFERENT_FRAC = 0.05
"""Passes whose times differ by more than this ran under different conditions: another clock, or other contents of the caches."""


@dataclass(frozen=True, slots=True)
class KernelTimeline:
    """A kernel's quantities over its time, in cells of equal length.

    Attributes:
        duration_ns: from the kernel's start to its end.
        interval_ns: time between two of the finest samples, on the kernel's time.
        n_samples: samples of the finest series within the kernel.
        n_passes: runs of the kernel that the series come from.
        values: by quantity, the mean of each cell in base units; None where it was not sampled.
        interval_by_quantity: time between two samples of each quantity, the longest of its sources.
        units: unit of each series, by its name as recorded.
        doubts: what makes the alignment less certain, as sentences.
    """

    duration_ns: float
    interval_ns: float
    n_samples: int
    n_passes: int
    values: Mapping[str, Values]
    interval_by_quantity: Mapping[str, float]
    units: Mapping[str, str]
    doubts: tuple[str, ...]

    @property
    def n_cells(self) -> int:
        """How many cells the kernel's time has."""
        return max(map(len, self.values.values()), default=0)

    @property
    def is_enough(self) -> bool:
        """Whether there are samples enough to look for phases."""
        return self.n_cells >= _FEWEST_CELLS and any(name in load_sampled().utilisation for name in self.values)


def timeline(
    recorded: Mapping[str, tuple[Sequence[int], Sequence[float]]], duration_ns: float, sm_clock_hz: float | None
) -> KernelTimeline:
    """Return the quantities of a kernel over its time.

    Args:
        recorded: times in ns and values of each series, by its name in the report.
        duration_ns: the kernel's duration, above zero.
        sm_clock_hz: clock of its SMs; None where not known, and cycles are then of no use.
    """
    series = {sampled_counter(name): Series(*each) for name, each in recorded.items()}
    sources = list(load_sampled().sources(list(series)))
    aligned = align(
        series,
        duration_ns,
        wanted=[counter for counter, _, _ in sources],
        totals=[counter for counter, _, source in sources if source.is_total],
    )
    names = {sampled_counter(name): name for name in recorded}
    values = _quantities(sources, aligned, sm_clock_hz)
    intervals = {
        name: max(aligned.courses[counter].interval_ns for counter, given, _ in sources
                  if given == name and counter in aligned.courses)
        for name in values
    }  # fmt: skip
    finest = min(intervals.values(), default=duration_ns)
    return KernelTimeline(
        duration_ns,
        finest,
        round(duration_ns / finest),
        len(aligned.passes),
        values,
        intervals,
        {names[counter]: unit_of(counter) or "" for counter in series},
        tuple(_doubts(aligned, duration_ns)),
    )


def _quantities(
    sources: Sequence[tuple[str, str, SampledCounter]], aligned: Aligned, sm_clock_hz: float | None
) -> dict[str, Values]:
    """Return each quantity's cells: the largest of its sources; SMs with work first, because others are shares of these."""
    found: dict[str, Values] = {}
    for counter, name, source in sorted(sources, key=lambda each: each[1] != SM_ACTIVE):
        course = aligned.courses.get(counter)
        if course is None:
            continue
        active = found.get(SM_ACTIVE) or [None] * aligned.n_cells
        scaled = [
            None if value is None else in_base_units(source, value, course.cell_ns, sm_clock_hz, share)
            for value, share in zip(course.values, active, strict=True)
        ]
        if any(value is not None for value in scaled):
            found[name] = [_larger(*pair) for pair in zip(found.get(name, scaled), scaled, strict=True)]
    return found


def _larger(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _doubts(aligned: Aligned, duration_ns: float) -> Iterator[str]:
    """Yield what makes it less certain when things happened, or how much."""
    passes = aligned.passes
    if len(passes) > 1:
        interval = max(course.interval_ns for course in aligned.courses.values())
        yield (
            f"{len(passes)} runs of the kernel are laid on each other where each begins, so that their series can be "
            f"{formatting.duration(interval)} apart"
        )
    times = [each.active_ns for each in passes if each.is_whole]
    differing = max((abs(time / duration_ns - 1) for time in times), default=0.0)
    if differing > _DIFFERENT_FRAC:
        yield f"the sampled runs took {formatting.percent(differing)} more or less time than the measured one"
    if any(not each.is_whole for each in passes):
        seen = min(each.active_ns for each in passes if not each.is_whole) / duration_ns
        if seen < 1 - _DIFFERENT_FRAC:
            yield f"samples of a run end after {formatting.percent(seen)} of the kernel"
    if aligned.left_out:
        yield f"not used, because their run does not show the kernel, or too little of it: {', '.join(aligned.left_out)}"
