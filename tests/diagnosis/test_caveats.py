"""Caveats: each holds where its conditions do, and neither a hair beside a threshold nor without its counters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.ingest.raw_report import RAW_WORKLOADS, RawReport
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from tests.support.raw import raw_report

RULES = load_rules()
CONFIDENCES = ["low", "medium", "high"]

Counters = Mapping[str, "float | str | None"]

NAME = "device__attribute_display_name"
MAJOR, MINOR = (f"device__attribute_compute_capability_{part}" for part in ("major", "minor"))
N_SMS = "device__attribute_multiprocessor_count"
DURATION = "gpu__time_duration.sum"
SMSP_CLOCK, SM_CLOCK = (f"{unit}__cycles_elapsed.avg.per_second" for unit in ("smsp", "sm"))
DRAM_RATE = "dram__bytes.sum.per_second"
DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
WAVES = "launch__waves_per_multiprocessor"
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

LONG: Counters = {DURATION: 1e6}
SPEED_OF_LIGHT: Counters = {f"gpu__compute_memory_throughput{ELAPSED}": 90.0, f"sm__throughput{ELAPSED}": 30.0}
BUSY: Counters = {**LONG, **SPEED_OF_LIGHT}
"""A millisecond, clearly memory-bound: a sure verdict, and nothing to warn of."""

SLOW: Counters = {"device__attribute_clock_rate": 1e6, SMSP_CLOCK: 0.899e9}
"""0.899 of 1 GHz; the driver tells its clock in kHz."""

CLOCKS: Counters = {SMSP_CLOCK: 1e9, SM_CLOCK: 1e9}
DRAM: Counters = {
    DRAM_RATE: 1e9,
    "dram__bytes.sum.peak_sustained": 10.0,
    "dram__cycles_elapsed.avg.per_second": 1e9,
}
"""1 of 10 GB/s."""

SM_INSTRUCTIONS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"


def executed(op: str) -> str:
    return f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed"


def peak(kind: str) -> str:
    return SM_INSTRUCTIONS.format(f"{kind}fma") + ".peak_sustained"


def fused(kind: str, per_cycle: float) -> Counters:
    """So many FMAs per cycle, of 1000 that could be, and no additions and multiplications."""
    rates = {executed(f"{kind}add"): 0.0, executed(f"{kind}mul"): 0.0, executed(f"{kind}fma"): per_cycle}
    return {**rates, peak(kind): 1000.0, **CLOCKS}


def tensor(path: str, per_cycle: float, peak_per_cycle: float = 1000.0) -> Counters:
    counter = f"sm__ops_path_tensor_{path}.sum"
    return {f"{counter}.per_cycle_elapsed": per_cycle, f"{counter}.peak_sustained": peak_per_cycle, SM_CLOCK: 1e9}


def chip(major: float, minor: float) -> Counters:
    return {MAJOR: major, MINOR: minor}


@dataclass(frozen=True)
class Launch:
    """A launch: its counters, and what a report says of it beside them."""

    counters: Counters = field(default_factory=dict)
    workload: str = "kernel"
    clock_control: str | None = None
    damage: str | None = None
    is_printed: bool = False
    n_collected: int = 9
    n_not_finite: int = 0
    counted: KernelCount | None = None

    @property
    def counts(self) -> Counts | None:
        return None if self.counted is None else Counts((self.counted,))

    def report(self) -> RawReport:
        raw = raw_report(self.counters)
        facts = {"workload": self.workload, "n_collected": self.n_collected, "n_not_finite": self.n_not_finite}
        workloads = raw.workloads.with_columns(pl.lit(value).alias(name) for name, value in facts.items())
        session = replace(raw.session, clock_control=self.clock_control)
        return replace(
            raw,
            workloads=workloads.cast(dict(RAW_WORKLOADS)),
            session=session,
            damage=self.damage,
            is_printed=self.is_printed,
        )

    def judged(self) -> dict[str, Any]:
        return Reports((self.report(),), counts=(self.counts,)).analyse().to_dict()["kernels"][0]

    def without(self, names: Collection[str]) -> Launch:
        return replace(self, counters={name: value for name, value in self.counters.items() if name not in names})


@dataclass(frozen=True)
class Trio:
    """A launch for which a caveat holds, those for which it just does not, and those for which nobody can tell."""

    holds: Launch
    just_not: tuple[Launch, ...]
    unknown: tuple[Launch, ...]
    needs: frozenset[str] = frozenset()


def trio(holds: Counters, *changes: Counters, needs: tuple[str | tuple[str, ...], ...], base: Counters = BUSY) -> Trio:
    """A trio of counters alone.

    Args:
        holds: beside those of `base`.
        changes: each makes one launch for which the caveat just does not hold.
        needs: counters without any one of which the caveat cannot be determined; those in parentheses stand for each other.
        base: what is there beside.
    """
    counters = {**base, **holds}
    names_of_each = [(need,) if isinstance(need, str) else need for need in needs]
    names = frozenset().union(*names_of_each)
    assert names <= set(counters)
    return Trio(
        Launch(counters),
        just_not=tuple(Launch({**counters, **change}) for change in changes),
        unknown=tuple(Launch({**counters, **dict.fromkeys(each)}) for each in names_of_each),
        needs=names,
    )


SHAPED: Counters = {
    **BUSY,
    **{f"launch__{part}_dim_{axis}": 1.0 for part in ("grid", "block") for axis in "xyz"},
}


def counted(n_launches: int, together_ms: float, shortest_ms: float | None, longest_ms: float | None) -> Launch:
    """A launch that stands for so many."""
    ends = (None if end is None else end * 1e6 for end in (shortest_ms, longest_ms))
    return Launch(SHAPED, counted=KernelCount("kernel_0", (1, 1, 1), (1, 1, 1), n_launches, together_ms * 1e6, *ends))


def own_clock(launch: Launch) -> Launch:
    return replace(launch, clock_control="none")


A100 = {NAME: "NVIDIA A100-SXM4-80GB", **chip(8, 0), N_SMS: 108.0}
FP64_OF_A100 = {**A100, **CLOCKS, **{SM_INSTRUCTIONS.format(f"d{op}"): 1e6 for op in ("add", "mul", "fma")}}
FP64_WITH_PEAK = {executed("dadd"): 1.0, executed("dmul"): 1.0, executed("dfma"): 1.0, peak("d"): 1000.0}

L2_READS = {
    "derived__lts__lts2xbar_bytes.sum.per_second": 1e9,
    "derived__lts__lts2xbar_bytes.sum.peak_sustained": 10.0,
    "lts__cycles_elapsed.avg.per_second": 1e9,
}
L2_BOTH_WAYS = {
    "derived__lts__lts2xbar_bytes.sum.per_second": None,
    "lts__t_bytes.sum.per_second": 1e9,
    "lts__t_bytes.sum.peak_sustained": 10.0,
}
L1_READS = {
    "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second": 1e9,
    "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.peak_sustained": 10.0,
    "l1tex__cycles_elapsed.avg.per_second": 1e9,
}
GPC_CYCLES, GPC_CLOCK = "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second"
L1_HIT, L2_HIT = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
LOOKED_UP, HIT, MISSED = (f"lts__t_sectors{what}.sum" for what in ("", "_lookup_hit", "_lookup_miss"))
TEX_LOOKED_UP, TEX_HIT, TEX_MISSED = (
    f"lts__t_sectors_srcunit_tex{what}.sum" for what in ("", "_lookup_hit", "_lookup_miss")
)
FMA_PIPE, FP64_PIPE, TENSOR_PIPE = (f"sm__pipe_{pipe}_cycles_active{ELAPSED}" for pipe in ("fma", "fp64", "tensor"))
TMA_PIPE = f"sm__pipe_tma_cycles_active{ELAPSED}"
ASYNC_BYTES = "sm__sass_l1tex_data_bytes_write_pipe_lsu_mem_shared_op_ldgsts_cache_access.sum"
LOAD_SECTORS, STORE_SECTORS = (f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
L2_SECTORS = "lts__t_sectors_srcunit_tex.sum"
LOAD_BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
PACKED_FP32 = ("fadd2_pred_on_x2", "fmul2_pred_on_x2", "ffma2_pred_on_x4")
VOLTA_TENSOR = "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed"
ALL_FP32 = SM_INSTRUCTIONS.format("fp32")
HMMA, HGMMA, BF16 = (
    "op_hmma_src_bf16_dst_fp32_sparsity_off",
    "op_hgmma_src_bf16_dst_fp32_sparsity_off",
    "src_bf16_dst_fp32",
)
INT8 = "src_int8_sparsity_off"
DRAM_BUSY = f"gpu__dram_throughput{ELAPSED}"
REMOTE = [f"lts__t_sectors_srcunit_tex_{what}lookup_miss.sum" for what in ("aperture_sysmem_", "aperture_peer_", "")]


def remote(n_sectors: float, *, of: float) -> Counters:
    """So many sectors from system memory, of all that missed in L2."""
    return dict(zip(REMOTE, (n_sectors, 0.0, of), strict=True))


SYSTEM_MISSES = "lts__t_sectors_aperture_sysmem_lookup_miss.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
STATIC_SHARED = "launch__shared_mem_per_block_static"
MEMORY_PCT = f"gpu__compute_memory_throughput{ELAPSED}"
TO_AND_FROM_L2 = tuple(f"lts__{path}_cycles_active{ELAPSED}" for path in ("xbar2lts", "lts2xbar"))
L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
SAMPLES, INTERVAL = "smsp__pcsamp_sample_count", "smsp__pcsamp_interval_cycles"
SM_ACTIVE, SM_ELAPSED = "sm__cycles_active.avg", "sm__cycles_elapsed.max"
DRAM_PCT, STAGE_PCT = f"gpu__dram_throughput{ELAPSED}", f"l1tex__data_pipe_lsu_wavefronts{ELAPSED}"
DYNAMIC_SHARED = "launch__shared_mem_per_block_dynamic"
L1_FULL: Counters = {
    L1_THROUGHPUT: 90.0,
    MEMORY_PCT: 70.0,
    SM_ACTIVE: 90.0,
    SM_ELAPSED: 100.0,
    STATIC_SHARED: 0.0,
    DYNAMIC_SHARED: 0.0,
}
"""81 % of the elapsed cycles, in a part that the memory total leaves out."""

USED_SMS = "launch__sm_count"
GREEN = "launch__uses_green_context"


def rate_of(path: str) -> str:
    return f"sm__ops_path_tensor_{path}.sum.per_cycle_elapsed"


def peak_of(path: str) -> str:
    return f"sm__ops_path_tensor_{path}.sum.peak_sustained"


IDLE: Counters = {**LONG, **DRAM, **fused("f", 10.0), **{name: 20.0 for name in BUSY if name not in LONG}}
"""A millisecond, latency-bound; 10 % of the bandwidth and 1 % of the FLOP peak."""

STALLED: Counters = {
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 2.5,
    "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
}

LONG_SCOREBOARD, BARRIER = (
    f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio" for reason in ("long_scoreboard", "barrier")
)

# What is on the two sides of a threshold differs by a percent of it at most, unless a comment says otherwise.
TRIOS: dict[str, list[Trio]] = {
    "failed": [
        Trio(
            Launch(dict.fromkeys(BUSY), n_collected=3, n_not_finite=3),
            just_not=(Launch(LONG, n_collected=3, n_not_finite=2),),
            unknown=(Launch(n_collected=0),),  # nothing was asked for, so nothing failed
        )
    ],
    "printed_table": [Trio(Launch(BUSY, is_printed=True), just_not=(Launch(BUSY),), unknown=(Launch(),))],
    "damaged_report": [Trio(Launch(BUSY, damage="cut off"), just_not=(Launch(BUSY),), unknown=(Launch(),))],
    "counters_missing": [
        # It is missing counters that make it hold; of a launch that failed, `failed` tells.
        Trio(
            Launch(LONG),
            just_not=(Launch(BUSY),),
            unknown=(Launch(LONG, n_collected=1, n_not_finite=1),),
        )
    ],
    "duration_unknown": [
        Trio(
            Launch({**SPEED_OF_LIGHT, WAVES: 0.99}),
            just_not=(Launch({**SPEED_OF_LIGHT, WAVES: 1.0}), Launch({**BUSY, WAVES: 0.99})),
            unknown=(Launch(SPEED_OF_LIGHT),),
        )
    ],
    "known_units_only": [
        # DRAM 70 %, issue slots 30 %: one unit of each side.
        trio(
            {**DRAM, DRAM_RATE: 7e9, f"sm__issue_active{ELAPSED}": 30.0},
            {name: value for name, value in BUSY.items() if name not in LONG},
            needs=(DRAM_RATE,),
            base=LONG,
        ),
        # DRAM alone, at 70 %; below 60 % there is no verdict, and with Speed of Light it goes by the totals.
        trio(
            {**DRAM, DRAM_RATE: 7e9},
            {name: value for name, value in BUSY.items() if name not in LONG},
            needs=(DRAM_RATE,),
            base=LONG,
        ),
    ],
    "far_below_roof": [
        # 10 % of the FLOP peak; DRAM, the busiest unit that is known, 59.9 % against a threshold of 60 %. Between it
        # and 63 %, the tree's own question about busy units would lower the confidence, too.
        trio(
            {**fused("f", 100.0), **DRAM, DRAM_RATE: 5.99e9},
            {DRAM_RATE: 6.4e9},
            BUSY,
            needs=(DRAM_RATE, executed("ffma"), peak("f"), "dram__bytes.sum.peak_sustained"),
            base=LONG,
        ),
        # The same from totals, which tell no utilisation.
        Trio(
            Launch({**LONG, **fused("f", 100.0), **DRAM, DRAM_RATE: 1e9}),
            just_not=(),
            unknown=(
                Launch(
                    {
                        **LONG,
                        **CLOCKS,
                        **DRAM,
                        DRAM_RATE: None,
                        DRAM_READ: 1e6,
                        DRAM_WRITE: 0.0,
                        peak("f"): 1000.0,
                        **{executed(op).removesuffix(".per_cycle_elapsed"): 1e8 for op in ("fadd", "fmul", "ffma")},
                    }
                ),
            ),
        ),
    ],
    "stalls_unknown": [
        # 90 % of the time is above the roofline: a grid of 55.1 % of a wave explains 44.9 %, less than half of it
        trio(
            {WAVES: 0.551},
            {WAVES: 0.549},
            STALLED,
            needs=(WAVES, DRAM_RATE),
            base=IDLE,
        ),
        # A grid of 95.1 % of a wave saves 4.9 % at most, and names no limiter.
        Trio(
            Launch({**IDLE, WAVES: 0.949}),
            just_not=(Launch({**IDLE, WAVES: 0.951}),),
            unknown=(),
        ),
    ],
    "uneven_launches": [
        Trio(
            counted(4, 6.0, 1.0, 1.81),
            just_not=(counted(4, 6.0, 1.0, 1.79), counted(4, 5.1, 1.0, 1.81), counted(1, 1.5, 1.0, 1.81)),
            unknown=(counted(4, 6.0, None, 1.81), counted(4, 6.0, 1.0, None), Launch(SHAPED)),
        ),
        # The one that was recorded took 1 ms, 1.82 and 0.55 times as long as they do on average
        Trio(
            own_clock(counted(4, 2.2, None, None)),
            just_not=(
                own_clock(counted(4, 2.24, None, None)),
                own_clock(counted(1, 0.5, None, None)),
                own_clock(counted(4, 2.2, 0.5, 0.89)),
                replace(counted(4, 2.2, None, None), clock_control="base"),
                own_clock(
                    replace(short := counted(4, 0.04, None, None), counters={**short.counters, DURATION: 19_999.0})
                ),
            ),
            unknown=(counted(4, 2.2, None, None),),
        ),
        Trio(
            counted(4, 7.3, None, None),
            just_not=(counted(4, 7.2, None, None), counted(1, 2.0, None, None), counted(4, 7.3, 1.7, 1.9)),
            unknown=(),
        ),
        # One slow launch among ten, which is the one that was recorded
        Trio(
            own_clock(counted(10, 5.0, 0.45, 1.0)),
            just_not=(own_clock(counted(10, 10.0, 0.9, 1.0)), own_clock(counted(10, 5.6, 0.45, 1.0))),
            unknown=(),
        ),
    ],
    # Recorded in 1 ms: the others take 0.924 ms on average, and the longest 1.09 times that
    "slowest_recorded": [
        Trio(
            own_clock(counted(10, 9.24, 0.9, 1.0)),
            just_not=(
                own_clock(counted(10, 9.28, 0.9, 1.01)),  # recorded 1.078 times
                own_clock(counted(10, 9.24, 0.9, 0.995)),  # longest 1.077 times
                own_clock(counted(1, 0.924, 0.924, 1.0)),
            ),
            unknown=(counted(10, 9.24, 0.9, 1.0), own_clock(counted(10, 9.24, 0.9, None))),
        ),
        # One slow launch among twenty, of 0.66 ms on average and at least 0.55; not where launches are uneven
        Trio(
            own_clock(counted(20, 13.2, 0.55, 1.0)),
            just_not=(
                own_clock(counted(20, 18.6, 0.9, 1.0)),
                own_clock(counted(10, 9.24, 0.7, 1.3)),
                own_clock(counted(20, 11.0, 0.5, 1.0)),
            ),
            unknown=(),
        ),
    ],
    "short_kernel": [trio({DURATION: 19_999.0}, {DURATION: 20_000.0}, needs=(DURATION,))],
    "reduced_clock": [
        # 0.899 and 0.901 of 1 GHz; the driver tells its clock in kHz
        trio(
            {"device__attribute_clock_rate": 1e6, SMSP_CLOCK: 0.899e9},
            {SMSP_CLOCK: 0.901e9},
            needs=("device__attribute_clock_rate", SMSP_CLOCK),
        ),
        Trio(
            Launch(BUSY, clock_control="base"),
            just_not=(
                Launch(BUSY, clock_control="none"),
                Launch(dict.fromkeys(BUSY), n_collected=3, n_not_finite=3, clock_control="base"),  # not measured
            ),
            unknown=(Launch(BUSY, clock_control=None),),
        ),
    ],
    "throttled_clock": [
        Trio(
            Launch({**BUSY, **SLOW}, clock_control="none"),
            just_not=(
                Launch({**BUSY, **SLOW, SMSP_CLOCK: 0.901e9}, clock_control="none"),
                Launch({**BUSY, **SLOW}, clock_control="base"),
            ),
            unknown=(Launch({**BUSY, **SLOW}), Launch({**BUSY, SMSP_CLOCK: 0.899e9}, clock_control="none")),
        ),
        # 0.329 and 0.331 of 1 GHz: below a third of boost no GPU has its base clock, whatever ncu does
        trio(
            {"device__attribute_clock_rate": 1e6, SMSP_CLOCK: 0.329e9},
            {SMSP_CLOCK: 0.331e9},
            needs=("device__attribute_clock_rate", SMSP_CLOCK),
        ),
    ],
    "clock_drift": [
        trio({**CLOCKS, SM_CLOCK: 1.0301e9}, {SM_CLOCK: 1.0299e9}, needs=(SM_CLOCK, SMSP_CLOCK)),
        # Cycles over clock against the millisecond that it took, longer and shorter
        *(
            trio(
                {GPC_CLOCK: 1e9, GPC_CYCLES: far},
                {GPC_CYCLES: near},
                needs=(GPC_CLOCK, GPC_CYCLES, DURATION),
            )
            for far, near in ((1.0301e6, 1.0299e6), (0.9699e6, 0.9701e6))
        ),
    ],
    "hit_rate_over_100": [
        trio({L1_HIT: 50.0, L2_HIT: 100.39}, {L2_HIT: 100.0}, needs=(L2_HIT,)),
        trio({L1_HIT: 100.1, L2_HIT: 50.0}, {L1_HIT: 100.0}, needs=(L1_HIT,)),
    ],
    "l2_lookups": [
        trio(
            {looked_up: 1000.0, hit: 600.0, missed: far},
            {missed: near},
            needs=(looked_up, hit, missed),
        )
        for looked_up, hit, missed in ((LOOKED_UP, HIT, MISSED), (TEX_LOOKED_UP, TEX_HIT, TEX_MISSED))
        for far, near in ((501.0, 499.0), (299.0, 301.0))
    ],
    "dram_closure": [
        # 0.9 + 0.1 MB; GB/s for a millisecond
        trio(
            {DRAM_READ: 0.9e6, DRAM_WRITE: 0.1e6, DRAM_RATE: far},
            {DRAM_RATE: near},
            needs=(DRAM_READ, DRAM_WRITE, DRAM_RATE),
        )
        for far, near in ((1.101e9, 1.099e9), (0.899e9, 0.901e9))
    ],
    "work_over_pipe": [
        # 52.51 % of the peak while the pipe was busy for 50 %: 5.02 % too much; 52.49 are 4.98 %
        trio(
            {**fused("f", 525.1), FMA_PIPE: 50.0},
            {executed("ffma"): 524.9},
            needs=(executed("fadd"), executed("fmul"), executed("ffma"), peak("f"), FMA_PIPE),
        ),
        trio(
            {**fused("d", 525.1), FP64_PIPE: 50.0},
            {executed("dfma"): 524.9},
            needs=(executed("dadd"), executed("dmul"), executed("dfma"), peak("d"), FP64_PIPE),
        ),
        trio(
            {**chip(8, 0), **tensor(INT8, 525.1), TENSOR_PIPE: 50.0},
            {rate_of(INT8): 524.9},
            needs=(rate_of(INT8), peak_of(INT8), SM_CLOCK, TENSOR_PIPE),
        ),
    ],
    "unreliable_tensor_count": [
        trio(
            {**chip(7, 0), **CLOCKS, VOLTA_TENSOR: 1e-3},
            {VOLTA_TENSOR: 0.0},
            {"sm__ops_path_tensor_src_fp16_dst_fp32.sum": 512.0},
            needs=(VOLTA_TENSOR, SMSP_CLOCK, MAJOR, MINOR),
        )
    ],
    "work_not_counted": [
        # The tensor pipe was busier than 2 %, and than the 1 % of FP32 that was counted; its operations were not.
        trio(
            {**fused("f", 10.0), TENSOR_PIPE: 2.1},
            {TENSOR_PIPE: 2.0},
            {**fused("f", 22.0)},
            {**tensor(BF16, 1.0, 20_000.0)},
            needs=(TENSOR_PIPE, executed("ffma")),
        )
    ],
    "work_is_a_bound": [
        trio(
            {ALL_FP32: 1.0},
            {ALL_FP32: 0.0},
            {SM_INSTRUCTIONS.format(op): 1.0 for op in ("fadd", "fmul", "ffma")},
            needs=(ALL_FP32, DURATION),
        ),
        # Halves of which the FMAs alone were collected.
        trio(
            {executed("hfma"): 1.0, peak("h"): 1000.0, **CLOCKS},
            {executed("hfma"): 0.0},
            {executed("hadd"): 0.0, executed("hmul"): 0.0},
            needs=(executed("hfma"), SMSP_CLOCK),
        ),
    ],
    "tensor_split": [
        # 1000 operations of BF16 in all, 989.9 and 990.1 of them on one path
        trio(
            {
                **chip(9, 0),
                **tensor(BF16, 1000.0, 20_000.0),
                **tensor(HMMA, 0.0, 6666.0),
                **tensor(HGMMA, 989.9, 10_000.0),
            },
            {rate_of(HGMMA): 990.1},
            {rate_of(HGMMA): 1009.9},
            needs=(rate_of(BF16), (rate_of(HMMA), rate_of(HGMMA)), SM_CLOCK),
        )
    ],
    "fp16_upper_bound": [
        trio(
            fused("h", 1.0),
            {executed("hfma"): 0.0},
            needs=(executed("hadd"), executed("hmul"), executed("hfma"), SMSP_CLOCK),
        )
    ],
    "packed_fp32_not_counted": [
        trio(
            {**chip(*capability), **fused("f", 1.0)},
            chip(9, 0),
            chip(12, 0),
            {executed("ffma"): 0.0},
            {f"derived__smsp__sass_thread_inst_executed_op_{op}": 0.0 for op in PACKED_FP32},
            needs=(MAJOR, MINOR, executed("ffma"), SMSP_CLOCK),
        )
        for capability in ((10, 0), (10, 3))
    ],
    "slower_tensor_path": [
        trio(
            {**chip(9, 0), **tensor(HMMA, 10.0, 949.0), **tensor(HGMMA, 0.0, 1000.0)},
            {peak_of(HMMA): 951.0},
            {rate_of(HMMA): 0.0, rate_of(HGMMA): 10.0},
            needs=(rate_of(HMMA), peak_of(HMMA), peak_of(HGMMA), SM_CLOCK),
        )
    ],
    "read_only_traffic": [
        # 1 GB/s for 1 ms are 1 MB read; 2.21 MB moved in both directions; a counter of the roof that counts both ways
        trio(
            {**L2_READS, L2_SECTORS: 2.21e6 / 32},
            {L2_SECTORS: 2.19e6 / 32},
            L2_BOTH_WAYS,
            needs=(L2_SECTORS, "derived__lts__lts2xbar_bytes.sum.per_second"),
        ),
        trio(
            {**L1_READS, LOAD_SECTORS: 0.9e6 / 32, STORE_SECTORS: 1.31e6 / 32},
            {STORE_SECTORS: 1.29e6 / 32},
            needs=(LOAD_SECTORS, STORE_SECTORS, "derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second"),
        ),
        # Neither was collected: 546 of 1000 bytes of DRAM are written.
        trio(
            {DRAM_READ: 454.0, DRAM_WRITE: 546.0, **L2_READS},
            {DRAM_READ: 456.0, DRAM_WRITE: 544.0},
            needs=(DRAM_READ, DRAM_WRITE, "derived__lts__lts2xbar_bytes.sum.per_second"),
        ),
    ],
    "sampled_in_part": [
        # of 1e6 cycles on each of 100 SMs 59 % are sampled, at one sample in 1024 cycles
        trio(
            {SAMPLES: 0.59e8 / 1024, INTERVAL: 1024.0, SM_ACTIVE: 1e6, N_SMS: 100.0, DURATION: 1.1e6},
            {SAMPLES: 0.61e8 / 1024},
            {DURATION: 0.9e6},
            needs=(SAMPLES, INTERVAL, SM_ACTIVE, N_SMS, DURATION),
        ),
    ],
    "l1_beyond_breakdown": [
        trio(
            {**L1_FULL, **chip(7, 5)},
            {L1_THROUGHPUT: 88.0},
            {MEMORY_PCT: 72.0},  # a tenth below 0.81
            chip(9, 0),  # where the two numbers do not agree
            needs=(L1_THROUGHPUT, MEMORY_PCT, SM_ACTIVE, SM_ELAPSED),
        ),
    ],
    "l2_input_beyond_breakdown": [
        # As `l1_beyond_breakdown`; 0.76 of L1's sectors go on to L2
        trio(
            {**L1_FULL, **dict(zip(TO_AND_FROM_L2, (38.0, 12.0), strict=True)), **chip(7, 5)},
            {L1_THROUGHPUT: 88.0},
            {TO_AND_FROM_L2[1]: 13.0},
            chip(9, 0),
            needs=(L1_THROUGHPUT, MEMORY_PCT, SM_ACTIVE, SM_ELAPSED, *TO_AND_FROM_L2),
        ),
    ],
    "l2_beyond_breakdown": [
        # L2 is over 60 % where the memory total is 50 %; nearer to 60 %, the total itself would lower the confidence.
        trio(
            {f"lts__throughput{ELAPSED}": 60.1, MEMORY_PCT: 50.0},
            {f"lts__throughput{ELAPSED}": 59.9},
            {MEMORY_PCT: 64.0},
            needs=(f"lts__throughput{ELAPSED}",),
        ),
    ],
    "memory_without_waits": [
        # DRAM is the limit, and of ten cycles between two instructions a warp waits 2.97 for data and at barriers, or 3.03.
        trio(
            {DRAM_PCT: 90.0, **STALLED, LONG_SCOREBOARD: 2.0, BARRIER: 0.97},
            {BARRIER: 1.03},
            {DRAM_PCT: 20.0, STAGE_PCT: 90.0, STATIC_SHARED: 0.0, DYNAMIC_SHARED: 0.0},
            needs=(DRAM_PCT, LONG_SCOREBOARD),
        ),
    ],
    "stage_not_split": [
        trio(
            {STAGE_PCT: 90.0, DRAM_PCT: 20.0, STATIC_SHARED: 0.0, DYNAMIC_SHARED: 1.0, **chip(8, 6)},
            {DYNAMIC_SHARED: 0.0},
            {
                "l1tex__data_pipe_lsu_wavefronts.sum": 9.0,
                WAVEFRONTS.format("_op_ld"): 4.0,
                WAVEFRONTS.format("_op_st"): 0.0,
            },
            {DRAM_PCT: 91.0},
            needs=(STAGE_PCT,),
        ),
    ],
    "shared_upper_bound": [
        # All wavefronts, of a kernel that has shared memory; accesses by kind
        trio(
            {
                **chip(8, 0),
                WAVEFRONTS.format(""): 10.0,
                "launch__shared_mem_per_block_static": 1.0,
                DYNAMIC_SHARED: 0.0,
            },
            {"launch__shared_mem_per_block_static": 0.0},
            {WAVEFRONTS.format("_op_ld"): 1.0, WAVEFRONTS.format("_op_st"): 1.0},
            needs=(WAVEFRONTS.format(""), DURATION),
        ),
        # Hopper's tensor instructions read shared memory, and are of no kind that is counted here.
        trio(
            {
                **chip(9, 0),
                TENSOR_PIPE: 1.0,
                **{WAVEFRONTS.format(kind): 2.0 for kind in ("", "_op_ld", "_op_st")},
            },
            {TENSOR_PIPE: 0.0},
            {WAVEFRONTS.format("_op_misc"): 1.0},
            needs=(WAVEFRONTS.format(""), DURATION),
        ),
    ],
    "dram_estimated": [
        trio(
            {**chip(*capability), SYSTEM_MISSES: 1000.0, DRAM_BUSY: 50.0},  # measured: not `memory_not_measured`
            chip(8, 6),
            {**chip(8, 6), **DRAM},
            needs=(MAJOR, MINOR, SYSTEM_MISSES, DURATION),
        )
        for capability in ((7, 2), (8, 7), (11, 0), (12, 1))
    ],
    "memory_not_measured": [
        # 24 times 2.51 % are 60.2 %, 24 times 2.49 % are 59.8 %; a GPU with a memory of its own has that in Speed of Light
        trio(
            {**chip(*capability), f"lts__throughput{ELAPSED}": 2.51},
            {f"lts__throughput{ELAPSED}": 2.49},
            {DRAM_BUSY: 50.0},
            chip(8, 6),
            needs=(MAJOR, MINOR),
        )
        for capability in ((7, 2), (8, 7), (11, 0), (12, 1))
    ],
    "remote_traffic": [
        # 31 250 sectors of 32 byte in a millisecond are 1 GB/s; of 76 000 that missed 41.1 %, of 79 000 39.6 %
        trio(
            {**chip(8, 0), **remote(31_250, of=76_000)},
            remote(31_249, of=76_000),
            remote(31_250, of=79_000),
            chip(8, 7),  # all its misses go to system memory, which is its own
            needs=(MAJOR, MINOR, *REMOTE, DURATION),
        ),
        # 125 kB are 3906.25 sectors: in 0.1 ms more than 1 GB/s
        trio(
            {**chip(9, 0), **remote(3_907, of=3_907), DURATION: 1e5},
            remote(3_906, of=3_906),
            needs=(MAJOR, MINOR, *REMOTE, DURATION),
        ),
    ],
    "datasheet_peak": [
        trio(
            FP64_OF_A100,
            FP64_WITH_PEAK,
            needs=(NAME, MAJOR, SM_INSTRUCTIONS.format("dfma")),
        ),
        # Traffic of DRAM without a peak
        trio(
            {**A100, DRAM_READ: 1e6, DRAM_WRITE: 1e6},
            {"dram__bytes.sum.peak_sustained": 10.0, "dram__cycles_elapsed.avg.per_second": 1e9},
            needs=(NAME, MAJOR, DRAM_READ, DURATION),
        ),
    ],
    "past_l1": [
        # Copied past the registers 51 and 49 byte for 50 that were loaded into them: 2 sectors of 25 used bytes. The counter of
        # loads holds the sectors of the copies, too.
        trio(
            {ASYNC_BYTES: 51.0, LOAD_SECTORS: 2.0 + 51 / 32, LOAD_BYTES_PER_SECTOR: 25.0},
            {ASYNC_BYTES: 49.0, LOAD_SECTORS: 2.0 + 49 / 32},
            needs=(ASYNC_BYTES, LOAD_SECTORS, LOAD_BYTES_PER_SECTOR),
        ),
        trio({TMA_PIPE: 1.01}, {TMA_PIPE: 0.99}, needs=(TMA_PIPE,)),
    ],
    "partial_gpu": [
        trio({USED_SMS: 107.0, N_SMS: 108.0}, {USED_SMS: 108.0}, needs=(USED_SMS, N_SMS)),
        trio({GREEN: 1.0}, {GREEN: 0.0}, needs=(GREEN,)),
        trio({NAME: "NVIDIA A100-SXM4-40GB MIG 1g.5gb"}, {NAME: "NVIDIA A100-SXM4-40GB"}, needs=(NAME,)),
    ],
    "non_kernel_workload": [
        Trio(Launch(BUSY, workload=workload), just_not=(Launch(BUSY),), unknown=(Launch(),))
        for workload in ("range", "graph", "cmdlist")
    ],
    "above_roof": [
        # Above the peak: FMAs of a pipe that is counted apart; above the slope: GB/s of 10
        trio(
            {**fused("f", 1021.0), **DRAM},
            {executed("ffma"): 1019.0},
            needs=(executed("ffma"), peak("f"), SMSP_CLOCK),
        ),
        trio({**fused("f", 1.0), **DRAM, DRAM_RATE: 1.021e10}, {DRAM_RATE: 1.019e10}, needs=(DRAM_RATE,)),
    ],
}
ELSEWHERE = {
    "local_not_collected",  # tests/diagnosis/test_local_memory_by_code.py: it needs machine code
    "embedded_chart",  # tests/metrics/test_chart_values.py: it needs the charts that a report carries
    "shared_slice",  # tests/test_parts_of_gpus.py: `partial_gpu` always holds beside it
    "unlike_phases",  # tests/diagnosis/test_phase_verdicts.py: it needs series over the time of a kernel
}
EACH = [(name, number) for name, trios in TRIOS.items() for number in range(len(trios))]


def test_every_caveat_of_the_rules_has_its_trio() -> None:
    assert set(TRIOS) | ELSEWHERE == set(RULES.caveats)


Judge = Callable[[Launch], "dict[str, Any]"]


@pytest.fixture(scope="module")
def judge() -> Judge:
    """What the analysis of all launches of the trios together says of one of them."""
    launches = [
        launch for trios in TRIOS.values() for each in trios for launch in (each.holds, *each.just_not, *each.unknown)
    ]
    reports, counts = (
        tuple(each) for each in zip(*((launch.report(), launch.counts) for launch in launches), strict=True)
    )
    entries = Reports(reports, counts=counts).analyse().to_dict()["kernels"]
    number_by_launch = {id(launch): number for number, launch in enumerate(launches)}
    return lambda launch: entries[number_by_launch[id(launch)]]


@pytest.mark.parametrize(("name", "number"), EACH)
def test_caveat_holds_and_nothing_else_does(name: str, number: int, judge: Judge) -> None:
    assert judge(TRIOS[name][number].holds)["caveats"] == [name]


@pytest.mark.parametrize(("name", "number"), EACH)
def test_caveat_does_not_hold_a_hair_beside_its_threshold(name: str, number: int, judge: Judge) -> None:
    for launch in TRIOS[name][number].just_not:
        assert name not in judge(launch)["caveats"], launch


@pytest.mark.parametrize(("name", "number"), EACH)
def test_caveat_does_not_hold_where_one_of_its_counters_is_missing(name: str, number: int, judge: Judge) -> None:
    for launch in TRIOS[name][number].unknown:
        assert name not in judge(launch)["caveats"], launch


@pytest.mark.long
@pytest.mark.parametrize(("name", "number"), [(name, n) for name, n in EACH if TRIOS[name][n].needs])
def test_caveat_does_not_hold_in_a_report_that_knows_none_of_its_counters(name: str, number: int) -> None:
    each = TRIOS[name][number]
    assert name not in each.holds.without(each.needs).judged()["caveats"]


# ---- confidence ----------------------------------------------------------------------------------------------------------------

UNDECIDED = {"failed", "counters_missing"}
"""With these there is no verdict, whose confidence could fall."""


def test_nothing_to_warn_of_leaves_the_verdict_sure() -> None:
    entry = Launch(BUSY).judged()
    assert (entry["verdict"], entry["confidence"], entry["caveats"]) == ("memory", "high", [])


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, n in EACH if name not in UNDECIDED and TRIOS[name][n].just_not]
)
def test_caveat_that_weakens_takes_one_step_of_confidence_and_others_none(name: str, number: int, judge: Judge) -> None:
    each = TRIOS[name][number]
    held, beside = (CONFIDENCES.index(judge(launch)["confidence"]) for launch in (each.holds, each.just_not[0]))
    assert held == beside - (1 if RULES.caveats[name].weakens else 0)


@pytest.mark.parametrize("name", sorted(UNDECIDED))
def test_without_a_verdict_confidence_is_low(name: str, judge: Judge) -> None:
    entry = judge(TRIOS[name][0].holds)
    assert (entry["verdict"], entry["confidence"]) == ("unknown", "low")


def test_several_caveats_that_weaken_take_one_step_together() -> None:
    both = Launch({**BUSY, DURATION: 19_999.0, GREEN: 1.0}, workload="range").judged()
    assert both["caveats"] == ["short_kernel", "partial_gpu", "non_kernel_workload"]
    assert both["confidence"] == "medium"


# ---- why a point lies above its roof -------------------------------------------------------------------------------------------

CAUSES = RULES.caveats["above_roof"].explained_by
ABOVE: Counters = {**BUSY, **fused("f", 1021.0), **DRAM}
# What makes each cause hold beside; each changes a counter that the others need not.
BESIDE: dict[str, Counters] = {
    "clock_drift": {"l1tex__cycles_elapsed.avg.per_second": 1.1e9},
    "work_over_pipe": {FMA_PIPE: 50.0},
    "dram_closure": {DRAM_READ: 1e9, DRAM_WRITE: 1e9},
    "fp16_upper_bound": fused("h", 1.0),
    "datasheet_peak": FP64_OF_A100,
    "dram_estimated": chip(8, 7),
    "short_kernel": {DURATION: 19_999.0},
}


def above(*causes: str) -> dict[str, Any]:
    """A kernel above its roof with these causes; a data sheet that fits a GPU without DRAM counters is Orin's."""
    counters = dict(ABOVE)
    for cause in causes:
        counters |= BESIDE[cause]
    if {"dram_estimated", "datasheet_peak"} <= set(causes):
        counters |= {NAME: "Orin", N_SMS: 16.0, **chip(8, 7)}
    entry = Launch(counters).judged()
    assert set(entry["caveats"]) == {"above_roof", *causes}
    return entry


def test_every_cause_of_the_rules_is_here() -> None:
    assert set(BESIDE) == set(CAUSES)
    assert set(CAUSES) <= set(RULES.caveats)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_only_cause_is_told(cause: str) -> None:
    assert above(cause)["above_roof_cause"] == cause


@pytest.mark.parametrize("number", range(len(CAUSES)))
def test_of_several_causes_the_first_of_the_rules_is_told(number: int) -> None:
    assert above(*CAUSES[number:])["above_roof_cause"] == CAUSES[number]


def test_without_a_cause_none_is_told() -> None:
    assert above()["above_roof_cause"] is None


@pytest.mark.parametrize("cause", CAUSES)
def test_below_the_roof_no_cause_is_told(cause: str, judge: Judge) -> None:
    entry = judge(TRIOS[cause][0].holds)
    assert cause in entry["caveats"]
    assert entry["above_roof_cause"] is None
