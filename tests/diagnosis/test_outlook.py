"""What the run can gain: shares, speedups and times worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ncuroof.diagnosis import Outlook, Share, Summary, WallTime, Weighting, group_launches, outlook, unit_weights
from ncuroof.tables import ACTIONS, FINDINGS, GROUPS, KERNELS, VERDICTS, WEIGHTS

SPILLS, SMALL_GRID = "local_memory", "small_grid"
"""A finding whose fix leaves the work as it is, and one that needs more work per launch."""

STEP = WallTime(0, "torch", 1, 1e6, 1e6, 0.8, 0.2, None, ())


def run(duration_ns: float | None = 1000.0, recoverable_ns: float | None = 1000.0) -> Summary:
    return Summary(1, 0, 1, duration_ns, recoverable_ns, 0, 0.0, 0.0, {}, {})


def weighting(*, computation_frac: float = 0.8, **known: Any) -> Weighting:
    """A counting run with a timeline in which kernels run for this share of a step."""
    whole = Weighting(pl.DataFrame(schema=WEIGHTS), 0, 0.0, None, (), 0, (), (), None, None)
    return replace(whole, **{"wall_times": (replace(STEP, computation_frac=computation_frac),), **known})


def of_actions(
    *shares: float | None, names: tuple[str, ...] = (), gains_ns: tuple[float, ...] = (), **known: Any
) -> Outlook:
    """The outlook of a run with actions that save these shares of its time, spills unless they are named."""
    entries = zip(shares, names or (SPILLS,) * len(shares), gains_ns or (1.0,) * len(shares), strict=True)
    rows = [
        dict.fromkeys(ACTIONS) | {"finding": name, "n_launches": 1, "gain_ns": gain_ns, "share_frac": share}
        for share, name, gain_ns in entries
    ]
    actions = pl.DataFrame(rows, schema=ACTIONS)
    return outlook(
        actions,
        pl.DataFrame(schema=GROUPS),
        pl.DataFrame(schema=VERDICTS),
        known.get("summary", run()),
        known.get("weighting"),
    )


@pytest.mark.parametrize(
    ("shares", "n_first", "joint_frac", "speedup"),
    [
        ((), 0, None, None),
        ((0.2,), 1, 0.2, 1.25),  # 1 / 0.8
        ((0.3, 0.2, 0.1), 3, 0.6, 2.5),  # 1 / 0.4
        ((0.3, 0.2, 0.1, 0.05), 3, 0.6, 2.5),  # the fourth is not among the first
        ((0.5, 0.0009), 1, 0.5, 2.0),  # next to nothing
        ((0.0009, 0.0008), 1, 0.0009, 1 / 0.9991),
        ((0.3, None), 2, None, None),  # nobody measured the run's time
        ((0.6, 0.4), 2, 1.0, None),  # nothing would be left
    ],
)
def test_shares_add_up_and_shorten_the_run(
    shares: tuple[float | None, ...], n_first: int, joint_frac: float | None, speedup: float | None
) -> None:
    found = of_actions(*shares)
    assert (found.n_first, found.of_run_frac) == (n_first, 1)
    assert (found.joint_frac, found.joint_speedup) == (pytest.approx(joint_frac), pytest.approx(speedup))


def test_more_work_at_once_makes_no_run_faster() -> None:
    found = of_actions(0.5, names=(SMALL_GRID,))
    assert (found.joint_frac, found.joint_speedup) == (0.5, 2.0)  # per unit of work
    found = of_actions(0.3, 0.2, 0.1, names=(SPILLS, SMALL_GRID, "uncoalesced_global_load"))
    assert (found.n_first, found.joint_frac) == (3, pytest.approx(0.4))
    assert found.joint_speedup == pytest.approx(1 / 0.6)


@pytest.mark.parametrize(
    ("known", "of_run_frac", "speedup"),
    [
        # Half of 80 % of the time goes: 1 / (1 - 0.4).
        ({"covered_frac": 1.0}, 0.8, 1 / 0.6),
        ({"covered_frac": None}, 0.8, 1 / 0.6),
        ({"computation_frac": 1.0}, 1.0, 2.0),
        # Half of 80 % of 50 %: 1 / (1 - 0.2). What was not profiled of the run stays as well.
        ({"covered_frac": 0.5}, 0.4, 1.25),
        # Half of 90 % of 80 %: 1 / (1 - 0.36). A little of the GPU time may be of other launches.
        ({"timed_frac": 0.98, "uncounted_frac": 0.02, "covered_frac": 0.9}, 0.72, 1 / 0.64),
        (
            {"timed_frac": 0.97, "uncounted_frac": 0.0, "covered_frac": 1.0},
            0.8,
            None,
        ),  # a report has counts without times
        ({"timed_frac": 0.09, "uncounted_frac": 0.91, "covered_frac": 1.0}, 0.8, None),
        ({"timed_frac": 0.0, "uncounted_frac": 0.91, "covered_frac": 0.9, "wall_times": ()}, 0.9, None),
        ({"uncounted_frac": 0.91, "covered_frac": 1.0, "wall_times": ()}, 1.0, 2.0),
    ],
)
def test_time_without_kernels_and_of_other_kernels_stays(
    known: dict[str, Any], of_run_frac: float, speedup: float | None
) -> None:
    found = of_actions(0.5, weighting=weighting(**known))
    assert (found.of_run_frac, found.joint_speedup) == (pytest.approx(of_run_frac), pytest.approx(speedup))
    assert found.joint_frac == 0.5


@pytest.mark.parametrize(
    ("recoverable_ns", "is_beyond"),
    [(99.0, True), (100.0, False), (150.0, False), (None, False)],  # the first three save 50 + 30 + 20 ns
)
def test_gains_past_the_roofline_are_known_as_such(recoverable_ns: float | None, is_beyond: bool) -> None:
    summary = run(recoverable_ns=recoverable_ns)
    found = of_actions(0.05, 0.03, 0.02, 0.01, gains_ns=(50.0, 30.0, 20.0, 10.0), summary=summary)
    assert found.is_beyond_roofline is is_beyond


Group = tuple[str, str, float | None, float | None, bool, bool]


def group(
    verdict: str, limiter: str, duration_ns: float | None, recoverable_ns: float | None = 0.0, *, has_gain: bool = False
) -> Group:
    return verdict, limiter, duration_ns, recoverable_ns, has_gain, False


def of_groups(*groups: Group, summary: Summary, actions: pl.DataFrame | None = None) -> Outlook:
    names = ("verdict", "limiter", "duration_ns", "recoverable_ns", "has_gain", "is_in_doubt")
    rows = [{"id": number, **dict(zip(names, each, strict=True))} for number, each in enumerate(groups)]
    tables = (
        pl.DataFrame(
            [{name: row.get(name) for name in schema} for row in rows],
            schema=schema,
        )
        for schema in (GROUPS, VERDICTS)
    )
    return outlook(pl.DataFrame(schema=ACTIONS) if actions is None else actions, *tables, summary)


@pytest.mark.parametrize(
    ("action", "too_short_ns", "speedup"),
    [
        (SMALL_GRID, 199.0, 1.25),  # 1 / 0.8
        (SMALL_GRID, 201.0, None),  # more inputs per launch relieve these launches as well, by how much is not known
        (SPILLS, 201.0, 1.25),
    ],
)
def test_more_work_per_launch_has_no_bound_where_most_launches_are_too_short(
    action: str, too_short_ns: float, speedup: float | None
) -> None:
    saved = {"finding": action, "n_launches": 1, "gain_ns": 200.0, "share_frac": 0.2}
    first = pl.DataFrame([dict.fromkeys(ACTIONS) | saved], schema=ACTIONS)
    found = of_groups(group("overhead", "launch", too_short_ns), summary=run(), actions=first)
    assert (found.joint_frac, found.joint_speedup) == (0.2, speedup)


@pytest.mark.parametrize(
    ("groups", "near_roof", "too_short"),
    [
        ((group("memory", "dram", 300.0, 59.0), group("overhead", "launch", 50.0)), 0.3, 0.05),
        ((group("memory", "dram", 300.0, 60.0), group("overhead", "launch", 100.0)), 0.0, 0.1),  # a fifth to gain
        ((group("memory", "l2", 900.0), group("compute", "dram", 99.0)), 0.0, 0.0),
        ((group("memory", "dram", 900.0, None),), 0.0, 0.0),  # nobody knows where the roof is
        ((group("memory", "dram", 900.0, has_gain=True), group("overhead", "launch", 9.0, has_gain=True)), 0.0, 0.0),
        ((group("memory", "dram", None, None), group("overhead", "launch", None)), 0.0, 0.0),
    ],
)
def test_what_only_fusing_makes_less_of(groups: tuple[Group, ...], near_roof: float, too_short: float) -> None:
    found = of_groups(*groups, summary=run())
    assert (found.near_dram_roof_frac, found.too_short_frac) == (pytest.approx(near_roof), pytest.approx(too_short))
    unknown = of_groups(*groups, summary=run(duration_ns=None))
    assert (unknown.near_dram_roof_frac, unknown.too_short_frac, unknown.in_doubt_frac) == (None, None, None)


@pytest.mark.parametrize(
    ("unjudged", "speedup"), [(0.501, None), (0.5, 1.25), (None, 1.25)]
)  # 1 / 0.8; None: nobody measured times
def test_no_speedup_is_stated_where_most_of_the_time_has_no_verdict(
    unjudged: float | None, speedup: float | None
) -> None:
    by_verdict = {"unknown": Share(1, 1, 1.0, unjudged), "memory": Share(1, 1, 1.0, None)}
    found = of_actions(0.2, summary=replace(run(), by_verdict=by_verdict))
    assert (found.joint_frac, found.joint_speedup, found.is_mostly_unjudged) == (0.2, speedup, speedup is None)


def test_what_no_action_counts_is_a_share_of_the_time() -> None:
    doubtful = ("compute", "fp64", 950.0, 0.0, True, True)
    assert of_groups(doubtful, group("compute", "fp64", 50.0), summary=run()).in_doubt_frac == 0.95


@pytest.mark.parametrize(
    ("found", "has_gain", "is_in_doubt"),
    [
        ((), False, False),
        ((("dram_roof", None),), False, False),
        ((("dram_roof", 9.9),), False, False),
        ((("dram_roof", 3.0), (SPILLS, 10.0)), True, False),  # a tenth of its 100 ns
        ((("alike_threads", None), (SPILLS, 80.0)), True, True),
        ((("alike_threads", 80.0),), True, False),
    ],
)
def test_a_group_has_what_its_longest_launch_has_to_gain(
    found: tuple[tuple[str, float | None], ...], has_gain: bool, is_in_doubt: bool
) -> None:
    shape = {"device": 0, "name": "f", "workload": "kernel", "grid": [1, 1, 1], "block": [1, 1, 1], "failed": False}
    rows = [{"id": number, **shape, "duration_ns": time} for number, time in enumerate((50.0, 100.0))]
    kernels = pl.DataFrame([{name: row.get(name) for name in KERNELS} for row in rows], schema=KERNELS)
    verdicts = pl.DataFrame([{name: {"id": n}.get(name) for name in VERDICTS} for n in (0, 1)], schema=VERDICTS)
    bounds = pl.DataFrame({"recoverable_ns": [None, None]}, schema={"recoverable_ns": pl.Float64})
    told = [(0, "alike_blocks", None), (0, SPILLS, 50.0), *((1, name, gain_ns) for name, gain_ns in found)]
    findings = pl.DataFrame(
        [dict.fromkeys(FINDINGS) | dict(zip(("id", "finding", "gain_ns"), each, strict=True)) for each in told],
        schema=FINDINGS,
    )
    (row,) = group_launches(kernels, bounds, verdicts, findings, unit_weights(kernels)).to_dicts()
    assert (row["id"], row["has_gain"], row["is_in_doubt"]) == (1, has_gain, is_in_doubt)
