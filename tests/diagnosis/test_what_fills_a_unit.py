"""Advice is for what fills the unit, and each cause is told once: with numbers made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.reading import Reports
from tests.diagnosis.test_constructed_causes import BUSY, LONGEST_SM, on_wgmma
from tests.diagnosis.test_findings import found, listed, row_for
from tests.support.constructed_counters import counters
from tests.support.judged import gains, judged
from tests.support.raw import raw_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


RULES = load_rules()
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"


def names(finding: str, *, limiter: str | None = None, **quantities: float | None) -> set[str]:
    """Return what is found in a row that just meets a finding's conditions, but for what is changed."""
    frame = row_for(RULES.findings[finding], **quantities)
    if limiter is not None:
        frame = frame.with_columns(limiter=pl.lit(limiter))
    return set(listed(frame)["finding"])


# ---- what fills the SMs -----------------------------------------------------------------------------------------------------


def test_packed_halves_are_no_instructions_around_the_work() -> None:
    slots = BUSY.warp_instructions
    assert slots is not None
    of_all = {share: judged(replace(BUSY, fp16=(0, 0, 32 * share * slots))) for share in (0.5, 0.95)}
    assert of_all[0.95]["arithmetic"]["fp16_issue_frac"] == pytest.approx(0.95, rel=1e-3)
    assert {"instruction_issue", "half_issue"} & set(gains(of_all[0.95])) == {"half_issue"}
    # slots are taken in 85 % of the cycles, and 95 % can be of those 98 % in which SMs have work
    assert gains(of_all[0.95])["half_issue"] == pytest.approx((1 - 0.85 / 0.98 / 0.95) * LONGEST_SM, rel=1e-3)
    assert {"instruction_issue", "half_issue"} & set(gains(of_all[0.5])) == {"instruction_issue"}


def indexing(heavy_percent: float, pipe_percent: float, ffma_per_cycle: float | None) -> dict[str, Any]:
    """A kernel whose FMA pipe is the busiest unit: its heavy half, and both halves together, with counted FP32 work."""
    counted = counters(replace(BUSY, name="copy_by_index"))
    fp32 = "smsp__sass_thread_inst_executed_op_f{}_pred_on.sum.per_cycle_elapsed"
    half = "smsp__sass_thread_inst_executed_op_h{}_pred_on.sum.per_cycle_elapsed"
    dropped = {name for name in counted if "_op_f" in name or "_op_h" in name or "_op_d" in name}
    counted = {name: value for name, value in counted.items() if name not in dropped}
    counted |= {f"sm__throughput{ELAPSED}": heavy_percent, f"sm__pipe_fma_cycles_active{ELAPSED}": pipe_percent}
    counted |= {f"sm__pipe_fmaheavy_cycles_active{ELAPSED}": heavy_percent}
    counted |= {f"sm__{name}{ELAPSED}": 50.0 for name in ("issue_active", "inst_executed", "pipe_alu_cycles_active")}
    if ffma_per_cycle is not None:
        counted |= {form.format(kind): 0.0 for form in (fp32, half) for kind in ("add", "mul", "fma")}
        counted |= {fp32.format("fma"): ffma_per_cycle}
        counted |= {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 132 * 128.0}
    return Reports((raw_report(counted, names=["copy_by_index"]),)).analyse().to_dict()["kernels"][0]


@pytest.mark.parametrize(
    ("pipe_percent", "ffma_per_cycle", "expected"),
    [
        (35.5, 0.0, "integer_multiply_adds"),  # one half alone is busy, and nothing was added or multiplied
        (35.5, None, "integer_multiply_adds"),  # the same where FLOP were not counted
        (71.0, 0.71 * 132 * 128, "arithmetic_headroom"),
        (71.0, None, "arithmetic_headroom"),
    ],
)
def test_a_copy_that_multiplies_indices_is_not_told_to_keep_the_pipe_fed(
    pipe_percent: float, ffma_per_cycle: float | None, expected: str
) -> None:
    kernel = indexing(71.0, pipe_percent, ffma_per_cycle)
    limiter = "integer_fma" if expected == "integer_multiply_adds" else "fp32"
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", limiter)
    of_pipe = {"integer_multiply_adds", "arithmetic_headroom", "arithmetic_roof"}
    assert of_pipe & set(gains(kernel)) == {expected}


