"""What holds for every run: it is like itself, in any order, and every group has exactly one place in a matching."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncuroof.comparison import compare, judge, matched_change, parse_gate, run_change
from ncuroof.comparison.comparison import run_obstacle
from ncuroof.comparison.matching import match
from tests.comparison.runs import launch, run

_NAMES = st.sampled_from(
    ["gemm<128, 64>", "gemm<64, 64>", "triton_poi_fused_3", "triton_poi_fused_12", "softmax", "copy"]
)
_LAUNCHES = st.builds(
    launch,
    _NAMES,
    st.one_of(st.none(), st.just(0.0), st.floats(1e-3, 1e6)),  # counters hold whole nanoseconds
    grid=st.sampled_from([[1, 1, 1], [132, 1, 1], [8, 8, 8]]),
    nvtx=st.sampled_from([[], ["step", "forward"], ["step 3", "backward"]]),
    failed=st.booleans(),
)
_RUNS = st.lists(_LAUNCHES, min_size=1, max_size=25)
_GATES = [parse_gate(text) for text in ("time:+0%", "kernel(.*).time:+0%")]


@pytest.mark.long
@settings(max_examples=30)
@given(_RUNS, st.integers(0, 2**32))
def test_a_run_equals_itself_in_any_order(launches: list[dict[str, Any]], seed: int) -> None:
    side = run(*launches)
    shuffled = run(*random.Random(seed).sample(launches, len(launches)))
    for other in (side, shuffled):
        comparison = compare(side, other)
        assert comparison.is_empty or run_obstacle(comparison) is not None
        assert abs(run_change(comparison)[0] or 0.0) < 1e-9
        assert abs(matched_change(comparison)[0] or 0.0) < 1e-9
    times = side.groups["duration_ns"].to_list()
    if times and all(times):
        assert compare(side, shuffled).is_empty
        assert all(result.has_passed for result in judge(_GATES, compare(side, side)))


@pytest.mark.long
@settings(max_examples=30)
@given(_RUNS, _RUNS)
def test_every_group_has_exactly_one_place(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    before, after = run(*old), run(*new)
    found = match(before, after)
    placed = (
        [*(group for each in found.matches for group in each.before), *found.removed],
        [*(group for each in found.matches for group in each.after), *found.added],
    )
    for side, other, groups in zip((before, after), (after, before), placed, strict=True):
        elsewhere = side.groups.filter(pl.col("name").is_in(other.failed))["group"].to_list()
        assert len(groups) == len(set(groups))
        assert set(side.groups["group"]) - set(elsewhere) <= set(groups) <= set(side.groups["group"])
    compare(before, after)  # whatever they hold
