from __future__ import annotations

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.diagnosis import rank_actions, summarise, unit_weights
from ncuroof.present import render
from ncuroof.reading import Reports
from ncuroof.tables import FINDINGS, WEIGHTS
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def launch(duration_ns: float, memory: float, compute: float = 10.0, grid: int = 8) -> dict[str, float]:
    """One launch with Speed-of-Light totals, and DRAM and ALU as busy as they say."""
    return {
        "gpu__time_duration.sum": duration_ns,
        f"gpu__compute_memory_throughput{PCT}": memory,
        f"sm__throughput{PCT}": compute,
        f"gpu__dram_throughput{PCT}": memory,
        f"sm__pipe_alu_cycles_active{PCT}": compute,
        **{f"launch__grid_dim_{axis}": float(size) for axis, size in zip("xyz", (grid, 1, 1), strict=True)},
    }


def analysed(*launches: dict[str, float], names: tuple[str, ...]) -> Analysis:
    return Reports((raw_report(*launches, names=names),)).analyse()


def test_shares_of_time_by_verdict() -> None:
    analysis = analysed(launch(3e6, 90), launch(1e6, 10), names=("a", "b"))
    shares = analysis.summary.by_verdict
    assert shares["memory"].share_frac == pytest.approx(0.75)
    assert shares["latency"].n_kernels == 1
    assert analysis.summary.duration_ns == 4e6


def test_recoverable_time_is_summed_over_launches() -> None:
    # 3 ms at 90 % leave 0.3 ms, 1 ms at 10 % leave 0.9 ms
    analysis = analysed(launch(3e6, 90), launch(1e6, 10), names=("a", "b"))
    assert analysis.summary.recoverable_ns == pytest.approx(1.2e6)


@pytest.mark.long
def test_a_sum_that_no_kernel_knows_is_not_zero() -> None:
    untimed = {key: value for key, value in launch(1.0, 90).items() if key != "gpu__time_duration.sum"}
    analysis = analysed(untimed, names=("a",))
    assert (analysis.summary.duration_ns, analysis.summary.recoverable_ns) == (None, None)
    assert analysis.groups["duration_ns"].to_list() == [None]
    assert b"GPU time unknown" in render(analysis, "md")
    analysis = analysed(untimed, launch(1e6, 90), names=("a", "b"))
    shares = analysis.summary.by_verdict
    assert (analysis.summary.duration_ns, shares["memory"].share_frac) == (1e6, 1.0)
    assert (shares["memory"].n_launches, shares["memory"].duration_ns) == (2, 1e6)  # a verdict needs no duration


def test_their_share_of_debug_builds_is_of_the_time_that_each_stands_for() -> None:
    kernels = pl.DataFrame(
        {
            "id": [0, 1, 2, 3],
            "failed": [False, False, False, True],
            "duration_ns": [100.0, 100.0, None, 50.0],
            "check.debug_build": [1.0, None, 1.0, 1.0],
        },
        schema_overrides={"id": pl.UInt32},
    )
    nothing = pl.DataFrame(
        {"verdict": [None] * 4, "caveats": [[]] * 4, "recoverable_ns": [None] * 4},
        schema_overrides={"caveats": pl.List(pl.String), "recoverable_ns": pl.Float64},
    )
    weights = pl.DataFrame(
        {"id": [0, 1, 2, 3], "n_represented": 1.0, "weight": [3.0, 1.0, 1.0, 1.0]}, schema_overrides={"id": pl.UInt32}
    )
    summary = summarise(kernels, nothing, nothing, weights)
    assert (summary.n_debug_builds, summary.debug_build_frac) == (3, 0.75)  # 3 · 100 of 400 ns
    untimed = summarise(kernels.with_columns(duration_ns=pl.lit(None, pl.Float64)), nothing, nothing, weights)
    assert (untimed.n_debug_builds, untimed.debug_build_frac) == (3, None)


def test_equal_launches_form_a_group_ordered_by_recoverable_time() -> None:
    launches = [launch(1e6, 50), launch(2e6, 50), launch(4e6, 90), launch(1e6, 50, grid=9)]
    analysis = analysed(*launches, names=("a", "a", "b", "a"))
    groups = analysis.groups
    # a, grid 8: 3 ms · 50 % = 1.5 ms over two launches, shown by the longer; a, grid 9: 0.5 ms; b: 4 ms · 10 % = 0.4 ms
    assert groups["n_launches"].to_list() == [2, 1, 1]
    assert groups["id"].to_list() == [1, 3, 2]
    assert groups["recoverable_ns"].to_list() == [pytest.approx(1.5e6), pytest.approx(0.5e6), pytest.approx(0.4e6)]


