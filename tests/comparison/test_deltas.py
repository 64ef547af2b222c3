"""Changes: is it more than chance, how large, and what explains it. All numbers are worked out by hand."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import pytest

from ncuroof.comparison import (
    BUILDS,
    Run,
    Sureness,
    compare,
    judge,
    matched_change,
    parse_gate,
    run_change,
    run_obstacle,
)
from ncuroof.comparison.noise import Chance
from ncuroof.present.sentences.match_change import change_sentence
from tests.comparison.runs import SETUP, launch, run


def only(before, after):
    (delta,) = compare(run(*before), run(*after)).deltas
    return delta


def test_a_long_kernel_changes_from_two_percent_on() -> None:
    # 1 ms: jitter 0.25 µs and 1 % give 1.0003 % per run, twice the root of two of it 2.83 %
    for us, is_significant in ((1030.0, True), (1025.0, False), (971.0, True), (975.0, False)):
        delta = only([launch("a", 1000.0)], [launch("a", us)])
        assert delta.is_significant is is_significant, us
    assert delta.noise_frac == pytest.approx(2 * math.hypot(0.0100031, 0.0100033), rel=1e-4)


def test_a_short_kernel_has_to_change_by_more() -> None:
    # 0.25 µs are 5 % of 5 µs, with 1 % 5.10 %, and of 5.6 µs 4.57 %: 2 √(5.10² + 4.57²) % = 13.7 %
    delta = only([launch("a", 5.0)], [launch("a", 5.6)])
    assert (delta.is_significant, delta.noise_frac) == (False, pytest.approx(0.137, abs=1e-4))
    assert only([launch("a", 5.0)], [launch("a", 5.8)]).is_significant


def test_many_launches_that_agree_make_a_small_change_count() -> None:
    before = [launch("a", us) for us in (100.0, 100.2, 99.8, 100.0)]
    after = [launch("a", us) for us in (102.5, 102.7, 102.3, 102.5)]
    assert only(before, after).is_significant
    assert not only(before[:1], after[:1]).is_significant


def test_launches_that_scatter_hide_a_change() -> None:
    before = [launch("a", us) for us in (80.0, 120.0, 90.0, 110.0)]
    after = [launch("a", us) for us in (85.0, 130.0, 95.0, 115.0)]
    assert not only(before, after).is_significant


def test_a_quantity_that_changes_with_the_time_explains_it() -> None:
    before = launch("a", 200.0, **{"traffic_bytes.dram": 2e9, "work.fp32.flop": 1e9}, verdict="latency", limiter="tail")
    after = launch("a", 100.0, **{"traffic_bytes.dram": 0.8e9, "work.fp32.flop": 1.5e9})
    delta = only([before], [after])
    assert [(change.quantity, change.explains) for change in delta.changes] == [
        ("traffic_bytes.dram", True),
        ("work.flop", False),
    ]
    assert change_sentence(delta) == "2× faster: DRAM bytes −60.0 %; now memory-bound (DRAM), was latency-bound (tail)"


def test_a_change_that_nothing_explains_says_so() -> None:
    delta = only([launch("a", 100.0)], [launch("a", 150.0)])
    assert change_sentence(delta) == "1.5× slower; no quantity that compare looks at explains it"


def test_different_numbers_of_launches_are_compared_launch_by_launch() -> None:
    delta = only([launch("a", 100.0)] * 4, [launch("a", 200.0)])
    assert delta.duration_ns == (4e5, 2e5)
    assert change_sentence(delta).startswith("2× slower per launch")
    assert change_sentence(delta).endswith("; launches 4 → 1")


def test_the_same_work_in_more_launches_is_compared_in_all() -> None:
    # one launch of 8 Gflop in 8 s; after 4 launches of 2.16 Gflop, 11 s together. Launch for launch it would be "2.9 times as fast"
    before = [launch("a", 8e6, **{"work.fp32.flop": 8e9, "traffic_bytes.dram": 4e6})]
    after = [
        launch("a", us, **{"work.fp32.flop": flop}) for us, flop in ((1e6, 1e9), (2e6, 2e9), (5e6, 4e9), (3e6, 1.64e9))
    ]
    delta = only(before, after)
    assert delta.is_same_work_in_all
    assert delta.mean_ns == pytest.approx((8e9, 11e9))
    assert delta.work == ("work.flop", pytest.approx(1.08))
    assert (
        change_sentence(delta)
        == "1.38× slower: FLOPs +8.0 % (at most 27.2 % of that); the same work in 4 launches instead of 1"
    )
    back = only(after, before)
    assert back.mean_ns == pytest.approx((11e9 / 4, 8e9 / 4))
    assert back.change_frac == pytest.approx(8 / 11 - 1)
    assert change_sentence(back).startswith("1.38× faster")


@pytest.mark.parametrize(("instructions", "is_same"), [(1.2e9, True), (2.9e9, True), (3.1e9, False), (0.3e9, False)])
def test_equal_flops_by_different_instructions_are_not_the_same_work_in_more_launches(
    instructions: float, *, is_same: bool
) -> None:
    before = [launch("a", 4e3, **{"work.fp32.flop": 4e9, "instructions.warp_executed": 4e9})]
    after = [launch("a", 1e3, **{"work.fp32.flop": 1e9, "instructions.warp_executed": instructions})] * 4
    assert only(before, after).is_same_work_in_all == is_same


@pytest.mark.parametrize(("n_before", "n_after", "flop"), [(100, 110, 0.95e9), (1000, 999, 1.002e9), (4, 3, 1e9)])
def test_a_different_number_of_equal_launches_is_not_the_same_work_in_all(
    n_before: int, n_after: int, flop: float
) -> None:
    # In sum, the launches do nearly the same work, as 100 and 110 launches do; but each launch does the same work as before.
    before, after = launch("a", n_represented=float(n_before)), launch("a", n_represented=float(n_after))
    delta = only([before], [after | {"work.fp32.flop": flop}])
    assert (delta.is_same_work_in_all, delta.is_significant) == (False, False)


def test_launches_of_other_work_say_nothing_of_chance() -> None:
    # 1 and 3 ms, but for 1 and 3 Gflop: their own deviation, 1.4 ms, is none of chance; 0.25 µs and 1 % are
    mixed = [launch("a", 1000.0 * n, **{"work.fp32.flop": 1e9 * n}) for n in (1, 3, 1, 3)]
    assert run(*mixed).groups["deviation_ns"].to_list() == [None]
    assert only(mixed, mixed).noise_frac == pytest.approx(0.02)
    alike = [launch("a", us) for us in (1000.0, 3000.0, 1000.0, 3000.0)]
    assert run(*alike).groups["deviation_ns"].to_list() == pytest.approx([2e6 / math.sqrt(3)])
    # Student's 2.517 with 6 degrees of freedom stands where the normal distribution has 2
    assert only(alike, alike).noise_frac == pytest.approx(2.517 * math.sqrt(2) * (1 / math.sqrt(3)) / 2, rel=1e-3)


@pytest.mark.parametrize(("us", "quantile"), [((99.0, 100.0, 101.0), 2.869), ((90.0, 110.0) * 5, 2.149)])
def test_a_deviation_of_few_launches_is_itself_uncertain(us: tuple[float, ...], quantile: float) -> None:
    # quantiles of Student's distribution at 97.72 %, with 4 and 18 degrees of freedom
    launches = [launch("a", each) for each in us]
    error = math.sqrt(2 / len(us)) * statistics.stdev(us) / 100
    assert only(launches, launches).noise_frac == pytest.approx(quantile * error, rel=3e-3)


@pytest.mark.parametrize(("freedom", "quantile"), [(2.0, 38.480), (3.0, 14.760), (4.0, 9.5383), (30.0, 3.7917)])
def test_chance_over_many_kernels_is_students_far_out(freedom: float, quantile: float) -> None:
    # 95.45 % over 69 kernels leave 0.0675 % for each; quantiles of SciPy's scipy.stats.t
    assert Chance(0.01, freedom).noise_frac(69) == pytest.approx(0.01 * quantile, rel=1e-3)


def test_one_uncertain_deviation_among_known_ones_counts_by_its_share() -> None:
    # 3 launches of 100 µs that deviate by 1 µs against one by 1.03 µs as seen: 2 (0.333 + 1.0625)² / 0.333² = 35.1 degrees
    chance = only([launch("a", us) for us in (99.0, 100.0, 101.0)], [launch("a", 100.0)]).chance
    assert chance.error_frac == pytest.approx(math.sqrt(1 / 3 + 1.0625) / 100)
    assert chance.freedom == pytest.approx(2 * (1 / 3 + 1.0625) ** 2 * 9)


def test_times_at_other_clocks_are_not_compared() -> None:
    # 4.5 % between clocks of a long launch; the other kernel, at the same clock, is compared
    before = run(launch("a", 1e4, sm_clock_hz=1.4975e9), launch("b", 1e3, sm_clock_hz=1.56e9))
    after = run(launch("a", 9.5e3, sm_clock_hz=1.565e9), launch("b", 2e3, sm_clock_hz=1.565e9))
    comparison = compare(before, after)
    assert [delta.change_frac for delta in comparison.deltas] == [None, pytest.approx(1.0)]
    assert change_sentence(comparison.deltas[0]) == (
        "times are not compared, as the SM clock differs by 4.5 % (1498 MHz → 1565 MHz)"
    )
    assert run_change(comparison) == (None, None)
    assert run_obstacle(comparison) == "a: the SM clock differs by 4.5 % (1498 MHz → 1565 MHz)"
    assert matched_change(comparison)[0] == pytest.approx(1.0)


def test_different_kernels_do_not_make_a_different_clock() -> None:
    # short launches that were fused away ran at 1.6 GHz, and their median with them; what is left runs as before
    short = [launch(name, 5.0, sm_clock_hz=1.6e9, **{"work.fp32.flop": 1e5}) for name in ("b", "c", "d")]
    setups = [replace(SETUP, sm_clock_hz=clock) for clock in (1.6e9, 1.5e9)]
    before = run(launch("a", 1000.0, sm_clock_hz=1.5e9), *short, setup=setups[0])
    after = run(launch("a", 1000.0, sm_clock_hz=1.5e9), setup=setups[1])
    comparison = compare(before, after)
    assert comparison.comparable.is_time_comparable
    assert run_change(comparison)[0] == pytest.approx(1000 / 1015 - 1)


def test_many_short_launches_at_a_different_clock_leave_the_run_uncompared() -> None:
    # 4 % of one launch of 10 µs may be chance (2 x 0.25 µs are 5 %, and 3 % more); of all of them it is a clock
    before, after = (
        run(*(launch(f"kernel_{letter}x", 10.0, sm_clock_hz=clock) for letter in "abcdefgh"))
        for clock in (1.5e9, 1.56e9)
    )
    comparison = compare(before, after)
    assert all(delta.obstacle is None for delta in comparison.deltas)
    assert (
        run_obstacle(comparison) == "the SM clock differs by 4.0 % on average over the kernels that both runs launched"
    )


def test_runs_that_share_little_are_compared_only_at_one_clock() -> None:
    def of_others(clock_hz: float) -> tuple[Run, Run]:
        before = run(launch("alpha", 1000.0, sm_clock_hz=1.0e9), launch("both", 10.0, sm_clock_hz=1.0e9))
        other = {"grid": [7, 1, 1], "sm_clock_hz": clock_hz, "work.fp32.flop": 9e9, "traffic_bytes.dram": 9e9}
        return before, run(launch("omega", 500.0, **other), launch("both", 10.0, sm_clock_hz=1.0e9))

    # 500 of 510 µs at 1.5 GHz, 10 at 1: 1.490 GHz against 1
    comparison = compare(*of_others(1.5e9))
    assert [delta.names for delta in comparison.deltas] == [("both", "both")]
    assert run_obstacle(comparison) == "the SM clock differs by 49.0 % on average over all launches of each run"
    assert run_change(comparison) == (None, None)
    # 1.0195 GHz may explain 1.95 % of it
    change, noise = run_change(compare(*of_others(1.02e9)))
    alone = run_change(compare(*of_others(1.0e9)))[1]
    assert (change, noise - alone) == (pytest.approx(510 / 1010 - 1), pytest.approx(0.02 * 500 / 510))


def test_a_clock_that_may_explain_a_change_is_added_to_chance() -> None:
    # 10 ms: 1 % per run, twice the root of two of it 2.83 %; the clock is 2.8 % lower
    slow, fast = {"sm_clock_hz": 1.458e9}, {"sm_clock_hz": 1.5e9}
    delta = only([launch("a", 1e4, **fast)], [launch("a", 1.04e4, **slow)])
    assert (delta.is_significant, delta.noise_frac) == (False, pytest.approx(0.0283 + 0.028, abs=2e-4))
    comparison = compare(run(launch("a", 1e4, **fast)), run(launch("a", 1.04e4, **slow)))
    assert run_change(comparison) == (pytest.approx(0.04), pytest.approx(0.0563, abs=2e-4))
    assert matched_change(comparison) == (pytest.approx(0.04), pytest.approx(0.0563, abs=2e-4))
    # slower at a higher clock: that explains nothing
    delta = only([launch("a", 1e4, **slow)], [launch("a", 1.04e4, **fast)])
    assert (delta.is_significant, delta.noise_frac) == (True, pytest.approx(0.0283, abs=2e-4))


def test_clocks_of_short_launches_are_as_uncertain_as_their_times() -> None:
    # 2 x 0.25 of 10 µs are 5 %, and 3 % more
    assert only([launch("a", 10.0, sm_clock_hz=1.5e9)], [launch("a", 10.0, sm_clock_hz=1.61e9)]).obstacle is None
    assert only([launch("a", 10.0, sm_clock_hz=1.5e9)], [launch("a", 10.0, sm_clock_hz=1.63e9)]).obstacle is not None


@pytest.mark.parametrize(
    ("us", "is_compared"), [(1000 / 1.22, True), (1000 / 1.2, False), (1200.0, False), (1220.0, True)]
)
def test_a_change_that_clocks_cannot_explain_is_compared(us: float, *, is_compared: bool) -> None:
    # 10 % of clock: to its square 1.21
    before, after = run(launch("a", 1e3, sm_clock_hz=1.5e9)), run(launch("a", us, sm_clock_hz=1.65e9))
    comparison = compare(before, after)
    (delta,) = comparison.deltas
    assert (delta.obstacle is None, run_obstacle(comparison) is None) == (is_compared, is_compared)
    if is_compared:
        assert delta.is_significant
        assert " at an SM clock 10.0 % higher" in change_sentence(delta)
        assert run_change(comparison)[0] == pytest.approx(us / 1e3 - 1)


def test_few_launches_at_other_clocks_leave_the_run_comparable() -> None:
    before = run(launch("a", 1e3, sm_clock_hz=1.4e9), launch("b", 1e4, sm_clock_hz=1.56e9))
    after = run(launch("a", 1e3, sm_clock_hz=1.56e9), launch("b", 1e4, sm_clock_hz=1.56e9))
    assert run_obstacle(compare(before, after)) is None  # 2 of 22 ms


def test_a_failed_launch_is_neither_removed_nor_added() -> None:
    before = run(launch("a"), launch("b", 500.0))
    after = run(launch("a"), launch("b", None, failed=True))
    comparison, back = compare(before, after), compare(after, before)
    assert (comparison.matching.removed, back.matching.added) == ((), ())
    assert run_obstacle(comparison) == "b failed to profile after"
    assert run_obstacle(back) == "b failed to profile before"
    assert run_obstacle(compare(after, after)) is None
    assert run_change(comparison) == (None, None)


def test_a_limiter_that_was_not_collected_is_not_a_change() -> None:
    delta = only([launch("a", 100.0, limiter=None)], [launch("a", 200.0, limiter="l2")])
    assert "was" not in change_sentence(delta)


def test_a_match_by_a_guess_is_left_out_of_sums() -> None:
    # launched as often, and nothing else speaks for it: no FLOPs, and bytes that could be the same
    other = {"work.fp32.flop": None, "traffic_bytes.dram": 3e6}
    before = run(launch("first"), *[launch("a", 100.0, **{"work.fp32.flop": None})] * 2)
    after = run(launch("first"), *[launch("b", 900.0, **other)] * 2)
    comparison = compare(before, after)
    assert comparison.deltas[1].match.sureness is Sureness.GUESS
    assert matched_change(comparison)[0] == pytest.approx(0.0)


def test_kernels_of_unequal_launches_count_by_how_often_they_run() -> None:
    # before: 4 x a of 100 µs and 1 x b of 200 µs, 600 µs over 4 joint launches = 150 µs; after: 4 x fused of 120 µs.
    # A sum of the means, 300 µs, would call 120 µs a gain of 60 %; it is 20 %.
    before = run(
        launch("first"), *[launch("a", 100.0)] * 4, launch("b", 200.0, **{"work.fp32.flop": 4e9}), launch("last")
    )
    fused = launch("fused", 120.0, **{"work.fp32.flop": 2e9, "traffic_bytes.dram": 5e6 / 4})
    delta = compare(before, run(launch("first"), *[fused] * 4, launch("last"))).deltas[1]
    assert delta.names == ("a + b", "fused")
    assert delta.mean_ns == pytest.approx((150e3, 120e3))
    assert delta.change_frac == pytest.approx(-0.2)
    # 4 x 1e9 + 1 x 4e9 = 8e9 FLOPs over 4 joint launches are 2e9; 5 x 1e6 bytes over 4 are 1.25e6: neither changed
    assert delta.changes == ()


def test_no_change_says_how_large_one_would_have_to_be() -> None:
    assert (
        change_sentence(only([launch("a", 1000.0)], [launch("a", 1001.0)]))
        == "no change beyond measurement noise (±2.8 %)"
    )


def test_an_unknown_time_is_not_compared() -> None:
    delta = only([launch("a", None)], [launch("a", 100.0)])
    assert (delta.change_frac, delta.is_significant) == (None, False)
    assert change_sentence(delta) == "its time is unknown in at least one run"


def test_a_time_of_zero_is_not_known() -> None:
    for before, after in ((0.0, 100.0), (100.0, 0.0), (0.0, 0.0)):
        delta = only([launch("a", before)], [launch("a", after)])
        assert (delta.change_frac, delta.is_significant) == (None, False)


def test_the_share_of_the_roof_is_over_launches_of_which_both_times_are_known() -> None:
    # (800 + 80) of (1000 + 100) µs; the launch without a roofline time counts for neither
    side = run(launch("a", 1000.0), launch("a", 100.0), launch("a", 5000.0, min_time_ns=None))
    assert side.groups["roof_frac"].to_list() == pytest.approx([0.8])
    assert run(launch("a", 0.0)).groups["roof_frac"].to_list() == [None]


def test_a_run_compared_with_itself_is_empty() -> None:
    side = run(*(launch(name, us) for name, us in zip("abc", (3.0, 50.0, 4000.0), strict=True)))
    assert compare(side, side).is_empty
    assert run_change(compare(side, side))[0] == 0


def test_noise_of_one_percent_moves_nothing() -> None:
    draw = random.Random(7)
    names = [f"kernel_{'abcdefghij'[index % 10]}{index // 10}x" for index in range(200)]
    before, after = (run(*(launch(name, 500.0 * draw.gauss(1, 0.01)) for name in names)) for _ in range(2))
    moved = sum(delta.is_significant for delta in compare(before, after).deltas)
    # 2.8 % are two standard errors: one in twenty by chance
    assert moved < 20
    change, noise = run_change(compare(before, after))
    assert abs(change) < noise


@pytest.mark.parametrize(
    ("field", "value", "is_comparable"),
    [
        ("gpus", ("NVIDIA A100",), False),
        ("clock_controls", ("base",), False),
        ("cache_controls", ("none",), False),
        (
            "sm_clock_hz",
            1.6e9,
            True,
        ),  # of all launches: it moves where others are launched; that of matched ones counts
        ("drivers", ("570.1",), True),
        ("ncu_versions", ("2024.1.1",), True),
        ("sections", ("Occupancy",), True),
        ("gpus", (), True),
    ],
)
def test_times_are_compared_where_the_recordings_allow_it(field: str, value: object, *, is_comparable: bool) -> None:
    after = run(launch("a", 200.0), setup=replace(SETUP, **{field: value}))
    found = compare(run(launch("a")), after).comparable
    assert found.is_time_comparable is is_comparable
    assert bool(found.reasons) is not is_comparable


def test_times_are_not_compared_where_a_run_mixes_gpus() -> None:
    # both have launches on both, and nothing says that those of a kernel ran on the same ones
    setup = replace(SETUP, gpus=("NVIDIA A100", "NVIDIA H200"))
    before, after = run(launch("a", 900.0), setup=setup), run(launch("a", 400.0), setup=setup)
    reason = "a run has launches on different GPUs: NVIDIA A100, NVIDIA H200"
    assert compare(before, after).comparable.reasons == (reason,)
    (found,) = judge([parse_gate("kernel(a).time:+5%")], compare(before, after))
    assert (found.has_passed, found.reasons) == (False, (f"times are not comparable: {reason}",))
    unknown = run(launch("a"), setup=replace(SETUP, gpus=()))
    assert compare(unknown, after).comparable.reasons == (reason,)


def test_a_different_build_is_shown() -> None:
    before, after = (replace(SETUP, builds=(build,)) for build in (BUILDS[1.0], BUILDS[0.0]))
    found = compare(run(launch("a"), setup=before), run(launch("a"), setup=after)).comparable
    assert found.is_time_comparable
    assert found.remarks == ("the build differs: for debugging (nvcc -G) before, with optimisation after",)


def test_flops_are_compared_where_the_same_of_them_were_counted() -> None:
    # one run counted FP32 alone, of 1 Gflop; the other FP16, too, of 0.25
    before = run(launch("a", 200.0, **{"work.fp16.flop": 0.25e9}), setup=replace(SETUP, precisions=("fp32 fp16",)))
    after = [launch("a", 100.0), launch("new")]
    comparison = compare(before, run(*after, setup=replace(SETUP, precisions=("fp32",))))
    (delta,) = comparison.deltas
    assert (delta.work, delta.changes) == (None, ())
    assert comparison.comparable.remarks == (
        "FLOPs are not compared: the set of counted precisions differs: fp32 fp16 before, fp32 after",
    )
    assert comparison.after.groups["work.flop"].to_list() == [1e9, 1e9]
    alike = compare(before, run(*after, setup=replace(SETUP, precisions=("fp32 fp16",))))
    assert alike.deltas[0].work == ("work.flop", pytest.approx(0.8))


def test_amounts_are_compared_where_times_are_not() -> None:
    after = run(launch("a", 20.0, **{"traffic_bytes.dram": 3e6}), setup=replace(SETUP, gpus=("NVIDIA B200",)))
    comparison = compare(run(launch("a")), after)
    assert change_sentence(comparison.deltas[0], is_time_comparable=False) == "DRAM bytes ×3"


def test_kernels_of_both_runs_are_compared_launch_by_launch() -> None:
    # before 2 x 100 + 1 x 300; after 4 x 50, a new kernel, and 1 x 300: 2 x 50 + 300 of 500 µs is -20 %, the run grows by 100 %
    before = run(launch("a", 100.0), launch("a", 100.0), launch("b", 300.0))
    after = run(*[launch("a", 50.0)] * 4, launch("new", 500.0, **{"work.fp32.flop": 7e9}), launch("b", 300.0))
    comparison = compare(before, after)
    assert run_change(comparison)[0] == pytest.approx(1.0)
    assert matched_change(comparison)[0] == pytest.approx(-0.2)
    assert matched_change(compare(run(launch("a", None)), run(launch("a")))) == (None, None)


def test_recorded_launches_stand_for_those_that_were_counted() -> None:
    # one of 1000 launches was recorded, in 100 and in 120 µs; the counted runs took 90 and 110 ms
    counted = {"n_represented": 1000.0}
    before = run(launch("a", 100.0, **counted, weight=900.0), launch("b", 50.0, n_represented=1.0, weight=1.0))
    after = run(launch("a", 120.0, **counted, weight=110e6 / 120e3), launch("b", 50.0, n_represented=1.0, weight=1.0))
    delta = compare(before, after).deltas[0]
    assert delta.n_launches == (1000, 1000)
    assert delta.duration_ns == pytest.approx((90e6, 110e6))
    assert delta.change_frac == pytest.approx(0.2)
    # chance is that of the one launch that was recorded, not of a thousand
    assert delta.noise_frac == pytest.approx(only([launch("a", 100.0)], [launch("a", 120.0)]).noise_frac)
    assert run_change(compare(before, after))[0] == pytest.approx((110e6 + 50e3) / (90e6 + 50e3) - 1)


@pytest.mark.parametrize(
    ("before", "after", "obstacle"),
    [
        ({"is_counted": True}, {"is_counted": True}, None),
        ({"is_counted": True}, {}, "only the run before has a counting run, without ncu"),
        ({}, {"is_counted": True}, "only the run after has a counting run, without ncu"),
        # of 10 ms recorded and 5 ms not, 2.83 % are 0.42 ms
        ({"not_recorded_ns": 5e6}, {"not_recorded_ns": 5.4e6}, None),
        (
            {"not_recorded_ns": 5e6},
            {"not_recorded_ns": 5.5e6},
            "kernels that were counted but not profiled took 5 ms before, 5.5 ms after",
        ),
        ({"not_recorded_ns": 5e6}, {}, None),  # a baseline of an earlier version
    ],
)
def test_runs_are_compared_where_the_same_was_counted_and_recorded(before, after, obstacle: str | None) -> None:
    side = run(launch("a", 1e4))
    comparison = compare(replace(side, **before), replace(side, **after))
    assert run_obstacle(comparison) == obstacle
    assert (run_change(comparison)[0] is None) is (obstacle is not None)


@pytest.mark.parametrize(
    ("counted_us", "recorded_us", "is_otherwise"),
    [
        ((20.0, 22.0), (40.0, 40.0), True),
        ((20.0, 20.5), (40.0, 40.0), False),
        ((20.0, 30.0), (40.0, 60.0), False),
        ((20.0, 30.0), (60.0, 40.0), True),
    ],
)
def test_counted_time_moves_where_recorded_time_does_not(
    counted_us: tuple[float, float], recorded_us: tuple[float, float], *, is_otherwise: bool
) -> None:
    # 0.25 µs of jitter are 0.125 % of the average of 100 launches of 20 µs, with 1 % of the runs 1.008 %;
    # twice the root of two of it: 2.85 %.
    # 1.5 times is what ncu's launch of 40 µs shows as well.
    sides = (
        replace(
            run(
                launch(
                    "a",
                    recorded,
                    n_represented=100.0,
                    weight=100.0 * counted / recorded,
                    counted_average_ns=1e3 * counted,
                )
            ),
            is_counted=True,
        )
        for counted, recorded in zip(counted_us, recorded_us, strict=True)
    )
    before, after = sides
    comparison = compare(before, after)
    (delta,) = comparison.deltas
    assert delta.counted_ns == pytest.approx(tuple(1e3 * us for us in counted_us))
    assert delta.is_counted_otherwise is is_otherwise
    assert comparison.is_empty is (not is_otherwise and not delta.is_significant)


def test_a_launch_that_was_not_counted_has_no_counted_time() -> None:
    # ncu's 40 µs stand for themselves where the trace names the kernel otherwise, and are no counted time
    counted = run(launch("a", 40.0, n_represented=100.0, weight=50.0, counted_average_ns=2e4))
    not_counted = run(launch("a", 40.0, counted_average_ns=None))
    for sides in ((counted, not_counted), (not_counted, counted)):
        (delta,) = compare(*(replace(side, is_counted=True) for side in sides)).deltas
        assert (delta.counted_ns, delta.is_counted_otherwise) == (None, False)


def test_a_group_that_stands_for_a_share_of_a_launch_is_compared() -> None:
    # one counted launch of a kernel that was recorded in 24 ranges
    parts = [
        launch("a", 40.0, nvtx=[f"range {n}"], n_represented=1 / 24, weight=1 / 24) for n in "abcdefghijklmnopqrstuvwx"
    ]
    assert {delta.n_launches for delta in compare(run(*parts), run(*parts)).deltas} == {(1, 1)}
