from __future__ import annotations

import itertools

import pytest

from ncuroof.present.page import render_page
from tests.present import chromium
from tests.present.documents import (
    EMPTY_DOCUMENTS,
    HOSTILE,
    ceiling,
    document,
    hostile_document,
    kernel,
    without_flop,
)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser():
    if chromium.EXECUTABLE is None:
        pytest.skip("Chromium is not installed")
    opened = chromium.Browser()
    yield opened
    opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    def open_page(content, fragment="", **options):
        path = tmp_path / "page.html"
        path.write_text(render_page(content), encoding="utf-8")
        browser.open(path, fragment, **options)
        return browser

    return open_page


def three_kernels():
    return document(
        kernel(id=10, short_name="alpha", duration_ns=1e5, recoverable_ns=1e4),
        kernel(id=11, short_name="beta", duration_ns=3e5, recoverable_ns=None, verdict="compute"),
        without_flop(id=12, short_name="gamma", duration_ns=2e5, recoverable_ns=9e4, verdict="latency"),
    )


def shown_names(browser):
    return browser.run("[...document.querySelectorAll('#table tbody tr:not([hidden]) th')].map(th => th.textContent)")


def traces(browser):
    return browser.run(
        "document.getElementById('chart').data.filter(t => t.showlegend !== false).map(t => [t.name, t.x.length])"
    )


def test_the_page_opens_from_disk_without_a_complaint_or_a_request(visit):
    browser = visit(three_kernels())
    browser.wait_for("document.querySelectorAll('#chart .point').length > 0")
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert len([url for url in browser.requests if url.startswith("file:")]) == 1


def test_the_chart_has_a_trace_for_every_verdict_with_dots(visit):
    assert traces(visit(three_kernels())) == [["memory-bound", 1], ["compute-bound", 1]]


def test_kernels_without_flop_are_listed_below_the_chart(visit):
    assert visit(three_kernels()).run("document.getElementById('off-chart').textContent").count("gamma") == 1


def test_the_datasheets_roofs_can_be_switched_on(visit):
    browser = visit(three_kernels())
    count = "document.getElementById('chart').data.filter(t => t.mode === 'lines').length"
    assert browser.run(count) == 3
    browser.run("document.querySelector('input[value=datasheet]').click()")
    assert browser.run(count) == 5


def test_the_level_of_the_dots_can_be_chosen(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=l2]').click()")
    assert browser.run("document.getElementById('chart').data.find(t => t.name === 'memory-bound').x") == [0.25]


def test_labels_of_roofs_do_not_meet(visit):
    sources = [ceiling("bandwidth", name, per_s) for name, per_s in (("dram", 2e12), ("l2", 2.1e12), ("l1", 2.2e12))]
    peaks = [ceiling("compute", "fp32", 1e13), ceiling("compute", "fp64", 1.05e13)]
    work = kernel()["work"]["fp32"]
    browser = visit(document(kernel(work={"fp32": work, "fp64": work}), ceilings=sources + peaks))
    boxes = browser.run(
        "[...document.querySelectorAll('#chart .annotation-text')].map(e => {"
        "const b = e.getBoundingClientRect(); return [e.textContent, b.left, b.right, b.top, b.bottom]})"
    )
    assert len(boxes) == 5
    flat = [box for box in boxes if box[0].startswith("FP")]
    assert flat[0][1] > flat[1][2] or flat[1][1] > flat[0][2]
    slopes = sorted(box for box in boxes if not box[0].startswith("FP"))
    centres = sorted(((box[1] + box[2]) / 2) for box in slopes)
    assert min(right - left for left, right in itertools.pairwise(centres)) > 60


def test_a_column_sorts_by_click_and_by_key_with_the_unknown_last(visit):
    browser = visit(three_kernels())
    assert shown_names(browser) == ["gamma", "alpha", "beta"]
    browser.run("document.querySelector('[data-key=time] button').click()")
    assert shown_names(browser) == ["beta", "gamma", "alpha"]
    assert browser.run("document.querySelector('[data-key=time]').getAttribute('aria-sort')") == "descending"
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 1
    browser.run("document.querySelector('[data-key=recoverable] button').focus()")
    browser.press("Enter")
    browser.press("Enter")
    assert shown_names(browser) == ["alpha", "gamma", "beta"]
    browser.run("document.querySelector('[data-key=name] button').click()")
    assert shown_names(browser) == ["alpha", "beta", "gamma"]


