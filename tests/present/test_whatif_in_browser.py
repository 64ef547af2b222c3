"""Sliders: the page's arithmetic is that of the program, and what they say and draw follows from it."""

from __future__ import annotations

import json

import pytest

import ncuroof
from ncuroof.present.page.whatif import scaling, targets
from ncuroof.resources import folder
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target, busy_times, change, parse_change, project, recorded_dram, with_recorded_dram
from tests.support import demo

pytestmark = pytest.mark.browser

WGMMA = demo.FOLDER.parent / "h100-80gb-hbm3/gemm_fp32_8192-to-gemm_int8_8192.full.ncu-repz"
"""Products whose operands tensor instructions read from shared memory themselves."""

COPY = WGMMA.with_name("copy_16.full.ncu-repz")
"""DRAM is its limit, and L2 nearly as busy."""

CHANGES = ({}, {"bytes": 0.3, "l2": 0.7, "flop": 0.4, "sm": 1.5}, {"flop": 0.5, "batch": 2.5})
GPUS = ("b200", "a100-sxm-80gb", "t4", "rtx-4090", "h200-sxm")


@pytest.fixture(scope="module")
def analysis():
    return ncuroof.read(demo.REPORT).analyse()


@pytest.mark.parametrize("report", [demo.REPORT, WGMMA, COPY], ids=["demo", "wgmma", "copy"])
def test_the_page_reckons_as_the_program_does(browser, tmp_path, report):
    analysis = ncuroof.read(report).analyse()
    document = analysis.to_dict()
    data = targets(document)
    known = [row for kernel in document["kernels"] if (row := scaling(kernel, document))]
    scripts = [(folder("templates") / name).read_text(encoding="utf-8") for name in ("format.js", "whatif.js")]
    path = tmp_path / "whatif.html"
    path.write_text(
        f"<!doctype html><meta charset='utf-8'><script>const DATA = {{}};{''.join(scripts)}</script>", encoding="utf-8"
    )
    browser.open(path)
    browser.run(f"DATA.targets = {json.dumps(data)}; 1")
    placed = analysis.roofline_tables
    profiles = with_recorded_dram(placed.profiles, recorded_dram(analysis.kernels))
    busy = busy_times(analysis.kernels, placed.work)
    for changes in CHANGES:
        after = busy
        for kind, factor in changes.items():
            after = change(after, parse_change(f"{kind}:{factor}"))
        for name in (None, *GPUS):
            gpu = -1 if name is None else data["gpus"].index(name)
            target = Target() if name is None else Target(profile_by_name(name))
            rows = project(after, profiles, [target]).to_dicts()
            own = [row for row, times in zip(rows, busy.to_dicts(), strict=True) if times["reached_frac"] is not None]
            found = browser.run(
                f"{json.dumps(known)}.map(row => projected(row, factorsByDemand({json.dumps(changes)}), {gpu}))"
            )
            for shown, row in zip(found, own, strict=True):
                if row["reason"] is not None:
                    assert shown is None
                    continue
                for key, column in (("expected", "duration_ns"), ("least", "least_ns"), ("most", "most_ns")):
                    assert shown[key] == pytest.approx(row[column], rel=1e-3), (name, changes, row["id"])
                assert (shown["limiter"], shown["isLimitAssumed"]) == (row["limiter"], row["is_limit_assumed"])


def test_a_change_that_three_digits_would_write_as_none_is_none(browser, tmp_path):
    scripts = [(folder("templates") / name).read_text(encoding="utf-8") for name in ("format.js", "whatif.js")]
    path = tmp_path / "whatif.html"
    element = "const make = () => ({}); const DATA = { targets: { resources: { dram: 'DRAM' } } };"
    path.write_text(
        f"<!doctype html><meta charset='utf-8'><script>{element}{''.join(scripts)}</script>", encoding="utf-8"
    )
    browser.open(path)
    sentence = "new WhatIf([], () => {{}}).sentence({{ expected: {0}, least: {0}, most: {0}, limiter: 'dram' }}, 1e6)"
    said = [browser.run(sentence.format(expected)) for expected in (0.996e6, 1.004e6, 0.99e6, 1.01e6)]
    changes = [text.split("; ")[1].removesuffix(". Busiest resource: DRAM.") for text in said]
    assert changes == ["as recorded", "as recorded", "1.01× faster", "1.01× slower"]