@pytest.mark.parametrize("frac", [0.62, 0.72, 0.78, 0.79, 0.81, 0.85, 0.87, 0.92, 0.925, 0.95])
def test_of_a_busy_tensor_pipe_there_is_either_headroom_or_a_roof(frac: float) -> None:
    # SMs have work for 98 % of the time: the best kernels keep the pipe busy for 95 % of that; a last percent is not counted
    found_of_pipe = {"arithmetic_headroom", "arithmetic_roof"} & set(gains(judged(on_wgmma(frac))))
    assert found_of_pipe == {"arithmetic_roof" if frac / 0.98 >= 0.99 * 0.95 else "arithmetic_headroom"}


# ---- what memory brings in vain ---------------------------------------------------------------------------------------------


_BOTH = {
    "access.load_bytes_per_sector": 4.0,
    "access.load_sectors_per_request": 32.0,
    "access.load_waste_frac": 0.58,
    "access.store_bytes_per_sector": 4.0,
    "access.store_sectors": 1e6,
    "access.store_waste_frac": 0.29,
    "access.waste_frac": 0.87,
}
"""One wrong index: loads and stores use an eighth of each sector."""


@pytest.mark.parametrize(
    ("verdict", "limiter"), [("memory", "l1"), ("memory", "l2"), ("memory", "dram"), ("latency", "stall")]
)
def test_one_wrong_index_is_told_once(verdict: str, limiter: str) -> None:
    known = _BOTH | {"utilisation.compute": 0.06, "traffic_bytes.dram": 1e9, "access.l2_load_waste_frac": 0.4}
    known |= {"scheduler.l1_busy_frac": 0.2, "access.l2_waste_frac": 0.81, "access.dram_waste_frac": 0.4}

    def told(**other: float) -> set[str]:
        frame = row_for(RULES.findings["uncoalesced_global_store"], **(known | other))
        rows = listed(frame.with_columns(verdict=pl.lit(verdict), limiter=pl.lit(limiter)))
        return {name for name in rows["finding"] if "uncoalesced" in name}

    assert told() == {"uncoalesced_global_access"}
    assert told(**{"access.store_waste_frac": 0.04}) == {"uncoalesced_global_load"}
    assert told(**{"access.load_waste_frac": 0.04}) == {"uncoalesced_global_store"}


@pytest.mark.parametrize("finding", ["serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"])
def test_more_loads_are_not_asked_of_queues_that_are_full(finding: str) -> None:
    stalled = {"limiter.stall": "long_scoreboard"}
    assert finding in found(row_for(RULES.findings[finding], **stalled, **{"scheduler.memory_queue_frac": 0.2}))
    of_full = found(row_for(RULES.findings[finding], **stalled, **{"scheduler.memory_queue_frac": 0.43}))
    assert finding not in of_full
    assert "stall_full_queues" in of_full


def test_room_in_the_queues_is_counted_of_both() -> None:
    waits = {"long_scoreboard": 0.4, "lg_throttle": 0.2, "mio_throttle": 0.25}
    kernel = judged(replace(BUSY, stalls=waits))
    assert kernel["scheduler"]["memory_queue_frac"] == pytest.approx(0.45, rel=1e-3)


@pytest.mark.parametrize(("asked_over_read", "is_reported"), [(0.5, True), (0.58, True), (0.6, False), (1.0, False)])
def test_dram_that_brings_two_sectors_for_one_is_told(asked_over_read: float, is_reported: bool) -> None:
    bytes_moved = {
        "traffic_bytes.dram_read": 0.9e9,
        "traffic_bytes.dram": 1e9,
        "utilisation.dram": 0.8,
        "utilisation.l2": 0.5,
    }
    ratio = {"access.l2_read_over_dram_read": asked_over_read}
    assert ("fetch_granularity" in names("fetch_granularity", limiter="dram", **bytes_moved, **ratio)) == is_reported


# ---- what is reported twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "is_reported"),
    [
        ({"occupancy.waves": 12.0}, True),
        ({"occupancy.waves": 1.94, "occupancy.tail_frac": 0.03}, False),
        ({"occupancy.waves": 1.0, "occupancy.tail_frac": 0.0}, True),  # no block is missing from the last wave
        ({"occupancy.waves": 1.0, "occupancy.tail_frac": 0.0, "duration_ns": 5e3}, False),
        ({"occupancy.waves": 1.2, "occupancy.tail_frac": 0.4, "scheduler.unequal_frac": 0.3}, True),
        ({"occupancy.waves": 1.2, "occupancy.tail_frac": 0.4, "scheduler.unequal_frac": 0.0}, False),
        ({"occupancy.waves": 0.02, "scheduler.unequal_frac": 0.3, "launch.blocks_per_sm": 0.04}, False),
        ({"occupancy.waves": 0.6, "scheduler.unequal_frac": 0.3, "launch.blocks_per_sm": 0.6}, True),
    ],
)
def test_sms_that_the_last_wave_leaves_idle_have_no_unequal_work(changed: dict[str, float], is_reported: bool) -> None:
    assert ("sm_imbalance" in names("sm_imbalance", **changed)) == is_reported


