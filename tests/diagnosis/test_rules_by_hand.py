"""Findings of numbers that are not taken from the rules: what is reported, what is not, and what the change removes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from ncuroof import demand
from ncuroof.demand import with_demand
from ncuroof.diagnosis import load_rules
from tests.diagnosis import cases_of_memory, cases_of_names, cases_of_units, cases_of_warps
from tests.diagnosis.cases_by_hand import CASES, Case
from tests.diagnosis.edges_by_hand import EDGES, Edge
from tests.diagnosis.test_findings import blank, listed

RULES = load_rules()
OF_THEIR_OWN_TESTS = {
    "idle_tensor_cores_of_doubles": "test_who_can_act.py",
    "l2_input": "test_unknown_is_no_yes.py",
    "local_memory_of_unknown_share": "test_findings_without_verdict.py",
    "one_warp": "test_findings_without_verdict.py",
    "partly_used_sectors": "test_findings_without_verdict.py",
    "scattered_store_requests": "test_findings_without_verdict.py",
}
"""Findings that have no case here, and the file beside this one that tests each."""

_SIDE, _MOST_WAVES = "utilisation.compute_side", "occupancy.most_waves"
ALL = [*CASES, *cases_of_memory.CASES, *cases_of_warps.CASES, *cases_of_units.CASES, *cases_of_names.CASES]

Changed = Mapping[str, float | None]


def kernel(case: Case, **changed: float | None) -> pl.DataFrame:
    """Return a case's kernel of 1 ms, but for what is changed."""
    row = blank().row(0, named=True) | {"name": case.name}
    known = {"duration_ns": 1e6, "scheduler.working_frac": 1.0, "utilisation.compute": 0.1} | case.quantities | changed
    for whole, part in ((_SIDE, "utilisation.compute"), (_MOST_WAVES, "occupancy.waves")):
        known.setdefault(whole, known.get(part))  # where nothing says otherwise
    absent = known.keys() - row.keys()
    assert not absent
    frame = pl.DataFrame([row | known], schema=blank().schema)
    return frame.with_columns(verdict=pl.lit(case.verdict), limiter=pl.lit(case.limiter, pl.String))


def others(case: Case) -> list[Case]:
    """Return the case with each of the limiters and names with which it is not reported."""
    return [
        *(replace(case, limiter=limiter) for limiter in case.other_limiters),
        *(replace(case, name=name) for name in case.other_names),
    ]


def beyond(case: Case) -> list[Changed]:
    """Return the changes with which a case is reported."""
    return [{}, *({quantity: value} for quantity, value in (*case.also, *case.without_gain))]


def short(case: Case) -> list[Changed]:
    """Return the changes with which it is not."""
    return [{quantity: value} for quantity, values in case.silent.items() for value in values]


def ends(edge: Edge) -> list[Changed]:
    """Return the changes on either side of a threshold: reported, and not."""
    return [{**edge.beside, edge.quantity: value} for value in (edge.firing, edge.silent)]


def found(case: Case, changed: Changed) -> dict[str, float | None]:
    """Return the gains of what is reported of a case's kernel with changed quantities, as shares of its time."""
    return found_by_variant()[str((case, changed))]


@cache
def found_by_variant() -> dict[str, dict[str, float | None]]:
    """Return what is found of every variant of every case: one evaluation for all, which takes hardly longer than for one."""
    variants = [
        *((case, changed) for case in ALL for changed in (*beyond(case), *short(case))),
        *((other, {}) for case in ALL for other in others(case)),
        *((case, changed) for edge in EDGES for case in cases_of(edge) for changed in ends(edge)),
    ]
    frame = pl.concat([kernel(case, **changed) for case, changed in variants])
    frame = frame.with_columns(pl.Series("id", range(len(variants)), frame.schema["id"]))
    gains: list[dict[str, float | None]] = [{} for _ in variants]
    gain_frac = pl.col("gain_ns") / pl.col("duration_ns")
    rows = listed(frame).join(frame.select("id", "duration_ns"), on="id").select("id", "finding", gain_frac)
    for place, finding, gain in rows.iter_rows():
        gains[place][finding] = gain
    return {str(variant): each for variant, each in zip(variants, gains, strict=True)}


