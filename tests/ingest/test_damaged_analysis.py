"""Reports with damaged messages, from the file to the document: an analysis or a named error, and no impossible number."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ncuroof.ingest.framing import walk
from tests.fuzz.damage import restructured
from tests.fuzz.fuzz_analysis import case, ended, seeds

N_CASES = 16
SEED = 52


@pytest.mark.long
def test_damaged_messages_end_in_an_analysis_or_a_named_error(tmp_path: Path) -> None:
    path, whole = (
        tmp_path / "damaged.ncu-rep",
        seeds()[1:],
    )  # small ones: the command of tests/fuzz takes larger ones too
    ends = set()
    for number in range(N_CASES):
        path.write_bytes(case(number, SEED, whole))
        ends.add(ended(path))
    assert "whole" in ends


def test_a_changed_message_has_every_length_right() -> None:
    (whole,) = seeds()[2:]
    for number in range(60):
        framing = walk(restructured(whole, random.Random(number)))
        assert framing.damage is None or "entries" in framing.damage or "header" in framing.damage


def test_a_case_is_the_same_for_the_same_seed() -> None:
    whole = seeds()[2:]
    assert case(7, SEED, whole) == case(7, SEED, whole) != case(8, SEED, whole)
