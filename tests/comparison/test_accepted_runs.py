"""The last accepted runs together: a lucky day is no standard, drifting clocks trip nothing, and a regression is seen."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from ncuroof.comparison import Outcome, Run, compare, judge, parse_gate
from ncuroof.comparison.accepted_runs import accepted_files, averaged_run, next_file, read_accepted
from ncuroof.comparison.deltas import deltas
from ncuroof.errors import BaselineError
from tests.comparison.runs import SETUP, launch, run

TIMES_US = (20.0, 150.0, 900.0)
BASE = run(*(launch(f"k{number}", us, sm_clock_hz=1.5e9) for number, us in enumerate(TIMES_US)))


def timed(times_us: Sequence[float], clock: float = 1.0, code: str | None = None) -> Run:
    """Return a run of three kernels that take such times at such a clock, over 1.5 GHz."""
    groups = BASE.groups.with_columns(
        pl.Series("mean_ns", [1e3 * us for us in times_us]),
        pl.Series("duration_ns", [1e3 * us for us in times_us]),
        pl.Series("sm_clock_hz", [1.5e9 * clock] * len(times_us)),
        pl.Series("sha256", [code] * len(times_us), dtype=pl.String),
    )
    return replace(BASE, setup=replace(SETUP, sm_clock_hz=1.5e9 * clock), groups=groups)


def times(*us: float, code: str | None = None) -> list[Run]:
    """Return runs of which the second kernel takes such times, on the same code where it is given."""
    return [timed((20.0, each, 900.0), code=code) for each in us]


def second(before: Run) -> dict[str, float]:
    row: dict[str, float] = before.groups.row(1, named=True)
    return row


# ---- 1000 days ---------------------------------------------------------------------------------------

N_DAYS, N_KEPT = 1000, 10
SLOWER = 1.06


def day(number: int, draw: random.Random, slower: float = 1.0) -> Run:
    """Return a run on a day: clocks drift by 1 % over a season and 0.2 % from day to day, times deviate by 0.5 % besides.

    The first two kernels are as fast as the clock, and the second `slower`; the third waits for DRAM.
    """
    clock = 1 + 0.01 * math.sin(2 * math.pi * number / 90) + draw.gauss(0, 0.002)
    speeds = clock, clock / slower, 1.0
    return timed([us * draw.gauss(1, 0.005) / speed for us, speed in zip(TIMES_US, speeds, strict=True)], clock)


@pytest.mark.long
def test_over_a_thousand_days_noise_trips_nothing_and_six_percent_trips() -> None:
    """Of 3000 judged kernels none is called slower by chance, and a kernel that is 6 % slower on every fifth day always is."""
    draw = random.Random(7)
    kept = [day(number, draw) for number in range(N_KEPT)]
    matches = compare(kept[0], kept[1]).matching.matches
    n_false = n_seen = n_tried = 0
    for number in range(N_KEPT, N_KEPT + N_DAYS):
        before, today = averaged_run(kept), day(number, draw)
        n_false += sum(each.outcome is Outcome.SLOWER for each in deltas(before, today, matches))
        if number % 5 == 0:
            n_tried += 1
            _, of_second, _ = deltas(before, day(number, draw, SLOWER), matches)
            n_seen += of_second.outcome is Outcome.SLOWER
        kept = [*kept[1:], today]
    assert n_false == 0
    assert n_seen == n_tried == N_DAYS / 5


@pytest.mark.long
def test_gates_judge_accepted_runs_as_they_judge_one() -> None:
    draw = random.Random(3)
    before = averaged_run([day(number, draw) for number in range(N_KEPT)])
    gates = [parse_gate(text) for text in ("time:+5%", "kernel(.*).time:+3%", "kernel(k1).outcome!=slower")]
    assert [each.has_passed for each in judge(gates, compare(before, day(11, draw)))] == [True, True, True]
    assert [each.has_passed for each in judge(gates, compare(before, day(12, draw, SLOWER)))] == [True, False, False]


# ---- levels ------------------------------------------------------------------------------------------


def test_one_fast_run_does_not_set_the_level() -> None:
    usual = times(100.0, 100.4, 99.8, 100.2, 99.7)
    lucky, today = times(96.0, 100.1)
    match = compare(lucky, today).matching.matches
    assert deltas(lucky, today, match)[1].outcome is Outcome.SLOWER
    assert deltas(averaged_run([*usual, lucky]), today, match)[1].outcome is not Outcome.SLOWER
    assert second(averaged_run([*usual, *times(80.0)]))["mean_ns"] == pytest.approx(
        100.02e3
    )  # one day alone is no level


def test_the_noise_is_that_of_a_further_run() -> None:
    found = second(averaged_run(times(98.0, 100.0, 102.0)))
    # Mean 100 µs; s = 2 µs. A further run deviates from the mean of three by 2 × √(1 + 1/3) = 2.3094 µs: over √3, 4 µs.
    assert (found["mean_ns"], found["deviation_ns"], found["n_recorded"]) == (100e3, pytest.approx(4e3), 3)


def test_two_runs_have_a_mean_and_not_yet_a_deviation() -> None:
    found = second(averaged_run(times(98.0, 100.0)))
    assert (found["mean_ns"], found["deviation_ns"], found["n_recorded"]) == (99e3, None, 1)


def test_a_new_level_holds_once_two_runs_agree_on_it() -> None:
    slow = (100.0, 100.4, 99.8)
    assert second(averaged_run(times(*slow, 80.0)))["mean_ns"] == pytest.approx(100.0667e3, rel=1e-5)
    assert second(averaged_run(times(*slow, 80.0, 80.2)))["mean_ns"] == pytest.approx(80.1e3)
    assert second(averaged_run(times(*slow, 70.0, *slow)))["mean_ns"] == pytest.approx(100.0667e3, rel=1e-5)


def test_new_code_is_a_level_at_once() -> None:
    runs = [*times(100.0, 100.4, 99.8, code="a" * 64), *times(80.0, code="b" * 64)]
    assert second(averaged_run(runs))["mean_ns"] == 80e3


def test_runs_of_a_different_gpu_are_left_out() -> None:
    (other,) = times(50.0)
    other = replace(other, setup=replace(other.setup, gpus=("NVIDIA B200",)))
    found = averaged_run([other, *times(100.0)])
    assert second(found)["mean_ns"] == 100e3
    assert found.label == "run"
    assert averaged_run(times(100.0, 102.0)).label == "2 accepted runs, the last of them run"


# ---- the folder --------------------------------------------------------------------------------------


def test_files_are_taken_in_the_order_of_their_numbers(tmp_path) -> None:
    assert next_file(tmp_path / "none") == tmp_path / "none" / "0001.json"
    for name in ("0009.json", "10000.json", "9999.json", "notes.json", "0010.txt"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert [path.name for path in accepted_files(tmp_path)] == ["0009.json", "9999.json", "10000.json"]
    assert next_file(tmp_path).name == "10001.json"
    with pytest.raises(BaselineError, match=r"10000\.json"):
        read_accepted(tmp_path, 1)
    with pytest.raises(BaselineError, match="expected a folder with accepted runs"):
        accepted_files(tmp_path / "notes.json")
