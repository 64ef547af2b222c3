"""Reading the roofline chart of a page: where dots lie is read off the labels of the ticks, what they say by pointing at them."""

from __future__ import annotations

import math
import re

_EXPONENTS = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
TICKS = (
    "[...document.querySelectorAll('#chart .back text')]"
    ".map(t => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y'), t.getAttribute('text-anchor')])"
)


def axes(browser):
    """Return for both axes where two of the labelled decades lie, as ((value, px), (value, px))."""
    ticks = browser.run(TICKS)
    x = [(float(label), px) for label, px, _, anchor in ticks if anchor == "middle" and re.fullmatch(r"[0-9.]+", label)]
    y = []
    for label, _, px, anchor in ticks:
        match = re.fullmatch(r"([0-9.]+) ?([kMGTP]?)((?:FL)?OP/s|IPS|)", label)
        if match and anchor == "end":
            y.append((float(match[1]) * 10 ** _EXPONENTS[match[2]], px))
    return (x[0], x[-1]), (y[0], y[-1])


def place(browser, x, y):
    """Return where a pair of intensity and rate lies on the chart, in pixels of the chart."""

    def between(value, axis):
        (low, low_px), (high, high_px) = axis
        return low_px + (high_px - low_px) * math.log(value / low) / math.log(high / low)

    x_axis, y_axis = axes(browser)
    return between(x, x_axis), between(y, y_axis)


def point_at(browser, px, py, *, click=False):
    """Move the mouse over a place of the chart; return what is shown there, line by line."""
    browser.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    left, top = browser.run("(b => [b.left, b.top])(document.getElementById('chart').getBoundingClientRect())")
    at = {"x": left + px, "y": top + py}
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
    if click:
        for kind in ("mousePressed", "mouseReleased"):
            browser.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)
    return browser.run(
        "document.querySelector('.tip').hidden ? [] : [...document.querySelectorAll('.tip div')].map(d => d.textContent)"
    )


def drag(browser, start, end):
    browser.run("document.getElementById('chart').scrollIntoView({block: 'center'})")
    left, top = browser.run("(b => [b.left, b.top])(document.getElementById('chart').getBoundingClientRect())")
    for kind, (px, py) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
        browser.call(
            "Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, x=left + px, y=top + py
        )
