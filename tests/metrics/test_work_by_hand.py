"""Work of the vector pipes and shares of arithmetic, by each formula of the catalogue, worked by hand.

Additions, multiplications and multiply-adds are 3, 5 and 11, 3 + 5 + 2 · 11 = 30 FLOP, but where 3 + 5 + 8 = 16 is handier; packed
ones are 13, 17 and 19: 2 · 13 + 2 · 17 + 4 · 19 = 136 more. Sub-partitions run at 2 GHz and SMs at 3 GHz, which no GPU does, so
that no clock can stand for the other.
"""

from __future__ import annotations

import polars as pl
import pytest

from tests.support.by_hand import ELAPSED, ByHand, Counters, chip, each_row_holds, measured

THREADS = "{}__sass_thread_inst_executed_op_{}_pred_on"
CLOCKS: Counters = {
    "gpu__time_duration.sum": 2000, "smsp__cycles_elapsed.avg.per_second": 2e9, "sm__cycles_elapsed.avg.per_second": 3e9,
}  # fmt: skip
PACKED = {"fadd2": 13.0, "fmul2": 17.0, "ffma2": 19.0}


def _counted(suffix: str, letter: str, fused: float = 11, unit: str = "smsp") -> Counters:
    """Return 3 additions, 5 multiplications and some multiply-adds."""
    counts = ((f"{letter}add", 3.0), (f"{letter}mul", 5.0), (f"{letter}fma", fused))
    return {THREADS.format(unit, op) + suffix: n for op, n in counts}


def _packed(suffix: str) -> Counters:
    return {THREADS.format("smsp", op) + suffix: n for op, n in PACKED.items()}


def _peak(letter: str) -> Counters:
    """Return a peak of 100 multiply-adds per cycle."""
    return {THREADS.format("sm", f"{letter}fma") + ".sum.peak_sustained": 100.0}


PER_CYCLE, SUM = ".sum.per_cycle_elapsed", ".sum"
DERIVED_PACKED = {f"derived__{THREADS.format('smsp', op)}_x{2 if op != 'ffma2' else 4}": n for op, n in PACKED.items()}
DERIVED_HALVES = {
    f"derived__{THREADS.format('smsp', op)}_x{by}": n
    for op, by, n in (("hadd", 2, 6.0), ("hmul", 2, 10.0), ("hfma", 4, 32.0))
}
Work = tuple[str, Counters, float, float | None, bool]
"""Precision, counters, FLOP/s achieved and peak, and whether they are reliable."""

WORK: list[Work] = [
    ("fp64", {**_counted(PER_CYCLE, "d"), **_peak("d")}, 60e9, 600e9, True),
    ("fp64", {**_counted(SUM, "d"), **_peak("d")}, 15e9, 600e9, True),  # in 2 µs
    ("fp64", _counted(SUM, "d", unit="sm"), 15e9, None, True),
    ("fp32", {**_counted(PER_CYCLE, "f"), **DERIVED_PACKED, **_packed(PER_CYCLE), **_peak("f")}, 158e9, 600e9, True),
    ("fp32", {**_counted(PER_CYCLE, "f"), **_packed(PER_CYCLE), **_peak("f")}, 332e9, 600e9, True),
    ("fp32", {**_counted(SUM, "f"), **_packed(SUM), **_peak("f")}, 83e9, 600e9, True),
    ("fp32", {**_counted(PER_CYCLE, "f"), **_peak("f")}, 60e9, 600e9, True),
    ("fp32", {**_counted(SUM, "f"), **_peak("f")}, 15e9, 600e9, True),
    ("fp32", _counted(SUM, "f", unit="sm"), 15e9, None, True),
    ("fp32", {f"{THREADS.format('sm', 'fp32')}.sum": 30}, 15e9, None, False),
    # two of packed additions and multiplications, four of multiply-adds: 60
    ("fp16", {**_counted(PER_CYCLE, "h"), **_peak("h")}, 120e9, 1200e9, True),
    ("fp16", {**_counted(SUM, "h"), **_peak("h")}, 30e9, 1200e9, True),
    ("fp16", {**DERIVED_HALVES, f"derived__{THREADS.format('sm', 'hfma')}_x4": 100}, 96e9, 300e9, True),
    ("fp16", {f"{THREADS.format('smsp', 'hfma')}{PER_CYCLE}": 11, **_peak("h")}, 88e9, 1200e9, False),
]


@pytest.fixture(scope="module")
def work() -> pl.DataFrame:
    # counters of a few operations in 2 µs: a thousand times as many, in sums alone
    rows = [
        {name: value * (1000 if name.endswith("_on.sum") else 1) for name, value in counters.items()}
        for _, counters, _, _, _ in WORK
    ]
    return measured([{**counters, **CLOCKS} for counters in rows]).work


@pytest.mark.parametrize("number", range(len(WORK)), ids=[f"{number}-{each[0]}" for number, each in enumerate(WORK)])
def test_work_and_its_peak_are_what_the_counters_give_by_hand(work: pl.DataFrame, number: int) -> None:
    precision, _, rate, peak, is_reliable = WORK[number]
    row = work.row(by_predicate=(pl.col("id") == number) & (pl.col("precision") == precision), named=True)
    assert row["flop_per_s"] == pytest.approx(rate, rel=1e-9)
    assert row["flop"] == pytest.approx(rate * 2e-6, rel=1e-9)
    assert row["peak_flop_per_s"] == (None if peak is None else pytest.approx(peak, rel=1e-9))
    assert row["reliable"] is is_reliable


