"""Dots that lie together or beyond the edges in a real browser: each launch can be reached, by pointer, key and touch."""

from __future__ import annotations

import pytest

from tests.present.documents import document, kernel
from tests.present.drawn_chart import place, point_at

pytestmark = [pytest.mark.browser, pytest.mark.long]

ENTRIES = "[...document.querySelectorAll('.chooser:not([hidden]) button')].map(b => b.textContent)"
TITLE = "document.getElementById('detail-title').textContent"


def at(number, intensity, rate, **changes):
    """Return a launch whose dot lies there."""
    point = kernel()["points"][0] | {"intensity_flop_per_byte": intensity, "flop_per_s": rate}
    return kernel(id=number, short_name=f"k{number}", points=[point], **changes)


def stack():
    """Return three launches at one place, below them a larger one that they nearly cover, and one by itself."""
    together = [at(number, 0.5, 1e12, duration_ns=1e5 + number) for number in range(3)]
    return document(*together, at(3, 0.505, 1e12, duration_ns=2e5), at(4, 2.0, 2e12))


def tap(browser, px, py):
    left, top = browser.run("(b => [b.left, b.top])(document.getElementById('chart').getBoundingClientRect())")
    at_point = {"x": left + px, "y": top + py}
    browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[at_point])
    browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def test_a_stack_says_how_many_and_lists_them_for_a_click(visit):
    browser = visit(stack())
    counts = browser.run("[...document.querySelectorAll('#chart .count')].map(t => t.textContent)")
    assert len(counts) == 1
    assert int(counts[0].removeprefix("×")) >= 3
    told = point_at(browser, *place(browser, 0.5, 1e12))
    assert told[-1] == "3 more kernels are here: click for a list"
    point_at(browser, *place(browser, 0.5, 1e12), click=True)
    entries = browser.run(ENTRIES)
    assert [entry.split()[2] for entry in entries[1:]] == ["k3", "k2", "k1", "k0"]  # the longest first, below "Zoom in"
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        browser.press(key)
    browser.wait_for(f"{TITLE} === '#2 k2'")
    assert browser.run(ENTRIES) == []
    assert browser.complaints == []


def test_escape_closes_the_list_and_leads_back_to_the_chart_without_closing_the_detail(visit):
    browser = visit(stack(), "#k4")
    point_at(browser, *place(browser, 0.5, 1e12), click=True)
    browser.press("Escape")
    assert browser.run(ENTRIES) == []
    assert browser.run("document.activeElement.id") == "chart"
    assert browser.run(TITLE) == "#4 k4"


def test_every_launch_of_a_crowd_is_under_a_click_on_its_middle(visit):
    crowd = [
        at(n, 0.4 + 0.01 * (n % 7), 1e12 * (1 + 0.02 * (n // 7)), duration_ns=1e5 + 3e3 * (n % 5)) for n in range(40)
    ]
    browser = visit(document(*crowd))
    for number in (0, 8, 17, 39):
        launch = crowd[number]["points"][0]
        browser.run("document.getElementById('detail').hidden || history.back(); 1")
        point_at(browser, *place(browser, launch["intensity_flop_per_byte"], launch["flop_per_s"]), click=True)
        names = [entry.split()[2] for entry in browser.run(ENTRIES)]
        assert f"k{number}" in names or browser.run(TITLE) == f"#{number} k{number}"
        browser.press("Escape")


def test_a_tap_asks_before_it_opens_and_a_finger_reaches_a_small_dot(visit):
    browser = visit(document(at(0, 0.5, 1e12), at(1, 5, 3e12, duration_ns=10.0)), width=390, height=844)
    browser.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    px, py = place(browser, 5, 3e12)
    tap(browser, px + 9, py + 9)
    browser.wait_for(f"{ENTRIES}.length === 1")
    assert browser.run("document.getElementById('detail').hidden")
    assert browser.run("document.querySelector('.chooser button').offsetHeight") >= 24
    browser.run("document.querySelector('.chooser button').click()")
    browser.wait_for(f"{TITLE} === '#1 k1'")


def test_more_than_five_hundred_dots_are_cells_until_few_are_in_view(visit):
    many = [at(n, 10 ** (-1 + (n % 40) / 40), 10 ** (10.5 + (n // 40) / 30), duration_ns=1e4 + n) for n in range(800)]
    browser = visit(document(*many))
    pixel = "[...document.querySelector('#chart canvas').getContext('2d').getImageData({}, {}, 1, 1).data]"
    px, py = place(browser, 0.1, 10**10.5)
    assert browser.run(pixel.format(round(px), round(py)))[3] > 0
    point_at(browser, px + 6, py - 6, click=True)  # of a cell of 12 px, wherever it begins
    entries = browser.run(ENTRIES)
    assert entries[0].startswith("Zoom in on these ")
    browser.run("document.querySelector('.chooser button').click()")
    browser.wait_for("location.hash.includes('zoom=')")
    assert "beyond this scale" in browser.run("document.querySelector('#chart .gutter').textContent")
    browser.run("document.getElementById('chart').focus()")
    browser.press("ArrowRight")
    browser.press("Enter")
    browser.wait_for(f"/^#\\d+ k\\d+$/.test({TITLE})")


def test_the_share_of_time_without_a_dot_is_said_and_one_click_away(visit):
    browser = visit(document(at(0, 0.5, 1e12), kernel(id=1, short_name="copy", work={}, points=[], duration_ns=3e5)))
    text = "document.getElementById('without-dot').textContent"
    assert browser.run(text) == "1 kernel has no dot here: 75.0 % of GPU time"
    browser.run("document.getElementById('without-dot').click()")
    assert browser.run("[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)") == ["copy"]
    assert browser.run("location.hash") == "#kernels&dot=none"


def test_far_dots_with_next_to_no_time_are_left_to_the_gutter(visit):
    near = [at(n, 0.5, 1e12 * (n + 1), duration_ns=1e6) for n in range(3)]
    browser = visit(document(*near, at(9, 0.5, 1e6, duration_ns=1e4)))
    gutter = "document.querySelector('#chart .gutter')?.textContent"
    assert browser.run(gutter) == "▼ 1 below: beyond this scale · 0.3 % of GPU time"  # 10 of 3010 µs
    browser.run("document.querySelector('#chart .gutter').click()")
    assert browser.run(gutter) is None
    assert point_at(browser, *place(browser, 0.5, 1e6))[0] == "#9 k9"
