"""The roofline chart of a device as plain data: roofs, ranges and ticks, ready to draw on logarithmic axes.

All coordinates are positive; a zero or an unknown number has no place on a logarithmic axis and is not drawn. Roofs from counters
hold at the clock of the launch. A data-sheet roof (where no counter gives it) or a measured one holds at another clock, and is
therefore drawn at the clock of the longest launch that is judged by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from ncuroof import formatting
from ncuroof.enums import SLOWER_PATH_SUFFIX, CeilingSource, MemoryLevel
from ncuroof.present.analysed import Record
from ncuroof.present.charts.views import FLOP, RooflineView, is_plottable
from ncuroof.present.schemas.analysis import CeilingEntry
from ncuroof.present.schemas.kernels import KernelEntry

_Ends = tuple[list[float], list[float]]
"""Ends of a line: intensities, and rates."""

_MOST_OUT_FRAC, _LEAST_SAVED_DECADES = 0.02, 1.0
"""Dots that a first view leaves out have at most this share of the time of all dots, and the axis becomes shorter by this much."""

_PAD = 3.0
"""Margin around what is drawn, as a factor on a logarithmic axis."""

_LEAST_DECADES = 3
_BEYOND = 1e3
"""Roofs extend beyond the initial view by this factor, so that panning does not show their ends."""

_LEAST_PREFIXED = 1e4
_LEAST_DOT_PX, _MOST_DOT_PX = 9.0, 27.0

_NEXT_TO_NOTHING = 1e-3
"""Roofs that differ by a smaller fraction count as equal."""

_TABLE_AND_RATE = {"compute": ("work", "flop_per_s"), "bandwidth": ("bandwidth", "bytes_per_s")}


def rounded(value: float | None, n_digits: int = 6) -> float | None:
    """Return a number with so many significant digits; six are enough for sorting, drawing and writing."""
    return None if value is None else float(f"{value:.{n_digits}g}")


def dot_sizes_px(durations_ns: Sequence[float | None]) -> list[float]:
    """Return a dot diameter per kernel that grows with the square root of its duration; the smallest where it is not known."""
    longest = max((value for value in durations_ns if value is not None), default=0.0)
    room = _MOST_DOT_PX - _LEAST_DOT_PX
    return [
        round(_LEAST_DOT_PX + room * math.sqrt(value / longest), 1) if value and longest else _LEAST_DOT_PX
        for value in durations_ns
    ]


class DrawnCeiling(CeilingEntry):
    """A roof to draw; with the clock at which it is that high, where it is judged at that of a launch."""

    at_hz: float | None


def chart(
    ceilings: Iterable[CeilingEntry],
    kernels: Sequence[KernelEntry],
    view: RooflineView = FLOP,
    places: Sequence[tuple[float, float]] = (),
    *,
    leaves_out: bool = False,
) -> dict[str, Any]:
    """Return the chart of one device.

    Args:
        ceilings: roofs of that device and view, from the document.
        kernels: kernels of that device, from the document.
        view: which roofline.
        places: further (intensity, rate) points that the initial DRAM view must include.
        leaves_out: whether initial ranges may leave out dots far away that hardly take time.

    Returns:
        `roofs` (line ends, label, source), `sources` of the roofs (each with whether it is shown initially), `levels` that have
        dots, the texts of the view, and `x` and `y`: titles, initial ranges by level, the `reach` that includes every point of
        every kernel (ranges are exponents of ten), and ticks.
    """
    dots = [view.dots(kernel) for kernel in kernels]
    drawn, counted = _drawn(ceilings, kernels, view, dots)
    points = [point for by_level in dots for at_level in by_level.values() for point in at_level]
    levels = [level.value for level in MemoryLevel if any(level in by_level for by_level in dots)]
    unit = formatting.work_units(
        [roof["name"] for roof in drawn if roof["kind"] == "compute"]
        + [point.get("precision") or "" for point in points]
    )
    is_mixed = view is FLOP and " or " in unit
    further = [{view.intensity: x, view.rate: y} for x, y in places]
    first = {
        level: _ranges(
            drawn,
            [
                *_drawn_first(kernels, dots, level, view if leaves_out else None),
                *(further if level == MemoryLevel.DRAM else ()),
            ],
            view,
        )
        for level in levels
    }
    x_reach, y_reach = map(_around, zip(_ranges(drawn, [*points, *further], view), *first.values(), strict=True))
    sources = [source.value for source in CeilingSource if any(roof["source"] == source for roof in drawn)]
    return {
        "label": view.label,
        "counted": view.counted,
        "noLevel": view.no_level,
        "noChart": view.no_chart,
        "roofs": [roof for source in sources for roof in _roofs(drawn, source, x_reach, view, counted)],
        "sources": [[source, index == 0 or source == CeilingSource.MEASURED] for index, source in enumerate(sources)],
        "x": {
            "titles": {level: view.x_title(level).replace("FLOP", unit) for level in levels},
            **_axis({level: x for level, (x, _) in first.items()}, x_reach, _intensity_tick),
        },
        "y": {
            "title": _per_second(unit) if is_mixed else "",
            **_axis({level: y for level, (_, y) in first.items()}, y_reach, partial(_rate_tick, view, unit)),
        },
        "levels": levels,
    }


def _axis(
    ranges: Mapping[str, tuple[float, float]], reach: tuple[float, float], write: Callable[[float], str]
) -> dict[str, Any]:
    """Return what both axes have: initial ranges by level, the reach of all points, and ticks."""
    return {
        "ranges": {level: _exponents(each) for level, each in ranges.items()},
        "reach": _exponents(reach),
        "ticks": _ticks(reach, write),
    }


def _in_units(written: str, unit: str) -> str:
    """Return a rate with the units of all types of a roof: "2.31 PFLOP/s or POP/s" for FP8 and INT8."""
    symbol = written.rpartition(" ")[2]
    return written.replace(symbol, " or ".join(symbol.replace("FLOP", each) for each in unit.split(" or ")))


def _per_second(unit: str) -> str:
    """Return "FLOP/s", or "FLOP/s or OP/s" where both units occur."""
    return " or ".join(f"{each}/s" for each in unit.split(" or "))


def _rate_tick(view: RooflineView, unit: str, value: float) -> str:
    """Return a rate for an axis: "1 TFLOP/s", "1 TOP/s" for integers only, "1 T" where the title names both units."""
    return formatting.trimmed(view.write_rate(value).replace("FLOP/s", "" if " or " in unit else f"{unit}/s")).rstrip()


def _intensity_tick(value: float) -> str:
    """Return a round number without a unit, short enough for an axis: "0.01", "1000", "10k"."""
    return f"{value:.15g}" if value < _LEAST_PREFIXED else formatting.trimmed(formatting.scaled(value)).replace(" ", "")


def _drawn(
    ceilings: Iterable[CeilingEntry],
    kernels: Sequence[KernelEntry],
    view: RooflineView,
    dots: Sequence[Mapping[str, Any]],
) -> tuple[list[DrawnCeiling], set[tuple[str, str]]]:
    """Return the roofs to draw, and kind and name of those that need no stand-in, from counters or without dots."""
    drawn: list[DrawnCeiling] = [{**ceiling, "at_hz": None} for ceiling in ceilings if is_plottable(ceiling["per_s"])]
    if view is FLOP:
        drawn = _of_precisions(drawn, _precisions(kernels))
    of_counters = {(roof["kind"], roof["name"]) for roof in drawn if roof["source"] == CeilingSource.COUNTERS}
    counted = of_counters | _without_dots(drawn, dots)
    return at_the_launches_clock(drawn, kernels, counted) if view is FLOP else drawn, counted


def _without_dots(drawn: Iterable[DrawnCeiling], dots: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return kind and name of the bandwidth roofs of levels without dots, which need no stand-in."""
    levels = {level for by_level in dots for level in by_level}
    return {
        (roof["kind"], roof["name"]) for roof in drawn if roof["kind"] == "bandwidth" and roof["name"] not in levels
    }


