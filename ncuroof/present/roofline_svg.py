"""A roofline of marks as a picture of its own: SVG without script, drawn from plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ncuroof.present.format import byte_rate, flop_rate, label, scaled, trimmed

_WIDTH, _HEIGHT = 900, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 86, 24, 44, 64
_PAD_DECADES = 0.5
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b9609a", "#d99000", "#59636e")
"""Okabe and Ito's palette, as on the page; each machine has a shape of its own besides."""

_SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the roofline, and the roofs above it.

    Attributes:
        intensity_flop_per_byte: to the right; positive.
        flop_per_s: upwards; positive.
        told: what it is, shown where it is pointed at.
        machine: whose roofs; gives colour and shape.
        precision: name of the flat roof.
        peak_flop_per_s: of the flat roof.
        bandwidth_bytes_per_s: of the slope.
        measured_flop_per_s: a ring at this rate besides, or None.
        text: written beside it, or nothing.
    """

    intensity_flop_per_byte: float
    flop_per_s: float
    told: str
    machine: str
    precision: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float
    measured_flop_per_s: float | None = None
    text: str = ""

    @property
    def ridge_flop_per_byte(self) -> float:
        """Where slope and flat roof meet."""
        return self.peak_flop_per_s / self.bandwidth_bytes_per_s


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


def roofline_svg(title: str, marks: Sequence[Mark]) -> str:
    """Return the picture: a roof per machine and precision, and every mark; without marks, words that say so."""
    name = escape(title)
    head = (
        f'<!-- ncuroof roofline -->\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img"><title>{name}</title>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    )
    if not marks:
        return f'{head}<text x="{_LEFT}" y="{_TOP}">nothing here has both work and a roof</text></svg>\n'
    plane = _plane(marks)
    machines = list(dict.fromkeys(mark.machine for mark in marks))
    heading = f'<text x="{_LEFT}" y="24" font-size="15" font-weight="600">{name}</text>'
    drawn = [*_axes(plane), *_roofs(marks, plane, machines), *_drawn(marks, plane, machines)]
    return "\n".join([head, heading, *drawn, "</svg>\n"])


def _plane(marks: Sequence[Mark]) -> _Plane:
    """Return axes that hold every mark and every ridge, with room around them."""
    places = [(mark.ridge_flop_per_byte, mark.peak_flop_per_s) for mark in marks]
    places += [(mark.intensity_flop_per_byte, mark.flop_per_s) for mark in marks]
    places += [(mark.intensity_flop_per_byte, mark.measured_flop_per_s) for mark in marks if mark.measured_flop_per_s]
    xs, ys = ([math.log10(each) for each in axis] for axis in zip(*places, strict=True))
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


def _roofs(marks: Sequence[Mark], plane: _Plane, machines: Sequence[str]) -> Iterator[str]:
    """Yield slope and flat roof of each machine and precision, and a line of the legend."""
    roofs = {(mark.machine, mark.precision): mark for mark in marks}
    for place, ((machine, precision), mark) in enumerate(roofs.items()):
        colour, peak, bandwidth = _colour(machine, machines), mark.peak_flop_per_s, mark.bandwidth_bytes_per_s
        lowest = max(10.0 ** plane.x[0], 10.0 ** plane.y[0] / bandwidth)
        start = plane.at(lowest, lowest * bandwidth)
        ridge, end = plane.at(mark.ridge_flop_per_byte, peak), plane.at(10.0 ** plane.x[1], peak)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (start, ridge, end))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        words = (
            f"{machine}: {label(precision)} {flop_rate(peak)}, DRAM {byte_rate(bandwidth)}, "
            f"ridge {mark.ridge_flop_per_byte:.4g}"
        )
        x, y = _WIDTH - _RIGHT - 4, _HEIGHT - _BOTTOM - 10 - 17 * place
        yield f'<text x="{x}" y="{y}" text-anchor="end" fill="{colour}">{escape(words)}</text>'


def _drawn(marks: Sequence[Mark], plane: _Plane, machines: Sequence[str]) -> Iterator[str]:
    for mark in marks:
        x, y = plane.at(mark.intensity_flop_per_byte, mark.flop_per_s)
        shape = _SHAPES[machines.index(mark.machine) % len(_SHAPES)]
        yield f"<g><title>{escape(mark.told)}</title>{_shape(shape, x, y, _colour(mark.machine, machines))}</g>"
        if mark.measured_flop_per_s:
            ring_x, ring_y = plane.at(mark.intensity_flop_per_byte, mark.measured_flop_per_s)
            ring = f'<circle cx="{ring_x:.1f}" cy="{ring_y:.1f}" r="6" fill="none" stroke="#1a1e22" stroke-width="2"/>'
            yield f"<g><title>measured {flop_rate(mark.measured_flop_per_s)}</title>{ring}</g>"
        if mark.text:
            yield f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle" fill="#1a1e22">{escape(mark.text)}</text>'


def _colour(machine: str, machines: Sequence[str]) -> str:
    return _COLOURS[machines.index(machine) % len(_COLOURS)]


def _shape(kind: str, x: float, y: float, colour: str) -> str:
    paths = {
        "square": f"M{x - 4.5:.1f} {y - 4.5:.1f}h9v9h-9z",
        "diamond": f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z",
        "triangle": f"M{x:.1f} {y - 6:.1f}l6 10h-12z",
    }
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
    return f'<path d="{paths[kind]}" fill="{colour}"/>'
