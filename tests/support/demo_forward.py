"""The forward pass of the simulated H200 report.

The decoder layer has 16384 tokens, 4096 hidden and 16384 feed-forward channels. Each duration is chosen so
that the planted unit reaches the utilisation in the comment.
"""

from __future__ import annotations

from tests.support.constructed import Accesses, Described, Shared
from tests.support.demo_planted import MEMORY_RULE, Planted, bottleneck
from tests.support.report_parts import FocusMetric, Rule

_TOKENS, _HIDDEN, _FEED_FORWARD = 16384, 4096, 16384
_HIDDEN_BYTES = 2 * _TOKENS * _HIDDEN
"""One bfloat16 activation: 134 MB."""
_FEED_FORWARD_BYTES = 2 * _TOKENS * _FEED_FORWARD
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, "
_NATIVE = "void at::native::(anonymous namespace)::"
_HGMMA = "op_hgmma_src_bf16_dst_fp32_sparsity_off"
_HMMA = "op_hmma_src_bf16_dst_fp32_sparsity_off"

FORWARD = (
    Planted(
        "one narrow dependent load after the other: nothing is busy, warps wait for memory",
        "latency",
        "long_scoreboard",
        ("stall_long_scoreboard",),
        Described(
            "indexSelectLargeIndex",
            120_032,  # 268 MB over 120 us are 2.24 TB/s: 47 % of DRAM
            mangled="_ZN2at6native12_GLOBAL__N_121indexSelectLargeIndexIN3c108BFloat16EljLi2ELi2ELin2ELb1EEEvv",
            demangled=_NATIVE + "indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>("
            "TensorInfo<T1, T3>, TensorInfo<const T1, T3>, TensorInfo<const T2, T3>, int, int, T3, T3, long)",
            nvtx=(
                "step",
                "forward",
                "embedding",
                "aten::embedding, seq = 11, op_id = 101, sizes = [[50304, 4096], [8, 2048], [], [], []]",
                "aten::index_select, op_id = 102, sizes = [[50304, 4096], [], [16384]]",
            ),
            grid=(33792, 1, 1),
            block=(128, 1, 1),
            loads=Accesses(_HIDDEN_BYTES // 64, 2, bytes_per_thread=2),
            stores=Accesses(_HIDDEN_BYTES // 64, 2, bytes_per_thread=2),
            dram_read_bytes=_HIDDEN_BYTES,
            dram_write_bytes=_HIDDEN_BYTES,
            warp_instructions=20 * _HIDDEN_BYTES // 64,
            stalls={"long_scoreboard": 0.72, "not_selected": 0.03, "lg_throttle": 0.05},
            rules=(
                bottleneck("Latency Issue", "Neither the memory system nor the SMs are busy: the warps wait."),
                Rule(
                    "CPIStall",
                    "Warp Stall",
                    "WarpStateStats",
                    "Long Scoreboard Stalls",
                    "Most of a warp's time goes into waiting for data from L1TEX.",
                    speedup=("global", 53.0),
                ),
            ),
        ),
    ),
    Planted(
        "elementwise over rows: DRAM is full",
        "memory",
        "dram",
        ("dram_roof",),
        Described(
            "vectorized_layer_norm_kernel",
            62_848,  # 268 MB over 62.8 us are 4.27 TB/s: 89 % of DRAM
            mangled="_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c108BFloat16EfLb0EEEvifPKT_S6_S6_"
            "PT0_S8_PS4_",
            demangled=_NATIVE + "vectorized_layer_norm_kernel<c10::BFloat16, float, false>("
            "int, T2, const T1 *, const T1 *, const T1 *, T2 *, T2 *, T1 *)",
            nvtx=(
                *("step", "forward", "layer0", "ln_1"),
                "aten::native_layer_norm, seq = 12, op_id = 104, sizes = [[8, 2048, 4096], [], [4096], [4096], []]",
            ),
            grid=(_TOKENS, 1, 1),
            block=(32, 4, 1),
            registers=40,
            # The second pass over a row hits in L1.
            loads=Accesses(2 * _HIDDEN_BYTES // 512, 16, bytes_per_thread=16, hit_frac=0.5),
            stores=Accesses(_HIDDEN_BYTES // 512, 16, bytes_per_thread=16),
            shared_loads=Shared(4 * _TOKENS),
            shared_stores=Shared(4 * _TOKENS),
            dram_read_bytes=_HIDDEN_BYTES,
            dram_write_bytes=_HIDDEN_BYTES,
            fp32=(2 * _TOKENS * _HIDDEN, _TOKENS * _HIDDEN, 3 * _TOKENS * _HIDDEN),
            stalls={"long_scoreboard": 0.74, "barrier": 0.08, "not_selected": 0.06},
            rules=(MEMORY_RULE,),
        ),
    ),
    Planted(
        "large matrix product: the tensor cores are nearly full",
        "compute",
        "tensor",
        ("arithmetic_headroom",),
        Described(
            "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
            2_949_120,  # 2.2e12 flop over 2.95 ms are 746 Tflop/s: 92 % of 4096 * 132 * 1.5 GHz
            nvtx=(
                *("step", "forward", "layer0", "mlp", "fc_in"),
                "aten::addmm, seq = 14, op_id = 108, sizes = [[16384], [16384, 4096], [4096, 16384], [], []]",
            ),
            sm_clock_hz=1.5e9,
            grid=(132, 1, 1),
            block=(384, 1, 1),
            registers=168,
            dynamic_shared_bytes=200 << 10,
            # 64 * 128 tiles; of each, 128 rows of A (the pair of a cluster shares them) and 128 of B.
            tma_load_bytes=64 * 128 * (128 + 128) * _HIDDEN * 2,
            tma_store_bytes=_FEED_FORWARD_BYTES,
            dram_read_bytes=4 * _HIDDEN_BYTES,
            dram_write_bytes=_FEED_FORWARD_BYTES,
            tensor={_HGMMA: 2 * _TOKENS * _FEED_FORWARD * _HIDDEN},
            warp_instructions=1.2e8,
            threads_per_instruction=31.4,
            stalls={"gmma": 0.56, "barrier": 0.14, "long_scoreboard": 0.12, "not_selected": 0.01},
            rules=(
                bottleneck(
                    "High Compute Throughput",
                    "The SMs are much busier than the memory system. Look for their busiest pipe.",
                ),
            ),
        ),
    ),
    Planted(
        "attention: softmax between two products leaves a third of the tensor cores' time",
        "compute",
        "tensor",
        (),
        Described(
            "device_kernel",
            489_056,  # 2.75e11 flop over 489 us are 562 Tflop/s: 65 % of 4096 * 132 * 1.6 GHz
            mangled="_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90EEEEEvNT_6ParamsE",
            demangled="void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<"
            "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, "
            "cutlass::bfloat16_t, float, cutlass::arch::Sm90, true>>>>(T1::Params)",
            nvtx=("step", "forward", "layer0", "attention"),
            sm_clock_hz=1.6e9,
            grid=(132, 1, 1),
            block=(384, 1, 1),
            registers=168,
            dynamic_shared_bytes=210 << 10,
            # Keys and values are read once per 128 queries: 8 times on average, half of 16, under the causal mask.
            tma_load_bytes=_HIDDEN_BYTES + 8 * 2 * _HIDDEN_BYTES,
            tma_store_bytes=_HIDDEN_BYTES,
            dram_read_bytes=3 * _HIDDEN_BYTES,
            dram_write_bytes=_HIDDEN_BYTES,
            tensor={_HGMMA: 4 * 8 * 32 * 2048 * 2048 * 128 // 2},
            fp32=(5.4e8, 5.4e8, 1.1e9),
            warp_instructions=1.3e8,
            busy={"sm__inst_executed_pipe_xu": 0.42},
            stalls={"gmma": 0.38, "math_pipe_throttle": 0.12, "barrier": 0.1, "not_selected": 0.02},
            rules=(bottleneck("High Compute Throughput", "The SMs are busier than the memory system, but not full."),),
        ),
    ),
    Planted(
        "elementwise: DRAM is full",
        "memory",
        "dram",
        ("dram_roof",),
        Described(
            "vectorized_elementwise_kernel",
            245_824,  # 1.07 GB over 245.8 us are 4.37 TB/s: 91 % of DRAM
            mangled="_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_18GeluCUDAKernelImplERNS_18Tensor"
            "IteratorBaseENS0_8GeluTypeEENKUlvE0_clEvENKUlvE2_clEvEUlN3c108BFloat16EE_St5arrayIPcLm2EEEEviT0_T1_",
            demangled=_ELEMENTWISE + "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)::"
            "[lambda() (instance 2)]::operator ()() const::[lambda() (instance 3)]::operator ()() const::"
            "[lambda(c10::BFloat16) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
            nvtx=(
                *("step", "forward", "layer0", "mlp", "gelu"),
                "aten::gelu, seq = 16, op_id = 111, sizes = [[8, 2048, 16384], []]",
            ),
            grid=(_TOKENS * _FEED_FORWARD // 512, 1, 1),
            block=(128, 1, 1),
            loads=Accesses(_FEED_FORWARD_BYTES // 256, 8, bytes_per_thread=8),
            stores=Accesses(_FEED_FORWARD_BYTES // 256, 8, bytes_per_thread=8),
            dram_read_bytes=_FEED_FORWARD_BYTES,
            dram_write_bytes=_FEED_FORWARD_BYTES,
            fp32=(2.7e8, 5.4e8, 1.6e9),
            busy={"sm__inst_executed_pipe_xu": 0.21},
            stalls={"long_scoreboard": 0.66, "not_selected": 0.09, "math_pipe_throttle": 0.05},
            rules=(MEMORY_RULE,),
        ),
    ),
    Planted(
        "two sides equally busy",
        "balanced",
        "dram",
        (),
        Described(
            "triton_poi_fused_mul_silu_1",
            225_280,  # 805 MB over 225 us are 3.57 TB/s: 74 % of DRAM; issue slots 69 %
            nvtx=("step", "forward", "layer0", "mlp", "gate"),
            grid=(132 * 16 * 16, 1, 1),
            block=(128, 1, 1),
            loads=Accesses(4 * _HIDDEN_BYTES // 512, 16, bytes_per_thread=16),
            stores=Accesses(2 * _HIDDEN_BYTES // 512, 16, bytes_per_thread=16),
            dram_read_bytes=4 * _HIDDEN_BYTES,
            dram_write_bytes=2 * _HIDDEN_BYTES,
            fp32=(4e8, 4e8, 1.2e9),
            warp_instructions=0.69 * 4 * 132 * 1.98e9 * 225_280e-9,
            stalls={"long_scoreboard": 0.34, "not_selected": 0.2, "math_pipe_throttle": 0.12},
            rules=(bottleneck("Balanced Throughput", "The memory system and the SMs are about equally busy."),),
        ),
    ),
    Planted(
        "a little more than one wave of blocks: the second runs nearly empty",
        "latency",
        "tail",
        ("tail_wave",),
        Described(
            "cunn_SoftMaxForward",
            41_216,  # 97 MB over 41.2 us are 2.3 TB/s: 49 % of DRAM
            mangled="_ZN2at6native12_GLOBAL__N_119cunn_SoftMaxForwardILi8EN3c108BFloat16EffNS1_22SoftMaxForward"
            "EpilogueEEEvPT2_PKT0_i",
            demangled=_NATIVE + "cunn_SoftMaxForward<8, c10::BFloat16, float, float, "
            "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(T4 *, const T2 *, int)",
            nvtx=(
                *("step", "forward", "head", "softmax"),
                "aten::_softmax, seq = 19, op_id = 117, sizes = [[320, 50304], [], []]",
            ),
            grid=(320, 1, 1),  # 2 blocks per SM: 320 / 264 = 1.21 waves, 39 % of the slots stay empty
            block=(1024, 1, 1),
            loads=Accesses(3 * 320 * 50304 * 2 // 512, 16, bytes_per_thread=16),
            stores=Accesses(320 * 50304 * 4 // 512, 16, bytes_per_thread=16),
            shared_loads=Shared(320 * 64),
            shared_stores=Shared(320 * 64),
            dram_read_bytes=320 * 50304 * 2,
            dram_write_bytes=320 * 50304 * 4,
            fp32=(3.2e7, 1.6e7, 4.8e7),
            warp_instructions=9e6,
            achieved_occupancy_frac=0.71,
            active_frac=0.9,
            sm_imbalance_frac=0.06,
            busy={"sm__inst_executed_pipe_xu": 0.12},
            stalls={
                "long_scoreboard": 0.28,
                "barrier": 0.22,
                "short_scoreboard": 0.11,
                "mio_throttle": 0.08,
                "not_selected": 0.05,
            },
            rules=(
                bottleneck("Latency Issue", "Neither the memory system nor the SMs are busy."),
                Rule(
                    "LaunchConfiguration",
                    "Launch Configuration",
                    "LaunchStats",
                    "Tail Effect",
                    "One full wave of blocks is followed by a partial one of 56 blocks.",
                    speedup=("global", 50.0),
                    focus_metrics=(FocusMetric("launch__grid_size", 320.0, "high", "a multiple of 264"),),
                ),
            ),
        ),
    ),
    Planted(
        "a matrix product of 32 blocks on 132 SMs",
        "latency",
        "grid",
        ("small_grid",),
        Described(
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            38_016,  # 4.3e9 flop over 38 us are 113 Tflop/s: 18 % of mma.sync on all SMs
            nvtx=(
                *("step", "forward", "head", "lora"),
                "aten::mm, seq = 21, op_id = 120, sizes = [[512, 8192], [8192, 512]]",
            ),
            sm_clock_hz=1.755e9,
            grid=(4, 8, 1),
            block=(128, 1, 1),
            registers=166,
            dynamic_shared_bytes=3 * (128 + 64) * 64 * 2,
            loads=Accesses(32 * (128 + 64) * 8192 * 2 // 512, 16, bytes_per_thread=16),
            stores=Accesses(512 * 512 * 2 // 512, 16, bytes_per_thread=16),
            shared_loads=Shared(400_000, 4),
            dram_read_bytes=2 * 512 * 8192 * 2,
            dram_write_bytes=512 * 512 * 2,
            tensor={_HMMA: 2 * 512 * 512 * 8192},
            warp_instructions=2.4e6,
            achieved_occupancy_frac=4 / 64,
            stalls={
                "math_pipe_throttle": 0.24,
                "long_scoreboard": 0.22,
                "short_scoreboard": 0.12,
                "barrier": 0.08,
            },
            rules=(
                bottleneck("Small Grid", "The grid is too small to fill the GPU once."),
                Rule(
                    "LaunchConfiguration",
                    "Launch Configuration",
                    "LaunchStats",
                    "Small Grid",
                    "32 blocks leave 100 of the 132 SMs without work.",
                    speedup=("global", 75.8),
                ),
            ),
        ),
    ),
)
