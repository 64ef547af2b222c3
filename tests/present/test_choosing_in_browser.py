"""Choosing a launch in a real browser: from the chart to its detail and back, and what is let go of."""

from __future__ import annotations

import pytest

from tests.present.documents import document, kernel, three_kernels
from tests.present.drawn_chart import place, point_at

pytestmark = pytest.mark.browser

DETAIL_TOP = "Math.round(document.getElementById('detail').getBoundingClientRect().top)"
FOCUSED = "document.activeElement.id"
TIP_TITLE = "document.querySelector('.tip div').textContent"


def click(browser, label):
    browser.run(f"[...document.querySelectorAll('button')].find(b => b.textContent === '{label}').click()")


def reduce_motion(browser, wanted):
    value = "reduce" if wanted else "no-preference"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": value}])


def is_at_detail(browser):
    """Wait until the detail is at the top of the window (8 px: the padding of the page), or the page at its end."""
    browser.wait_for(f"{DETAIL_TOP} <= 8 || scrollY + innerHeight >= document.documentElement.scrollHeight - 1", 10)


@pytest.mark.parametrize("still", [True, False])
def test_a_click_on_a_dot_leads_to_its_detail_and_a_button_back(visit, still):
    browser = visit(document(kernel(id=10, short_name="alpha")), height=500)
    reduce_motion(browser, still)
    point_at(browser, *place(browser, 0.5, 1e12), click=True)
    browser.wait_for(f"{FOCUSED} === 'detail-title'")
    if still:
        assert browser.run(DETAIL_TOP) == 8
    is_at_detail(browser)
    assert browser.run("document.getElementById('detail-title').textContent") == "#10 alpha"
    click(browser, "Back to the chart")
    assert browser.run(FOCUSED) == "chart"
    browser.wait_for("Math.round(document.getElementById('roofline').getBoundingClientRect().top) === 8", 10)
    assert browser.complaints == []


def test_enter_on_the_chart_leads_to_the_detail_and_keys_lead_back_to_the_same_dot(visit):
    browser = visit(three_kernels(), height=500)
    browser.run("document.getElementById('chart').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.run(TIP_TITLE) == "#12 gamma"
    browser.press("Enter")
    browser.wait_for(f"{FOCUSED} === 'detail-title'")
    is_at_detail(browser)
    browser.press("Tab")
    browser.press("Enter")
    assert browser.run(FOCUSED) == "chart"
    browser.press("ArrowRight")
    assert browser.run(TIP_TITLE) == "#10 alpha"  # 100 µs, the next after 200 µs


def test_the_page_opens_on_the_gpu_whose_launches_take_longest(visit):
    devices = [
        {"name": name, "compute_capability": "9.0", "sm_count": 1, "dram_bytes_per_s": None, "profile": None}
        for name in ("Here", "There")
    ]
    # 2 · 100 µs there, 150 µs here
    kernels = [kernel(id=0, duration_ns=1.5e5), *(kernel(id=number, device=1) for number in (1, 2))]
    browser = visit(document(*kernels, devices=devices))
    assert browser.run("document.getElementById('device-filter').value") == "1"
    assert browser.run("document.getElementById('in-view').textContent").startswith("2 of 3 launches")
