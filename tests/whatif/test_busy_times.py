"""How long each resource was needed: from counters to time, by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ncuroof.metrics import measure
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target, busy_times, change, parse_change, project
from tests.support.hand_tables import work_table
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
COUNTERS = {"gpu__time_duration.sum": 1000.0, f"gpu__dram_throughput{PCT}": 10.0}


def busy_of(counters: dict[str, float], *work: tuple[Any, ...]) -> pl.DataFrame:
    """Return BUSY_TIMES of one launch of 1 µs that has these counters."""
    placed = {
        "verdict": pl.lit("compute"),
        "dominant_precision": pl.lit(None, pl.String),
        "roofline.ridge_ratio": pl.lit(None, pl.Float64),
        "n_represented": pl.lit(1.0),
        "weight": pl.lit(1.0),
    }
    return busy_times(measure([raw_report(COUNTERS | counters)]).kernels.with_columns(**placed), work_table(*work))


def test_integer_multiply_adds_go_with_the_sms_and_not_with_the_fp32_peak() -> None:
    # The heavy half of the FMA pipe is busy for 78 % of the time with IMAD, both halves together for 41 %.
    counters = {f"sm__pipe_fma_cycles_active{PCT}": 41.0, f"sm__pipe_fmaheavy_cycles_active{PCT}": 78.0}
    busy = busy_of(counters)
    row = busy.row(0, named=True)
    assert (row["busy.fp32"], row["busy.sm"]) == (pytest.approx(410), pytest.approx(780))
    # RTX 3090 to A100: 82 SMs at 1.695 GHz and 35.6 TFLOP/s, 108 at 1.41 GHz and 19.5: SMs 780 * 138.99 / 152.28 = 711.9,
    # FP32 410 * 35.6 / 19.5 = 748.5; the heavy half at the rate of FP32 would take 780 * 35.6 / 19.5 = 1424
    (found,) = project(busy, {0: profile_by_name("rtx-3090")}, [Target(profile_by_name("a100-sxm-80gb"))]).to_dicts()
    assert found["duration_ns"] == pytest.approx(748.5 / 0.78, rel=2e-3)


def test_a_pipe_without_a_busier_half_is_fp32() -> None:
    row = busy_of({f"sm__pipe_fma_cycles_active{PCT}": 90.0, f"sm__pipe_alu_cycles_active{PCT}": 20.0})
    assert row.row(0, named=True)["busy.fp32"] == pytest.approx(900)
    assert row.row(0, named=True)["busy.sm"] == pytest.approx(200)


SLICES = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum": 0.0,
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum": 1e6,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2e6,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 0.0,
    "lts__cycles_elapsed.avg": 1000.0,
    "lts__cycles_active.max": 1000.0,
    f"lts__t_sectors{PCT}": 5.0,
    f"sm__pipe_alu_cycles_active{PCT}": 10.0,
}


def test_atomics_that_collide_gain_only_from_the_clock() -> None:
    # One slice of L2 is active all the time, the average one for 27 % of it; a third of the requests are reductions.
    busy = busy_of(SLICES | {"lts__cycles_active.avg": 270.0})
    assert busy["busy.l2_slice"].item() == pytest.approx(1000)
    here, there = {0: profile_by_name("t4")}, Target(profile_by_name("h100-sxm"))
    (found,) = project(busy, here, [there]).to_dicts()
    # 1.59 over 1.98 GHz, whatever the number of SMs
    assert (found["limiter"], found["duration_ns"]) == ("l2_slice", pytest.approx(1000 * 1.59 / 1.98))
    # half of the accesses, half of the time
    (fewer,) = project(change(busy, parse_change("l2:0.5")), here, [Target()]).to_dicts()
    assert fewer["duration_ns"] == pytest.approx(500)


def test_slices_that_are_all_active_are_not_one() -> None:
    assert busy_of(SLICES | {"lts__cycles_active.avg": 960.0})["busy.l2_slice"].item() == 0


STAGES = {
    f"lts__throughput{PCT}": 80.0,
    f"lts__t_tag_requests{PCT}": 40.0,
    f"lts__d_sectors{PCT}": 50.0,
    f"sm__pipe_alu_cycles_active{PCT}": 30.0,
}


def test_l2_is_needed_for_its_busiest_named_stage_and_as_a_whole() -> None:
    row = busy_of(STAGES).row(0, named=True)
    assert (row["busy.l2"], row["busy.l2_whole"]) == pytest.approx((500, 800))
    assert (row["reached_frac"], row["reached_by_whole_l2_frac"], row["limiter"]) == (0.5, 0.8, "l2")
    # another pass of the same kernel can count a stage busier than all: the whole is no less
    row = busy_of(STAGES | {f"lts__d_sectors{PCT}": 81.0}).row(0, named=True)
    assert (row["busy.l2"], row["busy.l2_whole"], row["reached_by_whole_l2_frac"]) == pytest.approx((810, 810, 0.81))
    # reports without the stages have L2 as a whole alone
    row = busy_of({name: value for name, value in STAGES.items() if "sectors" not in name}).row(0, named=True)
    assert (row["busy.l2"], row["busy.l2_whole"], row["reached_frac"]) == pytest.approx((800, 800, 0.8))


@pytest.mark.parametrize(("busy_pct", "needed_ns"), [(0.001, 0.0), (30.0, 300.0)])
def test_a_tensor_pipe_that_did_next_to_nothing_is_not_needed(busy_pct: float, needed_ns: float) -> None:
    # An SGEMM keeps it busy for 0.001 % of the time, and no tensor work was counted.
    counters = {f"sm__pipe_tensor_cycles_active{PCT}": busy_pct, f"sm__pipe_alu_cycles_active{PCT}": 40.0}
    busy = busy_of(counters)
    assert busy["busy.tensor"].item() == pytest.approx(needed_ns)
    (found,) = project(busy, {0: profile_by_name("t4")}, [Target(profile_by_name("gtx-1660-super"))]).to_dicts()
    assert (found["duration_ns"] is None) == (busy_pct > 2)


def test_little_tensor_work_that_was_counted_is_needed() -> None:
    counters = {f"sm__pipe_tensor_cycles_active{PCT}": 1.0, f"sm__pipe_alu_cycles_active{PCT}": 40.0}
    busy = busy_of(counters, (0, "tensor_bf16", 1e12, 1e14, True))
    assert busy["busy.tensor"].item() == pytest.approx(10)


PIPES = {
    f"l1tex__throughput{PCT}": 94.0,
    f"sm__pipe_tensor_cycles_active{PCT}": 93.0,
    f"sm__inst_executed_pipe_lsu{PCT}": 2.0,
    "device__attribute_compute_capability_major": 9.0,
    "device__attribute_compute_capability_minor": 0.0,
}


@pytest.mark.parametrize(
    ("other", "operands_ns"),
    [
        ({}, 860.0),  # L1's 940 less 4 wavefronts for each of the 20 of loads and stores
        ({f"sm__inst_executed_pipe_lsu{PCT}": 24.0}, 0.0),  # mma.sync: loads take all of it
        ({f"sm__pipe_tensor_cycles_active{PCT}": 30.0}, 300.0),  # no more than the tensor pipe
        ({"device__attribute_compute_capability_major": 8.0}, 0.0),  # no such instructions
        ({"device__attribute_compute_capability_major": 10.0}, 0.0),  # tcgen05: L1 counts none of its reads
        ({"device__attribute_compute_capability_major": 11.0}, 0.0),
    ],
)
def test_operands_are_what_loads_do_not_tell_of_shared_memory(other: dict[str, float], operands_ns: float) -> None:
    row = busy_of(PIPES | other).row(0, named=True)
    assert (row["busy.l1"], row["busy.operands"]) == (pytest.approx(940), pytest.approx(operands_ns))


def test_half_of_the_sms_are_as_busy_as_twice_their_average() -> None:
    # 66 blocks on 132 SMs: those that have one do ALU for 80 % of the time, all of them for 40 %; DRAM knows of no SMs
    counters = {f"sm__pipe_alu_cycles_active{PCT}": 40.0, "launch__grid_size": 66.0, "launch__sm_count": 132.0}
    row = busy_of(counters).row(0, named=True)
    assert (row["reached_frac"], row["limiter"]) == (pytest.approx(0.8), "sm")
    assert (row["busy.sm"], row["busy.dram"]) == pytest.approx((400, 100))
    # a counter of the busiest SM: no more than all of the time of half of the SMs
    assert busy_of(counters | {f"sm__pipe_alu_cycles_active{PCT}": 60.0})["busy.sm"].item() == pytest.approx(500)
    # were DRAM's share doubled as well, it would be the limit
    assert busy_of(counters | {f"gpu__dram_throughput{PCT}": 50.0}).row(0, named=True)["limiter"] == "sm"


def test_the_tensor_type_is_that_whose_work_takes_longest() -> None:
    # 60 % of the time at the peak of sparse BF16, 25 % at that of FP16: 85 % where the pipe itself was not counted
    work = (0, "tensor_bf16_sparse", 1.2e15, 2e15, True), (0, "tensor_fp16", 2.5e14, 1e15, True)
    for rows in (work, work[::-1]):
        row = busy_of({f"sm__pipe_alu_cycles_active{PCT}": 40.0}, *rows).row(0, named=True)
        assert (row["tensor_precision"], row["busy.tensor"]) == ("tensor_bf16", pytest.approx(850))


@pytest.mark.parametrize(
    ("dynamic_bytes", "known"), [(2.0**32 - 1025, 2.0**32 - 1), (2.0**32 - 1024, None), (1e25, None)]
)
def test_more_shared_memory_than_a_launch_can_state_is_not_known(dynamic_bytes: float, known: float | None) -> None:
    counters = {
        "launch__shared_mem_per_block_static": 1024.0,
        "launch__shared_mem_per_block_dynamic": dynamic_bytes,
        f"sm__pipe_alu_cycles_active{PCT}": 20.0,
    }
    busy = busy_of(counters)
    assert busy["shared_bytes_per_block"].to_list() == [known]
    (found,) = project(busy, {0: profile_by_name("a100-sxm-80gb")}, [Target(profile_by_name("b200"))]).to_dicts()
    is_too_much = found["reason"] == "a block needs 4194304 KiB of shared memory, but b200 allows 227 KiB"
    assert is_too_much is (known is not None)
    assert (found["duration_ns"] is None) is is_too_much
