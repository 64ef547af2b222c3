"""The table of kernels and the filters in a real browser."""

from __future__ import annotations

import csv
import io
import re

import pytest

from ncuroof.present.page.render import render_page
from tests.present.documents import action, document, kernel, saving, three_kernels, weighted_document

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
    assert in_view(browser) == "1 of 3 launches, 16.7 % of GPU time"


def test_all_launches_are_all_of_the_time_though_rows_are_rounded(visit):
    # Rows have six digits: 3 · 333 333 ns for a run of 3 · 333 333.4 ns, and 123 457 ns for one of 123 456.7 ns.
    browser = visit(document(*[kernel(id=number, duration_ns=333_333.4) for number in range(3)]))
    assert in_view(browser) == "3 of 3 launches, 100 % of GPU time"
    assert "3 of 3 launches, 100 % of" in browser.run("document.getElementById('chart').getAttribute('aria-label')")
    browser = visit(document(kernel(id=0, duration_ns=123_456.7)))
    assert in_view(browser) == "1 of 1 launch, 100 % of GPU time"
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
    ranges = "[...document.querySelectorAll('.icicle button')]"
    said = browser.run(f"{ranges}.map(b => b.ariaLabel.split(':')[0])")
    assert said == ["step", "step › (in none of these)", "step › forward", "stepping"]
    browser.run(f"{ranges}[0].click()")
    assert shown_names(browser) == ["alpha", "beta"]
    assert browser.run(f"{ranges}[0].ariaPressed") == "true"
    browser.run(f"{ranges}[0].click()")
    assert len(shown_names(browser)) == 3


def test_the_filter_holds_for_the_chart_as_well(visit):
    browser = visit(three_kernels())
    labels = "[...document.querySelectorAll('#chart .dot-label')].map(t => t.textContent)"
    assert browser.run(labels) == ["beta", "alpha"]  # at one place, the longer first
    search(browser, "alp")
    browser.wait_for(f"{labels}.join() === 'alpha'")
    assert "No dot" not in browser.run("document.getElementById('chart').textContent")


def many(n):
    return document(
        *[kernel(id=number, short_name=f"kernel_{number:05}", recoverable_ns=float(n - number)) for number in range(n)]
    )


def test_of_many_rows_those_near_the_view_are_in_the_document(visit):
    browser = visit(many(2000))
    n_rows = "document.querySelectorAll('#table tbody tr[data-index]').length"
    assert browser.run(n_rows) < 150
    assert browser.run("document.getElementById('table').getAttribute('aria-rowcount')") == "2001"
    # The page scrolls, not the table: the row comes to lie below the heads that stick.
    body = "document.querySelector('#table tbody').getBoundingClientRect().top"
    browser.run(f"scrollBy(0, {body} + 28 * 1000 - 100)")
    browser.wait_for("document.querySelector('#table tr[data-index=\"1000\"] th') !== null")
    assert (
        browser.run("document.querySelector('#table tr[data-index=\"1000\"]').getAttribute('aria-rowindex')") == "1002"
    )
    assert browser.run(n_rows) < 150
    row = browser.run("document.querySelector('#table tr[data-index=\"1000\"]').getBoundingClientRect().top")
    assert row == pytest.approx(100, abs=2)
    assert browser.run("document.querySelector('#table thead th').getBoundingClientRect().bottom") < 100
    inner = (
        "[...document.querySelectorAll('#kernels *')]"
        ".filter(e => e.scrollHeight > e.clientHeight + 40 && /auto|scroll/.test(getComputedStyle(e).overflowY)).length"
    )
    assert browser.run(inner) == 0


