"""The roofline chart of a device as a plotly figure: as on the page, with a dot per group of equal launches.

plotly interprets some HTML in its texts, and TeX where MathJax is available, so every text of a report is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ncuroof import wording
from ncuroof.errors import MissingExtraError, UnknownNameError
from ncuroof.present.analysed import Record
from ncuroof.present.charts.figures import chart
from ncuroof.present.charts.group_dots import Dot, group_dots, verdict_title
from ncuroof.present.charts.roof_labels import FONT_PX, Frame, roof_labels
from ncuroof.present.charts.roofline_svg import GRID, INK, PAPER, SOFT
from ncuroof.present.charts.views import FLOP, VIEWS, View
from ncuroof.words import CeilingSource, MemoryLevel, Verdict

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Part = dict[str, Any]
"""A plotly trace or layout, or a part of either, as a dict."""

MARKS = {
    Verdict.MEMORY: ("#0072b2", "circle"),
    Verdict.COMPUTE: ("#d55e00", "square"),
    Verdict.BALANCED: ("#b9609a", "diamond"),
    Verdict.LATENCY: ("#bf7f00", "triangle-up"),
    Verdict.OVERHEAD: ("#009e73", "triangle-down"),
    Verdict.UNKNOWN: ("#7d868f", "x"),
}
"""Colour (of Okabe and Ito's palette) and symbol, as on the page."""

_LINE = "#d8dde2"
_WIDTH_PX, _HEIGHT_PX = 960, 600
_MARGIN = {"l": 90, "r": 20, "t": 105, "b": 55}
_MOST_TITLE = 100
_MOST_DECADES = 9  # with labels on an axis
_LAST = 2000  # legend rank after all others, which have plotly's default 1000
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def roofline_figure(document: Record, *, device: int = 0, view: str = FLOP.name, level: str | None = None) -> Figure:
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
    return wording.printable(words).translate(_ESCAPES)


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
            "line": {"color": INK, "width": 1.3} if is_counted else {"color": SOFT, "width": 1, "dash": "dash"},
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
    for verdict, (colour, symbol) in MARKS.items():
        of_verdict = [dot for dot in dots if dot.verdict == verdict]
        if not of_verdict:
            continue
        line = {"color": PAPER, "width": 1}
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


def _layout(document: Record, device: int, view: View, *remarks: str) -> Part:
    """Return the layout without axes and roof labels."""
    names = [wording.gpu_name(each) for each in document["devices"][device : device + 1]]
    if any(source["simulated"] for source in document["sources"]):
        remarks = ("simulated: written by ncuroof, not recorded on a GPU", *remarks)
    subtitle = {"text": _escaped(" · ".join(remarks)), "font": {"size": 12, "color": SOFT}}
    title = _escaped(wording.shortened(": ".join([view.label, f"GPU {device}", *names]), _MOST_TITLE))
    return {
        "width": _WIDTH_PX,
        "height": _HEIGHT_PX,
        "margin": {**_MARGIN, "autoexpand": False},
        "template": "none",
        "font": {"size": 12, "color": INK},
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


def _remarks(dots: Sequence[Dot | None], level: str, view: View) -> list[str]:
    n_without = sum(dot is None for dot in dots)
    without = f"{n_without} of {wording.counted(len(dots), 'group')} of equal launches without a dot"
    return [f"{view.counted} {wording.label(level)}", *([without] if n_without else [])]


def _reason(document: Record, levels: Sequence[str], level: str | None, view: View) -> Part:
    """Return the part of the layout that says why there is no chart at a level; `levels` are those with dots."""
    if not document["devices"]:
        reason = "There is no chart: no GPU is known."
    elif level is None or not levels:
        reason = view.no_chart
    else:
        others = ", ".join(map(wording.label, levels))
        reason = (
            f"There is no chart: at {wording.label(level)} no kernel of this GPU has a dot. There are dots at {others}."
        )
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
        "gridcolor": GRID,
        "linecolor": _LINE,
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
            "font": {"size": FONT_PX, "color": INK if label.roof["source"] == CeilingSource.COUNTERS else SOFT},
        }
        for label in roof_labels(roofs, frame)
    ]
