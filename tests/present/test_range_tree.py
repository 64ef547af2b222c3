"""Time by NVTX range as a tree: sums by hand, and its links in a real browser."""

from __future__ import annotations

import pytest

from ncuroof.present.page.range_tree import range_tree
from tests.present.documents import document, kernel

OUTSIDE = "(outside any range)"


def launch(path, duration_ns, **changes):
    """Return a launch in these ranges, half of whose time is above the roofline."""
    half = None if duration_ns is None else duration_ns / 2
    return kernel(nvtx=path.split("/") if path else [], duration_ns=duration_ns, recoverable_ns=half, **changes)


def tree(*kernels):
    numbered = [each | {"id": number} for number, each in enumerate(kernels)]
    return range_tree(document(*numbered))


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


def test_short_ranges_are_one_line():
    # 0.2 % of 1 ms are 2 µs.
    lines = tree(
        launch("long", 990e3), launch("a", 2e3), launch("b", 1.9e3), launch("c", 1.9e3), launch("", 4.2e3)
    ).lines
    assert [line.name for line in lines] == ["long", OUTSIDE, "a", "(2 shorter ranges)"]
    assert (lines[3].duration, lines[3].launches, lines[3].index) == ("3.80 µs", "2", None)


def test_of_many_ranges_the_twenty_longest_have_lines():
    lines = tree(*(launch(f"r{number}", 1000.0 + number) for number in range(25))).lines
    assert [line.name for line in (*lines[:2], *lines[19:])] == ["r24", "r23", "r5", "(5 shorter ranges)"]


def test_ranges_nested_thousands_deep_have_a_tree():
    launches = [launch("/".join(["r"] * depth), 1e3) for depth in range(1, 200)]
    path = "/".join(["r"] * 5000)
    depth = max(row[0] for row in drawn(tree(*launches, launch(path, 1e3)).lines))
    assert depth == 39


def test_a_run_without_ranges_has_no_tree():
    assert tree(launch("", 1e3)).lines == ()


def test_lines_know_their_place_among_the_paths():
    ranges = tree(*STEP)
    assert list(ranges.paths) == [
        "step",
        "step › backward › mm › gemm",
        "step › forward",
        "step › forward › mm",
        "step › forward › relu",
    ]
    forward = ranges.lines[0].inner[1]
    assert ranges.paths[forward.index] == "step › forward"
    assert forward.inner[2].index is None


def test_names_without_text_and_with_control_characters_can_be_read():
    first, second = tree(launch("a\x1b[31m", 2e3), kernel(id=1, nvtx=[""], duration_ns=1e3)).lines
    assert first.name == "a\\u001b[31m"
    assert second.name == "(unnamed)"


@pytest.mark.browser
def test_launches_of_a_range_are_shown_alone_and_the_way_back_leads_to_the_ranges(visit):
    browser = visit(document(*(each | {"id": number, "short_name": f"k{number}"} for number, each in enumerate(STEP))))
    names = "[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)"
    click = "[...document.querySelectorAll('.ranges a')].find(a => a.closest('summary, li').textContent.startsWith('{}')).click()"
    browser.run(click.format("forward"))
    assert sorted(browser.run(names)) == ["k0", "k1", "k2", "k3"]
    back = "[...document.querySelectorAll('#filters a')].find(a => a.textContent === 'Back to NVTX ranges')"
    assert browser.run(f"{back}.getAttribute('href')") == "#ranges"
    assert not browser.run(f"{back}.hidden")
    browser.run(
        "[...document.querySelectorAll('#filters button')].find(b => b.textContent === 'Clear filters').click()"
    )
    assert len(browser.run(names)) == 6
    assert browser.run("[...document.querySelectorAll('#filters a')].every(a => a.hidden)")


@pytest.mark.browser
def test_a_range_opens_by_its_key_and_its_numbers_stay_in_their_columns(visit):
    launches = (launch(f"a/b{n}/c{m}", 1e3 + n) for n in range(12) for m in range(2))
    browser = visit(document(*(each | {"id": number} for number, each in enumerate(launches))))
    shown = "[...document.querySelectorAll('.ranges li')].filter(e => e.checkVisibility()).length"
    assert browser.run(shown) == 13
    browser.run("document.querySelector('.ranges ul ul summary').focus()")
    browser.press("Enter")
    assert browser.run(shown) == 15
    right_edges = (
        "[...document.querySelectorAll('.ranges span:nth-child(3)')].filter(e => e.checkVisibility())"
        ".map(e => Math.round(e.getBoundingClientRect().right))"
    )
    edges = browser.run(right_edges)
    assert len(edges) == 16
    assert len(set(edges)) == 1