def test_a_selection_that_goes_beyond_the_rows_in_the_document_copies_all_of_them_and_says_so(visit):
    browser = visit(many(1000))
    select = "const r = document.createRange(); r.selectNodeContents(document.getElementById('table'));"
    browser.run(f"{{ {select} getSelection().removeAllRanges(); getSelection().addRange(r) }}")
    event = "new ClipboardEvent('copy', { clipboardData: d, bubbles: true })"
    copied = f"(d => (document.dispatchEvent({event}), d.getData('text/plain')))"
    rows = list(csv.DictReader(io.StringIO(browser.run(f"{copied}(new DataTransfer())"))))
    assert len(rows) == 1000
    assert browser.run("document.getElementById('told').textContent") == "Copied: all 1000 rows, as CSV."
    browser.run("getSelection().selectAllChildren(document.querySelector('#table tr[data-index=\"3\"] th'))")
    assert browser.run(f"{copied}(new DataTransfer())") == ""  # what is in the document, the browser copies


def test_a_click_anywhere_in_a_row_opens_it(visit):
    browser = visit(three_kernels())
    browser.run("document.querySelector('#table tbody tr:nth-child(2) td.k-time').click()")
    browser.wait_for("document.getElementById('detail-title').textContent === '#10 alpha'")
    assert browser.run("document.querySelectorAll('#table [tabindex=\"0\"]').length") == 1
    bar = "getComputedStyle(document.querySelector('#table tr[aria-current] td.k-time')).getPropertyValue('--bar')"
    assert browser.run(bar) == "33.3%"  # 100 of at most 300 µs


def test_a_question_mark_unfolds_what_the_numbers_of_a_block_mean(visit):
    browser = visit(document(kernel()), "#k0")
    asking = "[...document.querySelectorAll('#detail .what')].find(b => b.ariaLabel.includes('Speed of Light'))"
    browser.run(f"{asking}.focus()")
    browser.press("Enter")
    assert browser.run(f"{asking}.ariaExpanded") == "true"
    assert "utilisation.memory" in browser.run(f"{asking}.parentElement.nextElementSibling.textContent")
    assert browser.run("document.querySelectorAll('[title]').length") == 0


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


def copied(browser):
    """Return the rows of the CSV that the button copies, by column."""
    browser.run("navigator.clipboard.writeText = async text => { window.copied = text }; 1")
    browser.run("document.querySelector('#table-buttons button').click()")
    browser.wait_for("window.copied !== undefined")
    return list(csv.DictReader(io.StringIO(browser.run("window.copied"))))


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
    assert [row["share_frac"] for row in rows] == ["0.3333333333333333", "0.16666666666666666", "0.5"]
    assert rows[2]["name"] == '\'=HYPERLINK("http://x")'


def test_a_copied_row_says_how_it_was_launched_and_where_it_belongs(visit):
    first = kernel(id=0, nvtx=["a", "b"], grid=[4, 2, 1], block=[32, 8, 1])
    alike = [first, first | {"id": 1, "nvtx": ["c"], "source": 1}, kernel(id=2, nvtx=[], grid=None, device=None)]
    group = document(first)["groups"][0]
    source = document()["sources"][0]
    content = document(
        *alike, groups=[group | {"launches": [0, 1], "n_launches": 2}, group | {"id": 2, "launches": [2]}]
    )
    browser = visit(content | {"sources": [source, source | {"file": "second.ncu-rep"}]})
    assert copied(browser)[0] | {"grid": "(4, 2, 1)", "block": "(32, 8, 1)"} == copied(browser)[0]
    assert [copied(browser)[0][key] for key in ("nvtx_range", "gpu", "report")] == [
        "a › b; c",
        "GPU 0: NVIDIA Imaginary",
        "run.ncu-rep; second.ncu-rep",
    ]
    choose(browser, "device-filter", "")
    assert [copied(browser)[0][key] for key in ("grid", "nvtx_range", "gpu", "report")] == [
        "",
        "",
        "unknown GPU",
        "run.ncu-rep",
    ]


