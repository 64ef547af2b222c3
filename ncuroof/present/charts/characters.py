"""The roofline as characters, for terminals: roofs as lines, groups of equal launches as the letters of their verdicts.

It is the page's chart at its first level, on the same axes, and says the same without colour. Every character of the chart is
ASCII.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from ncuroof import formatting
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.charts.figures import chart
from ncuroof.present.charts.plotly_figure import Dot, group_dots
from ncuroof.present.charts.views import VIEWS, RooflineView
from ncuroof.present.documents.analysis import document
from ncuroof.present.palette import verdict_colours
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.texts.layout import WIDTH, filled, fitting, is_width_set, result_console

LETTER_BY_VERDICT = {
    "memory": "M", "compute": "C", "balanced": "B", "latency": "L", "overhead": "O", "unknown": "?"
}  # fmt: skip
"""Letter of a verdict in the chart."""

MOST_WIDTH = 200
_N_ROWS = 13
"""With title, axis and legend it leaves two of the window's 24 lines, for the page's path and the prompt."""
_LEAST_PLOT_WIDTH = 20
_LEAST_TICK_CELLS = 7
"""Least distance of ticks of the horizontal axis."""

_SLOPE, _SLOPE_OF_DOTS, _PEAK = ".", "/", "-"


@dataclass(slots=True)
class _Grid:
    """Cells to draw into, on logarithmic axes; the row 0 is at the top.

    Attributes:
        x, y: exponents of ten at the two ends of each axis.
        width: of the grid, in cells.
        cells: a character and its style by row and column.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: int
    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)

    def column(self, exponent: float) -> int:
        return round((exponent - self.x[0]) / (self.x[1] - self.x[0]) * (self.width - 1))

    def row(self, exponent: float) -> int:
        return round((self.y[1] - exponent) / (self.y[1] - self.y[0]) * (_N_ROWS - 1))

    def put(self, column: int, row: int, mark: str, style: str) -> None:
        if 0 <= column < self.width and 0 <= row < _N_ROWS:
            self.cells[row, column] = (mark, style)

    def line(self, row: int) -> Text:
        """Return a row as text."""
        found = Text(no_wrap=True)
        for column in range(self.width):
            found.append(*self.cells.get((row, column), (" ", "")))
        return found


def print_chart(analysed: Analysed, *, color: bool | None = None) -> None:
    """Print the roofline of each GPU to standard output, as wide as the terminal, 80 columns where there is none.

    Args:
        analysed: an analysis.
        color: False for plain text; None lets the terminal decide.
    """
    console = result_console(color=color)
    console.width = console.width if console.is_terminal or is_width_set() else WIDTH
    for line in characters(document(analysed), console.width):
        console.print(line, no_wrap=True, crop=False)


def characters(run: AnalysisDocument, width: int) -> Iterator[Text]:
    """Yield the lines of the roofline of each GPU of a run, or of each why there is none.

    Args:
        run: an analysis, `ncuroof.analysis/1`.
        width: of the lines, in cells.
    """
    for number, device in enumerate(run["devices"]):
        yield from (Text(),) if number else ()
        yield from _of_device(run, number, str(device["name"]), min(width, MOST_WIDTH))


def _of_device(run: AnalysisDocument, device: int, name: str, width: int) -> Iterator[Text]:
    kernels = [kernel for kernel in run["kernels"] if kernel["device"] == device and not kernel["failed"]]
    for view in VIEWS:
        drawn = chart([each for each in run[view.ceilings] if each["device"] == device], kernels, view)
        if drawn["levels"]:
            dots = group_dots(run, device=device, view=view, level=drawn["levels"][0])
            yield from _chart(drawn, dots, view, name, width)
            return
    yield from _prose(f"{formatting.printable(name)}: {VIEWS[0].no_chart[0].lower()}{VIEWS[0].no_chart[1:]}", width)


