from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import get_type_hints

import pytest
from jinja2 import Environment, meta

from ncuroof.diagnosis import load_rules
from ncuroof.metrics import load_catalogue
from ncuroof.present import figures, methods, page, page_context
from ncuroof.present.kernel_detail import collect_options, off_chart_reason, plain_message
from ncuroof.present.page import payload, render_page
from ncuroof.resources import folder
from tests.present import chromium
from tests.present.documents import CEILINGS, ceiling, document, kernel, unknown_kernel, without_flop

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>alert(1)</script>",
    "{{ 7 * 7 }} ${7*7} %{x} <b>bold</b> &lt;i&gt;",
    "\u202egnitirw\u202c \x1b[31m\x00",
    "template<" + "std::pair<int, " * 700 + ">",
    "🚀 👩\u200d🚀 größe 核",
)
"""Names that would do harm as markup, as a template, as terminal escapes, as direction marks, or by their length."""


def hostile_document():
    kernels = [
        kernel(id=number, name=name, short_name=name, nvtx=[name], process={"id": 1, "name": name})
        for number, name in enumerate(HOSTILE)
    ]
    source = document()["sources"][0] | {"file": HOSTILE[0], "command_line": HOSTILE[1], "damage": HOSTILE[0]}
    device = document()["devices"][0] | {"name": HOSTILE[0], "profile": HOSTILE[2]}
    definitions = [ceiling("bandwidth", HOSTILE[0], 1e12), *CEILINGS]
    return document(*kernels, sources=[source], devices=[device], ceilings=definitions)


EMPTY_DOCUMENTS = {
    "no kernel": document(),
    "failed kernel": document(unknown_kernel()),
    "launch only": document(unknown_kernel(failed=False, grid=[1, 1, 1])),
    "no devices": document(kernel(device=None), devices=[], ceilings=[]),
    "no ceilings": document(kernel(), ceilings=[]),
    "no sources": document(kernel(source=None), sources=[]),
    "names unknown": document(kernel(name="", short_name="")),
    "blocks absent": document(
        {
            key: value
            for key, value in unknown_kernel().items()
            if key in ("id", "name", "short_name", "failed", "duration_ns", "verdict")
        }
    ),
}


def data_of(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])


def without_plotly(html):
    return html.replace(page._plotly_script(), "")


# ---------------------------------------------------------------- the file


def test_the_same_document_gives_the_same_text():
    assert render_page(document(kernel())) == render_page(document(kernel()))


def test_nothing_is_fetched():
    html = without_plotly(render_page(document(kernel())))
    assert not re.search(r"\b(src|srcset|action|poster|data)\s*=\s*[\"']?\s*(https?:|//)", html)
    assert set(re.findall(r'href="([^"]*)"', html)) <= {"data:,", "#k0"} | {
        f"#{name}" for name in ("summary", "roofline", "kernels", "detail", "methods")
    }
    assert "@import" not in html
    assert "url(" not in html


def test_the_policy_allows_the_scripts_of_the_page_and_no_other():
    html = render_page(hostile_document())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert len(scripts) == 2
    assert directives["default-src"] == "'none'"
    assert directives["script-src"].split() == [f"'sha256-{digest}'" for digest in sorted(digests, key=policy.index)]
    assert "connect-src" not in directives


def test_hostile_names_are_nowhere_markup():
    html = without_plotly(render_page(hostile_document()))
    assert "<img" not in html
    assert "<!--" not in html
    assert html.count("<script") == html.count("</script>") == 3
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_a_lone_surrogate_can_be_written_to_a_file():
    assert b"\\ud800" in render_page(document(kernel(name="\ud800" * 20, short_name="\ud800"))).encode()


def test_hostile_names_reach_the_script_as_text():
    data = data_of(render_page(hostile_document()))
    names = [data["texts"][each["name"]] for each in data["kernels"]]
    assert names[0] == HOSTILE[0]
    assert names[4] == HOSTILE[4]
    assert names[5] == HOSTILE[5]
    assert names[3] == "\\u202egnitirw\\u202c \\u001b[31m\\u0000"


