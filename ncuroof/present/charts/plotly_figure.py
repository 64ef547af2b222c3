"""The roofline chart of a device as a plotly figure: as on the page, with a dot per group of equal launches.

Labels of roofs stand along the lines, from their visible ends, without overlaps. plotly interprets some HTML in its texts, and TeX
where MathJax is available, so every text of a report is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.enums import CeilingSource, MemoryLevel, Verdict
from ncuroof.errors import MissingExtraError, UnknownNameError
from ncuroof.present.analysed import Record
from ncuroof.present.charts.figures import chart, dot_sizes_px
from ncuroof.present.charts.views import FLOP, VIEWS, RooflineView
from ncuroof.present.palette import page_colour, verdict_colours
from ncuroof.present.schemas.analysis import AnalysisDocument, GroupEntry
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.breakdowns import LEAST_SPREAD_FRAC, extremes

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Part = dict[str, Any]
"""A plotly trace or layout, or a part of either, as a dict."""

_SYMBOLS = {
    Verdict.MEMORY: "circle",
    Verdict.COMPUTE: "square",
    Verdict.BALANCED: "diamond",
    Verdict.LATENCY: "triangle-up",
    Verdict.OVERHEAD: "triangle-down",
    Verdict.UNKNOWN: "x",
}
"""Symbol of each verdict, as on the page."""

_WIDTH_PX, _HEIGHT_PX = 960, 600
_MARGIN = {"l": 90, "r": 20, "t": 105, "b": 55}
_MOST_TITLE = 100
_MOST_DECADES = 9  # with labels on an axis
_LAST = 2000  # legend rank after all others, which have plotly's default 1000
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})

_MOST_NAME = 80

FONT_PX = 11
_CHARACTER_PX = 6.3
"""Average width of a character in the labels' font."""

_LINE_PX = 15.0
_SHIFT_PX = 10.0
"""Distance from a line to the middle of its label."""

_FROM_END_PX = 14.0
_GAP_PX = 14.0
_AS_ONE_PX = 5.0
"""Lines closer than this count as one: the label shift clears both."""


def roofline_figure(
    document: AnalysisDocument, *, device: int = 0, view: str = FLOP.name, level: str | None = None
) -> Figure:
    """Return the roofline chart of a device, or a figure that says why there is none.

    Axes are logarithmic: FLOP/s over FLOP/byte, or warp instructions per second over warp instructions per transaction.

    Args:
        document: an analysis, `ncuroof.analysis/1`.
        device: index in its devices.
        view: "flop" or "instruction".
        level: memory level of the dots ("dram", "l2", "l1", "shared"); None for the first that has dots.

    Raises:
        MissingExtraError: plotly is not installed.
        UnknownNameError: no such device, view or level.
    """
    try:
        from plotly.graph_objects import Figure  # noqa: PLC0415  an extra
    except ImportError as error:
        raise MissingExtraError(f"roofline() needs plotly: {error}", hint="pip install 'ncuroof[plot]'") from error
    views = {each.name: each for each in VIEWS}
    chosen = views[_known("view", view, list(views))]
    device = _known("device", device, range(len(document["devices"]) or 1))
    wanted = None if level is None else _known("memory level", level, [each.value for each in MemoryLevel])

    kernels = [kernel for kernel in document["kernels"] if kernel["device"] == device and not kernel["failed"]]
    ceilings = [ceiling for ceiling in document[chosen.ceilings] if ceiling["device"] == device]
    drawn = chart(ceilings, kernels, chosen)
    at = wanted or next(iter(drawn["levels"]), None)
    if at is None or at not in drawn["levels"]:
        return Figure(layout=_layout(document, device, chosen) | _reason(document, drawn["levels"], at, chosen))
    dots = group_dots(document, device=device, view=chosen, level=at)
    return Figure(
        data=[*_roofs(drawn), *_dots([dot for dot in dots if dot is not None])],
        layout=_layout(document, device, chosen, *_remarks(dots, at, chosen)) | _axes(drawn, at),
    )


def _known(kind: str, value: object, known: Sequence[Any]) -> Any:
    """Return the known value that equals `value`, else raise an `UnknownNameError`."""
    for each in known:
        if each == value:
            return each
    raise UnknownNameError(f"there is no {kind} {value!r} to draw", hint=f"use one of: {', '.join(map(str, known))}")


def _escaped(words: str) -> str:
    return formatting.printable(words).translate(_ESCAPES)


def _is_shown(roof: Record, drawn: Record) -> bool:
    """Return whether a roof is drawn initially: its source is shown initially, or it stands in for missing counters."""
    return roof["standsIn"] or [roof["source"], True] in drawn["sources"]


