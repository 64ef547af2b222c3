"""What the GPU did while launches were counted: parts worked out by hand, and painted microsecond by microsecond."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncuroof.errors import CountsError
from ncuroof.ncu.settings import load_settings
from ncuroof.sidecars.traces.idle_places import IdleShare
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown, break_down_time
from ncuroof.sidecars.traces.torch_profiler import timeline_of

Event = dict[str, Any]
PATTERNS = {"collectives": load_settings().collectives, "waiting_calls": load_settings().waiting_calls}
MAIN, BACKWARD = 100, 200
SHAPE = {"grid": [8, 1, 1], "block": [64, 1, 1]}


def ran(
    start: float, end: float, launched_by: int = 0, *, name: str = "gemm", cat: str = "kernel", device: int = 0
) -> Event:
    arguments = {"correlation": launched_by, "device": device, "stream": 7} | SHAPE
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": end - start, "pid": device, "args": arguments}


def call(start: float, end: float, correlation: int, name: str = "cudaLaunchKernel", thread: int = MAIN) -> Event:
    category = "cuda_runtime" if name.startswith("cuda") else "cuda_driver"
    arguments = {"correlation": correlation}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start, "tid": thread, "args": arguments}


def parts(*events: Event, **more: Any) -> dict[str, tuple[float, int | None]]:
    """Return µs and gaps by part."""
    found = break_down_time(timeline_of(list(events)), **PATTERNS, **more)
    assert found is not None
    return {part.name: (part.duration_ns / 1e3, part.n_gaps) for part in found.parts}


def test_a_kernel_hides_what_runs_beside_it() -> None:
    events = (
        ran(0, 10, cat="gpu_memcpy"),
        ran(4, 30),  # hides 6 of the copy's 10
        ran(20, 50, name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),  # 20 of 30 are not hidden
        ran(45, 53, cat="gpu_memset"),  # 3 after the collective
    )
    assert parts(*events) == {"computation": (26, None), "communication": (20, None), "memory": (7, None)}


@pytest.mark.parametrize(
    ("calls", "cause"),
    [
        ([call(104, 109, 2)], "host_wait"),  # launched when the GPU had been idle for 4 µs
        ([call(96, 101, 2)], "host_wait"),  # began in time, and had not returned
        ([call(90, 95, 2)], "kernel_wait"),
        ([call(90, 95, 2, "cuLaunchKernelEx")], "kernel_wait"),  # as Triton does
        ([call(50, 102, 3, "cudaStreamSynchronize"), call(104, 109, 2)], "synchronisation"),
        ([call(50, 102, 3, "cudaMemcpyAsync"), call(104, 109, 2)], "synchronisation"),  # a copy to memory that is not pinned
        ([call(50, 102, 3, "cudaFree"), call(104, 109, 2)], "synchronisation"),
        ([call(50, 102, 3, "cudaFreeAsync"), call(104, 109, 2)], "host_wait"),  # it waits for nothing
        ([call(50, 99, 3, "cudaStreamSynchronize"), call(104, 109, 2)], "host_wait"),  # it had returned
        ([call(50, 102, 3, "cudaStreamSynchronize", BACKWARD), call(104, 109, 2)], "host_wait"),  # another thread waited
        ([call(96, 108, 2, "cudaMemcpyAsync")], "host_wait"),  # the call that launches the copy is no wait for it
        ([], "other_wait"),
        # The runtime's call makes one of the driver, which returns earlier; the runtime's is the launch.
        ([call(96, 101, 2), call(97, 99, 2, "cuLaunchKernel")], "host_wait"),
    ],
)  # fmt: skip
def test_idle_time_is_split_by_cause(calls: list[Event], cause: str) -> None:
    found = parts(ran(0, 100, 1), ran(112, 120, 2), *calls)
    assert found == {"computation": (108, None), cause: (12, 1)}


def test_gaps_of_one_cause_are_summed_and_counted() -> None:
    graph = call(0, 5, 9, "cudaGraphLaunch")  # one launch for all of a graph's kernels
    assert parts(graph, ran(10, 20, 9), ran(21, 30, 9), ran(32, 40, 9))["kernel_wait"] == (3, 2)


def test_the_time_of_steps_begins_before_the_first_launch() -> None:
    steps = CountedSteps(n_steps=2, duration_ns=70e3, batches_ns=1e3, earlier_step_ns=None)
    events = [ran(1000, 1050, 1), ran(1055, 1060, 2), call(990, 995, 2)]
    found = break_down_time(timeline_of(events), **PATTERNS, steps=steps)
    assert found == TemporalBreakdown(
        (
            Part("computation", 55e3),
            Part("kernel_wait", 5e3, 1, 5e3, (), (IdleShare("gemm", 5e3),)),
            Part("first_launch", 10e3, 1),
        ),
        steps,
    )
    shorter = CountedSteps(2, 59e3, 1e3, None)  # the two clocks differ a little
    assert "first_launch" not in parts(ran(0, 60), steps=shorter)


def test_times_since_years_ago_leave_no_gap_between_kernels_that_touch() -> None:
    """As PyTorch writes them: floating-point numbers of this size are a nanosecond apart."""
    began = 4_503_242_625_621.843
    ends = [began + 0.1 * number for number in range(1001)]
    kernels = [ran(start, start + 0.1) | {"dur": 0.1} for start in ends]
    hidden = ran(began + 0.05, began + 99.95, cat="gpu_memcpy")
    assert list(parts(*kernels, hidden)) == ["computation"]


def test_the_gpu_with_most_work_is_shown() -> None:
    assert parts(ran(0, 10), ran(0, 30, device=1), ran(40, 50, device=1))["computation"] == (40, None)


def test_without_work_or_meaningful_gaps_nothing_is_shown() -> None:
    assert break_down_time(timeline_of([]), **PATTERNS) is None
    stretched = replace(timeline_of([ran(0, 10), ran(20, 30)]), is_stretched=True)
    assert break_down_time(stretched, **PATTERNS) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"args": None}, {"args": {"device": 0}}, {"args": {**SHAPE, "correlation": []}}, {"args": {**SHAPE, "device": {}}},
        {"dur": None}, {"dur": "long"}, {"dur": -1}, {"dur": float("nan")}, {"dur": 10**400}, {"ts": None}, {"ts": []},
        {"ts": float("inf")},
    ],
)  # fmt: skip
def test_a_malformed_event_is_a_named_error(broken: dict[str, Any]) -> None:
    with pytest.raises(CountsError, match="PyTorch's trace: an event is malformed"):
        timeline_of([ran(-9, -8), ran(0, 1) | broken])


KINDS = {"computation": "gemm", "communication": "ncclDevKernel", "memory": "copy"}
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 12), st.sampled_from(sorted(KINDS))), min_size=1, max_size=12
)


@pytest.mark.long
@given(SPANS)
@settings(max_examples=200)
def test_the_parts_are_those_of_a_time_line_painted_by_hand(spans: list[tuple[int, int, str]]) -> None:
    """Each µs is painted with the first kind that runs in it; what stays blank between the first and the last is idle."""
    times = range(min(start for start, _, _ in spans), max(start + length for start, length, _ in spans))
    running = {time: {kind for start, length, kind in spans if start <= time < start + length} for time in times}
    painted = {time: min(kinds, key=list(KINDS).index, default="idle") for time, kinds in running.items()}
    events = [
        ran(start, start + length, name=KINDS[kind], cat="gpu_memcpy" if kind == "memory" else "kernel")
        for start, length, kind in spans
    ]
    found = {name: time for name, (time, _) in parts(*events).items()}
    expected = {kind: sum(each == kind for each in painted.values()) for kind in (*KINDS, "idle")}
    assert found == {("other_wait" if kind == "idle" else kind): time for kind, time in expected.items() if time}


def test_it_comes_back_from_json_as_it_was() -> None:
    breakdown = TemporalBreakdown(
        (Part("computation", 5.0), Part("host_wait", 2.0, 3)), CountedSteps(2, 9.0, 1.0, None)
    )
    assert TemporalBreakdown.from_dict(breakdown.to_dict()) == breakdown
    assert TemporalBreakdown.from_dict({"parts": [], "steps": None}) == TemporalBreakdown(())