def _chart(drawn: Record, dots: Sequence[Dot | None], view: RooflineView, name: str, width: int) -> Iterator[Text]:
    level = drawn["levels"][0]
    rates = _labels(drawn["y"], level)
    margin = max(map(len, rates.values()), default=0) + 1
    grid = _Grid(
        tuple(drawn["x"]["ranges"][level]),
        tuple(drawn["y"]["ranges"][level]),
        max(width - margin - 1, _LEAST_PLOT_WIDTH),
    )
    roofs = [roof for roof in drawn["roofs"] if roof["standsIn"] or [roof["source"], True] in drawn["sources"]]
    for roof in sorted(roofs, key=lambda roof: level in roof["names"]):
        _draw(grid, roof, level)
    shown = [dot for dot in dots if dot is not None]
    for dot in sorted(shown, key=lambda dot: dot.size_px):  # the largest last, over the others
        style = f"bold {verdict_colours()[dot.verdict]}"
        grid.put(grid.column(math.log10(dot.x)), grid.row(math.log10(dot.y)), LETTER_BY_VERDICT[dot.verdict], style)
    title = f"{formatting.printable(name)}: {view.label}, {view.counted.lower()} {formatting.label(level)}"
    yield from _prose(title, width)
    rate_by_row = {grid.row(exponent): label for exponent, label in rates.items()}
    for row in range(_N_ROWS):
        yield Text.assemble((f"{rate_by_row.get(row, ''):>{margin - 1}} |", "dim"), grid.line(row))
    yield from (Text(line, style="dim") for line in _horizontal(grid, _labels(drawn["x"], level), margin))
    yield Text(f"{drawn['x']['titles'][level]:>{margin + 1 + grid.width}}"[-width:], style="dim")
    yield from _legend(roofs, dots, level, width)


def _labels(axis: Record, level: str) -> dict[float, str]:
    """Return the labels of the decades in view, by their exponent."""
    low, high = axis["ranges"][level]
    ticks = axis["ticks"]
    found = {math.log10(at): label for at, label in zip(ticks["values"], ticks["coarse"], strict=True) if label}
    return {exponent: label for exponent, label in found.items() if low <= exponent <= high}


def _draw(grid: _Grid, roof: Record, level: str) -> None:
    """Draw a roof into the columns between its ends."""
    is_slope = roof["kind"] == "bandwidth"
    mark = (_SLOPE_OF_DOTS if level in roof["names"] else _SLOPE) if is_slope else _PEAK
    left, right = (grid.column(math.log10(each)) for each in roof["x"])
    for column in range(max(left, 0), min(right, grid.width - 1) + 1):
        exponent = grid.x[0] + (grid.x[1] - grid.x[0]) * column / (grid.width - 1)
        rate = math.log10(roof["per_s"]) + (exponent if is_slope else 0.0)
        grid.put(column, grid.row(rate), mark, "" if level in roof["names"] or not is_slope else "dim")


def _horizontal(grid: _Grid, labels: dict[float, str], margin: int) -> Iterator[str]:
    """Yield the horizontal axis and the labels of its ticks, as many as have room."""
    axis, below, free = ["-"] * grid.width, [" "] * grid.width, 0
    for exponent, label in labels.items():
        column = grid.column(exponent)
        start = min(max(column - len(label) // 2, 0), grid.width - len(label))
        if start < free:
            continue
        axis[column] = "+"
        below[start : start + len(label)] = label
        free = start + max(len(label) + 1, _LEAST_TICK_CELLS)
    yield f"{'':>{margin}}+{''.join(axis)}"
    yield f"{'':>{margin}} {''.join(below)}".rstrip()


def _legend(roofs: Sequence[Record], dots: Sequence[Dot | None], level: str, width: int) -> Iterator[Text]:
    """Yield what letters and lines mean, and how many groups have no letter."""
    present = dict.fromkeys(dot.verdict for dot in dots if dot is not None)
    letters = [f"{letter} {verdict}" for verdict, letter in LETTER_BY_VERDICT.items() if verdict in present]
    n_without = sum(dot is None for dot in dots)
    without = f"; {n_without} of {len(dots)} have no place here" if n_without else ""
    yield from _prose(f"{', '.join(letters)}: a letter per group of equal launches, the longest on top{without}", width)
    slopes = sorted((roof for roof in roofs if roof["kind"] == "bandwidth"), key=lambda roof: -roof["per_s"])
    peaks = sorted((roof for roof in roofs if roof["kind"] == "compute"), key=lambda roof: -roof["per_s"])
    said = [f"{_SLOPE_OF_DOTS if level in roof['names'] else _SLOPE} {roof['label']}" for roof in slopes]
    said += [f"{_PEAK} {roof['label']}" for roof in peaks]
    yield from _prose(f"Roofs: {', '.join(said)}", width)


def _prose(text: str, width: int) -> Iterator[Text]:
    yield from (Text(line) for line in filled("", fitting(text.split(), width), width))
