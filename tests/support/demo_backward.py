"""The rest of the simulated H200 report: backward pass, optimizer, and classic kernels from CUDA courses."""

from __future__ import annotations

from tests.support.constructed import Accesses, Described, Shared
from tests.support.demo_planted import MEMORY_RULE, Planted, bottleneck
from tests.support.report_parts import FocusMetric, Rule

_N_PARAMETERS = 1536 * 65536
"""Parameters per optimizer launch: 1536 chunks, 101 million in all."""
_NATIVE = "at::native::(anonymous namespace)::"
_MATRIX = 8192 * 8192

BACKWARD = (
    Planted(
        "registers spilled to local memory fill the L1 data stage",
        "memory",
        "l1",
        ("local_memory", "l1_traffic"),
        Described(
            "fused_rope_qk_norm_backward",
            600_064,  # 114e6 wavefronts over 132 * 1.98 GHz * 600 us: 73 % of one per cycle
            demangled="void fused_rope_qk_norm_backward<float, 128>(const T1 *, const T1 *, T1 *, int)",
            nvtx=("step", "backward", "layer0", "attention"),
            grid=(132 * 2 * 20, 1, 1),
            block=(128, 1, 1),
            registers=255,
            loads=Accesses(2_500_000, 16, bytes_per_thread=16),
            stores=Accesses(1_000_000, 16, bytes_per_thread=16),
            local_loads=Accesses(16_000_000, 16, bytes_per_thread=16, hit_frac=0.8),
            local_stores=Accesses(9_000_000, 16, bytes_per_thread=16, hit_frac=0.85),
            dram_read_bytes=24_000_000 * 32,
            dram_write_bytes=512_000_000,
            fp32=(6e8, 6e8, 1.8e9),
            warp_instructions=2e8,
            stalls={"lg_throttle": 0.42, "long_scoreboard": 0.2, "not_selected": 0.02},
            rules=(MEMORY_RULE,),
        ),
    ),
    Planted(
        "its collection failed",
        "unknown",
        None,
        (),
        Described(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
            150_000,
            demangled="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
            nvtx=("step", "backward", "allreduce"),
            stream=23,
            grid=(24, 1, 1),
            block=(544, 1, 1),
            registers=96,
            warp_instructions=1e6,
            failed=True,
        ),
    ),
)
OPTIMIZER = (
    Planted(
        "shorter than launching it, one block",
        "overhead",
        "launch",
        ("launch_overhead",),
        Described(
            "reduce_kernel",
            2_880,
            demangled="void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
            "at::native::NormTwoOps<float, float, float>, unsigned int, float, 4, 4>>(T3)",
            nvtx=("step", "optimizer", "clip_grad_norm"),
            grid=(1, 1, 1),
            block=(512, 1, 1),
            loads=Accesses(64, 16, bytes_per_thread=16),
            stores=Accesses(1, 1, 4),
            shared_loads=Shared(32),
            shared_stores=Shared(32),
            dram_read_bytes=32768,
            fp32=(8192, 0, 8192),
            warp_instructions=4_000,
            active_frac=0.7 / 132,
            achieved_occupancy_frac=0.24,
            stalls={"long_scoreboard": 0.45, "barrier": 0.2, "no_instruction": 0.2},
        ),
    ),
    Planted(
        "optimizer over all parameters: DRAM is full",
        "memory",
        "dram",
        ("dram_roof",),
        Described(
            "multi_tensor_apply_kernel",
            652_288,  # 28 bytes of each of 101e6 parameters over 652 us are 4.32 TB/s: 90 % of DRAM
            mangled="_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizerTensorList"
            "MetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_MODEE1ELb0EEEJPKfdddddbS8_S8_EEEvT_T0_DpT1_",
            demangled=f"void {_NATIVE}multi_tensor_apply_kernel<"
            f"{_NATIVE}FusedOptimizerTensorListMetadata<(int)4>, "
            f"{_NATIVE}FusedAdamMathFunctor<float, (int)4, (at::native::ADAM_MODE)1, (bool)0>, const float *, "
            "double, double, double, double, double, bool, const float *, const float *>(T1, T2, T3...)",
            nvtx=("step", "optimizer", "adamw"),
            grid=(1536, 1, 1),
            block=(512, 1, 1),
            registers=48,
            loads=Accesses(16 * _N_PARAMETERS // 512, 16, bytes_per_thread=16),
            stores=Accesses(12 * _N_PARAMETERS // 512, 16, bytes_per_thread=16),
            dram_read_bytes=16 * _N_PARAMETERS,
            dram_write_bytes=12 * _N_PARAMETERS,
            fp32=(2 * _N_PARAMETERS, 5 * _N_PARAMETERS, 4 * _N_PARAMETERS),
            busy={"sm__inst_executed_pipe_xu": 0.14},
            stalls={"long_scoreboard": 0.78, "not_selected": 0.03, "drain": 0.04},
            rules=(MEMORY_RULE,),
        ),
    ),
    Planted(
        "shorter than launching it, four blocks",
        "overhead",
        "launch",
        ("launch_overhead",),
        Described(
            "vectorized_elementwise_kernel",
            2_048,
            demangled="void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
            "std::array<char *, (unsigned long)1>>(int, T2, T3)",
            nvtx=("step", "optimizer", "zero_grad"),
            grid=(4, 1, 1),
            block=(128, 1, 1),
            stores=Accesses(16, 16, bytes_per_thread=16),
            warp_instructions=400,
            active_frac=0.6 * 4 / 132,
            achieved_occupancy_frac=0.06,
            stalls={"no_instruction": 0.5, "imc_miss": 0.2},
        ),
    ),
)
TEACHING = (
    Planted(
        "matrix product without tiles: every operand comes out of L1 again",
        "memory",
        "l1",
        ("l1_traffic",),
        Described(
            "sgemm_naive_vec4",
            11_670_016,
            # Each of 4096^3 / 4 / 32 iterations of a warp reads one element (1 wavefront) and 512 bytes (4 of
            # them), 17 sectors with 516 useful bytes, for 4 FFMA: 2.7e9 wavefronts, 88 % of 132 per cycle.
            demangled="sgemm_naive_vec4(const float *, const float *, float *, int)",
            mangled="_Z16sgemm_naive_vec4PKfS0_Pfi",
            nvtx=("teaching", "sgemm"),
            grid=(4096 * 1024 // 256, 1, 1),
            registers=40,
            loads=Accesses(2 * 4096**3 // 128, 8.5, 516 / 17, 10, wavefronts_per_request=2.5, hit_frac=0.97),
            stores=Accesses(4096 * 1024 // 32, 16, bytes_per_thread=16),
            dram_read_bytes=6 * 4096**2 * 4,
            dram_write_bytes=4096**2 * 4,
            fp32=(0, 0, 4096**3),
            warp_instructions=3.6e9,
            stalls={"lg_throttle": 0.38, "long_scoreboard": 0.22, "not_selected": 0.08},
            rules=(MEMORY_RULE,),
        ),
    ),
    Planted(
        "strided loads: 4 bytes of each sector used; L2 catches the waste before DRAM",
        "memory",
        "l2",
        ("uncoalesced_global_load", "l2_traffic"),
        Described(
            "copy_strided",
            1_080_000,  # 8.6 GB from L2 over 1.08 ms are 7.95 TB/s: 72 % of 96 slices * 64 bytes * 1.8 GHz
            demangled="copy_strided(const float *, float *, int, int)",
            mangled="_Z12copy_stridedPKfPfii",
            nvtx=("teaching", "copy"),
            grid=(2**28 // 256, 1, 1),
            registers=16,
            loads=Accesses(2**28 // 32, 32, 4),
            stores=Accesses(2**28 // 32),
            dram_read_bytes=2**30,
            dram_write_bytes=2**30,
            warp_instructions=12 * 2**28 // 32,
            stalls={"long_scoreboard": 0.8, "lg_throttle": 0.12},
            rules=(
                MEMORY_RULE,
                Rule(
                    "UncoalescedGlobalAccess",
                    "Uncoalesced Global Accesses",
                    "SourceCounters",
                    "Uncoalesced Global Accesses",
                    "Neighbouring threads that read neighbouring elements would need fewer sectors.",
                    speedup=("local", 56.0),
                    focus_metrics=(
                        FocusMetric("memory_l2_theoretical_sectors_global", 301989888.0, "high", "fewer sectors"),
                    ),
                ),
            ),
        ),
    ),
    Planted(
        "column reads of a 32-wide tile: 32-way bank conflicts",
        "memory",
        "shared",
        ("bank_conflicts", "shared_traffic"),
        Described(
            "transpose_tile32",
            304_992,  # (2 + 1 + 32) wavefronts of each of 2.1e6 requests over 132 * 1.98 GHz * 305 us: 92 %
            demangled="void transpose_tile32<32, 8>(float *, const float *, int, int)",
            mangled="_Z16transpose_tile32ILi32ELi8EEvPfPKfii",
            nvtx=("teaching", "transpose"),
            grid=(256, 256, 1),
            block=(32, 8, 1),
            static_shared_bytes=32 * 32 * 4,
            loads=Accesses(_MATRIX // 32),
            stores=Accesses(_MATRIX // 32),
            shared_loads=Shared(_MATRIX // 32, conflict_ways=32),
            shared_stores=Shared(_MATRIX // 32),
            dram_read_bytes=4 * _MATRIX,
            dram_write_bytes=4 * _MATRIX,
            warp_instructions=24 * _MATRIX // 32,
            stalls={"short_scoreboard": 0.46, "mio_throttle": 0.24, "barrier": 0.12},
            rules=(
                MEMORY_RULE,
                Rule(
                    "SharedMemoryConflicts",
                    "Shared Memory Bank Conflicts",
                    "MemoryWorkloadAnalysis_Tables",
                    "Shared Load Bank Conflicts",
                    "Each shared load takes 32 wavefronts where one would do.",
                    speedup=("local", 88.0),
                ),
            ),
        ),
    ),
    Planted(
        "double precision in additions and multiplications: the pipe is full at half of the FLOP roof",
        "compute",
        "fp64",
        ("unfused_fp64", "arithmetic_headroom"),
        Described(
            "lennard_jones_fp64",
            2_500_000,  # 3.6e10 instructions over 64 * 132 * 1.98 GHz * 2.5 ms: 86 % of the pipe
            demangled="lennard_jones_fp64(const double4 *, double4 *, int)",
            mangled="_Z18lennard_jones_fp64PK7double4PS_i",
            nvtx=("teaching", "md"),
            grid=(132 * 5 * 8, 1, 1),
            block=(256, 1, 1),
            registers=48,
            static_shared_bytes=8192,
            loads=Accesses(4_000_000, 32, bytes_per_thread=32, hit_frac=0.9),
            stores=Accesses(100_000, 32, bytes_per_thread=32),
            shared_loads=Shared(60_000_000),
            shared_stores=Shared(4_000_000),
            dram_read_bytes=200_000_000,
            dram_write_bytes=100_000_000,
            fp64=(1.5e10, 1.6e10, 0.5e10),
            warp_instructions=1.5e9,
            stalls={"math_pipe_throttle": 0.55, "not_selected": 0.1, "long_scoreboard": 0.05},
            rules=(
                bottleneck("High Compute Throughput", "The SMs are much busier than the memory system."),
                Rule(
                    "FPInstructions",
                    "FP32/64 Instructions",
                    "InstructionStats",
                    "FP64 Non-Fused Instructions",
                    "Most double-precision additions and multiplications are not fused.",
                    speedup=("local", 43.0),
                ),
            ),
        ),
    ),
)
