"""Every counter that the catalogue reads equals what NVIDIA's command line prints of it (two decimals)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncuroof.ingest import open_report
from ncuroof.metrics import selection
from tests.support.ncu import find_ncu, number, raw_page

pytestmark = [pytest.mark.corpus, pytest.mark.oracle]

EVERY = 6
"""Each sixth report of the corpus is compared here; all of them take a minute."""


def test_counters_equal_what_ncu_prints(corpus: list[Path]) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    n_compared = 0
    for report in corpus[::EVERY]:
        ours = open_report(report, selection=selection()).counters
        printed = raw_page(ncu, report)
        assert len(printed) == ours.height
        for row, (kernel, values) in enumerate(zip(printed, ours.iter_rows(named=True), strict=True)):
            for name, value in values.items():
                theirs = number(kernel.get(name, ""))
                if value is None or theirs is None or not math.isfinite(theirs):
                    continue
                assert math.isclose(value, theirs, rel_tol=1e-6, abs_tol=0.006), (report.name, row, name)
                n_compared += 1
    assert n_compared > 5_000
