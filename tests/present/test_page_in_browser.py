"""The page as a whole in a real browser: it opens from disk, asks for nothing, does no harm, and suits the reader's screen."""

from __future__ import annotations

import base64
import json
import re
import struct

import pytest

import ncuroof
from ncuroof import formatting
from ncuroof.present.explanations.explain import explain
from ncuroof.present.page.render import render_page
from ncuroof.reading import Reports
from ncuroof.resources import folder
from tests.present.barriers import violations
from tests.present.documents import EMPTY_DOCUMENTS, HOSTILE, document, hostile_document, kernel, three_kernels
from tests.present.drawn_chart import place
from tests.support import demo
from tests.support.lined import lined_report
from tests.support.raw import raw_report

pytestmark = pytest.mark.browser

COUNTED = demo.FOLDER.parent / "h100-80gb-hbm3/train_transformer.roofline.ncu-repz"
"""A training step with counts beside it: it knows what the GPU does in a step, and has NVTX ranges with long names."""


def test_the_page_opens_from_disk_without_a_complaint_or_a_request(visit):
    browser = visit(three_kernels())
    browser.wait_for("document.querySelectorAll('#chart .roof').length > 0")
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert len([url for url in browser.requests if url.startswith("file:")]) == 1


def test_a_link_with_a_kernels_number_opens_its_detail(visit):
    browser = visit(three_kernels(), "#k10")
    browser.wait_for("document.getElementById('detail-title').textContent === '#10 alpha'")
    browser.wait_for("document.querySelector('#table [aria-current] th')?.textContent === 'alpha'")
    detail = browser.run("document.getElementById('detail-body').textContent")
    for said in (
        "Is any unit busy?",
        "busiest unit: 80.0 %, needs ≥ 60 %",
        "about 5 µs, at most 10 µs (at most 10.0 % of its time)",
        "6.00 MB at L1 (75.0 % of its traffic)",
        "--section SchedulerStats --metrics lts__t_sector_hit_rate.pct",
        "epoch › step",
        "Measured as zero: FP64.",
        "Look at Warp State Statistics and the Guide. estimated speedup 25.0 % (global)",
    ):
        assert said in detail
    browser.run("location.hash = '#k12'")
    browser.wait_for("document.getElementById('detail-title').textContent === '#12 gamma'")
    assert browser.run("document.activeElement.id") == "detail-title"


def test_the_way_of_the_bytes_is_shown_with_hit_rates(visit):
    # NVIDIA's memory chart has the L1s' sectors between L1 and L2; fills and the fabric are among all that L2 looks up.
    traffic = {"l1": 8e9, "l2": 4e9, "l2_all": 6e9, "dram": 2e9, "dram_read": 1.5e9, "dram_write": 0.5e9}
    access = {"l1_hit_frac": 0.5, "l2_hit_frac": None, "bulk_copy_frac": 0.1}
    browser = visit(document(kernel(traffic_bytes=traffic, access=access)), "#k0")
    browser.wait_for("document.querySelector('.flow') !== null")
    stations = browser.run(
        "[...document.querySelectorAll('.flow li:not(.hop)')].map(li => [...li.children].map(e => e.textContent).join('|'))"
    )
    assert stations == [
        "SMs",
        "8.00 GB",
        "L1|50.0 % hits; bulk copies (TMA) not counted",
        "4.00 GB",
        "L2|6.00 GB looked up in total",
        "2.00 GB|80.0 % of peak; 1.50 GB read, 500 MB written",
        "DRAM",
    ]
    for width in (1240, 600, 390):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        tops = browser.run(
            "[...document.querySelectorAll('.flow .hop > ol')].map(hop => [...hop.children].map(e => e.offsetTop))"
        )
        assert [len(set(each)) for each in tops] == [1, 1, 1]  # an arrow is in one line with what it leads to
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_findings_say_at_which_line_and_the_lines_with_most_samples_are_listed(browser, tmp_path):
    report, path = tmp_path / "r.ncu-rep", tmp_path / "page.html"
    report.write_bytes(lined_report())
    ncuroof.read(report).analyse().to_html(path)
    browser.open(path, "#k0")
    browser.wait_for("document.querySelectorAll('#detail .finding').length > 0")
    awaited = ":4, called at inlined.cu:4"
    where = f"Where: inlined.h:9, called at inlined.cu:4 (98.3 %, waits for {awaited}) of the samples of this stall."
    assert where in browser.run("[...document.querySelectorAll('#detail .finding')].map(e => e.textContent).join()")
    assert browser.run("document.querySelector('#detail .finding .source').textContent") == "return b + x[j];"
    title = "[...document.querySelectorAll('#detail h3')].find(h => h.textContent.startsWith('Source lines'))"
    rows = browser.run(
        f"[...{title}.parentElement.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert rows == [
        ["60.0 %", "inlined.h:9, called at inlined.cu:4: return b + x[j];", f"long scoreboard for {awaited}", "600"],
        ["40.0 %", "inlined.cu:4: x[threadIdx.x] = outer(x[n], x, n) * 2;", "long scoreboard", "400"],
    ]


