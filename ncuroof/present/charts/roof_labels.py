"""Places roof labels on a chart of known size: along the lines, from their visible ends, without overlaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ncuroof.present.analysed import Record

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