def _drawn_first(
    kernels: Sequence[KernelEntry],
    dots: Iterable[Mapping[str, Sequence[Record]]],
    level: str,
    trimmed: RooflineView | None,
) -> list[Record]:
    """Return the points at a level that are drawn as dots: for each kernel, that of its dominant precision.

    Args:
        kernels: of the device.
        dots: of each kernel, by level.
        level: memory level.
        trimmed: the view of the points, whose far ones with next to no time are left out; None for all points.
    """
    timed: Sequence[tuple[Record, float]] = [
        (by_level[level][0], (kernel["duration_ns"] or 0.0) * kernel.get("weight", 1.0))
        for kernel, by_level in zip(kernels, dots, strict=True)
        if level in by_level
    ]
    if trimmed is not None:
        spare_ns = _MOST_OUT_FRAC * sum(time for _, time in timed)
        for axis in (trimmed.rate, trimmed.intensity):
            for is_descending in (False, True):
                timed, spare_ns = _trimmed(timed, axis, spare_ns, is_descending=is_descending)
    return [point for point, _ in timed]


def _trimmed(
    timed: Sequence[tuple[Record, float]], axis: str, spare_ns: float, *, is_descending: bool
) -> tuple[Sequence[tuple[Record, float]], float]:
    """Return the points without those at one end of an axis, and the time that is still to spare.

    Points are left out only where that makes the axis shorter by `_LEAST_SAVED_DECADES`.
    """
    ordered = sorted(timed, key=lambda each: each[0][axis], reverse=is_descending)
    sums = list(accumulate(time for _, time in ordered))
    n_out = sum(0 < total <= spare_ns for total in sums)
    if not 0 < n_out < len(ordered):
        return timed, spare_ns
    saved_decades = abs(math.log10(ordered[n_out][0][axis] / ordered[0][0][axis]))
    return (ordered[n_out:], spare_ns - sums[n_out - 1]) if saved_decades >= _LEAST_SAVED_DECADES else (timed, spare_ns)


