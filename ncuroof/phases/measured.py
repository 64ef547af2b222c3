"""The phases of every kernel that was sampled, at the level of the kernel's own counters.

Series show when a unit was used, counters of the whole kernel how much. A sampled counter can have another peak than the one of
the whole kernel, and its pass ran the kernel under slightly other conditions; so each series is scaled until its mean is what was
counted, and both are kept. Without that counter, the series is used as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.ingest import RawReport
from ncuroof.metrics import MEANINGFUL_STALLS_EXCEPT
from ncuroof.phases.phases import Phase, find_phases
from ncuroof.phases.sampled import STALL_PREFIX, load_sampled
from ncuroof.phases.timelines import SM_ACTIVE, KernelTimeline, timeline
from ncuroof.tables import PHASES, SAMPLES, check, conform

UTILISATION = "utilisation."

COUNTED = {SM_ACTIVE: "scheduler.sm_active_frac"}
"""By course, the kernel's quantity that it is the course of; that of a unit has the unit's name."""

_MOST_CELLS_SHOWN = 60
"""Cells of the courses that tables and documents keep: enough for a chart."""

_DIFFERENT_LEVEL = 0.03
"""Difference between the mean of a series and the kernel's counter that is told."""

_N_DECIMALS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Phased:
    """What is known of the time inside kernels.

    Attributes:
        phases: PHASES, not judged yet: `verdict`, `limiter` and `point` are null.
        samples: SAMPLES.
    """

    phases: pl.DataFrame
    samples: pl.DataFrame


def measure_phases(reports: Sequence[RawReport], kernels: pl.DataFrame) -> Phased | None:
    """Return the phases of all kernels that were sampled; None where none was.

    Args:
        reports: as read by `ncuroof.ingest`.
        kernels: KERNELS of these reports, with quantities.
    """
    recorded = dict(_recorded(reports))
    if not recorded:
        return None
    wanted = ["id", "duration_ns", "sm_clock_hz", *_counted().values()]
    rows = kernels.filter(pl.col("id").is_in(list(recorded)) & (pl.col("duration_ns") > 0) & ~pl.col("failed"))
    phases: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    for row in rows.select(wanted).iter_rows(named=True):
        course = timeline(recorded[row["id"]], row["duration_ns"], row["sm_clock_hz"])
        found = find_phases(course)
        levels = _levels(course, row)
        phases += (_phase(row["id"], number, phase, levels) for number, phase in enumerate(found))
        samples.append(_sampled(row["id"], course, levels, found))
    return Phased(
        check(conform(pl.DataFrame(phases, schema=PHASES), PHASES), PHASES, table="PHASES"),
        check(conform(pl.DataFrame(samples, schema=SAMPLES), SAMPLES), SAMPLES, table="SAMPLES"),
    )


def _recorded(reports: Sequence[RawReport]) -> Iterator[tuple[int, dict[str, tuple[list[int], list[float]]]]]:
    """Yield the `id` of each workload that was sampled, with times and values by counter."""
    n_before = 0
    for report in reports:
        by_row: defaultdict[int, dict[str, tuple[list[int], list[float]]]] = defaultdict(dict)
        for row, counter, times, values in report.samples.iter_rows():
            by_row[row][counter] = times, values
        yield from ((n_before + row, series) for row, series in by_row.items())
        n_before += report.workloads.height


def _counted() -> dict[str, str]:
    """Return the quantity of the whole kernel that each course is the course of."""
    return {unit: f"{UTILISATION}{unit}" for unit in load_sampled().utilisation} | COUNTED


@dataclass(frozen=True, slots=True)
class _Level:
    """A course's mean as sampled, and the kernel's counter, which is None where it was not collected."""

    sampled: float
    counted: float | None

    def scaled(self, value: float) -> float:
        """Return a sampled share on the counter's scale, at most 1."""
        factor = 1.0 if self.counted is None or self.sampled <= 0 else self.counted / self.sampled
        return min(1.0, value * factor)


def _levels(course: KernelTimeline, row: Mapping[str, float | None]) -> dict[str, _Level]:
    """Return the level of each course that is a share of a peak, or of the SMs."""
    levels = {}
    for name, quantity in _counted().items():
        known = [value for value in course.values.get(name, ()) if value is not None]
        if known:
            levels[name] = _Level(sum(known) / len(known), row[quantity])
    return levels


def _phase(number: int, index: int, phase: Phase, levels: Mapping[str, _Level]) -> dict[str, Any]:
    stall, share = _top_stall(phase.means)
    return {
        "id": number,
        "phase": index,
        "start_ns": phase.start_ns,
        "duration_ns": phase.duration_ns,
        "kind": phase.kind,
        "stall": stall,
        "stall_frac": share,
        "sm_active_frac": _of(levels, phase, SM_ACTIVE),
        **{f"{UTILISATION}{unit}": _of(levels, phase, unit) for unit in load_sampled().utilisation},
    }


def _of(levels: Mapping[str, _Level], phase: Phase, name: str) -> float | None:
    return levels[name].scaled(phase.means[name]) if name in levels and name in phase.means else None


def _top_stall(means: Mapping[str, float]) -> tuple[str | None, float | None]:
    """Return the state, other than issuing, in which warps are most, and its share of all states; None without these series."""
    states = {name.removeprefix(STALL_PREFIX): value for name, value in means.items() if name.startswith(STALL_PREFIX)}
    waits = {state: value for state, value in states.items() if state not in MEANINGFUL_STALLS_EXCEPT}
    if not waits or sum(states.values()) <= 0:
        return None, None
    longest = max(waits, key=waits.__getitem__)
    return longest, waits[longest] / sum(states.values())


def _sampled(
    number: int, course: KernelTimeline, levels: Mapping[str, _Level], found: Sequence[Phase]
) -> dict[str, Any]:
    """Return the row of SAMPLES."""
    return {
        "id": number,
        "interval_ns": course.interval_ns,
        "n": course.n_samples,
        "passes": course.n_passes,
        "series": [{"name": name, "unit": unit} for name, unit in course.units.items()],
        "levels": [
            {"course": name, "sampled_frac": level.sampled, "counted_frac": level.counted}
            for name, level in levels.items()
        ],
        "courses": [{"course": name, "values": _shown(course.values[name], levels[name])} for name in levels if found],
        "caveat": "; ".join(_caveats(course, levels, found)) or None,
    }


def _shown(values: Sequence[float | None], level: _Level) -> list[float | None]:
    """Return a course in few cells, at the level of the kernel's counter; a cell without samples is None."""
    width = -(-len(values) // _MOST_CELLS_SHOWN)
    parts = [[value for value in values[at : at + width] if value is not None] for at in range(0, len(values), width)]
    return [round(level.scaled(sum(part) / len(part)), _N_DECIMALS) if part else None for part in parts]


def _caveats(course: KernelTimeline, levels: Mapping[str, _Level], found: Sequence[Phase]) -> Iterator[str]:
    if not found:
        yield f"{course.n_samples} samples are too few to tell phases"
    yield from course.doubts
    differing = [
        f"{name} ({level.sampled:.3f} sampled, {level.counted:.3f} counted)"
        for name, level in levels.items()
        if level.counted is not None and abs(level.sampled - level.counted) > _DIFFERENT_LEVEL
    ]
    if differing:
        yield f"scaled to what was counted over the whole kernel: {', '.join(differing)}"
