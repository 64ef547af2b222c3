"""Findings of numbers that are not taken from the rules: what is reported, what is not, and what it gives back."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.findings import add_firing, collect_findings
from tests.diagnosis import cases_of_memory, cases_of_names, cases_of_units, cases_of_warps
from tests.diagnosis.cases_by_hand import CASES, Case
from tests.diagnosis.edges_by_hand import EDGES, Edge
from tests.diagnosis.test_findings import blank

RULES = load_rules()
ALL = [*CASES, *cases_of_memory.CASES, *cases_of_warps.CASES, *cases_of_units.CASES, *cases_of_names.CASES]


def kernel(case: Case, **changed: float | None) -> pl.DataFrame:
    """Return a case's kernel of 1 ms, but for what is changed."""
    row = blank().row(0, named=True) | {"name": case.name}
    known = {"duration_ns": 1e6, "scheduler.working_frac": 1.0, "utilisation.compute": 0.1} | case.quantities | changed
    absent = known.keys() - row.keys()
    assert not absent
    frame = pl.DataFrame([row | known], schema=blank().schema)
    return frame.with_columns(verdict=pl.lit(case.verdict), limiter=pl.lit(case.limiter, pl.String))


def found(case: Case, **changed: float | None) -> dict[str, float | None]:
    """Return the gains of what is reported of such a kernel, as shares of its time."""
    frame = kernel(case, **changed)
    rows = collect_findings(add_firing(frame, RULES.findings.values()), RULES)
    return dict(rows.select("finding", pl.col("gain_ns") / frame["duration_ns"].item()).iter_rows())


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.finding)
def test_what_is_beyond_the_thresholds_is_told_with_its_gain(case: Case) -> None:
    gains = found(case)
    assert case.finding in gains
    assert gains[case.finding] == (None if case.gain is None else pytest.approx(case.gain))
    for quantity, value, gain in case.gains:
        changed = found(case, **{quantity: value})
        assert changed[case.finding] == (None if gain is None else pytest.approx(gain)), quantity


@pytest.mark.parametrize(
    ("finding", "limiter", "changed", "gain"),
    [
        ("bank_conflicts", "l1", {}, 0.12 * 0.12),
        ("bank_conflicts", "stall", {"scheduler.l1_busy_frac": 0.8}, 0.12 * 0.12 * 0.8),
        ("uncoalesced_global_store", "dram", {"access.dram_store_waste_frac": 0.2}, 0.2),
        ("uncoalesced_global_store", "l1", {"utilisation.memory_side": 0.9}, 0.06 * 0.9),
        # of an L1 that is busy for half of the time, six tenths are accesses to global memory
        ("uncoalesced_global_store", "shared", {"access.store_waste_frac": 0.3}, 0.3 * 0.6 * 0.5),
        ("uncoalesced_global_access", "shared", {}, 0.15 * 0.6 * 0.5),
        # seven of eight tag lookups are too many
        ("uncoalesced_global_access", "shared", {"access.excess_tag_requests_frac": 0.875}, 0.875 * 0.6 * 0.5),
        ("uncoalesced_global_access", "l2", {"access.l2_waste_frac": 0.3}, 0.3),
        ("uncoalesced_global_access", "dram", {"access.dram_waste_frac": 0.2}, 0.2),
        ("uncoalesced_global_load", "l2", {"access.l2_load_waste_frac": 0.2}, 0.2),
        # of an L1 that is busy for half of the time, six tenths are accesses to global memory, of which half is in vain
        ("uncoalesced_global_load", "shared", {"access.load_waste_frac": 0.5}, 0.5 * 0.6 * 0.5),
        ("uncoalesced_global_load", "l1", {"utilisation.memory_side": 0.9, "scheduler.l1_busy_frac": 0.3}, 0.052 * 0.9),
        (
            "uncoalesced_global_load",
            "stall",
            {"utilisation.memory_side": 0.3, "access.load_waste_frac": 0.4},
            0.4 * 0.5,
        ),
        ("uncoalesced_global_load", "stall", {"utilisation.dram": 0.4}, 0.3 * 0.4),
        ("local_memory", "l2", {}, 0.3),
        ("local_memory", "l2", {"utilisation.lsu": None}, 0.1),
        ("local_memory", "l2", {"utilisation.issue": 1.6}, 0.2),  # half of the slots are taken without spills
    ],
)
def test_the_gain_is_that_of_what_limits(
    finding: str, limiter: str, changed: dict[str, float | None], gain: float
) -> None:
    case = next(case for case in ALL if case.finding == finding)
    in_l1 = {"access.shared_wavefront_share": 0.4, "utilisation.l1": 0.5} if limiter == "shared" else {}
    assert found(replace(case, limiter=limiter), **in_l1, **changed)[finding] == pytest.approx(gain)


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
    (row,) = collect_findings(add_firing(frame, RULES.findings.values()), RULES).filter(finding=case.finding).to_dicts()
    wasted = {level: n_bytes for level, n_bytes in row["waste_bytes"].items() if n_bytes is not None}
    assert wasted == pytest.approx({"l1": 0.15 * 32 * 1.5e6, "l2": 2.4e6, "dram": 1e6})


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.finding)
def test_what_is_short_of_one_threshold_is_not_told(case: Case) -> None:
    for quantity, values in case.silent.items():
        for value in values:
            assert case.finding not in found(case, **{quantity: value}), (quantity, value)


@pytest.mark.parametrize("case", ALL, ids=lambda each: each.finding)
def test_what_another_unit_limits_or_has_another_name_is_not_told(case: Case) -> None:
    for limiter in case.other_limiters:
        assert case.finding not in found(replace(case, limiter=limiter)), limiter
    for name in case.other_names:
        assert case.finding not in found(replace(case, name=name)), name


@pytest.mark.parametrize("edge", EDGES, ids=lambda each: f"{each.finding}-{each.quantity}")
def test_a_threshold_lies_where_it_is_said_to_lie(edge: Edge) -> None:
    def is_reported(case: Case, value: float) -> bool:
        return edge.finding in found(case, **{**edge.beside, edge.quantity: value})

    cases = [case for case in ALL if case.finding == edge.finding]
    assert any(is_reported(case, edge.firing) and not is_reported(case, edge.silent) for case in cases)


def test_every_finding_has_a_case() -> None:
    assert RULES.findings.keys() == {case.finding for case in ALL}
