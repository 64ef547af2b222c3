"""What Speed of Light and its breakdown tell by themselves, as most reports have them: counters chosen by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.reading import Reports
from tests.support.raw import raw_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


PCT = ".avg.pct_of_peak_sustained_elapsed"
MEMORY, COMPUTE = f"gpu__compute_memory_throughput{PCT}", f"sm__throughput{PCT}"
STAGE, LSU = f"l1tex__data_pipe_lsu_wavefronts{PCT}", f"sm__inst_executed_pipe_lsu{PCT}"
TO_L2, FROM_L2 = f"lts__xbar2lts_cycles_active{PCT}", f"lts__lts2xbar_cycles_active{PCT}"
L2 = f"lts__throughput{PCT}"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"

SCATTERED = {
    "device__attribute_compute_capability_major": 7.0,
    "device__attribute_compute_capability_minor": 5.0,
    "gpu__time_duration.sum": 6e6,
    "launch__shared_mem_per_block_static": 0.0,
    "launch__shared_mem_per_block_dynamic": 0.0,
    "launch__waves_per_multiprocessor": 20.0,
    "sm__cycles_active.avg": 99.0,
    "sm__cycles_elapsed.max": 100.0,
    MEMORY: 48.5,
    COMPUTE: 16.2,
    STAGE: 48.5,
    LSU: 16.2,
    TO_L2: 5.0,
    FROM_L2: 4.0,
    f"gpu__dram_throughput{PCT}": 1.3,
    L1: 97.0,
}
"""Two loads of 6 wavefronts for each multiply-add on a Turing: L1 is full, whose data stage takes two cycles for a wavefront."""

UNNAMED = SCATTERED | {
    "device__attribute_compute_capability_minor": 0.0,
    "device__attribute_compute_capability_major": 8.0,
}
"""The same on a chip whose data stage takes one cycle: half of what fills L1 is not in the report."""


def judged(counters: dict[str, float], name: str = "kernel") -> dict[str, Any]:
    texts = {
        "breakdown:gpu__compute_memory_throughput" + PCT: ",".join(
            name for name in (STAGE, TO_L2, FROM_L2) if name in counters
        ),
        "breakdown:sm__throughput" + PCT: LSU,
    }
    (kernel,) = Reports((raw_report({**counters, **texts}),)).analyse().to_dict()["kernels"]
    return kernel


def test_l1_is_the_limit_where_it_is_full_by_a_part_that_is_not_named() -> None:
    kernel = judged(UNNAMED)
    assert (kernel["verdict"], kernel["limiter"], kernel["confidence"]) == ("memory", "l1", "medium")
    assert kernel["utilisation"]["l1_beyond"] == pytest.approx(0.97 * 0.99)
    assert "l1_beyond_breakdown" in kernel["caveats"]


def test_l1_of_turing_is_full_at_half_of_its_counters() -> None:
    kernel = judged(SCATTERED)
    assert (kernel["verdict"], kernel["limiter"], kernel["confidence"]) == ("memory", "l1", "high")
    assert (kernel["utilisation"]["l1"], kernel["utilisation"]["l1_beyond"]) == (pytest.approx(0.97), None)
    assert "l1_beyond_breakdown" not in kernel["caveats"]
    first = kernel["findings"][0]
    # 48.5 over 16.2, an instruction in two cycles: 6 wavefronts each. The LSU's instructions stay.
    assert kernel["access"]["wavefronts_per_instruction"] == pytest.approx(5.99, abs=0.01)
    # of the time without 2 µs of launch, on the SMs that work, which do for 99 %
    assert (first["id"], first["gain_ns"]) == ("scattered_accesses", pytest.approx((1 - 0.162 / 0.99) * 5.998e6))


def test_l1_that_is_full_leads_however_busy_the_sms_are() -> None:
    busy = SCATTERED | {MEMORY: 40.0, STAGE: 40.0, COMPUTE: 55.0, LSU: 16.2}
    kernel = judged(busy)
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "l1")
    # 96 % of the time L1 is full; the flip is where the SMs would be as busy
    assert kernel["utilisation"]["lead"] == pytest.approx(0.97 * 0.99 - 0.55)


def test_l1_that_is_full_is_the_limit_beside_a_unit_that_is_a_tenth_less_busy() -> None:
    # L1: 97 % of the 99 % of the time in which SMs have work, 96 %
    kernel = judged(UNNAMED | {MEMORY: 85.0, FROM_L2: 85.0})
    assert (kernel["verdict"], kernel["limiter"], kernel["confidence"]) == ("memory", "l1", "medium")
    assert kernel["utilisation"]["l1_beyond"] == pytest.approx(0.97 * 0.99)
    busier = judged(UNNAMED | {MEMORY: 87.0, FROM_L2: 87.0})
    assert busier["limiter"] == "l2"
    assert "l1_beyond_breakdown" not in busier["caveats"]


def test_l1_is_not_where_the_same_counter_says_no_more_than_the_breakdown() -> None:
    assert judged(UNNAMED | {L1: 79.0})["verdict"] == "latency"
    assert judged(UNNAMED | {"device__attribute_compute_capability_major": 9.0})["verdict"] == "latency"


@pytest.mark.parametrize(("memory", "limiter"), [(73.6, None), (61.5, "l2")])
def test_a_unit_far_below_the_total_is_not_the_limit(memory: float, limiter: str | None) -> None:
    """DRAM's counters are not there: L2's way back, at 51.6 %, is the busiest of those that are."""
    kernel = judged(SCATTERED | {MEMORY: memory, L1: 50.0, STAGE: 30.0, FROM_L2: 51.6, L2: 51.6})
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", limiter)
    assert ("l2_traffic" in {finding["id"] for finding in kernel["findings"]}) == (limiter is not None)


def test_what_goes_to_l2_is_the_limit_where_little_comes_back() -> None:
    kernel = judged(SCATTERED | {MEMORY: 60.4, L2: 60.4, STAGE: 5.0, TO_L2: 60.4, FROM_L2: 4.2, LSU: 4.0, COMPUTE: 4.0})
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "l2")
    assert "l1_beyond_breakdown" not in kernel["caveats"]
    assert [finding["id"] for finding in kernel["findings"]] == ["l2_input"]  # it may be a stack in local memory
    read = judged(
        SCATTERED | {L1: 50.0, MEMORY: 70.0, L2: 70.0, STAGE: 5.0, TO_L2: 30.0, FROM_L2: 70.0, LSU: 4.0, COMPUTE: 4.0}
    )
    assert [finding["id"] for finding in read["findings"]] == ["l2_traffic"]


TRANSPOSE = SCATTERED | {
    "device__attribute_compute_capability_major": 12.0,
    "device__attribute_compute_capability_minor": 0.0,
    "launch__block_size": 1024.0,
    "launch__occupancy_limit_warps": 1.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 40.0,
    "sm__maximum_warps_per_active_cycle_pct": 66.7,
    "launch__grid_size": 1000.0,
    "smsp__inst_executed.sum": 23 * 32_000.0,
    L1: 40.0,
    MEMORY: 51.5,
    L2: 51.5,
    TO_L2: 51.5,
    FROM_L2: 3.2,
    STAGE: 22.4,
    LSU: 5.0,
    COMPUTE: 7.5,
    f"gpu__dram_throughput{PCT}": 18.5,
    "derived__local_spilling_requests_pct": 0.0,
    f"lts__d_atomic_input_cycles_active{PCT}": 0.0,
}
"""A load of 4 sectors and a store of 32 in each warp, on compute capability 12.0; places for warps are empty as well."""


def test_stores_down_columns_outweigh_empty_places_for_warps() -> None:
    kernel = judged(TRANSPOSE)
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", "l2")
    # an instruction in two cycles: 2 × 22.4 / 5; DRAM is busy for 18.5 % of the time, and then is the limit
    assert kernel["access"]["wavefronts_per_instruction"] == pytest.approx(8.96)
    gains = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    assert next(iter(gains)) == "scattered_stores"
    assert gains["scattered_stores"] == pytest.approx(5.998e6 - 0.185 * 6e6)
    assert "l2_stores" not in gains  # one cause once


@pytest.mark.parametrize(
    ("changed", "is_reported_as_stores"),
    [
        ({STAGE: 10.0}, True),  # 4 wavefronts: what coalesced stores of 16 bytes take
        ({FROM_L2: 10.0}, True),  # a sixth comes back: it reads as well
        ({f"lts__d_atomic_input_cycles_active{PCT}": 45.0}, True),  # reductions bring nothing back, either
        ({L2: 38.0, TO_L2: 38.0}, False),
    ],
)
def test_scattered_stores_are_not_blamed_where_they_keep_nothing_busy(
    changed: dict[str, float], is_reported_as_stores: bool
) -> None:
    found = [finding["id"] for finding in judged(TRANSPOSE | changed)["findings"]]
    assert "scattered_stores" not in found
    assert ("l2_stores" in found) == is_reported_as_stores


def test_a_kernel_whose_two_sides_are_one_pipe_is_nearest_to_none_of_the_two() -> None:
    one_pipe = SCATTERED | {STAGE: 25.0, L1: 50.0, MEMORY: 81.5, COMPUTE: 81.5, LSU: 81.5}
    kernel = judged(one_pipe)
    assert (kernel["verdict"], kernel["flip"]["becomes"]) == ("balanced", "latency")
    two = judged(one_pipe | {LSU: 70.0, COMPUTE: 80.0})
    assert two["verdict"] == "balanced"
    assert two["flip"]["becomes"] == "memory"


TOTALS = {
    name: SCATTERED[name]
    for name in SCATTERED
    if name not in {MEMORY, COMPUTE, STAGE, LSU, TO_L2, FROM_L2, L1, f"gpu__dram_throughput{PCT}"}
}
"""Of a kernel without shared memory: what is left of it without utilisations."""


@pytest.mark.parametrize(
    ("percent", "limiter", "findings"),
    [
        # one number on both sides, which is of neither DRAM nor L2, is the pipe of memory instructions
        ({MEMORY: 73.51, COMPUTE: 73.49}, "lsu", ["lsu_instructions"]),
        ({MEMORY: 73.51, COMPUTE: 73.40}, "l1", ["l1_traffic", "unnamed_pipe"]),
        ({MEMORY: 73.51, COMPUTE: 73.49, L2: 73.51}, "l2", ["l2_traffic", "unnamed_pipe"]),
    ],
)
def test_two_totals_that_are_one_number_are_the_pipe_of_memory_instructions(
    percent: dict[str, float], limiter: str, findings: list[str]
) -> None:
    other = {f"gpu__dram_throughput{PCT}": 4.4, L2: 5.9, L1: 73.2}
    kernel = judged(TOTALS | other | percent)
    assert (kernel["verdict"], kernel["limiter"]) == ("balanced", limiter)
    assert [finding["id"] for finding in kernel["findings"]] == findings
    if limiter == "lsu":  # which part of the SMs' time is arithmetic is not known
        assert kernel["findings"][0]["gain_ns"] is None


@pytest.mark.parametrize(
    ("launch", "finding"),
    [
        ({"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}, "l1_traffic"),
        ({"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 2e4}, "l1_or_shared"),
        ({"launch__shared_mem_per_block_static": 0.0}, "l1_or_shared"),  # how much dynamically is not known
        ({}, "l1_or_shared"),
    ],
)
def test_l1_is_blamed_where_shared_memory_is_known_not_to_be_used(launch: dict[str, float], finding: str) -> None:
    used = {name: value for name, value in TOTALS.items() if "shared_mem" not in name} | launch
    kernel = judged(used | {MEMORY: 90.0, COMPUTE: 60.0, f"gpu__dram_throughput{PCT}": 7.0, L2: 9.0, L1: 91.0})
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "l1")
    assert [each["id"] for each in kernel["findings"]] == [finding]
    assert ("stage_not_split" in kernel["caveats"]) == (finding == "l1_or_shared")


STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
FULL_L1 = TOTALS | {MEMORY: 70.0, COMPUTE: 60.0, f"gpu__dram_throughput{PCT}": 7.0, L2: 9.0, L1: 91.0}
FULL_L1 |= {"launch__shared_mem_per_block_static": 2048.0, "smsp__average_warp_latency_per_inst_issued.ratio": 20.0}


@pytest.mark.parametrize(
    ("stalls", "limiter", "finding"),
    [
        ({"mio_throttle": 10.0}, "shared", "shared_traffic"),
        ({"mio_throttle": 10.0, "lg_throttle": 7.0}, "shared", "shared_traffic"),
        ({"mio_throttle": 7.0, "lg_throttle": 10.0}, "l1", "l1_traffic"),
        ({"mio_throttle": 7.0, "long_scoreboard": 10.0}, "l1", "l1_or_shared"),  # not what they wait for most
        ({"mio_throttle": 5.0}, "l1", "l1_or_shared"),  # a quarter of the time
        ({"long_scoreboard": 10.0}, "l1", "l1_or_shared"),
    ],
)
def test_the_queue_in_which_warps_wait_tells_shared_memory_from_l1(
    stalls: dict[str, float], limiter: str, finding: str
) -> None:
    kernel = judged(FULL_L1 | {STALLED.format(reason): cycles for reason, cycles in stalls.items()})
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", limiter)
    assert [each["id"] for each in kernel["findings"]] == [finding]
    assert "stage_not_split" in kernel["caveats"]


def test_special_functions_fill_the_queue_of_shared_memory_as_well() -> None:
    waiting = FULL_L1 | {STALLED.format("mio_throttle"): 10.0}
    assert judged(waiting | {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 40.0})["limiter"] == "l1"
    without = judged(waiting | {"launch__shared_mem_per_block_static": 0.0})
    assert (without["limiter"], without["findings"][0]["id"]) == ("l1", "l1_traffic")


@pytest.mark.parametrize(("dynamic", "is_reported"), [(0.0, True), (None, True), (4096.0, False)])
def test_totals_alone_tell_scattered_accesses(dynamic: float | None, is_reported: bool) -> None:
    used = {name: value for name, value in TOTALS.items() if "shared_mem" not in name}
    used |= {"launch__shared_mem_per_block_static": 0.0}
    used |= {} if dynamic is None else {"launch__shared_mem_per_block_dynamic": dynamic}
    kernel = judged(used | {MEMORY: 97.0, COMPUTE: 6.0, f"gpu__dram_throughput{PCT}": 1.0, L2: 2.0, L1: 98.0})
    gains = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    # 0.98 × 0.99 over 0.06: 16 wavefronts for each instruction at least, as where they go down a column
    assert kernel["access"]["wavefronts_per_instruction"] == pytest.approx(16.17)
    assert ("scattered_accesses" in gains) == is_reported
    # no gain where shared memory, whose banks could conflict as well, is not known
    assert gains.get("scattered_accesses") == (pytest.approx((1 - 0.06 / 0.99) * 5.998e6) if dynamic == 0 else None)


@pytest.mark.parametrize(
    ("issue", "limiter", "finding"), [(21.0, None, "unnamed_pipe"), (None, None, "unnamed_pipe"), (79.0, "issue", None)]
)
def test_a_pipe_that_is_far_from_the_sms_total_is_not_their_limit(
    issue: float | None, limiter: str | None, finding: str | None
) -> None:
    # 88 % are some pipe's, and issue slots are what is known of all
    totals = {MEMORY: 47.0, COMPUTE: 88.0, f"gpu__dram_throughput{PCT}": 15.0, L2: 46.0, L1: 50.0}
    totals |= {} if issue is None else {f"sm__issue_active{PCT}": issue}
    kernel = judged(TOTALS | totals)
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", limiter)
    found = [each["id"] for each in kernel["findings"]]
    assert ("unnamed_pipe" in found) == (finding is not None)
    assert ("instruction_issue" in found) == (limiter == "issue")


def test_a_memory_unit_that_is_far_from_its_total_is_not_the_limit() -> None:
    totals = {MEMORY: 90.0, COMPUTE: 30.0, f"gpu__dram_throughput{PCT}": 20.0}
    kernel = judged(TOTALS | totals)
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", None)
    assert judged(TOTALS | totals | {L2: 88.0})["limiter"] == "l2"


@pytest.mark.parametrize(("active", "limiter", "gain_frac"), [(6.0, "imbalance", 0.88), (46.0, "grid", None)])
def test_blocks_that_are_fewer_than_sms_can_be_unequal(active: float, limiter: str, gain_frac: float | None) -> None:
    # One block fits on each of 80 SMs, and 40 have one: were all equally long, the SMs would work for 50 % of the time. Of the
    # time that the longest takes they work for 6 %, less than an eighth of that.
    small = {MEMORY: 3.0, COMPUTE: 1.0, f"gpu__dram_throughput{PCT}": 3.0, L2: 1.0, "sm__cycles_active.avg": active}
    small |= {"launch__waves_per_multiprocessor": 0.5, "launch__grid_size": 40.0, "launch__sm_count": 80.0}
    small |= {"launch__occupancy_limit_shared_mem": 1.0, "launch__block_size": 128.0}
    kernel = judged(TOTALS | small)
    gains = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", limiter)
    assert gains.get("sm_imbalance") == (None if gain_frac is None else pytest.approx(gain_frac * 6e6))


def test_what_is_full_on_the_sms_that_work_is_told_although_the_gpu_waits() -> None:
    # SMs work for 60 % of the time, and L1 for all of that: 59 % of all, below the tree's 60
    some = {name: value for name, value in TOTALS.items() if "waves" not in name} | {"sm__cycles_active.avg": 60.0}
    kernel = judged(some | {MEMORY: 59.4, COMPUTE: 3.0, f"gpu__dram_throughput{PCT}": 18.0, L2: 17.0, L1: 99.0})
    gains = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", None)
    # 0.594 over 0.03: 19.8 wavefronts for each instruction, of which one would do, until DRAM is the limit at 0.18
    assert kernel["access"]["wavefronts_per_instruction"] == pytest.approx(19.8)
    assert gains == {
        "l1_full_on_working_sms": pytest.approx(5.998e6 - 0.18 * 6e6),
        "idle_sms": pytest.approx(0.4 * 6e6),
    }
    assert "l1_full_on_working_sms" not in [
        finding["id"] for finding in judged(some | {MEMORY: 47.0, COMPUTE: 3.0, L1: 78.0})["findings"]
    ]


@pytest.mark.parametrize(
    ("heavy", "whole", "by"),
    [(78.0, 41.0, "integer_fma"), (78.0, 72.0, "fp32")],  # 74 and 12 % are integers
)
def test_the_busier_half_of_the_fma_pipe_is_a_bound_of_uncounted_work(heavy: float, whole: float, by: str) -> None:
    busy = SCATTERED | {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 6.0,
        L1: 10.0,
        COMPUTE: 78.0,
        f"sm__pipe_fmaheavy_cycles_active{PCT}": heavy,
        f"sm__pipe_fma_cycles_active{PCT}": whole,
    }
    kernel = judged(busy)
    assert kernel["utilisation"]["fp32"] == pytest.approx(0.78)
    assert (kernel["min_time_ns"], kernel["min_time_by"]) == (pytest.approx(0.78 * 6e6), by)


@pytest.mark.parametrize(("dram", "limiter"), [(82.0, "dram"), (80.0, "l1")])
def test_the_unit_that_the_total_is_of_is_the_limit(dram: float, limiter: str) -> None:
    # L1 is measured in another pass, which makes it the busier one by a hair.
    kernel = judged(TOTALS | {MEMORY: 82.0, COMPUTE: 30.0, f"gpu__dram_throughput{PCT}": dram, L2: 40.0, L1: 84.0})
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", limiter)


ROWS_OF_16 = {
    "gpu__time_duration.sum": 50_000.0,
    "launch__grid_dim_x": 4096.0,
    "launch__grid_dim_y": 1.0,
    "launch__grid_dim_z": 1.0,
    "launch__block_dim_x": 1.0,
    "launch__block_dim_y": 16.0,
    "launch__block_dim_z": 1.0,
    "launch__occupancy_limit_blocks": 24.0,
    "launch__occupancy_limit_warps": 48.0,
    "sm__maximum_warps_per_active_cycle_pct": 50.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 45.0,
    MEMORY: 40.0,
    COMPUTE: 30.0,
}
"""Half a warp per block, recognised by the line of the kernel's name alone: neither threads per block nor waves were collected."""


def test_blocks_of_half_a_warp_are_told_by_the_kernels_line() -> None:
    kernel = judged(ROWS_OF_16)
    assert kernel["launch"]["n_threads_per_block"] == 16
    assert kernel["launch"]["unused_lane_frac"] == pytest.approx(0.5)
    findings = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    assert findings["blocks_below_a_warp"] == pytest.approx(
        0.5 * 48_000
    )  # one lane in two has no thread; 2 µs are the launch
    assert "partial_warps" not in findings


@pytest.mark.parametrize(
    "launch",
    [
        {
            "sm__warps_active.avg.pct_of_peak_sustained_active": 39.0
        },  # of 50: places are empty, perhaps for want of blocks
        {"launch__waves_per_multiprocessor": 0.9},
        {"launch__block_dim_y": 32.0},
    ],
)
def test_blocks_of_half_a_warp_cost_nothing_where_they_may_be_too_few(launch: dict[str, float]) -> None:
    findings = {finding["id"] for finding in judged(ROWS_OF_16 | launch)["findings"]}
    assert "blocks_below_a_warp" not in findings
