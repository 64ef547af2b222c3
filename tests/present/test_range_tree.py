"""Time by NVTX range as a tree: sums by hand, and its links in a real browser."""

from __future__ import annotations

import pytest

from ncuroof.present.page.range_tree import alike, range_tree
from tests.present.barriers import violations
from tests.present.documents import document, kernel

OUTSIDE = "(outside any range)"


def launch(path, duration_ns, **changes):
    """Return a launch in these ranges, half of whose time is above the roofline."""
    half = None if duration_ns is None else duration_ns / 2
    return kernel(nvtx=path.split("/") if path else [], duration_ns=duration_ns, recoverable_ns=half, **changes)


def numbered(*kernels):
    return [each | {"id": number} for number, each in enumerate(kernels)]


def tree(*kernels):
    return range_tree(document(*numbered(*kernels)))


def counted(ranges, index):
    """Return the launches that a line's link leads to: those whose innermost line is this one, or in it."""
    outer = [place.outer for place in ranges.places]

    def is_within(line):
        return line == index or (line is not None and is_within(outer[line]))

    return [position for position, line in enumerate(ranges.line_by_launch) if is_within(line)]


def drawn(lines, depth=0):
    """Return name, share and launches of each line, with its depth."""
    rows = []
    for line in lines:
        rows += [(depth, line.name, line.share, line.launches), *drawn(line.inner, depth + 1)]
    return rows


STEP = (
    launch("step/forward/mm", 100e3),
    launch("step/forward/mm", 100e3),
    launch("step/forward/relu", 50e3),
    launch("step/forward", 50e3),
    launch("step/backward/mm/gemm", 600e3),
    launch("", 100e3),
)
"""1 ms, of which 900 µs are in `step`."""


def test_each_range_includes_those_within_it_and_the_longest_is_first():
    assert drawn(tree(*STEP).lines) == [
        (0, "step", "90.0 %", "5"),
        (1, "backward › mm › gemm", "60.0 %", "1"),
        (1, "forward", "30.0 %", "4"),
        (2, "mm", "20.0 %", "2"),
        (2, "relu", "5.0 %", "1"),
        (2, "(in none of these)", "5.0 %", "1"),
        (0, OUTSIDE, "10.0 %", "1"),
    ]


def test_a_range_has_the_times_of_all_its_launches():
    step, _ = tree(*STEP).lines
    assert (step.duration, step.recoverable) == ("900 µs", "450 µs")


def test_what_is_unknown_is_left_out_of_sums_and_a_dash_where_nothing_is_known():
    known, unknown = tree(launch("a", 100e3), launch("a", None), launch("b", None)).lines
    assert (known.name, known.share, known.duration, known.launches) == ("a", "100 %", "100 µs", "2")
    assert (unknown.name, unknown.share, unknown.duration, unknown.recoverable) == ("b", "—", "—", "—")


def test_a_launch_counts_with_those_that_it_represents_and_a_failed_one_does_not():
    counted = {"n_represented": 3.0, "weight": 2.0}
    alone = {"n_represented": 1.0, "weight": 1.0}
    lines = tree(
        launch("a", 100e3, **counted), launch("b", 100e3, **alone), launch("c", 1e3, failed=True, **alone)
    ).lines
    assert [(line.name, line.duration, line.launches) for line in lines] == [("a", "200 µs", "3"), ("b", "100 µs", "1")]


def test_ranges_are_told_apart_where_their_names_contain_slashes():
    lines = tree(kernel(id=0, nvtx=["a/b"], duration_ns=2e3), kernel(id=1, nvtx=["a", "b"], duration_ns=1e3)).lines
    assert [line.name for line in lines] == ["a/b", "a › b"]


