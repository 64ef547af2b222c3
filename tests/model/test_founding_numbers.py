"""Every number that the founding documents print, with its arithmetic; where a document's own figure is wrong, the right one."""

from __future__ import annotations

import pytest

from ncuroof import model
from ncuroof.model import Machine, predict

H100 = model.machine_by_name("h100-sxm")
A100 = model.machine_by_name("a100-sxm-80gb")
V100 = model.machine_by_name("v100-sxm2")
# The documents round the v5e's 819 GB/s to 8.2e11.
TPU = model.with_measured(model.machine_by_name("tpu-v5e"), bandwidth_bytes_per_s=8.2e11)


# ---- ridges and the attainable rate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "precision", "ridge"),
    [
        (H100, "fp32", 20.0),  # 67e12 / 3.35e12
        (H100, "tensor_bf16", 295.2),  # 989e12 / 3.35e12
        (H100, "tensor_fp8", 590.7),  # 1979e12 / 3.35e12
        (A100, "tensor_bf16", 153.0),  # 312e12 / 2.039e12
        (V100, "tensor_fp16", 138.9),  # 125e12 / 0.9e12
        (TPU, "tensor_bf16", 240.2),  # 1.97e14 / 8.2e11
        (TPU, "tensor_int8", 480.5),  # 3.94e14 / 8.2e11
    ],
)
def test_ridge_is_peak_over_bandwidth(machine: Machine, precision: str, ridge: float) -> None:
    product = model.under(model.gemm(4096, 4096, 4096), precision)
    assert predict(product, machine).ridge_flop_per_byte == pytest.approx(ridge, abs=0.06)


def test_ridge_of_the_h100_against_12_tb_per_s_of_l2() -> None:
    # 989e12 / 12e12 = 82.4
    l2 = model.with_measured(H100, bandwidth_bytes_per_s=12e12)
    assert predict(model.gemm(64, 64, 64), l2).ridge_flop_per_byte == pytest.approx(82.4, abs=0.02)


def test_attainable_is_the_lower_of_peak_and_slope() -> None:
    assert model.attainable_flop_per_s(64, 989e12, 3.35e12) == pytest.approx(214.4e12)  # 64 · 3.35e12
    assert model.attainable_flop_per_s(1000, 989e12, 3.35e12) == 989e12


# ---- intensities ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "intensity"),
    [
        (1, 4096, 4096, "bf16", 0.9995),  # 2·4096² / (2·(2·4096 + 4096²)) = 4096 / 4098
        (8, 4096, 4096, "bf16", 7.97),  # 8·4096² / (16·4096 + 4096²) = 8·4096 / 4112 = 7.969
        (32, 4096, 4096, "bf16", 31.5),  # 32·4096 / (64 + 4096) = 31.508
        (512, 4096, 4096, "bf16", 409.6),  # 512·4096 / (1024 + 4096)
        (4096, 4096, 4096, "bf16", 1365.3),  # N/3
        (128, 128, 128, "bf16", 42.67),  # N/3; one document prints 21.3, the value of FP32
        (1024, 1024, 1024, "bf16", 341.3),
        (128, 128, 128, "fp32", 21.33),  # N/6
        (1024, 1024, 1024, "fp32", 170.7),
        (4096, 4096, 4096, "fp32", 682.7),
        (512, 8192, 8192, "bf16", 455.1),  # 512·8192 / (1024 + 8192)
    ],
)
def test_intensity_of_products(m: int, n: int, k: int, dtype: str, intensity: float) -> None:
    assert model.gemm(m, n, k, dtype=dtype).intensity_flop_per_byte == pytest.approx(intensity, rel=2e-3)


def test_attention_that_stores_its_scores() -> None:
    # FLOP 2048²·(4·64 + 5) = 1 094 713 344; bytes 2·(4·2048·64 + 2·2048²) = 17 825 792; 61.41
    naive = model.attention(2048, 64, method="naive")
    assert (naive.flop, naive.bytes) == (1_094_713_344, 17_825_792)
    assert naive.intensity_flop_per_byte == pytest.approx(61.41, abs=0.005)
    # At L = 512: 512²·261 / (2·(4·512·64 + 2·512²)) = 68 419 584 / 1 310 720 = 52.2 (printed: 52.1)
    assert model.attention(512, 64, method="naive").intensity_flop_per_byte == pytest.approx(52.2, abs=0.01)


def test_attention_that_moves_each_tensor_once() -> None:
    # bytes 2·4·2048·64 = 1 048 576: 1044 flop/byte; a document prints 340.7, which no count of its own formula gives
    assert model.attention(2048, 64).intensity_flop_per_byte == pytest.approx(1044.0)