def test_without_lines_it_says_what_they_need(visit):
    browser = visit(document(kernel(lines=[])), "#k0")
    browser.wait_for("document.querySelectorAll('#detail .finding').length > 0")
    assert "nvcc -lineinfo), --section SourceCounters" in browser.run(
        "document.getElementById('detail-body').textContent"
    )


def recorded_counters(browser, n_counters):
    """Open the detail's counters, and return the name and value of each once there are so many."""
    browser.run("[...document.querySelectorAll('#detail details')].at(-1).open = true")
    cells = "map(tr => [...tr.cells].slice(0, 2).map(c => c.textContent))"
    rows = f"[...[...document.querySelectorAll('#detail details')].at(-1).querySelectorAll('tbody tr')].{cells}"
    browser.wait_for(f"{rows}.length === {n_counters}")
    return browser.run(rows)


def test_counters_as_recorded_are_shown_when_they_are_asked_for(browser, tmp_path):
    path = tmp_path / "page.html"
    reports = [raw_report({"a__counter.sum": 12.5, "b__counter.avg": float(number)}) for number in range(2)]
    kernels = [kernel(id=number) for number in range(2)]
    path.write_text(render_page(document(*kernels), reports), encoding="utf-8")
    browser.open(path, "#k1")
    browser.wait_for("document.getElementById('detail-title').textContent.startsWith('#1 ')")
    assert recorded_counters(browser, 2) == [["a__counter.sum", "12.5"], ["b__counter.avg", "1"]]


def test_launches_of_a_part_keep_their_numbers_and_their_counters(browser, tmp_path):
    raw = raw_report(*({"gpu__time_duration.sum": 1000.0 + number} for number in range(4)), names=["a", "b", "a", "b"])
    page = Reports((raw,)).analyse().select(kernel="b").to_html(tmp_path / "page.html")
    browser.open(page, "#k3")
    browser.wait_for("document.getElementById('detail-title').textContent === '#3 b'")
    assert recorded_counters(browser, 1) == [["gpu__time_duration.sum", "1003"]]
    assert browser.run("document.querySelector('.remark').textContent").startswith(
        "Only kernels matching 'b': 2 of the run's 4 launches"
    )
    assert browser.complaints == []


def test_time_above_the_roofline_has_one_name_and_is_told_from_what_findings_give_back(visit):
    browser = visit(ncuroof.read(demo.REPORT).analyse().to_dict(), "#k11")
    browser.wait_for("document.querySelectorAll('#detail .pairs').length > 0")
    browser.run("document.getElementById('sure').open = true; 1")
    shown = browser.run("document.body.innerText")
    assert "recoverable" not in shown.lower()
    assert (
        "Time above the roofline is the time beyond the minimum that this GPU needs for the same bytes and arithmetic"
        in shown
    )
    facts = browser.run("[...document.querySelectorAll('#detail dt')].map(dt => dt.textContent)")
    assert {"roofline time", "above the roofline"} <= set(facts)