def test_only_outer_ranges_of_a_tenth_of_the_time_are_open():
    (step, _), few = tree(*STEP).lines, tree(launch("a/b", 95e3), launch("c/d", 1e3), launch("c/e", 4e3)).lines
    assert (step.is_open, *(line.is_open for line in step.inner)) == (True, True, True)
    assert [line.is_open for line in few] == [True, False]
    deep = tree(*(launch(f"a/b{n}/c{n}/d{m}", 1e3) for n in range(2) for m in range(2)), launch("a/b0/e", 1e3)).lines
    (a,) = deep
    b0 = a.inner[0]
    assert (a.is_open, b0.is_open, b0.inner[0].is_open) == (True, True, False)


def test_short_ranges_are_one_line_that_opens():
    # 0.2 % of 1 ms are 2 µs.
    ranges = tree(launch("long", 990e3), launch("a", 2e3), launch("b", 1.9e3), launch("c", 1.5e3), launch("", 4.6e3))
    lines = ranges.lines
    assert [line.name for line in lines] == ["long", OUTSIDE, "(2 others)", "a"]  # 3.4 µs, before the 2 µs of a
    assert (lines[2].duration, lines[2].launches, lines[2].is_open) == ("3.40 µs", "2", False)
    assert [line.name for line in lines[2].inner] == ["b", "c"]
    assert counted(ranges, lines[2].index) == [2, 3]


def test_a_single_short_range_has_a_line_of_its_own():
    lines = tree(launch("long", 990e3), launch("a", 1e3)).lines
    assert [line.name for line in lines] == ["long", "a"]


WORDS = [f"{first}{second}" for first in "abcde" for second in "vwxyz"]
"""25 names that differ in more than a number."""


def test_of_many_ranges_the_twenty_longest_have_lines_and_the_others_open():
    lines = tree(*(launch(name, 2000.0 - 50 * number) for number, name in enumerate(WORDS))).lines
    # The times fall by more than 2 % from one to the next; the last five of 1000, 950, 900, 850 and 800 ns have the largest sum.
    assert [line.name for line in lines] == ["(5 others)", *WORDS[:20]]
    assert [line.name for line in lines[0].inner] == WORDS[20:]
    assert (lines[0].duration, lines[0].launches) == ("4.50 µs", "5")


def test_ranges_that_differ_only_in_a_number_are_one_line_that_opens():
    steps = [launch(f"step {number}/{part}", 1e3) for number in range(30) for part in ("forward", "backward")]
    merged, other = tree(*steps, launch("evaluate", 5e3)).lines
    assert (merged.name, merged.duration, merged.launches) == ("step 0 to 29 (30 ranges)", "60.0 µs", "60")
    assert merged.is_open
    rest, *first = merged.inner
    assert (rest.name, rest.launches) == ("(10 others)", "20")
    assert [line.name for line in first] == [
        f"step {number}" for number in range(20)
    ]  # equal ones, in the order in which they ran
    assert [line.name for line in first[0].inner] == ["forward", "backward"]
    assert other.name == "evaluate"


def test_few_ranges_that_differ_only_in_a_number_have_lines_of_their_own():
    lines = tree(*(launch(f"step {number}", 1e3) for number in range(20))).lines
    assert [line.name for line in lines] == [f"step {number}" for number in range(20)]


def test_names_are_alike_that_differ_in_one_number():
    assert alike(["layer0.mlp", "layer2.mlp", "layer10.mlp", "layer3.attn"]) == {
        "layer0 to 10.mlp": ["layer0.mlp", "layer2.mlp", "layer10.mlp"]
    }
    assert alike(["layer0", "layer1"]) == {}  # only two
    assert alike(["[1, 2]", "[1, 3]", "[2, 4]"]) == {}  # two numbers differ
    assert alike(["a", "b", "c"]) == {}
    assert list(alike([f"v{'1' * 6000}{number}" for number in range(3)])) == [f"v{'1' * 6000}0 to 2"]


def test_ranges_of_about_equal_time_are_in_the_order_in_which_they_ran():
    lines = tree(launch("late", 100e3), launch("first", 1.0e6), launch("second", 1.019e6), launch("third", 1.1e6)).lines
    assert [line.name for line in lines] == ["third", "first", "second", "late"]  # 1.9 % apart, and 7.4 %