@pytest.mark.parametrize("name", ["void at::native::vectorized_elementwise_kernel<4>", "multi_tensor_apply_kernel"])
def test_elementwise_kernels_have_no_rows_to_sort(name: str) -> None:
    frame = row_for(RULES.findings["sm_imbalance"]).with_columns(name=pl.lit(name))
    assert "sm_imbalance" not in found(frame)


@pytest.mark.parametrize(
    ("name", "is_collective"),
    [
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, (int)8>(AllReduceParams)", True),
        ("void c10d::symmetric_memory::one_shot_all_reduce_kernel<float>(T1 **)", True),
        ("all_reduce(float *)", True),
        ("_all_reduce_fused_kernel", True),
        ("nvlinkAllReduce(float *)", True),
        ("allgather_kernel(float *)", True),
        ("quick_all_reduce(float *)", True),
        ("corpAllReduce(float *)", True),
        ("interp_all_reduce(float *)", True),
        ("k_all_reduce(float *)", True),
        ("block__all_reduce(float *)", False),
        ("sharp_allreduce(float *)", True),
        ("void block_all_reduce_sum_f32_f32_kernel<(int)256>(float *, float *, int)", False),
        ("void f<oneflow::cuda::softmax::BlockAllReduce<SumOp, float, (int)256>>(float *)", False),
        ("void g<WelfordWarpAllReduce<float>>(float *)", False),
        ("warp_allreduce_sum(float *)", False),
    ],
)
def test_a_reduction_of_a_block_moves_nothing_between_gpus(name: str, *, is_collective: bool) -> None:
    frame = row_for(RULES.findings["remote_memory"]).with_columns(name=pl.lit(name))
    expected = "remote_transfer" if is_collective else "remote_memory"
    assert set(found(frame)) & {"remote_transfer", "remote_memory"} == {expected}


@pytest.mark.parametrize("finding", ["stall_lg_throttle", "stall_drain"])
@pytest.mark.parametrize("hottest_frac", [None, 0.5, 0.97])
def test_atomics_that_collide_are_told_once(finding: str, hottest_frac: float | None) -> None:
    waits = {"stalls.lg_throttle": 0.5, "stalls.drain": 0.4, "utilisation.dram": 0.1}
    of_kernel = names(finding, **waits, **{"access.colliding_atomics_frac": hottest_frac})
    assert (finding in of_kernel) == (hottest_frac != 0.97)
    assert ("colliding_atomics" in of_kernel) == (hottest_frac == 0.97)


@pytest.mark.parametrize(
    ("name", "is_reported"),
    [
        ("void at::native::<unnamed>::cunn_SoftMaxForwardReg<float, 4, at::native::<unnamed>::SoftMaxForwardEpilogue>", True),
        ("void at::native::<unnamed>::cunn_SoftMaxForward<8, at::native::<unnamed>::LogSoftMaxForwardEpilogue>", False),
        ("void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)0, (bool)0>(float *)", True),
        ("void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)1, (bool)0>(float *)", False),
        ("triton_per_fused__softmax_2", True),
        ("triton_per_fused__log_softmax_nll_loss_2", False),
        ("my_softmax(float *)", False),
    ],
)  # fmt: skip
def test_a_softmax_by_itself_may_be_attention(name: str, is_reported: bool) -> None:
    frame = row_for(RULES.findings["softmax_of_attention"]).with_columns(name=pl.lit(name))
    assert ("softmax_of_attention" in found(frame)) == is_reported
    between = frame.with_columns(pl.lit(1.0).alias("launch.is_between_products"))
    assert ("attention_in_parts" in found(between)) == is_reported
    assert "softmax_of_attention" not in found(between)
    assert "attention_in_parts" not in found(frame)
    assert "scaled_dot_product_attention" in RULES.findings["softmax_of_attention"].advice.text("pytorch")


def test_a_product_that_mostly_writes_is_told_of_a_consumer_to_fuse() -> None:
    assert "scaled_dot_product_attention" in RULES.findings["write_back"].advice.text("cublas")
