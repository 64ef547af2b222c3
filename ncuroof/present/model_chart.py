"""The roofline of a study as a picture of its own (SVG), and as an offline page with its table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ncuroof._version import __version__
from ncuroof.present.format import byte_rate, flop_rate, label, scaled, trimmed
from ncuroof.present.model_text import to_model_text

Document = Mapping[str, Any]
Row = Mapping[str, Any]

_WIDTH, _HEIGHT = 900, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 24, 44, 64
_PAD_DECADES = 0.5
_MOST_LABELS = 24
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b9609a", "#d99000", "#59636e")
"""Okabe and Ito's palette, as on the page; each machine has a mark of its own besides."""

_MARKS = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class _Plane:
    """Logarithmic axes: exponents of ten at the edges."""

    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, intensity: float, flop_per_s: float) -> tuple[float, float]:
        """Return the place of a point in pixels."""
        across = (math.log10(intensity) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(flop_per_s) - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)


def to_model_svg(document: Document) -> str:
    """Return the roofline: a roof per machine and precision, a mark per row; rows without a place in it are left out."""
    rows = [row for row in document["rows"] if row["intensity_flop_per_byte"] and row["attainable_flop_per_s"]]
    name = escape(document["operation"]["name"])
    head = (
        f'<!-- ncuroof model -->\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img"><title>Roofline of {name}</title>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    )
    if not rows:
        return f'{head}<text x="{_LEFT}" y="{_TOP}">nothing here has both work and a roof</text></svg>\n'
    plane = _plane(rows)
    title = f'<text x="{_LEFT}" y="24" font-size="15" font-weight="600">{name}, at best</text>'
    return "\n".join([head, title, *_axes(plane), *_roofs(rows, plane), *_dots(rows, plane, document), "</svg>\n"])


def to_model_page(document: Document) -> str:
    """Return an offline page: the picture, and the study as text below it."""
    name = escape(document["operation"]["name"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>ncuroof: model of {name}</title>\n'
        f'<meta name="generator" content="ncuroof {__version__}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;color:#1a1e22;"
        "background:#fff}svg{width:100%;height:auto}pre{overflow:auto;font-size:13px}</style></head>\n"
        f"<body><h1>Model of {name}</h1>\n{to_model_svg(document)}<pre>{escape(to_model_text(document))}</pre></body></html>\n"
    )


def _plane(rows: Sequence[Row]) -> _Plane:
    """Return axes that hold every mark and every ridge, with room around them."""
    ridges = [(row["ridge_flop_per_byte"], row["peak_flop_per_s"]) for row in rows]
    places = [(row["intensity_flop_per_byte"], row["attainable_flop_per_s"]) for row in rows]
    places += [
        (row["intensity_flop_per_byte"], row["distance"]["achieved_flop_per_s"])
        for row in rows
        if row["distance"] is not None
    ]
    xs = [math.log10(x) for x, _ in (*ridges, *places)]
    ys = [math.log10(y) for _, y in (*ridges, *places)]
    return _Plane((min(xs) - _PAD_DECADES, max(xs) + _PAD_DECADES), (min(ys) - _PAD_DECADES, max(ys) + _PAD_DECADES))


def _axes(plane: _Plane) -> Iterator[str]:
    bottom, top, right = _HEIGHT - _BOTTOM, _TOP, _WIDTH - _RIGHT
    for exponent in range(math.ceil(plane.x[0]), math.floor(plane.x[1]) + 1):
        x, _ = plane.at(10.0**exponent, 10.0 ** plane.y[0])
        yield f'<path d="M{x:.1f} {top}V{bottom}" stroke="#eceff1"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#59636e">{10.0**exponent:.15g}</text>'
    for exponent in range(math.ceil(plane.y[0]), math.floor(plane.y[1]) + 1):
        _, y = plane.at(10.0 ** plane.x[0], 10.0**exponent)
        text = trimmed(scaled(10.0**exponent))
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#eceff1"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#59636e">{text}</text>'
    yield f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="#1a1e22"/>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{_HEIGHT - 22}" text-anchor="middle">FLOP per byte of device memory</text>'
    yield f'<text transform="translate(20 {(top + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">FLOP/s</text>'


def _roofs(rows: Sequence[Row], plane: _Plane) -> Iterator[str]:
    """Yield slope and flat of each machine and precision, and a line of the legend."""
    drawn = {(row["machine"]["id"], row["precision"]): row for row in rows}
    for place, ((machine, precision), row) in enumerate(drawn.items()):
        colour, peak = _colour(machine, rows), row["peak_flop_per_s"]
        lowest = max(10.0 ** plane.x[0], 10.0 ** plane.y[0] / row["bandwidth_bytes_per_s"])
        start = plane.at(lowest, lowest * row["bandwidth_bytes_per_s"])
        ridge, end = plane.at(row["ridge_flop_per_byte"], peak), plane.at(10.0 ** plane.x[1], peak)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (start, ridge, end))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        words = (
            f"{machine}: {label(precision)} {flop_rate(peak)}, DRAM {byte_rate(row['bandwidth_bytes_per_s'])}, "
            f"ridge {row['ridge_flop_per_byte']:.4g}"
        )
        x, y = _WIDTH - _RIGHT - 4, _HEIGHT - _BOTTOM - 10 - 17 * place
        yield f'<text x="{x}" y="{y}" text-anchor="end" fill="{colour}">{escape(words)}</text>'


def _dots(rows: Sequence[Row], plane: _Plane, document: Document) -> Iterator[str]:
    """Yield a mark per row with what it is; labels where one size is swept and they have room."""
    swept = document["swept"]
    machines = list(dict.fromkeys(row["machine"]["id"] for row in rows))
    for row in rows:
        machine = row["machine"]["id"]
        x, y = plane.at(row["intensity_flop_per_byte"], row["attainable_flop_per_s"])
        sizes = " ".join(f"{name}={row['sizes'][name]}" for name in (swept or row["sizes"]))
        told = f"{machine}, {row['dtype']}, {sizes}: {flop_rate(row['attainable_flop_per_s'])}"
        mark = _mark(_MARKS[machines.index(machine) % len(_MARKS)], x, y, _colour(machine, rows))
        yield f"<g><title>{escape(told)}</title>{mark}</g>"
        if row["distance"] is not None:
            x, y = plane.at(row["intensity_flop_per_byte"], row["distance"]["achieved_flop_per_s"])
            words = f"measured {flop_rate(row['distance']['achieved_flop_per_s'])}"
            ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none" stroke="#1a1e22" stroke-width="2"/>'
            yield f"<g><title>{escape(words)}</title>{ring}</g>"
        if len(swept) == 1 and len(rows) <= _MOST_LABELS * len(machines) and machine == machines[0]:
            yield f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle" fill="#1a1e22">{row["sizes"][swept[0]]}</text>'


def _colour(machine: str, rows: Sequence[Row]) -> str:
    machines = list(dict.fromkeys(row["machine"]["id"] for row in rows))
    return _COLOURS[machines.index(machine) % len(_COLOURS)]


def _mark(kind: str, x: float, y: float, colour: str) -> str:
    paths = {
        "square": f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        "diamond": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "triangle": f"M{x:.1f} {y - 6:.1f}l6 10h-12z",
    }
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
    return f'<path d="{paths[kind]}" fill="{colour}"/>'