def test_the_page_explains_the_names_on_it_as_the_command_does(visit):
    browser = visit(three_kernels())
    browser.run("document.getElementById('explained').open = true; 1")
    entries = "[...document.querySelectorAll('#explained details')].map(d => [...d.children].map(c => c.textContent))"
    browser.wait_for(f"{entries}.length > 0")
    texts = dict(browser.run(entries))
    assert {"memory", "dram_roof", "short_kernel", "utilisation.dram"} <= set(texts)
    assert texts["dram_roof"] == explain("dram_roof", with_files=False)


def test_the_remark_on_doubted_verdicts_leads_to_what_its_caveats_mean(visit):
    content = three_kernels()
    content["summary"] |= {"doubted_frac": 0.5, "by_doubt": {"short_kernel": 0.5}}
    browser = visit(content)
    link = "document.querySelector('#summary a[href^=\"#caveat\"]')"
    assert browser.run(f"{link}.parentElement.textContent") == (
        "Verdicts are less certain for 50.0 % of GPU time: short kernel 50.0 %."
    )
    meaning = f"document.querySelector({link}.getAttribute('href')).nextElementSibling"
    assert not browser.run(f"{meaning}.checkVisibility()")
    browser.run(f"{link}.click()")
    assert browser.run(f"{meaning}.checkVisibility()")
    assert browser.run(f"{meaning}.textContent").startswith("Shorter than 20 µs")


def test_the_idle_time_says_what_its_shares_are_of(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict())
    assert browser.run("document.querySelector('.wall thead').textContent") == "GPUShare of 19.1 msTimeGaps"


def test_launches_that_are_alike_can_be_looked_at_one_by_one(visit):
    alike = [kernel(id=number, short_name="alpha", duration_ns=1e5 * (number + 1)) for number in range(3)]
    group = document(alike[2])["groups"][0] | {"launches": [0, 1, 2], "n_launches": 3, "duration_ns": 6e5}
    browser = visit(document(*alike, groups=[group]), "#k2")
    browser.wait_for("document.getElementById('alike') !== null")
    assert browser.run("[...document.getElementById('alike').options].map(o => o.text)") == [
        "#0, 100 µs",
        "#1, 200 µs",
        "#2, 300 µs",
    ]
    browser.run("{const s = document.getElementById('alike'); s.value = '1'; s.dispatchEvent(new Event('change'))}")
    browser.wait_for("document.getElementById('detail-title').textContent === '#1 alpha'")
    browser.wait_for("location.hash === '#k1'")


def test_hostile_names_do_no_harm_and_are_read_as_text(visit):
    browser = visit(hostile_document())
    for number in range(len(HOSTILE)):
        browser.run(f"location.hash = '#k{number}'")
        browser.wait_for(f"document.getElementById('detail-title').textContent.startsWith('#{number} ')")
        assert browser.run("document.images.length + document.querySelectorAll('b:not(.advice b), i').length") == 0
    assert browser.complaints == []
    browser.run("location.hash = '#k0'")
    browser.wait_for("document.getElementById('detail-title').textContent.startsWith('#0 ')")
    assert browser.run("document.querySelector('#detail .whole-name').textContent") == HOSTILE[0]
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", EMPTY_DOCUMENTS)
def test_documents_that_know_nothing_open(visit, name):
    browser = visit(EMPTY_DOCUMENTS[name])
    assert browser.complaints == []
    n_rows = len(EMPTY_DOCUMENTS[name]["kernels"])
    launches = "1 launch" if n_rows == 1 else f"{n_rows} launches"
    assert browser.run("document.getElementById('in-view').textContent").startswith(f"{n_rows} of {launches}")


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_the_page_scrolls_down_and_never_sideways(visit, width):
    browser = visit(three_kernels(), "#k10", width=width, height=844)
    browser.wait_for("document.getElementById('detail-title').textContent === '#10 alpha'")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


def ink(browser):
    return browser.run("document.querySelector('#chart .roof').getAttribute('stroke')")