def test_rows_are_filtered_by_name_and_verdict(visit):
    browser = visit(three_kernels())
    browser.run(
        "{const i = document.getElementById('name-filter'); i.value = 'ALP'; i.dispatchEvent(new Event('input'))}"
    )
    assert shown_names(browser) == ["alpha"]
    assert browser.run("document.getElementById('n-shown').textContent") == "1 of 3"
    browser.run(
        "{const i = document.getElementById('name-filter'); i.value = ''; i.dispatchEvent(new Event('input'));"
        "const s = document.getElementById('verdict-filter'); s.value = 'latency'; s.dispatchEvent(new Event('change'))}"
    )
    assert shown_names(browser) == ["gamma"]


def test_a_link_with_a_kernels_number_opens_its_detail(visit):
    browser = visit(three_kernels(), "#k10")
    assert browser.run("document.getElementById('detail-title').textContent") == "#10 alpha"
    assert browser.run("document.querySelector('[aria-current]').dataset.position") == "0"
    detail = browser.run("document.getElementById('detail-body').textContent")
    for said in (
        "Is any unit busy?",
        "80.0 % ≥ 60 %; 33.3 % of the threshold away",
        "up to 10.0 µs (10.0 % of its time)",
        "--section SchedulerStats --metrics lts__t_sector_hit_rate.pct",
        "epoch › step",
        "Measured as zero: FP64.",
        "Look at Warp State Statistics and the Guide. estimated speedup 25.0 % (global)",
    ):
        assert said in detail
    browser.run("location.hash = '#k12'")
    browser.wait_for("document.getElementById('detail-title').textContent === '#12 gamma'")


def test_a_selected_kernel_shows_its_points_of_all_levels_joined(visit):
    browser = visit(three_kernels(), "#k10")
    joined = browser.run(
        "document.getElementById('chart').data.filter(t => t.mode === 'lines+markers+text').map(t => t.x)"
    )
    assert joined == [[0.5, 0.25]]


def test_hostile_names_do_no_harm_and_are_read_as_text(visit):
    browser = visit(hostile_document())
    for number in range(len(HOSTILE)):
        browser.run(f"location.hash = '#k{number}'")
        browser.wait_for(f"document.getElementById('detail-title').textContent.startsWith('#{number} ')")
        assert browser.run("document.images.length + document.querySelectorAll('b:not(.advice b), i').length") == 0
    assert browser.complaints == []
    names = browser.run("[...document.querySelectorAll('#table tbody th a')].map(a => a.title)")
    assert HOSTILE[0] in names
    assert HOSTILE[4] in names
    hover = browser.run(
        "{const chart = document.getElementById('chart');"
        "chart.data.find(t => t.name === 'memory-bound').hovertext[0].split('<br>')[0]}"
    )
    assert hover == "#0 &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", ["no kernel", "failed kernel", "no devices", "blocks absent"])
def test_documents_that_know_nothing_open(visit, name):
    browser = visit(EMPTY_DOCUMENTS[name])
    assert browser.complaints == []
    n_rows = len(EMPTY_DOCUMENTS[name]["kernels"])
    assert browser.run("document.getElementById('n-shown').textContent") == f"{n_rows} of {n_rows}"


def test_a_phone_scrolls_down_and_never_sideways(visit):
    browser = visit(three_kernels(), width=390, height=844)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


def test_the_chart_follows_the_colour_scheme(visit):
    browser = visit(three_kernels())
    ink = "document.getElementById('chart').layout.font.color"
    assert browser.run(ink) == "#1a1e22"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.wait_for(f"{ink} === '#e3e7ea'", seconds=5)


def test_the_chart_is_printed_in_the_colours_and_width_of_paper(visit):
    browser = visit(three_kernels(), scheme="dark")
    browser.run(
        "matchMedia('print').addEventListener('change', event => { const {layout} = document.getElementById('chart');"
        "if (event.matches) window.printed = [layout.width, layout.font.color] })"
    )
    browser.call("Page.printToPDF")
    assert browser.run("window.printed") == [680, "#000"]
    browser.wait_for("document.getElementById('chart').layout.font.color === '#e3e7ea'", seconds=5)
