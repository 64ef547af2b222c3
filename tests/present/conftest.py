from __future__ import annotations

import pytest

from ncuroof.present.page.render import render_page
from tests.present import chromium


@pytest.fixture(scope="session")
def browser():
    """A browser for all pages of a run of tests."""
    if chromium.EXECUTABLE is None:
        pytest.skip("Chromium is not installed")
    opened = chromium.Browser()
    yield opened
    opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a document and wait until its script has set it up."""

    def open_page(content, fragment="", **options):
        path = tmp_path / "page.html"
        path.write_text(render_page(content), encoding="utf-8")
        browser.open(path, fragment, **options)
        browser.wait_for("document.documentElement.dataset.ready === 'true'")
        return browser

    return open_page
