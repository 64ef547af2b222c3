"""How long a step takes (wall-clock time) and why the GPU is idle in it, as text ready to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from ncuroof import formatting
from ncuroof.present.schemas.analysis import IdleShareEntry, StepPartEntry, WallTimeEntry, WeightingEntry
from ncuroof.sidecars.counts import PROFILERS

_START = {
    "torch.profiler": "start-up and warm-up included; --step N measures a later step",
    "nsys": "from its first kernel on, start-up and warm-up included",
}
"""What the time of a whole run includes, unlike that of a step, by profiler."""

_LEAST_SHOWN_FRAC = 0.01
"""Least share of a step for a line of its own."""

_LEAST_ADVISED_FRAC = 0.05
"""Least share of a step for advice: less is not worth a change."""

_UNEVEN = 4
"""Uneven gaps are reported where half of their time is in gaps of more than this many times the average length."""

_N_PLACES_SHOWN = 3
"""Most places on a line of the terminal."""

PLACES_INDENT = " " * 12
"""Start of a line that lists places."""

_NOT_NAMED = "not named in the trace"

_LEAST_IDLE_FRAC = 0.1
"""Least idle share of a step to be mentioned in the first sentences about a run."""

_LEAST_OF_GPU_TIME = 0.5
"""Least share of the GPU time in counting runs with a timeline for their idle time to be among the first things said."""


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A part of a step's time."""

    title: Annotated[str, "what the GPU does, or 'idle: ' and why"]
    share: Annotated[str, "of the step's time"]
    duration: Annotated[str, "time per step"]
    gaps: Annotated[str, "number of these gaps per step and their average length, or empty"]
    places: Annotated[Sequence[str], "host activities during it and kernels after it, each with its share of the step"]
    advice: Annotated[str, "what to do about it, or empty"]


@dataclass(frozen=True, slots=True)
class WallTimeTable:
    """The parts of a step's time."""

    title: Annotated[str, "of the table"]
    sentence: Annotated[str, "duration of a step, and idle share of the GPU"]
    whole: Annotated[str, "time of which the rows give shares"]
    batches: Annotated[str, "time per step that the host waits for batches, or empty"]
    rows: Annotated[Sequence[TimeRow], "what runs, then idle time, the longest first"]


def wall_times(weighting: WeightingEntry | None) -> Sequence[WallTimeEntry]:
    """Return the counting runs with a timeline, of a document's summary; empty where there is none."""
    return () if weighting is None else weighting["wall_times"]


def wall_time_tables(weighting: WeightingEntry | None, reports: Sequence[str] = ()) -> tuple[WallTimeTable, ...]:
    """Return a table for each counting run with a timeline; empty where there is none.

    Args:
        weighting: of the document's summary.
        reports: what to call each report; empty for a single one. So for all functions here.
    """
    return tuple(
        WallTimeTable(
            title=f"What the GPU does during {whose_time(time, reports)}",
            sentence="; ".join(_sentences(time, reports)),
            whole=formatting.duration(time["profiled_ns"]),
            batches=_batches(time),
            rows=tuple(_row(part) for part in time["parts"]),
        )
        for time in wall_times(weighting)
    )