def cases_of(edge: Edge) -> list[Case]:
    """Return the cases of an edge's finding."""
    return [case for case in ALL if case.finding == edge.finding]


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.finding)
def test_what_is_beyond_the_thresholds_is_told(case: Case) -> None:
    for changed in beyond(case):
        assert case.finding in (gains := found(case, changed)), changed
        has_gain = case.has_gain and not changed.items() & set(case.without_gain)
        assert (gains[case.finding] is not None) == has_gain, changed


# What a change removes is written with each finding; what that saves is for `tests/demand`. Cases are the first ones of a finding.
@pytest.mark.parametrize(
    ("finding", "changed", "gain"),
    [
        ("unfused_optimizer", {}, 5 / 6),  # at 0.9, half of the time would do for all bytes; a third of them is left
        ("unfused_cross_entropy", {}, 15 / 16),  # likewise, and an eighth is left
        ("unfused_pointwise", {}, 5 / 6),
        ("unfused_pointwise", {"launch.kept_if_fused_frac": 0}, 0.98),  # what it computes remains
        ("scores_in_memory", {}, 0.8),  # the product's arithmetic remains, at 0.2
        ("alike_blocks", {}, 0.75),  # one of four is needed
        ("alike_blocks", {"occupancy.waves": 2}, 0.6),  # half of the time is one wave's, or what the busiest unit takes
        ("idle_warps", {"occupancy.waves": 1}, 0.0),  # the time is one wave's, however many of its warps are idle
        ("idle_warps", {"access.most_idle_warp_frac": 0.65, "occupancy.waves": 5}, 0.65),
        ("blocks_below_a_warp", {"launch.unused_lane_frac": 31 / 32}, 31 / 32),
        ("blocks_below_a_warp", {"launch.unused_lane_frac": 31 / 32, "utilisation.dram": 0.5}, 0.5),  # DRAM's bytes stay
        ("divergence", {"utilisation.compute": 0.1}, 0.5 * 0.8),  # half of the lanes, for 80 % of the time
        ("low_occupancy", {}, 0.5),  # twice as many warps up to the next limit
        ("low_occupancy", {"occupancy.theoretical_frac": 0.125, "occupancy.next_limit_frac": 1, "occupancy.waves": 2}, 0.5),
        ("tail_wave", {}, 0.22),
        ("tail_wave", {"occupancy.empty_frac": 0.1}, 0.1),  # no more than was measured as empty
        ("small_grid", {}, 0.5),  # half of the places for warps are empty
        ("sm_imbalance", {"scheduler.sm_imbalance_frac": 0.6, "occupancy.waves": 0.95, "scheduler.unequal_frac": 0.104}, 0.104),
        ("stall_wait", {"scheduler.working_frac": 0.8}, 0.35 * 0.8),
        ("atomic_results", {}, 0.23 * 0.3 * 0.8),
        ("stall_full_queues", {"access.atomic_wait_frac": 0.25}, 0.35 * 0.75 * 0.8),  # a quarter waits for atomics
        ("async_copies_awaited_at_once", {}, (0.4 * 0.75 + 0.1) * 0.8),  # at copies and at barriers
        ("async_copies_awaited_at_once", {"stalls.barrier": None}, 0.4 * 0.75 * 0.8),
        ("stall_wgmma", {}, 0.4 * 0.8),
        ("fetch_granularity", {"utilisation.l2_tags": 0.3}, 0.5 * 0.8),  # half of the reads, four fifths of DRAM's bytes
        ("fetch_granularity", {"utilisation.l2_tags": 0.95}, 0.05),  # lookups of tags stay
        ("uncoalesced_global_store", {}, 1 - 24 / 32),  # what the SMs send is full, and a quarter of it is in vain
        ("uncoalesced_global_access", {}, 0.8),  # one wavefront of five would do
        ("uncoalesced_global_access", {"launch.own_shared_bytes_per_block": 64}, 0.15),  # wavefronts are shared memory's as well
        ("bank_conflicts", {}, 0.12 * 0.12),
        ("fp64_divisions", {}, 1.3 * 0.104),  # by the code: executed ones may be more
        # 16 approximations per cycle at a utilisation of 1, eight instructions for each, at 32 of FP64 per cycle
        ("fp64_divisions", {"utilisation.xu": 0.004}, 0.004 * 16 * 8 / 32 / 0.31),
        ("remote_memory", {"utilisation.busiest": None}, 0.7),  # DRAM would take 0.3 of the time for the same bytes
        ("remote_memory", {"utilisation.dram": 0.4}, 0.6),
        ("slower_tensor_instructions", {}, 1 - 0.32 * 0.6),
        ("slower_tensor_instructions", {"utilisation.dram": 0.7}, 0.3),
        ("idle_tensor_cores", {}, 0.85),  # 0.4 of FP32's peak takes 0.05 of the time at eight times the rate
        ("local_memory", {"access.local_frac": 0.3}, 0.3),
        ("l1_full_on_working_sms", {}, 0.8),
    ],
)  # fmt: skip
def test_what_a_change_removes_is_what_it_saves_where_nothing_else_is_busy(
    finding: str, changed: dict[str, float | None], gain: float
) -> None:
    frame = kernel(next(case for case in ALL if case.finding == finding), **changed)
    fix = RULES.findings[finding].fix
    assert fix is not None
    saved = with_demand(frame).select(demand.gain(fix, frozenset(frame.columns)))
    assert saved.item() == pytest.approx(gain)


