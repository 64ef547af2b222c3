"""The GPUs that constructed kernels run on: their units, rates, driver attributes and names of counters.

Sources: NVIDIA's whitepapers and data sheets for the units and rates; the Kernel Profiling Guide and CUPTI's
metric tables of each chip for the names. L2 clocks are round numbers; the slices of GB202 are an assumption.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.report_parts import METRICS_BY_CHIP

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Gpu:
    """One GPU. Rates are per clock: of an SM, of an L2 slice, or of the memory interface.

    Attributes:
        capability: compute capability, major and minor.
        sm_clock_hz: the highest; a kernel's own clock may be lower.
        dram_clock_hz: measured while kernels run; two transfers per clock.
        n_slices: of the L2 cache.
        slice_sectors: 32-byte sectors that pass a slice's tag stage.
        slice_read_sectors: 32-byte sectors that a slice returns to the SMs.
        sm_fill_bytes: bytes that an SM takes from L2.
        ffma_threads: threads whose FFMA an SM executes; the same for DFMA and HFMA (two-wide).
        tensor_operations: operations of an SM by name of the counter (after `sm__ops_path_tensor_`).
        tensor_sums: counters that sum the `op_…` ones of the same source type.
    """

    id: str
    name: str
    chip: str
    capability: tuple[int, int]
    n_sms: int
    sm_clock_hz: float
    l2_clock_hz: float
    dram_clock_hz: float
    memory_bus_bits: int
    dram_bytes: int
    l2_bytes: int
    n_slices: int
    slice_sectors: int
    slice_read_sectors: int
    sm_fill_bytes: int
    fp32_over_fp64: int
    max_warps: int
    max_blocks: int
    shared_bytes: int
    ffma_threads: int
    dfma_threads: int
    hfma_threads: int
    tensor_operations: Mapping[str, float]
    tensor_sums: tuple[str, ...] = ()

    @property
    def dram_bytes_per_clock(self) -> int:
        return 2 * self.memory_bus_bits // 8

    def summed(self, name: str) -> list[str]:
        """Return the counters that the sum `name` is made of."""
        pattern = re.compile(rf"op_[a-z]+_{name}(_dst_\w+?)?(_sparsity_(on|off))?$")
        return [split for split in self.tensor_operations if pattern.match(split)]


def _with_sparsity(**operations: float) -> dict[str, float]:
    """Return the rates with and without structured sparsity, which doubles them."""
    return {
        f"{name}_sparsity_{state}": rate * factor
        for name, rate in operations.items()
        for state, factor in (("off", 1), ("on", 2))
    }


_HOPPER_TENSOR = {
    **_with_sparsity(
        op_hmma_src_bf16_dst_fp32=8192 / 3,
        op_hmma_src_fp16_dst_fp16=8192 / 3,
        op_hmma_src_fp16_dst_fp32=8192 / 3,
        op_hmma_src_tf32_dst_fp32=4096 / 3,
        op_hgmma_src_bf16_dst_fp32=4096,
        op_hgmma_src_fp16=4096,
        op_hgmma_src_tf32_dst_fp32=2048,
        op_imma_src_int8=16384 / 3,
        op_igmma_src_int8=8192,
        src_fp8=8192,
    ),
    "op_bmma_src_int1": 131072 / 3,
    "op_bgmma_src_int1": 65536,
    "src_fp64": 256,
}
_AMPERE_TENSOR = {
    **_with_sparsity(
        src_bf16_dst_fp32=2048,
        src_fp16_dst_fp16=2048,
        src_fp16_dst_fp32=2048,
        src_tf32_dst_fp32=1024,
        src_int8=4096,
        src_int4=8192,
    ),
    "src_fp64": 128,
    "src_int1": 32768,
}
_ADA_TENSOR = {
    **_with_sparsity(
        src_bf16_dst_fp32=512,
        src_fp16_dst_fp16=1024,
        src_fp16_dst_fp32=512,
        src_tf32_dst_fp32=256,
        src_int8=2048,
        src_int4=4096,
        src_fp8=2048,
    ),
    "src_fp64": 4,
    "src_int1": 16384,
}
_TURING_TENSOR = {
    "src_fp16_bf16_tf32_dst_fp32": 1024,
    "src_fp16_dst_fp16": 1024,
    "src_int8": 2048,
    "src_int4": 4096,
    "src_int1": 16384,
}
_BLACKWELL_TENSOR = {
    **_with_sparsity(
        op_hmma_src_bf16_dst_fp32=512,
        op_hmma_src_fp16_dst_fp16=1024,
        op_hmma_src_fp16_dst_fp32=512,
        op_hmma_src_tf32_dst_fp32=256,
        op_imma_src_int8=2048,
        src_fp4_dst_fp32=4096,
        src_fp4_fp6_dst_fp16=2048,
        src_fp4_fp6_dst_fp32=1024,
        src_fp8_dst_fp16=2048,
        src_fp8_dst_fp32=1024,
    ),
    "src_fp64": 4,
}
_BLACKWELL_SUMS = ("bf16_dst_fp32", "fp16_dst_fp16", "fp16_dst_fp32", "tf32_dst_fp32", "int8")

PIPE_TENSOR = "pipe_tensor"
"""Stands for Volta's only tensor counter, of instructions: 512 operations each with FP32 accumulation."""

