"""What axe finds that keeps people out of a page."""

from __future__ import annotations

from importlib import resources


def violations(browser):
    """Return the name of each broken rule, with the elements that break it."""
    browser.run((resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
    return browser.run("axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))")
