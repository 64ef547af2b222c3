"""Changes of time are claimed where they can be compared, and only beyond chance."""

from __future__ import annotations

import math
import random
from typing import Any

import polars as pl
import pytest

from ncuroof.fleet.questions import changes
from ncuroof.fleet.series import usable
from tests.fleet.launches import fleet, launch


def step(rows: pl.LazyFrame, by: str = "driver") -> dict[str, Any]:
    (found,) = changes(rows, by).steps.to_dicts()
    return found


def two_drivers(before_us: float, after_us: float, **after: Any) -> pl.LazyFrame:
    return fleet(
        launch("a", 0, before_us, driver_version="550"), launch("b", 1, after_us, **{"driver_version": "560", **after})
    )


# A launch of 1 ms is seen to differ by √(0.25² + 10²) µs = 10.0031 µs, 1.00031 %. Two standard errors of the difference of two of
# them: 2 × √2 × 1.00031 % = 2.8293 %.
@pytest.mark.parametrize(
    ("after_us", "is_significant"), [(1028.0, False), (1029.0, True), (973.0, False), (972.0, True)]
)
def test_a_single_launch_of_a_millisecond_changes_beyond_three_percent(after_us: float, is_significant: bool) -> None:
    found = step(two_drivers(1000.0, after_us))
    # The noise differs a little as the second time does: 0.25 µs of jitter are a little less of it.
    assert found["noise_frac"] == pytest.approx(0.028293, rel=1e-4)
    assert found["change_frac"] == pytest.approx(after_us / 1000 - 1)
    assert found["is_significant"] == is_significant


def test_short_launches_need_more() -> None:
    # Of 5 µs, 0.25 µs are 5 %; with 1 %: 5.099 %. 2 × √2 × 5.099 % = 14.4 %.
    found = step(two_drivers(5.0, 5.0))
    assert found["noise_frac"] == pytest.approx(2 * math.sqrt(2) * math.hypot(0.05, 0.01), rel=1e-9)


@pytest.mark.long
def test_many_launches_need_no_less_than_the_least_change() -> None:
    rows = [launch("a", 0, 1000.0, driver_version="550")] * 10_000 + [
        launch("b", 1, 1015.0, driver_version="560")
    ] * 10_000
    found = step(fleet(*rows))
    assert found["noise_frac"] == 0.02
    assert not found["is_significant"]


def test_reports_that_differ_among_themselves_widen_the_noise() -> None:
    """A hundred launches of one recording agree; three recordings do not: what counts is how far recordings differ."""
    rows = [
        launch(f"{driver}{number}", number + 10 * later, us, driver_version=driver)
        for later, (driver, base) in enumerate((("550", 100.0), ("560", 110.0)))
        for number, us in enumerate((base - 10, base, base + 10))
        for _ in range(100)
    ]
    found = step(fleet(*rows))
    # The standard deviation of the reports' means is 10 µs, their standard error 10/√3 = 5.7735 µs.
    # Three reports each: by Welch and Satterthwaite 3.96 degrees of freedom, for which Student's quantile is 2.880 where the normal
    # one is 2 (by integrating the density).
    expected = 2.880 * math.sqrt((5.7735 / 100) ** 2 + (5.7735 / 110) ** 2)
    assert found["noise_frac"] == pytest.approx(expected, rel=1e-3)
    assert found["change_frac"] == pytest.approx(0.1)
    assert not found["is_significant"]


def test_few_launches_that_agree_by_luck_are_not_believed() -> None:
    rows = [launch("a", 0, 1000.0, driver_version="550")] * 3 + [launch("b", 1, 1021.0, driver_version="560")] * 3
    # Their own deviation is 0; 1.00031 % / √3 is taken: 2 × √2 × 0.57753 % = 1.634 %, below the least change of 2 %.
    assert step(fleet(*rows))["noise_frac"] == 0.02
    rows = [launch("a", 0, 10.0, driver_version="550")] * 3 + [launch("b", 1, 10.4, driver_version="560")] * 3
    # √(0.25² + 0.1²) µs / √3 are 1.555 % of 10 µs, √(0.25² + 0.104²) µs / √3 1.503 % of 10.4 µs: 4.325 %.
    found = step(fleet(*rows))
    assert (found["noise_frac"], found["is_significant"]) == (pytest.approx(0.04325, rel=1e-3), False)


