"""Zooming the roofline chart in a real browser: how far, about what, and what is said of the dots that are left out."""

from __future__ import annotations

import math

import pytest

from tests.present.documents import document, kernel, three_kernels
from tests.present.drawn_chart import axes, drag, place, point_at

pytestmark = pytest.mark.browser


def press(browser, label, times=1):
    browser.run(
        f"for (let n = 0; n < {times}; n += 1)"
        f" [...document.querySelectorAll('#chart-buttons button')].find(b => b.textContent === '{label}').click()"
    )


def frame(browser):
    """Return left, right, top and bottom of the plane in pixels of the chart."""
    return browser.run(
        "(r => (([x, y, w, h]) => [x, x + w, y, y + h])(['x', 'y', 'width', 'height'].map(a => +r.getAttribute(a))))"
        "(document.querySelector('#chart clipPath rect'))"
    )


def exponents(browser):
    """Return the exponents of ten at the left, right, bottom and top of the plane."""
    left, right, top, bottom = frame(browser)

    def at(px, axis):
        (low, low_px), (high, high_px) = axis
        return math.log10(low) + math.log10(high / low) * (px - low_px) / (high_px - low_px)

    x, y = axes(browser)
    return [at(left, x), at(right, x), at(bottom, y), at(top, y)]


def said(browser):
    return browser.run("document.querySelector('#chart .gutter')?.textContent ?? ''")


def test_zooming_out_ends_a_decade_beyond_what_any_level_shows_at_first(visit):
    browser = visit(three_kernels())
    left, right, bottom, top = exponents(browser)
    browser.run("document.querySelector('input[value=l2]').click()")
    left_of_l2, *_ = exponents(browser)
    press(browser, "Zoom out", 40)
    assert left_of_l2 < left
    beyond = [left_of_l2 - 1, right + 1, bottom - 1, top + 1]
    assert exponents(browser) == pytest.approx(beyond, abs=0.01)
    assert said(browser) == ""


