"""The counters behind NVIDIA's roofline charts, for a constructed kernel.

Source: the sections of Nsight Compute that define the charts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.constructed_tensor import PIPE_TENSOR
from tests.support.constructed_units import tensor_operations

if TYPE_CHECKING:
    from tests.support.constructed import Physics

Counters = dict[str, float | int | str]


def roofline(p: Physics) -> Counters:
    """Return the counters of NVIDIA's roofline charts."""
    d, gpu = p.described, p.gpu
    stored: Counters = {
        **{f"{unit}__cycles_elapsed.avg.per_second": p.sm_clock_hz for unit in ("sm", "smsp", "l1tex")},
        "lts__cycles_elapsed.avg.per_second": gpu.l2_clock_hz,
        **_dram_roofline(p),
    }
    for letter, executed, peak, factor in (
        ("d", d.fp64, gpu.dfma_threads, 1),
        ("f", d.fp32, gpu.ffma_threads, 1),
        ("h", d.fp16, gpu.hfma_threads, 2),
    ):
        name = "__sass_thread_inst_executed_op_" + letter
        per_cycle = dict(zip(("add", "mul", "fma"), (n / p.cycles for n in executed), strict=True))
        stored |= {f"smsp{name}{op}_pred_on.sum.per_cycle_elapsed": n for op, n in per_cycle.items()}
        stored[f"sm{name}fma_pred_on.sum.peak_sustained"] = float(peak * gpu.n_sms)
        stored[f"derived__sm{name}fma_pred_on_x{2 * factor}"] = 2.0 * factor * peak * gpu.n_sms
        stored[f"derived__smsp{name}fma_pred_on_x{2 * factor}"] = 2 * factor * per_cycle["fma"]
        if factor == 2:
            stored |= {f"derived__smsp{name}{op}_pred_on_x2": 2 * per_cycle[op] for op in ("add", "mul")}
    return stored | _packed_fp32(p) | _tensor_roofline(p) | _cache_roofline(p)


def dram_rate(p: Physics) -> Counters:
    """Return the DRAM rate counters; empty on integrated GPUs."""
    n_bytes = p.described.dram_read_bytes + p.described.dram_write_bytes
    return {} if p.gpu.is_integrated else {"dram__bytes.sum.per_second": n_bytes / p.duration_s}


def _dram_roofline(p: Physics) -> Counters:
    if p.gpu.is_integrated:
        return {}
    return {
        "dram__cycles_elapsed.avg.per_second": p.gpu.dram_clock_hz,
        **dram_rate(p),
        "dram__bytes.sum.peak_sustained": float(p.gpu.dram_bytes_per_clock),
    }


def _packed_fp32(p: Physics) -> Counters:
    """Return the operations per cycle of packed FP32 instructions: two per addition or multiplication, four per FMA."""
    if not p.gpu.counts_packed_fp32:
        return {}
    name = "derived__smsp__sass_thread_inst_executed_op_{}2_pred_on_x{}"
    kinds = zip(("fadd", "fmul", "ffma"), (2, 2, 4), p.described.fp32_packed, strict=True)
    return {name.format(op, factor): factor * n / p.cycles for op, factor, n in kinds}


def _tensor_roofline(p: Physics) -> Counters:
    paths = dict(tensor_operations(p))
    stored: Counters = {}
    if PIPE_TENSOR in paths:
        stored = _tensor_instructions(p)
        del paths[PIPE_TENSOR]
        if not any(operations for operations, _ in paths.values()):
            return stored
    for name, (operations, rate) in paths.items():
        counter, peak = f"sm__ops_path_tensor_{name}.sum", rate * p.gpu.n_sms
        stored |= {
            counter: float(operations),
            f"{counter}.per_cycle_elapsed": operations / p.cycles,
            f"{counter}.per_second": operations / p.duration_s,
            f"{counter}.pct_of_peak_sustained_elapsed": 100 * operations / (peak * p.cycles),
            f"{counter}.peak_sustained": float(peak),
            f"{counter}.peak_sustained_elapsed.per_second": peak * p.sm_clock_hz,
        }
    return stored


def _tensor_instructions(p: Physics) -> Counters:
    """Return Volta's counter of tensor instructions: 512 operations each with FP32 accumulation, 1024 with FP16."""
    operations_by_path = {PIPE_TENSOR: 512, "src_fp16_dst_fp32": 512, "src_fp16_dst_fp16": 1024}
    done = p.described.tensor.items()
    per_cycle = sum(operations / operations_by_path[path] for path, operations in done) / p.cycles
    peak = p.gpu.tensor_operations[PIPE_TENSOR] / 512 * p.gpu.n_sms
    return {
        "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": per_cycle,
        "sm__inst_executed_pipe_tensor.sum.peak_sustained": peak,
        "derived__smsp__inst_executed_pipe_tensor_x512": 512 * per_cycle,
        "derived__sm__inst_executed_pipe_tensor_x512": 512 * peak,
    }


def _cache_roofline(p: Physics) -> Counters:
    gpu = p.gpu
    suffix = "" if gpu.capability <= (7, 2) else "_mem_lg" if gpu.capability < (9, 0) else "_mem_lgds"
    l1_cycles = p.writeback_cycles if not suffix else p.writeback_cycles_lg
    l2_peak = float(gpu.n_slices * gpu.slice_read_sectors)
    return {
        "lts__lts2xbar_cycles_active.sum.per_second": p.l2_read_sectors / p.duration_s,
        "lts__lts2xbar_cycles_active.sum.peak_sustained": l2_peak,
        "derived__lts__lts2xbar_bytes.sum.per_second": 32 * p.l2_read_sectors / p.duration_s,
        "derived__lts__lts2xbar_bytes.sum.peak_sustained": 32 * l2_peak,
        f"l1tex__lsu_writeback_active{suffix}.sum.per_second": l1_cycles / p.duration_s,
        f"l1tex__lsu_writeback_active{suffix}.sum.peak_sustained": float(gpu.n_sms),
        f"derived__l1tex__lsu_writeback_bytes{suffix}.sum.per_second": 128 * l1_cycles / p.duration_s,
        f"derived__l1tex__lsu_writeback_bytes{suffix}.sum.peak_sustained": 128.0 * gpu.n_sms,
    }