def test_fleets_judge_a_pair_of_launches_as_a_comparison_does() -> None:
    # Three launches whose own deviation is 10 % of 1 ms, on each side: 2.869 standard errors by Student with 4 degrees of freedom.
    rows = [
        launch(driver, day, us, driver_version=driver)
        for day, driver in enumerate(("550", "560"))
        for us in (900.0, 1000.0, 1100.0)
    ]
    assert step(fleet(*rows))["noise_frac"] == pytest.approx(2.869 * math.sqrt(2) * 0.1 / math.sqrt(3), rel=1e-3)


def test_all_comparisons_together_claim_falsely_as_rarely_as_one() -> None:
    # Of a hundred kernels each has to exceed 3.4998 standard errors: 1 - (1 - 0.0455)^(1/100) in both tails (Šidák)
    rows = [
        launch(driver, day, 1000.0, driver_version=driver, name=f"k{number}")
        for number in range(100)
        for day, driver in enumerate(("550", "560"))
    ]
    noises = changes(fleet(*rows), "driver").steps["noise_frac"].to_list()
    assert noises == pytest.approx([3.4998 * math.sqrt(2) * 0.0100031] * 100, rel=1e-4)


def test_a_thousand_unchanged_kernels_are_not_shown() -> None:
    chance = random.Random(1)
    rows = [
        launch(driver, day, chance.gauss(1000.0, 10.0), driver_version=driver, name=f"k{number}")
        for number in range(1000)
        for day, driver in enumerate(("550", "560"))
    ]
    found = changes(fleet(*rows), "driver")
    assert found.n_compared == 1000
    assert found.slower.is_empty()
    assert found.faster.is_empty()


def test_values_follow_each_other_as_they_were_recorded() -> None:
    rows = fleet(
        launch("c", 2, 400.0, labels={"commit": "aaa"}),
        launch("a", 0, 100.0, labels={"commit": "zzz"}),
        launch("b", 1, 200.0, labels={"commit": "mmm"}),
        launch("d", 3, 200.0),  # without the label
    )
    found = changes(rows, "label:commit").steps.sort("first_recorded_at")
    assert found["before_value"].to_list() == ["zzz", "mmm"]
    assert found["value"].to_list() == ["mmm", "aaa"]
    assert found["change_frac"].to_list() == [1.0, 1.0]


# ---- what is not compared ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"gpu_name": "NVIDIA H100"},
        {"clock_control": "none"},
        {"clock_control": None},
        {"cache_control": "none"},
        {"grid": [128, 1, 1]},
        {"block": [128, 1, 1]},
        {"nvtx": ["backward"]},
        {"process_name": "infer"},
        {"process_name": "train2"},  # another program, for all that is known
        {"is_simulated": True},
        {"name": "gemm(double*)"},
        {"recorded_at": None},
        {"failed": True},
        {"duration_ns": None},
    ],
)
def test_launches_that_differ_in_more_than_name_are_not_compared(other: dict[str, Any]) -> None:
    assert changes(two_drivers(100.0, 200.0, **other), "driver").steps.is_empty()


@pytest.mark.parametrize(
    "same",
    [{"gpu_name": "A100-SXM4-40GB"}, {"process_name": "train2.1"}, {"process_name": "train.exe"}, {"nvtx": []}],
)
def test_launches_that_differ_only_in_name_are_compared(same: dict[str, Any]) -> None:
    assert changes(two_drivers(100.0, 200.0, **same), "driver").slower.height == 1


