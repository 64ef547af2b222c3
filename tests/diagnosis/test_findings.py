"""Findings: each fires where its conditions hold, and neither beside a threshold nor without its counters."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

import ncuroof
from ncuroof.demand import load_model, with_demand
from ncuroof.diagnosis import diagnose, load_rules, unit_weights
from ncuroof.diagnosis.conditions import Condition
from ncuroof.diagnosis.finding import Finding
from ncuroof.diagnosis.findings import _PLACES, _outweighing, add_firing, add_latency_limiter, collect_findings
from ncuroof.metrics import load_catalogue, measure
from ncuroof.metrics.limiters import SENDS
from ncuroof.roofline import roofline
from tests.support import demo
from tests.support.raw import raw_report

RULES = load_rules()
IDS = list(RULES.findings)
_NUDGE = 1e-3
_UPWARD = (">", ">=")
_NAMES = (
    "gemm(float *, float *, float *, int, int, int)",
    "gemm_kernel",
    "fused_dropout_kernel",
    "conv2d_kernel",
    "setup(curandStateXORWOW *)",
    "MmaPipelined",
    "softmax_warp_forward<float>",
    "bfloat16_copy_kernel_cuda",
    "CatArrayBatchedCopy",
    "at::native::FillFunctor<float>",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "multi_tensor_apply_kernel<TensorListMetadata<1>>",
    "at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>>",
)


@cache
def blank() -> pl.DataFrame:
    """Return a kernel of which nothing was counted."""
    nothing = measure([raw_report({})])
    return nothing.kernels.hstack(roofline(nothing).bounds.drop("id"))


def row_for(finding: Finding, **changed: float | None) -> pl.DataFrame:
    """Return one kernel for which every condition of the finding just holds, of alternatives the first, but for what is changed."""
    row = blank().row(0, named=True)
    row |= {"name": name_for(finding), "duration_ns": 1e6, "limiter.stall": finding.id.removeprefix("stall_")}
    row |= {"utilisation.memory": 0.5, "utilisation.compute": 0.5, "utilisation.busiest": 0.5}
    row |= {"scheduler.working_frac": 1.0}
    for condition in finding.all_of:
        row[condition.quantity] = between(finding, condition)
    row |= {other.quantity: short_of(other) for other in finding.any_of[1:]}
    for condition in finding.any_of[:1]:
        row[condition.quantity] = between(finding, condition)
    row |= changed
    sides = {"utilisation.memory_side": "utilisation.memory", "utilisation.compute_side": "utilisation.compute"}
    for whole, part in (sides | {"occupancy.most_waves": "occupancy.waves"}).items():
        row[whole] = changed.get(
            whole, row[part] if row[whole] is None or changed.get(part) is not None else row[whole]
        )
    if row["utilisation.busiest"] is not None:
        row["utilisation.headroom"] = 1 - row["utilisation.busiest"] / row["scheduler.working_frac"]
    frame = pl.DataFrame([row], schema=blank().schema)
    limiter = finding.limiters[0] if finding.limiters else "dram"
    return frame.with_columns(verdict=pl.lit(finding.verdicts[0]), limiter=pl.lit(limiter))


def name_for(finding: Finding) -> str:
    """Return a name that the finding asks for, if it asks for one."""
    wanted = finding.name_pattern
    return next(name for name in _NAMES if wanted is None or pl.select(pl.lit(name).str.contains(wanted)).item())


def between(finding: Finding, condition: Condition) -> float | None:
    """Return a value that meets all of the finding's conditions on one quantity, close to the threshold of `condition`."""
    if condition.threshold is None:
        return None
    step = _NUDGE * max(abs(condition.threshold), 1.0)
    return condition.threshold + step if condition.op in _UPWARD else condition.threshold - step


def short_of(condition: Condition) -> float | None:
    """Return a value that just does not meet a condition."""
    if condition.threshold is None:
        return 16.0
    step = _NUDGE * max(abs(condition.threshold), 1.0)
    return condition.threshold - step if condition.op in _UPWARD else condition.threshold + step


