"""The roofline chart in a real browser: where dots lie is read off the labels of the ticks, what they say by pointing at them."""

from __future__ import annotations

import cmath
import itertools
import math
import re

import pytest

from ncuroof.present.page.render import render_page
from tests.present.documents import (
    CEILINGS,
    INSTRUCTION_CEILINGS,
    ceiling,
    document,
    kernel,
    three_kernels,
    weighted_document,
    without_flop,
)
from tests.present.drawn_chart import TICKS, axes, drag, place, point_at

pytestmark = pytest.mark.browser


def strip(browser):
    return browser.run(f"{TICKS}.filter(t => t[0].startsWith('No dot')).map(t => t[0])")


def choose(browser, value):
    browser.run(f"document.querySelector('#roofline input[value={value}]').click()")


def roofs(browser):
    return browser.run("document.querySelectorAll('#chart .roof').length")


def labels(browser, kind):
    return browser.run(f"[...document.querySelectorAll('#chart .{kind}')].map(t => t.textContent)")


def test_a_dot_lies_at_its_intensity_and_rate_and_tells_of_its_kernel(visit):
    browser = visit(three_kernels())
    tooltip = point_at(browser, *place(browser, 0.5, 1e12))
    assert tooltip[0] in ("#10 alpha", "#11 beta")
    assert tooltip[2] == "DRAM, FP32: 0.500 FLOP/B, 1.00 TFLOP/s, 80.0 % of its roof"
    assert point_at(browser, *place(browser, 5, 1e12)) == []


def test_what_is_told_of_a_dot(visit):
    tooltip = point_at(
        browser := visit(document(kernel(id=10, short_name="alpha", recoverable_ns=2e4))), *place(browser, 0.5, 1e12)
    )
    assert tooltip == [
        "#10 alpha",
        "100 µs, 100 % of GPU time; memory-bound, DRAM",
        "DRAM, FP32: 0.500 FLOP/B, 1.00 TFLOP/s, 80.0 % of its roof",
        "above the roofline: 20.0 µs",
    ]


def test_shares_are_of_what_was_recorded_where_not_all_of_the_run_was(visit):
    run = weighted_document()
    run["summary"]["weighting"]["covered_frac"] = 0.5
    browser = visit(run)
    browser.run("document.getElementById('chart').focus()")
    times = {}
    for _ in range(3):
        browser.press("ArrowRight")
        name, time = browser.run("[...document.querySelectorAll('.tip div')].slice(0, 2).map(d => d.textContent)")
        times[name] = time
    # 100 of 500 µs that were recorded, of a run of 1000
    assert times["#3 gamma"] == "100 µs, 20.0 % of profiled GPU time; memory-bound, DRAM"


def test_where_another_roof_sets_the_roofline_time_a_dot_says_which(visit):
    # 80 µs of 100 are what its DRAM traffic takes, and the dot's roof; 90 µs are XU's.
    for by, least_ns, share in (("dram", 8e4, ""), ("xu", 9e4, "; roofline time is 90.0 % of its duration, set by XU")):
        own = kernel(id=10, recoverable_ns=2e4, min_time_ns=least_ns, min_time_frac=least_ns / 1e5, min_time_by=by)
        browser = visit(document(own), "#k10")
        assert point_at(browser, *place(browser, 0.5, 1e12))[3] == f"above the roofline: 20.0 µs{share}"
        label = {"dram": "DRAM", "xu": "XU"}[by]
        facts = browser.run("document.querySelector('#detail .pairs').textContent")
        assert f"roofline time{least_ns / 1000:.1f} µs, set by {label}" in facts


def integer_kernel(**changes):
    """Return the kernel with its work in INT8 instead of FP32."""
    own = kernel(dominant_precision="tensor_int8", **changes)
    own["work"] = {"tensor_int8": own["work"]["fp32"]}
    own["points"] = [point | {"precision": "tensor_int8"} for point in own["points"]]
    return own


