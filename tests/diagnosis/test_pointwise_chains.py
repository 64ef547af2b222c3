"""Chains of pointwise kernels as they were recorded, against what one kernel took for the same work."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis, Reports
from ncuroof.collect.counts import Counts, KernelCount

FOLDER = Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3"
CHAIN = "pointwise_chain"


@cache
def recorded(name: str) -> Reports:
    return ncuroof.read(FOLDER / f"{name}.full.ncu-repz")


@cache
def analysed(name: str) -> Analysis:
    return recorded(name).analyse()


def predicted_ns(analysis: Analysis, kernels: pl.DataFrame) -> float:
    told = analysis.findings.filter(pl.col("finding") == CHAIN, pl.col("id").is_in(kernels["id"].implode()))
    return float(told["gain_ns"].sum())


def durations_ns(kernels: pl.DataFrame) -> float:
    return float(kernels["duration_ns"].sum())


SUITE = "adamw_fused-to-adamw_unfused"


def test_two_cosines_come_to_what_the_compiled_one_took() -> None:
    eager, compiled = (
        analysed("cos_cos_eager"),
        analysed(SUITE).kernels.filter(pl.col("name") == "triton_poi_fused_cos_0"),
    )
    measured_ns = durations_ns(eager.kernels) - durations_ns(compiled)
    assert measured_ns / durations_ns(eager.kernels) == pytest.approx(0.499, abs=0.001)
    assert predicted_ns(eager, eager.kernels) == pytest.approx(measured_ns, rel=0.01)


def test_an_adamw_in_eight_kernels_comes_to_about_what_the_fused_one_took() -> None:
    analysis = analysed(SUITE)
    fused = analysis.kernels.filter(pl.col("name").str.contains("FusedOptimizer"))
    unfused = analysis.kernels.filter(pl.col("id") > analysis.kernels.height - 1 - 8)
    assert unfused["short_name"].str.starts_with("vectorized_elementwise_kernel").all()
    measured_ns = durations_ns(unfused) - durations_ns(fused)
    assert measured_ns == pytest.approx(1.03e6, rel=0.01)
    # Of 20 values for each parameter, 14 are written and read by the next kernel, by their sizes; one pass moves 7 of them.
    assert predicted_ns(analysis, unfused) == pytest.approx(measured_ns, rel=0.15)


def test_compiled_and_fused_kernels_and_copies_are_in_no_chain() -> None:
    kernels, findings = analysed(SUITE).kernels, analysed(SUITE).findings.filter(pl.col("finding") == CHAIN)
    told = kernels.filter(pl.col("id").is_in(findings["id"].implode()))
    assert told["short_name"].str.contains("elementwise_kernel").all()
    assert not told["name"].str.contains("triton|Fused|CatArray|direct_copy").any()


@pytest.mark.parametrize(("n_counted", "is_told"), [(2, True), (4, False)])
def test_a_report_that_holds_one_launch_for_many_tells_no_neighbours(n_counted: int, *, is_told: bool) -> None:
    reports = recorded("cos_cos_eager")
    kernel = analysed("cos_cos_eager").kernels.row(0, named=True)
    counts = Counts((KernelCount(kernel["name"], tuple(kernel["grid"]), tuple(kernel["block"]), n_counted, 1.4e6),))
    analysis = replace(reports, counts=(counts,)).analyse()
    assert analysis.kernels["launch.fusable_frac"].is_null().to_list() == [not is_told] * 2
    assert (CHAIN in analysis.findings["finding"].to_list()) == is_told
