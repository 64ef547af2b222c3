"""Reasons: what moved the way the time did, and mattered to the kernel. The numbers are those of recorded pairs, rounded."""

from __future__ import annotations

import pytest

from ncuroof.comparison import compare
from ncuroof.present.sentences.change import change_sentence
from tests.comparison.runs import launch, run


def reasons(before: dict[str, float | str], after: dict[str, float | str], us: tuple[float, float]) -> list[str]:
    old, new = run(launch("a", us[0], **before)), run(launch("a", us[1], **after))
    (delta,) = compare(old, new).deltas
    return [change.quantity for change in delta.changes if change.explains]


@pytest.mark.parametrize(
    ("busy", "explaining"), [(0.125, []), (0.31, ["traffic_bytes.dram"]), (None, ["traffic_bytes.dram"])]
)
def test_bytes_explain_where_the_slower_run_keeps_what_moves_them_busy(
    busy: float | None, explaining: list[str]
) -> None:
    # 3.45 times the bytes through a DRAM that is used to 12.5 % take no time of a kernel that computes
    before = {"traffic_bytes.dram": 1e8, "utilisation.dram": 0.04}
    after = {"traffic_bytes.dram": 3.45e8, "utilisation.dram": busy}
    assert reasons(before, after, (3030.0, 3250.0)) == explaining


@pytest.mark.parametrize(("verdict", "explaining"), [("latency", ["instructions.warp_executed"]), ("memory", [])])
def test_instructions_take_time_in_a_kernel_that_waits_for_each(verdict: str, explaining: list[str]) -> None:
    before = {"instructions.warp_executed": 1e9, "utilisation.issue": 0.1, "verdict": verdict}
    after = {"instructions.warp_executed": 5e8, "utilisation.issue": 0.1, "verdict": verdict}
    assert reasons(before, after, (2000.0, 1000.0)) == explaining


def test_issue_slots_that_follow_their_instructions_are_arithmetic() -> None:
    # half the instructions in 1.06 times the time use half the issue slots: not why it takes longer
    before = {"instructions.warp_executed": 17.7e9, "utilisation.issue": 0.485}
    after = {"instructions.warp_executed": 9.4e9, "utilisation.issue": 0.243}
    assert reasons(before, after, (32000.0, 34000.0)) == []


@pytest.mark.parametrize(
    ("bytes_after", "explaining"), [(156e6, []), (80e6, ["traffic_bytes.dram", "access.l2_hit_frac"])]
)
def test_hits_explain_where_the_misses_became_fewer(bytes_after: float, explaining: list[str]) -> None:
    before = {"access.l2_hit_frac": 0.478, "traffic_bytes.dram": 151e6}
    after = {"access.l2_hit_frac": 0.703, "traffic_bytes.dram": bytes_after}
    assert reasons(before, after, (1030.0, 960.0)) == explaining


def test_waves_say_nothing_where_the_grid_is_the_same() -> None:
    # 168 to 197 registers: 2 blocks in place of 3 to an SM make 75.9 waves of 50.6
    before, after = {"occupancy.waves": 50.6}, {"occupancy.waves": 75.9}
    assert reasons(before, after, (15300.0, 14700.0)) == []


@pytest.mark.parametrize(
    ("sm_frac", "us", "explaining"),
    [
        ((16 / 132, 128 / 132), (255.0, 34.0), ["launch.sm_frac"]),
        ((128 / 132, 16 / 132), (34.0, 255.0), ["launch.sm_frac"]),
        ((16 / 132, 128 / 132), (34.0, 255.0), []),
        ((128 / 132, 1.0), (34.0, 31.0), []),  # four SMs of 132 more
    ],
)
def test_sms_without_a_block_explain(
    sm_frac: tuple[float, float], us: tuple[float, float], explaining: list[str]
) -> None:
    before, after = ({"launch.sm_frac": frac} for frac in sm_frac)
    assert reasons(before, after, us) == explaining