def listed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of kernels that have a verdict and a limiter, one row each."""
    return collect_findings(add_firing(with_demand(frame), RULES.findings.values()), RULES)


def found(frame: pl.DataFrame) -> list[str]:
    return listed(frame)["finding"].to_list()


@pytest.mark.parametrize("name", IDS)
def test_finding_fires_just_beyond_its_thresholds(name: str) -> None:
    fired = add_firing(row_for(RULES.findings[name]), [RULES.findings[name]])
    assert fired[f"fires.{name}"].to_list() == [True]


def just_short() -> list[tuple[str, Condition]]:
    """Return, per finding, its conditions of which each alone keeps it from firing."""
    return [
        (finding.id, condition)
        for finding in RULES.findings.values()
        for condition in (*finding.all_of, *finding.any_of[:1])
    ]


def test_findings_are_silent_just_short_of_a_threshold() -> None:
    rows = [row_for(RULES.findings[name], **{each.quantity: short_of(each)}) for name, each in just_short()]
    found_in = listed(pl.concat(rows).with_columns(pl.Series("id", range(len(rows)), rows[0].schema["id"])))
    told = set(found_in.select("id", "finding").iter_rows())
    assert [short for place, short in enumerate(just_short()) if (place, short[0]) in told] == []


@pytest.mark.parametrize("name", IDS)
def test_finding_is_silent_where_its_counter_is_missing(name: str) -> None:
    finding = RULES.findings[name]
    alternatives = {condition.quantity for condition in finding.all_of} & {each.quantity for each in finding.any_of}
    may_be_missing = {condition.quantity for condition in finding.any_of if condition.threshold is None} | alternatives
    for condition in (*finding.all_of, *finding.any_of[:1]):
        if condition.threshold is not None and condition.quantity not in may_be_missing:
            fired = add_firing(row_for(finding, **{condition.quantity: None}), [finding])
            assert fired[f"fires.{name}"].to_list() == [condition.if_unknown is True], condition


@pytest.mark.parametrize("name", IDS)
def test_finding_is_silent_for_other_verdicts(name: str) -> None:
    finding = RULES.findings[name]
    others = pl.DataFrame({"verdict": sorted(set(RULES.verdicts) - set(finding.verdicts))})
    row = row_for(finding).drop("verdict").join(others, how="cross")
    assert not add_firing(row, [finding])[f"fires.{name}"].any()


@pytest.mark.parametrize(("duration_ns", "fires"), [(1000.0, True), (0.0, False), (None, False)])
def test_a_launch_that_took_no_known_time_is_not_said_to_be_spared(duration_ns: float | None, fires: bool) -> None:
    """Failed launches have an unknown verdict and a name, and nothing else."""
    finding = RULES.findings["fill"]
    row = row_for(finding, duration_ns=duration_ns).with_columns(verdict=pl.lit("unknown"))
    assert add_firing(row, [finding])["fires.fill"].to_list() == [fires]


def test_quantities_of_the_rules_exist() -> None:
    nothing = measure([raw_report({})])
    known = set(nothing.kernels.columns) | set(roofline(nothing).bounds.columns)
    catalogue = {quantity.name for quantity in load_catalogue().quantities}
    assert set(RULES.missing_quantities) <= catalogue | {"stalls", "work", "work.tensor"}
    for finding in RULES.findings.values():
        conditions = {condition.quantity for condition in (*finding.all_of, *finding.any_of)}
        of_fix = tuple(finding.fix.formulas()) if finding.fix is not None else ()
        formulas = {quantity for each in (*of_fix, *finding.waste_by_level.values()) for quantity in each.quantities}
        assert conditions | formulas | set(finding.evidence) <= known, finding.id


def test_what_is_sent_to_l2_is_the_limit_from_one_threshold_on() -> None:
    # `scattered_stores`, and what is said else, ask whether hardly anything but stores is sent
    findings = [finding for finding in RULES.findings.values() if finding.id != "scattered_stores"]
    conditions = [condition for rule in (*findings, *RULES.caveats.values()) for condition in rule.all_of]
    asked = [condition.threshold for condition in conditions if condition.quantity == "access.l2_input_share"]
    assert set(asked) == {SENDS}


def test_waste_that_stays_in_l1_gives_no_more_than_dram_leaves() -> None:
    # 24-byte elements read a field at a time: L1 absorbs the sectors asked for three times, DRAM reads just what is used.
    finding = RULES.findings["uncoalesced_global_load"]
    wasteful = {
        "access.load_bytes_per_sector": 32 / 3,
        "access.load_sectors": 3e6,
        "access.load_waste_frac": 2 / 3,
        "access.dram_load_waste_frac": 0.0,
        "utilisation.memory": 0.9,
        "utilisation.dram": 0.9,
    }
    saved = listed(row_for(finding, **wasteful)).row(0, named=True)
    assert saved["gain_ns"] == pytest.approx(0.1e6)
    assert saved["limit"] == "dram"


@pytest.mark.parametrize(
    ("verdict", "limiter", "is_reported"),
    [("balanced", "lsu", True), ("compute", "lsu", True), ("memory", "l1", True), ("compute", "fp32", False)],
)
def test_local_accesses_are_told_where_the_pipe_that_takes_them_is_the_limit(
    verdict: str, limiter: str, is_reported: bool
) -> None:
    frame = row_for(RULES.findings["local_memory"], **{"access.local_frac": 0.9, "utilisation.compute": 0.6})
    assert (
        "local_memory" in found(frame.with_columns(verdict=pl.lit(verdict), limiter=pl.lit(limiter)))
    ) == is_reported


@pytest.mark.parametrize(("achieved", "is_reported"), [(0.7, True), (0.8, False)])
def test_few_warps_are_not_the_cause_where_most_places_are_taken(achieved: float, is_reported: bool) -> None:
    most = {"occupancy.achieved_frac": achieved, "occupancy.theoretical_frac": 1.0, "occupancy.filled_frac": achieved}
    row = row_for(RULES.findings["unfilled_occupancy"], **most)
    assert ("unfilled_occupancy" in found(row)) == is_reported


def gain_ns(name: str, quantities: dict[str, float | None]) -> float | None:
    frame = row_for(RULES.findings[name], **quantities)
    rows = listed(frame)
    return rows.filter(pl.col("finding") == name)["gain_ns"].item()


@pytest.fixture(scope="module")
def planted() -> list[dict]:
    return ncuroof.read(demo.REPORT).analyse().to_dict()["kernels"]


@pytest.mark.parametrize("index", range(len(demo.PLANTED)))
def test_planted_property_is_found(planted: list[dict], index: int) -> None:
    expected, kernel = demo.PLANTED[index], planted[index]
    assert (kernel["verdict"], kernel["limiter"]) == (expected.verdict, expected.limiter)
    assert set(expected.findings) <= {finding["id"] for finding in kernel["findings"]}


@pytest.mark.parametrize(
    ("lost_frac", "expected"),
    [(0.13, ["lsu_instructions", "predicated_off"]), (0.25, ["predicated_off", "lsu_instructions"])],
)
def test_what_is_general_stands_first_only_where_it_outweighs_the_causes(lost_frac: float, expected: list[str]) -> None:
    # Fewer memory instructions save 1 - 0.4 of the time at most, of which about half is expected: more than twice 0.13 (a choice).
    changed = {"utilisation.lsu": 0.8, "utilisation.issue": 0.4, "utilisation.dram": 0.0, "utilisation.l2": 0.0}
    changed |= {"arithmetic.fp32_issue_frac": 1.0}
    changed |= {"utilisation.memory": 0.0, "utilisation.compute": 1.0, "utilisation.busiest": 1.0}
    changed |= {
        "scheduler.n_threads_per_instruction": 20.0 + 32 * lost_frac,
        "scheduler.n_predicated_on_threads_per_instruction": 20.0,
    }
    row = row_for(RULES.findings["lsu_instructions"], **changed).with_columns(verdict=pl.lit("compute"))
    rows = listed(row)
    assert rows["finding"].to_list() == expected
    assert rows.filter("is_most_worth")["finding"].to_list() == expected[:1]


@pytest.mark.parametrize(
    ("saved", "ranks"),
    [
        # a cause, a small one, a general finding, and one of which it is not known
        (
            [30.0, 9.0, 50.0, None],
            ["cause", "general", "general", "cause"],
        ),  # 50 is not twice 30, and more than five times 9
        ([30.0, 26.0, 50.0, None], ["cause", "cause", "general", "cause"]),
        ([24.0, 9.0, 50.0, None], ["cause", "general", "cause", "cause"]),  # more than twice the best cause
        ([30.0, 9.0, None, None], ["cause", "cause", "general", "cause"]),
    ],
)
def test_a_cause_that_saves_little_stands_behind_the_general_finding(saved: list, ranks: list[str]) -> None:
    names = {rank.value: place for rank, place in _PLACES.items()}
    given = [names[name] for name in ("cause", "cause", "general", "cause")]
    findings = pl.DataFrame({"id": 0, "rank": given, "expected_ns": saved})
    assert findings.select(_outweighing(RULES)).to_series().to_list() == [names[name] for name in ranks]


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [
        (
            "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, (int)4>(long)",
            False,
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<4>, int, 3, 64, 64>()",
            False,
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<at::native::OpaqueType<4>, int, 3>()",
            True,
        ),
        ("saxpy_grid_stride_kernel(float*, int)", True),  # whoever writes it chooses its grid
    ],
)
def test_a_last_wave_is_told_to_those_who_choose_the_grid(name: str, is_reported: bool) -> None:
    row = row_for(RULES.findings["tail_wave"]).with_columns(name=pl.lit(name))
    assert ("tail_wave" in found(row)) == is_reported


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "combined_in_shared"),
        ({"access.stored_over_dram_read": 0.0}, "combined_in_shared"),  # its results are atomics
        ({"access.stored_over_dram_read": 0.5}, "lsu_instructions"),  # a stencil
        ({"access.stored_over_dram_read": None}, "lsu_instructions"),
        ({"access.shared_wavefronts": None}, "lsu_instructions"),
        ({"scheduler.n_instructions_per_warp": 50_000.0}, "lsu_instructions"),  # a product
        ({"stalls.barrier": 0.05}, "lsu_instructions"),
    ],
)
def test_a_reduction_of_an_element_per_thread_is_not_told_to_keep_tiles(
    changed: dict[str, float | None], expected: str
) -> None:
    row = {"utilisation.lsu": 0.9, "utilisation.memory": 0.9, "utilisation.compute": 0.9, "utilisation.busiest": 0.9}
    row |= {"utilisation.dram": 0.35, "arithmetic.fp32_issue_frac": 0.0}
    row |= {"access.stored_over_dram_read": 0.002, "stalls.barrier": 0.23, "scheduler.n_instructions_per_warp": 103.0}
    frame = row_for(RULES.findings["combined_in_shared"], **(row | changed)).with_columns(limiter=pl.lit("lsu"))
    rows = listed(frame)
    assert {"combined_in_shared", "lsu_instructions"} & set(rows["finding"]) == {expected}


def test_warps_without_work_are_not_told_to_do_more() -> None:
    little = row_for(RULES.findings["little_work_per_thread"], **{"scheduler.n_instructions_per_warp": 12.0})
    changed = {
        "access.idle_warp_frac": 0.82,
        "access.most_idle_warp_frac": 0.82,
        "utilisation.dram": 0.41,
        "utilisation.busiest": 0.41,
        "occupancy.filled_frac": 0.1,
    }
    changed |= {"utilisation.compute": 0.41}
    row = little.with_columns(*(pl.lit(value).alias(name) for name, value in changed.items()))
    rows = listed(row)
    assert rows["finding"].to_list()[0] == "idle_warps"
    assert "little_work_per_thread" not in rows["finding"]


def test_fewer_memory_instructions_leave_fp64_as_it_is() -> None:
    changed = {"utilisation.lsu": 0.9, "utilisation.memory": 0.9, "utilisation.compute": 0.9, "utilisation.fp64": 0.2}
    row = row_for(RULES.findings["lsu_instructions"], **changed, **{"arithmetic.fp32_issue_frac": 0.0})
    rows = listed(row)
    (gain_ns,) = rows.filter(finding="lsu_instructions")["gain_ns"]
    assert gain_ns == pytest.approx(0.8 * row["duration_ns"].item())


def test_atomics_that_collide_stand_for_the_stall_that_they_cause() -> None:
    # 1 of 3 requests is an atomic; one slice of L2 is active all the time, the average one for 27 % of it.
    changed = {"access.atomic_request_frac": 1 / 3, "access.l2_slice_imbalance_frac": 0.73, "stalls.drain": 0.44}
    changed |= {"access.hottest_l2_slice_frac": 1.0, "access.colliding_atomics_frac": 1.0}
    changed |= {"utilisation.memory": 0.05, "utilisation.compute": 0.02}
    changed |= {"utilisation.busiest": 0.05}
    row = row_for(RULES.findings["stall_drain"], **changed).with_columns(limiter=pl.lit("drain"))
    assert found(row) == ["colliding_atomics", "l2_slice_imbalance"]
    # Of another verdict the imbalance alone is reported, whose advice names atomics too.
    busy = row.with_columns(verdict=pl.lit("memory"), limiter=pl.lit("l2"))
    assert found(busy) == ["l2_slice_imbalance"]


TAIL = {"occupancy.waves": 2.4, "occupancy.tail_frac": 0.21}
FEW_FIT = {
    "occupancy.waves": 4.0,
    "occupancy.theoretical_frac": 0.5,
    "occupancy.one_more_block_frac": 0.625,
    "occupancy.next_limit_frac": 1.0,
    "occupancy.resident_blocks": 4.0,
    "occupancy.limit_registers": 4.0,
}
FULL_AT_ONCE = {"occupancy.waves": 1.0, "occupancy.theoretical_frac": 0.125, "occupancy.one_more_block_frac": 0.25}


def _fit(theoretical_frac: float) -> dict[str, float]:
    """Return an occupancy at which four blocks fit on an SM."""
    return {"occupancy.theoretical_frac": theoretical_frac, "occupancy.one_more_block_frac": 1.25 * theoretical_frac}


@pytest.mark.parametrize(
    ("values", "limiter"),
    [
        (TAIL, "tail"),
        (TAIL | {"stalls.wait": 0.31, "limiter.stall": "wait"}, "tail"),  # less than 1.5 times 21 %
        (TAIL | {"stalls.wait": 0.32, "limiter.stall": "wait"}, "wait"),
        (TAIL | {"stalls.wait": 0.32, "limiter.stall": "wait", "utilisation.dram": 0.7}, "tail"),  # 30 % at most
        (
            TAIL | {"stalls.wait": 0.32, "limiter.stall": "barrier"},
            "tail",
        ),  # it is not what the limiter would be called
        # 50 % of the warps fit: 1.5 times 50 % is no less than 70 %, and occupancy is looked for before stalls.
        (TAIL | {"occupancy.theoretical_frac": 0.5, "stalls.wait": 0.7, "limiter.stall": "wait"}, "occupancy"),
        # One more block, where four fit, is a fifth of the time: less than 31 % over 1.5. It counts where registers are the limit.
        (FEW_FIT | {"stalls.wait": 0.29, "limiter.stall": "wait", "limiter.stall_frac": 0.29}, "occupancy"),
        (FEW_FIT | {"stalls.wait": 0.31, "limiter.stall": "wait"}, "wait"),
        (FEW_FIT | {"occupancy.limit_registers": 5.0, "stalls.wait": 0.31, "limiter.stall": "wait"}, "occupancy"),
        (FEW_FIT | _fit(0.26) | {"stalls.wait": 0.7, "limiter.stall": "wait"}, "wait"),
        (
            FEW_FIT | _fit(0.24) | {"stalls.wait": 0.7, "limiter.stall": "wait"},
            "occupancy",
        ),  # by 76 %, up to the next limit
        # All blocks of one wave are resident: room for more comes after the stall, unless one more block outweighs it.
        (FULL_AT_ONCE | {"stalls.wait": 0.35, "limiter.stall": "wait"}, "wait"),
        (FULL_AT_ONCE | {"stalls.wait": 0.32, "limiter.stall": "wait"}, "occupancy"),
        (FULL_AT_ONCE | {"limiter.stall": "wait", "limiter.stall_frac": 0.29}, "mixed_stalls"),
        (FULL_AT_ONCE, "occupancy"),
        ({"occupancy.waves": 0.89, "stalls.wait": 0.32, "limiter.stall": "wait"}, "wait"),  # 11 % by the grid
        ({"occupancy.waves": 0.78, "stalls.wait": 0.32, "limiter.stall": "wait"}, "grid"),
        # a graph of 50 small kernels on an H100: 0.04 % of 132 SMs at a time, 5 % of the time if each worked alone
        (TAIL | {"check.non_kernel": 1.0, "scheduler.any_sm_frac": 0.0528}, "launch"),
        (TAIL | {"check.non_kernel": 1.0, "scheduler.any_sm_frac": 0.51}, "tail"),
        (TAIL | {"check.non_kernel": 0.0, "scheduler.any_sm_frac": 0.0528}, "tail"),
        # without stall reasons, 4.9 % by the grid is too little to name it, and 5.1 % is not
        ({"occupancy.waves": 0.951}, None),
        ({"occupancy.waves": 0.949}, "grid"),
        ({"occupancy.waves": 0.951, "limiter.stall": "wait"}, "grid"),
        ({"limiter.stall": "wait", "limiter.stall_frac": 0.29}, "mixed_stalls"),
        ({"limiter.stall": "wait", "limiter.stall_frac": 0.31, "stalls.wait": 0.31}, "wait"),
        ({}, None),
    ],
)
def test_the_limiter_of_latency_is_the_first_cause_that_none_outweighs(values: dict, limiter: str | None) -> None:
    waiting = blank().with_columns(verdict=pl.lit("latency"))
    busy = {"utilisation.busiest": 0.2, "scheduler.working_frac": 1.0, "utilisation.headroom": 0.8}
    row = waiting.row(0, named=True) | busy | {"duration_ns": 1e6} | values
    row["occupancy.most_waves"] = row["occupancy.waves"]
    fired = add_firing(with_demand(pl.DataFrame([row], schema=waiting.schema)), RULES.findings.values())
    assert add_latency_limiter(fired, RULES)["limiter.latency"].to_list() == [limiter]


def test_named_limiter_comes_first_among_the_findings(planted: list[dict]) -> None:
    gather = next(kernel for kernel in planted if kernel["limiter"] == "long_scoreboard")
    assert gather["findings"][0]["id"] == "stall_long_scoreboard"


@pytest.mark.long
def test_missing_counters_name_what_collects_them() -> None:
    measurements = measure([raw_report({"gpu__time_duration.sum": 1e6})])
    missing = diagnose(measurements, roofline(measurements), unit_weights(measurements.kernels)).missing
    collect = dict(zip(missing["quantity"], missing["collect"], strict=True))
    assert collect["utilisation.memory"] == "--section SpeedOfLight"
    assert collect["stalls"] == "--section WarpStateStats"
    assert collect["work"] == "--section SpeedOfLight_RooflineChart"
    assert all(options.startswith("--") for options in collect.values())
    tensor = {"gpu__time_duration.sum": 1e6, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 50.0}
    measurements = measure([raw_report(tensor)])
    missing = diagnose(measurements, roofline(measurements), unit_weights(measurements.kernels)).missing.filter(
        quantity="work.tensor"
    )
    assert missing["collect"].to_list() == ["--section SpeedOfLight_HierarchicalTensorRooflineChart"]


def test_what_tells_why_nothing_is_busy_is_asked_for_first() -> None:
    names = ("gpu__compute_memory_throughput", "sm__throughput")
    counters = {f"{name}.avg.pct_of_peak_sustained_elapsed": 20.0 for name in names}
    occupancy = {"sm__warps_active.avg.pct_of_peak_sustained_active": 90.0}
    measurements = measure([raw_report({"gpu__time_duration.sum": 1e6} | counters | occupancy)])
    diagnosis = diagnose(measurements, roofline(measurements), unit_weights(measurements.kernels))
    assert diagnosis.verdicts["verdict"].to_list() == ["latency"]
    assert diagnosis.missing["quantity"].to_list()[:2] == ["stalls", "scheduler.n_eligible_warps"]


@pytest.mark.parametrize(("of_other", "expected"), [(0.7, "divergence"), (0.98, "serial_loads")])
def test_the_largest_expected_saving_counts(of_other: float, expected: str) -> None:
    """With 16 of 32 lanes, divergence is expected to save 0.39 of the time; waits for loads save 0.35 or 0.49."""
    changed = {
        "utilisation.l2": 0.0,
        "utilisation.dram": 0.5 * load_model().resources["dram"].reach,
        "stalls.long_scoreboard": of_other * 0.5 / load_model().expectation["waits"],
        "access.loads_by_code": 1.0,
        "scheduler.n_threads_per_instruction": 16.0,
    }
    row = row_for(RULES.findings["serial_loads"], **changed).with_columns(limiter=pl.lit("long_scoreboard"))
    rows = listed(row)
    assert rows.filter("is_most_worth")["finding"].to_list() == [expected]


@pytest.mark.parametrize(
    ("has_async_copy", "n_loads", "told"),
    [
        (1.0, 1.0, "two_stage_mainloop"),
        (1.0, 3.0, "two_stage_mainloop"),
        (1.0, 8.0, "two_stage_mainloop"),
        (0.0, 1.0, "serial_loads"),
        (0.0, 3.0, "stall_long_scoreboard"),
        (0.0, 8.0, "stall_overlapping_loads"),
    ],
)
def test_a_main_loop_without_asynchronous_copies_is_told_once(has_async_copy: float, n_loads: float, told: str) -> None:
    waits = {"stalls.long_scoreboard": 0.4, "access.loads_by_code": n_loads, "device.has_async_copy": has_async_copy}
    row = row_for(RULES.findings["two_stage_mainloop"], **waits)
    row = row.with_columns(**{"limiter": pl.lit("long_scoreboard"), "limiter.stall": pl.lit("long_scoreboard")})
    fired = add_firing(with_demand(row), RULES.findings.values())
    of_loads = {"two_stage_mainloop", "serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"}
    assert [name for name in found(row) if name in of_loads] == [told]
    assert add_latency_limiter(fired, RULES)["limiter.latency"].item() == "long_scoreboard"
    assert found(row)[0] == told  # it names the limiter