def test_the_chart_follows_the_colour_scheme(visit):
    browser = visit(three_kernels())
    assert ink(browser) == "#1a1e22"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.wait_for("document.querySelector('#chart .roof').getAttribute('stroke') === '#e3e7ea'")


def test_the_chart_is_printed_in_the_colours_and_width_of_paper(visit):
    browser = visit(three_kernels(), scheme="dark")
    browser.run(
        "matchMedia('print').addEventListener('change', event => { if (event.matches) window.printed = ["
        "document.querySelector('#chart canvas').style.width, document.querySelector('#chart .roof').getAttribute('stroke')] })"
    )
    browser.call("Page.printToPDF")
    assert browser.run("window.printed") == ["680px", "#000"]
    browser.wait_for("document.querySelector('#chart .roof').getAttribute('stroke') === '#e3e7ea'")


def numbers():
    """Numbers whose third digit is no tie, which Python and JavaScript round to different sides."""
    mantissas = (0.0, 1.0, 1.2344, 4.5678, 9.9949, 9.9951, 9.9999, 2.0, 123.0)
    yield from (mantissa * 10.0**exponent for mantissa in mantissas for exponent in range(-9, 22))
    yield from (0.00049, 0.0005, 0.5, 0.99996, 1.0, 99.99, 100.0, 1234.0, -0.00001, -0.3, -12.0, 5e-324)


def test_the_script_writes_numbers_as_the_rest_of_the_program_does(browser, tmp_path):
    path = tmp_path / "format.html"
    script = (folder("templates") / "format.js").read_text(encoding="utf-8")
    path.write_text(f"<!doctype html><meta charset='utf-8'><script>{script}</script>", encoding="utf-8")
    browser.open(path)
    values = [*numbers(), None]
    written = browser.run(
        f"{json.dumps(values)}.map(v => [duration(v), share(v), scaled(v), scaled(v, 'FLOP/s'), scaled(v, 'B', [-3, 6])])"
    )
    for value, line in zip(values, written, strict=True):
        own = [
            formatting.duration(value),
            formatting.share(value),
            formatting.scaled(value),
            formatting.flop_rate(value),
        ]
        assert line == [*own, formatting.scaled(value, "B", exponents=(-3, 6))], value


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_barriers_that_axe_finds(visit, scheme):
    browser = visit(three_kernels(), "#k10", scheme=scheme)
    browser.wait_for("document.getElementById('detail-title').textContent === '#10 alpha'")
    browser.run("for (const part of document.querySelectorAll('details')) part.open = true; 1")
    assert violations(browser) == []


def test_a_page_with_ranges_operators_and_idle_time_has_none_either(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict(), width=390)
    browser.run("for (const part of document.querySelectorAll('details')) part.open = true; 1")
    assert browser.run("document.querySelector('#operators') !== null")
    assert violations(browser) == []


def n_sheets(pdf):
    return len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(pdf)))


def test_the_page_prints_to_one_sheet_with_answer_changes_and_chart(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict())
    a4 = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    assert n_sheets(browser.call("Page.printToPDF", **a4)["data"]) == 1
    browser.run("document.documentElement.classList.add('print-all')")
    assert n_sheets(browser.call("Page.printToPDF", **a4)["data"]) > 5


def test_all_of_the_page_prints_with_all_of_its_rows(visit):
    many = [kernel(id=number, short_name=f"kernel_{number}") for number in range(400)]
    browser = visit(document(*many))
    browser.run("document.documentElement.classList.add('print-all')")
    browser.run(
        "matchMedia('print').addEventListener('change',"
        "e => { if (e.matches) window.rows = document.querySelectorAll('#table tbody tr[data-index]').length })"
    )
    pdf = browser.call("Page.printToPDF")["data"]
    assert len(pdf) > 10_000
    assert browser.run("window.rows") == 400


