"""The GPUs that constructed kernels run on: units, rates, driver attributes and counter names.

Sources: NVIDIA's whitepapers and data sheets for units and rates; the Kernel Profiling Guide and CUPTI's metric
tables of each chip for names. Assumed: L2 clocks, which are round numbers; the L2 slices of Orin and Blackwell and their rates;
memory clock and width of integrated GPUs, chosen to give the data sheet's bandwidth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support import constructed_tensor as tensor
from tests.support.report_parts import METRICS_BY_CHIP

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Gpu:
    """One GPU. Rates are per clock: of an SM, of an L2 slice, or of the memory interface.

    Attributes:
        capability: compute capability, major and minor.
        sm_clock_hz: highest SM clock; a kernel may run at a lower one.
        dram_clock_hz: memory clock while kernels run; two transfers per clock.
        n_slices: number of L2 slices.
        slice_sectors: 32-byte sectors that pass a slice's tag stage.
        slice_read_sectors: 32-byte sectors that a slice returns to the SMs.
        sm_fill_bytes: bytes that an SM receives from L2.
        ffma_threads: threads for which an SM executes an FFMA; likewise for DFMA and HFMA (two-wide).
        tensor_operations: tensor operations of an SM, by counter name (after `sm__ops_path_tensor_`).
        tensor_sums: counters that sum the `op_…` counters of the same source type.
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

    @property
    def is_integrated(self) -> bool:
        """Return whether the GPU shares the CPU's memory: there are no DRAM counters then, and L2 fills from system memory."""
        return self.capability in {(8, 7), (11, 0), (12, 1)}

    @property
    def counts_memory_controllers(self) -> bool:
        """Return whether the GPU has `mcc__` counters (memory controllers)."""
        return self.capability in {(8, 7), (11, 0)}

    @property
    def counts_packed_fp32(self) -> bool:
        """Return whether FADD2, FMUL2 and FFMA2 are counted.

        CUPTI's tables have these counters for 10.0 and 10.3 only. Here all later chips have them too, so that tests make sure they
        are added wherever they exist.
        """
        return self.capability >= (10, 0)

    def summed(self, name: str) -> list[str]:
        """Return the counters that add up to the counter `name`."""
        pattern = re.compile(rf"op_[a-z]+_{name}(_dst_\w+?)?(_sparsity_(on|off))?$")
        return [split for split in self.tensor_operations if pattern.match(split)]


# fmt: off
GPUS = {
    gpu.id: gpu
    for gpu in (
        Gpu("v100-sxm2", "Tesla V100-SXM2-16GB", "GV100", (7, 0), 80, 1.53e9, 1.3e9, 0.877e9, 4096,
            16_945_709_056, 6 << 20, 64, 1, 1, 32, 2, 64, 32, 96 << 10, 64, 32, 64, tensor.VOLTA),
        Gpu("t4", "Tesla T4", "TU104", (7, 5), 40, 1.59e9, 1.2e9, 5.0e9, 256,
            15_843_721_216, 4 << 20, 32, 1, 1, 32, 32, 32, 16, 64 << 10, 64, 2, 64, tensor.TURING),
        Gpu("a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", "GA100", (8, 0), 108, 1.41e9, 1.2e9, 1.593e9, 5120,
            85_899_345_920, 40 << 20, 80, 3, 2, 64, 2, 64, 32, 164 << 10, 64, 32, 128, tensor.AMPERE),
        Gpu("rtx-3090", "NVIDIA GeForce RTX 3090", "GA102", (8, 6), 82, 1.695e9, 1.5e9, 9.751e9, 384,
            25_414_860_800, 6 << 20, 48, 1, 1, 32, 32, 48, 16, 100 << 10, 128, 2, 64, tensor.AMPERE_GEFORCE),
        Gpu("jetson-agx-orin", "Orin", "GA10B", (8, 7), 16, 1.3e9, 1.2e9, 3.2e9, 256,
            64_000_000_000, 4 << 20, 16, 1, 1, 32, 32, 48, 16, 164 << 10, 128, 2, 128, tensor.AMPERE_JETSON),
        Gpu("rtx-4090", "NVIDIA GeForce RTX 4090", "AD102", (8, 9), 128, 2.52e9, 2.2e9, 10.5e9, 384,
            25_769_803_776, 72 << 20, 48, 2, 2, 64, 64, 48, 24, 100 << 10, 128, 2, 64, tensor.ADA_GEFORCE),
        Gpu("h200-sxm", "NVIDIA H200", "GH100", (9, 0), 132, 1.98e9, 1.8e9, 3.125e9, 6144,
            150_754_820_096, 60 << 20, 96, 3, 2, 128, 2, 64, 32, 228 << 10, 128, 64, 128, tensor.HOPPER,
            tensor.HOPPER_SUMS),
        Gpu("b200", "NVIDIA B200", "GB100", (10, 0), 148, 1.965e9, 1.8e9, 3.996e9, 7680,
            191_500_000_000, 132_644_864, 160, 3, 2, 128, 2, 64, 32, 228 << 10, 128, 64, 128, tensor.BLACKWELL,
            tensor.BLACKWELL_SUMS),
        Gpu("b300", "NVIDIA B300 SXM6 AC", "GB110", (10, 3), 148, 2.032e9, 1.8e9, 3.996e9, 7680,
            288_400_343_040, 132_644_864, 160, 3, 2, 128, 64, 64, 32, 228 << 10, 128, 2, 128, tensor.BLACKWELL_ULTRA,
            tensor.BLACKWELL_ULTRA_SUMS),
        Gpu("jetson-agx-thor", "NVIDIA Thor", "GB10B", (11, 0), 20, 1.575e9, 1.4e9, 4.266e9, 256,
            128_000_000_000, 32 << 20, 32, 2, 2, 64, 64, 48, 24, 228 << 10, 128, 2, 128, tensor.BLACKWELL_JETSON,
            tensor.BLACKWELL_SUMS),
        Gpu("rtx-5090", "NVIDIA GeForce RTX 5090", "GB202", (12, 0), 170, 2.407e9, 2.2e9, 14.0e9, 512,
            34_190_458_880, 96 << 20, 128, 2, 2, 64, 64, 48, 24, 100 << 10, 128, 2, 64, tensor.BLACKWELL_GEFORCE,
            tensor.BLACKWELL_GEFORCE_SUMS),
        Gpu("gb10", "NVIDIA GB10", "GB20B", (12, 1), 48, 2.418e9, 2.2e9, 4.266e9, 256,
            128_000_000_000, 24 << 20, 48, 2, 2, 64, 64, 48, 24, 100 << 10, 128, 2, 64, tensor.BLACKWELL_GEFORCE,
            tensor.BLACKWELL_GEFORCE_SUMS),
    )
}
# fmt: on


def attributes(gpu: Gpu) -> dict[str, int | str]:
    """Return the driver's attributes of the GPU, by full attribute name."""
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
        "integrated": int(gpu.is_integrated),
        "device_index": 0,
    }
    return METRICS_BY_CHIP[gpu.chip] | {f"device__attribute_{name}": value for name, value in values.items()}


def reserved_shared_bytes(gpu: Gpu) -> int:
    """Return the bytes of shared memory that the driver reserves in each block."""
    return 1024 if gpu.capability >= (8, 0) else 0
