"""Over pairs of recordings that have a kernel's code in common: what is slower on the same code never goes without a word of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

import ncuroof
from ncuroof.comparison import Code, Comparison, Delta, Outcome, Run, compare
from ncuroof.present.sentences.match_change import change_sentence

RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures/h100-80gb-hbm3"
RECORDED = ("strided_2", "strided_8", "strided_32")
"""Recordings of one kernel with other arguments."""

OF_THE_CORPUS = ("extra-p__extrap", "F-Sossi__Lab3_CSS_555")


def run_of(path: Path) -> Run:
    return ncuroof.read(path, lines=False).analyse().run(path.name)


def on_the_same_code(runs: Iterable[Run]) -> Iterator[tuple[Comparison, Delta]]:
    """Yield what changed in matches with the same code, over all ordered pairs of runs."""
    for pair in permutations(runs, 2):
        found = compare(*pair)
        yield from ((found, delta) for delta in found.deltas if delta.code is Code.SAME)


def slower(found: Iterable[tuple[Comparison, Delta]]) -> list[str]:
    """Return the sentences of what is slower, of times that are compared."""
    return [
        change_sentence(delta)
        for comparison, delta in found
        if comparison.comparable.is_time_comparable and delta.outcome is Outcome.SLOWER
    ]


@pytest.mark.long
def test_a_slower_kernel_with_the_same_code_says_so() -> None:
    found = list(on_the_same_code(run_of(RECORDINGS / f"{name}.full.ncu-repz") for name in RECORDED))
    assert len(found) == 6  # the code is recognised in every pair
    sentences = slower(found)
    assert len(sentences) == 3
    assert [said for said in sentences if "the machine code is the same" not in said] == []


@pytest.mark.corpus
@pytest.mark.parametrize("folder", OF_THE_CORPUS)
def test_a_slower_kernel_with_the_same_code_says_so_in_real_reports(corpus: list[Path], folder: str) -> None:
    reports = [path for path in corpus if path.parent.name == folder]
    found = list(on_the_same_code(map(run_of, reports)))
    assert found
    assert [said for said in slower(found) if "the machine code is the same" not in said] == []
