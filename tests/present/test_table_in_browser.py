"""The table of kernels and the filters in a real browser."""

from __future__ import annotations

import csv
import io

import pytest

from tests.present.documents import document, kernel, three_kernels

pytestmark = pytest.mark.browser


def shown_names(browser):
    return browser.run("[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)")


def choose(browser, name, value):
    browser.run(
        f"{{const s = document.getElementById('{name}'); s.value = '{value}'; s.dispatchEvent(new Event('change'))}}"
    )


def search(browser, wanted):
    browser.run(
        f"{{const i = document.getElementById('search'); i.value = '{wanted}'; i.dispatchEvent(new Event('input'))}}"
    )


def in_view(browser):
    return browser.run("document.getElementById('in-view').textContent")


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


def test_a_search_looks_in_names_numbers_and_ranges(visit):
    kernels = three_kernels()["kernels"]
    kernels[2]["nvtx"] = ["validation"]
    browser = visit(document(*kernels))
    for wanted, found in (("ALP", ["alpha"]), ("#11", ["beta"]), ("valid", ["gamma"]), ("nowhere", [])):
        search(browser, wanted)
        assert shown_names(browser) == found
    search(browser, "ALP")
    # 100 of 600 µs
    assert in_view(browser) == "1 of 3 launches, 16.7 % of the GPU time"


def test_all_launches_are_all_of_the_time_though_rows_are_rounded(visit):
    # Rows have six digits: 3 · 333 333 ns for a run of 3 · 333 333.4 ns, and 123 457 ns for one of 123 456.7 ns.
    browser = visit(document(*[kernel(id=number, duration_ns=333_333.4) for number in range(3)]))
    assert in_view(browser) == "3 of 3 launches, 100 % of the GPU time"
    assert "3 of 3 launches, 100 % of" in browser.run("document.getElementById('chart').getAttribute('aria-label')")
    browser = visit(document(kernel(id=0, duration_ns=123_456.7)))
    assert in_view(browser) == "1 of 1 launch, 100 % of the GPU time"
    assert browser.run("document.querySelector('#table tbody tr').cells[4].textContent") == "100 %"


def test_rows_are_filtered_by_verdict_family_and_range(visit):
    kernels = three_kernels()["kernels"]
    kernels[0] |= {"family": "cublas", "nvtx": ["step", "forward"]}
    kernels[1] |= {"family": "user", "nvtx": ["step"]}
    kernels[2] |= {"family": "user", "nvtx": ["stepping"]}
    browser = visit(document(*kernels))
    choose(browser, "verdict-filter", "latency")
    assert shown_names(browser) == ["gamma"]
    choose(browser, "verdict-filter", "")
    choose(browser, "family-filter", "user")
    assert shown_names(browser) == ["gamma", "beta"]
    choose(browser, "family-filter", "")
    ranges = browser.run("[...document.getElementById('range-filter').options].map(o => o.text)")
    assert ranges == ["all", "step", "step › forward", "stepping"]
    choose(browser, "range-filter", "0")
    assert shown_names(browser) == ["alpha", "beta"]


def test_the_filter_holds_for_the_chart_as_well(visit):
    browser = visit(three_kernels())
    labels = "[...document.querySelectorAll('#chart .dot-label')].map(t => t.textContent)"
    assert browser.run(labels) == ["beta"]  # the longer of two at one place
    search(browser, "alp")
    browser.wait_for(f"{labels}.join() === 'alpha'")
    assert "Without a dot" not in browser.run("document.getElementById('chart').textContent")


def many(n):
    return document(
        *[kernel(id=number, short_name=f"kernel_{number:05}", recoverable_ns=float(n - number)) for number in range(n)]
    )


def test_of_many_rows_those_near_the_view_are_in_the_document(visit):
    browser = visit(many(2000))
    n_rows = "document.querySelectorAll('#table tbody tr[data-index]').length"
    assert browser.run(n_rows) < 150
    assert browser.run("document.getElementById('table').getAttribute('aria-rowcount')") == "2001"
    browser.run("document.querySelector('#kernels .scroll').scrollTop = 28 * 1000")
    browser.wait_for("document.querySelector('#table tr[data-index=\"1000\"] th') !== null")
    assert (
        browser.run("document.querySelector('#table tr[data-index=\"1000\"]').getAttribute('aria-rowindex')") == "1002"
    )
    assert browser.run(n_rows) < 150
    # The row lies where the scroll bar says it does: below the head.
    row, scroller = (
        browser.run(f"document.querySelector('{selector}').getBoundingClientRect().top")
        for selector in ('#table tr[data-index="1000"]', "#kernels .scroll")
    )
    head = browser.run("document.querySelector('#table thead').offsetHeight")
    assert abs(row - scroller - head) < 28


def test_keys_walk_from_row_to_row_also_to_those_out_of_view(visit):
    browser = visit(many(2000))
    focused = "document.activeElement.textContent"
    browser.run("document.querySelector('#table tr[data-index=\"0\"] a').focus()")
    for key, reached in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", 1999), ("Home", 0)):
        browser.press(key)
        assert browser.run(focused) == f"kernel_{reached:05}", key
    browser.press("PageDown")
    assert browser.run(focused) > "kernel_00005"
    number = int(browser.run(focused).removeprefix("kernel_"))
    browser.press("Enter")
    browser.wait_for(f"document.getElementById('detail-title').textContent.startsWith('#{number} ')")


def test_rows_are_copied_as_csv_in_their_order_and_without_formulas(visit):
    kernels = three_kernels()["kernels"]
    kernels[1]["name"] = '=HYPERLINK("http://x")'
    browser = visit(document(*kernels))
    browser.run("navigator.clipboard.writeText = async text => { window.copied = text }; 1")
    browser.run("document.querySelector('#table-buttons button').click()")
    browser.wait_for("window.copied !== undefined")
    rows = list(csv.DictReader(io.StringIO(browser.run("window.copied"))))
    assert [row["id"] for row in rows] == ["12", "10", "11"]
    assert [row["time_ns"] for row in rows] == ["200000", "100000", "300000"]
    assert [row["recoverable_ns"] for row in rows] == ["90000", "10000", ""]
    assert rows[2]["name"] == '\'=HYPERLINK("http://x")'


def test_alike_launches_are_one_row_until_each_is_asked_for(visit):
    alike = [kernel(id=number, short_name="alpha", duration_ns=1e5) for number in range(3)]
    group = document(alike[0])["groups"][0] | {"launches": [0, 1, 2], "n_launches": 3, "duration_ns": 3e5}
    browser = visit(document(*alike, groups=[group]))
    cells = "[...document.querySelectorAll('#table tbody tr')].map(tr => [tr.cells[2].textContent, tr.cells[3].textContent])"
    assert browser.run(cells) == [["3", "300 µs"]]
    browser.run("document.getElementById('each-launch').click()")
    assert browser.run(cells) == [["1", "100 µs"]] * 3


def test_a_failed_launch_has_a_row_of_its_own(visit):
    failed = kernel(id=7, short_name="lost", failed=True, verdict="unknown", duration_ns=None, recoverable_ns=None)
    browser = visit(document(kernel(id=0, short_name="alpha"), failed))
    assert shown_names(browser) == ["alpha", "lost"]
    assert "failed" in browser.run("document.querySelectorAll('#table tbody tr')[1].textContent")
