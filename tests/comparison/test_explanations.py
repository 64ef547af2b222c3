"""Reasons: what moved the way the time did, and mattered to the kernel. The numbers are those of recorded pairs, rounded."""

from __future__ import annotations

import pytest

from ncuroof.comparison import compare
from ncuroof.present.sentences.match_change import change_sentence
from tests.comparison.runs import launch, run


def reasons(before: dict[str, float | str], after: dict[str, float | str], us: tuple[float, float]) -> list[str]:
    old, new = run(launch("a", us[0], **before)), run(launch("a", us[1], **after))
    (delta,) = compare(old, new).deltas
    return [change.quantity for change in delta.changes if change.explains]


def told_of(before: dict[str, float], after: dict[str, float], us: tuple[float, float]) -> str:
    (delta,) = compare(run(launch("a", us[0], **before)), run(launch("a", us[1], **after))).deltas
    return change_sentence(delta)


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
    dram = {"latency": 0.6, "memory": 0.85}[verdict]
    before = {"instructions.warp_executed": 1e9, "utilisation.issue": 0.1, "utilisation.dram": dram}
    after = {"instructions.warp_executed": 5e8, "utilisation.issue": 0.1, "utilisation.dram": dram}
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
                "access.bank_conflict_frac", "launch.sm_frac", "access.l2_hit_frac", "access.l1_hit_frac",
                "utilisation.tensor", "utilisation.dram", "utilisation.issue",
            )
        ],
        # 2.5 points or 1.5: of the few warps of a kernel with large tiles that is much
        *[(name, 0.15, 0.175, 0.165) for name in ("occupancy.achieved_frac", "scheduler.sm_active_frac")],
        ("sm_clock_hz", 1.5e9, 1.535e9, 1.527e9),  # 2.3 or 1.8 %
    ],
)  # fmt: skip
def test_a_change_is_shown_from_its_threshold_on(quantity: str, was: float, shown: float, not_shown: float) -> None:
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


def test_a_utilisation_is_not_a_reason_beside_a_real_one() -> None:
    # the same bytes in an eighth of the time use DRAM eight times as much: that is why nothing
    old = {"utilisation.dram": 0.1, "occupancy.achieved_frac": 0.1, "verdict": "latency"}
    new = {"utilisation.dram": 0.8, "occupancy.achieved_frac": 0.5, "verdict": "latency"}
    assert reasons(old, new, (8000.0, 1000.0)) == ["occupancy.achieved_frac"]


def test_a_utilisation_that_only_follows_the_time_explains_nothing() -> None:
    # the same bytes in 12.3 times the time leave DRAM a twelfth as busy: that is why nothing
    before, after = (
        run(launch("a", 61.6, **{"utilisation.dram": 0.732})),
        run(launch("a", 758.0, **{"utilisation.dram": 0.06})),
    )
    (delta,) = compare(before, after).deltas
    assert not any(change.explains for change in delta.changes)
    assert change_sentence(delta) == (
        "12.3× slower; no quantity that compare looks at explains it (DRAM utilisation 73.2 % → 6.0 %)"
    )


@pytest.mark.parametrize(
    ("was", "became", "explaining"),
    [(0.0, 0.6, ["utilisation.tensor"]), (1.5e-6, 0.6, ["utilisation.tensor"]), (0.01, 0.6, []), (0.0, 0.1, [])],
)
def test_tensor_cores_that_were_not_used_before_are_a_reason(was: float, became: float, explaining: list[str]) -> None:
    assert reasons({"utilisation.tensor": was}, {"utilisation.tensor": became}, (4000.0, 1000.0)) == explaining


def fracs(before: dict[str, float | str], after: dict[str, float | str], us: tuple[float, float]) -> dict[str, float]:
    """Return what explains a change, with the share of it that each can account for."""
    old, new = run(launch("a", us[0], **before)), run(launch("a", us[1], **after))
    (delta,) = compare(old, new).deltas
    return {
        change.quantity: change.accounts_for_frac for change in delta.changes if change.accounts_for_frac is not None
    }


def test_an_amount_accounts_for_the_time_that_its_unit_works_less_on_it() -> None:
    # DRAM works for 60 µs of 100, and on 70 % of the bytes for 42: 18 of the 40 µs
    before, after = {"traffic_bytes.dram": 1e8}, {"traffic_bytes.dram": 0.7e8}
    assert fracs(before, after, (100.0, 60.0)) == {"traffic_bytes.dram": pytest.approx(0.45)}
    # of 80 µs that is 22.5 %, which is too little
    assert fracs(before, after, (100.0, 20.0)) == {}
    # the slower run is judged, whichever came first
    assert fracs(after, before, (60.0, 100.0)) == {"traffic_bytes.dram": pytest.approx(0.45)}
    # however much smaller an amount is: DRAM works for 60 µs, and then for 57
    assert fracs(before, {"traffic_bytes.dram": 1e7}, (100.0, 95.0)) == {"traffic_bytes.dram": pytest.approx(0.6)}
    # 75 % busy is 90 of 120 µs, and none of it is saved
    assert fracs(before | {"utilisation.dram": 0.5}, after | {"utilisation.dram": 0.75}, (180.0, 120.0)) == {}