@pytest.mark.parametrize("name", EMPTY_DOCUMENTS)
def test_documents_that_know_nothing_render(name):
    html = render_page(EMPTY_DOCUMENTS[name])
    assert "None" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.S).replace("None:", "")
    assert "NaN" not in re.search(r'id="data">(.*?)</script>', html, re.S)[1]


def test_a_simulated_report_says_so():
    source = document()["sources"][0]
    sentence = "simulated report: written by ncuroof, not recorded on a GPU"
    assert sentence in render_page(document(kernel(), sources=[source, source | {"simulated": True}]))
    assert sentence not in render_page(document(kernel()))


def test_damage_is_shown():
    source = document()["sources"][0] | {"damage": "3 of 9 blocks could not be read"}
    assert "3 of 9 blocks could not be read" in render_page(document(kernel(), sources=[source]))


def test_the_template_uses_what_the_context_explains_and_nothing_else():
    source = (folder("templates") / page.TEMPLATE).read_text(encoding="utf-8")
    used = meta.find_undeclared_variables(Environment(autoescape=True).parse(source))
    assert used == set(get_type_hints(page_context.PageContext)) | {"assets"}


@pytest.mark.parametrize(
    "context",
    [
        page_context.PageContext,
        page_context.SourceFacts,
        page_context.VerdictShare,
        page_context.KernelRow,
        methods.Methods,
        page.Assets,
    ],
)
def test_every_field_of_the_context_is_explained(context):
    for name, hint in get_type_hints(context, include_extras=True).items():
        assert hint.__metadata__[0], name


# ---------------------------------------------------------------- what it says


def test_kernels_come_by_recoverable_time_then_by_duration_with_the_unknown_last():
    kernels = [
        kernel(id=0, recoverable_ns=None, duration_ns=5.0),
        kernel(id=1, recoverable_ns=10.0),
        kernel(id=2, recoverable_ns=30.0),
        kernel(id=3, recoverable_ns=None, duration_ns=None),
        kernel(id=4, recoverable_ns=None, duration_ns=9.0),
    ]
    assert page_context.default_order(kernels) == [2, 1, 4, 0, 3]


def test_the_first_screen_names_the_kernels_with_the_most_recoverable_time():
    kernels = [kernel(id=number, recoverable_ns=float(number)) for number in range(5)]
    context = page_context.page_context(document(*kernels), load_rules(), {})
    assert [row.id for row in context.top_kernels] == [4, 3, 2]


def test_a_sum_that_nobody_knows_is_not_zero():
    context = page_context.page_context(document(unknown_kernel()), load_rules(), {})
    assert dict(context.totals)["GPU time"] == "—"
    assert dict(context.totals)["recoverable"] == "—"


def test_shares_of_time_are_parts_of_the_bar():
    # 300 µs and 100 µs: three quarters and one quarter of 1 000 thousandths.
    kernels = [kernel(duration_ns=300_000.0), kernel(id=1, duration_ns=100_000.0, verdict="compute")]
    shares = page_context.page_context(document(*kernels), load_rules(), {}).verdict_shares
    assert [(part.offset, part.width, part.share) for part in shares] == [
        ("0.0", "750.0", "75.0 %"),
        ("750.0", "250.0", "25.0 %"),
    ]


def test_missing_counters_are_collected_by_one_line():
    options = ["--metrics a.sum,b.sum", "--section S", "--metrics b.sum (c.sum on chip 12.0)", "--section S", "--section T"]
    assert collect_options(options) == "--section S --section T --metrics a.sum,b.sum"
    assert collect_options([]) == ""


def test_links_in_nvidias_messages_become_their_text():
    message = "See the @url:Guide:https://docs.example.com/a#b@ and @section:WarpStateStats:Warp State@."
    assert plain_message(message) == "See the Guide and Warp State."


def test_a_disagreement_with_nvidias_rule_is_said_and_private_paths_are_not():
    html = without_plotly(render_page(document(kernel())))
    assert "NVIDIA's Speed of Light rule reads this kernel as latency-bound, ncuroof as memory-bound" in html
    assert "/home/someone" not in html


def test_long_texts_are_stored_once():
    kernels = [kernel(id=number) for number in range(50)]
    html = render_page(document(*kernels))
    assert html.count("a share of the duration") == 1
    assert html.count(kernels[0]["name"].replace("<", "\\u003c")) == 1


