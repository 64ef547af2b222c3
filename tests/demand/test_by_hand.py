"""What changes save, of launches in few numbers: each answer is worked out on paper.

A launch of 1 ms works for w of it; d is how long it needs a resource, f the share of that which goes, q the share of w that can go:

    T' >= o + max(max(d * (1 - f)), w * (1 - q))        o = 1 - w
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from ncuroof.demand import SAVINGS, gain, load_model, read_fix, with_savings
from tests.demand.launches import demands

# Round numbers in place of those of profiles/demand.toml, which are fitted.
EXPECTATION = dict.fromkeys(load_model().expectation, 1.25) | {
    "waiting": 0.5, "waits": 0.8, "fills": 0.8, "idle": 0.9, "work": 0.9, "launch": 0.9, "launch_low": 0.6, "launch_high": 1.0,
    "open": 0.4, "open_low": 0.1, "open_high": 0.8, "moved_ns": 1e5, "beyond": 0.0,
}  # fmt: skip
REACH = {name: resource.reach for name, resource in load_model().resources.items()}

Quantities = Mapping[str, float | None]


def saved(entry: Mapping[str, Any], quantities: Quantities) -> dict[str, Any]:
    """Return the savings of the change that a finding's entry states, and what limits the launch then."""
    table, fix = demands(quantities), read_fix(entry)
    assert fix is not None
    known = frozenset(table.columns)
    return with_savings(table.lazy(), fix, known, EXPECTATION).select(*SAVINGS, "limit").collect().row(0, named=True)


def bound(entry: Mapping[str, Any], quantities: Quantities) -> float | None:
    found: float | None = saved(entry, quantities)["gain_frac"]
    return found


HALF_OF_DRAM = {"removes": {"dram": "0.5"}}
FULL_DRAM = {"utilisation.dram": 0.8, "stalls.long_scoreboard": 0.6}
"""DRAM is the busiest resource."""
FULL_FP64 = {"utilisation.fp64": 0.9, "utilisation.dram": 0.2}
IDLE = {"utilisation.dram": 0.3}
"""Nothing is busy, and what warps wait for is not known."""
OTHER_L2 = {"utilisation.l2": 0.7, "utilisation.l2_stages": 0.3}
WAITING = {"utilisation.dram": 0.3, "utilisation.issue": 0.4, "stalls.long_scoreboard": 0.4}
"""Nothing is busy, and warps wait for memory two fifths of their time."""


