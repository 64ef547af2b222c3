"""The utilisation of each unit of the GPU while a constructed kernel runs.

For units whose rate NVIDIA does not document, the values are plausible and stay below those of the units that matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.constructed_breakdowns import HOPPER_TENSOR_PIPE, compute_members, memory_members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.constructed import Physics


def busy_fracs(physics: Physics) -> dict[str, float]:
    """Return the fraction of its peak (0..1) that each unit of the Speed of Light breakdowns reaches, by counter.

    Raises:
        ValueError: a unit would exceed its peak, or `busy` names a unit that the GPU does not have.
    """
    names = (*memory_members(physics.gpu), *compute_members(physics.gpu))
    implied = _memory_fracs(physics) | _compute_fracs(physics)
    chosen = physics.described.busy
    if unknown := set(chosen) - set(names):
        raise ValueError(f"the {physics.gpu.chip} has no units {sorted(unknown)}")
    fracs = {name: max(implied.get(name, 0.0), chosen.get(name, 0.0)) for name in names}
    # On integrated GPUs, DRAM is not in the breakdown, but its bandwidth is limited all the same.
    checked = {"dram__cycles_active": implied["dram__cycles_active"]} | fracs
    if overloaded := {name: round(frac, 3) for name, frac in checked.items() if frac > 1}:
        raise ValueError(f"units busier than they can be: {overloaded}")
    return fracs


def tensor_operations(physics: Physics) -> Mapping[str, tuple[float, float]]:
    """Return the value of each tensor counter, and its rate per SM and clock.

    A counter that sums others has the rate of the fastest of them, the sparse one.
    """
    gpu, done = physics.gpu, physics.described.tensor
    if unknown := set(done) - set(gpu.tensor_operations):
        raise ValueError(f"the {gpu.chip} has no tensor counters {sorted(unknown)}")
    counted = {name: (done.get(name, 0.0), rate) for name, rate in gpu.tensor_operations.items()}
    for name in gpu.tensor_sums:
        splits = [counted[split] for split in gpu.summed(name)]
        counted[name] = (sum(done for done, _ in splits), max(rate for _, rate in splits))
    return counted


def tensor_subpipe_fracs(physics: Physics) -> dict[str, float]:
    """Return the utilisation of the tensor sub-pipes that are counted from compute capability 10.0 on, by counter."""
    kinds = {"hmma": _is_hmma, "imma": _is_imma}
    if physics.gpu.capability == (10, 0):
        kinds["dmma"] = _is_dmma
    return {
        f"sm__pipe_tensor_subpipe_{kind}_cycles_active": _tensor_frac(physics, fits) for kind, fits in kinds.items()
    }


def dram_frac(physics: Physics, n_bytes: float) -> float:
    """Return the fraction of the bytes that the memory interface could have moved while the kernel ran."""
    gpu = physics.gpu
    return n_bytes / (gpu.dram_bytes_per_clock * gpu.dram_clock_hz * physics.duration_s)


def _memory_fracs(p: Physics) -> dict[str, float]:
    d, gpu = p.described, p.gpu
    dram = dram_frac(p, d.dram_read_bytes + d.dram_write_bytes)
    per_sm_cycle = {
        "data_bank_reads": p.load_sectors / 4 + d.shared_loads.wavefronts,
        "data_bank_writes": p.l1_read_sectors / 4 + d.shared_stores.wavefronts,
        "data_pipe_lsu_wavefronts": p.lsu_wavefronts,
        "lsu_writeback_active": p.writeback_cycles,
        "lsuin_requests": p.lsu_requests,
        "m_l1tex2xbar_req_cycles_active": p.l2_write_sectors + p.l2_read_sectors / 8,
        "m_xbar2l1tex_read_sectors": p.l2_read_sectors / (gpu.sm_fill_bytes / 32),
    }
    per_slice_cycle = {
        "d_sectors": (p.l2_sectors + d.dram_write_bytes / 32) / (gpu.slice_sectors + 1),
        f"d_sectors_fill_{'sysmem' if gpu.is_integrated else 'device'}": p.l2_fill_sectors,
        "lts2xbar_cycles_active": p.l2_read_sectors / gpu.slice_read_sectors,
        "t_sectors": p.l2_sectors / gpu.slice_sectors,
        "t_tag_requests": p.l2_sectors / 4,
        "xbar2lts_cycles_active": p.l2_write_sectors + p.l2_read_sectors / 4,
    }
    return {
        "dram__cycles_active": dram,
        "fbpa__dram_sectors": 0.75 * dram,
        **{f"l1tex__{name}": cycles / p.sm_cycles for name, cycles in per_sm_cycle.items()},
        **{f"lts__{name}": cycles / p.slice_cycles for name, cycles in per_slice_cycle.items()},
    }


def _compute_fracs(p: Physics) -> dict[str, float]:
    d, gpu = p.described, p.gpu
    has_fp16_pipe = gpu.capability <= (8, 0)
    lanes = d.threads_per_instruction / 32
    fp64, fp32, fp16 = (
        sum(executed) / lanes / (threads * p.sm_cycles)
        for executed, threads in (
            (d.fp64, gpu.dfma_threads),
            # A packed instruction occupies the lanes of two.
            ((*d.fp32, *d.fp32_packed, *d.fp32_packed), gpu.ffma_threads),
            (d.fp16, gpu.hfma_threads),
        )
    )
    fma = fp32 if has_fp16_pipe else fp32 + fp16
    dmma = _tensor_frac(p, _is_dmma)
    tcgen05 = _tensor_frac(p, _is_tcgen05)
    tensor = _tensor_frac(p) - tcgen05
    lsu = p.lsu_requests / p.sm_cycles
    return {
        "idc__request_cycles_active": 0.05 * p.issue_frac,
        "sm__inst_executed": p.issue_frac,
        "sm__issue_active": p.issue_frac,
        "sm__inst_executed_pipe_adu": 0.05 * p.issue_frac,
        "sm__inst_executed_pipe_cbu_pred_on_any": 0.05 * p.issue_frac,
        "sm__inst_executed_pipe_fp16": fp16,
        "sm__inst_executed_pipe_lsu": lsu,
        "sm__inst_executed_pipe_uniform": 0.1 * p.issue_frac,
        "sm__mem_tensor_cycles_active": 0.5 * tcgen05,
        "sm__mio2rf_writeback_active": p.writeback_cycles / 2 / p.sm_cycles,
        "sm__mio_inst_issued": 0.8 * lsu,
        "sm__mio_pq_read_cycles_active": 0.5 * lsu,
        "sm__mio_pq_write_cycles_active": 0.5 * lsu,
        "sm__pipe_alu_cycles_active": 0.3 * p.issue_frac,
        "sm__pipe_aluheavy_cycles_active": 0.3 * p.issue_frac,
        "sm__pipe_fma_cycles_active": fma,
        "sm__pipe_fmaheavy_cycles_active": 0.6 * fma,
        "sm__pipe_fp64_cycles_active": fp64,
        "sm__pipe_shared_cycles_active": tensor,
        "sm__pipe_tc_cycles_active": tcgen05,
        "sm__pipe_tensor_cycles_active": tensor,
        "sm__pipe_tensor_cycles_active_v2": tensor,
        "sm__pipe_tensor_op_dmma_cycles_active": dmma,
        HOPPER_TENSOR_PIPE: tensor - dmma,
        "sm__pipe_tma_cycles_active": (d.tma_load_bytes + d.tma_store_bytes) / 4096 / p.sm_cycles,
    }


def _tensor_frac(p: Physics, fits: Callable[[str], bool] = lambda _: True) -> float:
    """Return the utilisation of the chosen tensor paths: the sum over the operations, each at its own rate."""
    paths = [
        (done, rate)
        for name, (done, rate) in tensor_operations(p).items()
        if name not in p.gpu.tensor_sums and fits(name)
    ]
    return sum(done / rate for done, rate in paths) / p.sm_cycles


def _is_tcgen05(name: str) -> bool:
    return name.startswith("op_utc")


def _is_imma(name: str) -> bool:
    return name.startswith("op_imma_")


def _is_dmma(name: str) -> bool:
    return name == "src_fp64"


def _is_hmma(name: str) -> bool:
    return not (_is_tcgen05(name) or _is_imma(name) or _is_dmma(name))
