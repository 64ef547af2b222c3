"""Kernels that one run launched, as its counting run shows, and did not profile: they neither came nor left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ncuroof
from ncuroof.comparison import Run, baseline_json, compare, judge, parse_gate, read_baseline, unclear_ns
from ncuroof.comparison.matching import match
from ncuroof.comparison.unprofiled import CountedOnly
from ncuroof.diagnosis import UnprofiledLaunches
from tests.comparison.runs import launch, run

FIXTURES = Path(__file__).parents[2] / "fixtures"
B = UnprofiledLaunches("void ns::b(float*, int)", (132, 1, 1), (256, 1, 1), 4, 3e5)
"""What PyTorch's profiler calls `launch("b")`."""


def counted(side: Run, *unprofiled: UnprofiledLaunches) -> Run:
    return replace(
        side,
        is_counted=True,
        unprofiled=unprofiled,
        not_recorded_ns=sum(each.duration_ns for each in unprofiled),
    )


def named(name: str, **changes: object) -> dict[str, object]:
    return launch(name) | {"name": f"void ns::{name}(float *, int)"} | changes


@pytest.mark.long
def test_a_kernel_that_the_other_run_counted_is_not_new() -> None:
    # a real step of 321 launches of which the H100's report lacks 19 kernels, all of them in the H200's:
    # the counts.json of the H100 has 3 770 862 ns of which 2 829 701 ns were profiled
    before, after = (
        ncuroof.read(FIXTURES / gpu / "train_transformer.roofline.ncu-repz").analyse().run()
        for gpu in ("h100-80gb-hbm3", "h200")
    )
    comparison = compare(before, after)
    matching = comparison.matching
    assert (matching.added, matching.removed, matching.not_recorded_after) == ((), (), ())
    assert len(matching.not_recorded_before) == 19
    assert all(each.is_same_shape for each in matching.not_recorded_before)
    assert sum(each.launches.duration_ns for each in matching.not_recorded_before) == pytest.approx(941_161, abs=1)
    assert not comparison.is_empty
    back = compare(after, before).matching
    assert [each.group for each in back.not_recorded_after] == [each.group for each in matching.not_recorded_before]


def test_without_counts_a_kernel_is_added_as_ever() -> None:
    before, after = run(named("a")), run(named("a"), named("b"))
    assert match(before, after).added == (1,)
    assert match(counted(before), after).added == (1,)
    assert match(counted(before, B), after).not_recorded_before == (CountedOnly(1, B, is_same_shape=True),)
    assert match(after, counted(before, B)).not_recorded_after == (CountedOnly(1, B, is_same_shape=True),)


def test_a_different_kernel_is_new_whatever_was_not_profiled() -> None:
    before = counted(run(named("a")), replace(B, name="void ns::b<float>(float*, int)"))
    found = match(before, run(named("a"), named("b")))
    assert (found.added, found.not_recorded_before) == ((1,), ())


def test_a_kernel_counted_in_a_different_shape_stands_for_one_shape() -> None:
    wide, narrow = replace(B, grid=(264, 1, 1)), replace(B, grid=(8, 1, 1))
    after = run(named("a"), named("b"), named("b", grid=[264, 1, 1]), named("b", grid=[66, 1, 1]))
    found = match(counted(run(named("a")), wide, narrow), after)
    # group 2 is `wide`; `narrow` stands for the first of the two others, and the last is new
    assert found.not_recorded_before == (
        CountedOnly(1, narrow, is_same_shape=False),
        CountedOnly(2, wide, is_same_shape=True),
    )
    assert found.added == (3,)


def test_a_kernel_in_several_ranges_is_counted_once_and_not_new_in_any() -> None:
    after = run(named("a"), named("b", nvtx=["one"]), named("b", nvtx=["two"]))
    found = match(counted(run(named("a")), B), after)
    assert [each.group for each in found.not_recorded_before] == [1, 2]
    assert unclear_ns(counted(run(named("a")), B), found.not_recorded_before, after) == 0


def test_a_kernel_that_was_only_counted_matches_only_its_own_shape() -> None:
    # b was profiled on 8 blocks and counted on 132; after it was profiled on 132 alone: nothing is known of their change
    before = counted(run(named("a"), named("b", grid=[8, 1, 1])), B)
    found = match(before, run(named("a"), named("b")))
    assert [each.how.value for each in found.matches] == ["same"]
    assert (found.removed, found.added) == ((1,), ())
    assert [each.group for each in found.not_recorded_before] == [1]


def test_a_number_of_the_compilers_does_not_tell_which_kernel_was_counted() -> None:
    # the number moved: the kernel after is the one that was profiled before as number 3, by its work
    number = {"name": "triton_poi_fused_add_3"}, {"name": "triton_poi_fused_add_4"}
    before = counted(run(launch("t3") | number[0]), replace(B, name="triton_poi_fused_add_4"))
    found = match(before, run(launch("t4") | number[1]))
    assert ([each.how.value for each in found.matches], found.not_recorded_before) == (["renamed"], ())


def test_a_failed_launch_is_shown_as_failed() -> None:
    before = counted(run(named("a"), named("b", failed=True)), B)
    found = match(before, run(named("a"), named("b")))
    assert (found.added, found.not_recorded_before) == ((), ())


@pytest.mark.parametrize(
    ("unprofiled", "of_the_other", "ns"),
    [
        ((B,), (), 3e5),
        ((B, replace(B, name="c", duration_ns=2e5)), (B,), 2e5),  # b was only counted in both runs
        ((B,), (B,), 0.0),
    ],
)
def test_the_remaining_counted_time_may_have_a_different_name(
    unprofiled: tuple[UnprofiledLaunches, ...], of_the_other: tuple[UnprofiledLaunches, ...], ns: float
) -> None:
    assert unclear_ns(counted(run(named("a")), *unprofiled), (), counted(run(named("a")), *of_the_other)) == ns


def test_all_unprofiled_time_of_an_old_baseline_may_have_a_different_name() -> None:
    before = replace(run(named("a")), is_counted=True, not_recorded_ns=4e5)
    assert unclear_ns(before, (), run(named("a"))) == 4e5
    assert unclear_ns(run(named("a")), (), run(named("a"))) == 0


def test_gates_do_not_call_it_new() -> None:
    before, after = counted(run(named("a")), B), run(named("a"), named("b"))

    def reasons(old: Run, new: Run, text: str = "kernel(a|b).time:+5%") -> tuple[bool, tuple[str, ...]]:
        (found,) = judge([parse_gate(text)], compare(old, new))
        return found.has_passed, found.reasons

    assert reasons(before, after) == (
        True,
        ("1 kernel within the limit, 1 was launched but not profiled in the run before",),
    )
    assert reasons(after, before) == (
        True,
        ("1 kernel within the limit, 1 was launched but not profiled in the run after",),
    )
    assert reasons(run(named("a")), after) == (True, ("1 kernel within the limit, 1 was not in the run before",))
    # alone it cannot be judged
    only = "no such kernel is in both runs for sure, 1 was launched but not profiled in the run before"
    assert reasons(before, after, "kernel(ns::b).time:+5%") == (False, (only,))


def test_a_baseline_knows_what_was_not_profiled(tmp_path: Path) -> None:
    side = replace(counted(run(named("a")), B), steps="10-12", n_steps=3)
    (tmp_path / "run.json").write_bytes(baseline_json(side))
    back = read_baseline(tmp_path / "run.json")
    assert (back.unprofiled, back.steps, back.n_steps) == ((B,), "10-12", 3)
    assert match(back, run(named("a"), named("b"))).added == ()
