"""The units whose maximum is NVIDIA's Speed of Light, by compute capability.

Source: CUPTI's metric tables of each chip, where `gpu__compute_memory_throughput` and `sm__throughput` name their members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.constructed_gpus import Gpu


def memory_members(gpu: Gpu) -> tuple[str, ...]:
    """Return the counters of the units whose maximum is NVIDIA's memory Speed of Light."""
    capability = gpu.capability
    has_clusters = capability >= (9, 0) and capability != (12, 1)
    is_there = {
        "dram__cycles_active": not gpu.is_integrated,
        "fbpa__dram_sectors": not gpu.is_integrated,
        "l1tex__m_xbar2l1tex_read_sectors_mem_dshared": has_clusters,
        "l1tex__tmain_requests": has_clusters,
        "lts__d_sectors_fill_device": capability not in {(11, 0), (12, 1)},
        "lts__d_sectors_fill_sysmem": capability <= (9, 0) or capability == (11, 0),
    }
    names = tuple(name for name in _MEMORY_MEMBERS if is_there.get(name, True))
    has_system_slices = capability >= (10, 0) and not gpu.is_integrated
    return (*names, *_SYSTEM_MEMORY_MEMBERS) if has_system_slices else names


def compute_members(gpu: Gpu) -> tuple[str, ...]:
    """Return the counters of the units whose maximum is NVIDIA's compute (SM) Speed of Light."""
    capability = gpu.capability
    has_tensor_memory = capability in {(10, 0), (10, 3), (11, 0)}
    is_there = {
        "sm__inst_executed_pipe_fp16": capability <= (8, 0),
        "sm__inst_executed_pipe_uniform": capability >= (7, 5),
        "sm__inst_executed_pipe_xu": capability != (10, 3),
        "sm__mem_tensor_cycles_active": has_tensor_memory,
        "sm__pipe_alu_cycles_active": capability < (12, 0),
        "sm__pipe_aluheavy_cycles_active": capability >= (12, 0),
        "sm__pipe_fmaheavy_cycles_active": capability >= (8, 6),
        "sm__pipe_shared_cycles_active": capability in {(7, 0), (7, 5), (8, 0), (9, 0), (10, 0)},
        "sm__pipe_tc_cycles_active": has_tensor_memory,
        "sm__pipe_tensor_cycles_active_v2": capability == (8, 9),
        "sm__pipe_tensor_op_dmma_cycles_active": capability == (9, 0),
        HOPPER_TENSOR_PIPE: capability == (9, 0),
        "sm__pipe_tma_cycles_active": capability >= (9, 0),
        "sm__pipe_xu_cycles_active": capability == (10, 3),
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
    "sm__mem_tensor_cycles_active",
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
        for pipe in ["alu", "aluheavy", "fma", "fmaheavy", "fp64", "shared", "tc", "tensor", "tensor_op_dmma"]
    ),
    "sm__pipe_tensor_cycles_active_v2",
    HOPPER_TENSOR_PIPE,
    "sm__pipe_tma_cycles_active",
    "sm__pipe_xu_cycles_active",
)