@pytest.mark.parametrize(("head_dim", "least", "most"), [(64, 60, 90)])
def test_attention_that_reads_keys_again_for_every_block_is_where_kernels_measure(
    head_dim: int, least: float, most: float
) -> None:
    # 32 blocks of 64 queries: K and V 32·2·2048·64·2 = 16 777 216 byte, Q and O 524 288: 1 094 713 344 / 17 301 504 = 63.3
    blocked = model.attention(2048, head_dim, tile_q=64, rereads="dram")
    assert blocked.intensity_flop_per_byte == pytest.approx(63.27, abs=0.005)
    assert least < blocked.intensity_flop_per_byte < most
    # From L2 the same reads, and device memory moves each tensor once: without what is written, 1 094 713 344 / 17 039 360.
    in_l2 = model.attention(2048, head_dim, tile_q=64)
    assert in_l2.intensity_flop_per_byte == pytest.approx(1044.0)
    assert in_l2.l2_intensity_flop_per_byte == pytest.approx(64.25, abs=0.005)


def test_vectors() -> None:
    # (2N − 1) / (4N + 2) goes to 1/2; N = 1000: 1999 / 4002
    assert model.dot(1000).intensity_flop_per_byte == pytest.approx(1999 / 4002)
    # ReLU in FP32: 1 FLOP over 8 bytes, in 16 bits over 4
    assert model.activation(10**6, function="relu", dtype="fp32").intensity_flop_per_byte == 0.125
    assert model.elementwise(10**6, dtype="bf16").intensity_flop_per_byte == 0.25
    # softmax in 16 bits: 5 / (2 + 2)
    assert model.softmax(4096, 4096, dtype="fp16").intensity_flop_per_byte == 1.25
    # one decoded token: 2·4096² over 2·4096² + 4·4096 bytes, 0.9995
    assert model.gemv(4096, 4096).intensity_flop_per_byte == pytest.approx(4096 / 4098)


def test_naive_and_tiled_product_in_fp32() -> None:
    # Every thread its row and column: 2 FLOP for 8 bytes. 64×64 tiles: 2·64³ / (8·64²) = 16. Both but for the result's bytes.
    naive = model.gemm(4096, 4096, 4096, dtype="fp32", tile_m=1, tile_n=1)
    tiled = model.gemm(4096, 4096, 4096, dtype="fp32", tile_m=64, tile_n=64)
    assert naive.l2_intensity_flop_per_byte == pytest.approx(0.25)
    assert tiled.l2_intensity_flop_per_byte == pytest.approx(16.0)
    from_memory = model.gemm(4096, 4096, 4096, dtype="fp32", tile_m=64, tile_n=64, rereads="dram")
    # 2·4096³ / (64·2·4·4096² + 4·4096²) = 8192 / 516
    assert from_memory.intensity_flop_per_byte == pytest.approx(8192 / 516)


def test_intensity_of_tiles_is_their_product_over_their_sum() -> None:
    # in 16 bits tm·tn / (tm + tn): 128·256 / 384 = 85.3
    assert model.gemm(4096, 4096, 4096, tile_m=128, tile_n=256).l2_intensity_flop_per_byte == pytest.approx(
        128 * 256 / 384
    )


# ---- three bounds -----------------------------------------------------------------------------------------------------------


def test_lower_bound_is_the_longest_time_and_upper_bound_the_sum() -> None:
    # 1e13 FLOP at 1e15 /s: 10 ms; 1e10 byte at 1e12 /s: 10 ms; together 20 ms
    machine = model.with_measured(H100, peak_flop_per_s=1e15, bandwidth_bytes_per_s=1e12)
    found = predict(model.custom(10**13, 10**10), machine)
    assert (found.compute_ns, found.dram_ns) == (pytest.approx(1e7), pytest.approx(1e7))
    assert (found.least_ns, found.most_ns) == (pytest.approx(1e7), pytest.approx(2e7))


def test_1e12_flop_take_a_millisecond_on_an_h100() -> None:
    assert predict(model.custom(10**12, 1), H100).compute_ns == pytest.approx(1.011e6, rel=1e-3)  # 1e12 / 9.89e14


@pytest.mark.parametrize(
    ("dtype", "weights", "batch"),
    [
        ("bf16", "bf16", 240),  # ridge 240, 2 byte per weight: 240·2/2
        ("int8", "int8", 240),  # ridge 480, 1 byte: 480·1/2
        ("bf16", "int8", 120),  # ridge 240, 1 byte: the product is made in BF16
        ("bf16", "int4", 60),  # ridge 240, half a byte
    ],
)
def test_critical_batch_of_large_layers(dtype: str, weights: str, batch: float) -> None:
    ridge = predict(model.linear(1, 8192, 8192, dtype=dtype, weight_dtype=weights), TPU).ridge_flop_per_byte
    assert ridge is not None
    assert model.critical_batch_of_large_layer(ridge, weights) == pytest.approx(batch, rel=2e-3)