def wall_time_lines(weighting: WeightingEntry | None, reports: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the same as lines, one per part of the time."""
    return tuple(line for time in wall_times(weighting) for line in _lines(time, reports))


def _lines(time: WallTimeEntry, reports: Sequence[str]) -> Iterator[str]:
    if reports:
        yield f"{reports[time['source']]}:"  # on a line of its own, since lines are cut
    yield from _sentences(time, ())
    parts = [part for part in time["parts"] if part["share_frac"] >= _LEAST_SHOWN_FRAC]
    most_idle = next((part["name"] for part in parts if part["is_idle"]), None)
    for part in parts:
        gaps = f" ({gaps})" if (gaps := _gaps(part)) else ""
        yield f"{formatting.share(part['share_frac']):>8}  {_title(part)}{gaps}"
        yield from (f"{PLACES_INDENT}{places}" for places in _places(part, _N_PLACES_SHOWN)[:1])
        if part["name"] == most_idle and part["share_frac"] >= _LEAST_IDLE_FRAC and part["advice"]:
            yield f"{'':10}→ {formatting.first_sentence(part['advice'])}"
    if batches := _batches(time):
        yield batches


def told_time(weighting: WeightingEntry | None) -> WallTimeEntry | None:
    """Return the time to tell first: of the counting runs with a timeline, that with the most idle time.

    None without a timeline, or if these counting runs cover less than half of the GPU time.
    """
    timed_frac = None if weighting is None else weighting["timed_frac"]
    if timed_frac is not None and timed_frac < _LEAST_OF_GPU_TIME:
        return None
    times = wall_times(weighting)
    return max(times, key=lambda each: each["idle_frac"] * each["duration_ns"] * (each["n_steps"] or 1), default=None)


def whose_time(time: WallTimeEntry, reports: Sequence[str]) -> str:
    """Return whose time it is: "a step", or of several reports "a step of rank0.ncu-rep"."""
    return ("a step" if time["n_steps"] else "the run") + (f" of {reports[time['source']]}" if reports else "")


def _sentences(time: WallTimeEntry, reports: Sequence[str]) -> tuple[str, str]:
    takes = f"takes {formatting.duration(time['duration_ns'])}"
    whole = f"{whose_time(time, reports)} {takes}"
    if not time["n_steps"]:
        whole += f" from first kernel to last ({_START[time['profiler']].removeprefix('from its first kernel on, ')})"
    is_slowed = time["duration_ns"] < time["profiled_ns"]
    profiled = f" it takes {formatting.duration(time['profiled_ns'])}, of which" if is_slowed else ""
    return (
        f"{whole}; the GPU is idle for {formatting.share(time['idle_frac'])} of it",
        f"under {PROFILERS[time['profiler']]}{profiled}:",
    )


def _title(part: StepPartEntry) -> str:
    return f"idle: {part['title']}" if part["is_idle"] else str(part["title"])


def _row(part: StepPartEntry) -> TimeRow:
    return TimeRow(
        title=_title(part),
        share=formatting.share(part["share_frac"]),
        duration=formatting.duration(part["duration_ns"]),
        gaps=_gaps(part),
        places=_places(part, None),
        advice=part["advice"] or "" if part["share_frac"] >= _LEAST_ADVISED_FRAC else "",
    )


def _places(part: StepPartEntry, n_shown: int | None) -> list[str]:
    """Return during which host activities, and before which kernels, a part was spent; empty for a part too small for advice."""
    if part["share_frac"] < _LEAST_ADVISED_FRAC:
        return []
    pairs = (("in", part["during"][:n_shown]), ("before", part["before"][:n_shown]))
    return [f"{word} {', '.join(map(_place, places))}" for word, places in pairs if places]


def _place(place: IdleShareEntry) -> str:
    return f"{formatting.printable(place['name']) or _NOT_NAMED} {formatting.share(place['share_frac'])}"


def _gaps(part: StepPartEntry) -> str:
    n_gaps = part["n_gaps"]
    if not n_gaps or n_gaps < 2:
        return ""
    duration_ns, half_ns = part["duration_ns"], part["half_in_gaps_of_ns"]
    average_ns = duration_ns / n_gaps
    said = f"{n_gaps:.0f} gaps, {formatting.duration(average_ns)} on average"
    if half_ns is None or half_ns <= _UNEVEN * average_ns:
        return said
    # The longest gaps that make up half of the time are each at least this long, and without the last one less than that half.
    n_long = ceil(duration_ns / 2 / half_ns)
    longer = f"half of the time in {_at_most(n_long)} of {formatting.duration(half_ns)} or longer"
    n_others = n_gaps - n_long
    others = (
        f", the others at most {formatting.duration(duration_ns / 2 / n_others)} on average" if n_others >= 1 else ""
    )
    return f"{said}, {longer}{others}"


def _at_most(n_gaps: int) -> str:
    return "one gap" if n_gaps == 1 else f"at most {n_gaps} gaps"


def _batches(time: WallTimeEntry) -> str:
    batches_ns = time["batches_ns"]
    if not batches_ns or batches_ns < _LEAST_SHOWN_FRAC * time["profiled_ns"]:
        return ""
    return f"the host waits for batches for {formatting.duration(batches_ns)} of a step"