def test_a_further_kernel_adds_little_to_the_page():
    one, many = (len(render_page(document(*[kernel(id=number) for number in range(n)]))) for n in (1, 101))
    assert (many - one) / 100 < 4000


# ---------------------------------------------------------------- the chart


def test_only_positive_numbers_become_dots():
    for intensity, rate in ((0.0, 1e12), (None, 1e12), (0.5, 0.0), (float("inf"), 1e12)):
        point = kernel()["points"][0] | {"intensity_flop_per_byte": intensity, "flop_per_s": rate}
        assert figures.dots(kernel(points=[point])) == {}


def test_the_first_dot_is_of_the_precision_that_takes_longest():
    # 1 TFLOP/s of a 10 TFLOP/s peak is a tenth of the time; 0.5 of a 1 TFLOP/s peak is half of it.
    slow = {"flop": 5e7, "flop_per_s": 5e11, "peak_flop_per_s": 1e12, "frac": 0.5, "definition": "", "reliable": True}
    point = kernel()["points"][0]
    both = kernel(
        work=kernel()["work"] | {"fp64": slow}, points=[point, point | {"precision": "fp64", "flop_per_s": 5e11}]
    )
    assert [each["precision"] for each in figures.dots(both)["dram"]] == ["fp64", "fp32"]


def test_roofs_are_those_of_the_precisions_used_and_a_slope_for_each_level():
    chart = figures.chart(CEILINGS, [kernel()])
    assert [(roof["kind"], roof["short"], roof["source"]) for roof in chart["roofs"]] == [
        ("bandwidth", "DRAM", "counters"),
        ("bandwidth", "L2", "counters"),
        ("compute", "FP32", "counters"),
        ("bandwidth", "DRAM datasheet", "datasheet"),
        ("compute", "FP32 datasheet", "datasheet"),
    ]
    assert chart["sources"] == [["counters", True], ["datasheet", False]]


def test_a_slope_is_bandwidth_times_intensity_up_to_the_peak():
    dram = figures.chart(CEILINGS, [kernel()])["roofs"][0]
    assert dram["y"][0] == pytest.approx(2.5e12 * dram["x"][0], rel=1e-4)
    # It ends at its ridge: 1e13 FLOP/s / 2.5e12 B/s = 4 FLOP/B.
    assert (dram["x"][1], dram["y"][1]) == (4.0, 1e13)


def test_a_peak_begins_where_the_steepest_slope_meets_it():
    # 1e13 FLOP/s / 5e12 B/s (L2) = 2 FLOP/B.
    fp32 = figures.chart(CEILINGS, [kernel()])["roofs"][2]
    assert (fp32["x"][0], fp32["y"]) == (2.0, [1e13, 1e13])


def test_roofs_of_the_same_height_share_a_line():
    ceilings = [ceiling("bandwidth", "l1", 1e13), ceiling("bandwidth", "shared", 1e13)]
    assert [roof["label"] for roof in figures.chart(ceilings, [kernel()])["roofs"]] == ["L1, shared 10.0 TB/s"]


def test_the_range_holds_every_dot_and_every_ridge():
    far = kernel(points=[kernel()["points"][0] | {"intensity_flop_per_byte": 1e-4, "flop_per_s": 1e14}])
    chart = figures.chart(CEILINGS, [kernel(), far])
    assert chart["x"]["range"][0] < -4
    assert chart["x"]["range"][1] > 0.6  # the ridge of DRAM: log10(4)
    assert chart["y"]["range"][1] > 14


def test_ticks_are_round_numbers_with_units():
    ticks = figures.chart(CEILINGS, [kernel()])["y"]["ticks"]
    by_value = dict(zip(ticks["values"], ticks["fine"], strict=True))
    assert by_value[1e12] == "1 TFLOP/s"
    assert by_value[5e11] == "500 GFLOP/s"
    assert {label for label in ticks["coarse"] if label} <= set(ticks["fine"])


def test_the_area_of_a_dot_grows_with_the_duration():
    least, quarter, longest = figures.dot_sizes_px([None, 25.0, 100.0])
    assert longest - least == pytest.approx(2 * (quarter - least), abs=0.2)