# fmt: off
GPUS = {
    gpu.id: gpu
    for gpu in (
        Gpu("v100-sxm2", "Tesla V100-SXM2-16GB", "GV100", (7, 0), 80, 1.53e9, 1.3e9, 0.877e9, 4096,
            16_945_709_056, 6 << 20, 64, 1, 1, 32, 2, 64, 32, 96 << 10, 64, 32, 64, {PIPE_TENSOR: 1024}),
        Gpu("t4", "Tesla T4", "TU104", (7, 5), 40, 1.59e9, 1.2e9, 5.0e9, 256,
            15_843_721_216, 4 << 20, 32, 1, 1, 32, 32, 32, 16, 64 << 10, 64, 2, 64, _TURING_TENSOR),
        Gpu("a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", "GA100", (8, 0), 108, 1.41e9, 1.2e9, 1.593e9, 5120,
            85_899_345_920, 40 << 20, 80, 3, 2, 64, 2, 64, 32, 164 << 10, 64, 32, 128, _AMPERE_TENSOR),
        Gpu("rtx-4090", "NVIDIA GeForce RTX 4090", "AD102", (8, 9), 128, 2.52e9, 2.2e9, 10.5e9, 384,
            25_769_803_776, 72 << 20, 48, 2, 2, 64, 64, 48, 24, 100 << 10, 128, 2, 64, _ADA_TENSOR),
        Gpu("h200-sxm", "NVIDIA H200", "GH100", (9, 0), 132, 1.98e9, 1.8e9, 3.125e9, 6144,
            150_754_820_096, 60 << 20, 96, 3, 2, 128, 2, 64, 32, 228 << 10, 128, 64, 128, _HOPPER_TENSOR,
            ("src_bf16_dst_fp32", "src_fp16", "src_tf32_dst_fp32", "src_int8", "src_int1")),
        Gpu("rtx-5090", "NVIDIA GeForce RTX 5090", "GB202", (12, 0), 170, 2.407e9, 2.2e9, 14.0e9, 512,
            34_190_458_880, 96 << 20, 128, 2, 2, 64, 64, 48, 24, 100 << 10, 128, 2, 64, _BLACKWELL_TENSOR,
            tuple(f"src_{types}" for types in _BLACKWELL_SUMS)),
    )
}
# fmt: on


def attributes(gpu: Gpu) -> dict[str, int | str]:
    """Return what the driver says of the GPU, by full name of the attribute."""
    khz = {"clock_rate": gpu.sm_clock_hz, "memory_clock_rate": gpu.dram_clock_hz}
    values: dict[str, int | str] = {
        "display_name": gpu.name,
        "multiprocessor_count": gpu.n_sms,
        **{name: round(clock_hz / 1000) for name, clock_hz in khz.items()},
        "max_gpu_frequency_khz": round(gpu.sm_clock_hz / 1000),
        "max_mem_frequency_khz": round(gpu.dram_clock_hz / 1000),
        "global_memory_bus_width": gpu.memory_bus_bits,
        "fb_bus_width": gpu.memory_bus_bits,
        "total_memory": gpu.dram_bytes,
        "l2_cache_size": gpu.l2_bytes,
        "l2s_count": gpu.n_slices,
        "single_to_double_precision_perf_ratio": gpu.fp32_over_fp64,
        "max_warps_per_multiprocessor": gpu.max_warps,
        "max_warps_per_scheduler": gpu.max_warps // 4,
        "max_threads_per_multiprocessor": 32 * gpu.max_warps,
        "max_blocks_per_multiprocessor": gpu.max_blocks,
        "limits_max_cta_per_sm": gpu.max_blocks,
        "max_registers_per_multiprocessor": 65536,
        "max_registers_per_thread": 255,
        "max_shared_memory_per_multiprocessor": gpu.shared_bytes,
        "reserved_shared_memory_per_block": reserved_shared_bytes(gpu),
        "max_threads_per_block": 1024,
        "num_schedulers_per_multiprocessor": 4,
        "max_ipc_per_multiprocessor": 4,
        "warp_size": 32,
        "integrated": 0,
        "device_index": 0,
    }
    return METRICS_BY_CHIP[gpu.chip] | {f"device__attribute_{name}": value for name, value in values.items()}