def test_buttons_zoom_about_the_selected_dot(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")), "#k10")
    browser.wait_for("document.querySelector('#chart .selected') !== null")
    before, width = place(browser, 0.5, 1e12), exponents(browser)
    press(browser, "Zoom in", 2)
    assert place(browser, 0.5, 1e12) == pytest.approx(before, abs=0.5)
    left, right, *_ = exponents(browser)
    assert right - left == pytest.approx(0.7**2 * (width[1] - width[0]), abs=0.01)  # KEY_ZOOM of pointer.js, twice


def test_keys_zoom_about_the_dot_that_is_told_of(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    browser.run("document.getElementById('chart').focus()")
    browser.press("ArrowRight")
    before = place(browser, 0.5, 1e12)
    browser.run("document.getElementById('chart').dispatchEvent(new KeyboardEvent('keydown', { key: '+' }))")
    assert place(browser, 0.5, 1e12) == pytest.approx(before, abs=0.5)
    assert browser.run("document.querySelector('.tip div').textContent") == "#10 alpha"
    assert not browser.run("document.querySelector('.tip').hidden")


def test_arrows_with_shift_move_the_view_as_far_as_zooming_out_goes(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    key = (
        "document.getElementById('chart').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{}', shiftKey: true }}))"
    )
    left, right, bottom, top = exponents(browser)
    browser.run(key.format("ArrowRight"))
    fifth = (right - left) / 5  # KEY_MOVE of pointer.js
    assert exponents(browser) == pytest.approx([left + fifth, right + fifth, bottom, top], abs=0.01)
    for _ in range(20):
        browser.run(key.format("ArrowUp"))
    assert exponents(browser) == pytest.approx([left + fifth, right + fifth, bottom + 1, top + 1], abs=0.01)


def test_a_selected_dot_that_is_out_of_view_comes_to_the_middle(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")), "#k10")
    browser.wait_for("document.querySelector('#chart .selected') !== null")
    drag(browser, place(browser, 1, 2e12), place(browser, 10, 2e13))
    assert said(browser) == "◀ 1 left: beyond this scale · 100 % of GPU time"
    press(browser, "Zoom in")
    left, right, top, bottom = frame(browser)
    assert place(browser, 0.5, 1e12) == pytest.approx(((left + right) / 2, (top + bottom) / 2), abs=1)
    assert said(browser) == ""


def test_it_says_how_many_dots_are_out_of_view(visit):
    browser = visit(three_kernels())  # two have a dot, at 0.5 FLOP/B and 1 Tflop/s
    assert said(browser) == ""
    drag(browser, place(browser, 1, 2e12), place(browser, 10, 2e13))
    assert said(browser) == "◀ 2 left: beyond this scale · 66.7 % of GPU time"  # 400 of 600 µs
    assert point_at(browser, *place(browser, 2, 4e12)) == []
    browser.run("document.querySelector('#chart .gutter').click()")
    assert said(browser) == ""
    assert point_at(browser, *place(browser, 0.5, 1e12)) != []


def test_the_last_change_of_the_zoom_is_undone(visit):
    browser = visit(three_kernels())
    first = exponents(browser)
    drag(browser, place(browser, 1, 2e12), place(browser, 10, 2e13))
    second = exponents(browser)
    press(browser, "Zoom in")
    press(browser, "Undo zoom")
    assert exponents(browser) == pytest.approx(second, abs=0.01)
    browser.run("document.getElementById('chart').dispatchEvent(new KeyboardEvent('keydown', { key: 'Backspace' }))")
    assert exponents(browser) == pytest.approx(first, abs=0.01)
    press(browser, "Undo zoom")  # nothing is left
    assert exponents(browser) == pytest.approx(first, abs=0.01)


def turn(browser, px, py, delta, modifiers=0):
    left, top = browser.run("(b => [b.left, b.top])(document.getElementById('chart').getBoundingClientRect())")
    at = {"x": left + px, "y": top + py, "modifiers": modifiers}
    browser.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=delta, **at)


CTRL = 2


def test_the_wheel_zooms_about_the_pointer_with_ctrl_and_scrolls_the_page_without(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")), height=700)
    browser.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    before, width, scrolled = place(browser, 0.5, 1e12), exponents(browser), browser.run("scrollY")
    turn(browser, *before, -100, CTRL)
    browser.wait_for("location.hash.includes('zoom=')", 10)
    assert place(browser, 0.5, 1e12) == pytest.approx(before, abs=1)
    assert exponents(browser)[1] - exponents(browser)[0] < width[1] - width[0]
    assert browser.run("scrollY") == scrolled
    zoomed = exponents(browser)
    turn(browser, *before, 100)
    browser.wait_for(f"scrollY > {scrolled}", 10)
    assert exponents(browser) == pytest.approx(zoomed, abs=0.01)


def test_two_fingers_zoom_and_keep_what_is_under_them(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    browser.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    (x, y), width = place(browser, 0.5, 1e12), exponents(browser)
    left, top = browser.run("(b => [b.left, b.top])(document.getElementById('chart').getBoundingClientRect())")

    def touch(kind, apart):
        points = [{"x": left + x + side * apart, "y": top + y, "id": number} for number, side in enumerate((-1, 1))]
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[] if kind == "touchEnd" else points)

    touch("touchStart", 30)
    for apart in (40, 50, 60):
        touch("touchMove", apart)
    touch("touchEnd", 60)
    assert place(browser, 0.5, 1e12) == pytest.approx((x, y), abs=1.5)
    now = exponents(browser)
    assert now[1] - now[0] == pytest.approx((width[1] - width[0]) / 2, rel=0.05)  # from 60 to 120 px apart


def test_a_drag_that_leaves_the_chart_zooms_to_the_edge_of_the_plane(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    _, right, bottom, _ = exponents(browser)
    width, height = browser.run("(e => [e.clientWidth, e.clientHeight])(document.getElementById('chart'))")
    drag(browser, place(browser, 0.1, 1e13), (width + 10, height + 10))
    assert exponents(browser) == pytest.approx([-1, right, bottom, 13], abs=0.01)


def test_the_points_of_the_selected_launch_stay_within_the_plane(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")), "#k10")
    browser.wait_for("document.querySelector('#chart .selected') !== null")
    drag(browser, place(browser, 0.3, 3e11), place(browser, 3, 3e12))  # DRAM at 0.5, L2 at 0.25
    assert browser.run("[...document.querySelectorAll('#chart .selected text')].map(t => t.textContent)") == ["DRAM"]
    rings = browser.run("[...document.querySelectorAll('#chart .selected circle')].map(c => +c.getAttribute('cx'))")
    assert rings == pytest.approx([place(browser, 0.5, 1e12)[0]], abs=0.5)
    clipped = browser.run("getComputedStyle(document.querySelector('#chart .selected polyline')).clipPath")
    assert clipped == 'url("#plane")'


def test_a_flat_roof_has_a_label_where_its_line_is(visit):
    browser = visit(document(kernel(id=10)))
    labels = "[...document.querySelectorAll('#chart .roof-label')].map(t => t.textContent.split(' ')[0])"
    assert "FP32" in browser.run(labels)
    # It starts at the ridge of L2, 10 Tflop/s over 5 TB/s = 2 FLOP/B.
    drag(browser, place(browser, 0.2, 2e12), place(browser, 1, 2e13))
    assert "FP32" not in browser.run(labels)
