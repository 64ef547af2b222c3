"""Machine code of two runs: whether it is the same, what changed in it, and where a time comes from that it did not cause."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.comparison import Code, compare
from ncuroof.comparison.baseline import baseline_json, read_baseline
from ncuroof.present.sentences.match_change import change_sentence
from tests.comparison.runs import launch, run

ONE, OTHER = "1" * 64, "2" * 64
WHOLE = {"sha256": ONE, "n_instructions": 100, "is_whole": True}


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (WHOLE, WHOLE, Code.SAME),
        (WHOLE, WHOLE | {"sha256": OTHER}, Code.CHANGED),
        (WHOLE, {}, Code.UNKNOWN),
        (WHOLE | {"is_whole": False}, WHOLE | {"is_whole": False}, Code.UNKNOWN),  # what it calls may differ
    ],
)
def test_code_is_the_same_where_all_of_it_is_known(before: dict[str, Any], after: dict[str, Any], code: Code) -> None:
    (delta,) = compare(run(launch("a", **before)), run(launch("a", **after))).deltas
    assert delta.code is code


def test_a_group_whose_launches_differ_in_their_code_has_no_code() -> None:
    both = run(launch("a", **WHOLE), launch("a", **WHOLE | {"sha256": OTHER}))
    assert both.groups.select("sha256", "n_instructions").rows() == [(None, None)]
    assert compare(both, both).deltas[0].code is Code.UNKNOWN


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ({"grid": [8, 1, 1]}, {"grid": [9, 1, 1]}, "another launch: grid, block or shared memory"),
        ({}, {"instructions.warp_executed": 1.02e6}, "another input: instructions executed ×1.02"),
        (
            {"launch.shared_bytes_per_block": 0.0},
            {"launch.shared_bytes_per_block": 1e5},
            "another launch: grid, block or shared memory",
        ),
        ({}, {"sm_clock_hz": 1.42e9}, "the SM clock, in part: −5.3 %"),
        ({}, {"traffic_bytes.dram": 1.2e6}, "its arguments, its data or what the caches held: DRAM bytes ×1.2"),
        # 1.3 % of clock, and fewer bytes, are not why it takes 20 % longer
        (
            {},
            {"sm_clock_hz": 1.48e9, "traffic_bytes.dram": 0.8e6},
            "no counted quantity: memory clock, temperature",
        ),
        ({}, {}, "no counted quantity: memory clock, temperature, placement or other work on the GPU"),
    ],
)
def test_the_same_code_is_not_why_it_is_slower(before: dict[str, Any], after: dict[str, Any], cause: str) -> None:
    known = WHOLE | {"instructions.warp_executed": 1e6, "sm_clock_hz": 1.5e9}
    (delta,) = compare(run(launch("a", 100.0, **known | before)), run(launch("a", 120.0, **known | after))).deltas
    assert f"; the machine code is the same, so that this comes from {cause}" in change_sentence(delta)
    (same,) = compare(run(launch("a", 100.0, **known | before)), run(launch("a", 100.5, **known | after))).deltas
    assert "machine code" not in change_sentence(same)  # nothing to explain


def test_code_changes_show_resources_first_and_then_telling_opcodes() -> None:
    old = WHOLE | {
        "launch.n_registers_per_thread": 76.0,
        "launch.shared_bytes_per_block": 8192.0,
        "opcodes": "CS2R 400 FFMA 1000 IMAD 300 LDG 800 STS 800",
    }
    new = {
        "sha256": OTHER,
        "n_instructions": 160,
        "is_whole": True,
        "launch.n_registers_per_thread": 64.0,
        "launch.shared_bytes_per_block": 8200.0,  # less than 5 % more is none
        "opcodes": "CS2R 100 FFMA 1000 IMAD 310 LDG 10 LDGSTS 200 NOP 1",
    }
    (delta,) = compare(run(launch("a", **old)), run(launch("a", **new))).deltas
    assert [each.sentence for each in delta.code_changes] == [
        "registers per thread 76 → 64",
        "executed STS (stores to shared memory) 800 → none",
        "executed LDG (loads from global memory) 800 → 10",
        "executed LDGSTS (asynchronous copies) none → 200",
        "executed CS2R 400 → 100",
        "instructions in the code 100 → 160",
    ]
    said = change_sentence(delta)
    assert said.endswith(
        ", executed LDGSTS (asynchronous copies) none → 200"
    )  # what tells nothing is in the document alone
    assert "; the code changed: registers per thread 76 → 64, executed STS" in said


def test_a_baseline_knows_the_code_and_not_what_was_executed(tmp_path) -> None:
    whole = run(launch("a", **WHOLE, opcodes="FFMA 10"), launch("b"))
    (tmp_path / "b.json").write_bytes(baseline_json(whole))
    back = read_baseline(tmp_path / "b.json")
    columns = ("sha256", "n_instructions", "is_whole", "opcodes")
    assert back.groups.select(columns).rows() == [(ONE, 100, True, None), (None, None, None, None)]
    assert [delta.code for delta in compare(back, whole).deltas] == [Code.SAME, Code.UNKNOWN]


@pytest.mark.parametrize(
    ("times", "outcome", "n_to_settle"),
    [
        (([100.0], [120.0]), "slower", None),
        (([120.0], [100.0]), "faster", None),
        (([100.0], [101.0]), "same", None),  # ±2.9 % and 1 %: 5 % are ruled out
        (([100.0], [102.5]), "ambiguous", 3),
        # 251 ns in 2 µs are 12.5 %, of two launches in both runs as well; 2 × (2 × 12.5 % / ln 1.05)²
        (([2.0] * 2, [2.0] * 2), "ambiguous", 53),
        (([None], [100.0]), "unknown", None),
    ],
)
def test_an_outcome_is_ambiguous_where_a_change_that_matters_is_neither_seen_nor_ruled_out(
    times: tuple[list[float | None], list[float | None]], outcome: str, n_to_settle: int | None
) -> None:
    (delta,) = compare(*(run(*(launch("a", us) for us in side)) for side in times)).deltas
    assert (delta.outcome.value, delta.n_to_settle) == (outcome, n_to_settle)


def test_an_ambiguous_outcome_says_what_would_settle_it() -> None:
    (delta,) = compare(run(launch("a", 100.0)), run(launch("a", 102.5))).deltas
    # ±2.9 %: 102.5 % × 102.9 %
    said = "no change beyond measurement noise (±2.9 %), but 5.5 % is not ruled out; about 3 launches in each run would settle it"
    assert change_sentence(delta) == said