def test_kernels_are_filtered_by_report_where_there_are_several(visit):
    kernels = [each | {"source": number % 2} for number, each in enumerate(three_kernels()["kernels"])]
    source = document()["sources"][0]
    browser = visit(document(*kernels) | {"sources": [source, source]})
    assert browser.run("[...document.getElementById('report-filter').options].map(o => o.text)") == [
        "all",
        "run.ncu-rep (report 1)",
        "run.ncu-rep (report 2)",
    ]
    choose(browser, "report-filter", "1")
    assert shown_names(browser) == ["beta"]
    assert in_view(browser).endswith(", of run.ncu-rep (report 2)")
    choose(browser, "report-filter", "0")
    assert shown_names(browser) == ["gamma", "alpha"]
    assert visit(three_kernels()).run("document.getElementById('report-filter')") is None


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
    search(browser, "failed")
    assert shown_names(browser) == ["lost"]
    search(browser, "")
    verdicts = browser.run("[...document.getElementById('verdict-filter').options].map(o => o.text)")
    assert verdicts == ["all", "memory-bound", "failed"]
    choose(browser, "verdict-filter", "failed")
    assert shown_names(browser) == ["lost"]


def test_a_search_for_a_number_finds_that_launch_alone(visit):
    browser = visit(document(*[kernel(id=number, short_name=f"kernel_{number}") for number in (1, 11, 12)]))
    search(browser, "#1")
    assert shown_names(browser) == ["kernel_1"]
    search(browser, "#2")
    assert shown_names(browser) == []


def test_a_search_looks_in_limiters_findings_and_whose_code_it_is(visit):
    alpha, beta, gamma = three_kernels()["kernels"]
    alpha |= {"family": "cublas", "limiter": "l2", "findings": []}
    gamma |= {"limiter": "long_scoreboard", "findings": [{**FINDING, "id": "small_grid", "title": "The grid is small"}]}
    browser = visit(document(alpha, beta, gamma))
    searches = {
        "cublas": "alpha",
        "L2": "alpha",
        "long scoreboard": "gamma",
        "grid": "gamma",
        "close to what DRAM": "beta",
        "compute-bound": "beta",
    }
    for wanted, found in searches.items():
        search(browser, wanted)
        assert shown_names(browser) == [found], wanted


FINDING = kernel()["findings"][0]


def with_actions():
    """Return a run in which a small grid is worth most in two launches, and a tail in one that has a small grid as well."""
    grid = {**FINDING, "id": "small_grid", "title": "The grid is small"}
    tail = {**FINDING, "id": "tail", "title": "The last wave is short"}
    kernels = [
        kernel(id=10, short_name="alpha", duration_ns=1e5, findings=[grid]),
        kernel(id=11, short_name="beta", duration_ns=1e5, findings=[grid]),
        kernel(id=12, short_name="gamma", duration_ns=2e5, findings=[tail, {**grid, "is_most_worth": False}]),
    ]
    actions = [
        action(each["id"], 1e4 * n, title=each["title"], n_launches=n, share_frac=n / 40)
        for each, n in ((grid, 2), (tail, 1))
    ]
    return document(*kernels, actions=actions)


def visible(browser, text):
    """Return whether the control with this text is shown."""
    elements = "[...document.querySelectorAll('#filters a, #filters button')]"
    return browser.run(f"{elements}.some(e => e.textContent === '{text}' && !e.hidden)")


def test_a_thing_to_do_first_leads_to_its_launches_and_back(visit):
    browser = visit(with_actions())
    assert not visible(browser, "Clear filters")
    search(browser, "gam")
    links = "[...document.querySelectorAll('.actions a')]"
    assert browser.run(f"{links}.map(a => a.textContent)") == ["in 2 launches", "in one launch"]
    browser.run(f"{links}[0].click()")
    assert sorted(shown_names(browser)) == ["alpha", "beta"]  # and the search is taken back
    # 200 of 400 µs
    assert in_view(browser) == "2 of 3 launches, 50.0 % of GPU time, whose largest saving is “The grid is small”"
    assert browser.run("document.getElementById('finding-filter').value") == "small_grid"
    assert browser.run("document.getElementById('search').value") == ""
    assert browser.run("document.activeElement.id") == "roofline-title"
    browser.wait_for("document.getElementById('chart').getAttribute('aria-label').includes('2 of 3 launches')")
    assert visible(browser, "Back to what to do first")
    browser.run(
        "[...document.querySelectorAll('#filters button')].find(b => b.textContent === 'Clear filters').click()"
    )
    assert len(shown_names(browser)) == 3
    assert browser.run("document.getElementById('finding-filter').value") == ""
    assert not visible(browser, "Clear filters")
    assert not visible(browser, "Back to what to do first")


