from __future__ import annotations

import pytest

from ncuroof.present.charts.plotly_figure import Frame, roof_labels

FRAME = Frame(x=(0.0, 3.0), y=(12.0, 15.0), x_px=100.0, y_px=100.0)
ROOM_PX = 14 + 10 * 6.3 / 2
"""From the end of a line to the middle of a label of ten characters."""


def slope(exponent, label="0123456789", right=1e3):
    bandwidth = 10.0**exponent
    return {"kind": "bandwidth", "label": label, "x": [1e-6, right], "y": [1e-6 * bandwidth, right * bandwidth]}


def peak(exponent, label="0123456789"):
    return {"kind": "compute", "label": label, "x": [1e1, 1e9], "y": [10.0**exponent] * 2}


def test_a_slope_is_labelled_above_its_left_end():
    (label,) = roof_labels([slope(12)], FRAME)
    # Square decades: the line rises by 45°, and a pixel along it is 0.01 / √2 of a decade.
    assert (label.x, label.y) == (pytest.approx(ROOM_PX / 141.42, rel=1e-4), pytest.approx(12 + label.x))
    assert (label.x_shift_px, label.y_shift_px, label.angle) == pytest.approx((-7.071, 7.071, 45), rel=1e-3)


def test_a_slope_that_enters_from_below_is_labelled_there():
    (label,) = roof_labels([slope(11)], FRAME)
    assert (label.x, label.y) == (pytest.approx(1 + ROOM_PX / 141.42, rel=1e-4), pytest.approx(11 + label.x))


def test_a_peak_is_labelled_above_its_right_end():
    (label,) = roof_labels([peak(14)], FRAME)
    assert (label.x, label.y) == (pytest.approx(3 - ROOM_PX / 100), pytest.approx(14))
    assert (label.x_shift_px, label.y_shift_px, label.angle) == (0, 10, 0)


def test_labels_keep_clear_of_lines_and_of_each_other():
    # Lines 10 px apart: the lowest is labelled below, the middle one above, left of the highest one's label.
    placed = {
        label.roof["label"]: label
        for label in roof_labels([peak(14, "low"), peak(14.1, "mid"), peak(14.2, "top")], FRAME)
    }
    assert {name: label.y_shift_px for name, label in placed.items()} == {"low": -10, "mid": 10, "top": 10}
    assert placed["low"].x == pytest.approx(placed["top"].x)
    # Labels of three characters are 18.9 px long, and 14 px apart.
    assert placed["top"].x - placed["mid"].x == pytest.approx((18.9 + 14) / 100)


def test_labels_of_slopes_that_are_as_good_as_one_follow_each_other():
    first, second = roof_labels([slope(12), slope(12.01)], FRAME)
    assert (first.y_shift_px > 0, second.y_shift_px > 0) == (True, True)
    assert second.x - first.x == pytest.approx((63 + 14) / 141.42, abs=0.02)


def test_lines_out_of_view_have_no_label():
    assert roof_labels([peak(16), peak(11), slope(16), slope(8), slope(12, right=1.5)], FRAME) == []
