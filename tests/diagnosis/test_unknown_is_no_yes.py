"""A finding claims only what was counted: each condition that lets a missing quantity through has a reason here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ncuroof.diagnosis.rules import load_rules
from ncuroof.reading import Reports
from tests.support.by_hand import chip
from tests.support.raw import raw_report

_OTHER = "only makes way for a finding that says more; its own title and advice claim nothing of the quantity"
_NO_LIMIT = "the title states what was counted, and without the quantity no gain is stated"
_NEIGHBOURS = "null where no launch beside it is known, as for a kernel profiled alone"
_GENERAL = "its title is the general one, of a stall or a pipe that was counted"

REASONS: dict[str, tuple[str, set[str]]] = {
    "access.async_copy_frac": (_OTHER, {"scattered_load_requests"}),
    "access.async_sectors_per_lookup": (_OTHER, {"uncoalesced_global_access"}),
    "access.atomic_request_frac": (
        "the bytes per sector of stores are known, and atomics are none of them",
        {"coalesced_l2_stores"},
    ),
    "access.bulk_copy_frac": (
        _GENERAL + "; chips without TMA, and those whose TMA is idle, have 0",
        {
            "low_occupancy",
            "low_occupancy_of_one_wave",
            "serial_loads",
            "stall_long_scoreboard",
            "stall_full_queues",
            "stall_overlapping_loads",
        },
    ),
    "access.colliding_atomics_frac": (_OTHER, {"stall_lg_throttle", "stall_drain"}),
    "access.excess_sectors_frac": ("the advice names both causes, and no gain is stated", {"partly_used_sectors"}),
    "access.generator_setup_frac": (_OTHER, {"lsu_instructions", "predicated_off"}),
    "access.idle_warp_frac": (_OTHER, {"small_grid", "little_work_per_thread", "idle_warps"}),
    "access.l2_input_share": (_NO_LIMIT, {"l2_traffic", "l2_traffic_of_few_blocks"}),
    "access.l2_load_waste_frac": (_NO_LIMIT, {"uncoalesced_global_load"}),
    "access.l2_store_waste_frac": (_NO_LIMIT, {"uncoalesced_global_store"}),
    "access.load_instruction_frac": ("states no gain; loads of 4 bytes per lane were counted", {"narrow_loads"}),
    "access.load_waste_frac": (_NO_LIMIT, {"uncoalesced_global_load"}),
    "access.loads_by_code": (_GENERAL, {"stall_long_scoreboard"}),
    "access.local_frac": (
        "coalesced stores are counted apart from local memory; the advice on scattered accesses names it",
        {"scattered_accesses", "coalesced_l2_stores"},
    ),
    "access.remote_traffic_frac": (_OTHER, {"stall_lg_throttle"}),
    "access.scattered_stores_per_warp": (
        "null where nothing is stored; the advice rests on adjacent loads in the machine code",
        {"uncoalesced_global_load", "uncoalesced_global_access", "scattered_accesses"},
    ),
    "access.serial_copy_wait_frac": (
        _OTHER,
        {"serial_loads", "stall_long_scoreboard", "stall_full_queues", "stall_overlapping_loads"},
    ),
    "access.shared_wavefront_share": (_NO_LIMIT, {"bank_conflicts"}),
    "access.shared_wavefronts": (_OTHER, {"lsu_instructions"}),
    "access.store_sectors": (_NO_LIMIT, {"uncoalesced_global_store"}),
    "access.store_sectors_per_request": (
        "null where nothing is stored; the advice rests on the block's rows and the loads",
        {"uncoalesced_global_load", "uncoalesced_global_access"},
    ),
    "access.store_waste_frac": (
        "the advice says how to tell scattered stores from coalesced ones",
        {"uncoalesced_global_store", "l2_stores"},
    ),
    "access.stored_over_dram_read": (_OTHER, {"large_working_set", "lsu_instructions"}),
    "access.unsplit_shared_bytes": ("it asks to collect just this", {"l1_or_shared"}),
    "access.wavefronts_per_instruction": (_OTHER, {"l2_stores"}),
    "arithmetic.fp16_issue_frac": (_OTHER, {"instruction_issue"}),
    "arithmetic.fp32_unfused_frac": (
        "its name says that it is a product or convolution",
        {"idle_tensor_cores", "idle_tensor_cores_of_halves", "convolution_without_tensor_cores"},
    ),
    "arithmetic.fp64_lead": (
        "null only where neither pipe is known, and then the FMA pipe is not claimed to be busy",
        {"idle_tensor_cores", "idle_tensor_cores_of_halves"},
    ),
    "arithmetic.integer_fma_frac": (
        "null where another pipe is the busiest; integer arithmetic is arithmetic too",
        {"arithmetic_roof", "arithmetic_headroom"},
    ),
    "check.debug_build": (
        "null without machine code; a debug build would only explain the same traffic",
        {"local_memory", "local_memory_of_unknown_share", "local_memory_by_code", "integer_pipe"},
    ),
    "device.tf32_speedup": ("null where the data sheet states none: it has no TF32", {"idle_tensor_cores_of_halves"}),
    "duration_ns": (_OTHER, {"idle_warps"}),
    "launch.blocks_per_sm": ("the imbalance itself was measured", {"sm_imbalance"}),
    "launch.fusable_frac": (_NEIGHBOURS, {"unfused_pointwise"}),
    "launch.fused_loss_frac": (_NEIGHBOURS, {"unfused_pointwise", "type_conversion", "layout_copy", "fill"}),
    "launch.fused_step_frac": (_NEIGHBOURS, {"pointwise_chain"}),
    "launch.is_between_products": (_NEIGHBOURS, {"softmax_of_attention"}),
    "launch.is_of_optimizer": (_NEIGHBOURS, {"unfused_pointwise"}),
    "launch.is_pointwise_of_attention": (_NEIGHBOURS, {"unfused_pointwise"}),
    "launch.n_warps": (_OTHER, {"small_grid", "blocks_below_a_warp", "partial_warps"}),
    "launch.own_shared_bytes_per_block": (
        "the advice names both causes, and no gain is stated",
        {"scattered_accesses"},
    ),
    "occupancy.most_waves": (_OTHER, {"idle_sms", "l2_traffic"}),
    "occupancy.waves": ("another condition shows that warp slots are filled", {"blocks_below_a_warp"}),
    "scheduler.memory_queue_frac": (_OTHER, {"serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"}),
    "scheduler.n_instructions_per_warp": (_OTHER, {"lsu_instructions"}),
    "scheduler.partial_wave_busy_frac": (_NO_LIMIT, {"partial_warps"}),
    "scheduler.unequal_frac": ("the title speaks of blocks and waves, which were counted", {"tail_wave"}),
    "scheduler.xu_queue_frac": (_OTHER, {"stall_mio_throttle", "stall_mixed"}),
    "stalls.barrier": (_OTHER, {"lsu_instructions"}),
    "stalls.gmma": (_OTHER, {"stall_barrier"}),
    "stalls.lg_throttle": ("it asks to collect what fills the stage", {"l1_or_shared"}),
    "utilisation.atomic": ("its title names atomics beside stores", {"l2_stores"}),
    "utilisation.busiest": (_NO_LIMIT, {"small_grid"}),
}
"""Why a condition on a quantity may hold where the quantity is missing, and the findings whose conditions say so."""


def let_through() -> Iterator[tuple[str, str]]:
    """Yield the quantity and the finding of each condition with "or unknown"."""
    for finding in load_rules().findings.values():
        of_variants = (condition for variant in finding.advice.variants for condition in variant.all_of)
        for condition in (*finding.all_of, *finding.any_of, *of_variants):
            if condition.if_unknown and condition.op is not None:
                yield condition.quantity, finding.id


def test_every_condition_that_lets_unknown_through_has_a_reason() -> None:
    allowed = {(quantity, finding) for quantity, (_, findings) in REASONS.items() for finding in findings}
    assert set(let_through()) == allowed


PCT = ".avg.pct_of_peak_sustained_elapsed"
SENDING = {
    **chip(86),
    "gpu__time_duration.sum": 1e6,
    f"gpu__compute_memory_throughput{PCT}": 90.0,
    f"sm__throughput{PCT}": 20.0,
    f"lts__throughput{PCT}": 90.0,
    f"lts__xbar2lts_cycles_active{PCT}": 90.0,
    f"lts__lts2xbar_cycles_active{PCT}": 10.0,
}
"""L2 is full with what comes from the SMs, and nothing tells what that is."""


def findings(**counters: float) -> list[dict[str, Any]]:
    (kernel,) = Reports((raw_report(SENDING | counters),)).analyse().to_dict()["kernels"]
    found: list[dict[str, Any]] = kernel["findings"]
    return found


def ids(**counters: float) -> set[str]:
    return {finding["id"] for finding in findings(**counters)}


def test_what_fills_l2_from_the_sms_is_not_called_stores_where_nothing_tells() -> None:
    (found,) = (each for each in findings() if each["id"] == "l2_input")
    assert found["gain_ns"] is None
    assert all(word in found["advice"] for word in ("local memory", "atomics", "stores"))
    assert "l2_stores" not in ids()


@pytest.mark.parametrize(
    "counters",
    [
        {"memory_l2_theoretical_sectors_local": 9e6, "memory_l2_theoretical_sectors_global": 1e5},
        {"smsp__sass_inst_executed_op_local_ld.sum": 3e6, "smsp__sass_inst_executed_op_local_st.sum": 3e6}
        | {"smsp__sass_inst_executed_op_global_ld.sum": 1e5, "smsp__sass_inst_executed_op_global_st.sum": 1e4},
        {"smsp__inst_executed_op_local_ld.sum": 3e6, "smsp__inst_executed_op_local_st.sum": 1e6}
        | {"smsp__inst_executed_op_global_ld.sum": 9e4, "smsp__inst_executed_op_global_st.sum": 1e4},
        {"derived__local_spilling_requests": 4e6, "derived__local_spilling_requests_pct": 97.0},
    ],
    ids=["addresses", "executed by kind", "executed", "printed spills"],
)
def test_a_stack_in_local_memory_is_told_from_stores_by_whatever_was_counted(counters: dict[str, float]) -> None:
    found = ids(**counters)
    assert "local_memory" in found
    assert not found & {"l2_stores", "l2_input", "scattered_stores"}


def test_stores_are_called_so_where_local_memory_is_known_to_be_little() -> None:
    known = {"memory_l2_theoretical_sectors_local": 0.0, "memory_l2_theoretical_sectors_global": 9e6}
    assert "l2_stores" in ids(**known)


def test_idle_sms_are_not_claimed_without_their_active_cycles() -> None:
    stage = {f"l1tex__data_bank_reads{PCT}": 85.0, f"gpu__compute_memory_throughput{PCT}": 40.0}
    assert "l1_full_on_working_sms" not in ids(**stage)
    counted = {"sm__cycles_active.avg": 50.0, "sm__cycles_elapsed.max": 100.0}
    assert "l1_full_on_working_sms" in ids(**stage, **counted)


def test_no_gain_is_stated_for_l2_traffic_of_unknown_direction() -> None:
    unknown = {f"lts__xbar2lts_cycles_active{PCT}", f"lts__lts2xbar_cycles_active{PCT}"}
    counters = {name: value for name, value in SENDING.items() if name not in unknown}
    (kernel,) = Reports((raw_report(counters),)).analyse().to_dict()["kernels"]
    gains = {each["id"]: each["gain_ns"] for each in kernel["findings"]}
    assert gains["l2_traffic"] is None