def _roofs(drawn: Record) -> list[Part]:
    """Return a line per roof; roofs that are not drawn initially can be shown from the legend, one entry per source."""
    traces: list[Part] = []
    for roof in drawn["roofs"]:
        source, is_counted = roof["source"], roof["source"] == CeilingSource.COUNTERS
        trace = {
            "type": "scatter",
            "mode": "lines",
            "x": roof["x"],
            "y": roof["y"],
            "line": {"color": page_colour("ink"), "width": 1.3}
            if is_counted
            else {"color": page_colour("soft"), "width": 1, "dash": "dash"},
            "hoverinfo": "text",
            "hovertext": _escaped(roof["label"]),
            "showlegend": False,
        }
        if not _is_shown(roof, drawn):
            is_first = all(other.get("legendgroup") != source for other in traces)
            entry = {
                "name": f"roofs of the {source}",
                "legendgroup": source,
                "legendrank": _LAST,
                "showlegend": is_first,
            }
            trace |= {"visible": "legendonly", **entry}
        traces.append(trace)
    return traces


def _dots(dots: Sequence[Dot]) -> list[Part]:
    """Return a trace for each verdict that occurs."""
    traces = []
    for verdict, symbol in _SYMBOLS.items():
        colour = verdict_colours()[verdict.value]
        of_verdict = [dot for dot in dots if dot.verdict == verdict]
        if not of_verdict:
            continue
        line = {"color": page_colour("paper"), "width": 1}
        size_px = [dot.size_px for dot in of_verdict]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": _escaped(verdict_title(verdict)),
                "x": [dot.x for dot in of_verdict],
                "y": [dot.y for dot in of_verdict],
                "marker": {"color": colour, "symbol": symbol, "size": size_px, "opacity": 0.8, "line": line},
                "customdata": [dot.id for dot in of_verdict],
                "hoverinfo": "text",
                "hovertext": ["<br>".join(map(_escaped, dot.lines)) for dot in of_verdict],
                **_error_bars(of_verdict, colour),
            }
        )
    return traces


def _error_bars(dots: Sequence[Dot], colour: str) -> Part:
    """Return error bars from the lowest to the highest rate of each group's launches; empty where no group has a spread."""
    if all(dot.spread is None for dot in dots):
        return {}
    bars = {
        "array": [dot.spread[1] - dot.y if dot.spread else 0.0 for dot in dots],
        "arrayminus": [dot.y - dot.spread[0] if dot.spread else 0.0 for dot in dots],
    }
    return {"error_y": {"type": "data", "symmetric": False, **bars, "color": colour, "thickness": 1.5, "width": 0}}


def _layout(document: AnalysisDocument, device: int, view: RooflineView, *remarks: str) -> Part:
    """Return the layout without axes and roof labels."""
    names = [formatting.gpu_name(each) for each in document["devices"][device : device + 1]]
    if any(source["simulated"] for source in document["sources"]):
        remarks = ("simulated: written by ncuroof, not recorded on a GPU", *remarks)
    subtitle = {"text": _escaped(" · ".join(remarks)), "font": {"size": 12, "color": page_colour("soft")}}
    title = _escaped(formatting.shortened(": ".join([view.label, f"GPU {device}", *names]), _MOST_TITLE))
    return {
        "width": _WIDTH_PX,
        "height": _HEIGHT_PX,
        "margin": {**_MARGIN, "autoexpand": False},
        "template": "none",
        "font": {"size": 12, "color": page_colour("ink")},
        "title": {
            "text": title,
            "font": {"size": 16},
            "x": 0,
            "xref": "paper",
            "y": 0.96,
            "yanchor": "top",
            "subtitle": subtitle,
        },
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "itemsizing": "constant"},
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
    }


def _remarks(dots: Sequence[Dot | None], level: str, view: RooflineView) -> list[str]:
    n_without = sum(dot is None for dot in dots)
    without = f"{n_without} of {formatting.counted(len(dots), 'group')} of equal launches without a dot"
    return [f"{view.counted} {formatting.label(level)}", *([without] if n_without else [])]