L1_AND_SHARED = ("traffic_bytes.l1", "traffic_bytes.shared")


@pytest.mark.parametrize(
    ("was", "became", "explaining"),
    [
        # 90 % of what L1 moves is from L1, and half of that is gone: 0.9 · 0.9 · 100 µs / 2 = 40.5 µs of 50
        ((9e9, 1e9), (4.5e9, 1e9), {"traffic_bytes.l1": 0.81}),
        # 4 % of it: L1 works on that for 3.6 % of the time; for 45 of 50 µs less on both
        ((4e8, 96e8), (1e8, 40e8), {"traffic_bytes.shared": 0.9}),
        # less from L1, but more of both together: why L1 is busy for 45 µs less is not known
        ((5e9, 5e9), (2e9, 9e9), {"utilisation.l1": 0.9}),
    ],
)
def test_l1_and_shared_memory_have_their_parts_of_the_time_of_l1(
    was: tuple[float, float], became: tuple[float, float], explaining: dict[str, float]
) -> None:
    before, after = (dict(zip(L1_AND_SHARED, moved, strict=True)) | {"utilisation.l1": 0.9} for moved in (was, became))
    found = fracs(before, after, (100.0, 50.0))
    assert found == pytest.approx(explaining)


LATENCY = {"scheduler.compute_busy_frac": 0.3, "scheduler.sm_active_frac": 1.0, "verdict": "latency"}
LIMITED = LATENCY | {"scheduler.compute_busy_frac": 0.85}


def test_more_warps_and_shorter_waits_explain_where_no_unit_limits() -> None:
    # 2 warps that issue in every 10th cycle: 20 cycles from one instruction to the next, 16 of which wait for memory; then 6 and 2.
    # 20 / (20 - 14) = 3.33 is the logarithm 1.204 of the 1.386 of four times as fast.
    before = {"scheduler.n_active_warps": 2.0, "scheduler.issue_per_cycle": 0.1, "stalls.long_scoreboard": 0.8}
    after = {"scheduler.n_active_warps": 2.4, "scheduler.issue_per_cycle": 0.4, "stalls.long_scoreboard": 1 / 3}
    us = (400.0, 100.0)
    assert fracs(before | LATENCY, after | LATENCY, us) == {"stalls.long_scoreboard": pytest.approx(0.868, abs=5e-4)}
    assert fracs(before | LIMITED, after | LATENCY, us) == {}
    old, new = (
        run(launch("a", us_, **each, **LATENCY | {"limiter": None}))
        for us_, each in zip(us, (before, after), strict=True)
    )
    (delta,) = compare(old, new).deltas
    assert change_sentence(delta) == "4× faster: long scoreboard 16 → 2 cycles per instruction"


@pytest.mark.parametrize(("state", "explaining"), [(LATENCY, {"occupancy.achieved_frac": 0.5}), (LIMITED, {})])
def test_twice_the_warps_account_for_half_of_four_times_the_speed(
    state: dict[str, float | str], explaining: dict[str, float]
) -> None:
    before, after = {"occupancy.achieved_frac": 0.25}, {"occupancy.achieved_frac": 0.5}
    assert fracs(before | state, after | state, (400.0, 100.0)) == pytest.approx(explaining)


def test_a_limiting_unit_is_judged_while_sms_have_work() -> None:
    # 60 % of the time is 85.7 % of the 70 % in which SMs have work: more warps do not help
    state = LATENCY | {"scheduler.l1_busy_frac": 0.857, "scheduler.sm_active_frac": 0.7}
    before, after = {"occupancy.achieved_frac": 0.25} | state, {"occupancy.achieved_frac": 0.5} | state
    assert fracs(before, after, (400.0, 100.0)) == {}
    # 96 to 99.8 % are the logarithm 0.0388 of 0.0356
    idle, full = (LIMITED | {"scheduler.sm_active_frac": frac} for frac in (0.96, 0.998))
    assert fracs(before | idle, after | full, (103.63, 100.0)) == {"scheduler.sm_active_frac": 1}


def test_sms_without_blocks_are_why_sms_have_no_work() -> None:
    before = {"scheduler.sm_active_frac": 0.45, "launch.sm_frac": 0.5}
    after = {"scheduler.sm_active_frac": 0.9, "launch.sm_frac": 1.0}
    assert fracs(before, after, (200.0, 100.0)) == {"launch.sm_frac": 1}


