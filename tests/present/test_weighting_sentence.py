"""What sums are weighted by, in words."""

from __future__ import annotations

import pytest

from ncuroof.present.weighting_sentence import weighting_sentence


@pytest.mark.parametrize(
    ("covered_frac", "n_unmatched", "begins", "ends"),
    [
        (1.0, 0, "weighted by a run without replays, which counted 640 launches", "single launches are ncu's"),
        (0.75, 0, "weighted", "kernels with 25.0 % of its GPU time were not recorded and are in no sum"),
        (None, 1, "weighted", "1 recorded launch was not counted there, and stands for itself"),
        (1.0, 2, "weighted", "2 recorded launches were not counted there, and each stands for itself"),
        (0.0, 16, "a run without replays counted 640 launches, and none of the kernels", "Each launch here stands for itself"),
    ],
)  # fmt: skip
def test_sentences(covered_frac: float | None, n_unmatched: int, begins: str, ends: str) -> None:
    said = weighting_sentence(n_launches=640, covered_frac=covered_frac, n_unmatched=n_unmatched)
    assert said.startswith(begins)
    assert said.endswith(ends)
