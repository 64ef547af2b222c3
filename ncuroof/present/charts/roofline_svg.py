"""Draws a roofline with marks as a standalone SVG without script, from plain values.

The roofline of a study of an operation is drawn as such an SVG, and on an offline page with the study's table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ncuroof._version import __version__
from ncuroof.formatting import byte_rate, flop_rate, label, shortened, trimmed, work_units
from ncuroof.present.palette import page_colour, page_colours
from ncuroof.present.schemas.model import ModelDocument, ModelRowEntry
from ncuroof.present.sentences.model import WORDS, counted, explained, subject, table

_WIDTH, _HEIGHT = 900, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 24, 44, 64
_PAD_DECADES = 0.5
_MOST_TITLE = 100  # characters that fit above the chart; the full title is shown on hover
_FINE_TICKS_BELOW_DECADES = 3
_COLOURS = ("memory", "compute", "overhead", "balanced", "latency", "soft")
"""Colours of the palette, which is that of Okabe and Ito; machines also differ in shape."""

_SHAPES = ("circle", "square", "diamond", "triangle")

_MOST_TEXTS = 24
"""Most marks per machine that are labelled with the swept size; more labels would overlap."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point on the roofline, and the roofs above it.

    Attributes:
        intensity_flop_per_byte: x coordinate; positive.
        flop_per_s: y coordinate; positive.
        tooltip: text shown on hover.
        machine: whose roofs these are; sets colour and shape.
        precision: name of the flat roof.
        peak_flop_per_s: of the flat roof.
        bandwidth_bytes_per_s: of the slope.
        measured_flop_per_s: also draw a ring at this rate; None for none.
        text: label beside the mark; empty for none.
    """

    intensity_flop_per_byte: float
    flop_per_s: float
    tooltip: str
    machine: str
    precision: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float
    measured_flop_per_s: float | None = None
    text: str = ""

    @property
    def ridge_flop_per_byte(self) -> float:
        """Intensity at which the slope meets the flat roof."""
        return self.peak_flop_per_s / self.bandwidth_bytes_per_s


@dataclass(frozen=True, slots=True)
class _Plane:
    """Logarithmic axes; `x` and `y` are the exponents of ten at their ends."""

    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, intensity: float, flop_per_s: float) -> tuple[float, float]:
        """Return the position of a point in pixels."""
        across = (math.log10(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(flop_per_s) - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)


def _dark_style() -> str:
    """Return the CSS for the picture on a dark page; a standalone picture is on white."""
    dark = page_colours(is_dark=True)
    machines = (f".roof{n}{{stroke:{dark[name]}}}.mark{n}{{fill:{dark[name]}}}" for n, name in enumerate(_COLOURS))
    return (
        f".paper{{fill:{dark['paper']}}}.roofline text{{fill:{dark['ink']}}}.roofline .tick{{fill:{dark['soft']}}}"
        f".grid{{stroke:{dark['grid']}}}.axis{{stroke:{dark['ink']}}}{''.join(machines)}"
    )


def _style() -> str:
    light, dark = (
        ";".join(f"--{name}:{colours[name]}" for name in ("paper", "ink", "panel", "line"))
        for colours in (page_colours(), page_colours(is_dark=True))
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;color:var(--ink);"
        "background:var(--paper);overflow-wrap:anywhere}h1{font-size:1.25rem}svg{width:100%;height:auto}.scroll{overflow:auto}"
        "table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
        "th,td{padding:2px 10px;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line);font-weight:400}"
        "th{background:var(--panel)}.number{text-align:right}"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}{_dark_style()}}}"
    )


def roofline_svg(title: str, marks: Sequence[Mark]) -> str:
    """Return the SVG: a roof per machine and precision, and every mark; without marks, a sentence that says so."""
    name = escape(title)
    head = (
        f'<!-- ncuroof roofline -->\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{page_colour("ink")}" class="roofline" role="img">'
        f"<title>{name}</title>"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{page_colour("paper")}" class="paper"/>'
    )
    if not marks:
        return f'{head}<text x="{_LEFT}" y="{_TOP}">nothing here has both work and a roof</text></svg>\n'
    plane = _plane(marks)
    machines = list(dict.fromkeys(mark.machine for mark in marks))
    heading = (
        f'<text x="{_LEFT}" y="24" font-size="15" font-weight="600">{escape(shortened(title, _MOST_TITLE))}</text>'
    )
    unit = work_units(mark.precision for mark in marks).rpartition(" or ")[2]
    drawn = [*_axes(plane, unit), *_roofs(marks, plane, machines), *_drawn(marks, plane, machines)]
    return "\n".join([head, heading, *drawn, "</svg>\n"])


def _plane(marks: Sequence[Mark]) -> _Plane:
    """Return axes that include every mark and every ridge, with a margin."""
    places = [(mark.ridge_flop_per_byte, mark.peak_flop_per_s) for mark in marks]
    places += [(mark.intensity_flop_per_byte, mark.flop_per_s) for mark in marks]
    places += [(mark.intensity_flop_per_byte, mark.measured_flop_per_s) for mark in marks if mark.measured_flop_per_s]
    xs, ys = ([math.log10(each) for each in axis] for axis in zip(*places, strict=True))
    return _Plane((min(xs) - _PAD_DECADES, max(xs) + _PAD_DECADES), (min(ys) - _PAD_DECADES, max(ys) + _PAD_DECADES))


def _axes(plane: _Plane, unit: str) -> Iterator[str]:
    bottom, top, right, soft = _HEIGHT - _BOTTOM, _TOP, _WIDTH - _RIGHT, page_colour("soft")
    for value in _ticks(plane.x):
        x, _ = plane.at(value, 10.0 ** plane.y[0])
        yield f'<path d="M{x:.1f} {top}V{bottom}" stroke="{page_colour("grid")}" class="grid"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="{soft}" class="tick">{value:.15g}</text>'
    for value in _ticks(plane.y):
        _, y = plane.at(10.0 ** plane.x[0], value)
        text = trimmed(flop_rate(value).replace("FLOP", unit))
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="{page_colour("grid")}" class="grid"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{soft}" class="tick">{text}</text>'
    yield f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="{page_colour("ink")}" class="axis"/>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{_HEIGHT - 22}" text-anchor="middle">{unit} per byte of device memory</text>'


def _ticks(exponents: tuple[float, float]) -> list[float]:
    """Return the ticks between two exponents of ten: 1, 2 and 5 of each decade, only 1 on an axis of three decades or more."""
    low, high = exponents
    digits = (1, 2, 5) if high - low < _FINE_TICKS_BELOW_DECADES else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    values = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
    return [value for value in values if low <= math.log10(value) <= high]


def _roofs(marks: Sequence[Mark], plane: _Plane, machines: Sequence[str]) -> Iterator[str]:
    """Yield slope, flat roof and legend entry of each machine and precision."""
    roofs = {(mark.machine, mark.precision): mark for mark in marks}
    for place, ((machine, precision), mark) in enumerate(roofs.items()):
        number = machines.index(machine)
        colour, peak, bandwidth = _colour(number), mark.peak_flop_per_s, mark.bandwidth_bytes_per_s
        lowest = max(10.0 ** plane.x[0], 10.0 ** plane.y[0] / bandwidth)
        start = plane.at(lowest, lowest * bandwidth)
        ridge, end = plane.at(mark.ridge_flop_per_byte, peak), plane.at(10.0 ** plane.x[1], peak)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (start, ridge, end))
        roof_class = f"roof{number % len(_COLOURS)}"
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" class="{roof_class}"/>'
        words = (
            f"{machine}: {label(precision)} {flop_rate(peak, precision)}, DRAM {byte_rate(bandwidth)}, "
            f"ridge {mark.ridge_flop_per_byte:.4g}"
        )
        x, y = _WIDTH - _RIGHT - 4, _HEIGHT - _BOTTOM - 10 - 17 * place
        yield _shape(number, x - 4, y - 4)
        yield f'<text x="{x - 16}" y="{y}" text-anchor="end">{escape(words)}</text>'


def _drawn(marks: Sequence[Mark], plane: _Plane, machines: Sequence[str]) -> Iterator[str]:
    for mark in marks:
        x, y = plane.at(mark.intensity_flop_per_byte, mark.flop_per_s)
        yield f"<g><title>{escape(mark.tooltip)}</title>{_shape(machines.index(mark.machine), x, y)}</g>"
        if mark.measured_flop_per_s:
            ring_x, ring_y = plane.at(mark.intensity_flop_per_byte, mark.measured_flop_per_s)
            at = f'cx="{ring_x:.1f}" cy="{ring_y:.1f}" r="6"'
            ring = f'<circle {at} fill="none" stroke="{page_colour("ink")}" stroke-width="2" class="axis"/>'
            yield f"<g><title>measured {flop_rate(mark.measured_flop_per_s, mark.precision)}</title>{ring}</g>"
        if mark.text:
            yield f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle">{escape(mark.text)}</text>'


def _colour(machine: int) -> str:
    return page_colour(_COLOURS[machine % len(_COLOURS)])


def _shape(machine: int, x: float, y: float) -> str:
    """Return the mark of a machine, by its number; its class selects the colour of the dark style."""
    kind = _SHAPES[machine % len(_SHAPES)]
    paths = {
        "square": f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        "diamond": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "triangle": f"M{x:.1f} {y - 6:.1f}l6 10h-12z",
    }
    look = f'fill="{_colour(machine)}" class="mark{machine % len(_COLOURS)}"'
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {look}/>'
    return f'<path d="{paths[kind]}" {look}/>'


def to_model_svg(document: ModelDocument) -> str:
    """Return the roofline: a roof per machine and precision, a mark per row that has an intensity and an attainable rate."""
    rows = [row for row in document["rows"] if row["intensity_flop_per_byte"] and row["attainable_flop_per_s"]]
    swept = document["swept"]
    machines = {row["machine"]["id"] for row in rows}
    has_text = len(swept) == 1 and len(rows) <= _MOST_TEXTS * len(machines)
    first = rows[0]["machine"]["id"] if rows else None
    marks = [
        mark
        for row in rows
        if (mark := _mark(row, swept, has_text=has_text and row["machine"]["id"] == first)) is not None
    ]
    return roofline_svg(f"{subject(document)}, at best", marks)


def _mark(row: ModelRowEntry, swept: Sequence[str], *, has_text: bool) -> Mark | None:
    """Return the mark of a row; None where it has no place, or its roof is not known."""
    intensity, rate, precision = row["intensity_flop_per_byte"], row["attainable_flop_per_s"], row["precision"]
    peak, bandwidth = row["peak_flop_per_s"], row["bandwidth_bytes_per_s"]
    if not (intensity and rate and precision and peak and bandwidth):
        return None
    sizes = " ".join(f"{name}={row['sizes'][name]}" for name in (swept or row["sizes"]))
    return Mark(
        intensity_flop_per_byte=intensity,
        flop_per_s=rate,
        tooltip=f"{row['machine']['id']}, {row['dtype']}, {sizes}: {flop_rate(rate, precision)}",
        machine=row["machine"]["id"],
        precision=precision,
        peak_flop_per_s=peak,
        bandwidth_bytes_per_s=bandwidth,
        measured_flop_per_s=None if row["distance"] is None else row["distance"]["achieved_flop_per_s"],
        text=str(row["sizes"][swept[0]]) if has_text else "",
    )


def to_model_page(document: ModelDocument) -> str:
    """Return an offline page: the chart, the study as a table, and explanations."""
    name = escape(subject(document))
    notes = "".join(f"<p>{_lines(block)}</p>\n" for block in explained(document))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name} – ncuroof</title>\n'
        f'<meta name="generator" content="ncuroof {__version__}"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_style()}</style></head>\n"
        f"<body><h1>{name}</h1>\n<p>{_lines(counted(document))}</p>\n{to_model_svg(document)}{_table(document)}{notes}</body></html>\n"
    )


def _lines(lines: list[str]) -> str:
    return "<br>\n".join(escape(line.strip()) for line in lines)


def _table(document: ModelDocument) -> str:
    """Return the table of the study, with numbers right-aligned."""
    headings, *rows = table(document)
    kinds = ["" if heading in WORDS else ' class="number"' for heading in headings]

    def line(cells: list[str], tag: str) -> str:
        drawn = (f"<{tag}{kind}>{escape(cell)}</{tag[:2]}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(drawn)}</tr>\n"

    head, body = line(headings, 'th scope="col"'), "".join(line(cells, "td") for cells in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="The study as a table"><table>'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>\n"
    )
