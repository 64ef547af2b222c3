from __future__ import annotations

import cmath
import itertools
import math

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


def chosen_view(browser):
    return browser.run("document.querySelector('#chart-views :checked').value")


def test_the_instruction_roofline_places_kernels_without_flop(visit):
    browser = visit(three_kernels())
    assert chosen_view(browser) == "flop"
    browser.run("document.querySelector('input[value=instruction]').click()")
    assert traces(browser) == [["memory-bound", 1], ["compute-bound", 1], ["latency-bound", 1]]
    assert browser.run("document.getElementById('chart').data.find(t => t.name === 'latency-bound').x") == [0.8]
    assert (
        browser.run("document.getElementById('chart').layout.xaxis.title.text") == "warp instructions per transaction"
    )
    assert browser.run("document.getElementById('off-chart').textContent") == ""
    assert browser.run("document.getElementById('chart').getAttribute('aria-label')").startswith("Instruction roofline")
    assert browser.complaints == []


def test_the_roofline_is_switched_by_key_and_keeps_the_focus(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=flop]').focus()")
    for view, reached in (("instruction", "GIPS"), ("flop", "FLOP/s")):
        browser.press("ArrowRight")
        assert chosen_view(browser) == view
        assert browser.run("document.activeElement.value") == view
        assert reached in browser.run("document.getElementById('chart').layout.yaxis.ticktext.join()")
    name = "[...document.querySelectorAll('#chart-views label')].map(label => label.textContent)"
    assert browser.run(name) == ["FLOP roofline", "Instruction roofline"]


def test_the_instruction_roofline_opens_where_no_kernel_has_flop(visit):
    browser = visit(document(without_flop(id=12, short_name="gamma")))
    assert chosen_view(browser) == "instruction"
    browser.run("document.querySelector('input[value=flop]').click()")
    assert "no kernel of this GPU has FLOPs" in browser.run("document.getElementById('chart-note').textContent")
    assert browser.run("document.getElementById('off-chart').textContent").count("gamma") == 1


def test_a_dot_of_the_instruction_roofline_selects_its_kernel(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=instruction]').click()")
    browser.run(
        "{const chart = document.getElementById('chart');"
        "const {customdata} = chart.data.find(t => t.name === 'latency-bound');"
        "chart.emit('plotly_click', {points: [{customdata: customdata[0]}]})}"
    )
    assert browser.run("location.hash") == "#k12"
    assert browser.run("document.getElementById('detail-title').textContent") == "#12 gamma"
    joined = "document.getElementById('chart').data.filter(t => t.mode === 'lines+markers+text').map(t => t.x)"
    assert browser.run(joined) == [[0.8, 0.4]]
    detail = browser.run("document.getElementById('detail-body').textContent")
    assert "5.00 M warp instructions executed, 25.0 % of what the schedulers can issue." in detail
    assert "None: no FLOPs." in detail


def test_the_level_that_was_chosen_stays_from_one_roofline_to_the_other(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=l2]').click()")
    browser.run("document.querySelector('input[value=datasheet]').click()")
    browser.run("document.querySelector('input[value=instruction]').click()")
    assert browser.run("document.querySelector('input[name=level]:checked').value") == "l2"
    assert browser.run("document.querySelector('input[value=datasheet]').checked")
    assert browser.run("document.getElementById('chart').data.filter(t => t.mode === 'lines').length") == 5


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
    angle = browser.run("document.getElementById('chart').layout.annotations[0].textangle")
    along_slope = cmath.rect(1, math.radians(angle))
    centres = [
        complex(left + right, top + bottom) / 2 / along_slope
        for name, left, right, top, bottom in boxes
        if not name.startswith("FP")
    ]
    # "DRAM 2.00 TB/s" is 80 px long and not as high as 14 px.
    for one, other in itertools.combinations(centres, 2):
        assert abs((one - other).real) > 80 or abs((one - other).imag) > 14


def test_a_label_that_the_next_roof_would_cross_stands_below_its_own(visit):
    # On the chart L2 lies 0.12 decades above shared memory, and that 0.24 above DRAM.
    ceilings = [
        ceiling("bandwidth", name, per_s) for name, per_s in (("dram", 1.5e12), ("shared", 2.6e12), ("l2", 3.4e12))
    ]
    browser = visit(document(kernel(), ceilings=[*ceilings, ceiling("compute", "fp32", 1e13)]))
    shifts = dict(
        browser.run("document.getElementById('chart').layout.annotations.map(a => [a.text.split(' ')[0], a.yshift])")
    )
    assert shifts["shared"] < 0 < min(shifts["DRAM"], shifts["L2"])


def test_a_flat_label_that_the_roof_above_would_cross_stands_below_its_own(visit):
    # At 150 to 200 pixels per decade the two are about 7 pixels apart, less than a label needs.
    peaks = [ceiling("compute", "tensor_bf16", 1.1e13), ceiling("compute", "tensor_bf16_slower_path", 1e13)]
    work = {"tensor_bf16": kernel()["work"]["fp32"]}
    browser = visit(document(kernel(work=work), ceilings=[ceiling("bandwidth", "dram", 2e12), *peaks]))
    shifts = dict(browser.run("document.getElementById('chart').layout.annotations.map(a => [a.text, a.yshift])"))
    (slower,) = [shift for label, shift in shifts.items() if "slower path" in label]
    (fastest,) = [shift for label, shift in shifts.items() if "slower path" not in label and "BF16" in label]
    assert slower < 0 < fastest


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
