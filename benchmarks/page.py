"""Times the page in headless Chromium: from opening the file to the first chart, and from a filter or sort to the next paint."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.diagnosis import repeated
from benchmarks.reports import REPORT
from benchmarks.timing import Spread, print_table
from ncuroof.present.documents.analysis import document
from ncuroof.present.page.render import render_page
from ncuroof.reading import Reports, read
from tests.present import chromium

if TYPE_CHECKING:
    from pathlib import Path

    from ncuroof.ingest import RawReport

SIZES = (1, 143, 10_000)
GOAL_CHART_SECONDS = 2
GOAL_FILTER_SECONDS = 0.1

_READY = "document.documentElement.dataset.ready === 'true' && document.querySelector('#chart canvas').width > 0"
_AFTER_PAINT = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


def benchmark(folder: Path, rounds: int) -> None:
    """Print how long pages of one to ten thousand kernels, each with its own name, take to open, filter and sort."""
    if chromium.EXECUTABLE is None:
        print("Page: Chromium is not installed\n")
        return
    (raw,) = read(REPORT).raw
    pages = {n_kernels: _written(raw, n_kernels, folder) for n_kernels in SIZES}
    empty = folder / "empty.html"
    empty.write_text(
        "<!doctype html><script>document.documentElement.dataset.ready = 'true'</script>", encoding="utf-8"
    )
    browser = chromium.Browser()
    try:
        opened: dict[str, list[float]] = {"an empty page": []}
        answered: dict[str, dict[str, list[float]]] = {}
        for _ in range(rounds):
            opened["an empty page"].append(_open(browser, empty, "document.documentElement.dataset.ready === 'true'"))
            for n_kernels, (path, _, _) in pages.items():
                name = f"{n_kernels:,} kernels"
                opened.setdefault(name, []).append(_open(browser, path, _READY))
                for act, seconds in _acts(browser).items():
                    answered.setdefault(name, {}).setdefault(act, []).append(seconds)
    finally:
        browser.close()
    print(
        f"Page, {rounds} rounds; the goal for {SIZES[-1]:,} kernels is a chart in {GOAL_CHART_SECONDS} s, "
        f"a filter in {GOAL_FILTER_SECONDS * 1e3:.0f} ms\n"
    )
    base = Spread.of(opened["an empty page"])
    rows = [["an empty page", "", "", str(base), "1", "", ""]]
    for (name, seconds), (_, size, written) in zip(list(opened.items())[1:], pages.values(), strict=True):
        whole = Spread.of(seconds)
        acts = [str(Spread.of(answered[name][act])) for act in ("filter", "sort")]
        rows.append(
            [name, f"{size / 1e6:.2f} MB", f"{written:.2f} s", str(whole), f"{whole.median / base.median:.1f}", *acts]
        )
    print_table(["page of", "size", "written in", "opened to chart", "times empty", "filter", "sort"], rows)


def _written(raw: RawReport, n_kernels: int, folder: Path) -> tuple[Path, int, float]:
    """Write a page of `n_kernels`; return its path, its size in bytes, and the seconds to render it, without the analysis."""
    report = repeated(raw, n_kernels)
    names = [f"kernel_{number}<int, {number % 97}>()" for number in range(n_kernels)]
    workloads = report.workloads.with_columns(
        pl.Series("demangled_name", names), pl.Series("function_name", [name.partition("<")[0] for name in names])
    )
    analysis = Reports((replace(report, workloads=workloads),)).analyse()
    path = folder / f"page-{n_kernels}.html"
    begin = time.perf_counter()
    html = render_page(document(analysis), analysis.reports)
    seconds = time.perf_counter() - begin
    path.write_text(html, encoding="utf-8")
    return path, len(html.encode()), seconds


def _open(browser: chromium.Browser, path: Path, is_ready: str) -> float:
    begin = time.perf_counter()
    browser.open(path)
    browser.wait_for(is_ready)
    return time.perf_counter() - begin


def _acts(browser: chromium.Browser) -> dict[str, float]:
    """Return the seconds from an action to the next paint: the slowest of a few filters, and of a few sorts."""
    search = "const i = document.getElementById('search'); i.value = VALUE; i.dispatchEvent(new Event('input'))"
    searches = [search.replace("VALUE", json.dumps(wanted)) for wanted in ("kernel_1", "kernel_12", "", "97>")]
    sorts = [f"document.querySelector('[data-key={key}] button').click()" for key in ("time", "name", "finding")]
    return {name: max(_act(browser, act) for act in acts) for name, acts in (("filter", searches), ("sort", sorts))}


def _act(browser: chromium.Browser, act: str) -> float:
    answer = browser.run(
        f"(async () => {{ const begin = performance.now(); {act}; await {_AFTER_PAINT}; return performance.now() - begin }})()"
    )
    return float(answer) / 1e3
