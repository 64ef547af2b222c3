"""Time by family and by NVTX range: sums over launches that make up the run, and null for what is not known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from ncuroof.analysis import Analysis
from ncuroof.diagnosis.summary import branching_depth
from ncuroof.reading import Reports
from ncuroof.tables import BREAKDOWN_KINDS, BREAKDOWNS
from tests.diagnosis.test_summary import launch
from tests.support.raw import raw_report

SGEMM, NCCL = "ampere_sgemm_128x64_nn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def analysed(*parts: tuple[dict[str, float], str, Sequence[str | None]], n_failed: int = 0) -> Analysis:
    """Return a run of launches with their names and open ranges; the last `n_failed` of them failed to profile."""
    report = raw_report(*(counters for counters, _, _ in parts), names=[name for _, name, _ in parts])
    failed = pl.int_range(pl.len()) >= pl.len() - n_failed
    workloads = report.workloads.with_columns(
        pl.Series("nvtx", [list(ranges) for _, _, ranges in parts], dtype=pl.List(pl.String)),
        pl.when(failed).then("n_collected").otherwise("n_not_finite").alias("n_not_finite"),
    )
    return Reports((replace(report, workloads=workloads),)).analyse()


def rows(analysis: Analysis, kind: str) -> list[tuple[object, ...]]:
    """Return key, launches, duration, share and recoverable time of one kind."""
    return analysis.breakdowns.filter(pl.col("kind") == kind).drop("kind").rows()


def test_time_by_family_is_summed_over_launches_the_longest_first() -> None:
    analysis = analysed((launch(1e6, 90), SGEMM, ()), (launch(2e6, 50), "mine", ()), (launch(3e6, 90), SGEMM, ()))
    # cuBLAS: 1 + 3 of 6 ms, at 90 % 0.4 ms above the roofline; own: 2 of 6 ms, at 50 % 1 ms
    assert rows(analysis, "family") == [
        ("cublas", 2, 4e6, pytest.approx(4 / 6), pytest.approx(0.4e6)),
        ("user", 1, 2e6, pytest.approx(2 / 6), pytest.approx(1e6)),
    ]


def test_ranges_are_told_by_the_outermost_and_by_their_path() -> None:
    analysis = analysed(
        (launch(1e6, 90), "a", ("step", "forward")),
        (launch(2e6, 90), "b", ("step", "backward", "gemm")),
        (launch(4e6, 90), "c", ("step", "forward")),
        (launch(1e6, 90), "d", ()),
    )
    assert [row[:3] for row in rows(analysis, "nvtx")] == [("step", 3, 7e6), (None, 1, 1e6)]
    assert [row[:3] for row in rows(analysis, "nvtx_path")] == [
        ("step/forward", 2, 5e6),
        ("step/backward/gemm", 1, 2e6),
        (None, 1, 1e6),
    ]


@pytest.mark.parametrize(
    ("ranges", "keys"),
    [
        # what a range holds itself and what the ranges in it hold count together
        (
            [("step", "forward"), ("step", "forward", "mlp"), ("step", "backward")],
            {"step/forward": 3e6, "step/backward": 4e6},
        ),
        ([("a",), ("b", "x"), ("b", "y")], {"b": 6e6, "a": 1e6}),
        ([("step", "x"), ("step", "x"), ()], {"step/x": 3e6, None: 4e6}),
        ([("step",), ("step", "x"), ("step", "x", "y")], {"step/x": 6e6, "step": 1e6}),
        ([(), (), ()], {None: 7e6}),
    ],
)
def test_branches_are_the_first_ranges_that_differ(
    ranges: list[tuple[str, ...]], keys: dict[str | None, float]
) -> None:
    analysis = analysed(*((launch(2**place * 1e6, 90), "a", each) for place, each in enumerate(ranges)))
    assert {row[0]: row[2] for row in rows(analysis, "nvtx_branch")} == keys


def test_deep_ranges_take_time_in_proportion_to_their_names() -> None:
    """One distinct count per depth took 8 s for 17 launches, 10 000 deep."""
    path = [f"range {depth}" for depth in range(5000)]
    begin = time.process_time()
    depth = branching_depth(pl.Series("nvtx", [path, [*path[:-1], "other"], path] * 5))
    assert depth == len(path)
    assert time.process_time() - begin < 1


def test_a_range_without_a_name_is_a_range() -> None:
    analysis = analysed((launch(1e6, 90), "a", (None, "inner")))
    assert rows(analysis, "nvtx")[0][0] == "(unnamed)"
    assert rows(analysis, "nvtx_path")[0][0] == "(unnamed)/inner"


def test_every_kind_adds_up_to_the_run() -> None:
    analysis = analysed(
        (launch(1e6, 90), SGEMM, ("a",)), (launch(2e6, 50), NCCL, ()), (launch(3e6, 70), "mine", ("b",))
    )
    for kind in BREAKDOWN_KINDS:
        part = analysis.breakdowns.filter(pl.col("kind") == kind)
        assert part["duration_ns"].sum() == analysis.summary.duration_ns
        assert part["recoverable_ns"].sum() == pytest.approx(analysis.summary.recoverable_ns)
        assert part["share_frac"].sum() == pytest.approx(1)
        assert part["n_launches"].sum() == analysis.summary.n_kernels


def test_failed_launches_are_left_out() -> None:
    analysis = analysed((launch(1e6, 90), "a", ("x",)), (launch(1e6, 90), NCCL, ("y",)), n_failed=1)
    assert [row[0] for row in rows(analysis, "family")] == ["user"]
    assert [row[0] for row in rows(analysis, "nvtx")] == ["x"]


@pytest.mark.long
def test_what_is_not_known_is_null_and_comes_last() -> None:
    untimed = {key: value for key, value in launch(1.0, 90).items() if key != "gpu__time_duration.sum"}
    analysis = analysed((untimed, NCCL, ()), (launch(1e6, 90), "a", ()))
    assert rows(analysis, "family")[1] == ("nccl", 1, None, None, None)
    alone = analysed((untimed, "a", ()))
    assert rows(alone, "family") == [("user", 1, None, None, None)]


def test_a_run_without_launches_that_worked_has_no_parts() -> None:
    analysis = analysed((launch(1e6, 90), "a", ("x",)), n_failed=1)
    assert analysis.breakdowns.is_empty()
    assert analysis.breakdowns.schema == BREAKDOWNS


def test_the_document_holds_each_kind_as_a_list() -> None:
    summary = analysed((launch(1e6, 90), SGEMM, ("step", "x")), (launch(3e6, 90), "a", ())).to_dict()["summary"]
    assert [entry["key"] for entry in summary["by_family"]] == ["user", "cublas"]
    assert [entry["key"] for entry in summary["by_nvtx"]] == [None, "step"]
    assert [entry["key"] for entry in summary["by_nvtx_path"]] == [None, "step/x"]
    assert set(summary["by_family"][0]) == {"key", "n_launches", "duration_ns", "share_frac", "recoverable_ns"}


def test_the_spread_of_a_group_is_told_from_its_launches() -> None:
    group = analysed((launch(1e6, 50), "a", ()), (launch(3e6, 50), "a", ())).groups.row(0, named=True)
    # mean 2 ms, deviation √(((1 - 2)² + (3 - 2)²) / 2) = 1 ms
    assert (group["min_duration_ns"], group["max_duration_ns"]) == (1e6, 3e6)
    assert group["duration_cv"] == pytest.approx(0.5)


@pytest.mark.long
def test_equal_launches_have_no_spread_and_a_single_one_has_none_to_tell() -> None:
    groups = analysed((launch(1e6, 50), "a", ()), (launch(1e6, 50), "a", ()), (launch(1e5, 50), "b", ())).groups
    assert groups["duration_cv"].to_list() == [0.0, None]
    untimed = {key: value for key, value in launch(1.0, 90).items() if key != "gpu__time_duration.sum"}
    unknown = analysed((untimed, "a", ()), (untimed, "a", ())).groups.row(0, named=True)
    assert (unknown["min_duration_ns"], unknown["max_duration_ns"], unknown["duration_cv"]) == (None, None, None)
