"""Tensor operations per SM and clock, by architecture and counter name (after `sm__ops_path_tensor_`).

Every counter of NVIDIA's tensor roofline chart for the architecture is listed; sums over several of them are separate.

Sources: NVIDIA's whitepapers and data sheets for the rates, CUPTI's metric tables of each chip for the names. If NVIDIA publishes
no rate, it is assumed, and a comment says so.
"""

from __future__ import annotations

PIPE_TENSOR = "pipe_tensor"
"""Key for Volta's counter of tensor instructions, 512 operations each with FP32 accumulation; its charts use no other counter."""


def _with_sparsity(**operations: float) -> dict[str, float]:
    """Return the rates with and without structured sparsity, which doubles them."""
    return {
        f"{name}_sparsity_{state}": rate * factor
        for name, rate in operations.items()
        for state, factor in (("off", 1), ("on", 2))
    }


# No chart lists these two; they are collected by name.
VOLTA = {PIPE_TENSOR: 1024, "src_fp16_dst_fp16": 1024, "src_fp16_dst_fp32": 1024}
TURING = {
    "src_fp16_bf16_tf32_dst_fp32": 1024,
    "src_fp16_dst_fp16": 1024,
    "src_int8": 2048,
    "src_int4": 4096,
    "src_int1": 16384,
}
AMPERE = {
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
# FP64 is assumed; the rest of Orin's rates are those of GA100.
AMPERE_JETSON = {**AMPERE, "src_fp64": 4}
# FP32 accumulation runs at half the rate of FP16, as on every GeForce. The rates of int1 and FP64 are assumed from Ada's.
AMPERE_GEFORCE = {
    **_with_sparsity(
        src_bf16_dst_fp32=512,
        src_fp16_dst_fp16=1024,
        src_fp16_dst_fp32=512,
        src_tf32_dst_fp32=256,
        src_int8=2048,
        src_int4=4096,
    ),
    "src_fp64": 4,
    "src_int1": 16384,
}
ADA_GEFORCE = {**AMPERE_GEFORCE, **_with_sparsity(src_fp8=2048)}
HOPPER = {
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
# mma.sync on chips that have tcgen05 (`op_utc…`): assumed to run at a quarter of its rate.
_MMA_SYNC = {
    "op_hmma_src_bf16_dst_fp32": 2048,
    "op_hmma_src_fp16_dst_fp16": 2048,
    "op_hmma_src_fp16_dst_fp32": 2048,
    "op_hmma_src_tf32_dst_fp32": 1024,
}
_UTCHMMA = {
    "op_utchmma_src_bf16_dst_fp32": 8192,
    "op_utchmma_src_fp16_dst_fp16": 8192,
    "op_utchmma_src_fp16_dst_fp32": 8192,
    "op_utchmma_src_tf32_dst_fp32": 4096,
}
BLACKWELL = {
    **_with_sparsity(
        **_MMA_SYNC,
        op_imma_src_int8=4096,
        **_UTCHMMA,
        op_utcimma_src_int8=16384,
        op_utcqmma_src_fp4_fp6_fp8_dst_fp16=16384,
        op_utcqmma_src_fp4_fp6_fp8_dst_fp32=16384,
        op_utcomma_src_fp4_dst_fp32=32768,
    ),
    "src_fp64": 128,
}
# No utcimma; the remaining int8 rate is published as 256 to 512. Sparsity is assumed to double the counters' peak as elsewhere.
BLACKWELL_ULTRA = {
    **_with_sparsity(
        **_MMA_SYNC,
        op_imma_src_int8=512,
        **_UTCHMMA,
        op_utcqmma_src_fp4_fp6_dst_fp16=16384,
        op_utcqmma_src_fp4_fp6_dst_fp32=16384,
        op_utcqmma_src_fp8_dst_fp16=16384,
        op_utcqmma_src_fp8_dst_fp32=16384,
        op_utcomma_src_fp4_dst_fp32=49152,
    ),
    "src_fp64": 4,
}
# The FP4 rate is from the data sheet; the other rates, except FP64, are assumed to have the same ratio to it as on B200.
BLACKWELL_JETSON = {**BLACKWELL, "src_fp64": 4}
# GB10 is assumed to have GeForce's rates of accumulation: 62 TFLOP/s with FP32 accumulation have been reported.
BLACKWELL_GEFORCE = {
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

# The charts' counters that sum the `op_…` counters of the same types.
HOPPER_SUMS = ("src_bf16_dst_fp32", "src_fp16", "src_tf32_dst_fp32", "src_int8", "src_int1")
BLACKWELL_GEFORCE_SUMS = (
    "src_bf16_dst_fp32",
    "src_fp16_dst_fp16",
    "src_fp16_dst_fp32",
    "src_tf32_dst_fp32",
    "src_int8",
)
BLACKWELL_SUMS = (
    *BLACKWELL_GEFORCE_SUMS,
    "src_fp4_dst_fp32",
    "src_fp4_fp6_fp8_dst_fp16",
    "src_fp4_fp6_fp8_dst_fp32",
)
# Sums over fp8 exist as well, but the chart does not list them.
BLACKWELL_ULTRA_SUMS = (*BLACKWELL_GEFORCE_SUMS, "src_fp4_dst_fp32", "src_fp4_fp6_dst_fp16", "src_fp4_fp6_dst_fp32")