def test_work_of_integers_is_in_operations(visit):
    int8 = [*CEILINGS[:3], ceiling("compute", "tensor_int8", 1e13)]
    browser = visit(document(integer_kernel(), ceilings=int8), "#k0")
    texts = browser.run("[...document.querySelectorAll('#chart text')].map(t => t.textContent)")
    assert "INT8 tensor 10.0 TOP/s" in texts
    assert "OP per byte of DRAM" in texts
    assert "1 TOP/s" in texts
    page = browser.run("document.querySelector('main').textContent")
    assert "DRAM OP/B" in page
    browser.wait_for("document.querySelector('#detail .pairs') !== null")
    assert "1.00 TOP/s" in browser.run("document.getElementById('detail').textContent")
    assert "FLOP/s" not in browser.run("document.getElementById('detail').textContent")
    assert browser.run("document.getElementById('methods').textContent.includes('10.0 TOP/s')")


def test_an_axis_of_both_kinds_of_work_names_both(visit):
    both = [*CEILINGS[:4], ceiling("compute", "tensor_int8", 2e13), ceiling("compute", "tensor_fp8", 2e13)]
    kernels = [kernel(id=0), integer_kernel(id=1), integer_kernel(id=2)]
    kernels[2]["work"] = {"tensor_fp8": kernels[2]["work"]["tensor_int8"]}
    browser = visit(document(*kernels, ceilings=both), width=1100)  # in one column, where the chart is wide enough
    texts = browser.run("[...document.querySelectorAll('#chart text')].map(t => t.textContent)")
    assert {"FLOP/s or OP/s", "1 T", "FLOP or OP per byte of DRAM", "FP32 10.0 TFLOP/s"} <= set(texts)
    assert "INT8 tensor, FP8 tensor 20.0 TFLOP/s or TOP/s" in texts


