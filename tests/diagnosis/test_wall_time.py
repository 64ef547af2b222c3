"""A step's time on the wall's clock: what kernels can give back of it, and what they cannot. Expected numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.diagnosis.wall_time import wall_time
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts
from ncuroof.sidecars.traces.idle_places import IdleShare
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown
from tests.diagnosis.test_weights import COUNTS, LAUNCHES, NAMES
from tests.support.raw import raw_report

# Two steps of 100 µs: 120 of 200 µs kernels, 20 copies alone, 60 idle.
PARTS = (
    Part("memory", 20e3),
    Part("computation", 120e3),
    Part("kernel_wait", 10e3, 40),
    Part("host_wait", 50e3, 6),
)
STEPS = CountedSteps(n_steps=2, duration_ns=200e3, batches_ns=30e3, earlier_step_ns=None)


def test_a_step_under_the_profiler() -> None:
    time = wall_time(0, TemporalBreakdown(PARTS, STEPS), profiler="torch.profiler")
    assert time is not None
    assert (time.n_steps, time.duration_ns, time.profiled_ns, time.batches_ns) == (2, 100e3, 100e3, 15e3)
    assert (time.computation_frac, time.idle_frac) == pytest.approx((0.6, 0.3))
    parts = [(part.name, part.is_idle, part.duration_ns, part.share_frac, part.n_gaps) for part in time.parts]
    assert parts == [
        ("memory", False, 10e3, 0.1, None),
        ("computation", False, 60e3, 0.6, None),
        ("host_wait", True, 25e3, 0.25, 3),
        ("kernel_wait", True, 5e3, 0.05, 20),
    ]


@pytest.mark.parametrize(
    ("earlier_ns", "duration_ns", "computation_frac", "idle_frac"),
    [
        (80e3, 80e3, 0.75, 0.125),  # 70 of 80 µs work: the profiler made launches slower
        (140e3, 100e3, 0.6, 0.3),  # earlier steps still warmed up: the counted ones tell
        (50e3, 50e3, 1.0, 0.0),  # shorter than their work: another batch
    ],
)
def test_steps_without_the_profiler_tell_how_long_they_take(
    earlier_ns: float, duration_ns: float, computation_frac: float, idle_frac: float
) -> None:
    time = wall_time(0, TemporalBreakdown(PARTS, replace(STEPS, earlier_step_ns=earlier_ns)), profiler="torch.profiler")
    assert time is not None
    assert time.duration_ns == duration_ns
    assert (time.computation_frac, time.idle_frac) == pytest.approx((computation_frac, idle_frac))


def test_a_whole_run_is_one_step_without_a_number() -> None:
    time = wall_time(3, TemporalBreakdown(PARTS), profiler="torch.profiler")
    assert time is not None
    assert (time.source, time.n_steps, time.duration_ns, time.batches_ns) == (3, None, 200e3, None)


def test_without_time_there_is_nothing_to_tell() -> None:
    assert wall_time(0, TemporalBreakdown(()), profiler="torch.profiler") is None
    assert wall_time(0, TemporalBreakdown((Part("computation", 0.0),)), profiler="torch.profiler") is None


def test_a_part_of_a_later_version_is_left_out() -> None:
    time = wall_time(0, TemporalBreakdown((*PARTS, Part("paging", 200e3, 1)), STEPS), profiler="torch.profiler")
    assert time is not None
    assert time.profiled_ns == 200e3
    assert "paging" not in [part.name for part in time.parts]


@pytest.mark.long
def test_counts_without_times_leave_the_whole_run_to_the_kernels() -> None:
    counted = replace(COUNTS, breakdown=TemporalBreakdown(PARTS, STEPS))  # 200 µs, 120 of them kernels
    longer = replace(COUNTS, breakdown=TemporalBreakdown((Part("computation", 280e3), Part("host_wait", 20e3, 1))))
    reports = (raw_report(*LAUNCHES, names=NAMES), raw_report(*LAUNCHES, names=NAMES))

    def computation_frac(*counts: Counts) -> float:
        weighting = Reports(reports[: len(counts)], counts=counts).analyse().weighting
        assert weighting is not None
        return weighting.computation_frac

    assert computation_frac(COUNTS) == 1.0
    assert computation_frac(counted) == pytest.approx(0.6)
    assert computation_frac(counted, longer) == pytest.approx((120 + 280) / (200 + 300))


@pytest.mark.parametrize(
    ("part", "place", "profiler", "advice"),
    [
        ("host_wait", ("enumerate(DataLoader)", 25e3), "torch.profiler", "Speed up data loading"),
        ("host_wait", ("enumerate(DataLoader)", 24e3), "torch.profiler", "Launch fewer or larger kernels: torch"),  # less than half
        ("host_wait", ("Optimizer.step#AdamW.step", 50e3), "torch.profiler", "Create the optimizer with fused=True"),
        ("host_wait", ("aten::linear", 50e3), "torch.profiler", "Launch fewer or larger kernels: torch.compile"),
        ("host_wait", None, "nsys", "Launch fewer or larger kernels: record repeating launches as a CUDA graph"),
        ("synchronisation", ("aten::item", 30e3), "torch.profiler", "Keep tensor values on the GPU"),
        ("synchronisation", ("aten::to", 30e3), "torch.profiler", "Copy tensors asynchronously between host and GPU"),
        ("synchronisation", ("aten::index", 30e3), "torch.profiler", "Keep shapes fixed with torch.where"),
        ("synchronisation", ("aten::index_select", 30e3), "torch.profiler", "Remove host synchronisations from the step"),
        ("synchronisation", None, "nsys", "Remove host synchronisations between launches: no cudaDeviceSynchronize"),
        ("kernel_wait", None, "nsys", "Fuse small kernels"),
    ],
)  # fmt: skip
def test_advice_is_for_the_place_where_most_of_it_is(
    part: str, place: tuple[str, float] | None, profiler: str, advice: str
) -> None:
    during = () if place is None else (IdleShare(*place),)
    breakdown = TemporalBreakdown((Part("computation", 50e3), Part(part, 50e3, 6, 9e3, during)), STEPS)
    time = wall_time(0, breakdown, profiler=profiler)
    assert time is not None
    assert str(time.parts[-1].advice).startswith(advice)


@pytest.mark.parametrize(
    ("half_ns", "place", "advice"),
    [
        (200e3, None, "Move other host work out of the step, such as reading data"),
        (199e3, None, "Launch fewer or larger kernels: torch.compile"),
        (None, None, "Launch fewer or larger kernels: torch.compile"),  # counts of an earlier version
        (900e3, "enumerate(DataLoader)", "Speed up data loading"),
    ],
)
def test_long_gaps_are_no_matter_of_launches(half_ns: float | None, place: str | None, advice: str) -> None:
    during = () if place is None else (IdleShare(place, 900e3),)
    breakdown = TemporalBreakdown((Part("computation", 1e6), Part("host_wait", 1e6, 9, half_ns, during)), STEPS)
    time = wall_time(0, breakdown, profiler="torch.profiler")
    assert time is not None
    assert str(time.parts[-1].advice).startswith(advice)


@pytest.mark.parametrize(
    ("half_ns", "profiler", "advices"),
    [
        (200e3, "torch.profiler", ("Profile a step of the steady state", "torch.compile", "long gaps recur")),
        (200e3, "nsys", ("Trace the steady state alone", "record repeating launches as a CUDA graph", "long gaps recur")),
        (199e3, "torch.profiler", ("Launch fewer or larger kernels: torch.compile",)),
    ],
)  # fmt: skip
def test_long_gaps_of_a_whole_run_may_be_its_start(half_ns: float, profiler: str, advices: tuple[str, ...]) -> None:
    """A script of twelve steps: half of its idle time was in 17 gaps while it started, half in 3855 gaps of 72 µs."""
    breakdown = TemporalBreakdown((Part("computation", 1e6), Part("host_wait", 1e6, 9, half_ns)))
    time = wall_time(0, breakdown, profiler=profiler)
    assert time is not None
    advice = str(time.parts[-1].advice)
    assert advice.startswith(advices[0])
    assert all(each in advice for each in advices)
    assert not advice.startswith("Move")


def test_places_are_those_of_a_step() -> None:
    breakdown = TemporalBreakdown(
        (Part("computation", 150e3), Part("host_wait", 50e3, 6, 9e3, (IdleShare("a", 30e3),), (IdleShare("b", 50e3),))),
        STEPS,
    )
    time = wall_time(0, breakdown, profiler="torch.profiler")
    assert time is not None
    (late,) = time.to_dict()["parts"][1:]
    assert late["during"] == [{"name": "a", "duration_ns": 15e3, "share_frac": 0.15}]
    assert late["before"] == [{"name": "b", "duration_ns": 25e3, "share_frac": 0.25}]