def _reason(document: AnalysisDocument, levels: Sequence[str], level: str | None, view: RooflineView) -> Part:
    """Return the part of the layout that says why there is no chart at a level; `levels` are those with dots."""
    if not document["devices"]:
        reason = "There is no chart: no GPU is known."
    elif level is None or not levels:
        reason = view.no_chart
    else:
        others = ", ".join(map(formatting.label, levels))
        reason = f"There is no chart: at {formatting.label(level)} no kernel of this GPU has a dot. There are dots at {others}."
    place = {"x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "showarrow": False}
    hidden = {"visible": False}
    return {"xaxis": hidden, "yaxis": hidden, "annotations": [{"text": _escaped(reason), **place}]}


def _axes(drawn: Record, level: str) -> Part:
    """Return the axes and the labels of the roofs."""
    return {
        "xaxis": _axis(drawn["x"], level, drawn["x"]["titles"][level]),
        "yaxis": _axis(drawn["y"], level, drawn["y"]["title"]),
        "annotations": _labels(drawn, level),
    }


def _axis(axis: Record, level: str, title: str) -> Part:
    low, high = axis["ranges"][level]
    stride = math.ceil((high - low) / _MOST_DECADES)
    labels = zip(axis["ticks"]["values"], axis["ticks"]["coarse"], strict=True)
    return {
        "type": "log",
        "range": [low, high],
        "tickmode": "array",
        "tickvals": axis["ticks"]["values"],
        "ticktext": ["" if round(math.log10(value)) % stride else label for value, label in labels],
        "ticks": "",
        "title": {"text": title, "standoff": 8},
        "gridcolor": page_colour("grid"),
        "linecolor": page_colour("line"),
        "showline": True,
        "mirror": True,
        "zeroline": False,
    }


def _labels(drawn: Record, level: str) -> list[Part]:
    x, y = drawn["x"]["ranges"][level], drawn["y"]["ranges"][level]
    frame = Frame(
        x=tuple(x),
        y=tuple(y),
        x_px=(_WIDTH_PX - _MARGIN["l"] - _MARGIN["r"]) / (x[1] - x[0]),
        y_px=(_HEIGHT_PX - _MARGIN["t"] - _MARGIN["b"]) / (y[1] - y[0]),
    )
    roofs = [roof for roof in drawn["roofs"] if _is_shown(roof, drawn)]
    return [
        {
            "text": _escaped(label.roof["label"]),
            "x": label.x,
            "y": label.y,
            "xshift": label.x_shift_px,
            "yshift": label.y_shift_px,
            "textangle": -label.angle,
            "showarrow": False,
            "font": {
                "size": FONT_PX,
                "color": page_colour("ink") if label.roof["source"] == CeilingSource.COUNTERS else page_colour("soft"),
            },
        }
        for label in roof_labels(roofs, frame)
    ]


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


def group_dots(document: AnalysisDocument, *, device: int, view: RooflineView, level: str) -> list[Dot | None]:
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


def _longest_first(representative: KernelEntry, launches: Sequence[KernelEntry | None]) -> list[KernelEntry]:
    """Return the launches of a group, its representative first; only this one where the document lacks some of them."""
    known = [kernel for kernel in launches if kernel is not None]
    if len(known) < len(launches):
        return [representative]
    others = [kernel for kernel in known if kernel is not representative]
    return [representative, *sorted(others, key=lambda kernel: -(kernel["duration_ns"] or 0.0))]


def _dot(launches: Sequence[KernelEntry], view: RooflineView, level: str, size_px: float, of_group: str) -> Dot | None:
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


def _name(kernel: KernelEntry) -> str:
    return f"#{kernel['id']} {formatting.kernel_name(kernel, _MOST_NAME)}"


def _of_group(group: GroupEntry, total_ns: float | None) -> str:
    """Return "12 launches, 210 µs to 290 µs each (±8.3 %), 3.00 ms in all, 16.2 % of the run"."""
    duration_ns, n_launches = group["duration_ns"], group["n_launches"]
    time = formatting.duration(duration_ns) + (" in all" if n_launches > 1 else "")
    share = f"{formatting.share(duration_ns / total_ns)} of the run" if duration_ns is not None and total_ns else ""
    return ", ".join(filter(None, (formatting.launches(n_launches), extremes(group), time, share)))


def _bound(kernel: KernelEntry) -> str:
    """Return "memory-bound, DRAM"."""
    limiter = kernel["limiter"]
    return ", ".join([verdict_title(kernel["verdict"]), *([] if limiter is None else [formatting.label(limiter)])])


def verdict_title(name: str) -> str:
    """Return the title of a verdict."""
    return load_rules().verdicts[name].title


def _place(point: Record, spread: tuple[float, float] | None, view: RooflineView) -> Iterator[str]:
    """Yield where a point lies ("DRAM, FP32: 0.5 FLOP/B, 1 TFLOP/s, 80 % of its roof"), then the spread of rates if any."""
    where = ", ".join(formatting.label(name) for name in (point["level"], point.get("precision")) if name)
    roof = f", {formatting.share(point['roof_frac'])} of its roof" if point["roof_frac"] is not None else ""
    place = f"{where}: {view.write_intensity(point[view.intensity])}, {view.write_rate(point[view.rate])}{roof}"
    yield formatting.in_operations(place, point.get("precision"))
    if spread is not None:
        ends = f"{view.write_rate(spread[0])} to {view.write_rate(spread[1])} over its launches"
        yield formatting.in_operations(ends, point.get("precision"))


@dataclass(frozen=True, slots=True)
class Frame:
    """The visible part of a logarithmic chart.

    Attributes:
        x, y: ranges as exponents of ten.
        x_px, y_px: pixels per decade.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_px: float
    y_px: float


@dataclass(frozen=True, slots=True)
class RoofLabel:
    """A label and its place.

    Attributes:
        roof: the line, as in `roofs` of `figures.chart`.
        x, y: anchor point on the line, as exponents of ten.
        x_shift_px, y_shift_px: offset from there to the middle of the label, to the right and upwards.
        angle: of the line, in degrees anticlockwise.
    """

    roof: Record
    x: float
    y: float
    x_shift_px: float
    y_shift_px: float
    angle: float


def roof_labels(roofs: Sequence[Record], frame: Frame) -> list[RoofLabel]:
    """Return the labels that fit in view: those of slopes at their left ends, those of peaks at their right ends."""
    angle = math.atan2(frame.y_px, frame.x_px)
    slopes = [roof for roof in roofs if roof["kind"] == "bandwidth"]
    peaks = [roof for roof in roofs if roof["kind"] != "bandwidth"]
    return [*_along(slopes, frame, angle), *_along(peaks, frame, 0.0)]


def _along(roofs: Sequence[Record], frame: Frame, angle: float) -> list[RoofLabel]:
    """Return the labels of parallel roofs at an `angle` in radians; a label that would overlap another is moved along its line.

    Positions are in coordinates rotated with the lines, in pixels: `along` them from left to right, and `across` them upwards.
    """
    cos, sin = math.cos(angle), math.sin(angle)
    sign = 1.0 if angle else -1.0  # labels of slopes move to the right, those of peaks to the left
    heights = {id(roof): _height(roof, frame, angle) for roof in roofs}
    placed: list[tuple[float, float, float]] = []
    labels = []
    for roof in sorted(roofs, key=lambda roof: sign * heights[id(roof)]):
        across = heights[id(roof)]
        offset = -_SHIFT_PX if _is_below([other - across for other in heights.values()]) else _SHIFT_PX
        length = len(roof["label"]) * _CHARACTER_PX
        along = _end(across, frame, angle) + sign * (_FROM_END_PX + length / 2)
        for other_along, other_middle, other_length in placed:
            room = (length + other_length) / 2 + _GAP_PX
            if abs(other_middle - across - offset) < _LINE_PX and abs(other_along - along) < room:
                along = other_along + sign * room
        placed.append((along, across + offset, length))
        x, y = (cos * along - sin * across) / frame.x_px, (sin * along + cos * across) / frame.y_px
        if _is_in_view(x, y, roof, frame):
            labels.append(RoofLabel(roof, x, y, -sin * offset, cos * offset, math.degrees(angle)))
    return labels


def _height(roof: Record, frame: Frame, angle: float) -> float:
    x, y = math.log10(roof["x"][0]), math.log10(roof["y"][0])
    return y * frame.y_px * math.cos(angle) - x * frame.x_px * math.sin(angle)


def _end(across: float, frame: Frame, angle: float) -> float:
    """Return the position along a line of its visible end: the left end of a slope, the right end of a peak."""
    if not angle:
        return frame.x[1] * frame.x_px
    cos, sin = math.cos(angle), math.sin(angle)
    at_left, at_bottom = (frame.x[0] * frame.x_px + sin * across) / cos, (frame.y[0] * frame.y_px - cos * across) / sin
    return max(at_left, at_bottom)


def _is_below(distances_px: Sequence[float]) -> bool:
    """Return whether a label goes below its line: a line just above would cross it there, and none just below would."""

    def is_near(distance_px: float) -> bool:
        return _AS_ONE_PX < distance_px < _LINE_PX + 3

    return any(map(is_near, distances_px)) and not any(is_near(-distance_px) for distance_px in distances_px)


def _is_in_view(x: float, y: float, roof: Record, frame: Frame) -> bool:
    left, right = (math.log10(end) for end in roof["x"])
    return max(left, frame.x[0]) < x < min(right, frame.x[1]) and frame.y[0] < y < frame.y[1]
