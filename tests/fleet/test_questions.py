"""Lists of a fleet: the slowest, the most recoverable, other GPUs."""

from __future__ import annotations

import pytest

from ncuroof.fleet.questions import across_gpus, by_recoverable_time, by_time, factors, overview
from tests.fleet.launches import fleet, launch

Work = dict[str, float]
GFLOP: Work = {"work.flop": 1e9}


def test_the_fleet_in_numbers() -> None:
    found = overview(
        fleet(
            launch("a", 0, 100.0, recoverable_ns=40e3, labels={"commit": "x"}),
            launch("a", 0, 50.0),
            launch("b", 2, 7.0, gpu_name="Tesla T4", failed=True, labels={"commit": "y"}),
            launch("c", 3, 1.0, duration_ns=None, gpu_name="A100-SXM4-40GB"),
        )
    )
    assert (found.n_reports, found.n_launches, found.n_failed, found.n_without_time) == (3, 4, 1, 1)
    assert (found.duration_ns, found.recoverable_ns) == (150e3, 40e3)
    assert found.gpus == (("A100-SXM4-40GB", 3), ("Tesla T4", 1))
    assert (found.first, found.last) == ("2025-01-01", "2025-01-04")
    assert found.labels == (("commit", 2),)


def test_a_number_that_no_report_has_is_not_zero() -> None:
    found = overview(fleet(launch("a", 0, 100.0)))
    assert (found.duration_ns, found.recoverable_ns) == (100e3, None)


def test_the_slowest_kernel_comes_first_with_its_dates() -> None:
    found = by_time(
        fleet(
            launch("a", 0, 10.0, name="short"),
            launch("a", 0, 30.0, verdict="latency"),
            launch("b", 1, 50.0, grid=[128, 1, 1]),
            launch("b", 1, 40.0),
            launch("c", 1, 999.0, failed=True),
        )
    )
    assert found["name"].to_list() == ["gemm(float*)", "short"]
    row = found.row(0, named=True)
    assert (row["duration_ns"], row["n_launches"], row["n_reports"], row["n_shapes"]) == (120e3, 3, 2, 2)
    assert row["median_ns"] == 40e3
    assert row["share_frac"] == pytest.approx(120 / 130)
    assert row["verdict"] == "memory"  # of the longest launch
    assert [(str(day["date"]), day["n_launches"], day["median_ns"]) for day in row["dates"]] == [
        ("2025-01-01", 1, 30e3),
        ("2025-01-02", 2, 45e3),
    ]


def test_counts_and_sums_are_weighted_by_represented_launches() -> None:
    """One launch stands for ten that took 1.5 times as long each in the counted run, 150 µs beside 100 µs under ncu."""
    rows = fleet(
        launch("a", 0, 100.0, recoverable_ns=40e3, n_represented=10.0, weight=15.0),
        launch("b", 1, 300.0, name="other", n_represented=None, weight=None),
    )
    found = overview(rows)
    assert (found.n_launches, found.duration_ns, found.recoverable_ns) == (11, 1800e3, 600e3)
    assert found.gpus == (("A100-SXM4-40GB", 11),)
    first, second = by_time(rows).iter_rows(named=True)
    assert (first["n_launches"], first["n_placed"], first["duration_ns"], first["recoverable_ns"]) == (
        10,
        10,
        1500e3,
        600e3,
    )
    assert (first["median_ns"], first["share_frac"]) == (150e3, pytest.approx(15 / 18))
    assert [(day["n_launches"], day["median_ns"]) for day in first["dates"]] == [(10, 150e3)]
    assert (second["n_launches"], second["duration_ns"]) == (1, 300e3)


def test_order_by_recoverable_time_leaves_out_unknown_ones() -> None:
    kernels = by_time(
        fleet(
            launch("a", 0, 100.0, name="slow", recoverable_ns=10e3),
            launch("a", 0, 50.0, name="wasteful", recoverable_ns=40e3),
            launch("a", 0, 80.0, name="unknown", recoverable_ns=None),
        )
    )
    assert by_recoverable_time(kernels)["name"].to_list() == ["wasteful", "slow"]


