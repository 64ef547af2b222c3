"""Launches that failed to profile are named, and shown without claims about them."""

from __future__ import annotations

import pytest

from ncuroof.present.page.render import render_page
from ncuroof.present.sentences.remarks import failed_sentence
from tests.present.documents import document, kernel, unknown_kernel


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], ""),
        (
            ["lost"],
            "a launch failed to profile and is in no sum: lost; see in ncu's output why it failed, then record it again "
            "(kernels that wait for other GPUs cannot be replayed)",
        ),
        (
            ["a", "b", "b"],
            "3 launches failed to profile and are in no sum: b ×2, a; see in ncu's output why they failed, then record them again "
            "(kernels that wait for other GPUs cannot be replayed)",
        ),
        (
            ["a", "b", "c", "d"],
            "4 launches failed to profile and are in no sum: a, b, c and 1 other kernel; see in ncu's output why they failed, "
            "then record them again (kernels that wait for other GPUs cannot be replayed)",
        ),
    ],
)
def test_what_failed_and_what_to_do(names: list[str], sentence: str) -> None:
    assert failed_sentence(names) == sentence


def test_names_of_failed_launches_are_printable_and_short() -> None:
    assert "a\\u001b[31m;" in failed_sentence(["a\x1b[31m"])
    assert f": {'x' * 59}…;" in failed_sentence(["x" * 99])


def test_the_page_names_them_first() -> None:
    page = render_page(document(kernel(), unknown_kernel(id=1, short_name="lost")))
    assert '<p class="warning" role="note">A launch failed to profile and is in no sum: lost; see' in page
    assert "failed to profile and" not in render_page(document(kernel()))


def test_a_page_without_a_measured_launch_says_so() -> None:
    said = '<p class="soft">No launch was measured.</p>'
    alone = document(unknown_kernel(short_name="lost"))
    alone["summary"]["by_verdict"] = {}
    assert said in render_page(alone)
    assert said not in render_page(document(kernel()))


@pytest.mark.browser
def test_the_detail_of_a_failed_launch_claims_nothing_about_it(visit) -> None:
    failed = unknown_kernel(id=1, short_name="lost", grid=None, block=None, check={"sm_share": 1.0})
    browser = visit(document(kernel(id=0), failed), "#k1")
    browser.wait_for("document.getElementById('detail-title').textContent.startsWith('#1')")
    titles = browser.run("[...document.querySelectorAll('#detail-body h3')].map(h => h.textContent)")
    assert titles[:2] == ["Caveats", "Launch"]
    detail = browser.run("document.getElementById('detail-body').textContent")
    assert "See in ncu's output why it failed, then record it again." in detail
    for claim in ("None: the collected counters", "pass", "0 × 0 × 0", "Not collected", "Counters as recorded"):
        assert claim not in detail, claim
    browser.run("location.hash = '#k0'")
    browser.wait_for("document.getElementById('detail-body').textContent.includes('Why this verdict')")
    assert browser.complaints == []


@pytest.mark.browser
def test_the_bars_of_failed_launches_ask_for_no_section(visit) -> None:
    alone = document(unknown_kernel(short_name="lost"))
    bars = "document.getElementById('bars').textContent"
    assert visit(alone).run(bars) == "Utilisation is not known: profiling failed."