def _of_precisions(ceilings: Iterable[DrawnCeiling], used: Collection[str]) -> list[DrawnCeiling]:
    """Return the bandwidth roofs, and the flat roofs of these precisions."""
    return [
        ceiling
        for ceiling in ceilings
        if ceiling["kind"] == "bandwidth" or ceiling["name"].removesuffix(SLOWER_PATH_SUFFIX) in used
    ]


def _precisions(kernels: Iterable[KernelEntry]) -> set[str]:
    """Return the precisions in which any kernel did work."""
    return {name for kernel in kernels for name, work in kernel["work"].items() if (work["flop"] or 0) > 0}


def _ranges(
    ceilings: Sequence[DrawnCeiling], points: Sequence[Record], view: RooflineView
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ranges of both axes that include these points, every ridge and every peak (else the slopes' right ends)."""
    peaks = [roof["per_s"] for roof in ceilings if roof["kind"] == "compute"]
    slopes = [roof["per_s"] for roof in ceilings if roof["kind"] == "bandwidth"]
    ridges = [peak / slope for peak in peaks for slope in slopes]
    x = _padded([point[view.intensity] for point in points] + ridges, default=1.0)
    highest = peaks or [slope * x[1] for slope in slopes]
    return x, _padded([point[view.rate] for point in points] + highest, default=1e12)


def _padded(values: Sequence[float], *, default: float) -> tuple[float, float]:
    """Return the range of the values with a margin, widened to at least three decades (two thirds of the widening below)."""
    known = [value for value in values if is_plottable(value)] or [default]
    low, high = min(known) / _PAD, max(known) * _PAD
    missing = 10.0 ** (_LEAST_DECADES - min(math.log10(high) - math.log10(low), _LEAST_DECADES))
    return low / missing ** (2 / 3), high * missing ** (1 / 3)


def _around(ranges: Iterable[tuple[float, float]]) -> tuple[float, float]:
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _exponents(bounds: tuple[float, float]) -> list[float]:
    return [round(math.log10(bound), 3) for bound in bounds]


def _roofs(
    drawn: Sequence[DrawnCeiling],
    source: str,
    x_range: tuple[float, float],
    view: RooflineView,
    counted: Collection[tuple[str, str]],
) -> list[dict[str, Any]]:
    """Return the lines of one source: slopes up to the highest peak, peaks from where the steepest slope meets them.

    A roof stands in (`standsIn`) where no counter of the report provides it: it is drawn with any choice of sources, and meets the
    lines that are then shown.
    """
    of_source = [ceiling for ceiling in drawn if ceiling["source"] == source]
    first = next(each for each in CeilingSource if any(ceiling["source"] == each for ceiling in drawn))
    shown_at_first = [ceiling for ceiling in drawn if ceiling["source"] == first]
    standing_in = [ceiling for ceiling in drawn if _stands_in(ceiling, counted)]
    top = _highest([*of_source, *standing_in], "compute")
    far = x_range[0] / _BEYOND, x_range[1] * _BEYOND
    lines = []
    for (kind, per_s), same in _coinciding(of_source).items():
        stands_in = any(_stands_in(ceiling, counted) for ceiling in same)
        if kind == "bandwidth":
            ends, amount = _slope(per_s, top, far), view.write_slope(per_s)
        else:
            steepest = _highest([*(shown_at_first if stands_in else of_source), *standing_in], "bandwidth")
            ends = _flat(per_s, steepest, far)
            unit = formatting.work_units(ceiling["name"] for ceiling in same)
            amount = _in_units(view.write_rate(per_s), unit)
        lines.append(_roof(same, ends, amount, stands_in=stands_in))
    return lines


def _highest(ceilings: Iterable[DrawnCeiling], kind: str) -> float | None:
    return max((ceiling["per_s"] for ceiling in ceilings if ceiling["kind"] == kind), default=None)


def _slope(per_s: float, top: float | None, far: tuple[float, float]) -> _Ends:
    right = far[1] if top is None else top / per_s
    left = min(far[0], right / _BEYOND)
    return [left, right], [per_s * left, per_s * right]


def _flat(per_s: float, steepest: float | None, far: tuple[float, float]) -> _Ends:
    left = far[0] if steepest is None else per_s / steepest
    return [left, max(far[1], left * _BEYOND)], [per_s, per_s]


def _stands_in(ceiling: DrawnCeiling, counted: Collection[tuple[str, str]]) -> bool:
    return ceiling["source"] != CeilingSource.COUNTERS and (ceiling["kind"], ceiling["name"]) not in counted


def _coinciding(ceilings: Sequence[DrawnCeiling]) -> dict[tuple[str, float], list[DrawnCeiling]]:
    """Return the ceilings by kind and value; ceilings of equal value (to four digits) are one line with several names."""
    groups: dict[tuple[str, float], list[DrawnCeiling]] = {}
    for ceiling in ceilings:
        groups.setdefault((ceiling["kind"], float(f"{ceiling['per_s']:.4g}")), []).append(ceiling)
    return groups


def _roof(ceilings: Sequence[DrawnCeiling], ends: _Ends, amount: str, *, stands_in: bool) -> dict[str, Any]:
    source = ceilings[0]["source"]
    short = ", ".join(formatting.label(ceiling["name"]) for ceiling in ceilings)
    if source != CeilingSource.COUNTERS:
        short = f"{short} {source}"
    if ceilings[0]["at_hz"]:
        short = f"{short} at {formatting.scaled(ceilings[0]['at_hz'], 'Hz')}"
    return {
        "kind": ceilings[0]["kind"],
        "names": [ceiling["name"] for ceiling in ceilings],
        "per_s": rounded(ceilings[0]["per_s"]),
        "source": source,
        "standsIn": stands_in,
        "label": f"{short} {amount}",
        "short": short,
        "x": list(map(rounded, ends[0])),
        "y": list(map(rounded, ends[1])),
    }


def _ticks(bounds: tuple[float, float], write: Callable[[float], str]) -> dict[str, Any]:
    """Return ticks at 1, 2 and 5 of each decade, labelled only at the decades (`coarse`) or everywhere (`fine`).

    The renderer thins out the decade labels, as their number in view depends on the zoom.
    """
    first, last = math.floor(math.log10(bounds[0])) - 2, math.ceil(math.log10(bounds[1])) + 2
    marks = [(digit, exponent) for exponent in range(first, last + 1) for digit in (1, 2, 5)]
    labels = [write(float(f"{digit}e{exponent}")) for digit, exponent in marks]
    return {
        "values": [float(f"{digit}e{exponent}") for digit, exponent in marks],
        "coarse": [label if digit == 1 else "" for label, (digit, _) in zip(labels, marks, strict=True)],
        "fine": labels,
    }


def at_the_launches_clock(
    ceilings: Iterable[DrawnCeiling], kernels: Sequence[KernelEntry], counted: Collection[tuple[str, str]]
) -> list[DrawnCeiling]:
    """Return the ceilings, those not from counters at the value by which the longest launch is judged, with its clock as `at_hz`.

    Args:
        ceilings: roofs of one device, from the document.
        kernels: kernels of that device, from the document.
        counted: kind and name of the roofs that need no stand-in; their data-sheet values are a mere comparison, left as they are.
    """
    longest_first = sorted(kernels, key=lambda kernel: -(kernel["duration_ns"] or 0.0))
    return [
        ceiling
        if ceiling["source"] == CeilingSource.COUNTERS
        or (ceiling["source"] == CeilingSource.DATASHEET and (ceiling["kind"], ceiling["name"]) in counted)
        else _as_judged(ceiling, longest_first)
        for ceiling in ceilings
    ]


def _as_judged(ceiling: DrawnCeiling, kernels: Iterable[KernelEntry]) -> DrawnCeiling:
    for kernel in kernels:
        per_s = _judged_by(kernel, ceiling)
        if per_s is not None:
            is_same = abs(per_s / ceiling["per_s"] - 1) < _NEXT_TO_NOTHING
            return ceiling if is_same else {**ceiling, "per_s": per_s, "at_hz": kernel["sm_clock_hz"]}
    return ceiling


def _judged_by(kernel: Record, ceiling: DrawnCeiling) -> float | None:
    """Return the value of a roof by which a launch is judged; None where it is not judged by this roof."""
    table, rate = _TABLE_AND_RATE[ceiling["kind"]]
    entry = kernel[table].get(ceiling["name"])
    if entry is None:
        return None
    if ceiling["source"] == CeilingSource.DATASHEET:
        peak = entry[f"peak_{rate}"] if entry["peak_source"] == CeilingSource.DATASHEET else None
        return peak or None
    return entry[rate] / entry["reached_frac"] if entry["reached_frac"] else None
