"""Loads in flight by the machine code, from instructions whose samples are chosen by hand, and what is diagnosed of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ncuroof.ingest.code.static_code import OPERATIONS
from ncuroof.ingest.raw_report import RAW_INSTRUCTIONS, RawReport
from ncuroof.metrics import load_catalogue, measure, selection
from ncuroof.metrics.code_quantities import BY_CODE, shares_by_lines
from ncuroof.reading import Reports
from ncuroof.tables import LINES
from tests.support.raw import raw_report, with_code

WAITS = "smsp__pcsamp_warps_issue_stalled_long_scoreboard"
EXECUTED, MEMORY_TYPE, ACCESS_TYPE = "inst_executed", "memory_type", "memory_access_type"


def report(*instructions: tuple[int, int | None, float], counters: dict[str, float] | None = None) -> RawReport:
    """Return a report of two kernels with these instructions: kernel, loads under way, samples."""
    rows = [{"row": row, "n_loads": n_loads, WAITS: n_samples} for row, n_loads, n_samples in instructions]
    known = {"row": RAW_INSTRUCTIONS["row"], "n_loads": RAW_INSTRUCTIONS["n_loads"], WAITS: pl.Float64()}
    table = pl.DataFrame(rows, schema=known)
    others = [pl.lit(None, dtype).alias(name) for name, dtype in RAW_INSTRUCTIONS.items() if name not in known]
    each = {"gpu__time_duration.sum": 1e6, **(counters or {})}
    return replace(raw_report(each, each), instructions=table.with_columns(others))


def loads(*reports: RawReport) -> list[float | None]:
    return measure(reports).kernels["access.loads_by_code"].to_list()


def test_instructions_count_by_their_samples() -> None:
    found = report((0, 8, 90.0), (0, 2, 10.0), (1, 1, 50.0))
    assert loads(found) == [pytest.approx(7.4), 1.0]


def test_each_report_has_its_own() -> None:
    assert loads(report((1, 3, 40.0)), report((0, 5, 40.0))) == [None, 3.0, 5.0, None]


@pytest.mark.parametrize(
    ("n_loads", "n_others", "is_known"),
    [(29.0, 0.0, False), (30.0, 0.0, True), (50.0, 50.0, True), (50.0, 51.0, False)],
)
def test_few_samples_and_waits_for_other_things_tell_nothing(n_loads: float, n_others: float, is_known: bool) -> None:
    found = report((0, 2, n_loads), (0, None, n_others))
    assert loads(found)[0] == (2.0 if is_known else None)


def test_the_counters_of_samples_are_asked_for_with_lines_and_without() -> None:
    assert WAITS in selection().waits
    assert WAITS in selection(lines=False).waits


LATENCY = {
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
    "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
}
OF_LOADS = {"serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"}


@pytest.mark.parametrize(
    ("n_loads", "finding"),
    [
        (1, "serial_loads"),
        (2, "serial_loads"),
        (3, "stall_long_scoreboard"),
        (8, "stall_overlapping_loads"),
        (None, "stall_long_scoreboard"),
    ],
)
def test_how_many_loads_overlap_decides_what_is_said_of_the_wait(n_loads: int | None, finding: str) -> None:
    found: dict[str, Any] = Reports((report((0, n_loads, 100.0), counters=LATENCY),)).analyse().to_dict()["kernels"][0]
    assert found["verdict"] == "latency"
    assert [each["id"] for each in found["findings"] if each["id"] in OF_LOADS] == [finding]


def test_waits_for_atomics_are_told_from_those_for_loads() -> None:
    table = report((0, 2, 300.0), (0, None, 100.0), (1, None, 20.0)).instructions
    is_atomic = pl.Series("waits_for_atomic", [False, True, True])
    counters = {"gpu__time_duration.sum": 1e6}
    found = replace(raw_report(counters, counters), instructions=table.with_columns(is_atomic))
    assert measure((found,)).kernels["access.atomic_wait_frac"].to_list() == [
        pytest.approx(0.25),
        None,
    ]  # of 20 samples, nothing
    assert measure((raw_report(counters),)).kernels["access.atomic_wait_frac"].to_list() == [None]


@pytest.mark.parametrize(
    ("n_serial", "frac"),
    [(4, 0.75), (0, 0.0), (None, None)],  # awaited at once; overlapping, or none; not known
)
def test_only_waits_for_copies_that_nothing_overlaps_count(n_serial: int | None, frac: float | None) -> None:
    table = report((0, None, 300.0), (0, 2, 100.0), (1, None, 20.0)).instructions
    counters = {"gpu__time_duration.sum": 1e6}
    is_for_copies = pl.Series("waits_for_copies", [True, False, True])
    found = with_code(raw_report(counters, counters), serial_copies=(n_serial, n_serial))
    found = replace(found, instructions=table.with_columns(is_for_copies))
    of_few_samples = 0.0 if n_serial == 0 else None
    assert measure((found,)).kernels["access.serial_copy_wait_frac"].to_list() == [frac, of_few_samples]
    without = with_code(found, serial_copies=(None, None))
    assert measure((without,)).kernels["access.serial_copy_wait_frac"].to_list() == [None, None]


@pytest.mark.parametrize(
    ("n_serial", "findings"), [(2, ["async_copies_awaited_at_once"]), (0, ["stall_long_scoreboard"])]
)
def test_what_is_said_of_copies_that_are_awaited_at_once_replaces_what_is_said_of_loads(
    n_serial: int, findings: list[str]
) -> None:
    found = report((0, None, 300.0), (0, 3, 100.0), counters=LATENCY)
    instructions = found.instructions.with_columns(waits_for_copies=pl.Series([True, False]))
    found = with_code(replace(found, instructions=instructions), serial_copies=[n_serial] * found.workloads.height)
    kernel: dict[str, Any] = Reports((found,)).analyse().to_dict()["kernels"][0]
    about_waits = OF_LOADS | {"async_copies_awaited_at_once"}
    assert [each["id"] for each in kernel["findings"] if each["id"] in about_waits] == findings
    assert kernel["limiter"] == "long_scoreboard"


@pytest.mark.parametrize(("n_samples", "is_known"), [(59.0, False), (61.0, True)])
def test_samples_of_a_kernels_beginning_do_not_stand_for_all_of_it(n_samples: float, *, is_known: bool) -> None:
    # of 1 000 cycles on each of 10 SMs, a sample per 100 cycles and SM covers all
    sampling = {
        "smsp__pcsamp_sample_count": n_samples,
        "smsp__pcsamp_interval_cycles": 100.0,
        "sm__cycles_active.avg": 1_000.0,
        "device__attribute_multiprocessor_count": 10.0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": 7.0,
    }
    found = report((0, 2, 300.0), (0, None, 100.0), counters=sampling)
    waits = {name: pl.Series([False, True]) for name in ("waits_for_atomic", "waits_for_copies")}
    found = replace(found, instructions=found.instructions.with_columns(**waits))
    found = with_code(found, serial_copies=[1] * found.workloads.height)
    kernel = measure((found,)).kernels.row(0, named=True)
    assert kernel["access.loads_by_code"] == 2.0
    for name in ("access.atomic_wait_frac", "access.serial_copy_wait_frac"):
        assert kernel[name] == (pytest.approx(0.25) if is_known else None)


@pytest.mark.parametrize(("n_atomics", "frac"), [(0.0, 0.0), (1.0, None)])
def test_without_atomics_that_return_a_result_no_warp_waits_for_one(n_atomics: float, frac: float | None) -> None:
    counters = {"gpu__time_duration.sum": 1e6, "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": n_atomics}
    assert measure((raw_report(counters),)).kernels["access.atomic_wait_frac"].to_list() == [frac]


@pytest.mark.parametrize(
    ("instructions", "n_executions"),
    [
        # executed, threads, of these on, memory type: a load and a store by 500 of 10 000 warps, arithmetic by all
        ([(500, 16_000, 16_000, 4), (500, 16_000, 16_000, 4), (10_000, 320_000, 320_000, None)], 500),
        ([(10_000, 320_000, 16_000, 4)], 500),  # all execute a store that is predicated off in most
        (
            [(400, 400, 400, 4), (10_000, 320_000, 320_000, 16)],
            400,
        ),  # by one lane of each warp; shared memory is another
        ([(300, 9_600, 9_600, 4), (200, 6_400, 6_400, 4)], 300),  # branches that exclude each other: 500 at most
        ([(10_000, 320_000, 320_000, None)], None),
    ],
)
def test_no_more_warps_are_idle_than_those_beyond_the_executions_of_one_access(
    instructions: list[tuple[float, float, float, float | None]], n_executions: float | None
) -> None:
    counted = (EXECUTED, "thread_inst_executed", "thread_inst_executed_true", MEMORY_TYPE)
    table = pl.DataFrame(instructions, schema=dict.fromkeys(counted, pl.Float64), orient="row")
    others = [pl.lit(None, dtype).alias(name) for name, dtype in RAW_INSTRUCTIONS.items() if name != "row"]
    row = pl.lit(0, RAW_INSTRUCTIONS["row"]).alias("row")
    n_requests = {f"l1tex__t_requests_pipe_lsu_mem_global_op_{kind}.sum": 500.0 for kind in ("ld", "st")}
    none = {f"l1tex__t_requests_pipe_lsu_mem_global_op_{kind}.sum": 0.0 for kind in ("atom", "red")}
    launch = {"launch__block_size": 256.0, "launch__grid_size": 1250.0}  # 10 000 warps
    shared = {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 0.0}
    report_of_one = replace(
        raw_report(n_requests | none | launch | shared), instructions=table.with_columns(row, *others)
    )
    found = measure([report_of_one]).kernels.row(0, named=True)
    assert found["access.most_executions"] == n_executions
    assert found["access.idle_warp_frac"] == pytest.approx(0.9)  # at least
    assert found["access.most_idle_warp_frac"] == pytest.approx(
        0.9 if n_executions is None else 1 - n_executions / 10_000
    )


def test_what_curands_header_does_and_where_samples_are_is_told_by_lines() -> None:
    header, own = "curand_kernel.h", "monte_carlo.cu"
    rows = [
        (0, "memory_instructions", header, 80.0, 0.8),
        (0, "memory_instructions", own, 20.0, 0.2),
        (0, "global_loads", header, 50.0, 0.5),
        (0, "global_loads", header, 20.0, 0.2),  # another line
        (0, "instructions", header, 600.0, 0.6),
        (0, "instructions", own, 400.0, 0.4),
        (0, "samples", header, 90.0, 0.9),  # of 100
        (0, "xu_samples", own, 3.0, 0.1),  # of 30
        (1, "instructions", own, 10.0, 1.0),
    ]
    columns = ("id", "measure", "file", "value", "frac")
    found = shares_by_lines(pl.DataFrame(rows, schema=columns, orient="row"))
    assert found.rows() == [(0, pytest.approx(0.7), pytest.approx(0.6), pytest.approx(0.3)), (1, None, 0.0, None)]
    assert shares_by_lines(pl.DataFrame(schema=LINES)).rows() == []


@pytest.mark.long
def test_a_generator_that_is_set_up_within_a_kernel_is_told_before_its_loads() -> None:
    rows = [(0, n, kind, file) for n, (kind, file) in enumerate([(4.0, "curand_kernel.h")] * 9 + [(4.0, "own.cu")])]
    table = pl.DataFrame(rows, schema=["row", "number", MEMORY_TYPE, "file"], orient="row").with_columns(
        pl.lit(2.0).alias(ACCESS_TYPE),
        pl.col("row", "number").cast(pl.UInt32),
        pl.lit(1, pl.Int64).alias("line"),
        pl.lit(1e4).alias(EXECUTED),
    )
    others = [pl.lit(None, dtype).alias(name) for name, dtype in RAW_INSTRUCTIONS.items() if name not in table.columns]
    busy = {
        "gpu__time_duration.sum": 1e6,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
        "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 90.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 5.0,
        "smsp__inst_executed.sum": 1e5,
        "launch__block_size": 32.0,
        "launch__grid_size": 20.0,  # 5000 instructions per warp
    }
    instructions = table.with_columns(others)

    def first(counters: dict[str, float]) -> dict[str, Any]:
        analysed = Reports((replace(raw_report(counters), instructions=instructions),)).analyse()
        return analysed.to_dict()["kernels"][0]["findings"][0]

    assert (first(busy)["id"], first(busy)["gain_ns"]) == ("inlined_generator_setup", pytest.approx(0.9e6 * 0.998))
    # FP64 is what the numbers are for: setting generators up takes none.
    slow = busy | {"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed": 20.0}
    assert (first(slow)["id"], first(slow)["gain_ns"]) == (
        "inlined_generator_setup",
        pytest.approx((1 - 0.002 - 0.2) * 1e6),
    )


@pytest.mark.parametrize(
    ("accesses", "share"),
    [
        # width in bits, wavefronts, ideal: 300 of 400 beyond the ideal are of 16 bytes
        ([(128, 800, 500), (32, 300, 200)], 0.75),
        ([(64, 200, 100), (32, 200, 200)], 1.0),
        ([(32, 3200, 100), (None, None, None)], 0.0),
        ([(128, 500, 500)], None),  # no conflicts
    ],
)
def test_by_which_accesses_banks_conflict(
    accesses: list[tuple[float | None, float | None, float | None]], share: float | None
) -> None:
    counted = ("memory_access_size_type", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
    table = pl.DataFrame(accesses, schema=dict.fromkeys(counted, pl.Float64), orient="row")
    others = [pl.lit(None, dtype).alias(name) for name, dtype in RAW_INSTRUCTIONS.items() if name != "row"]
    row = pl.lit(0, RAW_INSTRUCTIONS["row"]).alias("row")
    found = replace(raw_report({"gpu__time_duration.sum": 1e6}), instructions=table.with_columns(row, *others))
    assert measure([found]).kernels["access.wide_conflict_frac"].to_list() == [share]


NO_ARITHMETIC = dict.fromkeys(OPERATIONS, 0)


@pytest.mark.parametrize(
    ("operations", "unfused_frac", "division_frac"),
    [
        ({"fadd": 1024, "ffma": 512}, 2 / 3, None),
        ({"fmul": 64, "ffma": 520}, 64 / 584, None),
        ({"dfma": 119, "dmul": 72, "dadd": 79, "rcp64h": 12, "rsq64h": 2}, None, 112 / 270),  # 14 of eight each
        ({"dfma": 7, "rcp64h": 1}, None, 1),
        ({}, None, None),
    ],
)
def test_the_code_says_how_much_of_the_arithmetic_is_of_a_kind(
    operations: dict[str, int], unfused_frac: float | None, division_frac: float | None
) -> None:
    found = measure([with_code(raw_report({}, {}), operations=(None, NO_ARITHMETIC | operations))]).kernels
    assert found["arithmetic.fp32_unfused_by_code"].to_list() == [None, pytest.approx(unfused_frac)]
    assert found["arithmetic.fp32_unfused_frac"].to_list() == [None, pytest.approx(unfused_frac)]
    assert found["arithmetic.fp64_division_frac"].to_list() == [None, pytest.approx(division_frac)]


@pytest.mark.parametrize(("alone", "division_frac"), [(True, 16 / 160), (False, 32 / 160), (None, 32 / 160)])
def test_reciprocals_are_no_divisions_where_the_module_divides_nowhere(
    alone: bool | None, division_frac: float
) -> None:
    operations = NO_ARITHMETIC | {"dfma": 160, "rcp64h": 2, "rsq64h": 2}
    report = with_code(raw_report({}, {}), operations=(None, operations), has_reciprocals_alone=(None, alone))
    assert measure([report]).kernels["arithmetic.fp64_division_frac"].to_list() == [None, pytest.approx(division_frac)]


@pytest.mark.parametrize(
    ("operations", "loads", "conversions"),
    [
        ({"global_load": 58, "ffma": 29}, 2, 0),  # no register tiles
        ({"global_load": 2, "shared_load": 24, "ffma": 64}, 26 / 64, 0),  # a column of eight results per thread
        ({"global_load": 16, "dfma": 4, "ffma": 4, "conversion": 2}, 2, 0.25),
        ({"global_load": 2, "conversion": 2}, None, None),
    ],
)
def test_the_code_says_how_many_loads_and_conversions_a_multiply_add_takes(
    operations: dict[str, int], loads: float | None, conversions: float | None
) -> None:
    found = measure([with_code(raw_report({}, {}), operations=(None, NO_ARITHMETIC | operations))]).kernels
    assert found["arithmetic.loads_per_multiply_add"].to_list() == [None, pytest.approx(loads)]
    assert found["arithmetic.conversions_per_multiply_add"].to_list() == [None, pytest.approx(conversions)]
    assert found["access.global_loads_by_code"].to_list() == [None, operations["global_load"]]


def test_counters_of_arithmetic_come_before_the_code() -> None:
    rates = {
        f"smsp__sass_thread_inst_executed_op_f{kind}_pred_on.sum.per_cycle_elapsed": 1.0 for kind in ("add", "mul")
    }
    counted = raw_report(rates | {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": 6.0})
    found = measure([with_code(counted, operations=(NO_ARITHMETIC | {"fadd": 9},))]).kernels
    assert found["arithmetic.fp32_unfused_frac"].to_list() == [0.25]


def test_every_quantity_of_machine_code_is_described() -> None:
    assert set(BY_CODE) - {quantity.name for quantity in load_catalogue().described()} == set()