def test_a_unit_that_is_busy_for_shorter_explains_where_nothing_says_why() -> None:
    # 90 of 100 µs, then 36 of 40; half of the instructions would be 45 µs of 60
    before = after = LIMITED | {"utilisation.lsu": 0.9}
    assert fracs(before, after, (100.0, 40.0)) == {"utilisation.lsu": pytest.approx(0.9)}
    old, new = (run(launch("a", us, **before)) for us in (100.0, 40.0))
    assert change_sentence(compare(old, new).deltas[0]) == "2.5× faster: LSU pipe busy 90.0 µs → 36.0 µs"
    some = {"instructions.warp_executed": 1e9}, {"instructions.warp_executed": 5e8}
    assert fracs(before | some[0], after | some[1], (100.0, 40.0)) == {
        "instructions.warp_executed": pytest.approx(0.75)
    }
    few = {"instructions.warp_executed": 1e9}, {"instructions.warp_executed": 8e8}
    assert list(fracs(before | few[0], after | few[1], (100.0, 40.0))) == [
        "utilisation.lsu",
        "instructions.warp_executed",
    ]


@pytest.mark.parametrize(
    ("l1", "named"),
    [
        (0.6, "utilisation.lsu"),
        (0.91, "utilisation.lsu"),  # L1 with the LSU pipe in it
        (0.97, "utilisation.l1"),
    ],
)
def test_the_busiest_of_the_units_with_less_busy_time_is_named(l1: float, named: str) -> None:
    before = {"utilisation.lsu": 0.9, "utilisation.l1": l1, "utilisation.alu": 0.8}
    assert list(fracs(before, before | {"utilisation.alu": 0.1}, (100.0, 40.0))) == [named]


def test_each_unit_has_reasons_of_its_own() -> None:
    # L1 works for 95 µs, then for 38, on shared memory alone; tensor cores for 90, then for 36, on as many FLOPs.
    before = {"utilisation.l1": 0.95, "traffic_bytes.shared": 1e9, "traffic_bytes.l1": 0.0, "utilisation.tensor": 0.9}
    after = before | {"traffic_bytes.shared": 4e8}
    assert fracs(before, after, (100.0, 40.0)) == pytest.approx(
        {"traffic_bytes.shared": 0.95, "utilisation.tensor": 0.9}
    )


def test_units_of_sms_count_while_sms_have_work() -> None:
    # Half of the SMs, 96 % busy with L1: of its 96 µs, 86.4 % less are 83 of 84
    before = {
        "utilisation.l1": 0.48,
        "scheduler.sm_active_frac": 0.5,
        "traffic_bytes.l1": 1e9,
        "traffic_bytes.shared": 0.0,
    }
    after = before | {"traffic_bytes.l1": 1.36e8}
    assert fracs(before, after, (100.0, 16.0))["traffic_bytes.l1"] == pytest.approx(0.96)


def test_how_long_a_unit_is_busy_explains_a_time_that_the_unit_limits() -> None:
    assert fracs({"utilisation.lsu": 0.79}, {"utilisation.lsu": 0.1}, (100.0, 40.0)) == {}  # it follows the time
    assert list(fracs({"utilisation.lsu": 0.81}, {"utilisation.lsu": 0.1}, (100.0, 40.0))) == ["utilisation.lsu"]


def test_registers_that_let_a_block_more_in_are_the_reason_and_not_what_moved_with_them() -> None:
    # 256 threads of 76 registers take 20 480 of 65 536: 3 blocks; of 64 registers 16 384: 4 blocks. L1 is busy for 60 %
    before = {"launch.n_registers_per_thread": 76.0, "occupancy.limit_registers": 3.0, "occupancy.resident_blocks": 3.0}
    after = {"launch.n_registers_per_thread": 64.0, "occupancy.limit_registers": 4.0, "occupancy.resident_blocks": 4.0}
    l1 = {"utilisation.l1": 0.6, "scheduler.l1_busy_frac": 0.6}
    words = "registers per thread 76 → 64"
    told = told_of(before | l1, after | l1, (500.0, 400.0))
    assert told == f"1.25× faster: blocks per SM 3 → 4 ({words})"
    achieved = [side | l1 | {"occupancy.achieved_frac": frac} for side, frac in ((before, 0.37), (after, 0.49))]
    told = told_of(*achieved, (500.0, 400.0))
    assert told == f"1.25× faster: occupancy 37.0 % → 49.0 % ({words}; blocks per SM 3 → 4)"


def test_bank_conflicts_account_for_their_part_of_shared_memorys_time() -> None:
    # L1 is busy for 80 µs of 100, with shared memory half of that, of which conflicts are 75 %, then none: 30 µs
    moved = {"traffic_bytes.l1": 4e9, "utilisation.l1": 0.8}
    before = {"access.bank_conflict_frac": 0.75, "traffic_bytes.shared": 4e9} | moved
    after = {"access.bank_conflict_frac": 0.0, "traffic_bytes.shared": 1e9} | moved
    found = fracs(before, after, (100.0, 60.0))
    assert found["access.bank_conflict_frac"] == pytest.approx(0.75)