def test_a_thing_to_do_on_another_gpu_leads_to_that_gpu(visit):
    run = with_actions()
    devices = [dict(run["devices"][0], name=name) for name in ("Here", "There")]
    run["kernels"][2]["device"] = 1
    browser = visit(run | {"devices": devices})
    browser.run("[...document.querySelectorAll('.actions a')][1].click()")
    assert shown_names(browser) == ["gamma"]
    assert browser.run("document.getElementById('device-filter').value") == "1"


def test_a_thing_to_do_on_several_gpus_leads_to_the_one_where_it_saves_most_and_on_to_the_others(visit):
    grid = {**FINDING, "id": "small_grid", "title": "The grid is small"}
    launches = [
        kernel(id=0, short_name="alpha", duration_ns=9e5, findings=[{**grid, **saving(2e4)}]),
        kernel(id=1, short_name="beta", duration_ns=1e5, device=1, findings=[{**grid, **saving(1e4)}]),
        kernel(id=2, short_name="gamma", duration_ns=1e5, device=2, findings=[{**grid, **saving(1.5e4)}]),
        kernel(id=3, short_name="delta", duration_ns=1e5, device=2, findings=[{**grid, **saving(1.5e4)}]),
        kernel(id=4, short_name="epsilon", duration_ns=1e5, device=3, findings=[]),
    ]
    devices = [
        {"name": name, "compute_capability": "9.0", "sm_count": 1, "dram_bytes_per_s": None, "profile": None}
        for name in ("A", "B", "C", "D")
    ]
    grids = action("small_grid", 6e4, title="The grid is small", n_launches=4, share_frac=0.05)
    browser = visit(document(*launches, devices=devices, actions=[grids]))
    device, elsewhere = (f"document.getElementById('{name}')" for name in ("device-filter", "elsewhere"))
    assert browser.run(f"{device}.value") == "0"  # 900 µs of 1.3 ms
    assert browser.run(f"{elsewhere}.textContent") == ""
    browser.run("document.querySelector('.actions a').click()")
    # 15 + 15 µs on GPU 2, 20 on GPU 0, 10 on GPU 1, nothing on GPU 3
    assert sorted(shown_names(browser)) == ["delta", "gamma"]
    assert browser.run(f"{elsewhere}.textContent") == "elsewhere: 1 launch on GPU 0: A, 1 launch on GPU 1: B"
    browser.run(f"{elsewhere}.querySelector('a').click()")
    assert shown_names(browser) == ["alpha"]
    assert browser.run(f"{elsewhere}.textContent") == "elsewhere: 2 launches on GPU 2: C, 1 launch on GPU 1: B"
    assert browser.run("document.activeElement.id") == "device-filter"
    assert browser.run(f"{device}.value") == "0"
    assert browser.complaints == []


def two_devices():
    """Return alpha on one GPU, and on another beta and gamma, on which the page opens."""
    names = ("Here", "There")
    devices = [
        {"name": name, "compute_capability": "9.0", "sm_count": 1, "dram_bytes_per_s": None, "profile": None}
        for name in names
    ]
    launches = [kernel(id=number, short_name=name) for number, name in enumerate(("alpha", "beta", "gamma"))]
    return document(launches[0], *(each | {"device": 1} for each in launches[1:]), devices=devices)


def test_the_table_says_which_gpu_it_is_of_and_where_else_a_filter_finds_launches(visit):
    browser = visit(two_devices())
    heading = "document.getElementById('kernels-title').textContent"
    assert browser.run(heading) == "Kernels on GPU 1: There"
    search(browser, "alpha")
    nothing = "document.querySelector('#table tbody td').textContent"
    assert browser.run(nothing) == "Nothing matches the filters here: 1 launch on GPU 0: Here"
    browser.run("document.querySelector('#table tbody td a').click()")
    assert shown_names(browser) == ["alpha"]
    assert browser.run(heading) == "Kernels on GPU 0: Here"
    assert browser.run("document.getElementById('device-filter').value") == "0"
    assert browser.run("document.activeElement.textContent") == "alpha"
    search(browser, "nowhere")
    assert browser.run(nothing) == "Nothing matches the filters."
    assert visit(three_kernels()).run(heading).strip() == "Kernels"


