"""Operation models against counts by hand and by brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ncuroof import model
from ncuroof.errors import ModelError, UnknownNameError
from ncuroof.model.attention_products import pairs
from ncuroof.resources import folder, read_toml

SIZES = some.integers(1, 300)


def _tensors(operation: model.Operation) -> dict[tuple[str, str], float]:
    return {("w" if each.is_written else "r", each.tensor): each.bytes for each in operation.traffic}


# ---- products ---------------------------------------------------------------------------------------------------------------


def test_a_product_of_mixed_widths() -> None:
    # A 3·7·2 = 42, B 7·5·0.5 = 17.5, C 3·5·4 = 60 byte; 2·3·5·7 = 210 FLOP
    found = model.gemm(3, 5, 7, dtype="bf16", b_dtype="int4", c_dtype="fp32")
    assert found.flop == 210
    assert _tensors(found) == {("r", "A"): 42, ("r", "B"): 17.5, ("w", "C"): 60}
    assert found.work[0].precisions == ("tensor_bf16",)


def test_an_accumulating_product_reads_its_result() -> None:
    found = model.gemm(3, 5, 7, dtype="fp32", accumulate=True)
    assert (found.flop, found.matrix_flop) == (210 + 15, 210)
    assert _tensors(found) == {("r", "A"): 84, ("r", "B"): 140, ("r", "C"): 60, ("w", "C"): 60}


@given(SIZES, SIZES, SIZES, some.integers(1, 64), some.integers(1, 64))
def test_tiles_read_what_a_loop_over_them_reads(m: int, n: int, k: int, tile_m: int, tile_n: int) -> None:
    read = 0
    for row, column in itertools.product(range(0, m, tile_m), range(0, n, tile_n)):
        read += 2 * k * (min(tile_m, m - row) + min(tile_n, n - column))
    found = model.gemm(m, n, k, tile_m=tile_m, tile_n=tile_n)
    assert found.l2_bytes == pytest.approx(read)
    assert found.bytes == model.gemm(m, n, k).bytes
    from_memory = model.gemm(m, n, k, tile_m=tile_m, tile_n=tile_n, rereads="dram")
    assert from_memory.read_bytes == pytest.approx(read)


def test_a_single_tile_equals_no_tiling() -> None:
    assert model.gemm(96, 64, 32, tile_m=96, tile_n=64, rereads="dram").bytes == model.gemm(96, 64, 32).bytes


def test_the_gradients_of_a_product() -> None:
    # dA = dC·Bᵀ, dB = Aᵀ·dC: 2·210 FLOP; dC (15) twice, A (21), B (35) read, dA, dB written, 4 byte each
    found = model.gemm(3, 5, 7, dtype="fp32", backward=True)
    assert found.flop == 420
    assert (found.read_bytes, found.written_bytes) == (4 * (30 + 21 + 35), 4 * (21 + 35))
    assert found.working_set_bytes == 4 * (15 + 21 + 35 + 21 + 35)


def test_a_linear_layer_and_its_gradients() -> None:
    # 2·4·8·16 = 1024 FLOP + 64 of the bias; X 32, W 128, bias 16 in, Y 64 out
    layer = model.linear(4, 8, 16, dtype="fp32", bias=True)
    assert (layer.flop, layer.matrix_flop) == (1088, 1024)
    assert (layer.read_bytes, layer.written_bytes) == (4 * (32 + 128 + 16), 4 * 64)
    gradients = model.linear(4, 8, 16, dtype="fp32", bias=True, backward=True)
    assert (gradients.flop, gradients.matrix_flop) == (2048 + 64, 2048)
    assert (gradients.read_bytes, gradients.written_bytes) == (4 * (2 * 64 + 32 + 128), 4 * (32 + 128 + 16))


@given(some.integers(1, 50), SIZES, SIZES, SIZES, some.booleans())
def test_a_batch_is_as_many_products(batch: int, m: int, n: int, k: int, backward: bool) -> None:
    one, many = model.gemm(m, n, k, backward=backward), model.bmm(batch, m, n, k, backward=backward)
    assert (many.flop, many.bytes) == (batch * one.flop, batch * one.bytes)
    assert many.intensity_flop_per_byte == pytest.approx(one.intensity_flop_per_byte)


def test_a_matrix_and_a_vector_use_vector_units() -> None:
    found = model.gemv(4, 8, dtype="fp32", weight_dtype="int8")
    assert (found.flop, found.bytes) == (64, 32 + 4 * 12)
    assert found.work[0].precisions == ("fp32",)


@pytest.mark.parametrize("axis", ["m", "n", "k"])
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_shares_add_up(axis: str, devices: int) -> None:
    whole, share = model.gemm(64, 128, 256), model.sharded_gemm(64, 128, 256, axis=axis, devices=devices)
    assert share.flop * devices == whole.flop
    # ring all-reduce: 2·(n − 1) steps of a part each; all-gather: n − 1 steps; the result has 64·128·2 byte
    steps = {"m": 0, "n": devices - 1, "k": 2 * (devices - 1)}[axis]
    assert share.network_bytes == pytest.approx(steps * 64 * 128 * 2 / devices)


# ---- attention --------------------------------------------------------------------------------------------------------------


@given(some.integers(1, 40), some.integers(1, 40))
def test_causal_pairs_are_those_that_a_mask_leaves(seq: int, keys: int) -> None:
    seen = sum(key <= query + keys - seq for query in range(seq) for key in range(keys))
    assert pairs(seq, keys, is_causal=True) == seen
    at_start = sum(key <= query for query in range(seq) for key in range(keys))
    assert pairs(seq, keys, is_causal=True, is_at_end=False) == at_start
    assert pairs(seq, keys, is_causal=False) == seq * keys


@given(some.integers(1, 60), some.integers(1, 60), some.integers(1, 16), some.booleans())
def test_blocks_of_queries_read_the_keys_that_they_see(seq: int, keys: int, tile_q: int, causal: bool) -> None:
    read = 0
    for start in range(0, seq, tile_q):
        last = min(start + tile_q, seq) - 1
        read += sum(not causal or key <= last + keys - seq for key in range(keys))
    found = model.attention(seq, 8, keys=keys, tile_q=tile_q, causal=causal, heads=4, kv_heads=2, rereads="dram")
    # 4 heads read K and V (8 each, 2 byte); Q and O: 4·seq·8 each
    assert found.bytes == pytest.approx(4 * read * 16 * 2 + 2 * 4 * seq * 8 * 2)


def test_grouped_queries_share_keys() -> None:
    # B = 2, H = 8, G = 2, L = 128, D = 64 in 16 bits: Q and O 2·8·128·64·2 = 262 144 each, K and V 65 536 each
    found = model.attention(128, 64, batch=2, heads=8, kv_heads=2)
    assert _tensors(found) == {("r", "Q"): 262144, ("r", "K"): 65536, ("r", "V"): 65536, ("w", "O"): 262144}
    assert found.flop == 2 * 8 * 128 * 128 * (4 * 64 + 5)
    assert model.attention(128, 64, batch=2, heads=8).flop == found.flop


def test_a_decoded_token_reads_the_whole_cache() -> None:
    # K and V: 4096·128·2 elements of 2 byte, and 2·128 more; 4096·(4·128 + 5) FLOP: about a flop per byte
    found = model.attention(1, 128, keys=4096)
    assert (found.flop, found.bytes) == (4096 * 517, 2 * (2 * 4096 * 128 + 2 * 128))


def test_latent_attention_has_wider_keys_than_values() -> None:
    found = model.attention(16, 192, value_dim=128)
    assert found.matrix_flop == 16 * 16 * 2 * (192 + 128)
    assert found.bytes == 2 * 16 * (192 + 192 + 128 + 128)


def test_the_backward_pass_of_a_flash_kernel_makes_five_products() -> None:
    forward, backward = model.attention(256, 64), model.attention(256, 64, backward=True)
    assert backward.matrix_flop == 2.5 * forward.matrix_flop
    # Q, K, V, O, dO in, dQ, dK, dV out: 8·256·64·2, and 256 log-sums of 4 byte
    assert backward.bytes == 8 * 256 * 64 * 2 + 1024
    assert backward.flop - backward.matrix_flop == 5 * 256 * 256 + 2 * 256 * 64


def test_a_causal_backward_pass_makes_five_of_half_the_pairs() -> None:
    # 5·N²·d for long sequences: 10·d per pair, N·(N + 1)/2 pairs
    backward = model.attention(4096, 64, causal=True, backward=True)
    assert backward.matrix_flop == pytest.approx(5 * 4096**2 * 64, rel=3e-4)


def test_a_naive_kernel_does_not_save_what_the_mask_hides() -> None:
    naive, flash = (model.attention(256, 64, method=method, causal=True) for method in ("naive", "flash"))
    assert naive.flop == 256 * 256 * 261
    assert flash.flop == 256 * 257 // 2 * 261
    backward = model.attention(256, 64, method="naive", backward=True)
    assert backward.matrix_flop == 256 * 256 * 8 * 64
    assert backward.bytes == 2 * (8 * 256 * 64 + 5 * 256 * 256) + 1024


def test_a_separate_softmax_moves_scores_twice_more() -> None:
    fused, apart = (model.attention(256, 64, method="naive", softmax_kernel=apart) for apart in (False, True))
    assert apart.bytes - fused.bytes == 2 * 256 * 256 * 2
    assert apart.working_set_bytes == fused.working_set_bytes == 2 * (4 * 256 * 64 + 256 * 256)


# ---- rows, elements, tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "flop", "n_bytes"),
    [
        (model.layernorm(10, 64, dtype="bf16"), 8 * 640, 2 * (2 * 640 + 2 * 64)),
        (model.layernorm(10, 64, dtype="bf16", backward=True), 13 * 640, 2 * (3 * 640 + 3 * 64) + 80),
        (model.rmsnorm(10, 64, dtype="bf16"), 4 * 640, 2 * (2 * 640 + 64)),
        (model.rmsnorm(10, 64, dtype="bf16", backward=True), 9 * 640, 2 * (3 * 640 + 2 * 64) + 40),
        (model.softmax(10, 64, dtype="fp32"), 5 * 640, 4 * 2 * 640),
        (model.softmax(10, 64, dtype="fp32", reads=3), 5 * 640, 4 * 4 * 640),
        (model.softmax(10, 64, dtype="fp32", backward=True), 4 * 640, 4 * 3 * 640),
        (model.cross_entropy(10, 64, dtype="bf16"), 4 * 640 + 20, 2 * 640 + 120),
        (model.cross_entropy(10, 64, dtype="bf16", backward=True), 3 * 640, 2 * 2 * 640 + 160),
        (model.rope(10, 8, 64, dtype="bf16"), 3 * 5120, 2 * (2 * 5120 + 640)),
        (model.embedding(10, 64, dtype="bf16"), 0, 80 + 2 * 2 * 640),
        (model.embedding(10, 64, vocabulary=4, dtype="bf16"), 0, 80 + 2 * (4 * 64 + 640)),
        (model.embedding(10, 64, vocabulary=4, dtype="bf16", backward=True), 640, 80 + 2 * (640 + 2 * 4 * 64)),
        (model.adamw(100), 1400, 2800),
        (model.adamw(100, dtype="bf16", master_weights=True), 1400, 100 * (4 + 2 + 8 + 4 + 8 + 2)),
        (model.activation(100, function="gelu", dtype="bf16"), 500, 400),
        (model.activation(100, function="silu", dtype="bf16", backward=True), 900, 600),
        (model.elementwise(100, inputs=2, outputs=1, flop_per_element=3, dtype="fp32"), 300, 1200),
        (model.custom(7, 9, vector_work=True), 7, 9),
    ],
)
def test_work_and_bytes(operation: model.Operation, flop: int, n_bytes: float) -> None:
    assert (operation.flop, operation.bytes) == (flop, n_bytes)


def test_a_lookup_has_almost_no_intensity() -> None:
    assert model.embedding(10, 64).intensity_flop_per_byte == 0
    assert model.predict(model.embedding(10, 64), model.machine_by_name("h100-sxm")).bound == "memory"


@pytest.mark.parametrize(
    ("dtype", "n_bytes"),
    [("fp4", 50), ("mxfp4", 53.125), ("nvfp4", 56.25), ("fp6", 75), ("mxfp8", 103.125), ("fp64", 800)],
)
def test_narrow_types_with_and_without_scales(dtype: str, n_bytes: float) -> None:
    # 100 elements: 4 bits; with 8 bits per 32 elements 4.25, per 16 elements 4.5
    assert model.dtype_of(dtype).bytes * 100 == n_bytes


def test_vector_work_of_narrow_types_is_done_in_fp32() -> None:
    assert model.softmax(4, 4, dtype="fp8").work[0].precisions == ("fp32",)
    assert model.softmax(4, 4, dtype="fp64").work[0].precisions == ("fp64",)


@pytest.mark.parametrize("name", ["torch.bfloat16", "c10::BFloat16", "bfloat16", "BF16"])
def test_types_have_several_names(name: str) -> None:
    assert model.dtype_of(name).name == "bf16"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: model.gemm(0, 1, 1),
        lambda: model.gemm(1, -4, 1),
        lambda: model.gemm(8, 8, 8, tile_m=4),
        lambda: model.gemm(8, 8, 8, tile_m=0, tile_n=4),
        lambda: model.gemm(8, 8, 8, tile_m=4, tile_n=4, backward=True),
        lambda: model.gemm(8, 8, 8, dtype="int64"),
        lambda: model.attention(8, 8, heads=6, kv_heads=4),
        lambda: model.attention(8, 8, tile_q=4, method="naive"),
        lambda: model.attention(8, 8, kv_heads=-2, heads=2),
        lambda: model.sharded_gemm(8, 8, 9, axis="k", devices=2),
        lambda: model.adamw(0),
    ],
)
def test_sizes_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(ModelError):
        wrong()  # type: ignore[operator]


def test_an_unknown_type_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError) as error:
        model.gemm(1, 1, 1, dtype="bf17")
    assert "bf16" in str(error.value.hint)


@given(SIZES, SIZES, SIZES)
def test_intensity_is_at_most_that_of_the_smallest_side(m: int, n: int, k: int) -> None:
    # 2mnk / (2(mk + kn + mn)) < min(m, n, k)
    found = model.gemm(m, n, k).intensity_flop_per_byte
    assert found is not None
    assert found < min(m, n, k)
    assert math.isclose(found, 1 / (1 / m + 1 / n + 1 / k))


def test_operators_of_pytorch_are_counted_as_their_models() -> None:
    table = read_toml(folder("profiles") / "operators.toml")
    n = {"dtype": "fp32"}
    expected = {
        "native_layer_norm": model.layernorm(1, 1, **n),
        "native_layer_norm_backward": model.layernorm(1, 1, backward=True, **n),
        "_fused_rms_norm": model.rmsnorm(1, 1, **n),
        "_fused_rms_norm_backward": model.rmsnorm(1, 1, backward=True, **n),
        "_softmax": model.softmax(1, 1, **n),
        "_softmax_backward_data": model.softmax(1, 1, backward=True, **n),
        "relu": model.activation(1, function="relu"),
        "gelu": model.activation(1, function="gelu"),
        "gelu_backward": model.activation(1, function="gelu", backward=True),
        "silu": model.activation(1, function="silu"),
        "silu_backward": model.activation(1, function="silu", backward=True),
    }
    counted = table["pointwise"] | table["reduction"]
    assert {name: counted[name] for name in expected} == {name: each.flop for name, each in expected.items()}