@pytest.mark.parametrize(
    ("quantity", "was", "shown", "not_shown"),
    [
        # amounts: 6 % of the larger or 4 % (FLOPs and DRAM, of which all matters), 12 % or 8 % of what is nearer to the SMs
        *[(name, 1e9, 1.06e9, 1.045e9) for name in ("work.flop", "traffic_bytes.dram")],
        *[(f"traffic_bytes.{level}", 1e9, 1.13e9, 1.09e9) for level in ("l2", "l1", "shared")],
        *[(name, 1e9, 1.13e9, 1.09e9) for name in ("access.local_bytes", "instructions.warp_executed")],
        # shares: 6 points or 4
        *[
            (name, 0.4, 0.46, 0.44)
            for name in (
                "access.bank_conflict_frac", "launch.sm_frac", "occupancy.achieved_frac", "access.l2_hit_frac",
                "access.l1_hit_frac", "utilisation.tensor", "utilisation.dram", "utilisation.issue",
            )
        ],
        ("sm_clock_hz", 1.5e9, 1.535e9, 1.527e9),  # 2.3 or 1.8 %
    ],
)  # fmt: skip
def test_a_change_is_told_from_its_least_on(quantity: str, was: float, shown: float, not_shown: float) -> None:
    def changes(became: float) -> list[str]:
        counted = "work.fp32.flop" if quantity == "work.flop" else quantity
        (delta,) = compare(run(launch("a", **{counted: was})), run(launch("a", **{counted: became}))).deltas
        return [change.quantity for change in delta.changes]

    assert quantity in changes(shown)
    assert quantity not in changes(not_shown)


@pytest.mark.parametrize(
    ("instructions", "words"),
    [
        (1.9e9, "instructions +90.0 %"),
        (1.9998e9, "instructions +100 %"),
        (2e9, "instructions +100 %"),
        (2.05e9, "instructions ×2.05"),
    ],
)
def test_an_amount_that_doubles_grows_by_a_hundred_percent(instructions: float, words: str) -> None:
    latency = {"verdict": "latency", "limiter": None}
    old, new = (
        run(launch("a", us, **latency, **{"instructions.warp_executed": amount}))
        for us, amount in ((100.0, 1e9), (200.0, instructions))
    )
    (slower,), (faster,) = compare(old, new).deltas, compare(new, old).deltas
    assert change_sentence(slower) == f"2× slower: {words}"
    assert change_sentence(faster).startswith("2× faster: instructions −")


def test_an_amount_of_which_hardly_anything_is_left_is_a_factor() -> None:
    old, new = (run(launch("a", us, **{"traffic_bytes.dram": moved})) for us, moved in ((100.0, 1e9), (50.0, 3e5)))
    (delta,) = compare(old, new).deltas
    assert change_sentence(delta) == "2× faster: DRAM bytes ×0.0003"


def test_issue_slots_that_gain_more_than_their_instructions_are_used_better() -> None:
    # 12 % more instructions in 0.4 of the time: of the 2.8 times as many slots in use, 1.12 times are arithmetic
    before = {"instructions.warp_executed": 1e9, "utilisation.issue": 0.2}
    after = {"instructions.warp_executed": 1.12e9, "utilisation.issue": 0.56}
    fewer_bytes = {"traffic_bytes.dram": 5e5}
    assert reasons(before, after | fewer_bytes, (1000.0, 400.0)) == ["traffic_bytes.dram", "utilisation.issue"]
    after["utilisation.issue"] = 0.22
    assert reasons(before, after | fewer_bytes, (1000.0, 400.0)) == ["traffic_bytes.dram"]


@pytest.mark.parametrize(("after", "explaining"), [(0.076, []), (0.31, ["utilisation.dram"])])
def test_a_utilisation_explains_where_it_is_considerable(after: float, explaining: list[str]) -> None:
    # the same bytes in an eighth of the time use DRAM eight times as much, and still hardly at all
    old = {"utilisation.dram": after / 8, "occupancy.achieved_frac": 0.1}
    new = {"utilisation.dram": after, "occupancy.achieved_frac": 0.5}
    assert reasons(old, new, (8000.0, 1000.0)) == ["occupancy.achieved_frac", *explaining]


def test_a_utilisation_alone_is_the_time_told_again() -> None:
    # the same bytes in 12.3 times the time leave DRAM a twelfth as busy: that is why nothing
    before, after = (
        run(launch("a", 61.6, **{"utilisation.dram": 0.732})),
        run(launch("a", 758.0, **{"utilisation.dram": 0.06})),
    )
    (delta,) = compare(before, after).deltas
    assert not any(change.explains for change in delta.changes)
    assert change_sentence(delta) == (
        "12.3× slower; no quantity that both runs collected explains it (DRAM utilisation 73.2 % → 6.0 %)"
    )


def test_tensor_cores_that_were_not_used_before_are_a_reason() -> None:
    assert reasons({"utilisation.tensor": 0.0}, {"utilisation.tensor": 0.6}, (4000.0, 1000.0)) == ["utilisation.tensor"]
