"""Chains of pointwise kernels as they were recorded, against what one kernel took for the same work."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from ncuroof.sidecars.predecessors import Predecessor

FOLDER = Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3"
CHAIN = "pointwise_chain"


@cache
def recorded(name: str) -> Reports:
    return ncuroof.read(FOLDER / f"{name}.full.ncu-repz")


@cache
def analysed(name: str) -> Analysis:
    return recorded(name).analyse()


def predicted_ns(analysis: Analysis, kernels: pl.DataFrame, *findings: str) -> float:
    found = analysis.findings.filter(
        pl.col("finding").is_in(findings or (CHAIN,)), pl.col("id").is_in(kernels["id"].implode())
    )
    return float(found["gain_ns"].sum())


def durations_ns(kernels: pl.DataFrame) -> float:
    return float(kernels["duration_ns"].sum())


SUITE = "adamw_fused-to-adamw_unfused"


@pytest.mark.long
def test_two_cosines_come_to_what_the_compiled_one_took() -> None:
    eager, compiled = (
        analysed("cos_cos_eager"),
        analysed(SUITE).kernels.filter(pl.col("name") == "triton_poi_fused_cos_0"),
    )
    measured_ns = durations_ns(eager.kernels) - durations_ns(compiled)
    assert measured_ns / durations_ns(eager.kernels) == pytest.approx(0.499, abs=0.001)
    assert predicted_ns(eager, eager.kernels) == pytest.approx(measured_ns, rel=0.01)


def test_an_adamw_in_eight_kernels_promises_little_more_than_the_fused_one_saves() -> None:
    analysis = analysed(SUITE)
    fused = analysis.kernels.filter(pl.col("name").str.contains("FusedOptimizer"))
    unfused = analysis.kernels.filter(pl.col("id") > analysis.kernels.height - 1 - 8)
    assert unfused["short_name"].str.starts_with("vectorized_elementwise_kernel").all()
    measured_ns = durations_ns(unfused) - durations_ns(fused)
    assert measured_ns == pytest.approx(1.03e6, rel=0.01)
    # The eight kernels have 2 + 3 + 2 + 4 + 2 + 2 + 2 + 4 = 21 tensors; one pass reads or writes 7, at 90 % of DRAM's bandwidth.
    assert analysis.kernels.tail(8)["launch.fused_step_frac"].to_list() == pytest.approx([1 / 3] * 8)
    assert measured_ns < predicted_ns(analysis, unfused, "unfused_optimizer") < 1.15 * measured_ns
    assert predicted_ns(analysis, unfused) == 0  # and none of them is told of its neighbour as well


@pytest.mark.long
def test_a_step_recorded_without_stores_is_told_of_its_optimizer_as_a_whole() -> None:
    analysis = ncuroof.read(FOLDER / "training_step.quick.ncu-repz").analyse()
    kernels = analysis.kernels.filter(pl.col("nvtx").list.last() == "optimizer")
    assert kernels["launch.is_of_optimizer"].to_list() == [1] * 540
    found = analysis.findings.filter(pl.col("finding") == "unfused_optimizer", pl.col("is_most_worth"))
    assert found.height == 536  # the last parameter's step was cut off after four kernels
    # A fused step moves 28 bytes for each of 99.7 million parameters: 0.93 ms at 3 TB/s; recorded were 3.73 ms.
    assert durations_ns(kernels) == pytest.approx(3.73e6, rel=0.001)
    assert 2.8e6 < predicted_ns(analysis, kernels, "unfused_optimizer") < 3.2e6


@pytest.mark.long
def test_a_cross_entropy_under_autocast_is_told_of_as_a_whole() -> None:
    analysis = ncuroof.read(FOLDER / "training_step.quick.ncu-repz").analyse()
    parts = analysis.kernels.filter(pl.col("launch.fused_loss_frac").is_not_null())
    assert parts["id"].to_list() == [246, 248, 249, 251, 252, 253, 254]  # 247 copies the labels, 250 fills one element
    found = analysis.findings.filter(pl.col("finding") == "unfused_cross_entropy")
    assert found["id"].to_list() == parts["id"].to_list()
    assert (
        found.filter("is_most_worth")["id"].to_list() == parts["id"].to_list()
    )  # also of the two that are small grids
    # One kernel reads 4096 rows of 32768 values of 2 bytes, and writes as many: 537 MB, 0.178 ms at 90 % of the peak of 3.35 TB/s.
    assert durations_ns(parts) == pytest.approx(2.235e6, rel=0.001)
    assert predicted_ns(analysis, parts, "unfused_cross_entropy") == pytest.approx(2.235e6 - 0.178e6, rel=0.01)


@pytest.mark.long
def test_a_step_of_durations_and_bytes_alone_is_told_of_its_optimizer_and_loss() -> None:
    analysis = ncuroof.read(FOLDER.parent / "h200/training_step.launches.ncu-repz").analyse()
    # Seven tensors of the 21 that a step's eight kernels move remain, at 90 % of 4.81 TB/s, and likewise of the logits' bytes:
    # sums over the launches, as shares of 13.76 ms.
    found = {row["finding"]: (row["n_launches"], row["share_frac"]) for row in analysis.actions.to_dicts()}
    assert found["unfused_optimizer"] == (600, pytest.approx(0.2376, abs=1e-4))
    assert found["unfused_cross_entropy"] == (7, pytest.approx(0.1113, abs=1e-4))
    # Of the launches that no counter of a unit judges, 35 keep DRAM busy for 60 % or more.
    shares = {name: (share.n_launches, share.share_frac) for name, share in analysis.summary.by_verdict.items()}
    assert shares["memory"] == (35, pytest.approx(0.2043, abs=1e-4))
    assert shares["unknown"] == (444, pytest.approx(0.6951, abs=1e-4))
    assert set(analysis.kernels.filter(pl.col("verdict") == "memory")["limiter"]) == {"dram"}


@pytest.mark.long
def test_an_attention_in_parts_promises_no_less_than_the_fused_one_saves() -> None:
    """Of the recording: its launches in parts, and how long FlashAttention-2 took for the same queries, keys and values."""
    analysis = analysed("attention_naive_64_4096-to-attention_flash_64_4096")
    parts = ("attention_in_parts", "scores_in_memory")
    for first, last, promised, fused_us in (
        (0, 4, 0.937, 236.7), (4, 8, 0.877, 393.4), (8, 12, 0.898, 1517.7), (12, 19, 0.917, 652.1),
    ):  # fmt: skip
        launches = analysis.kernels.slice(first, last - first)
        share = predicted_ns(analysis, launches, *parts) / durations_ns(launches)
        assert share == pytest.approx(promised, abs=0.001)
        assert share > 1 - 1e3 * fused_us / durations_ns(launches)


def test_compiled_and_fused_kernels_and_copies_are_in_no_chain() -> None:
    kernels, findings = analysed(SUITE).kernels, analysed(SUITE).findings.filter(pl.col("finding") == CHAIN)
    in_chains = kernels.filter(pl.col("id").is_in(findings["id"].implode()))
    assert in_chains["short_name"].str.contains("elementwise_kernel").all()
    assert not in_chains["name"].str.contains("triton|Fused|CatArray|direct_copy").any()


@pytest.mark.long
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


@pytest.mark.long
def test_a_step_whose_pointwise_kernels_stand_between_conversions_is_told_of_none() -> None:
    """Of two launches in a row of its 321, one is a copy, a conversion or a fill, a part of a foreach, or no pointwise kernel."""
    trace = Path(__file__).parents[1] / "collect/traces/h100-training-step.json.gz"
    analysis = ncuroof.read(FOLDER / "train_transformer.roofline.ncu-repz").weighted_by(trace).analyse()
    assert analysis.kernels["launch.fusable_frac"].to_list() == [0.0] * 69
    assert CHAIN not in analysis.findings["finding"].to_list()
