"""What a launch that the reader chose is marked by in a real browser: its row in the table, its points on the chart."""

from __future__ import annotations

import pytest

from tests.present.documents import document, kernel

pytestmark = pytest.mark.browser

HIDDEN = "document.querySelector('#table-buttons [role=status]').textContent"


@pytest.mark.parametrize("n_kernels", [50, 200])
def test_the_row_of_a_launch_that_is_opened_by_its_address_is_marked_and_reached_by_one_tab(visit, n_kernels):
    # All rows are in the document, or only those near the window.
    last = n_kernels - 1
    content = document(*(kernel(id=number, recoverable_ns=1e5 - number) for number in range(n_kernels)))
    browser = visit(content, f"#k{last}")
    place = "document.querySelector('#detail-buttons span').textContent"
    assert browser.run(place) == f"{n_kernels} of {n_kernels}"
    browser.run("scrollTo(0, document.querySelector('#table').getBoundingClientRect().bottom + scrollY - 600)")
    browser.wait_for("document.querySelector('#table [aria-current]') !== null")
    assert browser.run("document.querySelector('#table [aria-current] td').textContent") == str(last)
    assert browser.run("[...document.querySelectorAll('#table [tabindex=\"0\"]')].map(a => a.hash)") == [f"#k{last}"]
    browser.run("location.hash = '#k0'")
    browser.wait_for(f"{place} === '1 of {n_kernels}'")
    browser.wait_for(
        "document.getElementById('chart').getBoundingClientRect().top < innerHeight / 2"
    )  # is beside the detail


def test_a_chosen_launch_that_filters_hide_says_so_and_shows_itself_again(visit):
    browser = visit(document(*(kernel(id=number, short_name=f"k{number}") for number in range(3))), "#k1")
    assert browser.run(HIDDEN) == ""
    search = "{const i = document.getElementById('search'); i.value = 'k2'; i.dispatchEvent(new Event('input'))}"
    browser.run(search)
    assert browser.run(HIDDEN) == "#1 is hidden by the filters. Clear filters"
    browser.run("location.hash = '#k2&search=k2'")
    browser.wait_for(f"{HIDDEN} === ''")
    browser.run("location.hash = '#k0&search=k2'")
    browser.wait_for(f"{HIDDEN} === '#0 is hidden by the filters. Clear filters'")
    browser.run("document.querySelector('#table-buttons [role=status] button').click()")
    assert browser.run(HIDDEN) == ""
    assert browser.run("document.querySelector('#table [aria-current] th').textContent") == "k0"
    assert browser.run("document.activeElement.textContent") == "k0"


def points(precision, rate):
    """Return points at two levels."""
    return [
        {
            "level": level,
            "precision": precision,
            "intensity_flop_per_byte": rate / bytes_per_s,
            "flop_per_s": rate,
            "roof_flop_per_s": 5e12,
            "ridge_flop_per_byte": 4.0,
            "roof_frac": 0.2,
        }
        for level, bytes_per_s in (("dram", 2e12), ("l2", 4e12))
    ]


CHAINS = "[...document.querySelectorAll('#chart .chain-label')].map(t => t.textContent)"


def test_points_at_several_precisions_say_which_they_are(visit):
    both = kernel(points=points("fp32", 1e12) + points("fp64", 1e11), dominant_precision="fp32")
    browser = visit(document(both), "#k0")
    browser.wait_for("document.querySelectorAll('#chart .selected').length === 2")
    assert browser.run(CHAINS) == ["saxpy · FP32", "saxpy · FP64"]
    # Beside the points of their own rates: the lower one is below.
    upper, lower = browser.run("[...document.querySelectorAll('#chart .chain-label')].map(t => +t.getAttribute('y'))")
    assert lower > upper
    heights = browser.run("[...document.querySelectorAll('#chart .selected circle')].map(c => +c.getAttribute('cy'))")
    assert {round(upper), round(lower)} == {round(height) for height in heights}
    radii = browser.run(
        "[...document.querySelectorAll('#chart .selected')].map(g => +g.querySelector('circle').getAttribute('r'))"
    )
    assert radii == [7, 3]  # the precision of the dot stands out


def test_points_at_several_precisions_in_one_place_have_one_label(visit):
    both = kernel(points=points("fp32", 1e12) + points("fp64", 1e12), dominant_precision="fp32")
    browser = visit(document(both), "#k0")
    browser.wait_for("document.querySelectorAll('#chart .selected').length === 2")
    assert browser.run(CHAINS) == ["saxpy · FP32, FP64"]


def test_points_at_one_precision_need_no_label(visit):
    browser = visit(document(kernel(dominant_precision="fp32")), "#k0")
    browser.wait_for("document.querySelectorAll('#chart .selected').length === 1")
    assert browser.run(CHAINS) == []
