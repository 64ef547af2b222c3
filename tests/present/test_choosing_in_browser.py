"""Choosing a launch in a real browser: from the chart to its detail and back, and what is let go of."""

from __future__ import annotations

import pytest

from tests.present.documents import action, document, kernel, three_kernels
from tests.present.drawn_chart import place, point_at

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement.id"
TIP_TITLE = "document.querySelector('.tip div').textContent"
TITLE = "document.getElementById('detail-title').textContent"
CLOSED = "document.getElementById('detail').hidden"
NAMES = "[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)"


def click(browser, label):
    browser.run(f"[...document.querySelectorAll('button')].find(b => b.textContent === '{label}').click()")


def seen(browser, name):
    """Return how many pixels of an element's height are in the window."""
    box = f"document.getElementById('{name}').getBoundingClientRect()"
    edges = f"(b => Math.min(b.bottom, innerHeight) - Math.max(b.top, 0))({box})"
    return browser.run(edges)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1200, 800), (1000, 900), (390, 844)])
def test_a_click_on_a_dot_opens_its_detail_beside_the_chart_and_escape_closes_it(visit, width, height):
    browser = visit(document(kernel(id=10, short_name="alpha")), width=width, height=height)
    assert browser.run(CLOSED)
    point_at(browser, *place(browser, 0.5, 1e12), click=True)
    browser.wait_for(f"{FOCUSED} === 'detail-title'")
    assert browser.run(TITLE) == "#10 alpha"
    assert browser.run("location.hash") == "#k10"
    assert seen(browser, "detail") >= 0.45 * height
    assert seen(browser, "chart") >= 250
    detail, main = (
        browser.run(f"(b => [b.left, b.right, b.top])(document.querySelector('{selector}').getBoundingClientRect())")
        for selector in ("#detail", "main")
    )
    assert detail[0] >= main[1] if width >= 1200 else detail[2] == height / 2  # beside, or below
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    browser.press("Escape")
    browser.wait_for(CLOSED)
    assert browser.run(FOCUSED) == "chart"
    assert browser.run("location.hash") == ""
    assert browser.complaints == []


def test_enter_on_the_chart_opens_the_dot_and_escape_leads_back_to_it(visit):
    browser = visit(three_kernels(), height=500)
    browser.run("document.getElementById('chart').focus()")
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert browser.run(TIP_TITLE) == "#12 gamma"
    browser.press("Enter")
    browser.wait_for(f"{FOCUSED} === 'detail-title'")
    browser.press("Escape")
    assert browser.run(FOCUSED) == "chart"


def test_back_closes_what_was_opened_and_opens_what_was_closed_and_never_leaves_the_report(visit):
    browser = visit(three_kernels())
    for name in ("alpha", "gamma"):
        browser.run(f"[...document.querySelectorAll('#table a')].find(a => a.textContent === '{name}').click()")
        browser.wait_for(f"{TITLE}.endsWith('{name}')")
    browser.press("Escape")
    browser.wait_for(CLOSED)
    for shown in ("#12 gamma", "#10 alpha"):
        browser.run("history.back()")
        browser.wait_for(f"{TITLE} === '{shown}' && !{CLOSED}")
        assert browser.run("document.querySelector('#table [aria-current] td').textContent") == shown[1:3]
    browser.run("history.back()")
    browser.wait_for(CLOSED)
    assert browser.run("location.protocol") == "file:"
    browser.run("history.forward()")
    browser.wait_for(f"{TITLE} === '#10 alpha' && !{CLOSED}")


def count_entries(browser):
    """Count the entries that the page adds to the history as `pushed`: Chromium's own number ends at fifty."""
    browser.run(
        "window.pushed = 0; const push = history.pushState;"
        "history.pushState = function (...all) { window.pushed += 1; return push.apply(this, all) }; 1"
    )


def test_previous_and_next_follow_the_order_of_the_table(visit):
    browser = visit(three_kernels(), "#k12")
    assert browser.run(NAMES) == ["gamma", "alpha", "beta"]
    count_entries(browser)
    buttons = "[...document.querySelectorAll('#detail-buttons button')]"
    assert browser.run(f"{buttons}[0].disabled")
    for name in ("alpha", "beta"):
        browser.run(f"{buttons}[1].focus(), {buttons}[1].click()")
        browser.wait_for(f"{TITLE}.endsWith(' {name}')")
    assert browser.run(f"{buttons}[1].disabled")
    assert (
        browser.run("document.activeElement.ariaLabel") == "Close the detail"
    )  # as Next cannot have the focus any more
    browser.wait_for("location.hash === '#k11'")
    assert browser.run("window.pushed") == 0


def test_a_pinned_kernel_is_compared_with_the_open_one_and_stays_pinned(visit):
    kernels = three_kernels()["kernels"]
    kernels[1]["grid"] = [7, 1, 1]
    browser = visit(document(*kernels), "#k10")
    click(browser, "Pin to compare")
    browser.run("[...document.querySelectorAll('#table a')].find(a => a.textContent === 'beta').click()")
    rows = "[...document.querySelectorAll('#detail .both tr')].map(r => [...r.cells].map(c => c.textContent))"
    browser.wait_for(f"{rows}.length > 2")
    shown = browser.run(rows)
    assert shown[0] == ["", "#10", "#11"]
    assert shown[1] == ["verdict", "memory-bound", "compute-bound"]
    assert ["time", "100 µs", "300 µs"] in shown
    assert ["grid", "1024 × 1 × 1", "7 × 1 × 1"] in shown
    assert all(one != other for _, one, other in shown)
    assert "the same" in browser.run("document.querySelector('#detail .both').parentElement.textContent")
    assert browser.run("document.querySelectorAll('#chart .pinned').length") == 1
    assert browser.run("location.hash") == "#k11&pinned=10"
    click(browser, "Unpin #10")
    browser.wait_for("document.querySelector('#detail .both') === null")