def test_bytes_moved_in_vain_are_those_of_loads_and_stores() -> None:
    # 15 % of 1.5 million sectors of 32 bytes in L1, 12 % of what L2 moved, 10 % of what DRAM did
    (case,) = [case for case in CASES if case.finding == "uncoalesced_global_access"]
    moved = {
        "access.load_sectors": 1e6,
        "access.store_sectors": 5e5,
        "traffic_bytes.l2": 2e7,
        "traffic_bytes.dram": 1e7,
    }
    frame = kernel(case, **moved, **{"access.l2_waste_frac": 0.12, "access.dram_waste_frac": 0.1})
    (row,) = listed(frame).filter(finding=case.finding).to_dicts()
    wasted = {level: n_bytes for level, n_bytes in row["waste_bytes"].items() if n_bytes is not None}
    assert wasted == pytest.approx({"l1": 0.15 * 32 * 1.5e6, "l2": 2.4e6, "dram": 1e6})


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.finding)
def test_what_is_short_of_one_threshold_is_not_told(case: Case) -> None:
    assert [changed for changed in short(case) if case.finding in found(case, changed)] == []


@pytest.mark.parametrize("case", [case for case in ALL if others(case)], ids=lambda each: each.finding)
def test_what_another_unit_limits_or_has_another_name_is_not_told(case: Case) -> None:
    assert [(other.limiter, other.name) for other in others(case) if case.finding in found(other, {})] == []


@pytest.mark.parametrize("edge", EDGES, ids=lambda each: f"{each.finding}-{each.quantity}")
def test_a_threshold_lies_where_it_is_said_to_lie(edge: Edge) -> None:
    firing, silent = ends(edge)
    cases = cases_of(edge)
    assert any(edge.finding in found(case, firing) and edge.finding not in found(case, silent) for case in cases)


def test_every_finding_has_a_case() -> None:
    assert RULES.findings.keys() - {case.finding for case in ALL} == OF_THEIR_OWN_TESTS.keys()
    for name, file in OF_THEIR_OWN_TESTS.items():
        assert f'"{name}"' in (Path(__file__).parent / file).read_text(encoding="utf-8"), name
