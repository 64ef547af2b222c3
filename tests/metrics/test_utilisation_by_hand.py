"""How busy each unit is, by each formula of the catalogue, worked by hand: verdicts rest on these numbers."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from tests.support.by_hand import ACTIVE, ELAPSED, HALF_ACTIVE, ByHand, Counters, chip, each_row_holds
from tests.support.raw import raw_report

PIPES = {
    "tensor": ("sm__pipe_tensor_cycles_active", "sm__pipe_tensor_cycles_active"),
    "fp32": ("sm__pipe_fma_cycles_active", "sm__pipe_fma_cycles_active"),
    "fp64": ("sm__pipe_fp64_cycles_active", "sm__pipe_fp64_cycles_active"),
    "alu": ("sm__pipe_alu_cycles_active", "sm__pipe_alu_cycles_active"),
    "xu": ("sm__inst_executed_pipe_xu", "sm__inst_executed_pipe_xu"),
    "lsu": ("sm__inst_executed_pipe_lsu", "sm__inst_executed_pipe_lsu"),
    "tex": ("sm__inst_executed_pipe_tex", "sm__inst_executed_pipe_tex"),
    "uniform": ("sm__inst_executed_pipe_uniform", "sm__inst_executed_pipe_uniform"),
    "branch": ("sm__inst_executed_pipe_cbu", "sm__inst_executed_pipe_cbu"),
    "address": ("sm__inst_executed_pipe_adu", "sm__inst_executed_pipe_adu"),
    "tma": ("sm__inst_executed_pipe_tma", "sm__inst_executed_pipe_tma"),
    "issue": ("sm__inst_issued", "smsp__issue_active"),
    "l1": ("l1tex__throughput", "l1tex__throughput"),
}
"""A pipe's counter over elapsed cycles, and over those in which SMs have work."""

OF_ALL_TIME = {
    "memory": ("gpu__compute_memory_throughput",),
    "compute": ("sm__throughput",),
    "sm": ("sm__throughput",),
    "dram": ("gpu__dram_throughput", "dram__throughput", "dram__cycles_active"),
    "l2": ("lts__throughput",),
    "issue": ("sm__issue_active", "sm__inst_issued"),
    "fma_pipe": ("sm__pipe_fma_cycles_active",),
    "fp16": ("sm__inst_executed_pipe_fp16",),
    "branch": ("sm__inst_executed_pipe_cbu_pred_on_any", "sm__inst_executed_pipe_cbu"),
    "constant_cache": ("idc__request_cycles_active",),
    "tma": ("sm__pipe_tma_cycles_active", "sm__inst_executed_pipe_tma"),
    "mio": ("sm__mio_inst_issued",),
    "atomic": ("lts__d_atomic_input_cycles_active",),
    "l2_tags": ("lts__t_tag_requests",),
}
"""Counters over elapsed cycles, the first of which is preferred."""

BUSIEST_OF = {
    "l1": ["l1tex__data_bank_reads", "l1tex__data_bank_writes", "l1tex__data_pipe_lsu_wavefronts",
           "l1tex__data_pipe_tex_wavefronts", "l1tex__f_wavefronts", "l1tex__lsu_writeback_active", "l1tex__tex_writeback_active",
           "l1tex__lsuin_requests", "l1tex__texin_sm2tex_req_cycles_active", "l1tex__tmain_requests"],
    "tensor": ["sm__pipe_tensor_cycles_active", "sm__pipe_tensor_cycles_active_v2",
               "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
               "sm__pipe_tensor_op_dmma_cycles_active",
               "sm__pipe_tensor_subpipe_hmma_cycles_active", "sm__pipe_tensor_subpipe_imma_cycles_active",
               "sm__pipe_tensor_subpipe_dmma_cycles_active", "sm__pipe_tc_cycles_active"],
    "fp32": ["sm__pipe_fma_cycles_active", "sm__pipe_fmaheavy_cycles_active"],
    "alu": ["sm__pipe_alu_cycles_active", "sm__pipe_aluheavy_cycles_active"],
    "l2_stages": ["lts__t_tag_requests", "lts__t_sectors", "lts__d_sectors", "lts__d_sectors_fill_device",
                  "lts__d_sectors_fill_sysmem", "lts__d_decomp_input_sectors", "lts__d_atomic_input_cycles_active",
                  "lts__lts2xbar_cycles_active", "lts__xbar2lts_cycles_active"],
}  # fmt: skip
"""Parts of a unit, which is as busy as the busiest of them."""

