"""Each phase of a kernel gets its verdict by the tree of kernels; a kernel whose phases differ says that its verdict is a mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.ingest.raw_report import RAW_SAMPLES
from ncuroof.reading import Reports
from ncuroof.tables import SAMPLED_UNITS
from tests.support.raw import raw_report
from tests.support.sampled import Part, Sampling, mean_use, sampled_report, series

LOAD, COMPUTE = {"dram": 0.9, "l1": 0.2, "issue": 0.1}, {"tensor": 0.9, "l1": 0.3, "issue": 0.2, "dram": 0.1}
REALISTIC = Sampling(noise=0.02)
RECORDINGS = Path(__file__).resolve().parents[2] / "fixtures"
RECORDED = ("h100-80gb-hbm3/attention_flash_128_4096-to-attention_flash_128_4096_backward.full.ncu-repz",)


def _analysis(*parts: Part, without: tuple[str, ...] = (), sampling: Sampling = REALISTIC) -> Analysis:
    """Return the analysis of a simulated kernel of these parts, some of whose series are left out."""
    return Reports((sampled_report(parts, sampling, without),)).analyse()


def _verdicts(found: Analysis) -> list[tuple[str, str | None]]:
    return found.phases.select("verdict", "limiter").rows()


def test_a_kernel_that_loads_and_then_computes_has_two_verdicts() -> None:
    found = _analysis(Part(60, LOAD), Part(90, COMPUTE))
    assert _verdicts(found) == [("memory", "dram"), ("compute", "tensor")]


def test_its_own_verdict_is_said_to_be_a_mean() -> None:
    found = _analysis(Part(60, LOAD), Part(90, COMPUTE))
    assert found.kernels["verdict"][0] == "latency"
    assert "unlike_phases" in found.kernels["caveats"][0]


def test_a_kernel_that_is_alike_all_the_time_is_one_phase_with_its_verdict() -> None:
    found = _analysis(Part(120, COMPUTE))
    assert _verdicts(found) == [("compute", "tensor")]
    assert "unlike_phases" not in found.kernels["caveats"][0]


def test_a_brief_tail_does_not_make_the_verdict_a_mean() -> None:
    tail = Part(10, {"tensor": 0.2, "issue": 0.1}, sm_active=0.2)
    found = _analysis(Part(120, COMPUTE), tail)
    assert _verdicts(found) == [("compute", "tensor"), ("latency", "tail")]
    assert "unlike_phases" not in found.kernels["caveats"][0]


def test_a_long_tail_does() -> None:
    found = _analysis(Part(90, COMPUTE), Part(40, {"tensor": 0.2, "issue": 0.1}, sm_active=0.2))
    assert _verdicts(found) == [("compute", "tensor"), ("latency", "tail")]
    assert "unlike_phases" in found.kernels["caveats"][0]


@pytest.mark.parametrize("unit", ["dram", "tensor", "issue", "l1"])
def test_phases_weighted_by_time_are_the_kernels_counters(unit: str) -> None:
    found = _analysis(Part(60, LOAD), Part(90, COMPUTE), Part(30, LOAD, 0.3))
    weighted = (found.phases[f"utilisation.{unit}"] * found.phases["duration_ns"]).sum() / found.kernels["duration_ns"][
        0
    ]
    assert weighted == pytest.approx(found.kernels[f"utilisation.{unit}"][0], abs=0.005)


def test_a_series_of_another_level_is_scaled_to_the_counter_and_both_are_told() -> None:
    half = {unit: share / 2 for unit, share in LOAD.items()}
    parts, sampled = (Part(60, LOAD), Part(90, COMPUTE)), (Part(60, half), Part(90, COMPUTE))
    whole = _analysis(*parts)
    rows = [(0, name, *each) for name, each in series(sampled).items()]
    report = replace(whole.reports[0], samples=pl.DataFrame(rows, schema=RAW_SAMPLES, orient="row"))
    found = Reports((report,)).analyse()
    levels = {each["course"]: each for each in found.samples["levels"][0].to_list()}
    assert levels["dram"]["counted_frac"] == pytest.approx(mean_use(parts, "dram"))
    assert levels["dram"]["sampled_frac"] == pytest.approx(mean_use(sampled, "dram"), abs=0.01)
    assert "dram (0.240 sampled, 0.420 counted)" in found.samples["caveat"][0]


def test_a_unit_that_was_not_sampled_is_inferred_and_never_above_its_mean() -> None:
    found = _analysis(
        Part(60, LOAD), Part(90, COMPUTE), without=("pmsampling:lts__throughput.avg.pct_of_peak_sustained_elapsed",)
    )
    inferred = [{each["unit"]: each["frac"] for each in row} for row in found.phases["inferred"].to_list()]
    assert all("l2" in each and "dram" not in each for each in inferred)
    assert all(each["l2"] <= found.kernels["utilisation.l2"][0] for each in inferred)
    assert found.phases["utilisation.l2"].null_count() == found.phases.height


def test_what_warps_wait_for_is_told_where_it_was_sampled() -> None:
    parts = (Part(60, LOAD), Part(90, {"issue": 0.1}))
    whole = _analysis(*parts)
    times = series(parts)["pmsampling:sm__cycles_active.avg"][0]
    states = {
        "pmsampling:smsp__warps_issue_stalled_long_scoreboard.avg": [0.0] * 10 + [5.0] * 60 + [1.0] * 90 + [0.0] * 10,
        "pmsampling:smsp__warps_issue_stalled_barrier.avg": [0.0] * 10 + [1.0] * 60 + [9.0] * 90 + [0.0] * 10,
    }
    rows = [*whole.reports[0].samples.rows(), *((0, name, times, values) for name, values in states.items())]
    report = replace(whole.reports[0], samples=pl.DataFrame(rows, schema=RAW_SAMPLES, orient="row"))
    phases = Reports((report,)).analyse().phases
    assert phases["stall"].to_list() == ["long_scoreboard", "barrier"]
    assert phases["stall_frac"].to_list() == pytest.approx([5 / 6, 0.9], abs=0.02)
    assert phases["limiter"].to_list() == ["dram", "barrier"]


def test_each_phase_has_its_point_which_together_are_the_kernels() -> None:
    kernel = _analysis(Part(60, {"dram": 0.9, "fp32": 0.1}), Part(60, {"dram": 0.1, "fp32": 0.8}), sampling=Sampling())
    first, second = kernel.phases.select("intensity_flop_per_byte", "flop_per_s", "roof_frac", "precision").iter_rows(
        named=True
    )
    peak_flop_per_s = 2 * 132 * 128 * 1.5e9
    assert first["precision"] == "fp32"
    assert first["flop_per_s"] == pytest.approx(0.1 * peak_flop_per_s, rel=0.01)
    assert first["intensity_flop_per_byte"] == pytest.approx(0.1 * peak_flop_per_s / (0.9 * 3.3e12), rel=0.01)
    assert first["roof_frac"] == pytest.approx(0.9, rel=0.01)  # on the slope: DRAM's own use
    assert second["roof_frac"] == pytest.approx(0.8, rel=0.01)  # right of the ridge: that of the FMA pipes
    assert (first["flop_per_s"] + second["flop_per_s"]) / 2 == pytest.approx(
        kernel.kernels["work.fp32.flop"][0] / 240_000 * 1e9
    )


def test_a_kernel_with_few_samples_has_no_phases_and_says_why() -> None:
    found = _analysis(Part(4, COMPUTE))
    assert found.phases.is_empty()
    assert found.samples["caveat"][0] == "4 samples are too few to tell phases"


def test_a_report_without_series_has_neither() -> None:
    found = Reports((raw_report({"gpu__time_duration.sum": 1e5}),)).analyse()
    assert found.phases.is_empty()
    assert found.samples.is_empty()
    assert "phases" not in found.to_dict()["kernels"][0]
    assert "samples" not in found.to_dict()["kernels"][0]


def test_the_document_has_phases_and_samples() -> None:
    (kernel,) = _analysis(Part(60, LOAD), Part(90, COMPUTE)).to_dict()["kernels"]
    first, second = kernel["phases"]
    assert first["start_ns"] + first["duration_ns"] == pytest.approx(second["start_ns"])
    assert (first["kind"], first["verdict"], first["limiter"]) == ("steady", "memory", "dram")
    assert first["utilisation"]["dram"] == pytest.approx(0.9, abs=0.03)
    assert kernel["samples"]["n"] == 150
    assert kernel["samples"]["passes"] == 1
    assert kernel["samples"]["series"]["pmsampling:sm__cycles_active.avg"] == "cycle"
    assert len(kernel["samples"]["courses"]["dram"]) <= 60


@pytest.mark.long
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_phases_weighted_by_time_are_the_kernels_counters(name: str) -> None:
    path = RECORDINGS / name
    if not path.exists():
        pytest.skip("a source distribution leaves most recordings out")
    found = ncuroof.read(path).analyse()
    units = [f"utilisation.{unit}" for unit in SAMPLED_UNITS]
    shared = found.phases.group_by("id").agg(
        (pl.col(unit) * pl.col("duration_ns")).sum() / pl.col("duration_ns").sum() for unit in units
    )
    both = shared.join(found.kernels.select("id", *units), on="id", suffix=".counted")
    assert both.height >= 9
    for unit in (unit for unit in units if found.phases[unit].count()):
        differences = (both[unit] - both[f"{unit}.counted"]).abs().drop_nulls()
        assert (differences < 0.05).all(), unit  # where a phase would exceed 1, it is 1