def reserved_shared_bytes(gpu: Gpu) -> int:
    """Return the shared memory that the driver takes of each block."""
    return 1024 if gpu.capability >= (8, 0) else 0


def memory_members(gpu: Gpu) -> tuple[str, ...]:
    """Return the units that NVIDIA's Speed of Light of the memory system is the maximum of."""
    absent = set()
    if gpu.capability < (9, 0):
        absent |= {"l1tex__m_xbar2l1tex_read_sectors_mem_dshared", "l1tex__tmain_requests"}
    names = tuple(name for name in _MEMORY_MEMBERS if name not in absent)
    if gpu.capability < (10, 0):
        return names
    return (*(name for name in names if name != "lts__d_sectors_fill_sysmem"), *_SYSTEM_MEMORY_MEMBERS)


def compute_members(gpu: Gpu) -> tuple[str, ...]:
    """Return the units that NVIDIA's Speed of Light of the SMs is the maximum of."""
    capability = gpu.capability
    is_there = {
        "sm__inst_executed_pipe_fp16": capability <= (8, 0),
        "sm__inst_executed_pipe_uniform": capability >= (7, 5),
        "sm__pipe_alu_cycles_active": capability < (12, 0),
        "sm__pipe_aluheavy_cycles_active": capability >= (12, 0),
        "sm__pipe_fmaheavy_cycles_active": capability >= (8, 6),
        "sm__pipe_shared_cycles_active": capability in {(7, 0), (7, 5), (8, 0), (9, 0)},
        "sm__pipe_tensor_op_dmma_cycles_active": capability == (9, 0),
        HOPPER_TENSOR_PIPE: capability == (9, 0),
        "sm__pipe_tma_cycles_active": capability >= (9, 0),
    }
    return tuple(name for name in _COMPUTE_MEMBERS if is_there.get(name, True))


HOPPER_TENSOR_PIPE = "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"
_MEMORY_MEMBERS = (
    "dram__cycles_active",
    "fbpa__dram_sectors",
    "gpu__compute_memory_access_throughput_internal_activity",
    "gpu__compute_memory_request_throughput_internal_activity",
    *(
        f"l1tex__{name}"
        for name in [
            "data_bank_reads",
            "data_bank_writes",
            "data_pipe_lsu_wavefronts",
            "data_pipe_tex_wavefronts",
            "f_wavefronts",
            "lsu_writeback_active",
            "lsuin_requests",
            "m_l1tex2xbar_req_cycles_active",
            "m_xbar2l1tex_read_sectors",
            "m_xbar2l1tex_read_sectors_mem_dshared",
            "tex_writeback_active",
            "texin_sm2tex_req_cycles_active",
            "tmain_requests",
        ]
    ),
    *(
        f"lts__{name}"
        for name in [
            "d_atomic_input_cycles_active",
            "d_sectors",
            "d_sectors_fill_device",
            "d_sectors_fill_sysmem",
            "lts2xbar_cycles_active",
            "t_sectors",
            "t_tag_requests",
            "xbar2lts_cycles_active",
        ]
    ),
)
_SYSTEM_MEMORY_MEMBERS = tuple(
    f"syslts__{name}"
    for name in [
        "d_atomic_input_cycles_active",
        "d_sectors",
        "d_sectors_fill_sysmem",
        "syslts2xbar_cycles_active",
        "t_sectors",
        "t_tag_requests",
        "xbar2syslts_cycles_active",
    ]
)
_COMPUTE_MEMBERS = (
    "idc__request_cycles_active",
    "sm__inst_executed",
    *(
        f"sm__inst_executed_pipe_{pipe}"
        for pipe in ["adu", "cbu_pred_on_any", "fp16", "ipa", "lsu", "tex", "uniform", "xu"]
    ),
    "sm__instruction_throughput_internal_activity",
    "sm__issue_active",
    "sm__memory_throughput_internal_activity",
    *(
        f"sm__mio{name}"
        for name in [
            "2rf_writeback_active",
            "_inst_issued",
            "_pq_read_cycles_active",
            "_pq_write_cycles_active",
        ]
    ),
    *(
        f"sm__pipe_{pipe}_cycles_active"
        for pipe in ["alu", "aluheavy", "fma", "fmaheavy", "fp64", "shared", "tensor", "tensor_op_dmma"]
    ),
    HOPPER_TENSOR_PIPE,
    "sm__pipe_tma_cycles_active",
)