PASCAL = {
    "memory": "gpu__compute_memory_sol_pct", "compute": "sm__sol_pct", "sm": "sm__sol_pct", "dram": "fbpa__sol_pct",
    "l2": "ltc__sol_pct",
}  # fmt: skip

THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
FMA, FMA_HEAVY = "sm__pipe_fma_cycles_active", "sm__pipe_fmaheavy_cycles_active"
FMA_PEAK = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"


def _arithmetic(letter: str) -> Counters:
    """Return 3 additions, 5 multiplications and 11 multiply-adds per cycle, where there could be 100."""
    per_cycle = {THREADS.format(letter + kind): n for kind, n in (("add", 3.0), ("mul", 5.0), ("fma", 11.0))}
    return {**per_cycle, FMA_PEAK.format(f"{letter}fma"): 100.0}


MEMORY, COMPUTE, DRAM, L2, L1_ACTIVE = (
    f"gpu__compute_memory_throughput{ELAPSED}", f"sm__throughput{ELAPSED}", f"gpu__dram_throughput{ELAPSED}",
    f"lts__throughput{ELAPSED}", f"l1tex__throughput{ACTIVE}",
)  # fmt: skip
LSU, TENSOR = f"sm__inst_executed_pipe_lsu{ELAPSED}", f"sm__pipe_tensor_cycles_active{ELAPSED}"
RATE = {
    "dram__bytes.sum.per_second": 120e9,
    "dram__bytes.sum.peak_sustained": 96.0,
    "dram__cycles_elapsed.avg.per_second": 5e9,
}
PEAK = {name: RATE[name] for name in ("dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second")}
MOVED = {"dram__bytes_read.sum": 64e3, "dram__bytes_write.sum": 32e3, "gpu__time_duration.sum": 1e3}
MEMORY_CLOCK = {"device__attribute_memory_clock_rate": 1e6, "device__attribute_global_memory_bus_width": 1024.0}
ALIKE = {
    MEMORY: 90, COMPUTE: 90, LSU: 90, f"sm__issue_active{ELAPSED}": 40, f"sm__pipe_alu_cycles_active{ELAPSED}": 30,
    f"sm__pipe_fma_cycles_active{ELAPSED}": 20,
}  # fmt: skip
"""A kernel of memory instructions, which both sides count."""
MCC = "mcc__dram_throughput_srcnode_gpu_op_{}"
GRID = {"launch__sm_count": 100.0}
ALWAYS_ACTIVE = {"sm__cycles_active.avg": 600.0, "sm__cycles_elapsed.max": 600.0}
UNITS = {
    "issue": "sm__issue_active", "tensor": "sm__pipe_tensor_cycles_active", "fp32": "sm__pipe_fma_cycles_active",
    "fp64": "sm__pipe_fp64_cycles_active", "fp16": "sm__inst_executed_pipe_fp16", "alu": "sm__pipe_alu_cycles_active",
    "xu": "sm__inst_executed_pipe_xu", "lsu": "sm__inst_executed_pipe_lsu",
}  # fmt: skip
MORE_UNITS = {
    "tex": "sm__inst_executed_pipe_tex", "uniform": "sm__inst_executed_pipe_uniform", "branch": "sm__inst_executed_pipe_cbu",
    "constant_cache": "idc__request_cycles_active", "address": "sm__inst_executed_pipe_adu", "tma": "sm__pipe_tma_cycles_active",
    "mio": "sm__mio_inst_issued",
}  # fmt: skip

