"""Gates: what they say, when they hold, and what is said where they cannot be judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ncuroof.comparison import How, Sureness, compare, judge, matched_change, parse_gate, run_change
from ncuroof.errors import GateError
from tests.comparison.runs import SETUP, launch, run

BEFORE = run(launch("flash_fwd", 1000.0), launch("norm", 1000.0))


def result(text, after=BEFORE, before=BEFORE):
    (found,) = judge([parse_gate(text)], compare(before, after))
    return found


def grown(factor):
    return run(launch("flash_fwd", 1000.0 * factor), launch("norm", 1000.0 * factor))


@pytest.mark.parametrize(("factor", "has_passed"), [(1.0, True), (0.5, True), (1.04, True), (1.06, False)])
def test_the_run_may_grow_by_so_much(factor: float, *, has_passed: bool) -> None:
    assert result("time:+5%", grown(factor)).has_passed is has_passed


def test_chance_does_not_trip_a_gate() -> None:
    assert result("time:+0%", grown(1.01)).has_passed
    assert not result("time:+0%", grown(1.05)).has_passed


def test_a_run_can_be_asked_to_become_faster() -> None:
    assert not result("time:-10%", grown(0.95)).has_passed
    assert result("time:-10%", grown(0.85)).has_passed


def test_a_kernel_may_not_hide_behind_the_rest_of_the_run() -> None:
    after = run(launch("flash_fwd", 1100.0), launch("norm", 500.0))
    assert result("time:+5%", after).has_passed
    found = result("kernel(flash.*).time:+5%", after)
    assert not found.has_passed
    assert found.reasons == ("flash_fwd changed by +10.0 % (noise: ±2.8 %)",)
    assert result("kernel(flash.*):+15%", after).has_passed


def test_a_kernel_can_be_asked_to_become_faster() -> None:
    # nothing changed, which is no 10 % less
    assert not result("kernel(flash.*).time:-10%").has_passed
    assert result("kernel(flash.*).time:-10%", run(launch("flash_fwd", 850.0), launch("norm"))).has_passed


def test_launches_that_failed_in_one_run_leave_its_time_unjudged() -> None:
    after = run(launch("flash_fwd", 1000.0), launch("norm", None, failed=True))
    assert result("time:+5%", after).reasons == ("times are not comparable: norm failed to profile after",)
    assert result("kernel(flash.*).time:+5%", after).has_passed
    assert result("kernel(norm).time:+5%", after).reasons == ("norm failed to profile",)
    assert result("kernel(norm).time:+5%", BEFORE, after).reasons == ("norm failed to profile",)
    assert result("kernel(norm|flash).duration_ns<=1e9", after).reasons == ("norm failed to profile",)


def test_launches_that_failed_in_both_runs_are_named() -> None:
    failed = launch("norm", None, failed=True)
    both = run(launch("flash_fwd", 1000.0), failed)
    found = result("kernel(.*).time:+5%", both, both)
    assert (found.has_passed, found.reasons) == (
        True,
        ("1 kernel within the limit", "norm failed to profile in both runs"),
    )
    for sides in ((both, both), (run(failed), run(failed))):
        found = result("kernel(norm).time:+5%", *sides)
        assert (found.has_passed, found.reasons) == (False, ("norm failed to profile",))  # and not that no name matches


def test_failed_launches_count_even_if_a_name_is_unknown() -> None:
    after = run(launch("flash_fwd", 1000.0), launch("norm", None, failed=True))
    after = replace(after, failed=("", "norm(float *, int)"), n_failed=2)
    for gate in ("kernel(.*).time:+5%", "kernel(.*).duration_ns>0"):
        assert result(gate, after).reasons == ("an unknown kernel, norm failed to profile",)
    assert result("kernel(flash).time:+5%", after).has_passed


def test_a_failed_launch_is_called_by_its_function_name() -> None:
    failed = launch("tiled", None, failed=True) | {"name": "void space::tiled<(int)128, (bool)1>(float *, int)"}
    after = run(launch("flash_fwd", 1000.0), failed)
    assert result("kernel(tiled).time:+5%", after).reasons == ("tiled failed to profile",)
    assert result("time:+5%", after).reasons == ("times are not comparable: tiled failed to profile after",)


def test_a_kernel_at_a_different_clock_is_not_judged() -> None:
    before, after = (run(launch("flash_fwd", 1000.0, sm_clock_hz=clock)) for clock in (1.4e9, 1.5e9))
    found = result("kernel(flash.*).time:+5%", after, before)
    assert not found.has_passed
    assert found.reasons == ("flash_fwd: the SM clock differs by 7.1 % (1400 MHz → 1500 MHz)",)


def test_less_time_has_to_be_shown_beyond_chance_and_the_clock() -> None:
    # 10 ms: chance is 2.83 %; a clock 2.8 % higher explains 2.8 % more
    before, after = run(launch("a", 1e4, sm_clock_hz=1.459e9)), run(launch("a", 0.96e4, sm_clock_hz=1.5e9))
    for text in ("time:-2%", "kernel(a).time:-2%"):
        assert not judge([parse_gate(text)], compare(before, after))[0].has_passed
        assert judge([parse_gate(text)], compare(run(launch("a", 1e4)), run(launch("a", 0.96e4))))[0].has_passed


def test_the_time_of_counted_runs_is_called_theirs() -> None:
    side = replace(run(launch("a", 1e4)), is_counted=True)
    (found,) = judge([parse_gate("time:+5%")], compare(side, side))
    assert found.reasons == ("GPU time of the counting runs changed by +0.0 % (noise: ±2.8 %)",)


def test_a_kernel_that_is_slower_only_in_the_counting_runs_is_shown() -> None:
    # as recorded 40 µs in both runs; of 100 launches on average 20 and 30 µs: 1 % of either is chance, and 50 % is none
    before, after = (
        replace(run(launch("a", 40.0, n_represented=100.0, weight=us, counted_average_ns=1e3 * us)), is_counted=True)
        for us in (20.0, 30.0)
    )
    found = result("kernel(a).time:+5%", after, before)
    assert (found.has_passed, found.reasons) == (
        True,
        ("1 kernel within the limit", "a changed by +50.0 % in the counting runs, without ncu"),
    )
    assert result("kernel(a).time:+5%", before, before).reasons == ("1 kernel within the limit",)


def test_a_kernel_matched_by_a_guess_is_not_judged() -> None:
    unknown = {"work.fp32.flop": None}
    before = run(launch("first"), *[launch("a", **unknown)] * 2)
    after = run(launch("first"), *[launch("b", **unknown, **{"traffic_bytes.dram": 3e6})] * 2)
    assert result("kernel(b).time:+5%", after, before).reasons == (
        "no such kernel is in both runs for sure, 1 matched only by a guess, so not judged",
    )
    assert result("kernel(b|first).time:+5%", after, before).reasons == (
        "1 kernel within the limit, 1 matched only by a guess, so not judged",
    )


def test_a_kernel_of_very_different_work_is_not_judged_by_its_time() -> None:
    # a layer of 1 Gflop before, one of 3 Mflop after, in other launches: neither "25 times faster" nor slower
    small = {"grid": [64, 1, 1], "work.fp32.flop": 3e6, "traffic_bytes.dram": 3e3}
    after = run(launch("flash_fwd", 1000.0), launch("norm", 40.0, **small))
    found = result("kernel(norm).time:+5%", after)
    assert (found.has_passed, found.reasons) == (False, ("norm does a different amount of work (FLOPs ×0.003)",))
    assert result("kernel(.*).time:+5%", after).reasons == found.reasons
    assert result("kernel(flash.*).time:+5%", after).has_passed


@pytest.mark.parametrize(
    ("old", "new", "how"), [("norm_v1", "norm_v2", How.RENAMED), ("norm<64, 2>", "norm<128, 4>", How.VARIANT)]
)
def test_different_work_under_a_different_name_is_shown_and_not_judged(old: str, new: str, how: How) -> None:
    # 330 times less work than what was called so before: as with any guess, nothing says that it is the same kernel
    before = run(launch("flash_fwd", 1000.0), launch(old, 1000.0))
    after = run(launch("flash_fwd", 1000.0), launch(new, 40.0, **{"work.fp32.flop": 3e6, "traffic_bytes.dram": 3e3}))
    (found,) = (each for each in compare(before, after).deltas if each.names == (old, new))
    assert (found.match.how, found.match.sureness) == (how, Sureness.GUESS)
    judged = result("kernel(.*).time:+5%", after, before)
    assert (judged.has_passed, judged.reasons) == (
        True,
        ("1 kernel within the limit, 1 matched only by a guess, so not judged",),
    )
    assert not result("kernel(norm).time:+5%", after, before).has_passed  # of that kernel alone nothing is known


def test_the_same_input_with_other_instructions_is_judged_by_its_time() -> None:
    # a copy of 16 bytes per thread in place of 4, and one that takes longer
    before = run(launch("copy", 300.0, grid=[4096, 1, 1], **{"work.fp32.flop": 0.0, "instructions.warp_executed": 4e6}))
    wide = {"grid": [1024, 1, 1], "work.fp32.flop": 0.0, "instructions.warp_executed": 1e6}
    assert result("kernel(copy).time:+5%", run(launch("copy", 200.0, **wide)), before).has_passed
    assert (
        result("kernel(copy).time:+5%", run(launch("copy", 400.0, **wide)), before)
        .reasons[0]
        .startswith("copy changed by +33.3 %")
    )


def test_new_kernels_are_shown_and_not_judged() -> None:
    after = run(
        launch("flash_fwd", 1000.0), launch("norm", 1000.0), launch("flash_bwd", 9000.0, **{"work.fp32.flop": 7e9})
    )
    assert result("kernel(flash.*):+5%", after).reasons == ("1 kernel within the limit, 1 was not in the run before",)


def test_a_run_that_is_shorter_by_what_is_gone_says_so() -> None:
    # 1000 of 2000 µs are left: the run may have ended early. 10 µs per kernel are 0.71 % before and 1 % after: twice 1.22 %
    found = result("time:+5%", run(launch("flash_fwd", 1000.0)))
    assert (found.has_passed, found.reasons) == (
        True,
        ("GPU time changed by −50.0 % (noise: ±2.5 %)", "no longer in the run: norm"),
    )
    assert result("time:+5%").reasons == ("GPU time changed by +0.0 % (noise: ±2.0 %)",)


def test_much_less_work_in_the_same_shape_is_shown() -> None:
    # a grid of as many blocks as SMs is the same for every input
    work = {"work.fp32.flop": 1e8, "traffic_bytes.dram": 1e5}
    after = run(launch("flash_fwd", 1000.0), launch("norm", 120.0, **work))
    reason = "norm does a different amount of work (FLOPs ×0.1)"
    for gate in ("time:+5%", "kernel(norm).time:+5%"):
        found = result(gate, after)
        assert (found.has_passed, found.reasons[1:]) == (True, (reason,))
    assert result("kernel(flash.*).time:+5%", after).reasons == ("1 kernel within the limit",)


def test_kernels_that_are_gone_are_shown_and_do_not_fail() -> None:
    # another amount of work: nothing says that math_attention does what flash_bwd did; both may as well be a fusion
    before = run(*[launch("flash_fwd", 1000.0), launch("norm", 1000.0), launch("flash_bwd", 500.0)])
    after = run(*[launch("flash_fwd", 1000.0), launch("norm", 1000.0), launch("math", 3e3, **{"work.fp32.flop": 7e9})])
    found = result("kernel(flash.*):+5%", after, before)
    assert found.has_passed
    assert found.reasons == ("1 kernel within the limit, no longer in the run: flash_bwd",)
    assert result("kernel(flash_bwd):+5%", after, before).reasons == (
        "no such kernel is in both runs for sure, no longer in the run: flash_bwd",
    )
    assert not result("kernel(flash_bwd).n_launches>=1", after, before).has_passed  # for who wants it kept
    parts = [
        launch(f"norm_{letter}", us, **{"work.fp32.flop": 9e9}) for letter, us in zip("abcd", (1, 2, 3, 4), strict=True)
    ]
    found = result("kernel(norm):+5%", run(launch("norm")), run(launch("norm"), *parts))
    assert found.reasons == ("1 kernel within the limit, no longer in the run: norm_d, norm_c, norm_b, 1 more",)


def test_a_replacing_kernel_is_also_judged_under_the_name_it_replaced() -> None:
    before = run(launch("first"), launch("flash_bwd", 1000.0), launch("last"))
    after = run(launch("first"), launch("math", 6000.0), launch("last"))
    found = result("kernel(flash.*):+5%", after, before)
    assert not found.has_passed
    assert found.reasons[0].startswith("flash_bwd → math changed by +500.0 %")


def test_growth_within_chance_is_not_called_within_the_limit() -> None:
    # 10 and 10.7 µs: √(0.25² + 0.1²) µs are 2.69 %, √(0.25² + 0.107²) µs 2.54 %, and twice the root of their squares 7.4 %; of two
    # changes, 2.27 standard errors each are as rare as 2 of one: 8.4 %
    launches = [launch("norm", 10.0), launch("flash", 10.0)]
    slower = [launch("norm", 10.7), launch("flash", 10.6)]
    found = result("kernel(norm):+5%", run(*slower), run(*launches))
    assert found.has_passed
    assert found.reasons[0].startswith(
        "1 kernel, none beyond the limit by more than noise: norm changed by +7.0 % (noise: ±7.4 %)"
    )
    (reason,) = result("kernel(.*):+5%", run(*slower), run(*launches)).reasons
    assert reason.startswith(
        "2 kernels, none beyond the limit by more than noise: norm changed by +7.0 % (noise: ±8.4 %)"
    )


def test_one_of_many_kernels_may_be_beyond_the_chance_of_one() -> None:
    # 1 ms: chance is 2.8 % of one kernel; of 40 changes, 3.25 standard errors each are as rare: 4.6 %
    names = [f"kernel_{letter}{other}" for letter in "abcdefgh" for other in "vwxyz"]
    before = run(*(launch(name, 1000.0) for name in names))
    for us, has_passed in ((1040.0, True), (1060.0, False)):
        after = run(*(launch(name, us if name == names[7] else 1000.0) for name in names))
        assert result("kernel(.*):+3%", after, before).has_passed is has_passed
        assert not result(f"kernel({names[7]}):+3%", after, before).has_passed


def test_recoverable_time_is_a_share_of_the_kernels_of_which_it_is_known() -> None:
    # 200 of 1000 µs; the 3000 µs of the other are not in the denominator
    after = run(launch("flash_fwd", 1000.0), launch("norm", 3000.0, recoverable_ns=None))
    found = result("run.recoverable_frac<0.21", after)
    assert (found.has_passed, found.reasons) == (True, ("run: recoverable_frac is 0.2", "not known for norm"))
    assert not result("run.recoverable_frac<0.19", after).has_passed


@pytest.mark.parametrize("metric", ["duration_ns", "recoverable_ns", "recoverable_frac"])
def test_a_sum_without_what_failed_to_profile_meets_no_limit(metric: str) -> None:
    failed = launch("norm", None, failed=True)
    after = run(launch("flash_fwd", 1000.0), failed, failed)
    found = result(f"run.{metric}<1e12", after)
    assert (found.has_passed, found.reasons) == (False, ("launches failed to profile: 2",))
    assert result("run.n_kernels<=3", after).has_passed
    assert result(f"run.{metric}<1e-3", run(launch("flash_fwd", 1000.0))).reasons[0].startswith(f"run: {metric} is ")


def test_a_run_of_which_not_every_time_is_known_is_not_short() -> None:
    found = result("run.duration_ns<1e12", run(launch("flash_fwd", 1000.0), launch("norm", None)))
    assert (found.has_passed, found.reasons) == (False, ("not known for norm",))


@pytest.mark.parametrize("unknown", [None, 0.0])
@pytest.mark.parametrize("where", ["before", "after"])
def test_a_sum_without_a_kernel_whose_time_is_not_known_is_not_the_time_of_the_run(
    where: str, unknown: float | None
) -> None:
    # 1000 of 2000 µs are left: neither "2× faster" nor slower
    other = run(launch("flash_fwd", 1000.0), launch("norm", unknown))
    sides = (other, BEFORE) if where == "before" else (BEFORE, other)
    for before, after in (sides, (other, other)):
        comparison = compare(before, after)
        assert run_change(comparison) == (None, None)
        (found,) = judge([parse_gate("time:+5%")], comparison)
        assert not found.has_passed
        assert f"the time of norm is not known {where}" in found.reasons[0]
    assert matched_change(compare(*sides))[0] == 0.0


def test_the_time_of_launches_is_not_that_of_those_of_which_it_is_known() -> None:
    # of 3 × 1000 µs before, one launch of the same kernel has no time after: 2000 µs are no 33 % less
    before = run(*[launch("norm", 1000.0)] * 3)
    after = run(launch("norm", 1000.0), launch("norm", 1000.0), launch("norm", None), launch("flash_fwd", 10.0))
    assert result("time:+5%", after, before).reasons == (
        "times are not comparable: the time of norm is not known after",
    )
    assert result("kernel(norm):+5%", after, before).has_passed  # per launch it is known
    assert not result("run.duration_ns<1e9", after).has_passed


@pytest.mark.parametrize(
    ("text", "has_passed"),
    [
        ("kernel(flash.*).roof_frac>=0.7", True),  # 800 of 1000 µs
        ("kernel(flash.*).roof_frac>=0.81", False),
        ("kernel(.*).traffic_bytes.dram<=1e6", True),
        ("kernel(.*).traffic_bytes.dram<1e6", False),
        ("findings.high==0", True),
        ("findings.high<=1", True),
        ("run.recoverable_frac<0.3", True),  # 400 of 2000 µs
        ("run.recoverable_frac<0.2", False),
        ("run.n_failed==0", True),
        ("run.duration_ns<=2e6", True),
        (" kernel(a(b|c)?norm|norm).n_launches != 2 ", True),
    ],
)
def test_the_run_after_is_judged_by_itself(text: str, *, has_passed: bool) -> None:
    assert result(text).has_passed is has_passed


def test_findings_are_counted_over_all_launches() -> None:
    after = run(launch("flash_fwd"), launch("norm"), findings=[(0, "high"), (0, "low"), (1, "high"), (1, "medium")])
    assert not result("findings.high<2", after).has_passed
    assert result("findings.medium==1", after).has_passed


def test_a_kernel_with_too_little_collected_does_not_count_as_free_of_findings() -> None:
    unknown = launch("norm", verdict="unknown", limiter=None)
    found = result("findings.high==0", run(launch("flash"), unknown))
    assert (found.has_passed, found.reasons) == (
        False,
        ("no findings are possible for norm: too little was collected",),
    )
    assert not result("findings.high==0", run(unknown, launch("flash"), findings=[(1, "high")])).has_passed
    assert result("findings.high==1", run(launch("flash"), findings=[(0, "high")])).has_passed
    after = run(launch("flash"), unknown)
    assert result("kernel(norm).n_high==0", after).reasons == ("norm: n_high was not collected",)
    assert result("kernel(flash).n_high==0", after).has_passed


def test_a_failed_launch_does_not_count_as_free_of_findings() -> None:
    failed = launch("norm", None, failed=True)
    for launches, n_failed in (((launch("flash"), failed), 1), ((failed, failed), 2)):
        found = result("findings.high==0", run(*launches))
        assert (found.has_passed, found.reasons) == (False, (f"launches failed to profile: {n_failed}",))
    assert result("findings.high==0", replace(BEFORE, groups=BEFORE.groups.clear())).reasons == (
        "no launch was profiled",
    )


def test_missing_quantities_that_findings_need_are_named() -> None:
    collected = dict.fromkeys(
        (
            "utilisation.compute", "occupancy.achieved_frac", "access.l1_hit_frac", "access.l2_hit_frac",
            "access.local_bytes",
        ), 0.5,
    )  # fmt: skip
    assert result("findings.high==0", run(launch("a", **collected))).reasons == ("0 findings of high severity",)
    lacking = collected | {"access.local_bytes": None, "occupancy.achieved_frac": None}
    found = result("findings.high==0", run(launch("a", **collected), launch("b", **lacking)))
    assert found.has_passed
    assert found.reasons[1] == (
        "1 of 2 kernels lack quantities that findings need: occupancy.achieved_frac, access.local_bytes"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kernel(nothing).time:+5%", "no kernel name matches 'nothing'"),
        ("kernel(norm).access.l2_hit_frac>0.5", "norm: access.l2_hit_frac was not collected"),
    ],
)
def test_a_gate_that_cannot_be_judged_fails_and_says_why(text: str, reason: str) -> None:
    found = result(text)
    assert not found.has_passed
    assert found.reasons[0].startswith(reason)


@pytest.mark.parametrize("metric", ["beauty", "grid", "verdict", "name", "group", "roof_frak"])
@pytest.mark.parametrize("pattern", [".*", "norm", "nothing"])  # whichever kernels there are, and whether they failed
def test_a_gate_with_a_misspelt_quantity_is_refused(pattern: str, metric: str) -> None:
    with pytest.raises(GateError, match=f"kernel has no '{metric}'; it has time, access") as caught:
        parse_gate(f"kernel({pattern}).{metric}>=1")
    assert caught.value.exit_code == 2


@pytest.mark.long
def test_a_gate_can_use_every_quantity_that_a_comparison_knows() -> None:
    with pytest.raises(GateError) as caught:
        parse_gate("kernel(norm).grid>=132")
    listed = str(caught.value).partition("it has time, ")[2].split(", ")
    numbers = [name for name, kind in BEFORE.groups.schema.items() if kind.is_numeric() and name != "group"]
    assert listed == [*sorted(numbers), "outcome", "code", "executes(OPCODE)"]
    for name in numbers:
        assert judge([parse_gate(f"kernel(norm).{name}>=0")], compare(BEFORE, BEFORE))


LOST = replace(BEFORE, damage=("cut.ncu-rep: the rest is lost",))
OF_AFTER = "the run after is damaged (cut.ncu-rep: the rest is lost)"


@pytest.mark.parametrize(
    ("text", "found_otherwise"),
    [
        ("kernel(norm).time:+5%", "1 kernel within the limit"),
        ("kernel(norm).roof_frac>=0", "norm: roof_frac is 0.8"),
        ("findings.high==0", "0 findings of high severity"),
        ("run.n_kernels==2", "run: n_kernels is 2"),
        ("run.n_kernels==3", "run: n_kernels is 2"),
        ("run.duration_ns<=2e6", "run: duration_ns is 2e+06"),
    ],
)
def test_a_damaged_run_passes_no_gate(text: str, found_otherwise: str) -> None:
    assert result("time:+5%", LOST).reasons == (f"times are not comparable: {OF_AFTER}",)
    found = result(text, LOST)
    assert not found.has_passed
    assert (found.reasons[0], found.reasons[-1]) == (found_otherwise, OF_AFTER)


def test_launches_lost_before_matter_only_to_gates_that_compare() -> None:
    of_before = OF_AFTER.replace("after", "before")
    for text in ("time:+5%", "kernel(norm).time:+5%"):
        found = result(text, before=LOST)
        assert (found.has_passed, found.reasons[-1].removeprefix("times are not comparable: ")) == (False, of_before)
    for text in ("kernel(norm).roof_frac>=0", "run.n_kernels==2", "findings.high==0"):
        assert result(text, before=LOST).has_passed
    assert not result("time:+5%", LOST, LOST).has_passed
    assert run_change(compare(BEFORE, LOST)) == (None, None)


def test_steps_are_timed_without_ncu_and_lose_nothing_with_its_report() -> None:
    before, after = (replace(side, step_ns=5e7, idle_frac=0.4) for side in (BEFORE, LOST))
    for text in ("step:+5%", "run.step_ns<=5e7", "run.idle_frac<0.5"):
        assert result(text, after, before).has_passed


def test_times_of_a_different_gpu_fail_only_gates_on_time() -> None:
    after = run(launch("flash_fwd", 10.0), launch("norm", 10.0), setup=replace(SETUP, gpus=("NVIDIA B200",)))
    assert result("time:+5%", after).reasons[0].startswith("times are not comparable: the GPU differs")
    assert not result("kernel(norm):+5%", after).has_passed
    assert result("kernel(norm).traffic_bytes.dram<=1e6", after).has_passed


STEPS = replace(run(launch("flash_fwd"), launch("norm")), step_ns=50e6, idle_frac=0.4)


@pytest.mark.parametrize(
    ("text", "step_ns", "has_passed"),
    [("step:+5%", 52e6, True), ("step:+5%", 53e6, False), ("step:-10%", 46e6, False), ("step:-10%", 45e6, True)],
)
def test_a_step_may_grow_by_so_much(text: str, step_ns: float, *, has_passed: bool) -> None:
    after = replace(STEPS, step_ns=step_ns)
    (found,) = judge([parse_gate(text)], compare(STEPS, after))
    assert found.has_passed is has_passed
    change = f"{100 * (step_ns / 50e6 - 1):+.1f} %".replace("-", "−")
    assert found.reasons == (f"the step time changed by {change}",)


def test_a_step_is_judged_where_it_is_known() -> None:
    assert result("run.idle_frac<0.5", STEPS).has_passed
    assert not result("run.idle_frac<0.3", STEPS).has_passed
    assert result("run.step_ns<6e7", STEPS).has_passed
    assert result("run.idle_frac<0.5").reasons == ("run: idle_frac was not collected",)
    assert result("step:+5%", STEPS).reasons[0].startswith("the step time is not known for both runs")
    elsewhere = replace(STEPS, setup=replace(SETUP, gpus=("NVIDIA B200",)))
    (found,) = judge([parse_gate("step:+5%")], compare(STEPS, elsewhere))
    assert not found.has_passed
    assert found.reasons[0].startswith("times are not comparable")


@pytest.mark.parametrize(
    "text",
    [
        "step", "step>3", "step.x:+5%",
        "", "time", "time:5%", "time>3", "tempo:+5%", "kernel(flash.*)", "kernel(().time:+5%", "findings.low==0", "run.beauty>1",
        "time.x:+5%", "kernel(a).roof_frac:+5%", "kernel(a).roof_frac>=much", "findings.high=0",
    ],
)  # fmt: skip
def test_a_malformed_gate_is_refused_by_name(text: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_gate(text)
    assert caught.value.exit_code == 2
    assert "time:+5%" in (caught.value.hint or "")


CODE = {"sha256": "1" * 64, "n_instructions": 9, "is_whole": True, "opcodes": "FFMA 80 HGMMA 20"}


@pytest.mark.parametrize(
    ("text", "after", "reason"),
    [
        ("kernel(a).outcome!=slower", {"duration_ns": 1.3e6}, "a: outcome is slower"),
        ("kernel(a).outcome!=slower", {}, None),
        ("kernel(a).outcome==same", {"duration_ns": 1.025e6}, "a: outcome is ambiguous"),
        ("kernel(a).outcome!=slower", {"duration_ns": None}, "a: outcome is unknown"),  # nothing shows that it holds
        ("kernel(a).code==same", {}, None),
        ("kernel(a).code==same", {"sha256": "2" * 64}, "a: code is changed"),
        ("kernel(a).code!=changed", {"sha256": None}, "a: code is unknown"),
        ("kernel(a).executes(HGMMA)>0", {}, None),
        ("kernel(a).executes(HGMMA)>0", {"opcodes": "FFMA 80"}, "a: executes(HGMMA) is 0"),
        ("kernel(a).executes(LDL)==0", {"opcodes": None}, "a: executes(LDL) was not collected"),
        ("kernel(b).code==same", {}, "no kernel name matches 'b'"),
        (r"kernel((a|b)\(.*\)).code==same", {}, None),
    ],
)
def test_a_gate_can_ask_for_the_outcome_and_the_code_of_a_kernel(
    text: str, after: dict[str, Any], reason: str | None
) -> None:
    found = result(text, run(launch("a", 1000.0, **CODE | after)), run(launch("a", 1000.0, **CODE)))
    assert found.has_passed is (reason is None)
    assert reason is None or found.reasons == (reason,)


@pytest.mark.parametrize(
    "text",
    [
        "kernel(a).outcome!=slow",
        "kernel(a).outcome>=1",
        "kernel(a).code<same",
        "kernel(a).roof_frac==same",
        "run.duration_ns==same",
        "kernel(a).executes()>0",
    ],
)
def test_words_and_numbers_are_asked_of_what_has_them(text: str) -> None:
    with pytest.raises(GateError):
        parse_gate(text)


def test_an_outcome_is_beyond_the_noise_of_all_judged_changes_and_tells_what_is_gone() -> None:
    before = run(launch("flash_fwd", 100.0), launch("flash_bwd", 200.0))
    gate = parse_gate("kernel(flash.*).outcome!=slower")
    (result,) = judge([gate], compare(before, run(launch("flash_fwd", 100.0))))
    assert result.has_passed
    assert "no longer in the run: flash_bwd" in result.reasons
    more = run(
        launch("flash_fwd", 100.0, **{"work.fp32.flop": 4e9, "traffic_bytes.dram": 4e6}), launch("flash_bwd", 200.0)
    )
    (other,) = judge([gate], compare(before, more))
    assert not other.has_passed
    assert any("FLOP" in reason for reason in other.reasons)