def test_alike_launches_that_a_filter_leaves_are_named_by_the_longest_of_them(visit):
    late = {"short_name": "alpha", "verdict": "latency", "limiter": "tail"}
    alike = [
        kernel(id=0, duration_ns=1e5, **late),
        kernel(id=1, duration_ns=3e5),
        kernel(id=2, duration_ns=2e5, **late),
    ]
    group = document(alike[1])["groups"][0] | {"launches": [0, 1, 2], "n_launches": 3, "duration_ns": 6e5}
    browser = visit(document(*alike, groups=[group]))
    choose(browser, "verdict-filter", "latency")
    assert [row[:4] for row in browser.run(CELLS)] == [["2", "alpha", "2", "300 µs"]]


def test_a_filter_that_nothing_matches_says_so_in_the_table(visit):
    browser = visit(three_kernels())
    search(browser, "nowhere")
    assert browser.run("document.querySelector('#table tbody').textContent") == "Nothing matches the filters."
    assert visible(browser, "Clear filters")
    assert visit(document()).run("document.querySelector('#table tbody').textContent") == "No kernel."


CELLS = "[...document.querySelectorAll('#table tbody tr')].map(tr => [...tr.cells].map(cell => cell.textContent))"


def test_where_launches_were_counted_rows_show_all_that_a_recorded_one_stands_for(visit):
    browser = visit(weighted_document())
    rows = [(row[1], *row[2:6]) for row in browser.run(CELLS)]
    assert rows == [
        ("gamma", "1", "100 µs", "20.0 %", "90.0 µs"),
        ("beta", "4", "200 µs", "40.0 %", "80.0 µs"),
        ("alpha", "5", "200 µs", "40.0 %", "20.0 µs"),
    ]
    assert in_view(browser) == "4 profiled launches representing 10, 100 % of GPU time"
    browser.run("navigator.clipboard.writeText = async text => { window.copied = text }; 1")
    browser.run("document.querySelector('#table-buttons button').click()")
    browser.wait_for("window.copied !== undefined")
    copied = list(csv.DictReader(io.StringIO(browser.run("window.copied"))))
    assert [(row["launches"], row["time_ns"]) for row in copied] == [("1", "100000"), ("4", "200000"), ("5", "200000")]
    search(browser, "beta")
    assert in_view(browser) == "1 of 4 profiled launches representing 4, 40.0 % of GPU time"
    search(browser, "")
    browser.run("document.getElementById('each-launch').click()")
    assert [(row[2], row[3]) for row in browser.run(CELLS)][2:] == [("2.50", "150 µs"), ("2.50", "50.0 µs")]


def test_rows_are_the_same_with_scripts_and_without(visit, browser, tmp_path):
    content = weighted_document()
    scripted = visit(content).run(CELLS)
    path = tmp_path / "without.html"
    path.write_text(re.sub(r"<script>.*?</script>", "", render_page(content), flags=re.DOTALL), encoding="utf-8")
    browser.open(path)
    assert browser.run(CELLS) == scripted
    assert len(scripted) == 3


def test_the_run_and_a_launch_say_what_was_recorded_and_what_it_stands_for(visit):
    browser = visit(weighted_document(), "#k2")
    totals = browser.run("document.querySelector('.totals').textContent")
    assert "4 profiled, representing 10" in totals
    assert browser.run("document.querySelector('.shares a').ariaLabel") == "10 launches memory-bound, 500 µs, 100 %"
    browser.wait_for("document.getElementById('detail-title').textContent === '#2 beta'")
    assert "represents 4 launches, 200 µs together" in browser.run(
        "document.querySelector('#detail-body p').textContent"
    )