def test_the_picture_can_be_saved(visit):
    browser = visit(three_kernels())
    browser.run(
        "window.saved = []; URL.createObjectURL = blob => { window.saved.push(blob); return 'blob:none' };"
        "HTMLAnchorElement.prototype.click = function () { window.name = this.download }; 1"
    )
    buttons = "[...document.querySelectorAll('#chart-buttons button')]"
    browser.run(f"{buttons}.find(b => b.textContent === 'Save SVG').click()")
    picture = browser.run("window.saved[0].text()")
    assert browser.run("window.name") == "roofline.svg"
    assert picture.startswith("<svg")
    assert picture.count('class="dot"') == 3
    assert "DRAM 2.50 TB/s" in picture
    for said in (
        "FLOP roofline: run.ncu-rep",
        "GPU 0: NVIDIA Imaginary · Bytes counted at DRAM · 3 of 3 launches, 100 % of GPU time",
        "FLOP per byte of DRAM",
        "memory-bound",
        "compute-bound",
        "latency-bound",
    ):
        assert f">{said}</text>" in picture
    browser.run(f"{buttons}.find(b => b.textContent === 'Save PNG').click()")
    browser.wait_for("window.saved.length === 2")
    head = browser.run("window.saved[1].arrayBuffer().then(b => [...new Uint8Array(b).slice(0, 24)])")
    width = browser.run("parseInt(document.querySelector('#chart canvas').style.width)")
    assert bytes(head[1:4]) == b"PNG"
    assert struct.unpack(">I", bytes(head[16:20]))[0] == 2 * width