@pytest.mark.parametrize(
    ("entry", "quantities", "expected", "limit"),
    [
        # DRAM limits, so that all time is its: 1 - max(0.8 * 0.5, 1 * 0.5)
        (HALF_OF_DRAM, FULL_DRAM, 0.5, "waiting"),
        # Then L1 limits, which the change leaves: 1 - 0.6
        (HALF_OF_DRAM, FULL_DRAM | {"utilisation.l1": 0.6}, 0.4, "l1"),
        # Warps use DRAM or wait for it for 0.3 + 0.7 * 0.4 = 0.58 of the time; issue slots take 0.4: 1 - max(0.4, 1 - 0.58)
        ({"removes": {"dram": "all"}}, WAITING, 0.58, "waiting"),
        # Of whatever else warps wait, the launch takes 1 - 0.58 / 2 if half of DRAM's bytes go
        (HALF_OF_DRAM, WAITING, 0.29, "waiting"),
        # How long they wait for DRAM is not known: all the time, perhaps, so that issue slots bound it
        ({"removes": {"dram": "all"}}, WAITING | {"stalls.long_scoreboard": None}, 0.6, "issue"),
        # 8 of 10 µs work; of these, half is a wait that goes, until a unit is full: 0.8 - max(0.8 * 0.5, 0.6)
        ({"waits": "0.5"}, {"scheduler.working_frac": 0.8, "utilisation.dram": 0.3}, 0.4, "waiting"),
        ({"waits": "0.5"}, {"scheduler.working_frac": 0.8, "utilisation.fp64": 0.6}, 0.2, "fp64"),
        # SMs idle for a quarter of the time, so that those which work need L1 for 0.6 / 0.75 of it; spread evenly, for 0.6
        ({"idle": "0.25"}, {"scheduler.own_sm_active_frac": 0.75, "utilisation.l1": 0.6}, 0.25, "waiting"),
        ({"idle": "0.25"}, {"scheduler.own_sm_active_frac": 0.75, "utilisation.dram": 0.9}, 0.1, "dram"),
        # More warps wait at the same time, until L1 of the SMs that work is full: 0.4 / 0.5 of the time
        ({"fills": "0.5"}, {"utilisation.issue": 0.3}, 0.5, "waiting"),
        ({"fills": "0.5"}, {"scheduler.own_sm_active_frac": 0.5, "utilisation.l1": 0.4}, 0.2, "l1"),
        # Half of the blocks are repeated: half of all that is needed goes with them
        ({"work": "0.5"}, FULL_DRAM, 0.5, "waiting"),
        # FP64 becomes FP32 at 32 times the rate, 0.9 / 32 of the time, until DRAM is the limit
        ({"removes": {"fp64": "all"}, "adds": {"fma": "0.9 / 32"}}, FULL_FP64, 0.8, "dram"),
        # A resource that is freed limits no longer, and nothing else goes: the waiting for DRAM alone, 0.3 + 0.7 * 0.4
        ({"removes": {"dram": "all"}, "frees": {"issue": "all"}}, WAITING | {"utilisation.issue": 0.6}, 0.58, "waiting"),
        ({"waits": "0.9", "frees": {"l1": "0.5"}}, {"utilisation.l1": 0.8}, 0.6, "l1"),
        # Of the totals, one bounds what leaves all of its side alone
        ({"removes": {"fma": "0.5"}}, {"utilisation.fp32": 0.9, "utilisation.memory_side": 0.7}, 0.3, "memory"),
        (HALF_OF_DRAM, FULL_DRAM | {"utilisation.memory_side": 0.8}, 0.5, "waiting"),
        (HALF_OF_DRAM, FULL_DRAM | {"utilisation.compute_side": 0.7}, 0.3, "compute"),
        # What L2 does beside its named stages may fall with DRAM's bytes and bounds only arithmetic, but is expected to stay
        (HALF_OF_DRAM, FULL_DRAM | OTHER_L2, 0.5, "l2_other"),
        ({"removes": {"fma": "0.5"}}, {"utilisation.fp32": 0.9} | OTHER_L2, 0.3, "l2_other"),
        # More work for each launch spreads its overhead, too: a tenth of the SMs have blocks, for 0.8 of the time
        ({"idle": "0.9", "needs_more_work": True}, {"scheduler.working_frac": 0.8, "utilisation.dram": 0.05}, 0.9, "waiting"),
        # What then limits is not known where no resource is
        ({"waits": "0.5"}, {}, 0.5, None),
    ],
)  # fmt: skip
def test_a_change_saves_what_no_resource_is_needed_for(
    entry: Mapping[str, Any], quantities: Quantities, expected: float, limit: str | None
) -> None:
    found = saved(entry, quantities)
    assert (found["gain_frac"], found["limit"]) == (pytest.approx(expected), limit)


@pytest.mark.parametrize(
    ("entry", "quantities", "expected"),
    [
        # DRAM reaches 0.91 of its peak, and half of the bytes go: 0.4 / 0.91 is less than the half of what is left of the waiting
        (HALF_OF_DRAM, FULL_DRAM, 0.5),
        # L1 is needed for 0.6, at what it reaches
        (HALF_OF_DRAM, FULL_DRAM | {"utilisation.l1": 0.6}, 1 - 0.6 / REACH["l1"]),
        # where the resource does not limit, half of the waiting for it goes: 0.3 + 0.28 / 2
        ({"removes": {"dram": "all"}}, WAITING, 0.44),
        ({"waits": "0.5"}, {}, 0.8 * 0.5),
        ({"fills": "0.5"}, {}, 0.8 * 0.5),
        ({"work": "0.5"}, {}, 0.9 * 0.5),
        ({"idle": "0.5"}, {}, 0.9 * 0.5),
        # 0.2 of DRAM, and on tensor cores 0.1 ms of 1 for the start and the end of a kernel
        ({"removes": {"fp64": "all"}, "adds": {"fma": "0.01"}}, FULL_FP64, 1 - 0.2 / REACH["dram"]),
        ({"removes": {"fp64": "all"}, "adds": {"tensor": "0.01"}}, FULL_FP64, 1 - 0.2 / REACH["dram"] - 0.1),
        # no slower than it is: 0.97 of DRAM's peak is reached already, and a tenth of the bytes goes
        ({"removes": {"dram": "0.1"}}, {"utilisation.dram": 0.97}, 0.1),
        # the busiest resource is the limit to the extent that it is busy for 0.6
        ({"removes": {"dram": "0.5"}}, IDLE, 0.5 * (0.3 + 0.7 * 0.75)),
        ({"removes": {"fma": "all"}, "is_open": True}, {"utilisation.fp32": 0.9, "utilisation.dram": 0.2}, 0.4 * 0.8),
        ({"launch": "0.5"}, {"scheduler.working_frac": 0.1}, 0.9 * 0.5),  # with its overhead
        # a likely share beside the largest one; where only the largest is known, what is expected of other bounds
        ({"waits": ["0.2", "0.6"]}, {}, 0.8 * 0.2),
    ],
)
def test_part_of_a_bound_is_expected(entry: Mapping[str, Any], quantities: Quantities, expected: float) -> None:
    assert saved(entry, quantities)["expected_frac"] == pytest.approx(expected)


