"""PyTorch's operators by name and shapes, as a profiler writes them down."""

from __future__ import annotations

import pytest

from ncuroof import model
from ncuroof.model import TensorShape, operator
from ncuroof.model.operator_work import load_operators
from ncuroof.model.operators import plain_name


def _shape(*sizes: int, dtype: str = "fp32") -> TensorShape:
    return TensorShape(sizes, dtype)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("aten::mm", "mm"),
        ("aten.mm.default", "mm"),
        ("torch.ops.aten.add_.Tensor", "add"),
        ("aten::_foreach_addcdiv_", "addcdiv"),
        ("aten::_softmax", "_softmax"),
        ("aten::mm, seq = 12, op_id = 3, sizes = [[64, 128], [128, 256]]", "mm"),
    ],
)
def test_names(written: str, plain: str) -> None:
    assert plain_name(written) == plain


@pytest.mark.parametrize(
    ("name", "sizes", "flop", "n_bytes"),
    [
        ("aten::mm", [[64, 128], [128, 256]], 2 * 64 * 128 * 256, 2 * (64 * 128 + 128 * 256 + 64 * 256)),
        # 4·6·5·2 FLOP and an addition for each of 4·5 results
        ("aten::addmm", [[5], [4, 6], [6, 5], [], []], 240 + 20, 2 * (5 + 24 + 30 + 20)),
        ("aten::bmm", [[3, 4, 6], [3, 6, 5]], 3 * 240, 2 * 3 * (24 + 30 + 20)),
        ("aten::matmul", [[2, 3, 4, 6], [6, 5]], 6 * 240, 2 * (6 * 24 + 30 + 6 * 20)),
        ("aten::mv", [[4, 6], [6]], 48, 2 * (24 + 6 + 4)),
        ("aten::dot", [[6], [6]], 12, 2 * (6 + 6 + 1)),
        ("aten::linear", [[2, 4, 6], [5, 6], [5]], 2 * 240 + 40, 2 * (48 + 30 + 5 + 40)),
        ("aten::add_", [[4, 6], [6], []], 24, 2 * (24 + 6 + 24)),
        ("aten::relu", [[4, 6]], 24, 2 * 48),
        ("aten::_softmax", [[4, 6], [], []], 120, 2 * 48),
        ("aten::native_layer_norm", [[4, 6], [], [6], [6], []], 192, 2 * (24 + 12 + 24)),
        # gradient, input, two numbers per row, weights and biases in; gradients of the input, the weights and the biases out
        (
            "aten::native_layer_norm_backward",
            [[4, 6], [4, 6], [], [4, 1], [4, 1], [6], [6], []],
            13 * 24,
            2 * (24 + 24 + 8 + 12 + 24 + 12),
        ),
        ("aten::copy_", [[4, 6], [4, 6], []], 0, 2 * 48),
        # 2 sequences of 3 heads, 8 queries, 16 keys of 4, values of 5: 8·16·(8 + 10 + 5) per head
        (
            "aten::scaled_dot_product_attention",
            [[2, 3, 8, 4], [2, 3, 16, 4], [2, 3, 16, 5]],
            6 * 8 * 16 * 23,
            2 * 6 * (32 + 64 + 80 + 40),
        ),
    ],
)
def test_recorded_shapes_are_enough(name: str, sizes: list[list[int]], flop: int, n_bytes: int) -> None:
    found = operator(name, sizes, dtype="bf16")
    assert found.is_known
    assert (found.flop, found.bytes) == (flop, n_bytes)


def test_a_recorded_product_is_predicted_as_its_model_is() -> None:
    machine = model.machine_by_name("h100-sxm")
    recorded = operator("aten::mm", [[4096, 4096], [4096, 4096]], dtype="c10::BFloat16")
    assert model.predict(recorded, machine).least_ns == model.predict(model.gemm(4096, 4096, 4096), machine).least_ns


