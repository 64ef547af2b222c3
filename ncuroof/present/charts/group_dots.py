"""Groups of equal launches as dots of a roofline chart: plain data, ready to draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncuroof import wording
from ncuroof.diagnosis import load_rules
from ncuroof.present.analysed import Record
from ncuroof.present.charts.figures import dot_sizes_px
from ncuroof.present.charts.views import View
from ncuroof.present.sentences.breakdowns import LEAST_SPREAD_FRAC, extremes

_MOST_NAME = 80


@dataclass(frozen=True, slots=True)
class Dot:
    """A group of equal launches on a chart.

    Attributes:
        id: of the launch that represents the group: the longest, or the longest with a dot.
        verdict: of its launches.
        x, y: intensity and rate of that launch, in the units of the view.
        spread: lowest and highest rate of its launches; None where they differ by less than 5 %, or the document lacks some.
        size_px: diameter; grows with the square root of the time of all launches.
        lines: text shown on hover; names are as in the report, not escaped.
    """

    id: int
    verdict: str
    x: float
    y: float
    spread: tuple[float, float] | None
    size_px: float
    lines: tuple[str, ...]


def group_dots(document: Record, *, device: int, view: View, level: str) -> list[Dot | None]:
    """Return a dot per group of a device, None for a group without one at that level; dot sizes are comparable across devices.

    Args:
        document: an analysis, `ncuroof.analysis/1`.
        device: index in its devices.
        view: which roofline.
        level: memory level at which bytes or transactions are counted.
    """
    groups = document["groups"]
    kernel_by_id = {kernel["id"]: kernel for kernel in document["kernels"]}
    sizes_px = dot_sizes_px([group["duration_ns"] for group in groups])
    dots = []
    for group, size_px in zip(groups, sizes_px, strict=True):
        kernel = kernel_by_id.get(group["id"])
        if kernel is None or kernel["device"] != device:
            continue
        launches = _longest_first(kernel, [kernel_by_id.get(number) for number in group["launches"]])
        lines = _of_group(group, document["summary"]["duration_ns"])
        dots.append(_dot(launches, view, level, size_px, lines))
    return dots


def _longest_first(representative: Record, launches: Sequence[Record | None]) -> list[Record]:
    """Return the launches of a group, its representative first; only this one where the document lacks some of them."""
    known = [kernel for kernel in launches if kernel is not None]
    if len(known) < len(launches):
        return [representative]
    others = [kernel for kernel in known if kernel is not representative]
    return [representative, *sorted(others, key=lambda kernel: -(kernel["duration_ns"] or 0.0))]


def _dot(launches: Sequence[Record], view: View, level: str, size_px: float, of_group: str) -> Dot | None:
    """Return the dot of a group, given its launches, the longest first."""
    placed = [(kernel, points) for kernel in launches if (points := view.dots(kernel).get(level))]
    if not placed:
        return None
    kernel, (point, *_) = placed[0]
    precision = point.get("precision")
    rates = [each[view.rate] for _, points in placed for each in points if each.get("precision") == precision]
    lowest, highest = min(rates), max(rates)
    spread = (lowest, highest) if highest > lowest * (1 + LEAST_SPREAD_FRAC) else None
    return Dot(
        id=kernel["id"],
        verdict=kernel["verdict"],
        x=point[view.intensity],
        y=point[view.rate],
        spread=spread,
        size_px=size_px,
        lines=(_name(kernel), of_group, _bound(kernel), *_place(point, spread, view)),
    )


def _name(kernel: Record) -> str:
    return f"#{kernel['id']} {wording.kernel_name(kernel, _MOST_NAME)}"


def _of_group(group: Record, total_ns: float | None) -> str:
    """Return "12 launches, 210 µs to 290 µs each (±8.3 %), 3.00 ms in all, 16.2 % of the run"."""
    duration_ns, n_launches = group["duration_ns"], group["n_launches"]
    time = wording.duration(duration_ns) + (" in all" if n_launches > 1 else "")
    share = f"{wording.share(duration_ns / total_ns)} of the run" if duration_ns is not None and total_ns else ""
    return ", ".join(filter(None, (wording.launches(n_launches), extremes(group), time, share)))


def _bound(kernel: Record) -> str:
    """Return "memory-bound, DRAM"."""
    limiter = kernel["limiter"]
    return ", ".join([verdict_title(kernel["verdict"]), *([] if limiter is None else [wording.label(limiter)])])


def verdict_title(name: str) -> str:
    """Return the title of a verdict."""
    return load_rules().verdicts[name].title


def _place(point: Record, spread: tuple[float, float] | None, view: View) -> Iterator[str]:
    """Yield where a point lies ("DRAM, FP32: 0.5 FLOP/B, 1 TFLOP/s, 80 % of its roof"), then the spread of rates if any."""
    where = ", ".join(wording.label(name) for name in (point["level"], point.get("precision")) if name)
    roof = f", {wording.share(point['roof_frac'])} of its roof" if point["roof_frac"] is not None else ""
    place = f"{where}: {view.write_intensity(point[view.intensity])}, {view.write_rate(point[view.rate])}{roof}"
    yield wording.in_operations(place, point.get("precision"))
    if spread is not None:
        ends = f"{view.write_rate(spread[0])} to {view.write_rate(spread[1])} over its launches"
        yield wording.in_operations(ends, point.get("precision"))
