"""The document of a comparison: what cannot be compared is null in it, not a number to be misread."""

from __future__ import annotations

from dataclasses import replace

from ncuroof.comparison import compare
from ncuroof.present.documents.comparison import comparison_document
from tests.comparison.runs import SETUP, launch, run


def test_times_of_another_gpu_have_no_change() -> None:
    other = run(launch("a", 300.0), setup=replace(SETUP, gpus=("NVIDIA B200",)))
    document = comparison_document(compare(run(launch("a", 100.0)), other))
    (match,) = document["matches"]
    assert match["mean_ns"] == [1e5, 3e5]
    assert (match["change_frac"], match["noise_frac"], match["is_significant"]) == (None, None, False)
    summary = document["summary"]
    assert (summary["duration_change_frac"], summary["noise_frac"]) == (None, None)
    assert (summary["n_faster"], summary["n_slower"], summary["n_matches"]) == (0, 0, 1)


def test_times_of_one_gpu_have_one() -> None:
    document = comparison_document(compare(run(launch("a", 100.0)), run(launch("a", 300.0))))
    assert document["matches"][0]["change_frac"] == 2.0
    assert (document["summary"]["n_faster"], document["summary"]["n_slower"]) == (0, 1)