def test_groups_without_roofline_time_come_last_by_duration() -> None:
    bare = [{"gpu__time_duration.sum": 1e6}, {"gpu__time_duration.sum": 5e6}]
    analysis = analysed(*bare, launch(1e3, 90), names=("a", "b", "c"))
    assert analysis.groups["id"].to_list() == [2, 1, 0]


def test_a_run_without_kernels_that_worked_has_no_shares() -> None:
    report = raw_report({})
    failed = report.workloads.with_columns(n_collected=1, n_not_finite=1).cast(report.workloads.schema)
    broken = type(report)(**{**{name: getattr(report, name) for name in report.__slots__}, "workloads": failed})
    analysis = ncuroof.Reports((broken,)).analyse()
    assert (analysis.summary.n_kernels, analysis.summary.n_failed) == (1, 1)
    assert analysis.summary.by_verdict == {}
    assert analysis.groups.is_empty()


def test_actions_count_each_launch_once_and_add_up_over_launches() -> None:
    told = [
        (0, "bank_conflicts", 30.0, True),
        (0, "local_memory", 20.0, False),  # overlaps with the larger one of the same launch
        (1, "tail_wave", 5.0, False),  # stands first, and gives less
        (1, "bank_conflicts", 50.0, True),
        (2, "dram_roof", None, False),
        (2, "tail_wave", 20.0, True),
    ]
    rows = [
        dict.fromkeys(FINDINGS)
        | {"id": id_, "finding": finding, "is_most_worth": counts}
        | ({} if ns is None else {"gain_ns": ns, "expected_ns": ns / 2, "expected_low_ns": 0.0, "expected_high_ns": ns})
        for id_, finding, ns, counts in told
    ]
    findings = pl.DataFrame(rows, schema=FINDINGS)
    actions = rank_actions(findings, 200.0, unit_weights(findings.select("id").unique()))
    # conflicts: 30 + 50 of 200 ns in two launches, of which the second saves more; tail: 20 of 200 ns in one
    assert actions.rows() == [
        ("bank_conflicts", 2, [1, 0], 80.0, 40.0, 0.0, 80.0, 0.4),
        ("tail_wave", 1, [2], 20.0, 10.0, 0.0, 20.0, 0.1),
    ]


def test_actions_of_a_run_without_time_have_no_share() -> None:
    assert rank_actions(pl.DataFrame(schema=FINDINGS), 0.0, pl.DataFrame(schema=WEIGHTS)).is_empty()


def worked(duration_ns: float, ffma_per_cycle: float, dram_read: float | None) -> dict[str, float]:
    """One launch of FMAs at 1 GHz."""
    rates = {"fadd": 0.0, "fmul": 0.0, "ffma": ffma_per_cycle}
    counters = {
        "gpu__time_duration.sum": duration_ns,
        "smsp__cycles_elapsed.avg.per_second": 1e9,
        **{
            f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": rate for op, rate in rates.items()
        },
    }
    return (
        counters if dram_read is None else {**counters, "dram__bytes_read.sum": dram_read, "dram__bytes_write.sum": 0.0}
    )


def test_rates_and_intensities_of_the_run_are_ratios_of_sums() -> None:
    launches = [worked(1e6, 500.0, 1e6), worked(3e6, 0.0, 2e6), worked(1e6, 50.0, None)]
    total = analysed(*launches, names=("a", "b", "c")).totals.row(0, named=True)
    # 2 · 500 · 1e6 cycles + 0 + 2 · 50 · 1e6 cycles = 1.1e9 FLOP in 5 ms; of them 1e9 for the 3e6 bytes of the first two launches
    assert (total["precision"], total["n_launches"]) == ("fp32", 3)
    assert total["flop"] == pytest.approx(1.1e9)
    assert total["flop_per_s"] == pytest.approx(1.1e9 / 5e-3)
    assert total["intensity_flop_per_byte"] == pytest.approx(1e9 / 3e6)


def test_a_run_that_moved_nothing_has_no_intensity() -> None:
    analysis = analysed(worked(1e6, 500.0, 0.0), names=("a",))
    assert analysis.totals["intensity_flop_per_byte"].to_list() == [None]
    assert analysis.to_dict()["summary"]["work"]["fp32"]["flop"] == pytest.approx(1e9)