def test_a_reload_shows_what_was_shown(visit):
    browser = visit(
        three_kernels(), "#k12&view=flop&level=l2&verdict=latency&sort=time%20ascending&zoom=-2.000,1.000,10.000,13.000"
    )
    shown = (
        "[document.getElementById('verdict-filter').value, document.querySelector('#table [aria-sort]').dataset.key,"
        "document.querySelector('#table [aria-sort]').ariaSort, document.querySelector('input[name=level]:checked').value,"
        f"{TITLE}, location.hash, document.querySelector('#chart .back').textContent]"
    )
    first = browser.run(shown)
    assert first[:5] == ["latency", "time", "ascending", "l2", "#12 gamma"]
    browser.call("Page.reload")
    browser.wait_for("document.readyState === 'complete' && document.documentElement.dataset.ready === 'true'")
    assert browser.run(shown) == first


def test_what_is_typed_is_in_the_address_and_not_in_the_history(visit):
    browser = visit(three_kernels())
    count_entries(browser)
    browser.run(
        "{const i = document.getElementById('search');"
        "for (const text of ['a', 'al', 'alp']) { i.value = text; i.dispatchEvent(new Event('input')) }}"
    )
    browser.wait_for("location.hash === '#search=alp'")
    assert browser.run("window.pushed") == 0
    browser.run(
        "{const s = document.getElementById('verdict-filter'); s.value = 'memory'; s.dispatchEvent(new Event('change'))}"
    )
    assert browser.run("[location.hash, window.pushed]") == ["#search=alp&verdict=memory", 1]
    browser.run("history.back()")
    browser.wait_for("document.getElementById('verdict-filter').value === ''")
    assert browser.run("document.getElementById('search').value") == "alp"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("#k99", "no kernel #99"),
        ("#k10&verdict=wrong", "no verdict “wrong”"),
        ("#k10&colour=red", "no setting “colour”"),
        ("#nowhere", "no section “nowhere”"),
        ("#zoom=%E0%A4", "no zoom"),
        ("#<img>", "no section “<img>”"),
    ],
)
def test_an_address_of_what_is_not_there_says_so(visit, address, said):
    browser = visit(three_kernels(), address)
    assert said in browser.run("document.getElementById('told').textContent")
    assert browser.run("document.images.length") == 0
    assert browser.complaints == []
    browser.run("location.hash = '#k10'")
    browser.wait_for(f"{TITLE} === '#10 alpha'")
    assert browser.run("document.getElementById('told').hidden")


@pytest.mark.parametrize("name", ["methods", "kernels", "caveat-short_kernel", "verdicts"])
def test_a_link_to_a_section_lands_where_it_points_on_loading_too(visit, name):
    kernels = [kernel(id=number, caveats=["short_kernel"]) for number in range(40)]
    top = f"document.getElementById('{name}').getBoundingClientRect().top"
    browser = visit(document(*kernels), f"#{name}", height=700)
    assert -1 <= browser.run(top) <= 70 or browser.run(
        "scrollY + innerHeight >= document.documentElement.scrollHeight - 2"
    )
    assert browser.run(f"document.getElementById('{name}').checkVisibility()")
    assert browser.run(top) < 700
    # With a launch beside it, and back.
    browser = visit(document(*kernels), f"#k3&{name}", height=700)
    assert browser.run(TITLE).startswith("#3 ")
    assert browser.run(top) < 700
    browser.run("document.querySelector('nav a[href=\"#summary\"]').click()")
    assert browser.run("location.hash") == "#k3&summary"
    browser.run("history.back()")
    browser.wait_for(f"location.hash === '#k3&{name}'")
    assert not browser.run(CLOSED)


def test_numbers_of_what_to_do_are_on_the_list_the_chart_the_table_and_the_detail(visit):
    finding = kernel()["findings"][0] | {"id": "small_grid", "title": "The grid is small"}
    content = document(
        kernel(id=4, short_name="alpha", findings=[finding]), actions=[action("other"), action("small_grid", 2e4)]
    )
    browser = visit(content, "#k4")
    assert browser.run("[...document.querySelectorAll('.actions .no')].map(e => e.textContent)") == ["1", "2"]
    assert browser.run("[...document.querySelectorAll('#chart .number text')].map(e => e.textContent)") == ["2"]
    assert browser.run("document.querySelector('#table .no').textContent") == "2"
    badge = "document.querySelector('#detail .finding .no')"
    assert browser.run(f"{badge}.textContent") == "2"
    browser.run(f"{badge}.click()")
    assert browser.run("location.hash") == "#k4&action-2"
    browser.run("[...document.querySelectorAll('.actions a')].at(-1).click()")
    assert "whose largest saving is “The grid is small”" in browser.run(
        "document.getElementById('in-view').textContent"
    )


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