ROWS: list[ByHand] = [
    *((f"utilisation.{u}", {name + ELAPSED: 37, active + ACTIVE: 40, **HALF_ACTIVE}, 0.37) for u, (name, active) in PIPES.items()),
    # 40 % of the half in which SMs have work
    *((f"utilisation.{u}", {active + ACTIVE: 40, **HALF_ACTIVE}, 0.2) for u, (_, active) in PIPES.items()),
    *((f"utilisation.{u}", {active + ACTIVE: 40}, 0.4) for u, (_, active) in PIPES.items()),
    ("utilisation.issue", {f"sm__inst_issued{ACTIVE}": 30, f"smsp__issue_active{ACTIVE}": 40, **HALF_ACTIVE}, 0.2),
    ("utilisation.issue", {f"sm__inst_issued{ACTIVE}": 30, **HALF_ACTIVE}, 0.15),
    ("utilisation.issue", {f"sm__inst_issued{ACTIVE}": 30, f"smsp__issue_active{ACTIVE}": 40}, 0.4),
    ("utilisation.issue", {f"sm__inst_issued{ACTIVE}": 30}, 0.3),
    *(
        (f"utilisation.{u}", {name + ELAPSED: 30 + place for place, name in enumerate(names) if place >= first}, 0.3 + 0.01 * first)
        for u, names in OF_ALL_TIME.items()
        for first in range(len(names))
    ),
    *(
        (f"utilisation.{u}", {part + ELAPSED: 70 if part == busiest else 30 for part in parts}, 0.7)
        for u, parts in BUSIEST_OF.items()
        for busiest in parts
    ),
    *((f"utilisation.{u}", {name: 23}, 0.23) for u, name in PASCAL.items()),
    # what some other section collects of them is not the busiest
    *(
        ("utilisation.l2_stages", {f"lts__{stage}{ELAPSED}": 40 for stage in stages}, busiest)
        for stages, busiest in (
            (("t_sectors", "lts2xbar_cycles_active"), None), (("t_sectors", "d_sectors"), None),
            (("t_sectors", "t_tag_requests"), None), (("t_tag_requests", "d_sectors"), 0.4),
        )
    ),
    # 3 + 5 + 11 of 100 instructions, whatever a multiply-add counts as work
    ("utilisation.fp32", {**_arithmetic("f"), FMA + ACTIVE: 40}, 0.19),
    ("utilisation.fp64", {**_arithmetic("d"), f"sm__pipe_fp64_cycles_active{ACTIVE}": 40}, 0.19),
    ("check.fp32_over_pipe_frac", {**_arithmetic("f"), FMA + ELAPSED: 10}, 0.9),
    ("check.fp32_over_pipe_frac", {**_arithmetic("f"), FMA_HEAVY + ELAPSED: 10, FMA + ELAPSED: 5}, 0.9),
    ("check.fp64_over_pipe_frac", {**_arithmetic("d"), f"sm__pipe_fp64_cycles_active{ELAPSED}": 10}, 0.9),
    # ---- DRAM: 120 GB/s of 96 bytes at 5 GHz; the GPU's share of a memory that is the CPU's as well
    ("utilisation.dram", {**RATE, **chip(87), MCC.format("read") + ELAPSED: 1}, 0.25),
    *(
        ("utilisation.dram", {**chip(each), MCC.format("read") + ELAPSED: 20, MCC.format("write") + ELAPSED: 30}, busy)
        for each, busy in ((87, 0.5), (110, 0.5), (89, None))
    ),
    # 96 KB in 1 µs are 96 GB/s, of 96 bytes at 5 GHz, else of 2 × 1 GHz × 1024 bits = 256 GB/s; a counter of its own comes first
    *(
        ("utilisation.dram", {**MOVED, **chip(each), **known}, busy)
        for each, known, busy in (
            (89, MEMORY_CLOCK, 0.375), (89, {**MEMORY_CLOCK, **PEAK}, 0.2), (89, PEAK, 0.2), (89, {}, None),
            (89, {**MEMORY_CLOCK, DRAM: 37}, 0.37), (87, {**MEMORY_CLOCK, **PEAK}, None),
        )
    ),
    ("utilisation.dram", {**MOVED, **MEMORY_CLOCK}, None),
    ("utilisation.unmeasured_dram", {DRAM: 37, L2: 3, **chip(121)}, 0),
    ("utilisation.unmeasured_dram", {L2: 3, **chip(121)}, 0.72),
    ("utilisation.unmeasured_dram", {L2: 30, **chip(121)}, 1),
    ("utilisation.unmeasured_dram", chip(121), 1),
    ("utilisation.unmeasured_dram", {L2: 3, **chip(120)}, None),
    # ---- of both sides together
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50, DRAM: 30, L2: 40}, 0.5),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50.03, DRAM: 30, L2: 40}, 0.5003),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50.07, DRAM: 30, L2: 40}, None),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 49.93, DRAM: 30, L2: 40}, None),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50, DRAM: 49.94, L2: 49.94}, 0.5),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50, DRAM: 49.97, L2: 40}, None),
    ("utilisation.lsu", {MEMORY: 50, COMPUTE: 50, DRAM: 30, L2: 49.97}, None),
    ("utilisation.memory_side", {MEMORY: 50, DRAM: 60, **chip(89)}, 0.5),
    ("utilisation.memory_side", {MEMORY: 50, DRAM: 60, **chip(87)}, 0.6),
    ("utilisation.memory_side", {MEMORY: 50, L1_ACTIVE: 90, **ALWAYS_ACTIVE, **chip(75)}, 0.9),
    *(
        ("utilisation.l1_beyond", {MEMORY: memory, L1_ACTIVE: busy, **ALWAYS_ACTIVE, **chip(each)}, beyond)
        for each, memory, busy, beyond in (
            *((each, 50, 90, 0.9) for each in (75, 80, 86, 87, 89)),
            (90, 50, 90, None), (75, 50, 74, None), (75, 50, 79, 0.5 + 0.29 * 0.4),
            (75, 50, 81, 0.5 + 0.31 * 0.6), (75, 81, 90, None), (75, 79, 90, 0.9),
        )
    ),
    ("check.l1_throughput_frac", {L1_ACTIVE: 90, **HALF_ACTIVE}, 0.45),
    ("utilisation.busiest", {MEMORY: 30, COMPUTE: 40}, 0.4),
    ("utilisation.busiest", {MEMORY: 40, COMPUTE: 30}, 0.4),
    # 24 times 3 % are more than 0.6, 24 times 2 % less
    ("utilisation.busiest", {MEMORY: 30, COMPUTE: 40, L2: 2, **chip(121)}, 0.4),
    ("utilisation.busiest", {MEMORY: 30, COMPUTE: 40, L2: 3, **chip(121)}, None),
    ("utilisation.busiest", {MEMORY: 30, COMPUTE: 65, L2: 3, **chip(121)}, 0.65),
    ("utilisation.busiest", {MEMORY: 30, COMPUTE: 65, L1_ACTIVE: 90, **ALWAYS_ACTIVE, **chip(87), L2: 3}, 0.9),
    ("utilisation.headroom", {MEMORY: 30, COMPUTE: 40, "sm__cycles_active.max": 480, "sm__cycles_elapsed.max": 600}, 0.5),
    ("utilisation.headroom", {MEMORY: 30, COMPUTE: 90, "sm__cycles_active.max": 480, "sm__cycles_elapsed.max": 600}, 0),
    ("utilisation.lead", {MEMORY: 30, COMPUTE: 41}, -0.11),
    ("utilisation.lead", {MEMORY: 50, L1_ACTIVE: 90, **ALWAYS_ACTIVE, **chip(75), COMPUTE: 41}, 0.49),
    ("utilisation.gap", {MEMORY: 30, COMPUTE: 41}, 0.11),
    ("utilisation.gap", {MEMORY: 41, COMPUTE: 30}, 0.11),
    *(
        ("utilisation.busiest_known", {name + ELAPSED: 70 if name == busiest else 30 for name in names}, 0.7)
        for names in [[*UNITS.values(), "gpu__dram_throughput", "lts__throughput", "l1tex__throughput"]]
        for busiest in names
    ),
    # three times the SMs with a block, or DRAM where that is busier; 24 times where it was not counted
    ("utilisation.most_possible", {**GRID, "launch__grid_size": 20, DRAM: 37}, 0.6),
    ("utilisation.most_possible", {**GRID, "launch__grid_size": 10, DRAM: 37}, 0.37),
    ("utilisation.most_possible", {**GRID, "launch__grid_size": 50, DRAM: 37}, 1),
    ("utilisation.most_possible", {**GRID, "launch__grid_size": 3}, 0.72),
    ("utilisation.most_possible", {**GRID, "launch__grid_size": 5}, 1),
    *(
        ("utilisation.compute_unnamed", {COMPUTE: 80, **{name + ELAPSED: 70 if name == busiest else 30 for name in names}}, 0.1)
        for names in [[*UNITS.values(), *MORE_UNITS.values()]]
        for busiest in names
    ),
    ("utilisation.compute_unnamed", {COMPUTE: 80, LSU: 90}, 0),
    # ---- wgmma: 70 % less the busiest of DRAM, L2, and four wavefronts for each LSU instruction
    *(
        ("utilisation.beside_operands", {TENSOR: 70, COMPUTE: compute, DRAM: dram, L2: l2, LSU: lsu, **chip(each)}, ahead)
        for each, compute, dram, l2, lsu, ahead in (
            (90, 70, 30, 20, 2, 0.4), (90, 70, 10, 20, 2, 0.5), (90, 70, 10, 5, 3, 0.58),
            (90, 70.04, 30, 20, 2, 0.4), (90, 70.07, 30, 20, 2, None), (100, 70, 30, 20, 2, None),
        )
    ),
    *(
        ("utilisation.beside_operands",
         chip(90) | {name: n for name, n in {TENSOR: 70, COMPUTE: 70, DRAM: 30, L2: 20, LSU: 2}.items() if name != missing}, None)
        for missing in (DRAM, L2, LSU)
    ),
    # ---- LSU on both sides: memory's 90 % less the busiest of the SMs' other units
    *(
        ("utilisation.beside_memory_instructions", ALIKE | changed, ahead)
        for changed, ahead in (
            ({}, 0.5), ({f"sm__pipe_alu_cycles_active{ELAPSED}": 60}, 0.3), ({f"sm__pipe_fp64_cycles_active{ELAPSED}": 70}, 0.2),
            ({TENSOR: 75}, 0.15), ({MEMORY: 95}, 0.55),
            ({LSU: 89.96}, 0.5), ({LSU: 89.9}, None), ({COMPUTE: 91}, None),
        )
    ),
    *(
        ("utilisation.beside_memory_instructions", {name: n for name, n in ALIKE.items() if name != missing}, None)
        for missing in ALIKE
    ),
]  # fmt: skip