def luminance(colour):
    """Return the relative luminance of "#rrggbb" by WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_of_verdicts_stand_out_from_what_they_lie_on(visit, scheme):
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#d99000", "#ffffff") == pytest.approx(2.64, abs=0.005)  # by another program; as it was
    browser = visit(three_kernels(), scheme=scheme)
    names = ["memory", "compute", "balanced", "latency", "overhead", "unknown", "paper", "panel"]
    colours = browser.run(
        f"(s => Object.fromEntries({json.dumps(names)}.map(n => [n, s.getPropertyValue('--' + n).trim()])))"
        "(getComputedStyle(document.documentElement))"
    )
    for name in names[:6]:
        for ground in ("paper", "panel"):
            assert contrast(colours[name], colours[ground]) >= 3, (name, ground)  # 1.4.11
    px, py = place(browser, 0.5, 1e12)
    pixel = f"[...document.querySelector('#chart canvas').getContext('2d').getImageData({round(px)}, {round(py)}, 1, 1).data]"
    assert "#{:02x}{:02x}{:02x}".format(*browser.run(pixel)[:3]) == colours["memory"]


def test_what_may_be_searched_for_can_be_read_in_the_empty_field(visit):
    for scheme in ("light", "dark"):
        browser = visit(three_kernels(), width=320, scheme=scheme)
        colours = browser.run(
            "(s => [getComputedStyle(document.getElementById('search'), '::placeholder').color, s('paper'), s('soft')])"
            "(n => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim())"
        )
        parts = [int(part) for part in re.findall(r"\d+", colours[0])]
        assert "#{:02x}{:02x}{:02x}".format(*parts) == colours[2]
        assert contrast(colours[2], colours[1]) >= 4.5  # WCAG 2.2, 1.4.3
    room = browser.run(
        "(e => { const s = getComputedStyle(e), c = document.createElement('canvas').getContext('2d'); c.font = s.font;"
        "return e.clientWidth - parseFloat(s.paddingLeft) - parseFloat(s.paddingRight) - c.measureText(e.placeholder).width })"
        "(document.getElementById('search'))"
    )
    assert room >= 0


@pytest.mark.parametrize("width", [320, 720, 1240, 1440, 2560])
def test_the_table_of_kernels_is_as_wide_as_its_place_and_no_column_runs_into_another(visit, width):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict(), width=width)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    right, place = browser.run("['#table', 'main'].map(s => document.querySelector(s).getBoundingClientRect().right)")
    assert right <= place + 1
    room = (
        "[...document.querySelectorAll('#table tbody td.number')]"
        ".filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth).length"
    )
    assert browser.run(room) == 0
    # A name that is too long gives way in its middle, and is whole in the document.
    names = browser.run(
        "[...document.querySelectorAll('#table th .middle')].map(e => [e.textContent, e.querySelector('.tail').offsetWidth])"
    )
    assert all(tail > 0 for _, tail in names)
    assert any(len(name) > 60 for name, _ in names)


def test_on_a_telephone_the_answer_comes_first_and_only_what_is_not_the_run_is_a_warning(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict(), width=390, height=844)
    assert browser.run("document.querySelector('.answer').getBoundingClientRect().top") < 844 / 2
    warnings = browser.run("[...document.querySelectorAll('.warning:not([hidden])')].map(e => e.textContent)")
    assert warnings == [
        "25.0 % of the counting run's GPU time was not profiled and is missing from all totals: multi_tensor_apply_kernel 472 µs, "
        "vectorized_elementwise_kernel 242 µs, elementwise_kernel 166 µs and 1 more; ncu profiled one instantiation per template: "
        "record again with ncuroof profile, which distinguishes them."
    ]
    assert "Weighted by launch counts from a run without ncu (321 launches)" in browser.run(
        "document.getElementById('summary').textContent"
    )


def test_on_paper_heads_are_repeated_and_numbers_and_headings_are_not_torn(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict())
    browser.run("document.documentElement.classList.add('print-all')")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        style = "getComputedStyle(document.querySelector('{}')).{}"
        # Chromium repeats a head that sticks to nothing and has no box in it, as buttons are.
        assert browser.run(style.format("#table thead th", "position")) == "static"
        assert browser.run(style.format("#table thead button", "display")) == "contents"
        assert browser.run(style.format("#table td.number", "whiteSpace")) == "nowrap"
        assert {browser.run(style.format(heading, "breakAfter")) for heading in ("h2", "h3")} == {"avoid"}
        # Not every browser keeps a heading with what follows it.
        assert browser.run("document.querySelector('.whole h2').closest('.whole').querySelector('#chart') !== null")
        assert browser.run(style.format(".whole", "breakInside")) == "avoid"
        name = "getComputedStyle(document.querySelector('.ranges .name')).whiteSpace"
        assert browser.run(name) == "normal"  # nothing is cut off, as paper has no other way to show it
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_nothing_exceeds_the_width_of_the_paper(visit):
    # Of the widest thing, Chromium makes all of the sheet: it would print everything smaller. A4 less 1 cm on both sides: 718 px.
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict())
    browser.run("document.querySelector('#chart-views input[value=bars]').click()")
    browser.run(
        "for (const part of document.querySelectorAll('details')) part.open = true;"
        "document.documentElement.classList.add('print-all')"
    )
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)
    try:
        assert browser.run("document.querySelectorAll('.meter').length") > 100
        too_wide = browser.run(
            "[...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 719)"
            ".map(e => `${e.tagName} ${e.textContent.slice(0, 40)}`)"
        )
        assert too_wide == []
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
        browser.call("Emulation.clearDeviceMetricsOverride")


def heights(browser, selector):
    return browser.run(f"[...document.querySelectorAll('{selector}')].map(e => e.getBoundingClientRect().height)")


def test_on_a_narrow_screen_tables_of_names_and_of_idle_time_are_not_towers(visit):
    browser = visit(ncuroof.read(COUNTED).analyse().to_dict(), width=390)
    browser.run("for (const part of document.querySelectorAll('#range-list, #families')) part.open = true; 1")
    lines = heights(browser, ".ranges summary, .ranges li > div")
    assert browser.run("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.families'))") == 0
    assert lines
    assert max(lines) < 65  # the name on up to two lines, and below it the numbers
    texts = browser.run("[...document.querySelectorAll('.wall th[scope=row]')].map(e => e.clientWidth)")
    assert texts
    assert min(texts) > 300  # of 390, less the page's padding
    assert max(heights(browser, ".wall tbody tr")) < 300


def test_the_switch_of_views_has_frames_of_their_own_when_it_wraps(visit):
    browser = visit(three_kernels(), width=320)
    boxes = browser.run(
        "[...document.querySelectorAll('.switch label')].map(l => l.getBoundingClientRect()).map(b => [b.left, b.top])"
    )
    assert len({top for _, top in boxes}) > 1
    widths = browser.run(
        "[...document.querySelectorAll('.switch, .switch label')].map(l => getComputedStyle(l).borderLeftWidth)"
    )
    assert widths == ["0px", "1px", "1px", "1px"]


def block(browser, title):
    """Return the lines of text below a heading of the detail."""
    return browser.run(
        f"[...[...document.querySelectorAll('#detail h3')].find(h => h.textContent.startsWith('{title}')).parentElement"
        ".querySelectorAll('dt, dd, p, summary, td')].map(e => e.textContent).filter(Boolean)"
    )


def test_the_bars_are_of_units_and_say_what_nvidias_total_leaves_out(visit):
    terms = {
        "busiest": 0.4,
        "memory_side": 0.4,
        "lead": 0.3,
        "gap": 0.3,
        "beside_operands": -0.4,
        "compute_unnamed": 0.1,
    }
    units = {"memory": 0.4, "compute": 0.1, "l2": 0.7, "l1_beyond": 0.9}
    step = kernel()["path"][0] | {"value": 0.4, "outcome": False}
    browser = visit(document(kernel(utilisation=units | terms, path=[step])), "#k0")
    browser.wait_for("document.querySelector('#detail .bars') !== null")
    remark = (
        "Memory is NVIDIA's Speed of Light total, which the verdict uses. It excludes part of L2's own throughput, which is "
        "higher here."
    )
    beyond = ["L1, in a part that the report does not list", "90.0 %"]
    assert block(browser, "How busy each unit is") == [
        *beyond, "L2", "70.0 %", "memory", "40.0 %", "compute", "10.0 %", remark,
    ]  # fmt: skip
    path = browser.run("document.querySelector('.path').textContent")
    assert "busiest unit: 40.0 %, needs ≥ 60 %; excludes L2's own throughput, 70.0 %" in path


def test_numbers_that_nvidias_sections_show_are_in_sight_and_all_others_with_what_they_mean(visit):
    occupancy = {"achieved_frac": 0.5, "waves": 2.0, "tail_frac": 0.0, "one_more_block_frac": 4 / 3, "limiters": []}
    access = {"l1_hit_frac": 0.0, "load_sectors": 16512.0, "unsplit_shared_bytes": 129.0 * 1024}
    numbers = {"occupancy": occupancy, "access": access, "utilisation": {"busiest": 0.8, "dram": 0.8}}
    browser = visit(document(kernel(**numbers)), "#k0")
    browser.wait_for("document.querySelector('#detail details') !== null")
    assert block(browser, "Occupancy and scheduling") == ["achieved occupancy", "50.0 %", "waves", "2"]
    others = block(browser, "All other quantities")
    assert others[0] == "6 more"
    rows = dict(zip(others[1::2], others[2::2], strict=True))
    assert list(rows) == [
        "busiest unit",
        "empty block slots, of those of all waves",
        "theoretical occupancy with one more block",
        "L1 hit share",
        "load sectors",
        "unsplit shared bytes",
    ]
    assert rows["empty block slots, of those of all waves"].startswith("0 % ")
    assert rows["theoretical occupancy with one more block"] == (
        "133.3 % Theoretical occupancy if one more block fitted on an SM; above 1 where its warps would exceed the warp slots."
    )
    assert rows["load sectors"].startswith("16.5 k ")
    assert rows["unsplit shared bytes"].startswith("129 KiB ")


def test_checks_are_counted_but_for_those_that_a_caveat_tells(visit):
    # `clock_drift` asks for the first, `l2_lookups` for the second; no caveat for the third, which says how two pipes share work.
    check = {"clock_drift_frac": 0.05, "l2_lookup_frac": 0.01, "fp32_over_pipe_frac": -1.0, "dram_closure_frac": None}
    browser = visit(document(kernel(check=check, caveats=["clock_drift"])), "#k0")
    browser.wait_for("document.querySelector('#detail .bars') !== null")
    assert block(browser, "Consistency checks") == ["clock drift share", "5.0 %", "1 check passes."]