def test_a_page_has_hundreds_of_lines_at_most():
    lines = drawn(tree(*(launch(f"{a}/{b}/{c}", 1e3) for a in WORDS for b in WORDS for c in "pq")).lines)
    assert 300 < len(lines) < 600
    assert (0, "av", "4.0 %", "50") in lines


def test_ranges_nested_thousands_deep_have_a_tree():
    launches = [launch("/".join(["r"] * depth), 1e3) for depth in range(1, 200)]
    path = "/".join(["r"] * 5000)
    depth = max(row[0] for row in drawn(tree(*launches, launch(path, 1e3)).lines))
    assert depth == 39


def test_a_run_without_ranges_has_no_tree():
    assert tree(launch("", 1e3)).lines == ()


def test_each_line_counts_the_launches_that_its_link_leads_to():
    ranges = tree(*STEP, launch("step/forward", 10e3, failed=True))
    step, outside = ranges.lines
    assert counted(ranges, step.index) == [0, 1, 2, 3, 4]
    assert counted(ranges, outside.index) == [5]
    backward, forward = step.inner
    assert counted(ranges, backward.index) == [4]
    assert [(line.name, counted(ranges, line.index)) for line in forward.inner] == [
        ("mm", [0, 1]),
        ("relu", [2]),
        ("(in none of these)", [3]),
    ]
    assert ranges.line_by_launch[6] is None  # it failed, and is in no sum


def test_a_range_without_a_name_is_no_other():
    ranges = tree(
        launch("", 5e3), *(kernel(nvtx=path, duration_ns=1e3) for path in ([""], ["", "x"], ["a"], ["a", ""]))
    )
    launches = {line.name: counted(ranges, line.index) for line in ranges.lines}
    assert launches == {OUTSIDE: [0], "(unnamed)": [1, 2], "a": [3, 4]}


def test_ranges_of_several_reports_are_told_apart():
    content = document(*numbered(launch("step", 3e3), launch("step", 2e3, source=1), launch("", 1e3, source=1)))
    first = content["sources"][0]
    lines = range_tree(content | {"sources": [first | {"file": "a"}, first | {"file": "b"}]}).lines
    assert drawn(lines) == [
        (0, "a › step", "50.0 %", "1"),
        (0, "b", "50.0 %", "2"),
        (1, "step", "33.3 %", "1"),
        (1, "(in none of these)", "16.7 %", "1"),
    ]


def test_names_without_text_and_with_control_characters_can_be_read():
    first, second = tree(launch("a\x1b[31m", 2e3), kernel(id=1, nvtx=[""], duration_ns=1e3)).lines
    assert first.name == "a\\u001b[31m"
    assert second.name == "(unnamed)"


NAMES = "[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)"


def click(browser, label):
    browser.run(f"[...document.querySelectorAll('.ranges a')].find(a => a.ariaLabel === '{label}').click()")


def named(*kernels):
    """Return a document of launches that are called k0, k1 and so on."""
    return document(*(each | {"short_name": f"k{each['id']}"} for each in numbered(*kernels)))