def test_equal_launches_stand_beside_each_other_across_gpus() -> None:
    found = across_gpus(
        fleet(
            launch("a", 0, 100.0, min_time_ns=50e3, **GFLOP),
            launch("a", 0, 300.0, min_time_ns=50e3, **GFLOP),
            launch("b", 0, 80.0, gpu_name="NVIDIA H100", min_time_ns=20e3, **GFLOP),
            launch("c", 0, 90.0, gpu_name="NVIDIA H200", clock_control="none", **GFLOP),  # at other clocks
            launch("d", 0, 90.0, gpu_name="A100-SXM4-40GB", **GFLOP),  # the same GPU under its old name
            launch("e", 0, 9.0, gpu_name="NVIDIA H200", is_simulated=True, **GFLOP),
            launch("a", 0, 5.0, name="elsewhere"),
        )
    )
    assert found["gpu_name"].to_list() == ["H100", "A100-SXM4-40GB"]
    assert found["median_ns"].to_list() == [80e3, 100e3]
    assert found["least_ns"].to_list() == [80e3, 90e3]
    assert found["most_ns"].to_list() == [80e3, 300e3]
    assert found["share_of_roof_frac"].to_list() == [20 / 80, 100 / 400]  # where both are known


@pytest.mark.parametrize(
    ("here", "there", "is_same"),
    [
        (GFLOP, {"work.flop": 2e9}, False),
        (GFLOP, {"work.flop": 0.95e9}, True),
        ({}, {}, False),  # nothing says so
        (GFLOP, {}, False),
        ({"instructions.warp_executed": 187.0}, {"instructions.warp_executed": 180e3}, False),
        (
            {"instructions.warp_executed": 100e3},
            {"instructions.warp_executed": 180e3},
            True,
        ),  # compiled for another chip
        (GFLOP | {"instructions.warp_executed": 100e3}, GFLOP | {"instructions.warp_executed": 900e3}, False),
    ],
)
def test_launches_that_do_other_work_are_not_the_same(here: Work, there: Work, *, is_same: bool) -> None:
    found = across_gpus(fleet(launch("a", 0, 100.0, **here), launch("b", 0, 80.0, gpu_name="NVIDIA H100", **there)))
    assert found.height == (2 if is_same else 0)


def test_the_first_date_is_kept_however_many_follow() -> None:
    found = by_time(fleet(*(launch(f"r{day}", day, 10.0 + day) for day in range(20))))
    dates = [str(day["date"]) for day in found["dates"][0]]
    assert (dates[0], dates[1], dates[-1], len(dates)) == ("2025-01-01", "2025-01-10", "2025-01-20", 12)


def test_damaged_and_simulated_reports_are_counted() -> None:
    found = overview(
        fleet(
            launch("a", 0, 1.0, is_damaged_report=True),
            launch("a", 0, 1.0, is_damaged_report=True),
            launch("b", 0, 1.0, is_simulated=True, is_damaged_report=False),
            launch("c", 0, 1.0),
        )
    )
    assert (found.n_reports, found.n_damaged, found.n_simulated) == (3, 1, 1)


def test_recoverable_time_counts_only_launches_that_have_it() -> None:
    launches = [launch("a", 0, 100.0, recoverable_ns=84e3), launch("a", 0, 300.0, recoverable_ns=None)]
    assert by_time(fleet(*launches)).select("duration_ns", "placed_ns").row(0) == (400e3, 100e3)


def test_a_label_of_one_value_is_not_asked_about() -> None:
    rows = fleet(launch("a", 0, 1.0, labels={"team": "x", "commit": "1"}), launch("b", 0, 1.0, labels={"commit": "2"}))
    assert factors(rows) == ("report", "driver", "ncu", "label:commit")
