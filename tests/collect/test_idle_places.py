"""Where a GPU was left without work: hosts that come late, and kernels that come next, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.sidecars.traces.host_ranges import innermost, outermost, without_children
from ncuroof.sidecars.traces.idle_places import BETWEEN_RANGES, Gap, IdleShare, before, during, half_in_gaps_of
from ncuroof.sidecars.traces.temporal_breakdown import Part, TemporalBreakdown, break_down_time
from ncuroof.sidecars.traces.timeline import Activity, ApiCall, HostRange
from ncuroof.sidecars.traces.torch_profiler import timeline_of
from tests.collect.test_temporal_breakdown import BACKWARD, MAIN, PATTERNS, call, ran


def gap(
    start: float, end: float, returned: float | None, *, thread: int = MAIN, name: str = "void n::gemm<4>(int)"
) -> Gap:
    launch = None if returned is None else ApiCall("cudaLaunchKernel", returned - 1, returned, thread, 1)
    return Gap(start, end, Activity(name, end, 1.0, 0, 1), launch)


RANGES = outermost(
    [
        HostRange("forward", 0, 40, MAIN),
        HostRange("aten::mm", 10, 20, MAIN),  # within it
        HostRange("optimizer", 50, 100, MAIN),
        HostRange("backward pass", 0, 100, BACKWARD),
    ]
)


def test_a_gap_belongs_to_what_the_launching_thread_did() -> None:
    # From 30 to 60: 10 forward, 10 in no range, 10 in the optimizer; the gap of 36 ends 6 after the launch.
    assert during([gap(30, 66, 60)], RANGES) == (
        IdleShare("forward", pytest.approx(12)),  # type: ignore[arg-type]
        IdleShare("optimizer", pytest.approx(12)),  # type: ignore[arg-type]
        IdleShare(BETWEEN_RANGES, pytest.approx(12)),  # type: ignore[arg-type]
    )
    assert during([gap(30, 60, 60, thread=BACKWARD)], RANGES) == (IdleShare("backward pass", 30),)


def test_gaps_of_one_place_are_summed_the_most_first() -> None:
    found = during([gap(5, 10, 10), gap(60, 80, 80), gap(90, 95, 95)], RANGES)
    assert found == (IdleShare("optimizer", 25), IdleShare("forward", 5))


@pytest.mark.parametrize(
    "gaps",
    [
        [gap(30, 36, None)],  # no launch
        [gap(30, 36, 29)],  # it was queued
        [gap(41, 49, 48)],  # nothing is named where the host was
        [gap(39.9, 49, 48)],  # or next to nothing
        [gap(30, 36, 35, thread=7)],
        [],
    ],
)
def test_without_named_ranges_no_places_are_shown(gaps: list[Gap]) -> None:
    assert during(gaps, RANGES) == ()


@pytest.mark.parametrize(
    ("lengths", "half_ns"),
    [([5], 5), ([1, 1, 1, 1], 1), ([10, 1, 1, 1], 10), ([6, 5, 4, 3, 2], 5), ([3, 1, 1, 1], 3), ([], 0)],
)
def test_half_of_the_time_is_in_gaps_of_a_length_or_longer(lengths: list[int], half_ns: float) -> None:
    assert half_in_gaps_of([gap(0, length, None) for length in lengths]) == half_ns


def test_only_a_few_places_are_shown() -> None:
    gaps = [gap(0, length, None, name=f"k{length}") for length in (1, 100, 60, 50, 40, 30, 20)]
    assert before(gaps) == tuple(IdleShare(f"k{length}", length) for length in (100, 60, 50, 40, 30))
    assert before([gap(0, 99, None), gap(0, 1, None, name="seldom")]) == (IdleShare("gemm", 99),)
    assert before([gap(0, 5, None, name="")]) == (IdleShare("copy", 5),)


def painted(ranges: list[HostRange]) -> str:
    """Return what a thread is in at each moment, by the last letter that was painted over it."""
    line = ["."] * 30
    for each in ranges:
        for moment in range(int(each.start_ns), int(each.end_ns)):
            assert line[moment] == "."  # pieces do not overlap
            line[moment] = each.name
    return "".join(line).rstrip(".")


NESTED = [
    HostRange("a", 0, 20, MAIN), HostRange("b", 2, 10, MAIN), HostRange("c", 3, 5, MAIN), HostRange("d", 5, 9, MAIN),
    HostRange("e", 12, 20, MAIN), HostRange("f", 22, 25, MAIN), HostRange("g", 0, 9, BACKWARD),
]  # fmt: skip


def test_ranges_that_lie_in_each_other() -> None:
    mine = [each for each in innermost(NESTED) if each.thread == MAIN]
    assert painted(mine) == "aabccddddbaaeeeeeeee..fff"
    assert [each.name for each in without_children(NESTED)] == ["c", "d", "e", "f", "g"]
    assert {thread: [each.name for each in found] for thread, found in outermost(NESTED).items()} == {
        MAIN: ["a", "f"],
        BACKWARD: ["g"],
    }


def operator(name: str, start: float, end: float, cat: str = "cpu_op", thread: int = MAIN) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": end - start, "tid": thread}


@pytest.mark.parametrize(
    "changed",
    [{"ts": 10**400}, {"ts": float("nan")}, {"ts": "x"}, {"ts": None}, {"dur": -1}, {"dur": None}, {"dur": 1e300}],
)
def test_a_range_without_times_costs_no_launch_its_count(changed: dict[str, Any]) -> None:
    odd = operator("aten::mm", 0, 10) | changed
    timeline = timeline_of([odd, ran(50, 100, 1)])
    assert (len(timeline.ranges), len(timeline.activities)) == (0, 1)


def test_names_can_be_written() -> None:
    """JSON can name what no file in UTF-8 can hold."""
    timeline = timeline_of([operator("a\ud800", 0, 10), ran(50, 100, 1, name="k\udfff")])
    assert [each.name for each in (*timeline.ranges, *timeline.activities)] == ["a?", "k?"]
    breakdown = TemporalBreakdown((Part("host_wait", 1.0, 1, 1.0, (IdleShare("\ud800", 1.0),)),))
    assert TemporalBreakdown.from_dict(breakdown.to_dict()).parts[0].during == (IdleShare("?", 1.0),)


def test_a_step_of_the_profiler_is_never_a_place() -> None:
    events = [operator("ProfilerStep#3", 0, 1000, "user_annotation"), operator("train", 2000, 3000, "user_annotation")]
    assert [each.name for each in timeline_of(events).ranges] == ["train"]


def test_pytorchs_operators_and_annotations_name_the_places() -> None:
    events = [
        operator("ProfilerStep#3", 0, 1000, "user_annotation"),  # it holds all, and says nothing
        operator("train_step", 90, 270, "user_annotation"),  # it holds others, and says less
        operator("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 100, 130, "user_annotation"),
        operator("Optimizer.step#AdamW.step", 200, 260, "user_annotation"),
        operator("aten::_foreach_add_", 210, 250),  # within the optimizer
        operator("autograd::engine::evaluate_function: MmBackward0", 300, 340, thread=BACKWARD),
        operator("Optimizer.step#AdamW.step", 100, 900, "gpu_user_annotation"),
        ran(50, 100, 1),
        call(135, 140, 2),
        ran(140, 200, 2),
        call(235, 240, 3),
        ran(240, 300, 3),
        call(330, 340, 4, thread=BACKWARD),
        ran(340, 350, 4, name="void at::native::add<float>(int)"),
    ]  # fmt: skip
    breakdown = break_down_time(timeline_of(events), **PATTERNS)
    assert breakdown is not None
    (late,) = [part for part in breakdown.parts if part.name == "host_wait"]
    assert late == Part(
        "host_wait",
        120e3,
        3,
        40e3,
        (
            IdleShare("Optimizer.step#AdamW.step", 40e3),
            IdleShare("backward pass", 40e3),
            IdleShare("enumerate(DataLoader)", 30e3),
            IdleShare(BETWEEN_RANGES, 10e3),
        ),
        (IdleShare("gemm", 80e3), IdleShare("add", 40e3)),
    )
    assert TemporalBreakdown.from_dict(breakdown.to_dict()) == breakdown