@pytest.mark.browser
def test_launches_of_a_range_are_shown_alone_and_the_way_back_leads_to_the_ranges(visit):
    browser = visit(named(*STEP))
    click(browser, "4 launches in forward")
    assert sorted(browser.run(NAMES)) == ["k0", "k1", "k2", "k3"]
    assert browser.run("document.activeElement.id") == "kernels-title"  # where the text says that the link leads
    assert "4 of 6 launches" in browser.run("document.getElementById('in-view').textContent")
    assert browser.run("document.getElementById('in-view').textContent").endswith(", in “forward”")
    pressed = "[...document.querySelectorAll('.icicle [aria-pressed=true]')].map(b => b.ariaLabel)"
    assert browser.run(pressed) == ["step › forward: 30.0 %, 300 µs, 150 µs above the roofline, 4 launches"]
    back = "[...document.querySelectorAll('#filters a')].find(a => a.textContent === 'Back to NVTX ranges')"
    assert browser.run(f"{back}.getAttribute('href')") == "#ranges"
    # Said at the table, too, as the filters are out of sight there.
    at_table = browser.run("[...document.querySelectorAll('#table-buttons > *')].map(e => e.textContent)")
    assert at_table[1:4] == ["4 of 6 launches, 30.0 % of GPU time, in “forward”", "", "Back to NVTX ranges"]
    browser.run(
        "[...document.querySelectorAll('#filters button')].find(b => b.textContent === 'Clear filters').click()"
    )
    assert len(browser.run(NAMES)) == 6
    assert browser.run("document.querySelectorAll('#filters a, #table-buttons a').length") == 0


@pytest.mark.browser
def test_the_status_line_and_a_saved_picture_name_the_range_in_view(visit):
    browser = visit(named(*STEP, launch("step/" + "x" * 400, 1e3), launch("step/y", 1e3)))
    click(browser, "1 launch in backward › mm › gemm")
    assert browser.run("document.getElementById('in-view').textContent").endswith(", in “gemm”")
    browser.run(
        "window.saved = []; URL.createObjectURL = blob => { window.saved.push(blob); return 'blob:none' };"
        "HTMLAnchorElement.prototype.click = function () {}; 1"
    )
    browser.run(
        "[...document.querySelectorAll('#chart-buttons button')].find(b => b.textContent === 'Save SVG').click()"
    )
    assert "in “gemm”</text>" in browser.run("window.saved[0].text()")
    browser.run(
        "[...document.querySelectorAll('.ranges a')].find(a => a.ariaLabel.endsWith('xx'))"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))"
    )
    assert browser.run("document.getElementById('in-view').textContent").endswith(f", in “{'x' * 79}…”")


@pytest.mark.browser
def test_names_of_ranges_in_arabic_do_not_change_the_order_of_those_in_them(visit):
    browser = visit(named(kernel(nvtx=["مرحبا", "x"])), "#k0")
    browser.wait_for("document.querySelector('#detail .pairs') !== null")
    for selector in (".ranges .name", "#detail .pairs dd:has(bdi + bdi)"):
        lefts = browser.run(
            f"[...document.querySelectorAll('{selector} bdi')].map(e => e.getBoundingClientRect().left)"
        )
        assert len(lefts) == 2
        assert lefts[0] < lefts[1]


@pytest.mark.browser
def test_launches_in_none_of_the_inner_ranges_and_in_short_ones_are_shown_alone(visit):
    browser = visit(
        named(*STEP, launch("step/x", 1e3), launch("step/y", 1e3), launch("x › y", 50e3), launch("x/y", 60e3))
    )
    click(browser, "1 launch in (in none of these)")
    assert browser.run(NAMES) == ["k3"]
    assert browser.run("document.getElementById('in-view').textContent").endswith(", in “forward › (in none of these)”")
    click(browser, "2 launches in (2 others)")
    assert sorted(browser.run(NAMES)) == ["k6", "k7"]
    click(browser, "1 launch in (outside any range)")
    assert browser.run(NAMES) == ["k5"]
    # One range whose name looks like two.
    browser.run(
        "[...document.querySelectorAll('.ranges a')].findLast(a => a.ariaLabel === '1 launch in x › y').click()"
    )
    assert browser.run(NAMES) == ["k8"]