@pytest.mark.parametrize(
    ("text", "flop"),
    [
        ("aten::mm, seq = 3, op_id = 5, sizes = [[64, 128], [128, 256]]", 2 * 64 * 128 * 256),
        ("aten::mm, op_id = 5, sizes = [[64, 128], [128, 256]], input_op_ids = [(1,0), (2,0)]", 2 * 64 * 128 * 256),
        ("aten::add_, seq = 7, sizes = [[8, 4], [8, 4], []]", 32),
        ("aten::mm, sizes = [[16777216, 1], [1, 16777216]]", 2 * 2**48),
    ],
)
def test_ranges_of_the_profiler(text: str, flop: int) -> None:
    found = model.recorded_operator(text, dtype="bf16")
    assert found is not None
    assert (found.is_known, found.flop) == (True, flop)


@pytest.mark.parametrize(
    "text",
    [
        "forward",
        "aten::mm",
        "aten::mm, seq = 3",
        "aten::mm, sizes = [[64, x]]",
        "aten::mm, sizes = [3]",
        "Optimizer.step#AdamW.step",
        "aten::mm, sizes = [[-4, 8], [8, 4]]",
        f"aten::mm, sizes = [[{'9' * 5000}, 8], [8, 4]]",
        f"aten::mm, sizes = [[{'9' * 200}, 8], [8, 4]]",
        "aten::mm, sizes = [[1e999, 8], [8, 4]]",
        f"aten::mm, sizes = {'[' * 30_000}]",
        "aten::mm, sizes = [[281474976710657, 1], [1, 1]]",  # 2**48 + 1
        "aten::mm, sizes = [[16777217, 16777217], [16777217, 1]]",  # (2**24 + 1)**2 elements
        f"aten::gelu, sizes = [[{'281474976710656, ' * 100}1]]",
    ],
)
def test_ranges_that_are_not_operators_are_ignored(text: str) -> None:
    assert model.recorded_operator(text, dtype="bf16") is None


@pytest.mark.parametrize(
    "name", ["aten::view", "aten::t", "aten::expand", "aten::detach", "aten::empty", "aten::as_strided"]
)
def test_views_and_allocations_cost_nothing(name: str) -> None:
    found = operator(name, [_shape(4, 6)], [_shape(6, 4)])
    assert (found.flop, found.bytes, found.is_known) == (0, 0, True)


def test_an_unknown_operator_moves_its_tensors_and_has_unknown_work() -> None:
    found = operator("mylib::frobnicate", [_shape(4, 6)], [_shape(4)])
    assert (found.is_known, found.bytes, found.intensity_flop_per_byte) == (False, 112, None)
    assert model.predict(found, model.machine_by_name("h100-sxm")).least_ns is None


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("aten::conv2d", [[2, 3, 8, 8], [8, 3, 3, 3]]),  # stride and padding are not recorded
        ("aten::sum", [[4, 6]]),  # nor is the dimension
        ("aten::mm", [[4, 6], [5, 7]]),  # does not fit
        ("aten::mm", [[4, 6]]),
        ("aten::scaled_dot_product_attention", [[4, 6], [4, 6], [4, 6]]),
        ("aten::mm", []),
        ("aten::_foreach_mul_", [[4], [6]]),  # nor which tensors make up a list
        ("aten::index", [[4, 6], [2]]),
    ],
)
def test_values_that_shapes_do_not_determine_are_unknown(name: str, sizes: list[list[int]]) -> None:
    assert operator(name, sizes).is_known is False


def test_convolutions() -> None:
    # 2 images, 8 filters of 3·3·3 weights over 10·10 places: 2·(2·8·100)·27 = 86 400 FLOP, bias 1600
    x, weights, bias, out = _shape(2, 3, 10, 10), _shape(8, 3, 3, 3), _shape(8), _shape(2, 8, 10, 10)
    found = operator("aten::convolution", [x, weights, bias], [out])
    assert (found.matrix_flop, found.flop) == (86_400, 88_000)
    assert found.bytes == 4 * (600 + 216 + 8 + 1600)
    # Depthwise: 8 filters of 1·3·3 over 2·100 places
    assert operator("convolution", [_shape(2, 8, 10, 10), _shape(8, 1, 3, 3)], [out]).matrix_flop == 2 * 1600 * 9
    # Transposed: every one of 2·8·100 inputs meets 3·3·3 weights
    transposed = operator("convolution", [out, weights], [_shape(2, 3, 12, 12)], is_transposed=True)
    assert transposed.matrix_flop == 86_400


