"""Trends: who goes on from run to run, and from where on a change is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.comparison.history import history
from ncuroof.present.documents.comparison import history_document
from ncuroof.present.texts.comparison import history_text
from tests.comparison.runs import SETUP, launch, run


def test_a_change_is_counted_since_the_last_run_on_a_different_gpu() -> None:
    other = replace(SETUP, gpus=("NVIDIA B200",))
    found = history([run(launch("a", 900.0)), *(run(launch("a", us), setup=other) for us in (300.0, 400.0, 450.0))])
    (trend,) = found.trends
    assert trend.mean_ns == [9e5, 3e5, 4e5, 4.5e5]
    # 450 / 300, not 450 / 900; and the fall from 900 to 300 is no jump
    assert trend.change_frac == pytest.approx(0.5)
    assert sorted(trend.jumps) == [2, 3]


def test_a_kernel_that_was_fused_begins_anew_and_one_that_is_gone_ends() -> None:
    before = run(launch("first"), launch("add"), launch("mul"), launch("last"))
    after = run(launch("first"), launch("add_mul", 150.0, **{"work.fp32.flop": 2e9}), launch("last"))
    times = {trend.name: trend.mean_ns for trend in history([before, after]).trends}
    assert times == {
        "first": [1e5, 1e5],
        "last": [1e5, 1e5],
        "add": [1e5, None],
        "mul": [1e5, None],
        "add_mul": [None, 1.5e5],
    }


def test_a_kernel_that_a_run_lacks_goes_on_behind_it() -> None:
    with_both, without = run(launch("a", 200.0), launch("b")), run(launch("b"))
    times = {trend.name: trend.mean_ns for trend in history([with_both, without, without, with_both]).trends}
    assert times == {"a": [2e5, None, None, 2e5], "b": [1e5] * 4}


def test_behind_a_gap_a_change_is_counted_from_the_same_clock_on() -> None:
    first, last = (
        run(launch("a", us, sm_clock_hz=clock), launch("b")) for us, clock in ((300.0, 1.2e9), (200.0, 1.5e9))
    )
    (trend,) = (each for each in history([first, run(launch("b")), last]).trends if each.name == "a")
    assert (trend.mean_ns, trend.change_frac) == ([3e5, None, 2e5], None)


def test_a_kernel_that_was_cut_into_more_launches_begins_anew() -> None:
    before = run(launch("a", 400.0, **{"work.fp32.flop": 4e9}))
    after = run(*[launch("a", 120.0, **{"work.fp32.flop": 1e9})] * 4)
    assert [trend.mean_ns for trend in history([before, after]).trends] == [[4e5, None], [None, 1.2e5]]


def test_a_change_is_counted_since_the_clock_last_changed() -> None:
    clocks = ((900.0, 1.2e9), (600.0, 1.5e9), (660.0, 1.5e9))
    steady = launch("b", 1e5, sm_clock_hz=1.5e9)
    found = history([run(launch("a", us, sm_clock_hz=clock), steady) for us, clock in clocks])
    (trend,) = (each for each in found.trends if each.name == "a")
    assert trend.change_frac == pytest.approx(0.1)
    assert sorted(trend.jumps) == [2]


def test_a_different_clock_is_shown() -> None:
    clocks = ((900.0, 1.2e9), (600.0, 1.5e9), (660.0, 1.5e9))
    found = history([run(launch("a", us, sm_clock_hz=clock)) for us, clock in clocks])
    why = "a: the SM clock differs by 25.0 % (1200 MHz → 1500 MHz)"
    lines = [line for line in history_text(found).splitlines() if "say nothing" in line]
    assert lines == [f"  0 to 1: sums over the whole runs say nothing: {why}"]
    assert [step["obstacle"] for step in history_document(found)["comparable"]] == [why, None]


def test_an_obstacle_to_every_comparison_is_shown_alone() -> None:
    other = replace(SETUP, gpus=("NVIDIA B200",))
    found = history([run(launch("a", sm_clock_hz=1.2e9)), run(launch("a", sm_clock_hz=1.5e9), setup=other)])
    lines = [line for line in history_text(found).splitlines() if "compared" in line]
    assert lines == ["  0 to 1: times are not compared: the GPU differs: NVIDIA H200 before, NVIDIA B200 after"]
    assert history_document(found)["comparable"][0]["obstacle"] is None


def test_marks_of_faster_and_slower_stand_behind_times() -> None:
    found = history([run(launch("a", us), launch("b")) for us in (900.0, 300.0, 450.0)])
    lines = history_text(found).splitlines()
    (a,) = (line for line in lines if line.startswith("a "))
    assert a.split() == ["a", "900", "µs", "300", "µs", "▼", "450", "µs", "▲", "−50.0", "%"]
    (b,) = (line for line in lines if line.startswith("b "))
    assert b.split() == ["b", *["100", "µs"] * 3, "0", "%"]
    assert lines[-1] == "▲ slower, ▼ faster than in the previous run, beyond measurement noise"
    assert "▲" not in history_text(history([run(launch("b"))] * 2))


@pytest.mark.parametrize(
    ("us", "change"), [(100.004, "<0.1 %"), (99.996, "<0.1 %"), (101.0, "+1.0 %"), (99.0, "−1.0 %")]
)
def test_a_change_that_is_hardly_one_has_no_sign(us: float, change: str) -> None:
    (line,) = (
        each
        for each in history_text(history([run(launch("b")), run(launch("b", us))])).splitlines()
        if each[:2] == "b "
    )
    assert line.endswith(f"  {change}")
