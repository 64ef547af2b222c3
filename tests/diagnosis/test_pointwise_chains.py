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
from ncuroof.collect.predecessors import Predecessor

FOLDER = Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3"
CHAIN = "pointwise_chain"


@cache
def recorded(name: str) -> Reports:
    return ncuroof.read(FOLDER / f"{name}.full.ncu-repz")


@cache
def analysed(name: str) -> Analysis:
    return recorded(name).analyse()


def predicted_ns(analysis: Analysis, kernels: pl.DataFrame) -> float:
    chains = analysis.findings.filter(pl.col("finding") == CHAIN, pl.col("id").is_in(kernels["id"].implode()))
    return float(chains["gain_ns"].sum())


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
    in_chains = kernels.filter(pl.col("id").is_in(findings["id"].implode()))
    assert in_chains["short_name"].str.contains("elementwise_kernel").all()
    assert not in_chains["name"].str.contains("triton|Fused|CatArray|direct_copy").any()


@pytest.mark.parametrize(
    ("n_counted", "n_behind_itself", "share"),
    [
        (2, None, 0.498),  # both were recorded, in their order
        (4, None, None),
        (4, 0, 0.0),
        (4, 2, 0.498),  # as two pairs
        (8, 2, 0.249),
    ],
)
def test_a_report_that_holds_one_launch_for_many_goes_by_the_order_that_was_counted(
    n_counted: int, n_behind_itself: int | None, share: float | None
) -> None:
    kernel = analysed("cos_cos_eager").kernels.row(0, named=True)
    key = (kernel["name"], tuple(kernel["grid"]), tuple(kernel["block"]))
    before = (Predecessor(*key, n_behind_itself),) if n_behind_itself else ()
    counted = KernelCount(*key, n_counted, 1.4e6, predecessors=None if n_behind_itself is None else before)
    analysis = replace(recorded("cos_cos_eager"), counts=(Counts((counted,)),)).analyse()
    found = analysis.kernels["launch.fusable_frac"]
    assert found.mean() == (None if share is None else pytest.approx(share, abs=0.002))
    assert (CHAIN in analysis.findings["finding"].to_list()) == bool(share)


def test_a_step_whose_pointwise_kernels_stand_between_conversions_is_told_of_none() -> None:
    """Of two launches in a row of its 321, one is a copy, a conversion or a fill, a part of a foreach, or no pointwise kernel."""
    trace = Path(__file__).parents[1] / "collect/traces/h100-training-step.json.gz"
    analysis = ncuroof.read(FOLDER / "train_transformer.roofline.ncu-repz").weighted_by(trace).analyse()
    assert analysis.kernels["launch.fusable_frac"].to_list() == [0.0] * 69
    assert CHAIN not in analysis.findings["finding"].to_list()
