"""Schedulers, blocks of unequal length, checks and the instruction roofline, by each formula of the catalogue, worked by hand."""

from __future__ import annotations

from tests.support.by_hand import ACTIVE, ELAPSED, HALF_ACTIVE, ByHand, Counters, chip, each_row_holds

NS = "gpu__time_duration.sum"
SMSP, SM, L1, GPC = (f"{unit}__cycles_elapsed.avg.per_second" for unit in ("smsp", "sm", "l1tex", "gpc"))
DRAM_CLOCK, DRAM_RATE = "dram__cycles_elapsed.avg.per_second", "dram__bytes.sum.per_second"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
AVERAGE, LONGEST = "sm__cycles_active.avg", "sm__cycles_active.max"
DRAM, MEMORY, COMPUTE = (
    f"gpu__dram_throughput{ELAPSED}",
    f"gpu__compute_memory_throughput{ELAPSED}",
    f"sm__throughput{ELAPSED}",
)
L1_BUSY, ISSUE = f"l1tex__data_bank_reads{ELAPSED}", f"sm__issue_active{ELAPSED}"
XU, XU_ACTIVE = f"sm__inst_executed_pipe_xu{ELAPSED}", f"sm__inst_executed_pipe_xu{ACTIVE}"
PIPES = (
    "sm__pipe_fma_cycles_active",
    "sm__pipe_fp64_cycles_active",
    "sm__inst_executed_pipe_fp16",
    "sm__pipe_tensor_cycles_active",
)
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
A_THIRD_OF_SMS = {"launch__sm_count": 44.0, "device__attribute_multiprocessor_count": 132.0}
WARPS, THEORETICAL = f"sm__warps_active{ACTIVE}", "sm__maximum_warps_per_active_cycle_pct"
STALLED, LATENCY = (
    "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", "smsp__average_warp_latency_per_inst_issued.ratio",
)  # fmt: skip
TEN_SMS = {"launch__sm_count": 10.0, "launch__grid_size": 105.0, "launch__waves_per_multiprocessor": 5.25}
RESIDENT, WAVES = "launch__occupancy_limit_warps", "launch__waves_per_multiprocessor"
ALL_SMS = "device__attribute_multiprocessor_count"
TWO_RESIDENT = {RESIDENT: 2.0, NS: 200_000.0}
L2_LOOKUPS = {"lts__t_sectors_lookup_hit.sum": 70.0, "lts__t_sectors_lookup_miss.sum": 40.0}
SMS_LOOKUPS = {f"lts__t_sectors_srcunit_tex_lookup_{kind}.sum": n for kind, n in (("hit", 70.0), ("miss", 40.0))}
INSTRUCTIONS, RATE, SHARE = (
    "smsp__inst_executed.sum", "sm__inst_executed.avg.per_cycle_elapsed", f"sm__inst_executed{ELAPSED}",
)  # fmt: skip
TEN_OF_A_CHIP = {ALL_SMS: 10.0, **chip(90)}


def _active(average: float, longest: float, elapsed: float = 600.0) -> Counters:
    return {AVERAGE: average, LONGEST: longest, "sm__cycles_elapsed.max": elapsed}