@pytest.mark.browser
def test_launches_of_a_range_on_other_gpus_are_not_forgotten(visit):
    on_second = [launch("step/forward", 300e3, device=1), launch("step/forward", 10e3, device=1)]
    content = named(launch("step/forward", 100e3), launch("step/optimizer", 500e3), *on_second)
    content["devices"] = [content["devices"][0], content["devices"][0] | {"name": "other"}]
    browser = visit(content)
    click(browser, "3 launches in forward")
    assert sorted(browser.run(NAMES)) == ["k2", "k3"]  # the GPU on which the range takes most of its time
    assert (
        browser.run("document.getElementById('elsewhere').textContent")
        == "elsewhere: 1 launch on GPU 0: NVIDIA Imaginary"
    )
    browser.run("document.querySelector('#elsewhere a').click()")
    assert browser.run(NAMES) == ["k0"]


@pytest.mark.browser
def test_a_range_opens_by_its_key_and_its_numbers_stay_in_their_columns(visit):
    launches = (launch(f"a/b{n}/c{m}", 1e3 + n) for n in range(12) for m in range(2))
    browser = visit(document(*numbered(*launches)))
    browser.run("document.getElementById('range-list').open = true; 1")
    shown = "[...document.querySelectorAll('.ranges li')].filter(e => e.checkVisibility()).length"
    assert browser.run(shown) == 13
    browser.run("document.querySelector('.ranges ul ul summary').focus()")
    browser.press("Enter")
    assert browser.run(shown) == 15
    for column in ("span:nth-child(3)", "li > a"):
        edges = browser.run(
            f"[...document.querySelectorAll('.ranges {column}')].filter(e => e.checkVisibility())"
            ".map(e => Math.round(e.getBoundingClientRect().right))"
        )
        assert len(edges) >= 15
        assert len(set(edges)) == 1


@pytest.mark.browser
def test_the_icicle_has_a_box_as_wide_as_each_ranges_time_and_is_walked_by_arrow_keys(visit):
    browser = visit(document(*numbered(*STEP)))
    boxes = browser.run(
        "(w => [...document.querySelectorAll('.icicle button')]"
        ".map(b => [b.textContent, Math.round(100 * b.offsetWidth / w), b.offsetTop]))"
        "(document.querySelector('.icicle').clientWidth)"
    )
    widths = {name: width for name, width, _ in boxes}
    assert widths == pytest.approx(
        {"step": 90, "gemm": 60, "forward": 30, "mm": 20, "relu": 5, "(in none of these)": 5, OUTSIDE: 10}, abs=1
    )
    tops = {name: top for name, _, top in boxes}
    assert tops["step"] < tops["forward"] == tops["gemm"] < tops["mm"]
    browser.run("document.querySelector('.icicle button').focus()")
    focused = "document.activeElement.textContent"
    for key, reached in (("ArrowDown", "gemm"), ("ArrowRight", "forward"), ("ArrowDown", "mm"), ("ArrowUp", "forward")):
        browser.press(key)
        assert browser.run(focused) == reached
    assert browser.run("document.querySelectorAll('.icicle [tabindex=\"0\"]').length") == 1
    assert (
        browser.run("document.getElementById('range-said').textContent")
        == "step › forward: 30.0 %, 300 µs, 150 µs above the roofline, 4 launches"
    )
    browser.press("Enter")
    browser.wait_for("location.hash.startsWith('#range=')")
    assert "4 of 6 launches" in browser.run("document.getElementById('in-view').textContent")
    assert browser.run(focused) == "forward"


@pytest.mark.browser
def test_ranges_have_no_barriers_that_axe_finds_and_say_what_their_numbers_are(visit):
    long = "/".join(f"a range with a rather long name {part}" for part in "abc")
    browser = visit(document(*numbered(*STEP, launch(long, 10e3), launch("s/x", 1e3), launch("s/y", 1e3))), width=390)
    browser.run("for (const part of document.querySelectorAll('details')) part.open = true; 1")
    assert violations(browser) == []
    browser.call("Accessibility.enable")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    browser.call("Accessibility.disable")
    said = [node["name"]["value"] for node in nodes if "name" in node]
    assert "4 launches in forward" in said
    assert "forward share 29.6 % time 300 µs above roof 150 µs" in {" ".join(name.split()) for name in said}