def test_a_kernel_without_a_dot_says_why():
    assert off_chart_reason(kernel()) is None
    assert off_chart_reason(without_flop()) == "no FLOPs"
    assert off_chart_reason(kernel(points=[])) == "bytes not collected"
    assert off_chart_reason(kernel(points=[], work={})) == "FLOPs not collected"
    assert off_chart_reason(unknown_kernel()) == "profiling failed"


def test_the_payload_has_a_chart_for_every_device():
    two = document(kernel(), kernel(id=1, device=1))
    charts = payload(two, load_rules(), load_catalogue())["charts"]
    assert [(chart["device"], len(chart["roofs"])) for chart in charts] == [(0, 5), (1, 0)]


# ---------------------------------------------------------------- in a browser


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


@pytest.mark.browser
def test_the_page_opens_from_disk_without_a_complaint_or_a_request(visit):
    browser = visit(three_kernels())
    browser.wait_for("document.querySelectorAll('#chart .point').length > 0")
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert len([url for url in browser.requests if url.startswith("file:")]) == 1


@pytest.mark.browser
def test_the_chart_has_a_trace_for_every_verdict_with_dots(visit):
    assert traces(visit(three_kernels())) == [["memory-bound", 1], ["compute-bound", 1]]


@pytest.mark.browser
def test_kernels_without_flop_are_listed_below_the_chart(visit):
    assert visit(three_kernels()).run("document.getElementById('off-chart').textContent").count("gamma") == 1


@pytest.mark.browser
def test_the_datasheets_roofs_can_be_switched_on(visit):
    browser = visit(three_kernels())
    count = "document.getElementById('chart').data.filter(t => t.mode === 'lines').length"
    assert browser.run(count) == 3
    browser.run("document.querySelector('input[value=datasheet]').click()")
    assert browser.run(count) == 5


@pytest.mark.browser
def test_the_level_of_the_dots_can_be_chosen(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=l2]').click()")
    assert browser.run("document.getElementById('chart').data.find(t => t.name === 'memory-bound').x") == [0.25]


@pytest.mark.browser
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
    assert min(right - left for left, right in zip(centres, centres[1:], strict=False)) > 60


@pytest.mark.browser
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


@pytest.mark.browser
def test_rows_are_filtered_by_name_and_verdict(visit):
    browser = visit(three_kernels())
    browser.run("{const i = document.getElementById('name-filter'); i.value = 'ALP'; i.dispatchEvent(new Event('input'))}")
    assert shown_names(browser) == ["alpha"]
    assert browser.run("document.getElementById('n-shown').textContent") == "1 of 3"
    browser.run(
        "{const i = document.getElementById('name-filter'); i.value = ''; i.dispatchEvent(new Event('input'));"
        "const s = document.getElementById('verdict-filter'); s.value = 'latency'; s.dispatchEvent(new Event('change'))}"
    )
    assert shown_names(browser) == ["gamma"]


@pytest.mark.browser
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


@pytest.mark.browser
def test_a_selected_kernel_shows_its_points_of_all_levels_joined(visit):
    browser = visit(three_kernels(), "#k10")
    joined = browser.run("document.getElementById('chart').data.filter(t => t.mode === 'lines+markers+text').map(t => t.x)")
    assert joined == [[0.5, 0.25]]


@pytest.mark.browser
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


@pytest.mark.browser
@pytest.mark.parametrize("name", ["no kernel", "failed kernel", "no devices", "blocks absent"])
def test_documents_that_know_nothing_open(visit, name):
    browser = visit(EMPTY_DOCUMENTS[name])
    assert browser.complaints == []
    n_rows = len(EMPTY_DOCUMENTS[name]["kernels"])
    assert browser.run("document.getElementById('n-shown').textContent") == f"{n_rows} of {n_rows}"


@pytest.mark.browser
def test_a_phone_scrolls_down_and_never_sideways(visit):
    browser = visit(three_kernels(), width=390, height=844)
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
def test_the_chart_follows_the_colour_scheme(visit):
    browser = visit(three_kernels())
    ink = "document.getElementById('chart').layout.font.color"
    assert browser.run(ink) == "#1a1e22"
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.wait_for(f"{ink} === '#e3e7ea'", seconds=5)
