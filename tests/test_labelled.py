"""Kernels of the corpus whose answer is known from their source or their authors' words."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof

pytestmark = pytest.mark.corpus

# report, kernel, verdict, limiters that are right, finding that must be there, finding that must not
LABELLED = [
    # Matrix addition on a T4 with 32, 16, 8 and 4 useful bytes per sector: the same sum, from coalesced to eight apart.
    ("armleth__cuda-mlp-inference/report.ncu-rep", "matrix_addition2D", "memory", {"dram"}, "dram_roof", "uncoalesced"),
    (
        "armleth__cuda-mlp-inference/report_v2.ncu-rep",
        "matrix_addition2D", "memory", {"dram"}, "uncoalesced_global_access", "",
    ),
    (
        "armleth__cuda-mlp-inference/report_v3_loop_unroll.ncu-rep",
        "", "memory", {"dram"}, "uncoalesced_global_access", "",
    ),
    (
        # L1 is as full as in the next one, 86 %, beside DRAM at 74 %, which carries 90 % for the same sums with coalesced accesses.
        "armleth__cuda-mlp-inference/report_v5_4_per_thread.ncu-rep",
        "", "memory", {"l1"}, "uncoalesced_global_access", "",
    ),
    (
        # Loads that are not coalesced fill L1, whose throughput is 85 % by NVIDIA's counter, and the queue: 63 % of waits.
        "armleth__cuda-mlp-inference/report_v4_8_per_thread.ncu-rep",
        "", "memory", {"l1"}, "uncoalesced_global_access", "",
    ),
    (
        "armleth__cuda-mlp-inference/report_v8_1d_4_per_thread_stripped.ncu-rep",
        "", "memory", {"dram"}, "dram_roof", "uncoalesced",
    ),
    # One product written with the thread index on the wrong dimension, and on the right one.
    (
        "leimao__Nsight-Compute-Docker-Image/examples__gemm_naive.ncu-rep", "gemm_non_coalesced",
        "memory", {"l1"}, "uncoalesced_global_access", "",
    ),
    (
        "leimao__Nsight-Compute-Docker-Image/examples__gemm_naive.ncu-rep", "gemm_coalesced",
        "memory", {"lsu"}, "lsu_instructions", "uncoalesced",
    ),
    # A naive product: one operand is broadcast to the warp, which uses 4 of 32 bytes and wastes nothing.
    (
        "LakshyaSingh354__CudaCode/gemm__reps__naive.ncu-rep",
        "naive_gemm", "memory", {"lsu", "l1"}, "lsu_instructions", "uncoalesced",  # 83 % both: L1 of Turing at its own peak
    ),
    (
        "LakshyaSingh354__CudaCode/stage1__reps__vec_add.ncu-rep",
        "vec_add", "memory", {"dram"}, "dram_roof", "uncoalesced",
    ),
    # Its author calls it bandwidth-bound; DRAM is at 0.7 % and the L1 data stage at 95 %.
    (
        "ayush-os__flash-attn-one-cuda/flash_attn_profile@b857f5f.ncu-rep",
        "flash_attn_tc_kernel", "memory", {"l1"}, "l1_or_shared", "dram",
    ),
    (
        "ayush-os__flash-attn-one-cuda/profiles__flash_attn_profile.ncu-rep",
        "", "memory", {"shared"}, "shared_traffic", "dram",
    ),
    # Convolutions: one thread per output from global memory, then tiles in shared memory that conflict.
    ("Swagatam1812__hpca-gpu-memory-profiling/naive.ncu-rep", "", "memory", {"l1"}, "uncoalesced_global_access", ""),
    ("Swagatam1812__hpca-gpu-memory-profiling/variant2.ncu-rep", "", "balanced", {"shared"}, "bank_conflicts", ""),
    (
        "Lashi0812__CudaGEMMOptimization/profiling__profiles__sgemmVectorize_bk_16.ncu-rep",
        "", "memory", {"shared"}, "bank_conflicts", "",
    ),
    # cuBLAS at 97 % of the FP32 peak: done.
    (
        "ZSL98__bitwise_spgemm/profiling_results__result.ncu-rep",
        "ampere_sgemm_128x64_nn", "compute", {"fp32"}, "arithmetic_roof", "",
    ),
    # Tensor-core distances that load synchronously: every warp waits for its tile.
    (
        "bwcurless__FaSTED/profiles__Shared_Mem_Conflicts_Sync_Vs_Async__Synchronous.ncu-rep", "",
        "latency", {"occupancy", "long_scoreboard"}, "serial_loads", "stall_long_scoreboard",
    ),
    # Searches of a tree, node after node; and the variant of one that its author wrote for instruction-level parallelism.
    (
        "bwd29__self-join-MiSTIC/profileMSDNEW.out.ncu-rep", "nodeByPoint",
        "latency", {"long_scoreboard"}, "serial_loads", "stall_long_scoreboard",
    ),
    (
        "bwd29__self-join-MiSTIC/ilpProf.ncu-rep", "nodeCalculationsKernel",  # registers hold larger blocks at 40 of 64 warps
        "latency", {"long_scoreboard"}, "serial_loads", "stall_overlapping_loads", # two by two, but for the last four
    ),
    # 16 million blocks of one thread each.
    ("amitadate__GPU_Power_Model/PS1_100_profile.ncu-rep", "", "latency", {"occupancy"}, "blocks_below_a_warp", "divergence"),
    # A transpose of one element per thread: 23 instructions per warp, a third of the places for warps empty, a store for each lane.
    # Its author's sweep over blocks: 65 µs at 32 × 32, 50 µs at 32 × 16, 20 µs at 16 × 32, where two lanes store side by side.
    (
        "2388612861__GPU-DEMO/ncu_report_optimized@bf4a812.ncu-rep",
        "transposeMatrix", "latency", {"l2"}, "scattered_stores", "unfilled_occupancy",
    ),
    # A two-dimensional heat equation on a tiny grid: the launches cost more than the work.
    (
        "bautista-garcia__heat_sim/profile@41001a0.ncu-rep",
        "reduction_kernel", "overhead", {"launch"}, "launch_overhead", "",
    ),
    # FP64 self-energy on a laptop's RTX 4060, where FP64 runs at 1/64 of FP32; only a roofline chart was collected.
    (
        "rashwanth__RooflineAnalysis_On_NVIDIA_GPU/custom-scripts__output0.ncu-rep",
        "", "compute", {"fp64"}, "fp64_on_slow_part", "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("report", "name", "verdict", "limiters", "finding", "absent"), LABELLED)
def test_known_kernels_are_diagnosed_rightly(
    corpus: list[Path], report: str, name: str, verdict: str, limiters: set[str], finding: str, absent: str
) -> None:
    path = corpus[0].parents[1] / report
    kernels = [kernel for kernel in ncuroof.read(path).analyse().to_dict()["kernels"] if name in kernel["short_name"]]
    longest = max(kernels, key=lambda kernel: kernel["duration_ns"] or 0)
    found = [entry["id"] for entry in longest["findings"]]
    assert longest["verdict"] == verdict
    assert longest["limiter"] in limiters
    assert finding in found
    assert not absent or not any(each.startswith(absent) for each in found)
