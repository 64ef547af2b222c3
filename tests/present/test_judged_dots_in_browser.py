"""What the chart says of one dot in a real browser: the roofs that it is judged by, its precision, its verdict's mark."""

from __future__ import annotations

import pytest

from tests.present.documents import ceiling, document, kernel, three_kernels
from tests.present.drawn_chart import place, point_at

pytestmark = pytest.mark.browser

WORK = kernel()["work"]["fp32"]
PEAKS = {"fp32": 6e13, "tensor_int8": 2e15}


def int8_kernel(**changes):
    """Return a kernel whose INT8 work reaches 2.9 % of its roof, which is just the height of FP32's roof."""
    point = kernel()["points"][0] | {
        "precision": "tensor_int8", "intensity_flop_per_byte": 3000.0, "flop_per_s": 5.8e13, "roof_frac": 0.029,
    }  # fmt: skip
    work = {"tensor_int8": WORK, "fp32": WORK}
    return kernel(work=work, points=[point], dominant_precision="tensor_int8", **changes)


def two_precisions():
    slopes = [ceiling("bandwidth", "dram", 2e12), ceiling("bandwidth", "l2", 6e12)]
    flat = [ceiling("compute", name, per_s) for name, per_s in PEAKS.items()]
    far = kernel(id=4, short_name="beta", points=[kernel()["points"][0] | {"intensity_flop_per_byte": 0.3}])
    return document(int8_kernel(id=3, short_name="alpha"), far, ceilings=[*slopes, *flat])


def roofs(browser):
    """Return of each roof how much of its line is seen, and how thick it is."""
    lines = "[...document.querySelectorAll('#chart .roof')].map(l => [+l.getAttribute('opacity'), +l.getAttribute('stroke-width')])"
    return browser.run(lines)


def tick(browser):
    """Return x and both ends of the line from the dot to its roof; None where there is none."""
    path = browser.run("document.querySelector('#chart .to-roof path')?.getAttribute('d') ?? null")
    if path is None:
        return None
    start, rest = path.removeprefix("M").split("V")
    x, from_y = map(float, start.split())
    return x, from_y, float(rest.split("M")[0])  # the shaft; what follows is its head


def test_a_dot_that_is_pointed_at_shows_the_roofs_that_it_is_judged_by(visit):
    browser = visit(two_precisions())
    assert {opacity for opacity, _ in roofs(browser)} == {1}
    assert tick(browser) is None
    tooltip = point_at(browser, *place(browser, 3000, 5.8e13))
    assert tooltip[2].endswith("2.9 % of its roof")
    (dram, l2, fp32, int8) = roofs(browser)
    assert dram[0] == int8[0] == 1
    assert dram[1] == int8[1] > 2
    assert l2[0] == fp32[0] < 0.5
    x, _, top = tick(browser)
    # 5.8e13 are 2.9 % of 2e15: there the line ends.
    assert (x, top) == pytest.approx(place(browser, 3000, 2e15), abs=0.5)
    assert point_at(browser, *place(browser, 30, 2e14)) == []
    assert {opacity for opacity, _ in roofs(browser)} == {1}
    assert tick(browser) is None


def test_a_selected_dot_keeps_its_roofs_while_another_is_pointed_at_and_after(visit):
    browser = visit(two_precisions(), "#k3")
    browser.wait_for("document.querySelector('#chart .to-roof') !== null")
    of_selected = tick(browser)
    point_at(browser, *place(browser, 0.3, 1e12))
    assert tick(browser)[0] == pytest.approx(place(browser, 0.3, 1e12)[0], abs=0.5)
    assert [opacity < 1 for opacity, _ in roofs(browser)] == [False, True, False, True]
    point_at(browser, *place(browser, 30, 2e14))
    assert tick(browser) == of_selected


def test_a_click_beside_the_dots_lets_go(visit):
    browser = visit(two_precisions(), "#k3")
    browser.wait_for("document.querySelector('#chart .to-roof') !== null")
    point_at(browser, *place(browser, 30, 2e14), click=True)
    browser.wait_for("document.querySelector('#chart .to-roof') === null")
    assert browser.run("document.querySelector('#table [aria-current]')") is None


def test_a_dots_name_says_its_precision_where_there_are_roofs_of_several(visit):
    names = "[...document.querySelectorAll('#chart .dot-label')].map(t => t.textContent).sort()"
    assert set(visit(two_precisions()).run(names)) - {"beta · FP32"} == {
        "alpha · INT8 tensor"
    }  # beta where there is room
    assert visit(three_kernels(), width=1190).run(names) == ["alpha", "beta"]  # at one place: one has a leader


def test_a_selected_launch_that_the_filter_leaves_out_fades_nothing(visit):
    browser = visit(two_precisions(), "#k3")
    browser.wait_for("document.querySelector('#chart .to-roof') !== null")
    browser.run("{const i = document.getElementById('search'); i.value = 'beta'; i.dispatchEvent(new Event('input'))}")
    browser.wait_for("document.querySelector('#chart .selected') === null")
    left, top = place(browser, 0.3, 1e12)
    scale = browser.run("devicePixelRatio")
    alpha = (
        "document.querySelector('#chart canvas').getContext('2d')"
        f".getImageData({round(left * scale)}, {round(top * scale)}, 1, 1).data[3]"
    )
    assert browser.run(alpha) == 255
    assert {opacity for opacity, _ in roofs(browser)} == {1}


def test_a_legend_below_the_chart_tells_the_marks_in_view(visit):
    browser = visit(three_kernels())
    legend = "[...document.querySelectorAll('#chart-legend li')].map(li => li.textContent)"
    assert browser.run(legend) == ["memory-bound", "compute-bound", "latency-bound"]
    browser.run("{const i = document.getElementById('search'); i.value = 'beta'; i.dispatchEvent(new Event('input'))}")
    browser.wait_for(f"{legend}.join() === 'compute-bound'")


def test_each_level_shows_its_dots_at_first(visit):
    dram, l2, _ = kernel()["points"]
    past_l1 = dram | {"level": "l1", "intensity_flop_per_byte": 262176.0}
    slopes = [ceiling("bandwidth", name, per_s) for name, per_s in (("dram", 2e12), ("l2", 6e12), ("l1", 2e13))]
    browser = visit(
        document(kernel(id=1, points=[dram, l2, past_l1]), ceilings=[*slopes, ceiling("compute", "fp32", 1e13)])
    )
    said = "document.querySelector('#chart .gutter')?.textContent ?? ''"
    width = browser.run("document.querySelector('#chart canvas').clientWidth")
    assert place(browser, 0.5, 1e12)[0] < 0.7 * width  # not in the corner
    assert place(browser, 262176, 1e12)[0] > width
    browser.run("document.querySelector('input[value=l1]').click()")
    browser.wait_for("document.querySelector('#chart .back').textContent.includes('FLOP per byte of L1')")
    assert browser.run(said) == ""
    assert place(browser, 262176, 1e12)[0] < width
