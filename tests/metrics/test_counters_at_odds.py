"""Quantities of two counters that do not agree, or of which one is missing or impossible. Expected numbers by hand."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from ncuroof.metrics.catalogue import load_catalogue
from tests.support.raw import raw_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


def value(quantity: str, counters: dict[str, float]) -> float | None:
    found = measure([raw_report(counters)]).kernels[quantity].item()
    return None if found is None else float(found)


def arithmetic(kind: str, add: float, mul: float, fma: float) -> dict[str, float]:
    counter = "smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum.per_cycle_elapsed"
    return {counter.format(kind, op): rate for op, rate in (("add", add), ("mul", mul), ("fma", fma))}


@pytest.mark.parametrize(
    ("add", "mul", "fma", "fusable_frac"),
    [
        (10.0, 10.0, 20.0, 0.25),  # ten pairs become ten: 30 of 40 instructions are left
        (2.0, 16.0, 22.0, 0.05),  # two pairs, and fourteen products to nobody's sum
        (16.0, 2.0, 22.0, 0.05),
        (0.0, 18.0, 22.0, 0.0),
    ],
)
@pytest.mark.parametrize(("kind", "precision"), [("f", "fp32"), ("d", "fp64")])
def test_fusing_takes_an_addition_and_a_multiplication(
    kind: str, precision: str, add: float, mul: float, fma: float, fusable_frac: float
) -> None:
    counters = arithmetic(kind, add, mul, fma)
    assert value(f"arithmetic.{precision}_fusable_frac", counters) == pytest.approx(fusable_frac)
    for missing in counters:
        others = {name: rate for name, rate in counters.items() if name != missing}
        assert value(f"arithmetic.{precision}_fusable_frac", others) is None


SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
BY_INSTRUCTION = {"memory_l1_wavefronts_shared": 1600.0, "memory_l1_wavefronts_shared_ideal": 800.0}


@pytest.mark.parametrize(
    ("pipe", "conflict_frac"),
    [
        ({}, 0.5),  # what instructions would take by their addresses
        ({SHARED.format(""): 810.0, SHARED.format("_op_ld"): 800.0, SHARED.format("_op_st"): 0.0}, 10 / 810),
        ({SHARED.format(""): 800.0, SHARED.format("_op_ld"): 790.0, SHARED.format("_op_st"): 0.0}, 0.0),
        ({SHARED.format(""): 2000.0, SHARED.format("_op_ld"): 1600.0, SHARED.format("_op_st"): 0.0}, 0.5),
    ],
)
def test_conflicts_that_the_pipe_did_not_see_are_none(pipe: dict[str, float], conflict_frac: float) -> None:
    """16-byte asynchronous copies pass by it; its own sum holds shuffles, which are no conflicts."""
    capability = {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 6.0,
    }
    counters = {**BY_INSTRUCTION, **pipe, **capability}
    assert value("access.bank_conflict_frac", counters) == pytest.approx(conflict_frac)


LOADS, STORES = (f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
EXCESS = {"memory_l2_theoretical_sectors_global": 100.0, "memory_l2_theoretical_sectors_global_ideal": 80.0}


def test_waste_of_an_unknown_part_is_unknown() -> None:
    sectors = {LOADS: 75.0, STORES: 25.0}
    loads = {**sectors, PER_SECTOR.format("ld"): 24.0}
    assert value("access.load_waste_frac", loads) == pytest.approx(0.75 * 0.25)
    assert value("access.store_waste_frac", loads) is None
    # The excess alone does not say whose it is: neither loads' nor stores', and not that of both.
    assert value("access.load_waste_frac", {**sectors, **EXCESS}) is None
    assert value("access.store_waste_frac", {**sectors, **EXCESS}) is None
    assert value("access.load_waste_frac", {**loads, PER_SECTOR.format("ld"): 8.0, **EXCESS}) == pytest.approx(0.2)


@pytest.mark.parametrize("op", ["load", "store"])
def test_a_sector_holds_32_bytes(op: str) -> None:
    counter = PER_SECTOR.format("ld" if op == "load" else "st")
    quantity = f"access.{op}_bytes_per_sector"
    assert value(quantity, {counter: 32.0}) == pytest.approx(32.0)
    assert value(quantity, {counter: 34_544.0}) is None  # recorded of generic stores to local memory
    percent = counter.removesuffix(".ratio") + ".pct"
    assert value(quantity, {percent: 50.0}) == pytest.approx(16.0)
    assert value(quantity, {percent: 101.0}) is None


STAGE = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
STATIC, DYNAMIC = (f"launch__shared_mem_per_block_{kind}" for kind in ("static", "dynamic"))


def test_shared_memory_of_an_unknown_part_of_the_data_stage() -> None:
    used = {STAGE: 90.0, STATIC: 1024.0, DYNAMIC: 1024.0}
    assert value("access.unsplit_shared_bytes", used) == 2048
    assert value("access.unsplit_shared_bytes", {STAGE: 90.0, STATIC: 0.0, DYNAMIC: 0.0}) == 0
    part = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"
    assert value("access.unsplit_shared_bytes", {**used, part: 30.0}) == 0
    assert value("access.unsplit_shared_bytes", {STAGE: 90.0}) is None


@pytest.mark.parametrize(
    ("capability", "expected"),
    [((8, 0), 7.8), ((9, 0), 7.8), ((7, 5), 15.6), ((8, 6), 15.6), ((12, 0), 15.6), ((10, 0), None)],
)
def test_an_instruction_takes_wavefronts(capability: tuple[int, int], expected: float | None) -> None:
    names = [f"device__attribute_compute_capability_{part}" for part in ("major", "minor")]
    instructions = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"  # a cycle each, or two
    counters = {STAGE: 97.5, instructions: 12.5, **dict(zip(names, map(float, capability), strict=True))}
    found = value("access.wavefronts_per_instruction", counters)
    assert found is None if expected is None else found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changed", "at_least"),
    [
        ({}, 8.0),  # L1 is full in half of all cycles, and no pipe of the SMs is busy in more than a sixteenth
        ({"lts__throughput.avg.pct_of_peak_sustained_elapsed": 26.0}, None),  # what comes from L2 may fill it
        ({"sm__throughput.avg.pct_of_peak_sustained_elapsed": 12.0}, None),  # 4.2: as 16-byte accesses have
        ({STAGE: 30.0, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 5.0}, 6.0),  # both are known
    ],
)
def test_an_instruction_takes_wavefronts_at_least(changed: dict[str, float], at_least: float | None) -> None:
    counters = {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 0.0,
        "l1tex__throughput.avg.pct_of_peak_sustained_active": 100.0,
        "lts__throughput.avg.pct_of_peak_sustained_elapsed": 17.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 6.25,
        "sm__cycles_active.avg": 50.0,
        "sm__cycles_elapsed.max": 100.0,
    }
    found = value("access.wavefronts_per_instruction", counters | changed)
    assert found is None if at_least is None else found == pytest.approx(at_least)


def test_the_queue_is_the_xus_where_shared_memory_is_not_accessed() -> None:
    busy = {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 52.0}
    by_kind = {SHARED.format("_op_ld"): 0.0, SHARED.format("_op_st"): 0.0, SHARED.format(""): 0.0}
    capability = {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 6.0,
    }
    assert value("scheduler.xu_queue_frac", {**busy, **by_kind, **capability}) == pytest.approx(0.52)
    accessed = {**busy, **by_kind, **capability, SHARED.format("_op_ld"): 5.0, SHARED.format(""): 5.0}
    assert value("scheduler.xu_queue_frac", accessed) == 0
    assert value("scheduler.xu_queue_frac", busy) is None


def test_multiply_adds_are_told_by_their_pipe_and_not_by_its_busier_half() -> None:
    """The half that multiplies integers, too, is busy for longer than an instruction takes to issue."""
    pipe = "sm__pipe_{}_cycles_active.avg.pct_of_peak_sustained_elapsed"
    counters = {
        pipe.format("fma"): 30.0,
        pipe.format("fmaheavy"): 66.0,
        "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": 60.0,
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 6.0,
    }
    assert value("arithmetic.fp32_issue_frac", counters) == pytest.approx(0.5)


WHOLE = {LOADS: 100.0, STORES: 100.0, PER_SECTOR.format("ld"): 16.0, PER_SECTOR.format("st"): 16.0}
DRAM = {"dram__bytes_read.sum": 2400.0, "dram__bytes_write.sum": 1600.0, "memory_l2_theoretical_sectors_global": 200.0}
DRAM_MORE = {"memory_l2_theoretical_sectors_global_ideal": 100.0}
MISSES = "lts__t_sectors_srcunit_tex_op_{}_lookup_miss.sum"


def test_what_l2_reads_to_fill_sectors_is_the_stores_waste() -> None:
    """Loads and stores use half of each sector: 1600 bytes. Of the 2400 that DRAM reads 25 sectors fill what is stored in part."""
    counters = {**WHOLE, **DRAM, **DRAM_MORE}
    # Without L2's misses all that is read beyond the loads' bytes is theirs.
    assert value("access.dram_load_waste_frac", counters) == pytest.approx(800 / 4000)
    assert value("access.dram_store_waste_frac", counters) == pytest.approx(0)
    misses = {MISSES.format("read"): 50.0, MISSES.format("write"): 25.0}
    assert value("access.dram_load_waste_frac", {**counters, **misses}) == pytest.approx(0)
    assert value("access.dram_store_waste_frac", {**counters, **misses}) == pytest.approx(800 / 4000)
    # Where a store misses once and its sector is filled later, or more often, what no load's miss explains are its fills.
    for n_missed in (0.0, 10.0):
        fewer = {**counters, **misses, MISSES.format("write"): n_missed}
        assert value("access.dram_store_waste_frac", fewer) == pytest.approx(800 / 4000)
    nearly_whole = {**counters, **misses, "memory_l2_theoretical_sectors_global": 110.0}  # 10 sectors too many
    assert value("access.dram_store_waste_frac", nearly_whole) == pytest.approx(320 / 4000)
    for absent, found in ((PER_SECTOR.format("st"), None), (MISSES.format("write"), 0.0)):
        unasked = {key: count for key, count in {**counters, **misses}.items() if key != absent}
        assert value("access.dram_store_waste_frac", unasked) == found
    # A sector is filled once: 64 × 20 bytes less the 320 stored, of 1280 written too much and 800 unexplained.
    few = {**counters, **misses, STORES: 20.0, "memory_l2_theoretical_sectors_global_ideal": 10.0}
    assert value("access.dram_store_waste_frac", few) == pytest.approx(960 / 4000)
    stored_whole = {**few, PER_SECTOR.format("st"): 32.0}  # nothing is filled, whoever had the rest read
    assert value("access.dram_store_waste_frac", stored_whole) == 0
    wasteful = {**misses, MISSES.format("read"): 60.0}  # 320 bytes more than the threads asked for
    assert value("access.dram_load_waste_frac", {**counters, **wasteful}) == pytest.approx(320 / 4000)


def test_stall_shares_of_several_passes_are_no_more_than_all_of_it() -> None:
    prefix = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    cycles = {"no_instruction": 15.0, "selected": 1.0, "wait": 4.0}  # 20, of a latency that another pass has at 10
    counters = {prefix.format(reason): count for reason, count in cycles.items()}
    counters["smsp__average_warp_latency_per_inst_issued.ratio"] = 10.0
    assert [value(f"stalls.{reason}", counters) for reason in cycles] == [0.75, 0.05, 0.2]
    assert value("limiter.stall_frac", counters) == 0.75


def test_bank_conflicts_of_loads_and_of_stores_are_those_of_shared_memory() -> None:
    conflicts, wavefronts = (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum",
    )
    counters = {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 0.0,
        conflicts.format("ld"): 60.0,
        conflicts.format("st"): 0.0,
        wavefronts.format("ld"): 120.0,
        wavefronts.format("st"): 30.0,
    }
    assert value("access.bank_conflict_frac", counters) == pytest.approx(60 / 150)
    del counters[wavefronts.format("st")]  # loads alone: how much of all is not known
    assert value("access.bank_conflict_frac", counters) is None


def test_all_stall_reasons_together_are_the_latency_that_is_missing() -> None:
    prefix = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    others = set(load_catalogue().stalls.reasons) - {"gmma", "imc_miss"}  # of which compute capability 10.0 has none
    cycles = dict.fromkeys(others, 0.0) | {"long_scoreboard": 6.0, "selected": 1.0, "wait": 3.0}
    counters = {prefix.format(reason): count for reason, count in cycles.items()}
    assert value("stalls.long_scoreboard", counters) == pytest.approx(0.6)
    assert value("limiter.stall_frac", counters) == pytest.approx(0.6)
    del counters[prefix.format("drain")]  # a table that is cut: the rest may be anything
    assert value("stalls.long_scoreboard", counters) is None


@pytest.mark.parametrize("elapsed", ["sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"])
def test_sms_work_for_no_more_than_all_the_time_and_lose_no_less_than_nothing(elapsed: str) -> None:
    counters = {
        "sm__cycles_active.avg": 101.0,
        elapsed: 100.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
    }
    assert value("scheduler.sm_active_frac", counters) == 1
    assert value("occupancy.empty_frac", counters) == 0
    assert value("scheduler.sm_active_frac", counters | {"sm__cycles_active.avg": 60.0}) == pytest.approx(0.6)
    assert value("scheduler.sm_active_frac", {elapsed: 100.0}) is None


LIMITS = {"registers": 40.0, "shared_mem": 48.0, "warps": 64.0, "blocks": 32.0}


@pytest.mark.parametrize(
    ("limits", "theoretical_pct", "next_frac"),
    [
        ({}, 50.0, 0.625),  # block slots give way, until registers hold it at 40 of 64
        ({"registers": 32.0}, 50.0, 0.75),  # both have to: then shared memory
        ({"registers": 64.0, "shared_mem": 64.0}, 50.0, 1.0),
        ({"blocks": 64.0, "registers": 64.0, "shared_mem": 64.0}, 100.0, 1.0),
    ],
)
def test_occupancy_rises_to_the_next_limit(limits: dict[str, float], theoretical_pct: float, next_frac: float) -> None:
    counters = {f"launch__occupancy_limit_{name}": value for name, value in {**LIMITS, **limits}.items()}
    counters["sm__maximum_warps_per_active_cycle_pct"] = theoretical_pct
    assert value("occupancy.next_limit_frac", counters) == pytest.approx(next_frac)


@pytest.mark.parametrize(("active", "busy_frac"), [(80.0, 0.75), (50.0, 1.0), (None, 0.6)])
def test_how_busy_a_unit_is_while_an_sm_has_work(active: float | None, busy_frac: float) -> None:
    issued = {"sm__inst_issued.avg.pct_of_peak_sustained_elapsed": 60.0, "sm__cycles_elapsed.max": 100.0}
    counters = issued if active is None else {**issued, "sm__cycles_active.avg": active}
    assert value("scheduler.issue_busy_frac", counters) == pytest.approx(busy_frac)


@pytest.mark.parametrize(
    ("quantity", "counter"),
    [
        ("l1", "l1tex__throughput"),
        ("issue", "smsp__issue_active"),
        ("issue", "sm__inst_issued"),
        ("fp32", "sm__pipe_fma_cycles_active"),
        ("lsu", "sm__inst_executed_pipe_lsu"),
    ],
)
def test_what_is_over_active_cycles_is_told_over_all(quantity: str, counter: str) -> None:
    # SMs work for 60 of 100 cycles, and the unit is busy in 45 of these: 75 % of the time in which they work
    over_active = {f"{counter}.avg.pct_of_peak_sustained_active": 75.0}
    cycles = {"sm__cycles_active.avg": 60.0, "sm__cycles_elapsed.max": 100.0}
    assert value(f"utilisation.{quantity}", over_active | cycles) == pytest.approx(0.45)
    assert value(f"utilisation.{quantity}", over_active) == pytest.approx(0.75)
    if quantity in {"l1", "issue"}:
        assert value(f"scheduler.{quantity}_busy_frac", over_active | cycles) == pytest.approx(0.75)
        assert value(f"scheduler.{quantity}_busy_frac", over_active) == pytest.approx(0.75)