test_utilisation_is_what_the_counters_give_by_hand = each_row_holds(ROWS)


def test_what_l2_missed_is_judged_by_the_data_sheet_where_the_cpu_shares_the_memory() -> None:
    # 1000 sectors in 1 µs are 32 GB/s, of 128 that the data sheet has
    missed = {"lts__t_sectors_aperture_sysmem_lookup_miss.sum": 1000.0, "gpu__time_duration.sum": 1000.0}
    report = raw_report({**missed, **chip(121)}, {**missed, **chip(120)})
    kernels = measure([report], sheet_bandwidth=lambda _name, _capability, _attributes: 128e9).kernels
    assert kernels["utilisation.dram"].to_list() == [pytest.approx(0.25), None]


def test_bytes_are_judged_by_the_data_sheet_where_the_report_says_nothing_of_the_memory() -> None:
    # 96 KB in 1 µs are 96 GB/s, of 128; what the report says comes first: 256 GB/s
    report = raw_report({**MOVED, **chip(90)}, {**MOVED, **MEMORY_CLOCK, **chip(90)}, {**MOVED, **chip(121)})
    kernels = measure([report], sheet_bandwidth=lambda _name, _capability, _attributes: 128e9).kernels
    assert kernels["utilisation.dram"].to_list() == [pytest.approx(0.75), pytest.approx(0.375), None]