def test_a_click_on_a_dot_opens_its_kernel_and_joins_its_points(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    point_at(browser, *place(browser, 0.5, 1e12), click=True)
    browser.wait_for("document.getElementById('detail-title').textContent === '#10 alpha'")
    assert browser.run("location.hash") == "#k10"
    browser.wait_for("document.querySelector('#chart .selected') !== null")
    points = browser.run("document.querySelector('#chart .selected polyline').getAttribute('points')")
    drawn = [tuple(map(float, pair.split(","))) for pair in points.split()]
    assert len(drawn) == 2
    for one, x in zip(drawn, (0.25, 0.5), strict=True):  # at L2 and at DRAM
        assert one == pytest.approx(place(browser, x, 1e12), abs=0.5)
    assert sorted(browser.run("[...document.querySelectorAll('#chart .selected text')].map(t => t.textContent)")) == [
        "DRAM",
        "L2",
    ]


def test_kernels_without_flop_are_in_the_strip_by_their_utilisation(visit):
    browser = visit(three_kernels())
    assert strip(browser) == ["No dot here (1, 33.3 % of GPU time): by utilisation of the busier side"]
    ticks = browser.run(TICKS)
    marks = {label: px for label, px, _, anchor in ticks if anchor == "middle" and label.endswith("%")}
    (lane,) = [py for label, _, py, anchor in ticks if anchor == "end" and label == "latency"]
    tooltip = point_at(browser, marks["0 %"] + 0.8 * (marks["100 %"] - marks["0 %"]), lane)
    assert tooltip[0] == "#12 gamma"
    assert tooltip[2] == "memory 80.0 %, compute 20.0 %; no FLOPs"


@pytest.mark.parametrize("width", [320, 390, 1400])
def test_no_text_of_the_axes_and_the_strip_is_cut_off(visit, width):
    ceilings = [ceiling("bandwidth", "dram", 1e10), ceiling("compute", "fp32", 1e13)]  # the ridge is at 1000 FLOP/B
    browser = visit(document(kernel(id=10), without_flop(id=12), ceilings=ceilings), width=width)
    drag(browser, place(browser, 9, 3e11), place(browser, 1010, 2e13))  # 1000 is at the end
    chart = browser.run("(b => [b.left, b.right])(document.getElementById('chart').getBoundingClientRect())")
    texts = browser.run(
        "[...document.querySelectorAll('#chart .back text:not(.ridge)')].map(t => ["
        "t.textContent, t.getBoundingClientRect().left, t.getBoundingClientRect().right])"
    )
    assert {"1000", "100 %"} <= {text for text, _, _ in texts}
    assert "No dot here (1, 50.0 % of GPU time): by utilisation of the busier side" in " ".join(
        text for text, _, _ in texts
    )
    assert [text for text, left, right in texts if left < chart[0] or right > chart[1]] == []
    shares = [(left, right) for text, left, right in texts if text.endswith(" %")]
    assert all(one[1] + 3 < other[0] for one, other in itertools.pairwise(shares))


def test_the_datasheets_roofs_can_be_switched_on_and_those_of_the_counters_off(visit):
    browser = visit(three_kernels())
    assert roofs(browser) == 3
    choose(browser, "datasheet")
    assert roofs(browser) == 5
    assert browser.run("document.querySelectorAll('#chart .roof[stroke-dasharray]').length") == 2
    choose(browser, "counters")
    # the data sheet has no roof of L2
    assert roofs(browser) == 2


def test_the_ridge_of_the_chosen_level_is_marked_where_it_is(visit):
    browser = visit(three_kernels())
    # 10 Tflop/s over 2.5 TB/s
    assert labels(browser, "ridge") == ["ridge 4"]
    x = browser.run("+document.querySelector('#chart .back circle').getAttribute('cx')")
    assert x == pytest.approx(place(browser, 4, 1e13)[0], abs=0.5)
    choose(browser, "l2")
    assert labels(browser, "ridge") == ["ridge 2"]


BOXES = (
    "[...document.querySelectorAll('#chart .{}')].map(t => t.getBoundingClientRect())"
    ".map(b => [b.left, b.top, b.right, b.bottom])"
)


def test_labels_of_ridges_that_lie_close_are_one_above_the_other(visit):
    peaks = [ceiling("compute", "fp32", 1e13), ceiling("compute", "fp64", 5e12)]
    work = kernel()["work"]
    shown = kernel(id=10, work=work | {"fp64": work["fp32"]})
    browser = visit(document(shown, ceilings=[ceiling("bandwidth", "dram", 2.5e12), *peaks]), width=390)
    assert labels(browser, "ridge") == ["ridge 2", "ridge 4"]
    one, other = browser.run(BOXES.format("ridge"))
    assert one[2] > other[0]  # they would run into each other
    assert other[3] <= one[1] + 1


def test_the_name_of_a_dot_on_a_roof_stands_beside_the_line_where_there_is_room(visit):
    point = kernel()["points"][0] | {"intensity_flop_per_byte": 0.4, "flop_per_s": 1e12, "roof_frac": 1.0}
    ceilings = [ceiling("bandwidth", "dram", 2.5e12), ceiling("compute", "fp32", 1e13)]
    short = kernel(id=10, short_name="alpha", points=[point], duration_ns=1e5)
    far_away = kernel(id=11, points=[point | {"intensity_flop_per_byte": 400.0}], duration_ns=1e6)
    browser = visit(document(short, far_away, ceilings=ceilings))
    (place_of_alpha,) = (at for at, name in enumerate(labels(browser, "dot-label")) if name == "alpha")
    left, top, right, bottom = browser.run(BOXES.format("dot-label"))[place_of_alpha]
    line = browser.run(
        "(l => { const m = l.getScreenCTM(); return [['x1','y1'],['x2','y2']].map(([x, y]) => "
        "[m.a * l.getAttribute(x) + m.e, m.d * l.getAttribute(y) + m.f]); })(document.querySelector('#chart .roof'))"
    )
    (x1, y1), (x2, y2) = line
    heights = [y1 + (y2 - y1) / (x2 - x1) * (x - x1) for x in (left, right)]
    assert max(heights) < top or bottom < min(heights)


def test_the_level_of_the_dots_can_be_chosen(visit):
    browser = visit(three_kernels())
    choose(browser, "l2")
    assert point_at(browser, *place(browser, 0.25, 1e12))[2].startswith("L2, FP32: 0.250 FLOP/B")


def test_the_range_of_alike_launches_is_a_line_through_their_dot(visit):
    alike = [kernel(id=number) for number in range(2)]
    alike[1]["points"] = [point | {"flop_per_s": point["flop_per_s"] / 2} for point in alike[1]["points"]]
    group = document(alike[0])["groups"][0] | {"launches": [0, 1], "n_launches": 2}
    browser = visit(document(*alike, groups=[group]))
    bar = browser.run(
        "(l => ['x1', 'y1', 'x2', 'y2'].map(a => +l.getAttribute(a)))(document.querySelector('#chart .spread'))"
    )
    assert bar == pytest.approx([*place(browser, 0.5, 5e11), *place(browser, 0.5, 1e12)], abs=0.5)


def test_alike_launches_whose_longest_has_no_dot_are_placed_by_the_longest_that_has(visit):
    alike = [kernel(id=1, duration_ns=1e5), without_flop(id=2, duration_ns=3e5), kernel(id=3, duration_ns=2e5)]
    alike[2]["points"] = [point | {"flop_per_s": point["flop_per_s"] / 2} for point in alike[2]["points"]]
    group = document(alike[1])["groups"][0] | {"launches": [1, 2, 3], "n_launches": 3, "duration_ns": 6e5}
    browser = visit(document(*alike, groups=[group]))
    assert point_at(browser, *place(browser, 0.5, 5e11))[0].startswith("#2 ")


def chosen_view(browser):
    return browser.run("document.querySelector('#chart-views :checked').value")


def test_the_instruction_roofline_places_kernels_without_flop(visit):
    browser = visit(three_kernels())
    assert chosen_view(browser) == "flop"
    choose(browser, "instruction")
    assert strip(browser) == []
    assert labels(browser, "dot-label")
    assert "warp instructions per transaction" in browser.run("document.querySelector('#chart .back').textContent")
    assert browser.run("document.getElementById('chart').getAttribute('aria-label')").startswith(
        "Instruction roofline of 3"
    )
    assert point_at(browser, *place(browser, 0.8, 5e10))[2].startswith("DRAM: 0.800 inst/TXN, 50.0 GIPS")
    assert browser.complaints == []


def test_the_title_of_the_horizontal_axis_is_not_cut_off(visit):
    shared = kernel()["instructions"]
    shared["points"] = [shared["points"][0] | {"level": "shared"}]
    ceilings = [ceiling("bandwidth", "shared", 1e11), INSTRUCTION_CEILINGS[3]]
    browser = visit(document(without_flop(id=1, instructions=shared), instruction_ceilings=ceilings), width=320)
    title = "[...document.querySelectorAll('#chart text')].find(t => t.textContent.includes('transaction'))"
    assert browser.run(f"{title}.textContent") == "warp instructions per transaction of shared memory"
    left, right = browser.run(f"(b => [b.left, b.right])({title}.getBoundingClientRect())")
    chart = browser.run("(b => [b.left, b.right])(document.getElementById('chart').getBoundingClientRect())")
    assert chart[0] <= left
    assert right <= chart[1] + 1


def test_the_views_are_switched_by_key_and_keep_the_focus(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('input[value=flop]').focus()")
    for view, reached in (("instruction", "GIPS"), ("bars", None), ("flop", "FLOP/s")):
        browser.press("ArrowRight")
        assert chosen_view(browser) == view
        assert browser.run("document.activeElement.value") == view
        if reached:
            assert reached in browser.run("document.querySelector('#chart .back').textContent")
    name = "[...document.querySelectorAll('#chart-views label')].map(label => label.textContent)"
    assert browser.run(name) == ["FLOP roofline", "Instruction roofline", "Utilisation"]


def test_the_view_of_utilisations_has_a_bar_per_resource_and_an_average_by_time(visit):
    busy = {"memory": 0.8, "compute": 0.2, "dram": None}
    idle = {"memory": 0.4, "compute": None, "dram": None}
    kernels = [
        kernel(id=0, short_name="alpha", duration_ns=3e5, utilisation=busy),
        kernel(id=1, short_name="beta", duration_ns=1e5, utilisation=idle),
    ]
    browser = visit(document(*kernels))
    choose(browser, "bars")
    rows = browser.run("[...document.querySelectorAll('#bars tr')].map(tr => [...tr.cells].map(c => c.textContent))")
    assert rows == [
        ["Kernel", "Share", "memory", "compute"],
        [
            "all in view, time-weighted",
            "",
            "70.0 %",
            "20.0 %",
        ],  # (0.8 · 3 + 0.4) / 4; compute is known of the first alone
        ["alpha", "75.0 %", "80.0 %", "20.0 %"],
        ["beta", "25.0 %", "40.0 %", "—"],
    ]
    width = browser.run("document.querySelector('#bars tbody tr:nth-child(2) .meter-fill').style.width")
    assert width == "80%"
    assert browser.run("document.getElementById('chart').hidden")


def test_the_instruction_roofline_opens_where_no_kernel_has_flop(visit):
    browser = visit(document(without_flop(id=12, short_name="gamma")))
    assert chosen_view(browser) == "instruction"
    choose(browser, "flop")
    assert "no kernel of this GPU has FLOPs" in browser.run("document.getElementById('chart-note').textContent")
    assert "gamma" in browser.run("document.getElementById('bars').textContent")


def test_the_level_that_was_chosen_stays_from_one_roofline_to_the_other(visit):
    browser = visit(three_kernels())
    choose(browser, "l2")
    choose(browser, "datasheet")
    choose(browser, "instruction")
    assert browser.run("document.querySelector('input[name=level]:checked').value") == "l2"
    assert browser.run("document.querySelector('input[value=datasheet]').checked")
    assert roofs(browser) == 5


def test_dragging_looks_closer_and_a_double_click_shows_all(visit):
    browser = visit(document(kernel(id=10, short_name="alpha")))
    whole = axes(browser)
    px, py = place(browser, 0.5, 1e12)
    drag(browser, (px - 120, py - 90), (px + 120, py + 90))
    assert axes(browser) != whole
    centre = place(browser, 0.5, 1e12)
    box = browser.run(
        "(r => ['x', 'y', 'width', 'height'].map(a => +r.getAttribute(a)))(document.querySelector('#chart clipPath rect'))"
    )
    assert centre == pytest.approx((box[0] + box[2] / 2, box[1] + box[3] / 2), abs=1.5)
    assert point_at(browser, *centre)[0] == "#10 alpha"
    browser.run("document.getElementById('chart').dispatchEvent(new MouseEvent('dblclick'))")
    assert axes(browser) == whole


def comparison(after):
    """Return the comparison that led to a run: its first kernel did 0.05 Tflop/s at 0.1 FLOP/B before, in twice the time."""
    before = {
        "ids": [0],
        "name": "slow()",
        "short_name": "slow",
        "grid": [1],
        "block": [1],
        "range": "",
        "n_launches": 1,
        "duration_ns": 2e5,
        "verdict": "latency",
        "limiter": "tail",
        "intensity_flop_per_byte": 0.1,
        "flop_per_s": 5e10,
    }
    now = before | {"ids": [after["kernels"][0]["id"]], "short_name": "alpha", "duration_ns": 1e5}
    match = {
        "before": [before],
        "after": [now],
        "how": "renamed",
        "sureness": "likely",
        "why": [],
        "outcome": "faster",
        "code": "unknown",
        "code_changes": [],
        "sentence": "2× faster: DRAM bytes −50.0 %",
        "is_significant": True,
        "change_frac": -0.5,
        "noise_frac": 0.02,
        "duration_ns": [2e5, 1e5],
        "mean_ns": [2e5, 1e5],
        "n_to_settle": None,
        "counted_ns": None,
        "roof_frac": [0.5, 0.8],
        "n_launches": [1, 1],
        "is_same_work_in_all": False,
        "is_launched_otherwise": False,
        "work_of": None,
        "work_ratio": None,
        "recoverable_ns": [1.5e5, 2e4],
        "verdict": ["latency", "memory"],
        "changes": [],
        "lines": [],
        "findings": None,
        "obstacle": None,
        "is_counted_otherwise": False,
    }
    side = {
        "label": "run",
        "gpus": ["NVIDIA Imaginary"],
        "n_kernels": 1,
        "n_failed": 0,
        "damage": None,
        "duration_ns": 1e5,
        "sm_clock_hz": None,
        "step_ns": None,
        "unclear_ns": 0.0,
        "is_counted": False,
        "is_simulated": False,
    }
    summary = {
        "duration_change_frac": -0.5,
        "noise_frac": 0.02,
        "obstacle": None,
        "matched_change_frac": -0.5,
        "matched_noise_frac": 0.02,
        "n_matches": 1,
        "n_faster": 1,
        "n_slower": 0,
        "n_ambiguous": 0,
        "n_unknown": 0,
        "n_at_other_clocks": 0,
        "n_counted_otherwise": 0,
        "n_added": 0,
        "n_removed": 0,
        "n_not_recorded_before": 0,
        "n_not_recorded_after": 0,
        "is_of_other_steps": False,
        "is_per_step": False,
    }
    return {
        "before": side | {"label": "runs/run-a.ncu-rep"},
        "after": side | {"label": "runs/run-b.ncu-rep"},
        "summary": summary,
        "is_chosen": False,
        "comparable": {"time": True, "reasons": [], "remarks": []},
        "matches": [match],
        "added": [],
        "removed": [],
        "candidates": [],
        "not_recorded_before": [],
        "not_recorded_after": [],
        "gates": [{"gate": "time:+5%", "has_passed": True, "reasons": ["it fell"]}],
    }


def test_an_arrow_leads_from_where_a_kernel_was(browser, tmp_path):
    after = three_kernels()
    path = tmp_path / "page.html"
    path.write_text(render_page(after, comparison=comparison(after)), encoding="utf-8")
    browser.open(path)
    browser.wait_for("document.querySelector('#chart .arrow') !== null")
    start = browser.run("(l => ['x1', 'y1'].map(a => +l.getAttribute(a)))(document.querySelector('#chart .arrow'))")
    assert start == pytest.approx(place(browser, 0.1, 5e10), abs=0.5)
    end = browser.run("(l => ['x2', 'y2'].map(a => +l.getAttribute(a)))(document.querySelector('#chart .arrow'))")
    assert math.dist(end, place(browser, 0.5, 1e12)) < 20  # at the rim of the dot
    cells = "[...document.querySelectorAll('#changes tbody tr')].map(tr => [...tr.cells].map(c => c.textContent))"
    assert browser.run(cells) == [
        [
            "slow → alpha",
            "200 µs",
            "100 µs",
            "150 µs → 20.0 µs",
            "2× faster: DRAM bytes −50.0 %Matched as renamed kernel (likely)",
        ]
    ]
    assert browser.run("document.title") == "run-b.ncu-rep against run-a.ncu-rep – ncuroof"
    assert browser.run("document.querySelector('nav a').textContent") == "Changes"
    assert browser.run("document.querySelector('main section').id") == "changes"
    assert browser.run("document.querySelector('#changes .headline').textContent") == "The run is 2× faster"
    assert browser.run("[...document.querySelectorAll('#changes dt')].map(e => e.textContent)") == ["Before", "After"]
    paragraphs = browser.run("[...document.querySelectorAll('#changes > p')].map(p => p.textContent)")
    assert all(not line[0].islower() for line in paragraphs)
    browser.run("document.getElementById('changed-only').click()")
    assert browser.run("document.getElementById('in-view').textContent").startswith("1 of 3 launches")
    choose(browser, "l2")
    assert browser.run("document.querySelector('#chart .arrow')") is None
    assert browser.complaints == []


def test_changed_only_needs_no_arrows(browser, tmp_path):
    after = three_kernels()
    found = comparison(after)
    (match,) = found["matches"]
    # The first kernel had no FLOPs before and was split into two; the third was added.
    match["before"][0] |= {"flop_per_s": None}
    ids = [kernel["id"] for kernel in after["kernels"]]
    match["after"].append(match["after"][0] | {"ids": ids[1:2]})
    found["added"] = [match["after"][0] | {"ids": ids[2:]}]
    path = tmp_path / "page.html"
    path.write_text(render_page(after, comparison=found), encoding="utf-8")
    browser.open(path)
    browser.wait_for("document.getElementById('changed-only') !== null")
    browser.run("document.getElementById('changed-only').click()")
    assert browser.run("document.getElementById('in-view').textContent").startswith("3 of 3 launches")
    assert browser.run("document.querySelector('#chart .arrow')") is None
    found["added"], found["matches"] = [], [match | {"is_significant": False, "verdict": ["memory", "memory"]}]
    path.write_text(render_page(after, comparison=found), encoding="utf-8")
    browser.open(path)
    assert browser.run("document.getElementById('changed-only')") is None
    assert browser.complaints == []


def test_keys_walk_over_the_dots_by_time_and_open_one(visit):
    browser = visit(three_kernels())
    browser.run("document.getElementById('chart').focus()")
    tip_title = "document.querySelector('.tip div').textContent"
    for name in ("#11 beta", "#12 gamma", "#10 alpha", "#11 beta"):
        browser.press("ArrowRight")
        assert browser.run(tip_title) == name
    browser.press("Enter")
    browser.wait_for("document.getElementById('detail-title').textContent === '#11 beta'")


def test_the_gpu_can_be_chosen_and_a_link_goes_to_its_own(visit):
    devices = [
        {"name": name, "compute_capability": "9.0", "sm_count": 1, "dram_bytes_per_s": None, "profile": None}
        for name in ("Here", "There")
    ]
    both = [ceiling("bandwidth", "dram", 1e12, device=number) for number in (0, 1)]
    kernels = [kernel(id=0, short_name="alpha"), kernel(id=1, short_name="beta", device=1)]
    browser = visit(document(*kernels, devices=devices, ceilings=both), "#k1")
    browser.wait_for("document.getElementById('detail-title').textContent === '#1 beta'")
    assert browser.run("document.getElementById('device-filter').value") == "1"
    assert browser.run("document.getElementById('in-view').textContent").startswith("1 of 2 launches")
    browser.run(
        "{const s = document.getElementById('device-filter'); s.value = '0'; s.dispatchEvent(new Event('change'))}"
    )
    browser.wait_for("document.querySelector('#chart .dot-label')?.textContent === 'alpha'")


def boxes(browser, kind):
    return browser.run(
        f"[...document.querySelectorAll('#chart .{kind}')].map(e => {{"
        "const b = e.getBoundingClientRect(); return [e.textContent, b.left, b.right, b.top, b.bottom]})"
    )


def test_labels_of_roofs_do_not_meet(visit):
    sources = [ceiling("bandwidth", name, per_s) for name, per_s in (("dram", 2e12), ("l2", 2.1e12), ("l1", 2.2e12))]
    peaks = [ceiling("compute", "fp32", 1e13), ceiling("compute", "fp64", 1.05e13)]
    work = kernel()["work"]["fp32"]
    browser = visit(document(kernel(work={"fp32": work, "fp64": work}), ceilings=sources + peaks))
    found = boxes(browser, "roof-label")
    assert len(found) == 5
    one, other = (box for box in found if box[0].startswith("FP"))
    assert one[1] > other[2] or other[1] > one[2] or one[4] <= other[3] or other[4] <= one[3]
    transform = browser.run("document.querySelector('#chart .roof-label[transform]').getAttribute('transform')")
    along_slope = cmath.rect(1, math.radians(float(re.match(r"rotate\((\S+)", transform)[1])))
    centres = [
        complex(left + right, top + bottom) / 2 / along_slope
        for name, left, right, top, bottom in found
        if not name.startswith("FP")
    ]
    # "DRAM 2.00 TB/s" is 80 px long and not as high as 14 px.
    for one, other in itertools.combinations(centres, 2):
        assert abs((one - other).real) > 80 or abs((one - other).imag) > 14


def test_names_of_dots_meet_neither_each_other_nor_other_dots(visit):
    kernels = [kernel(id=number, short_name=f"a_kernel_with_a_name_{number}") for number in range(12)]
    for number, each in enumerate(kernels):
        each["points"] = [
            point | {"flop_per_s": 1e12 * (1 + number % 4 / 10), "intensity_flop_per_byte": 0.5 * (1 + number / 20)}
            for point in each["points"]
        ]
    browser = visit(document(*kernels))
    found = boxes(browser, "dot-label")
    assert len(found) >= 3
    for one, other in itertools.combinations(found, 2):
        assert one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] + 3 or other[4] <= one[3] + 3


def label_heights(browser):
    """Return the label and the height of its middle, for the roofs' labels."""
    return dict(
        browser.run(
            "[...document.querySelectorAll('#chart .roof-label')].map(t => [t.textContent, +t.getAttribute('y')])"
        )
    )


def test_a_flat_label_that_the_roof_above_would_cross_stands_below_its_own(visit):
    # At 150 pixels per decade the two are about 6 pixels apart, less than a label needs.
    peaks = [ceiling("compute", "tensor_bf16", 1.1e13), ceiling("compute", "tensor_bf16_slower_path", 1e13)]
    work = {"tensor_bf16": kernel()["work"]["fp32"]}
    browser = visit(document(kernel(work=work), ceilings=[ceiling("bandwidth", "dram", 2e12), *peaks]))
    heights = label_heights(browser)
    (slower,) = [py for label, py in heights.items() if "slower path" in label]
    (fastest,) = [py for label, py in heights.items() if "slower path" not in label and "BF16" in label]
    assert fastest < place(browser, 1, 1.1e13)[1] < place(browser, 1, 1e13)[1] < slower


def test_a_label_that_the_next_slope_would_cross_stands_below_its_own(visit):
    # On the chart L2 lies 0.12 decades above shared memory, and that 0.24 above DRAM.
    per_s = {"DRAM": 1.5e12, "shared": 2.6e12, "L2": 3.4e12}
    ceilings = [ceiling("bandwidth", name.lower(), value) for name, value in per_s.items()]
    browser = visit(document(kernel(), ceilings=[*ceilings, ceiling("compute", "fp32", 1e13)]))
    (low, low_px), (high, high_px) = axes(browser)[0]
    found = browser.run(
        "[...document.querySelectorAll('#chart .roof-label[transform]')]"
        ".map(t => [t.textContent.split(' ')[0], +t.getAttribute('x'), +t.getAttribute('y')])"
    )
    above = {}
    for name, px, py in found:
        intensity = low * (high / low) ** ((px - low_px) / (high_px - low_px))
        above[name] = place(browser, intensity, per_s[name] * intensity)[1] - py
    assert above["shared"] < 0 < min(above["DRAM"], above["L2"])


def crowded(peaks):
    """Return a document whose flat roofs lie close; the dots are far below them."""
    names = [name for name, _ in peaks]
    work = dict.fromkeys(names, kernel()["work"]["fp32"])
    flat = [ceiling("compute", name, per_s) for name, per_s in peaks]
    return document(kernel(id=1, work=work), ceilings=[ceiling("bandwidth", "dram", 2e12), *flat])


CROWD = [
    ("tensor_fp8", 1.979e15), ("tensor_int8", 1.9e15), ("tensor_fp8_slower_path", 1.6e15), ("tensor_bf16", 9.89e14),
    ("tensor_fp16", 9.5e14), ("tensor_bf16_slower_path", 8e14), ("tensor_tf32", 4.9e14), ("fp16", 1.3e14), ("fp32", 6.7e13),
    ("fp64", 3.4e13),
]  # fmt: skip


@pytest.mark.parametrize("width", [768, 1240])
def test_every_flat_roof_of_a_crowd_has_a_label_that_no_line_runs_through(visit, width):
    browser = visit(crowded(CROWD), width=width)
    found = boxes(browser, "roof-label")
    assert len([name for name, *_ in found if not name.startswith("DRAM")]) == len(CROWD)
    lines = browser.run(
        "[...document.querySelectorAll('#chart .roof')].map(l => l.getBoundingClientRect()).map(b => [b.left, b.right, b.top])"
    )
    edge = browser.run("document.querySelector('#chart .back rect[fill=none]').getBoundingClientRect().right")
    flat = [(left, min(right, edge), y) for left, right, y in lines if right > left][
        1:
    ]  # after DRAM's slope, as far as they are seen
    for name, left, right, top, bottom in found:
        middle = (top + bottom) / 2
        struck = [y for start, end, y in flat if start < right and left < end and abs(y - middle) < 5]
        assert name.startswith("DRAM") or not struck, name
    for one, other in itertools.combinations([box for box in found if not box[0].startswith("DRAM")], 2):
        assert one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] + 1 or other[4] <= one[3] + 1


def test_a_long_name_is_cut_shorter_rather_than_left_out(visit):
    # Two dots on one height, 30 characters of either are wider than the room between them, on a chart of 390 pixels.
    dram, *_ = kernel()["points"]
    names = ("a_kernel_with_a_name_of_forty_characters", "b_kernel_with_a_name_of_forty_characters")
    kernels = [
        kernel(
            id=at, short_name=name, duration_ns=1e5, points=[dram | {"intensity_flop_per_byte": x, "flop_per_s": 1e12}]
        )
        for at, (name, x) in enumerate(zip(names, (0.4, 4.0), strict=True))
    ]
    browser = visit(
        document(*kernels, ceilings=[ceiling("bandwidth", "dram", 4e12), ceiling("compute", "fp32", 3e13)]), width=320
    )
    shown = labels(browser, "dot-label")
    assert sorted(name[0] for name in shown) == ["a", "b"]
