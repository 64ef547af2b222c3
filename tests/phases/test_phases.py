"""Phases of simulated kernels: where they begin, what kind they are, and what passes that differ do to them."""

from __future__ import annotations

from itertools import accumulate

import pytest

from ncuroof.phases.phases import Phase, find_phases
from ncuroof.phases.timelines import KernelTimeline, timeline
from tests.support.sampled import ACTIVE, COUNTER_BY_UNIT, CYCLES_PER_NS, Part, Sampling, duration_ns, mean_use, series

LOAD, COMPUTE = {"dram": 0.85, "l1": 0.3, "issue": 0.1}, {"tensor": 0.9, "l1": 0.5, "issue": 0.3}
REALISTIC = Sampling(noise=0.03)
CLOCK_HZ = CYCLES_PER_NS * 1e9


def _timeline(*parts: Part, sampling: Sampling = REALISTIC) -> KernelTimeline:
    return timeline(series(parts, sampling), duration_ns(parts, sampling), CLOCK_HZ)


def _kinds(phases: list[Phase]) -> list[str]:
    return [phase.kind for phase in phases]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "parts",
    [
        (Part(60, LOAD), Part(90, COMPUTE)),
        (Part(40, COMPUTE), Part(50, {**COMPUTE, "tensor": 0.5, "alu": 0.4}), Part(60, COMPUTE)),
        (Part(10, {"issue": 0.05}, sm_active=0.3), Part(120, COMPUTE), Part(20, COMPUTE, sm_active=0.3)),
        tuple(Part(15, use) for _ in range(5) for use in (LOAD, COMPUTE)),
    ],
    ids=["load then compute", "two tensor stages", "slow start and tail", "alternating"],
)
def test_planted_boundaries_are_found_within_two_samples(parts: tuple[Part, ...], seed: int) -> None:
    sampling = Sampling(noise=0.03, seed=seed)
    found = find_phases(_timeline(*parts, sampling=sampling))
    wanted = [0, *accumulate(part.n_samples for part in parts[:-1])]
    begins = [phase.start_ns / sampling.interval_ns for phase in found]
    assert len(begins) == len(wanted)
    assert all(abs(one - other) <= 2 for one, other in zip(begins, wanted, strict=True))


def test_phases_fill_the_kernels_time() -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE))
    found = find_phases(_timeline(*parts))
    assert found[0].start_ns == 0
    assert sum(phase.duration_ns for phase in found) == pytest.approx(duration_ns(parts))


@pytest.mark.parametrize("unit", ["dram", "tensor", "issue", "l1"])
def test_means_weighted_by_time_are_those_of_the_kernel(unit: str) -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE), Part(20, LOAD, sm_active=0.4))
    found = find_phases(_timeline(*parts, sampling=Sampling()))
    total = sum(phase.means[unit] * phase.duration_ns for phase in found)
    assert total / duration_ns(parts) == pytest.approx(mean_use(parts, unit), abs=1e-9)


def test_idle_time_around_the_kernel_is_cut_off() -> None:
    (phase,) = find_phases(_timeline(Part(50, COMPUTE), sampling=Sampling(n_idle=80)))
    assert phase.means["tensor"] == pytest.approx(0.9)
    assert phase.means["sm_active"] == pytest.approx(1)


def test_a_weak_beginning_on_few_sms_is_a_ramp() -> None:
    assert _kinds(find_phases(_timeline(Part(15, {"issue": 0.1}, 0.4), Part(100, COMPUTE)))) == ["ramp", "steady"]


def test_a_long_weak_beginning_on_all_sms_is_work_of_another_kind() -> None:
    assert _kinds(find_phases(_timeline(Part(40, {"issue": 0.1}), Part(100, COMPUTE)))) == ["steady", "steady"]


def test_what_follows_when_sms_run_out_of_work_is_the_tail() -> None:
    parts = (Part(100, COMPUTE), Part(30, {"tensor": 0.3, "issue": 0.1}, sm_active=0.3))
    assert _kinds(find_phases(_timeline(*parts))) == ["steady", "tail"]


def test_weaker_work_behind_the_last_launched_block_is_the_tail() -> None:
    weak = {"tensor": 0.45, "issue": 0.15}
    parts = (Part(60, COMPUTE, n_blocks=200), Part(60, COMPUTE, n_blocks=100), Part(30, weak))
    assert _kinds(find_phases(_timeline(*parts))) == ["steady", "tail"]


