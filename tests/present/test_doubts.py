"""The remark on verdicts that are less certain."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.remarks import doubts_sentence
from ncuroof.present.texts.terminal import to_text
from ncuroof.reading import Reports
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def kernel(us: float) -> dict[str, float | str]:
    return {
        "gpu__time_duration.sum": 1e3 * us,
        f"gpu__compute_memory_throughput{PCT}": 90.0,
        f"sm__throughput{PCT}": 30.0,
        "launch__waves_per_multiprocessor": 4.0,
    }


def test_short_kernels_are_doubted_by_their_share_of_the_time() -> None:
    # 19 of 190 µs are in a kernel of less than 20 µs
    analysis = Reports((raw_report(kernel(19.0), kernel(171.0)),)).analyse()
    summary = analysis.to_dict()["summary"]
    assert summary["doubted_frac"] == pytest.approx(0.1)
    assert summary["by_doubt"] == {"short_kernel": pytest.approx(0.1)}
    text = " ".join(to_text(analysis).split())
    assert "verdicts are less certain for 10.0 % of GPU time: short kernel 10.0 %" in text


def test_little_time_is_no_remark_and_the_largest_doubts_come_first() -> None:
    assert doubts_sentence({"doubted_frac": None, "by_doubt": {}}) == ""
    assert doubts_sentence({"doubted_frac": 0.09, "by_doubt": {"short_kernel": 0.09}}) == ""
    shares = {"short_kernel": 0.5, "dram_closure": 0.3, "partial_gpu": 0.2, "above_roof": 0.1}
    assert doubts_sentence({"doubted_frac": 0.6, "by_doubt": shares, "weighting": {"covered_frac": 0.9}}) == (
        "verdicts are less certain for 60.0 % of profiled GPU time: short kernel 50.0 %, DRAM closure 30.0 %, partial gpu 20.0 %"
    )