def test_critical_batch_of_the_h100() -> None:
    ridge = predict(model.linear(1, 8192, 8192), H100).ridge_flop_per_byte
    assert ridge is not None
    assert model.critical_batch_of_large_layer(ridge, "bf16") == pytest.approx(295.2, abs=0.05)


@pytest.mark.parametrize(
    ("features", "batch"),
    [
        # B·(2·D² − R·4·D) > R·D² with R = 240.24: B > 240.24·D / (2·D − 960.98). A document says "around 160" for 4096, and that
        # 1024 nearly doubles it; exactly 137 (240.24·4096 / 7231.02 = 136.1) and 227 (240.24·1024 / 1087.02 = 226.3).
        (4096, 137),
        (1024, 227),
    ],
)
def test_critical_batch_of_layers_of_a_size(features: int, batch: int) -> None:
    found = model.critical_size(lambda size: predict(model.linear(size, features, features, weight_dtype="int8"), TPU))
    assert found == batch


@pytest.mark.parametrize("batch", [1, 64, 4096])
def test_weights_per_example_keep_two_operations_per_byte(batch: int) -> None:
    # 2·B·D·F / (B·D + B·D·F + B·F) = 2 / (1/F + 1 + 1/D)
    found = model.bmm(batch, 1, 8192, 8192, dtype="int8").intensity_flop_per_byte
    assert found == pytest.approx(2 / (1 + 2 / 8192))


def test_contraction_split_between_two_devices() -> None:
    # B·D·F / 1.97e14 > 2·B·F / 4.5e10 ⇒ D > 2·1.97e14 / 4.5e10 = 8755.6
    assert model.critical_contraction(1.97e14, 4.5e10) == pytest.approx(8755.6, abs=0.1)
    for d, bound in ((8754, "network"), (8758, "compute")):
        share = model.sharded_gemm(4096, 8192, d, axis="k", devices=2)
        assert share.network_bytes == 2 * 4096 * 8192
        assert predict(share, TPU, link_bytes_per_s=4.5e10).bound == bound


def test_a_share_at_4096_waits_for_the_link() -> None:
    assert predict(model.sharded_gemm(1024, 4096, 4096), TPU, link_bytes_per_s=4.5e10).bound == "network"


# ---- distance, fusion, machines, L2 -----------------------------------------------------------------------------------------


def test_distance_of_120_tflop_per_s_at_64_flop_per_byte() -> None:
    found = predict(model.custom(64 * 10**9, 10**9), H100)
    assert found.attainable_flop_per_s == pytest.approx(214.4e12)
    assert found.bound == "memory"
    away = model.distance(found.attainable_flop_per_s, 120e12)
    assert away is not None
    assert away.efficiency_frac == pytest.approx(0.5597, abs=1e-4)  # 120 / 214.4
    assert away.gap_factor == pytest.approx(1.787, abs=1e-3)
    assert away.grade is model.Grade.NOTE


def test_fusing_two_cosines_halves_bytes_and_doubles_intensity() -> None:
    one, fused = model.elementwise(10**6, dtype="fp32"), model.elementwise(10**6, flop_per_element=2, dtype="fp32")
    assert fused.flop == 2 * one.flop
    assert fused.bytes == one.bytes  # two kernels move twice that
    assert fused.intensity_flop_per_byte == 2 * one.flop / one.bytes


@pytest.mark.parametrize(("intensity", "is_crossing"), [(150, False), (154, True), (290, True), (296, False)])
def test_between_the_ridges_an_operation_turns_memory_bound_on_the_newer_gpu(intensity: int, is_crossing: bool) -> None:
    operation = model.custom(intensity * 10**9, 10**9)
    predictions = [predict(operation, machine) for machine in (A100, H100)]
    assert model.crosses_ridge(predictions) is is_crossing


def test_weights_against_the_50_mib_of_the_h100() -> None:
    # 4096²·2 = 32 MiB fit; 8192²·2 = 128 MiB do not: at most 50/128 = 39 % stay, and further uses reach 3.35/(1 − 0.39) TB/s
    small, large = model.residency(4096**2 * 2, H100), model.residency(8192**2 * 2, H100)
    assert (small.does_fit, small.hit_frac) == (True, 1.0)
    assert small.bandwidth_bytes_per_s == H100.bandwidth_bytes_per_s["l2"]
    assert (large.does_fit, large.hit_frac) == (False, 0.390625)
    assert large.bandwidth_bytes_per_s == pytest.approx(3.35e12 / 0.609375)


def test_sizes_that_are_overhead_near_the_ridge_and_compute() -> None:
    found = {n: predict(model.gemm(n, n, n), H100) for n in (128, 1024, 8192)}
    assert found[128].least_ns is not None
    assert found[128].least_ns < 100  # 98 304 byte / 3.35e12: a launch takes thousands of ns
    assert found[1024].side == "near_ridge"  # 341 / 295 = 1.16
    assert found[8192].side == "compute"