def test_a_weak_end_of_a_single_wave_on_all_sms_is_no_tail() -> None:
    parts = (Part(100, COMPUTE, n_blocks=132), Part(50, {"alu": 0.4, "issue": 0.4}))
    assert _kinds(find_phases(_timeline(*parts))) == ["steady", "steady"]


def test_no_sm_with_work_within_a_kernel_is_a_gap() -> None:
    parts = (Part(50, COMPUTE), Part(20, sm_active=0.0), Part(50, COMPUTE))
    assert _kinds(find_phases(_timeline(*parts))) == ["steady", "gap", "steady"]


def test_waves_in_step_are_one_phase() -> None:
    waves = tuple(Part(2, use) for _ in range(40) for use in (LOAD, COMPUTE))
    assert len(find_phases(_timeline(*waves))) == 1


def test_too_few_samples_have_no_phases() -> None:
    assert find_phases(_timeline(Part(5, COMPUTE))) == []


def test_passes_are_laid_on_each_other_where_the_kernel_begins() -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE))
    recorded = series(parts)
    later = series(parts, Sampling(first_ns=recorded[f"pmsampling:{ACTIVE}"][0][-1] + 10**8, n_idle=37))
    dram = f"pmsampling:{COUNTER_BY_UNIT['dram']}"
    issue = f"pmsampling:{COUNTER_BY_UNIT['issue']}"
    recorded |= {dram: later[dram], issue: later[issue]}
    course = timeline(recorded, duration_ns(parts), CLOCK_HZ)
    assert course.n_passes == 2
    assert "2 runs of the kernel are laid on each other" in course.doubts[0]
    assert [round(phase.start_ns / 2000) for phase in find_phases(course)] == [0, 60]


def test_a_coarse_pass_keeps_its_mean_and_makes_no_boundaries_of_its_own() -> None:
    parts = (Part(96, LOAD), Part(96, COMPUTE))
    coarse = (Part(12, LOAD), Part(12, {"dram": 0.2}))
    slow = Sampling(interval_ns=16_000, first_ns=10**15, noise=0.01)
    dram = f"pmsampling:{COUNTER_BY_UNIT['dram']}"
    course = timeline(series(parts) | {dram: series(coarse, slow)[dram]}, duration_ns(parts), CLOCK_HZ)
    found = find_phases(course)
    assert [round(phase.start_ns / 2000) for phase in found] == [0, 96]
    assert found[0].means["dram"] == pytest.approx(0.85, abs=0.05)


def test_a_run_that_takes_longer_is_stretched_to_the_kernels_duration() -> None:
    parts = (Part(66, LOAD), Part(99, COMPUTE))
    course = timeline(series(parts), duration_ns(parts) / 1.1, CLOCK_HZ)
    assert [phase.start_ns * 1.1 / 2000 for phase in find_phases(course)] == pytest.approx([0, 66], abs=2)
    assert any("took 10 % more or less time" in doubt for doubt in course.doubts)


def test_a_run_whose_samples_end_early_leaves_the_rest_unknown() -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE))
    tensor = f"pmsampling:{COUNTER_BY_UNIT['tensor']}"
    later = series((Part(60, {"tensor": 0.1}), Part(90, COMPUTE)), Sampling(first_ns=10**15))[tensor]
    cut = ([*later[0][:140]], [*later[1][:140]])  # 10 idle samples, 130 of 150 of the kernel
    course = timeline(series(parts) | {tensor: cut}, duration_ns(parts), CLOCK_HZ)
    assert course.values["tensor"][-1] is None
    assert course.values["dram"][-1] is not None


def test_a_run_whose_only_unit_rests_for_half_of_the_kernel_is_not_used() -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE))
    tensor = f"pmsampling:{COUNTER_BY_UNIT['tensor']}"
    later = series(parts, Sampling(first_ns=10**15))[tensor]
    assert "tensor" not in timeline(series(parts) | {tensor: later}, duration_ns(parts), CLOCK_HZ).values


def test_a_run_that_shows_little_of_the_kernel_is_not_used() -> None:
    parts = (Part(60, LOAD), Part(90, COMPUTE))
    tensor = f"pmsampling:{COUNTER_BY_UNIT['tensor']}"
    later = series((Part(150, COMPUTE),), Sampling(first_ns=10**15))[tensor]
    course = timeline(series(parts) | {tensor: (later[0][:50], later[1][:50])}, duration_ns(parts), CLOCK_HZ)
    assert "tensor" not in course.values
    assert any("not used" in doubt and COUNTER_BY_UNIT["tensor"] in doubt for doubt in course.doubts)
