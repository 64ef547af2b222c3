"""Expected against measured: which launches are one call of an operator, what it needed, what was done. All numbers by hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.expected.element_types import element_type
from ncuroof.expected.ranges import place
from ncuroof.sidecars.counts import Counts, KernelCount, counts_json, counts_path
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.report_writer import write_report

HMMA = "op_hmma_src_bf16_dst_fp32_sparsity_off"
LAYER = ("Block (Block) [8, 512]", "Block.fc (Linear) [8, 512]")
MM = "aten::mm, seq = 3, op_id = 5, sizes = [[100, 64], [64, 200]]"


def product(**changes: Any) -> Described:
    """Return a product of 100 × 64 and 64 × 200 in BF16, made as one tile of 128 × 256 × 64."""
    known = {
        "nvtx": (*LAYER, MM),
        "tensor": {HMMA: 2 * 128 * 256 * 64},
        "loads": Accesses(200, 16, bytes_per_thread=16),
        "stores": Accesses(100, 16, bytes_per_thread=16),
        "warp_instructions": 1e6,
        "dram_read_bytes": 64_000,
        "dram_write_bytes": 40_000,
    }
    return Described("ampere_bf16_s16816gemm_bf16_128x256", **({"duration_ns": 20_000} | known | changes))


def gelu(**changes: Any) -> Described:
    """Return a GELU of 1024 × 4096 BF16 elements that moves three times what it must."""
    n_bytes = 2 * 1024 * 4096
    known = {
        "nvtx": (*LAYER, "aten::gelu, seq = 4, op_id = 6, sizes = [[1024, 4096], []]"),
        "demangled": "void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl(c10::BFloat16)>(int)",
        "loads": Accesses(5 * n_bytes // 512, 16, bytes_per_thread=16),
        "stores": Accesses(n_bytes // 512, 16, bytes_per_thread=16),
        "dram_read_bytes": 5 * n_bytes,
        "dram_write_bytes": n_bytes,
    }
    return Described("vectorized_elementwise_kernel", 40_000, **(known | changes))


@pytest.fixture
def expected(tmp_path: Path):
    def of(*launches: Described):
        path = tmp_path / "run.ncu-rep"
        path.write_bytes(write_report([kernel(each) for each in launches]))
        return ncuroof.read(path).analyse().expected

    return of


@pytest.mark.long
def test_padding_shows_as_more_work_than_was_needed(expected) -> None:
    (call,) = expected(product()).calls.to_dicts()
    assert (call["operator"], call["dtype"], len(call["ids"])) == (
        "aten::mm", "bf16", 1,
    )  # fmt: skip
    assert (call["asked_precision"], call["ran_precision"]) == ("tensor_bf16", "tensor_bf16")
    assert call["needed_flop"] == 2 * 100 * 64 * 200
    assert call["counted_flop"] == pytest.approx(2 * 128 * 256 * 64)
    # (100 * 64 + 64 * 200 + 100 * 200) elements of 2 bytes
    assert call["compulsory_bytes"] == 2 * (6400 + 12800 + 20000)
    assert call["dram_bytes"] == pytest.approx(104_000)
    assert (call["module"], call["is_backward"]) == ("Block (Block)/Block.fc (Linear)", False)


@pytest.mark.long
def test_traffic_shows_against_what_has_to_move(expected) -> None:
    (call,) = expected(gelu()).calls.to_dicts()
    assert call["compulsory_bytes"] == 2 * 2 * 1024 * 4096
    assert call["dram_bytes"] / call["compulsory_bytes"] == pytest.approx(3)
    assert (call["needed_flop"], call["counted_flop"], call["asked_precision"]) == (0, None, None)
    # 16.8 MB at the H200's 4.8 TB/s
    assert call["roofline_ns"] == pytest.approx(2 * 2 * 1024 * 4096 / 4.8e12 * 1e9, rel=1e-3)


@pytest.mark.long
def test_a_product_off_the_tensor_cores_is_seen(expected) -> None:
    (call,) = expected(
        product(tensor={}, fp32=(0, 0, 128 * 256 * 64), demangled="gemm_bf16(c10::BFloat16 *)")
    ).calls.to_dicts()
    assert (call["asked_precision"], call["ran_precision"]) == ("tensor_bf16", "fp32")
    assert call["counted_flop"] == pytest.approx(2 * 128 * 256 * 64)


def test_launches_under_the_same_ranges_are_one_call(expected) -> None:
    reduce = product(tensor={}, fp32=(20_000, 0, 0), nvtx=(*LAYER, MM))
    second = product(nvtx=(*LAYER, MM.replace("op_id = 5", "op_id = 9")))
    calls = expected(product(), reduce, second).calls
    assert calls["ids"].to_list() == [[0, 1], [2]]
    assert calls["duration_ns"].to_list() == [40_000, 20_000]


@pytest.mark.long
def test_without_numbers_a_call_ends_when_its_first_kernel_comes_again(expected) -> None:
    bare = (*LAYER, "aten::mm, sizes = [[100, 64], [64, 200]]")
    first, second = product(nvtx=bare), gelu(nvtx=bare)
    assert expected(first, second, first, second).calls["ids"].to_list() == [[0, 1], [2, 3]]


@pytest.mark.long
def test_the_innermost_operator_of_known_work_counts(expected) -> None:
    ranges = (
        *LAYER,
        "aten::linear, op_id = 1, sizes = [[100, 64], [200, 64], [200]]",
        MM,
        "aten::resize_, op_id = 7, sizes = [[]]",
    )
    assert expected(product(nvtx=ranges)).calls["operator"].to_list() == ["aten::mm"]


@pytest.mark.long
def test_gradients_belong_to_the_module_of_their_forward_operator(expected) -> None:
    backward = product(
        nvtx=(
            "autograd::engine::evaluate_function: MmBackward0, seq = 3",
            "MmBackward0, seq = 3",
            "aten::mm, op_id = 20, sizes = [[64, 100], [100, 200]]",
        )
    )
    calls = expected(product(), backward).calls.to_dicts()
    assert [call["is_backward"] for call in calls] == [False, True]
    assert {call["module"] for call in calls} == {"Block (Block)/Block.fc (Linear)"}


@pytest.mark.long
def test_modules_hold_what_is_within_them(expected) -> None:
    outside = product(nvtx=(MM.replace("op_id = 5", "op_id = 7"),))  # the same number as in the layer, but no gradient
    modules = {row["module"]: row for row in expected(product(), gelu(), outside).modules.to_dicts()}
    assert {name: row["n_calls"] for name, row in modules.items()} == {
        "Block (Block)": 2,
        "Block (Block)/Block.fc (Linear)": 2,
        None: 1,
    }
    assert modules["Block (Block)"]["duration_ns"] == 60_000
    assert modules["Block (Block)"]["needed_flop"] == 2 * 100 * 64 * 200


@pytest.mark.long
def test_a_run_without_ranges_or_sizes_expects_nothing(expected) -> None:
    for nvtx in ((), LAYER, (*LAYER, "aten::mm"), ("aten::frobnicate, sizes = [[1]]",), ("aten::view, sizes = [[1]]",)):
        found = expected(product(nvtx=nvtx))
        assert found.calls.is_empty()
        assert found.modules.is_empty()
        assert found.utilisation is None


@pytest.mark.long
@pytest.mark.parametrize(("counted_ns", "work_weight"), [(1.5e6, 10.0), (1.3e6, 6.5)])
def test_as_many_of_the_size_as_would_beat_the_peak_are_of_other_sizes(
    tmp_path: Path, counted_ns: float, work_weight: float
) -> None:
    # 4096³ in 200 µs: 687 TFLOP/s. Ten of them take 1.39 ms at the data sheet's 989: ten launches in 1.3 ms are smaller ones.
    large = product(
        nvtx=("aten::mm, op_id = 5, sizes = [[4096, 4096], [4096, 4096]]",), duration_ns=200_000,
        tensor={HMMA: 2 * 4096**3}, grid=(256, 1, 1),
    )  # fmt: skip
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([kernel(large)]))
    counts = Counts((KernelCount(large.name, (256, 1, 1), large.block, 10, counted_ns),))
    counts_path(path).write_bytes(counts_json(counts))
    (call,) = ncuroof.read(path).analyse().expected.calls.to_dicts()
    assert call["needed_flop"] == 2 * 4096**3
    assert call["is_uneven"] is (work_weight < 10)
    assert call["work_weight"] == pytest.approx(work_weight)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        (["void vectorized_elementwise_kernel<4, GeluCUDAKernelImpl(c10::BFloat16)>"], "bf16"),
        (["ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn"], "bf16"),
        (["void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::Half, float, float>"], "fp16"),
        (["void gemv2T_kernel_val<int, int, __half, __half, __half, float>"], "fp16"),
        (["void reduce_kernel<512, 1, ReduceOp<double, NormTwoOps<double>>>"], "fp64"),
        (["ampere_sgemm_128x64_nn"], "fp32"),
        (["void cutlass::Kernel<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>"], "fp32"),
        (["julia_add(CuDeviceArray<Float32, (int)1, (int)1>)"], "fp32"),
        (["scale(Array<float16, 1, C>)"], "fp16"),
        (["triton_poi_fused_gelu_0"], None),
        (["halfway_there"], None),
        (["copy(const float4 *, float4 *)"], "fp32"),
        (["force(const double4 *, double4 *, int)"], "fp64"),
        (["scale(float *, float *, double)"], "fp32"),
        (["scale(const int *, double)"], None),
        (["update(Body *, Body *, int, float)"], None),
        (
            [
                "multi_tensor_apply_kernel<FusedAdamMathFunctor<float, (int)4>, const float *, double, double>(T1, T2, T3...)"
            ],
            "fp32",
        ),
    ],
)
def test_types_follow_from_names(names: list[str], dtype: str | None) -> None:
    assert element_type([], names) == dtype


def test_counters_go_before_names() -> None:
    assert element_type(["tensor_fp8"], ["gemm<c10::BFloat16>"]) == "fp8"
    assert element_type(["tensor_tf32"], []) == "tf32"
    # CUTLASS names the type of the result as well, which is not that of the operands
    assert element_type(["tensor_fp4"], ["cutlass3x_sm100_bstensorop_ue4m3xe2m1_f32_bf16_bf16"]) == "fp4"
    assert element_type(["tensor_int4"], []) == "int4"


def test_shapes_are_not_part_of_the_name_of_a_module() -> None:
    assert place(["a (Linear) [8, 512], [3]", "step 3"]).module == "a (Linear)/step 3"
    assert place(["x[3]"]).module == "x"
    assert place([]).module is None


@pytest.mark.parametrize(
    "text",
    [
        "Net (Net) [16, 256]" + ", seq = 1" * 60_000 + "x",
        "Net (Net)" + "[1]" * 60_000 + "x",
        "Net (Net)" + " " * 60_000 + "x",
    ],
)
def test_a_range_of_any_length_is_named_in_no_time(text: str) -> None:
    started = time.process_time()
    assert place([text]).module == text
    assert time.process_time() - started < 1  # minutes, where the end is looked for from each place


def test_an_impossible_sequence_number_is_ignored() -> None:
    assert place(["aten::mm, seq = 123456789012345678"]).sequence == 123456789012345678
    assert place(["aten::mm, seq = " + "9" * 5000]).sequence is None


@pytest.mark.long
@pytest.mark.parametrize("size", ["9" * 18, "9" * 200, "9" * 5000, "[" * 30_000], ids=len)
def test_a_range_with_impossible_sizes_is_not_a_call(expected, size: str) -> None:
    text = f"aten::mm, seq = 3, sizes = [[{size}, {size}], [{size}, {size}]]"
    assert expected(product(nvtx=(*LAYER, text))).calls.is_empty()


@pytest.mark.long
def test_products_of_tf32_are_held_against_its_peak(expected) -> None:
    tf32 = "op_hmma_src_tf32_dst_fp32_sparsity_off"
    (call,) = expected(product(tensor={tf32: 2 * 128 * 256 * 64}, demangled="cutlass_s1688gemm")).calls.to_dicts()
    assert (call["dtype"], call["asked_precision"], call["ran_precision"]) == ("tf32", "tensor_tf32", "tensor_tf32")
    # stored as FP32: 4 bytes each
    assert call["compulsory_bytes"] == 4 * (6400 + 12800 + 20000)


def test_a_kernel_that_converts_has_no_one_type() -> None:
    assert (
        element_type([], ["unrolled_elementwise_kernel<direct_copy(float), LoadWithCast<1>, StoreWithCast<1>>"]) is None
    )
    assert (
        element_type([], ["vectorized_elementwise_kernel<4, bfloat16_copy_kernel_cuda(TensorIteratorBase&)>"]) is None
    )


def test_ranges_of_libraries_are_not_modules_and_numbers_not_part_of_a_name() -> None:
    custom = "flash_attn::_flash_attn_forward, seq = 7, op_id = 8, sizes = [[2, 8, 64]]"
    assert place(["Net (Net) [2, 8], op_id = 4", custom]).module == "Net (Net)"
    assert place(["Optimizer.step#AdamW.step, op_id = 77"]).module == "Optimizer.step#AdamW.step"


@pytest.mark.long
def test_sequence_numbers_are_those_of_a_report(expected, tmp_path: Path) -> None:
    backward = ("autograd::engine::evaluate_function: MmBackward0, seq = 3", "MmBackward0, seq = 3")
    gradient = product(nvtx=(*backward, "aten::mm, op_id = 20, sizes = [[64, 100], [100, 200]]"))
    files = [tmp_path / name for name in ("one.ncu-rep", "two.ncu-rep")]
    for file, layer in zip(files, ("One (One)", "Two (Two)"), strict=True):
        file.write_bytes(write_report([kernel(each) for each in (product(nvtx=(layer, MM)), gradient)]))
    calls = ncuroof.read(files).analyse().expected.calls
    assert calls["module"].to_list() == ["One (One)", "One (One)", "Two (Two)", "Two (Two)"]


@pytest.mark.long
def test_recomputed_work_of_a_gradient_is_separate_from_needed_work(expected) -> None:
    again = ("autograd::engine::evaluate_function: MmBackward0, seq = 3", *LAYER, MM.replace("seq = 3", "seq = 9"))
    found = expected(product(), product(nvtx=again))
    assert found.calls["is_recomputed"].to_list() == [False, True]
    assert found.calls["module"].to_list() == ["Block (Block)/Block.fc (Linear)"] * 2
    assert found.utilisation is not None
    assert found.utilisation.needed_flop == 2 * 100 * 64 * 200


@pytest.mark.long
def test_tensor_work_outside_known_operators_is_separate(expected) -> None:
    convolution = product(nvtx=(*LAYER, "aten::convolution, op_id = 9, sizes = [[1, 3, 8, 8], [4, 3, 3, 3], []]"))
    found = expected(product(), convolution).utilisation
    assert found is not None
    assert found.unknown_products_frac == pytest.approx(0.5)
    assert found.other_frac == pytest.approx(0)


@pytest.mark.long
def test_a_causal_mask_leaves_out_work_although_ranges_do_not_name_it(expected) -> None:
    # 2 sequences, 4 heads, 128 queries and keys, 64 features: 4 * 2 * 4 * 128 * 128 * 64 FLOPs, half of them under a causal mask
    whole = 4 * 2 * 4 * 128 * 128 * 64
    shapes = ", ".join(["[2, 4, 128, 64]"] * 3)
    nvtx = (*LAYER, f"aten::_scaled_dot_product_flash_attention, op_id = 5, sizes = [{shapes}, [], [], [], []]")
    masked, full, more = (
        expected(product(nvtx=nvtx, tensor={HMMA: flop})).calls.row(0, named=True)["needed_flop"]
        for flop in (whole / 2, whole, 1.5 * whole)
    )
    assert (masked, full, more) == (pytest.approx(whole / 2), whole, whole)


@pytest.mark.long
def test_scores_that_attention_computes_again_are_extra_work(expected) -> None:
    # 2 sequences, 4 heads, 128 queries and keys, 64 features: five products of 2·2·4·128·128·64 FLOPs run, four are needed
    one = 2 * 2 * 4 * 128 * 128 * 64
    shapes = ", ".join(["[2, 4, 128, 64]"] * 5)
    nvtx = (*LAYER, f"aten::_scaled_dot_product_flash_attention_backward, op_id = 6, sizes = [{shapes}]")
    found = expected(product(nvtx=nvtx, tensor={HMMA: 5 * one}))
    (call,) = found.calls.to_dicts()
    assert (call["needed_flop"], call["counted_flop"]) == (4 * one, pytest.approx(5 * one))
    assert found.utilisation.extra_work_frac == pytest.approx(found.utilisation.mfu_frac / 4)
    # under a mask that no range tells, four fifths of what was done
    (call,) = expected(product(nvtx=nvtx, tensor={HMMA: 2.5 * one})).calls.to_dicts()
    assert call["needed_flop"] == pytest.approx(2 * one)