def slide(browser, name, doublings):
    browser.run(
        f"(() => {{ const input = document.querySelector('.sliders input[name={name}]'); input.value = {doublings};"
        " input.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    return browser.run("document.querySelector('.sliders + p').textContent")


def test_a_slider_says_what_it_gives_and_moves_the_dot(visit, analysis):
    browser = visit(analysis.to_dict(), "#k11")  # the optimizer: 652 µs at 90 % of DRAM
    browser.wait_for("document.querySelector('.sliders') !== null")
    assert browser.run("document.querySelector('.sliders + p').textContent").startswith(
        "Expected: 652 µs; as recorded."
    )
    assert browser.run("document.querySelectorAll('#chart .imagined').length") == 0
    said = slide(browser, "bytes", -1)
    assert said.startswith("Expected: 326 µs")
    assert "2.00× faster. Busiest resource: DRAM." in said
    browser.wait_for("document.querySelectorAll('#chart .imagined').length === 1")
    slide(browser, "bytes", 0)
    assert browser.run("document.querySelectorAll('#chart .imagined').length") == 0
    browser.run("location.hash = '#k10'")
    browser.wait_for("document.getElementById('detail-title').textContent.startsWith('#10')")
    assert browser.complaints == []


RINGS = "document.querySelectorAll('#chart .imagined').length"


def choose(browser, name, value):
    browser.run(
        f"{{const s = document.getElementById('{name}'); s.value = '{value}'; s.dispatchEvent(new Event('change'))}}"
    )


def ring(browser, number):
    """Halve a launch's DRAM bytes and wait for the ring where its dot would lie."""
    browser.wait_for(f"document.getElementById('detail-title').textContent.startsWith('#{number} ')")
    browser.wait_for("document.querySelector('.sliders') !== null")
    slide(browser, "bytes", -1)
    browser.wait_for(f"{RINGS} === 1")


def test_the_ring_goes_when_its_launch_is_let_go_of(visit, analysis):
    browser = visit(analysis.to_dict(), "#k11")
    ring(browser, 11)
    browser.run("document.getElementById('chart').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))")
    assert browser.run(RINGS) == 0
    slide(browser, "bytes", -2)
    assert browser.run(RINGS) == 1


def test_the_ring_is_drawn_where_its_launch_is_in_view_and_on_its_own_gpu(visit, analysis):
    document = analysis.to_dict()
    document["devices"] = 2 * document["devices"]
    document["ceilings"] += [ceiling | {"device": 1} for ceiling in document["ceilings"]]
    moved = next(kernel for kernel in document["kernels"] if kernel["verdict"] == "compute" and kernel["points"])
    moved["device"] = 1
    browser = visit(document, "#k11")
    ring(browser, 11)  # bound by memory, on the first GPU
    choose(browser, "verdict-filter", "compute")
    assert browser.run(RINGS) == 0
    choose(browser, "verdict-filter", "")
    assert browser.run(RINGS) == 1
    choose(browser, "device-filter", "1")
    assert browser.run(RINGS) == 0
    choose(browser, "device-filter", "0")
    assert browser.run(RINGS) == 1


def test_a_launch_without_counters_has_no_sliders(visit, analysis):
    document = analysis.to_dict()
    failed = next(kernel["id"] for kernel in document["kernels"] if kernel["failed"])
    browser = visit(document, f"#k{failed}")
    browser.wait_for(f"document.getElementById('detail-title').textContent.startsWith('#{failed}')")
    assert browser.run("document.querySelector('.sliders')") is None