FMA, HEAVY, ALU, XU = (
    f"sm__pipe_fma_cycles_active{ELAPSED}", f"sm__pipe_fmaheavy_cycles_active{ELAPSED}", f"sm__pipe_alu_cycles_active{ELAPSED}",
    f"sm__inst_executed_pipe_xu{ELAPSED}",
)  # fmt: skip
FP64, TENSOR = f"sm__pipe_fp64_cycles_active{ELAPSED}", f"sm__pipe_tensor_cycles_active{ELAPSED}"
ISSUE = f"sm__issue_active{ELAPSED}"
LANES = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
# 10 SMs of four schedulers issue in a twentieth of the cycles, 32 threads each: 64 per cycle
ISSUED: Counters = {ISSUE: 5, "device__attribute_multiprocessor_count": 10, **chip(90)}
# 16 threads per cycle of 100, of 32 in warps with 16 lanes on: 32 % of the pipe's 40 %
BUSY: Counters = {**_counted(PER_CYCLE, "f", 8), **_peak("f"), FMA: 40, LANES: 16}
HALVES_TOO = {THREADS.format("smsp", op) + PER_CYCLE: n for op, n in (("hadd", 0.5), ("hmul", 0.2), ("hfma", 1.3))}
HFMA_PER_CYCLE = THREADS.format("smsp", "hfma") + PER_CYCLE

ROWS: list[ByHand] = [
    *((f"arithmetic.{name}_unfused_frac", _counted(PER_CYCLE, letter), 8 / 19) for name, letter in (("fp32", "f"), ("fp64", "d"))),
    *((f"arithmetic.{name}_fusable_frac", _counted(PER_CYCLE, letter), 3 / 19) for name, letter in (("fp32", "f"), ("fp64", "d"))),
    *(
        (f"arithmetic.{name}_fusable_frac",
         {**_counted(PER_CYCLE, letter), THREADS.format("smsp", f"{letter}mul") + PER_CYCLE: 2}, 1 / 8)
        for name, letter in (("fp32", "f"), ("fp64", "d"))
    ),
    ("arithmetic.fp32_issue_frac", {**_counted(PER_CYCLE, "f", 8), **ISSUED, FMA: 1}, 0.25),
    *(
        ("arithmetic.fp32_issue_frac", {FMA: 20, HEAVY: 30, ISSUE: 40, **chip(each)}, 0.5)
        for each in (86, 87, 89, 90, 100, 103, 110, 120, 121)
    ),
    # with 16 lanes the pipe is busy for two cycles
    *(("arithmetic.fp32_issue_frac", {FMA: 20, ISSUE: 40, **chip(each)}, 0.25) for each in (70, 72, 75, 80)),
    ("arithmetic.fp32_issue_frac", {FMA: 20, ISSUE: 40, **chip(61)}, None),
    ("arithmetic.fp16_issue_frac", {**_counted(PER_CYCLE, "h", 8), **ISSUED}, 0.25),
    ("arithmetic.fp16_issue_frac", {**DERIVED_HALVES, HFMA_PER_CYCLE: 8, **ISSUED}, 0.25),
    ("arithmetic.fp16_issue_frac", {HFMA_PER_CYCLE: 8, **ISSUED}, 0.125),
    ("arithmetic.integer_fma_frac", BUSY, 0.2),
    ("arithmetic.integer_fma_frac", {**BUSY, **HALVES_TOO}, 0.1),
    ("arithmetic.integer_fma_frac", {**BUSY, FMA: 10}, 0),
    ("arithmetic.integer_fma_frac", {name: n for name, n in BUSY.items() if name != LANES}, 0.6),
    ("arithmetic.integer_fma_frac", {name: n for name, n in {**BUSY, **HALVES_TOO}.items() if name != LANES}, 0.55),
    ("arithmetic.integer_fma_frac", {name: 10 if name == FMA else n for name, n in BUSY.items() if name != LANES}, 0),
    *(
        ("arithmetic.integer_fma_frac", {HEAVY: 40, FMA: 30, **chip(each)}, n)
        for each, n in ((86, 0.5), (87, 0.5), (89, 0.5), (90, 0.5), (80, None), (100, None))
    ),
    *(
        ("arithmetic.integer_fma_frac", {**kernel, pipe: busy}, share)
        for kernel, whole in ((BUSY, 0.2), ({HEAVY: 40, FMA: 30, **chip(90)}, 0.5))
        for pipe in (ALU, FP64, TENSOR, XU)
        for busy, share in ((40, whole), (41, None))
    ),
    *(
        ("arithmetic.integer_fma_frac", {name: n for name, n in {**BUSY, pipe: 41}.items() if name != LANES}, None)
        for pipe in (ALU, FP64, TENSOR, XU)
    ),
]  # fmt: skip


test_share_is_what_the_counters_give_by_hand = each_row_holds(ROWS)