def test_outcomes_lie_around_what_is_expected() -> None:
    # 0.4 of the time is expected to go: what is left, 0.6, times and over 1.25, and no more than the bound
    found = saved({"waits": "0.5"}, {})
    assert [found[name] for name in SAVINGS] == pytest.approx([0.5, 0.4, 1 - 0.6 * 1.25, 0.5])
    found = saved({"waits": "0.75"}, {})
    assert [found[name] for name in SAVINGS] == pytest.approx([0.75, 0.6, 1 - 0.4 * 1.25, 1 - 0.4 / 1.25])
    # shares of what says how much at most
    found = saved({"launch": "0.5"}, {})
    assert [found[name] for name in SAVINGS] == pytest.approx([0.5, 0.45, 0.3, 0.5])
    found = saved({"removes": {"dram": "0.5"}, "is_open": True}, FULL_DRAM)
    assert [found[name] for name in SAVINGS] == pytest.approx([0.5, 0.2, 0.05, 0.4])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"removes": {"dram": "{access.dram_waste_frac}"}}, None),
        ({"waits": "{stalls.wait}"}, None),
        ({"launch": "{launch.fused_step_frac}"}, None),
        ({"removes": {"dram": "{access.dram_waste_frac}", "l2": "0.5"}}, 0.2),  # DRAM stays at 0.8, as far as is known
        ({"removes": {"dram": "0.5"}, "adds": {"tensor": "{roofline.tensor_flop_frac}"}}, None),
    ],
)
def test_what_is_not_known_is_not_zero(entry: Mapping[str, Any], expected: float | None) -> None:
    found = saved(entry, FULL_DRAM)
    assert found["gain_frac"] == (None if expected is None else pytest.approx(expected))
    assert [found[name] is None for name in SAVINGS] == [expected is None] * 4
    # nor is what is zero not known
    assert bound({"waits": "0"}, FULL_DRAM) == 0


def test_a_launch_of_which_nothing_was_counted_may_save_all_that_a_change_removes() -> None:
    assert bound({"removes": {"dram": "0.3"}}, {}) == pytest.approx(0.3)
    assert bound({"removes": {"dram": "0.3", "l2": "0.6"}}, {}) == pytest.approx(0.6)


@pytest.mark.parametrize("entry", [HALF_OF_DRAM, {"waits": "0.5"}, {"idle": "0.5"}, {"work": "0.5"}])
@pytest.mark.parametrize("working", [0.0, 1.0])
def test_a_launch_that_does_nothing_has_numbers_all_the_same(entry: Mapping[str, Any], working: float) -> None:
    idle = {"scheduler.working_frac": working, "scheduler.own_sm_active_frac": 0.0, "stalls.long_scoreboard": 0.0}
    found = saved(entry, idle | dict.fromkeys(("utilisation.dram", "utilisation.l1", "utilisation.compute_side"), 0.0))
    assert all(0 <= found[name] <= working for name in SAVINGS)  # NaN is neither


@pytest.mark.parametrize(
    ("quantities", "busy"),
    [
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": 0.4, "utilisation.l1": 0.3}, 0.6),  # 0.3 / 0.4 of 0.8
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": None, "utilisation.l1": 0.3}, 0.3),
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": 0.9, "utilisation.l1": 0.3}, 0.3),  # 2 µs less, at least
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": 0.4, "utilisation.l1": 0.5}, 0.5),  # of another pass
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": 0.4, "utilisation.dram": 0.3}, 0.3),  # all SMs have one
        ({"scheduler.working_frac": 0.8, "scheduler.own_sm_active_frac": 0.8, "utilisation.dram": 0.9}, 0.8),  # no longer than w
    ],
)  # fmt: skip
def test_a_resource_of_sms_is_needed_by_those_that_work(quantities: Quantities, busy: float) -> None:
    assert demands(quantities)["time.busiest"].item() == pytest.approx(busy)


def test_all_launches_of_a_table_are_judged_each_by_its_own() -> None:
    fix = read_fix(HALF_OF_DRAM)
    assert fix is not None
    table = demands(FULL_DRAM, WAITING, {"utilisation.dram": None})
    assert table.select(gain(fix, frozenset(table.columns))).to_series().to_list() == pytest.approx([0.5, 0.29, 0.5])
    assert table.schema["time.busiest"] == pl.Float64
