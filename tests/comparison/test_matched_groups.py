"""Groups of launches that are compared as one, and what is known of one run alone."""

from __future__ import annotations

import pytest

from ncuroof.comparison import compare
from ncuroof.comparison.matched_groups import MatchedGroups
from ncuroof.comparison.noise import clock_change, other_clocks
from tests.comparison.runs import launch, run


def together(*launches: dict) -> MatchedGroups:
    return MatchedGroups.of(list(run(*launches).groups.iter_rows(named=True)))


def test_the_longest_group_speaks_for_all() -> None:
    few = launch("few", 300.0, verdict="compute", limiter="fp32")
    for launches in ([few, *[launch("many", 100.0)] * 4], [*[launch("many", 100.0)] * 4, few]):
        assert together(*launches).longest["short_name"] == "many"  # 400 µs of 700


def test_each_run_has_its_own_share_of_the_roof() -> None:
    before = run(launch("a", 1000.0, min_time_ns=4e5, limiter="l2"))
    (delta,) = compare(before, run(launch("a", 500.0, min_time_ns=4e5, verdict="balanced"))).deltas
    assert delta.roof_frac == pytest.approx((0.4, 0.8))
    assert (delta.verdicts, delta.limiters) == (("memory", "balanced"), ("l2", "dram"))


def test_a_clock_known_only_of_one_run_says_nothing() -> None:
    known, unknown = together(launch("a", sm_clock_hz=1.5e9)), together(launch("a", sm_clock_hz=None))
    for before, after in ((known, unknown), (unknown, known), (unknown, unknown)):
        assert clock_change(before, after) == 0
        assert other_clocks(before, after) is None
    faster = together(launch("a", sm_clock_hz=1.8e9))
    assert clock_change(known, faster) == pytest.approx(0.2)
    assert other_clocks(known, faster) == "the SM clock differs by 20.0 % (1500 MHz → 1800 MHz)"