def test_gradients_of_a_convolution_are_those_that_are_wanted() -> None:
    gradient, x, weights = _shape(2, 8, 10, 10), _shape(2, 3, 10, 10), _shape(8, 3, 3, 3)
    both = operator("convolution_backward", [gradient, x, weights], [x, weights, _shape(8)])
    assert (both.matrix_flop, both.flop) == (2 * 86_400, 2 * 86_400 + 1600)
    assert operator("convolution_backward", [gradient, x, weights], [weights]).flop == 86_400


def test_a_convolution_in_tf32_where_it_is_allowed() -> None:
    shapes = [_shape(2, 3, 10, 10), _shape(8, 3, 3, 3)], [_shape(2, 8, 10, 10)]
    assert operator("convolution", *shapes, is_tf32=True).work[0].precisions == ("tensor_tf32", "fp32")
    assert operator("convolution", *shapes).work[0].precisions == ("fp32",)


def test_the_mask_of_attention_saves_work() -> None:
    tensors = [_shape(1, 2, 8, 4, dtype="bf16")] * 3
    full = operator("_scaled_dot_product_flash_attention", tensors, tensors[:1])
    causal = operator("_scaled_dot_product_flash_attention", tensors, tensors[:1], is_causal=True)
    assert (full.flop, causal.flop) == (2 * 64 * 21, 2 * 36 * 21)
    backward = operator("_scaled_dot_product_flash_attention_backward", [tensors[0], *tensors], tensors)
    assert backward.matrix_flop == 2.5 * full.matrix_flop


def test_integer_operators_do_no_floating_point_work() -> None:
    indices = [_shape(8, dtype="int64")] * 2
    assert operator("aten::add", indices, indices[:1]).flop == 0
    mask = operator("aten::lt", [_shape(8), _shape(8)], [_shape(8, dtype="bool")])
    assert (mask.flop, mask.bytes) == (8, 72)


def test_an_expanded_tensor_is_in_memory_once() -> None:
    ones = TensorShape((64, 64), "fp32", n_stored=1)
    assert operator("aten::mul", [ones, _shape(64, 64)], [_shape(64, 64)]).bytes == 4 + 2 * 4 * 4096


def test_a_lookup_reads_rows_and_not_the_table() -> None:
    table, indices, out = _shape(50_000, 64, dtype="bf16"), _shape(10, dtype="int64"), _shape(10, 64, dtype="bf16")
    found = operator("aten::embedding", [table, indices], [out])
    assert (found.read_bytes, found.written_bytes, found.flop) == (80 + 1280, 1280, 0)
    assert operator("aten::embedding", [table, indices]).bytes == found.bytes
    # A table smaller than what is read from it comes from memory once.
    small = operator("aten::embedding", [_shape(2, 64, dtype="bf16"), indices], [out])
    assert small.read_bytes == 80 + 256


def test_adding_to_rows_touches_those_rows() -> None:
    # 10 rows of 64 in FP32: indices 80, values 2560, rows read and written 2560 each; 640 additions
    table, indices, values = _shape(50_000, 64), _shape(10, dtype="int64"), _shape(10, 64)
    added = operator("aten::index_add_", [table, indices, values], [table])
    assert (added.read_bytes, added.written_bytes, added.flop) == (80 + 2560 + 2560, 2560, 640)
    put = operator("aten::index_put_", [table, indices, values], [table])
    assert (put.read_bytes, put.written_bytes, put.flop) == (80 + 2560, 2560, 0)


def test_scattering_into_a_copy_moves_the_whole() -> None:
    table, indices, values = _shape(100, 64), _shape(10, dtype="int64"), _shape(10, 64)
    copied = operator("aten::index_put", [table, indices, values], [table])
    assert (copied.read_bytes, copied.written_bytes) == (4 * 6400 + 80 + 2560, 4 * 6400)