ROWS: list[ByHand] = [
    *(
        row
        for name, counter, of_sm, pascal in (
            ("issue_per_cycle", "smsp__issue_active", "sm__inst_issued", "smsp__issue_active_avg_per_active_cycle"),
            ("n_active_warps", "smsp__warps_active", "sm__warps_active", "smsp__active_warps_avg_per_active_cycle"),
        )
        for row in (
            (f"scheduler.{name}", {f"{counter}.avg.per_cycle_active": 0.7, f"{of_sm}.avg.per_cycle_active": 2}, 0.7),
            (f"scheduler.{name}", {f"{of_sm}.avg.per_cycle_active": 2, pascal: 0.3}, 0.5),  # of four schedulers
            (f"scheduler.{name}", {pascal: 0.3}, 0.3),
        )
    ),
    ("scheduler.n_eligible_warps", {"smsp__warps_eligible.avg.per_cycle_active": 1.7}, 1.7),
    ("scheduler.n_eligible_warps", {"smsp__eligible_warps_avg_per_active_cycle": 1.3}, 1.3),
    ("scheduler.n_threads_per_instruction", {"smsp__thread_inst_executed_per_inst_executed.ratio": 23}, 23),
    ("scheduler.n_threads_per_instruction", {"smsp__thread_inst_executed_per_inst_executed": 29}, 29),
    ("scheduler.n_predicated_on_threads_per_instruction", {"smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 19}, 19),
    ("scheduler.long_scoreboard_cycles", {STALLED.format("long_scoreboard"): 17}, 17),
    # 3 + 5 of 20 cycles
    ("scheduler.memory_queue_frac", {STALLED.format("lg_throttle"): 3, STALLED.format("mio_throttle"): 5, LATENCY: 20}, 0.4),
    ("scheduler.memory_queue_frac", {STALLED.format("lg_throttle"): 13, STALLED.format("mio_throttle"): 17, LATENCY: 20}, 1),
    # ---- instructions: 600 by 5 blocks of two warps
    ("scheduler.n_instructions_per_warp", {INSTRUCTIONS: 600, "launch__grid_size": 5, "launch__block_size": 33}, 60),
    ("instructions.warp_executed", {INSTRUCTIONS: 7, "sm__inst_executed.sum": 5}, 7),
    ("instructions.warp_executed", {"sm__inst_executed.sum": 5, "inst_executed": 3}, 5),
    ("instructions.warp_executed", {"inst_executed": 3, RATE: 2, "sm__cycles_elapsed.sum": 100}, 3),
    ("instructions.warp_executed", {RATE: 2, "sm__cycles_elapsed.sum": 100, **TEN_OF_A_CHIP, SM: 1.5e9, NS: 200}, 200),
    # 2 per cycle of 10 SMs in 300 cycles; half of the 4 that each could issue
    ("instructions.warp_executed", {RATE: 2, **TEN_OF_A_CHIP, SM: 1.5e9, NS: 200}, 6000),
    ("instructions.warp_executed", {SHARE: 50, "sm__cycles_elapsed.sum": 100, **TEN_OF_A_CHIP, SM: 1.5e9, NS: 200}, 200),
    ("instructions.warp_executed", {SHARE: 50, **TEN_OF_A_CHIP, SM: 1.5e9, NS: 200}, 6000),
    ("instructions.warp_per_s", {INSTRUCTIONS: 600, NS: 200}, 3e9),
    # four schedulers of 7 SMs at 1.5 GHz
    ("instructions.peak_warp_per_s", {**TEN_OF_A_CHIP, "launch__sm_count": 7, SM: 1.5e9}, 42e9),
    ("instructions.frac", {**TEN_OF_A_CHIP, SM: 1.5e9, INSTRUCTIONS: 600, NS: 200}, 0.05),
    # ---- time in which SMs have work
    ("scheduler.sm_active_frac", {**_active(300, 400), "gpc__cycles_elapsed.max": 900}, 0.5),
    ("scheduler.sm_active_frac", {AVERAGE: 300, "gpc__cycles_elapsed.max": 900}, 1 / 3),
    ("scheduler.sm_active_frac", _active(700, 700), 1),
    ("scheduler.sm_active_frac", {AVERAGE: 700, "gpc__cycles_elapsed.max": 600}, 1),
    ("scheduler.own_sm_active_frac", {**_active(150, 600), **A_THIRD_OF_SMS}, 0.75),
    ("scheduler.own_sm_active_frac", {**_active(300, 600), **A_THIRD_OF_SMS}, 1),
    ("scheduler.own_sm_active_frac", _active(150, 600), 0.25),
    *(  # half a wave of five is empty: 0.1
        ("occupancy.idle_tail_frac", {**_active(n_active, 600), "launch__waves_per_multiprocessor": 4.5}, idle)
        for n_active, idle in ((540, 0.1), (545, 55 / 600), (547, None), (535, 65 / 600), (533, None))
    ),
    ("scheduler.any_sm_frac", {**_active(12, 600), ALL_SMS: 10}, 0.2),
    ("scheduler.any_sm_frac", {**_active(120, 600), ALL_SMS: 10}, 1),
    # the longest SM, the GPCs' cycles, or 2 of 10 µs for the launch
    ("scheduler.working_frac", {**_active(150, 480), NS: 20_000}, 0.8),
    ("scheduler.working_frac", {LONGEST: 480, "gpc__cycles_elapsed.max": 800, NS: 20_000}, 0.6),
    ("scheduler.working_frac", {**_active(150, 570), NS: 10_000}, 0.8),
    ("scheduler.working_frac", {NS: 1000}, 0),
    *(
        row
        for name, counter in (("l1", L1_BUSY), ("compute", COMPUTE), ("issue", ISSUE), ("dram", DRAM))
        for row in (
            (f"scheduler.{name}_busy_frac", {counter: 30, **HALF_ACTIVE}, 0.6),
            # DRAM alone can be busy while no SM has work: 70 % of all time, of which SMs have work for 50 %
            (f"scheduler.{name}_busy_frac", {counter: 70, **HALF_ACTIVE}, 0.7 if name == "dram" else 1),
            (f"scheduler.{name}_busy_frac", {counter: 30}, 0.3),
        )
    ),
    ("scheduler.compute_over_best", {COMPUTE: 38, **HALF_ACTIVE}, 0.8),
    ("scheduler.compute_over_best", {COMPUTE: 38, PIPES[1] + ELAPSED: 30, **HALF_ACTIVE}, 0.8),
    ("scheduler.compute_over_best", {COMPUTE: 36.8, PIPES[1] + ELAPSED: 36.8, **HALF_ACTIVE}, 0.8),  # FP64
    *(("scheduler.partial_wave_busy_frac", {MEMORY: 10, COMPUTE: 12, WAVES: waves, **HALF_ACTIVE}, busy)
      for waves, busy in ((0.9, 0.24), (1, None))),
    ("scheduler.partial_wave_busy_frac", {MEMORY: 30, COMPUTE: 12, WAVES: 0.9, **HALF_ACTIVE}, 0.3),
    ("scheduler.partial_wave_busy_frac", {MEMORY: 10, COMPUTE: 12, L1_BUSY: 20, WAVES: 0.9, **HALF_ACTIVE}, 0.4),
    ("scheduler.dram_busy_frac", {DRAM: 50.9, **HALF_ACTIVE}, 1),  # within what passes differ by
    ("scheduler.dram_busy_frac", {DRAM: 51.1, **HALF_ACTIVE}, 0.511),
    ("scheduler.dram_busy_frac", {DRAM: 60, **_active(150, 600), **A_THIRD_OF_SMS}, 0.8),
    # busy for 68.25 %, 70.5 % or 74.25 % of the time: three quarters of what kernels with such a share of writes reached
    *(
        ("scheduler.dram_over_best", {DRAM: busy / 2, READ: 1000 - written, WRITTEN: written, **HALF_ACTIVE}, 0.75)
        for written, busy in (
            *((390, 74.25), (410, 70.5), (440, 70.5), (460, 68.25), (540, 68.25), (560, 70.5), (590, 70.5), (610, 74.25)),
            *((0, 74.25), (1000, 74.25)),
        )
    ),
    ("scheduler.dram_over_best", {DRAM: 37.125, **HALF_ACTIVE}, 0.75),
    *(
        ("scheduler.dram_over_best", {DRAM: 49.9, READ: 1000 - written, WRITTEN: written, **HALF_ACTIVE}, 1)
        for written in (0, 420, 500)
    ),
    *(
        ("scheduler.pipe_busy_frac", {pipe + ELAPSED: 40 if pipe == busiest else 10 for pipe in PIPES} | time, busy)
        for busiest in PIPES
        for time, busy in ((HALF_ACTIVE, 0.8), ({}, 0.4))
    ),
    ("scheduler.pipe_busy_frac", {PIPES[0] + ELAPSED: 60, **HALF_ACTIVE}, 1),
    ("scheduler.xu_busy_frac", {XU_ACTIVE: 70, XU: 30, **HALF_ACTIVE}, 0.7),
    ("scheduler.xu_busy_frac", {XU: 30, **HALF_ACTIVE}, 0.6),
    ("scheduler.xu_queue_frac", {XU_ACTIVE: 70, SHARED.format("ld"): 0, SHARED.format("st"): 0, **chip(80)}, 0.7),
    ("scheduler.xu_queue_frac", {XU_ACTIVE: 70, SHARED.format("ld"): 1, SHARED.format("st"): 0, **chip(80)}, 0),
    ("scheduler.xu_queue_frac", {SHARED.format("ld"): 1, SHARED.format("st"): 0, **chip(80)}, None),
    ("scheduler.xu_queue_frac", {XU_ACTIVE: 70}, None),
    # ---- unequal blocks. 5.25 waves of two blocks per SM: the last leaves half a place, so that half of the SMs idle for a sixth,
    # 11/12; 10.5 blocks per SM take as long as 11, 21/22. The lesser, 11/12, against 0.55 or all SMs' 0.55 / 0.8
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(330, 600)}, 0.4),
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(330, 600), RESIDENT: 8}, 1 - 0.55 * 22 / 21),
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(264, 600), ALL_SMS: 12.5}, 0.4),
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(600, 600)}, 0),
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(330, 600), NS: 119_000}, None),  # six waves of 20 µs
    ("scheduler.unequal_frac", {**TEN_SMS, **TWO_RESIDENT, **_active(330, 600), NS: 121_000}, 0.4),
    ("scheduler.unequal_frac",
     {**TEN_SMS, **TWO_RESIDENT, **_active(330, 600), WAVES: 3.25, NS: 99_000}, None),
    ("scheduler.unequal_frac", {**TEN_SMS, **_active(330, 600), NS: 200_000}, None),
    ("scheduler.sm_imbalance_frac", {**_active(150, 600), **A_THIRD_OF_SMS}, 0.25),
    ("scheduler.sm_imbalance_frac", {**_active(450, 600), **A_THIRD_OF_SMS}, 0),
    ("scheduler.sm_imbalance_frac", _active(450, 600), 0.25),
    ("scheduler.sm_imbalance_frac", {**TEN_SMS, **TWO_RESIDENT, AVERAGE: 330, "sm__cycles_elapsed.max": 600}, 0.4),
    # achieved 30 of 60 %, for half of the time: three quarters of the places are empty; or half, beside a unit that is full
    ("occupancy.empty_frac", {WARPS: 30, THEORETICAL: 60, **HALF_ACTIVE}, 0.75),
    *(
        ("occupancy.empty_frac", {WARPS: 30, THEORETICAL: 60, full: 41, MEMORY: 30, **HALF_ACTIVE}, 0.5)
        for full in (L1_BUSY, COMPUTE, DRAM)
    ),
    ("occupancy.empty_frac", {WARPS: 30, THEORETICAL: 60, COMPUTE: 39, MEMORY: 30, **HALF_ACTIVE}, 0.75),
    ("occupancy.empty_frac", {WARPS: 30, THEORETICAL: 60, L1_BUSY: 41, **HALF_ACTIVE}, 0.75),
    # half of the places, for three quarters of the time of a third of the SMs
    ("occupancy.empty_frac", {WARPS: 30, THEORETICAL: 60, **_active(150, 600), **A_THIRD_OF_SMS}, 0.625),
    ("occupancy.empty_frac", {WARPS: 66, THEORETICAL: 60, **_active(600, 600)}, 0),
    # ---- counters that must agree: 7000 + 5000 bytes against 3 GB/s for 2 or 5 µs
    ("check.dram_closure_frac", {READ: 7000, WRITTEN: 5000, DRAM_RATE: 3e9, NS: 2000}, 0.5),
    ("check.dram_closure_frac", {READ: 7000, WRITTEN: 5000, DRAM_RATE: 3e9, NS: 5000}, 0.25),
    ("check.dram_write_share", {READ: 7000, WRITTEN: 3000}, 0.3),
    *(
        ("check.clock_drift_frac", {SMSP: 1e9, SM: 1e9, L1: 1e9, GPC: 1e9, odd: clock}, 0.25)
        for odd in (SMSP, SM, L1, GPC)
        for clock in (1.25e9, 0.8e9)
    ),
    ("check.clock_drift_frac", {DRAM_CLOCK: 6e9, "device__attribute_memory_clock_rate": 5e6}, 0.2),
    ("check.clock_drift_frac", {GPC: 1e9, "gpc__cycles_elapsed.max": 2500, NS: 2000}, 0.25),
    ("check.clock_drift_frac", {GPC: 1e9, "gpc__cycles_elapsed.max": 1500, NS: 2000}, 0.25),
    ("check.clock_over_boost_frac", {SM: 1.5e9, "device__attribute_clock_rate": 2e6}, 0.75),
    ("check.highest_hit_frac", {"l1tex__t_sector_hit_rate.pct": 30, "lts__t_sector_hit_rate.pct": 70}, 0.7),
    ("check.highest_hit_frac", {"l1tex__t_sector_hit_rate.pct": 130, "lts__t_sector_hit_rate.pct": 70}, 1.3),
    # 70 hits and 40 misses of 100 or 200
    ("check.l2_lookup_frac", {**L2_LOOKUPS, "lts__t_sectors.sum": 100}, 0.1),
    ("check.l2_lookup_frac", {**L2_LOOKUPS, "lts__t_sectors.sum": 200}, 0.45),
    ("check.l2_lookup_frac", {**SMS_LOOKUPS, "lts__t_sectors_srcunit_tex.sum": 100}, 0.1),
    ("check.l2_lookup_frac", {**SMS_LOOKUPS, "lts__t_sectors_srcunit_tex.sum": 200}, 0.45),
]  # fmt: skip

REASONS = (
    "selected", "not_selected", "long_scoreboard", "short_scoreboard", "barrier", "branch_resolving", "dispatch_stall", "drain",
    "imc_miss", "lg_throttle", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instructions", "sleeping",
    "tex_throttle", "wait",
)  # fmt: skip
# Samples of all reasons are 1 + 2 + ... + 18 = 171, each for 100 cycles, of 10 SMs with 3420 active cycles.
SAMPLED = {"smsp__pcsamp_interval_cycles": 100.0, AVERAGE: 3420.0, "launch__sm_count": 10.0}
BY_REASON = {
    f"smsp__pcsamp_warps_issue_stalled_{reason}": float(number) for number, reason in enumerate(REASONS, start=1)
}
ROWS += [
    ("check.sampled_frac", {**SAMPLED, **BY_REASON}, 0.5),
    ("check.sampled_frac", {**SAMPLED, **BY_REASON, "smsp__pcsamp_sample_count": 342}, 1),
]


test_value_is_what_the_counters_give_by_hand = each_row_holds(ROWS)