def test_a_different_version_of_the_interpreter_is_the_same_program() -> None:
    names = ["python", "python3", "python3.11", "python3.10.exe", "julia1", "lab3", "128", "step2.exe", None]
    rows = fleet(*(launch("a", 0, 1.0, process_name=name) for name in names))
    found = usable(rows).collect()["program"].to_list()
    assert found == ["python", "python", "python", "python", "julia", "lab3", "128", "step2", None]


def test_launches_of_other_work_say_nothing_of_chance() -> None:
    # Four launches of 1 to 4 Gflop whose times go with it; a third longer each is 30 %, whatever they differ by among themselves.
    rows = fleet(
        *(
            launch(report, day, factor * us, driver_version=driver, **{"work.flop": 1e6 * us})
            for report, day, factor, driver in (("a", 0, 1.0, "550"), ("b", 1, 1.3, "560"))
            for us in (1000.0, 2000.0, 3000.0, 4000.0)
        )
    )
    assert step(rows)["is_significant"]
    assert step(rows)["change_frac"] == pytest.approx(0.3)


def test_without_counted_work_the_bytes_show_a_different_problem() -> None:
    for after, is_same in ((1.9e9, True), (2.1e9, False), (None, True)):
        rows = fleet(
            launch("a", 0, 100.0, driver_version="550", **{"traffic_bytes.dram": 1e9}),
            launch("b", 1, 200.0, driver_version="560", **{"traffic_bytes.dram": after}),
        )
        assert changes(rows, "driver").slower.height == int(is_same), after


def test_other_clocks_forbid_a_claim() -> None:
    def at(clock_hz: float) -> pl.LazyFrame:
        return fleet(
            launch("a", 0, 100.0, driver_version="550", sm_clock_hz=1.40e9),
            launch("b", 1, 200.0, driver_version="560", sm_clock_hz=clock_hz),
        )

    # 3 % is the most that clocks may differ by: 1.40 GHz × 1.03 = 1.442 GHz.
    assert step(at(1.441e9))["is_significant"]
    found = changes(at(1.443e9), "driver")
    assert (found.n_compared, found.slower.height) == (0, 0)


def test_different_work_is_not_a_regression() -> None:
    for column, after, is_same in (
        ("work.flop", 1.09e9, True),
        ("work.flop", 1.2e9, False),
        ("instructions.warp_executed", 1.9e9, True),  # a compiler may do that
        ("instructions.warp_executed", 2.1e9, False),
        ("work.flop", None, True),
    ):
        rows = fleet(
            launch("a", 0, 100.0, driver_version="550", **{column: 1e9}),
            launch("b", 1, 200.0, driver_version="560", **{column: after}),
        )
        found = changes(rows, "driver")
        assert (found.slower.height, found.other_work.height) == ((1, 0) if is_same else (0, 1)), (column, after)


def test_further_differences_are_shown() -> None:
    rows = fleet(
        launch("a", 0, 100.0, driver_version="550", labels={"commit": "aaa"}, **{"traffic_bytes.dram": 1e9}),
        launch("b", 1, 200.0, driver_version="560", labels={"commit": "bbb"}, **{"traffic_bytes.dram": 2e9}),
    )
    assert step(rows, "driver")["also_changed"] == ["label commit", "DRAM bytes"]
    assert step(rows, "label:commit")["also_changed"] == ["the driver", "DRAM bytes"]


def test_a_difference_of_work_is_shown_once_it_can_explain_a_change() -> None:
    # profiles/comparison.toml: 5 % of FLOPs, 10 % of instructions; as a part of the larger, 1 - 1 / 1.08 is 7.4 %
    for column, factor, changed in (
        ("work.flop", 1.08, ["FLOPs"]),
        ("work.flop", 1.04, []),
        ("instructions.warp_executed", 1.08, []),
        ("instructions.warp_executed", 1.2, ["instructions"]),
    ):
        rows = fleet(
            launch("a", 0, 100.0, driver_version="550", **{column: 1e9}),
            launch("b", 1, 200.0, driver_version="560", **{column: factor * 1e9}),
        )
        assert step(rows, "driver")["also_changed"] == changed, (column, factor)