def test_a_loss_reads_the_logarithms_of_its_targets() -> None:
    # 10 of the 10·1000 logarithms of 4 byte, 10 targets of 8 byte; a loss and a weight are written
    found = operator("aten::nll_loss_forward", [_shape(10, 1000), _shape(10, dtype="int64")], [_shape(), _shape()])
    assert (found.read_bytes, found.written_bytes) == (40 + 80, 8)


def test_lists_of_tensors_are_counted_all() -> None:
    lists = [_shape(4), _shape(6), _shape(4), _shape(6)]
    assert operator("aten::_foreach_add_.List", lists, lists[:2]).flop == 10
    assert operator("aten::_foreach_norm.Scalar", lists[:2], [_shape(), _shape()]).flop == 20
    steps = [*lists, *lists, _shape(), _shape()]
    assert operator("aten::_fused_adamw_", steps, lists).flop == 14 * 10


def test_filling_reads_nothing() -> None:
    found = operator("aten::zero_", [_shape(64)], [_shape(64)])
    assert (found.read_bytes, found.written_bytes) == (0, 256)
    copied = operator("aten::copy_", [_shape(64), _shape(64, dtype="bf16")], [_shape(64)])
    assert (copied.read_bytes, copied.written_bytes) == (128, 256)


def test_no_operator_stands_in_two_lists() -> None:
    table = load_operators()
    lists = [table.views, table.allocations, table.fills, table.moves, table.gathers, table.scatters]
    lists += [table.accumulating_scatters, frozenset(table.pointwise), frozenset(table.reduction)]
    assert sum(map(len, lists)) == len(frozenset().union(*lists))
    assert table.overwrites <= table.fills | table.moves


def test_a_causal_mask_is_aligned_at_the_start_as_pytorch_does() -> None:
    query, keys = _shape(1, 1, 128, 64, dtype="bf16"), [_shape(1, 1, 4096, 64, dtype="bf16")] * 2
    found = operator("scaled_dot_product_attention", [query, *keys], [query], is_causal=True)
    # the first query sees one key, the last 128: 128 * 129 / 2 pairs of 4 * 64 FLOPs
    assert found.matrix_flop == 4 * 64 * 128 * 129 // 2
    # more queries than keys: those behind the last key see all
    query, keys = _shape(1, 1, 6, 4, dtype="bf16"), [_shape(1, 1, 4, 4, dtype="bf16")] * 2
    found = operator("scaled_dot_product_attention", [query, *keys], [query], is_causal=True)
    assert found.matrix_flop == 4 * 4 * (1 + 2 + 3 + 4 + 4 + 4)


def test_recomputation_in_gradients_of_attention_is_not_needed_work() -> None:
    query, value = _shape(1, 2, 8, 4, dtype="bf16"), _shape(1, 2, 8, 6, dtype="bf16")
    backward = operator(
        "_scaled_dot_product_flash_attention_backward", [value, query, query, value], [query, query, value]
    )
    # 2 heads, 64 pairs: Q·Kᵀ again 2·4; dQ, dK 2·4 each; dP, dV 2·6 each
    assert (backward.matrix_flop, backward.needed_matrix_flop) == (128 * (3 * 8 + 2 * 12), 128 * (2 * 8 + 2 * 12))


def test_products_of_integers_have_a_roof() -> None:
    matrix = _shape(8192, 8192, dtype="int8")
    found = operator("_int_mm", [matrix, matrix], [_shape(8192, 8192, dtype="int32")])
    assert (found.flop, found.is_known) == (2 * 8192**3, True)
    assert [each.precisions for each in found.work] == [("tensor_int8",)]
    # 1.0995e12 / 1979e12
    assert model.predict(found, model.machine_by_name("h100-sxm")).least_ns == pytest.approx(555.6e3, rel=1e-3)
    # other work on integers is none
    assert operator("add", [matrix, matrix], [matrix]).flop == 0
