"""The page where other things decide as well: in a frame of another page, under its policy, in forced colours."""

from __future__ import annotations

import csv
import html
import io
import json

import pytest

from ncuroof.present.page.render import render_page
from tests.present.documents import three_kernels

pytestmark = pytest.mark.browser

TITLE = "document.getElementById('detail-title').textContent"
READY = "document.documentElement.dataset.ready === 'true'"
LINK = "[...document.querySelectorAll('#table a')].find(a => a.textContent === '{}').click()"
COPY = "document.querySelector('#table-buttons button')"


def by_srcdoc(page):
    return f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" width="1300" height="900"></iframe>'


def by_blob(page):
    """As MLflow shows an artifact."""
    text = json.dumps(page).replace("</", "<\\/")
    return (
        f'<iframe sandbox="allow-scripts" width="1300" height="900"></iframe><script>document.querySelector("iframe").src ='
        f' URL.createObjectURL(new Blob([{text}], {{ type: "text/html" }}))</script>'
    )


def by_blob_with_base(page):
    """As JupyterLab shows a file that is trusted."""
    return by_blob(page.replace("<head>", '<head><base href="http://localhost/files/run.html" target="_self">', 1))


@pytest.mark.parametrize("framed", [by_srcdoc, by_blob, by_blob_with_base])
def test_in_a_frame_that_another_page_wrote_links_dots_and_copies_work(browser, tmp_path, framed):
    path = tmp_path / "outer.html"
    path.write_text("<!doctype html><meta charset='utf-8'>" + framed(render_page(three_kernels())), encoding="utf-8")
    browser.open(path)
    with browser.within_frame():
        browser.wait_for(f"document.readyState === 'complete' && {READY}")
        browser.run(LINK.format("beta"))
        browser.wait_for(f"{TITLE} === '#11 beta'")
        assert browser.run("document.activeElement.id") == "detail-title"
        browser.run("document.querySelector('nav a[href=\"#summary\"]').click()")
        assert (
            browser.run("Math.round(document.getElementById('summary').getBoundingClientRect().top)") == 52
        )  # below the head
        browser.run("document.getElementById('chart').focus()")
        for key in ("ArrowRight", "Enter"):  # the next by time after beta, of 300 µs, is gamma, of 200 µs
            browser.run(
                f"document.getElementById('chart').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }}))"
            )
        browser.wait_for(f"{TITLE} === '#12 gamma'")
        browser.run("document.addEventListener('copy', () => { window.copied = document.activeElement.value })")
        browser.run(f"{COPY}.focus(), {COPY}.click()")
        browser.wait_for(f"{COPY}.textContent === 'Copied'")
        rows = csv.DictReader(io.StringIO(browser.run("window.copied")))
        assert [row["id"] for row in rows] == ["12", "10", "11"]
        assert browser.run(f"document.activeElement === {COPY}")


def test_what_may_not_be_copied_is_saved(visit):
    browser = visit(three_kernels())
    browser.run(
        "navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false;"
        "URL.createObjectURL = blob => { window.saved = blob; return 'blob:none' }; HTMLAnchorElement.prototype.click = () => {}"
    )
    browser.run(f"{COPY}.click()")
    browser.wait_for(f"{COPY}.textContent === 'Saved'")
    assert len(list(csv.DictReader(io.StringIO(browser.run("saved.text()"))))) == 3


FORBIDDEN = '<head><meta http-equiv="Content-Security-Policy" content="script-src \'nonce-other\'">'


@pytest.mark.parametrize("head", ["<head>", FORBIDDEN], ids=["old", "forbidden"])
def test_where_the_script_does_not_run_the_page_says_so_and_shows_the_first_kernels(browser, tmp_path, head):
    path = tmp_path / "page.html"
    path.write_text(render_page(three_kernels()).replace("<head>", head, 1), encoding="utf-8")
    missing = "delete window.DecompressionStream" if head == "<head>" else ""
    added = browser.call("Page.addScriptToEvaluateOnNewDocument", source=missing)
    try:
        browser.open(path)
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", **added)
    note = "document.getElementById('unscripted')"
    seen = f"[getComputedStyle({note}).visibility, document.getElementById('summary').offsetTop]"
    hidden, top = browser.run(f"{note}.getAnimations().forEach(a => a.currentTime = 0), {seen}")
    shown, lower = browser.run(f"{note}.getAnimations().forEach(a => a.finish()), {seen}")
    assert [hidden, shown] == ["hidden", "visible"]  # late, so that it does not flash where the script runs
    assert top < lower
    names = browser.run("[...document.querySelectorAll('#table tbody th')].map(th => th.textContent)")
    assert names == ["gamma", "alpha", "beta"]


def test_in_forced_colours_bars_are_seen_beside_their_numbers_and_the_chosen_row_is_outlined(visit):
    browser = visit(three_kernels(), "#k10")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "forced-colors", "value": "active"}])
    try:
        browser.run("document.querySelector('input[name=view][value=bars]').click()")
        style = "getComputedStyle(document.querySelector('{}')).{}"
        paper = browser.run(style.format("body", "backgroundColor"))
        for bar in (".meter-fill", ".bars .fill"):
            assert browser.run(style.format(bar, "backgroundColor")) != paper
        assert browser.run(style.format(".meter-fill", "height")) == "3px"  # of 18, below the number
        assert browser.run(style.format("tr[aria-current]", "outlineStyle")) == "solid"
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])