def test_hits_account_for_what_their_misses_do() -> None:
    # 60 µs of DRAM, then 36: 24 of 40
    before = {"access.l2_hit_frac": 0.2, "traffic_bytes.dram": 2e8}
    after = {"access.l2_hit_frac": 0.6, "traffic_bytes.dram": 1e8}
    assert fracs(before, after, (100.0, 60.0)) == pytest.approx({"traffic_bytes.dram": 0.6, "access.l2_hit_frac": 0.6})
    # of none at all nobody knows of how much
    assert list(fracs(before | {"access.l2_hit_frac": 0.0}, after, (100.0, 60.0))) == ["traffic_bytes.dram"]
    # a DRAM that idles
    assert fracs(before | {"utilisation.dram": 0.1}, after, (100.0, 60.0)) == {}


def test_flops_matter_to_the_pipes_that_do_them() -> None:
    before, after = {"work.fp32.flop": 1e9, "utilisation.alu": 0.9}, {"work.fp32.flop": 1e8, "utilisation.alu": 0.9}
    idle = {"utilisation.fp32": 0.1, "utilisation.compute": 0.9}
    assert "work.flop" not in fracs(before | idle, after | idle, (100.0, 60.0))
    busy = {"utilisation.fp32": 0.5}
    # 50 of 100 µs, then 30 of 60
    assert fracs(before | busy, after | busy, (100.0, 60.0))["work.flop"] == pytest.approx(0.5)


def test_larger_reasons_come_first_and_small_ones_show_their_part() -> None:
    # instructions: half of 60 µs are 30 of 70; bytes: 0.6 · 100 · 0.8 = 48, of which DRAM saves 60 - 18 = 42
    before = LIMITED | {"instructions.warp_executed": 1e9, "utilisation.issue": 0.6, "traffic_bytes.dram": 1e8}
    after = LIMITED | {"instructions.warp_executed": 5e8, "utilisation.issue": 0.6, "traffic_bytes.dram": 2e7}
    old, new = run(launch("a", 100.0, **before)), run(launch("a", 30.0, **after))
    (delta,) = compare(old, new).deltas
    assert change_sentence(delta) == "3.33× faster: DRAM bytes −80.0 %, instructions −50.0 % (at most 42.9 % of that)"


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        ({"launch.n_registers_per_thread": (228.0, 128.0)}, " (registers per thread 228 → 128)"),
        ({"launch.n_registers_per_thread": (128.0, 228.0)}, ""),  # more of them leave room for less
        ({"launch.n_registers_per_thread": (128.0, 125.0)}, ""),
        (
            {"launch.n_registers_per_thread": (64.0, 32.0), "launch.shared_bytes_per_block": (98304.0, 49152.0)},
            " (registers per thread 64 → 32; shared memory per block 98.3 kB → 49.2 kB)",
        ),
    ],
)
def test_occupancy_that_rose_says_what_blocks_take_less_of(taken: dict[str, tuple[float, float]], words: str) -> None:
    sides = (
        run(
            launch(
                "a",
                us,
                **LATENCY,
                **{"occupancy.achieved_frac": frac},
                **{name: values[side] for name, values in taken.items()},
            )
        )
        for side, (us, frac) in enumerate(((200.0, 0.25), (100.0, 0.5)))
    )
    (delta,) = compare(*sides).deltas
    assert change_sentence(delta) == f"2× faster: occupancy 25.0 % → 50.0 %{words}"


@pytest.mark.parametrize(
    ("registers", "resident", "filled", "words"),
    [
        (2.0, 2.0, 1.0, " (registers per thread 228 → 128)"),
        (3.0, 2.0, 1.0, ""),  # something else leaves less room
        (2.0, 2.0, 0.5, ""),  # half of the room is empty
    ],
)
def test_registers_are_a_reason_where_they_leave_the_least_room(
    registers: float, resident: float, filled: float, words: str
) -> None:
    room = {
        "occupancy.limit_registers": registers,
        "occupancy.resident_blocks": resident,
        "occupancy.filled_frac": filled,
    }
    few = {"occupancy.achieved_frac": 0.25, "launch.n_registers_per_thread": 228.0, **room}
    many = {"occupancy.achieved_frac": 0.5, "launch.n_registers_per_thread": 128.0}
    (delta,) = compare(run(launch("a", 200.0, **LATENCY, **few)), run(launch("a", 100.0, **LATENCY, **many))).deltas
    assert change_sentence(delta) == f"2× faster: occupancy 25.0 % → 50.0 %{words}"
