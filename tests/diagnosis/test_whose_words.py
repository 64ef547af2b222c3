"""Advice in the words of whoever can follow it: callers in PyTorch, compilers of graphs, and names that only look alike."""

from __future__ import annotations

import re

import polars as pl
import pytest

from ncuroof.demand import with_demand
from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.findings import add_firing, add_latency_limiter
from ncuroof.formatting import first_clause
from ncuroof.metrics.families import families_of
from ncuroof.metrics.names import matches
from tests.diagnosis.test_findings import found
from tests.diagnosis.test_what_fills_a_unit import names
from tests.diagnosis.test_what_is_told import named

RULES = load_rules()
_FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4, (bool)0, (bool)0>>"
_REDUCE = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::sum_functor<float>>>(T3)"
_FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char *, 1>>(int, T2, T3)"
_TO_FLOAT = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda, at::native::memory::LoadWithCast<1>>"
_TO_BF16 = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda, std::array<char *, 2>>"
)
_SDPA = "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_{}_1x4x1_cga1x1x1_kernel0_0"
_BACKWARD = "void pytorch_flash::flash_bwd_{}_kernel<Flash_bwd_kernel_traits<(int)64, (int)128, (int)128, (int)8>>"
_LOSS = "void at::native::<unnamed>::cunn_SoftMaxForwardReg<float, at::native::<unnamed>::LogSoftMaxForwardEpilogue, long, 8>"
_NVJET = "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NTT"


_OF_LOSSES = ("dram_roof", "dram_headroom", "low_occupancy", "stall_mixed", "narrow_loads", "instruction_issue")


@pytest.mark.parametrize(
    ("finding", "name", "ranges", "says"),
    [
        ("fill", _FILL, ("NllLossBackward0, sizes = [[]]", "aten::zero_"), "PyTorch itself fills"),
        ("fill", _FILL, ("MyFunctionBackward", "aten::zeros"), "torch.empty"),  # a Python function's own
        ("fill", _FILL, ("model", "aten::zeros"), "torch.empty"),
        ("small_grid", _REDUCE, ("evaluate_function: AddmmBackward0", "aten::sum, sizes = [[4096, 512]]"), "bias=False"),
        ("launch_overhead", _REDUCE, ("ConvolutionBackward0", "aten::sum"), "bias=False"),
        ("small_grid", _REDUCE, ("loss", "aten::sum"), "larger batch"),
        ("small_grid", _REDUCE, ("MseLossBackward0", "aten::sum"), "larger batch"),
        ("small_grid", _REDUCE.replace("sum_functor", "MeanOps"), ("AddmmBackward0", "aten::sum"), "larger batch"),
        ("small_grid", "void cudnn::fusion::convert_dq_to_16bits<128, 64>(T1 *)", (), "batch × heads"),
        ("type_conversion", _TO_FLOAT, (), "changes nothing"),
        ("type_conversion", _TO_BF16, (), "parameters in bfloat16"),
        ("local_memory", _SDPA.format("64x64x64"), (), "fits its registers"),
        ("local_memory", _SDPA.format("64x64x256"), (), "head dimension is above 128"),
        ("shared_traffic", _SDPA.format("128x128x128"), (), "tuned for"),
        ("shared_traffic", _SDPA.format("128x128x96"), (), "tiles differ"),
        ("stall_short_scoreboard", _FLASH, (), "FlashAttention-3"),
        ("serial_loads", _FLASH, (), "FlashAttention-3"),
        ("serial_loads", _FLASH.replace("fwd_kernel<", "fwd_splitkv_kernel<"), (), "fewer splits"),
        ("serial_loads", _BACKWARD.format("dq_dk_dv_loop_seqk_parallel"), (), "FlashAttention-3"),
        ("serial_loads", _BACKWARD.format("convert_dq"), (), "of a backward pass"),
        ("small_grid", _REDUCE.replace("float", "c10::BFloat16"), ("backward",), "gradient of a bias"),
        ("tail_wave", _REDUCE, (), "gradient of a bias"),
        ("low_occupancy", _REDUCE.replace("float", "c10::BFloat16"), (), "16 bits already"),
        ("low_occupancy", _REDUCE, (), "16-bit types"),
        *((finding, _LOSS, (), "fused linear cross-entropy") for finding in _OF_LOSSES),
    ],
)  # fmt: skip
def test_advice_knows_the_ranges_and_the_name(finding: str, name: str, ranges: tuple[str, ...], says: str) -> None:
    (family,) = families_of(pl.Series([name]))
    assert says in RULES.findings[finding].advice.text(family, name, ranges)


_ADD = "void at::native::{}, at::native::CUDAFunctor_add<float>>(int)"
_VECTORISED = _ADD.format("vectorized_elementwise_kernel<(int)4")
_ELEMENTS = _ADD.format("elementwise_kernel<128, 4")
_LOADS = ("serial_loads", "stall_long_scoreboard", "stall_overlapping_loads")


@pytest.mark.parametrize(
    ("finding", "name", "starts", "has_gain"),
    [
        *((finding, _VECTORISED, "Let torch.compile fuse it", False) for finding in (*_LOADS, "stall_full_queues")),
        *((finding, _FILL, "Leave it out", False) for finding in (*_LOADS, "stall_full_queues", "stall_drain")),
        *(
            (finding, _ELEMENTS, "Pass contiguous inputs of one type", True)
            for finding in (*_LOADS, "instruction_issue")
        ),
        ("serial_loads", _VECTORISED.replace("4", "2"), "Pass contiguous inputs of one type", True),
        ("instruction_issue", _VECTORISED, "Let torch.compile fuse it", False),
        ("instruction_issue", _TO_FLOAT, "Leave it out", False),
        *(
            ("small_grid", name, "Use a larger batch, where its tensors grow", True)
            for name in (_VECTORISED, _ELEMENTS)
        ),
        ("tail_wave", _VECTORISED, "Choose a larger batch, which", True),
        ("unfused_pointwise", _ELEMENTS, "Let torch.compile fuse it", True),
    ],
)
def test_what_shortens_a_launch_does_not_bound_what_leaves_it_out(
    finding: str, name: str, starts: str, has_gain: bool
) -> None:
    """A bias added in the matrix product spares the launch, of whose time loads in flight bounded a third."""
    advice = RULES.findings[finding].advice
    assert first_clause(advice.text("pytorch", name)).startswith(starts)
    kernel = pl.DataFrame({"family": ["pytorch"], "name": [name]})
    known = {condition.quantity for variant in advice.variants for condition in variant.all_of}
    kernel = kernel.with_columns(pl.lit(None, pl.Float64).alias(quantity) for quantity in known)
    assert kernel.select(advice.is_without_gain()).item() != has_gain
    if has_gain and finding != "unfused_pointwise":
        assert "fuse" not in first_clause(advice.text("pytorch", name))


@pytest.mark.parametrize("ranges", [(), ("evaluate_function: AddmmBackward0", "aten::sum, sizes = [[4096, 512]]")])
@pytest.mark.parametrize("finding", ["small_grid", "tail_wave", "launch_overhead"])
def test_a_bias_is_dropped_at_last_and_only_before_a_batch_norm(finding: str, ranges: tuple[str, ...]) -> None:
    *first, last = RULES.findings[finding].advice.text("pytorch", _REDUCE, ranges).split(". ")
    assert "bias=False" not in "".join(first)
    assert "batch norm" in last


def test_what_splits_the_sum_of_a_fixed_grid_has_more_blocks_at_once() -> None:
    finding = RULES.findings["small_grid"]
    assert finding.needs_more_work  # "if more blocks run at once"
    assert "over more blocks" in first_clause(finding.advice.text("pytorch_fixed_grid"))


_GATHER = "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int)"


@pytest.mark.parametrize(
    ("waste_frac", "starts"),
    [(0.0, "Use a larger batch or longer rows"), (0.048, "Use"), (0.05, "Sort"), (None, "Sort")],
)
def test_rows_that_fill_their_sectors_are_not_to_be_sorted(waste_frac: float | None, starts: str) -> None:
    for finding in _LOADS:
        advice = RULES.findings[finding].advice.text("pytorch", _GATHER, quantities={"access.waste_frac": waste_frac})
        assert advice.startswith(starts)


@pytest.mark.parametrize(
    "name", [_BACKWARD.format("dot_do_o"), _BACKWARD.format("convert_dq"), _SDPA.format("64x64x64")]
)
def test_a_backward_pass_is_not_told_of_decoding(name: str) -> None:
    first = (
        "small_grid",
        "serial_loads",
        "stall_long_scoreboard",
        "stall_overlapping_loads",
        "dram_roof",
        "dram_headroom",
    )
    for finding in (*first, "launch_overhead"):
        said = RULES.findings[finding].advice.text("flash_attention", name)
        assert not re.search(r"num_splits|splits|paged|decoding|FP8|cache", said), finding


def test_where_tensor_instructions_are_asynchronous_attention_is_told_to_use_them() -> None:
    for finding in ("stall_wait", "stall_mixed"):
        advice = RULES.findings[finding].advice
        hopper, ampere = (
            advice.text("flash_attention", _FLASH, quantities={"device.has_async_tensor_path": told})
            for told in (1.0, 0.0)
        )
        assert first_clause(hopper).startswith("Use FlashAttention-3")
        assert "FlashAttention-3" not in ampere


@pytest.mark.parametrize("finding", ["small_grid", "tail_wave", "launch_overhead", "dram_roof", "dram_headroom"])
def test_an_optimizer_is_sent_to_its_fused_variant_and_not_to_a_larger_batch(finding: str) -> None:
    name = _FILL.replace("FillFunctor<float>", "AUnaryFunctor<c10::BFloat16>")
    step, other = (
        first_clause(RULES.findings[finding].advice.text("pytorch", name, quantities={"launch.is_of_optimizer": told}))
        for told in (1.0, 0.0)
    )
    assert "fused=True" in step
    assert "fused=True" not in other


def test_flash_attention_3_is_told_to_kernels_of_flash_attention_2() -> None:
    others = {"sm_imbalance", "slower_tensor_instructions", "narrower_type"}  # where it stands beside other kernels
    for finding in RULES.findings.keys() - others:
        for name in (
            _SDPA.format("64x128x96"),
            "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<",
        ):
            assert "FlashAttention-3" not in RULES.findings[finding].advice.text("flash_attention", name), finding


_CUBLAS_CALLS = "cublasLt|strided-batched|leading dimension|with workspace|grouped"


@pytest.mark.parametrize("family", ["cublas", "cublas_gemv"])
def test_products_of_pytorch_are_not_told_what_only_a_caller_of_cublas_can_do(family: str) -> None:
    channels = {"l2_slice_imbalance", "dram_channel_imbalance", "remote_memory"}
    for finding in RULES.findings.keys() - channels:
        advice = RULES.findings[finding].advice
        assert not re.search(_CUBLAS_CALLS, advice.text(family, _NVJET, is_from_pytorch=True)), finding
    advice = RULES.findings["dram_headroom"].advice
    assert re.search(_CUBLAS_CALLS, advice.text("cublas", _NVJET))
    assert "max-autotune" in advice.text("cublas", _NVJET, is_from_pytorch=True)
    assert "max-autotune" in RULES.findings["stall_mixed"].advice.text("cublas", _NVJET, is_from_pytorch=True)


_OF_FOREACH = [
    "pointwise_chain",
    "grid_of_parameters",
    "serial_loads",
    "stall_long_scoreboard",
    "dram_headroom",
    "dram_roof",
]


@pytest.mark.parametrize("finding", [*_OF_FOREACH, "launch_overhead", "tail_wave"])
def test_foreach_optimizers_are_sent_to_fused_ones_and_not_to_foreach(finding: str) -> None:
    advice = RULES.findings[finding].advice.text("pytorch_foreach")
    assert re.search(
        r"[Uu]se the fused variant where (?:it is an optimizer's step|the optimizer is none yet) \(fused=True\)", advice
    )
    assert not re.search("larger batch|foreach operator", advice)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>>(T1)", "grid_of_parameters"),
        ("my_multi_tensor_apply(float *)", "small_grid"),
    ],
)  # fmt: skip
def test_a_grid_that_follows_the_parameters_promises_no_gain_and_names_the_grid(name: str, cause: str) -> None:
    row = named("small_grid", name, **{"occupancy.waves": 0.06, "occupancy.empty_frac": 0.9})
    diagnosed = add_latency_limiter(add_firing(with_demand(row), RULES.findings.values()), RULES)
    assert diagnosed["limiter.latency"].item() == "grid"
    assert {"small_grid", "grid_of_parameters"} & set(found(row)) == {cause}
    assert RULES.findings["grid_of_parameters"].fix is None


@pytest.mark.parametrize(
    ("waves", "cause"), [(0.97, "l2_traffic_of_few_blocks"), (1.0, "l2_traffic"), (None, "l2_traffic")]
)
def test_larger_tiles_promise_nothing_where_they_leave_sms_without_blocks(waves: float | None, cause: str) -> None:
    # 128 tiles of 128 x 64 on 132 SMs: twice the tile leaves 64 blocks, 48 % of the SMs
    busy = {"occupancy.waves": waves, "utilisation.l2": 0.7, "utilisation.memory": 0.7, "utilisation.dram": 0.2}
    reported = names("l2_traffic", **busy, **{"utilisation.memory_side": 0.7, "utilisation.compute": 0.4})
    assert reported & {"l2_traffic", "l2_traffic_of_few_blocks"} == {cause}
    assert RULES.findings["l2_traffic_of_few_blocks"].fix is None


_DRAWS = ["random_numbers", "instruction_issue", "integer_pipe", "multiply_add_issue", "half_issue"]


@pytest.mark.parametrize(
    ("name", "draws"),
    [
        ("void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(long)", True),
        ("void at::native::<unnamed>::distribution_binary_elementwise_kernel<int>(T1)", True),
        ("my_kernel(curandStatePhilox4_32_10 *)", True),
        ("collide_distribution_functions(double *, int)", False),  # of a lattice-Boltzmann code
        ("void photon_distribution_kernel<float>(T1 *)", False),
    ],
)
def test_random_numbers_are_told_by_names_that_draw_them(name: str, draws: bool) -> None:
    rules = [RULES.findings[finding] for finding in _DRAWS]
    patterns = [rule.name_pattern if rule.id == "random_numbers" else rule.excluded_name_pattern for rule in rules]
    assert {pl.select(matches(pl.lit(name), pattern or "")).item() for pattern in patterns} == {draws}


@pytest.mark.parametrize(
    ("name", "is_philox"),
    [
        ("void monte_carlo_euro<Call>(float, float *, curandStateXORWOW *)", False),
        ("paths(curandStatePhilox4_32_10 *)", True),
    ],
)
def test_four_numbers_of_a_call_are_for_a_generator_that_has_them(name: str, is_philox: bool) -> None:
    advice = RULES.findings["inlined_generator"].advice.text("user", name)
    assert ("all four numbers" in advice) is is_philox
    assert ("Philox" in advice) is is_philox
    assert "-use_fast_math" in advice


@pytest.mark.parametrize("finding", ["multiply_add_issue", "half_issue"])
def test_empty_issue_slots_are_looked_for_where_warps_stall(finding: str) -> None:
    assert RULES.findings[finding].lines == ("stalled",)


@pytest.mark.parametrize(
    ("name", "is_product"),
    [
        ("void linear_kernel<float>(T1 *)", True),
        ("LinearKernel(float *)", True),
        ("masked_attention(float *)", True),
        ("attention_masked(float *)", True),
        ("void tensorflow::ResizeBilinearKernel<float>(int, const T1 *)", False),
        ("upsample_bilinear_kernel(float *, int)", False),
        ("void trilinear_kernel<float>(T1 *)", False),
        ("void apply_nonlinear_kernel<float>(T1 *)", False),
        ("void CollinearKernel<float>(T1 *)", False),
        ("rwkv_attention_mask_build(float *)", False),
        ("build_attention_mask(float *)", False),
    ],
)
def test_interpolation_is_no_product(name: str, is_product: bool) -> None:
    rule = RULES.findings["idle_tensor_cores"]
    named_so = pl.select(matches(pl.lit(name), rule.name_pattern or "")).item()
    excluded = pl.select(matches(pl.lit(name), rule.excluded_name_pattern or "")).item()
    assert (named_so and not excluded) == is_product


def test_what_compilers_wrote_is_not_told_in_the_words_of_an_author() -> None:
    for finding, rule in RULES.findings.items():
        for family in ("inductor", "generated"):
            assert not re.search(r"\btl\.|num_warps|num_stages|BLOCK", rule.advice.text(family)), finding
    for finding in RULES.findings:
        assert not re.search("torch|channels_last", RULES.findings[finding].advice.text("generated")), finding


@pytest.mark.parametrize("family", ["cudnn", "flash_attention"])
def test_what_is_pytorchs_own_is_said_to_be(family: str) -> None:
    """Whoever calls cuDNN or attention from elsewhere is told what to do first, and PyTorch's name for it second."""
    for finding in RULES.findings:
        advice = RULES.findings[finding].advice.text(family, _SDPA.format("64x64x64"))
        if found_at := re.search(r"torch\.|autocast|channels_last", advice):
            assert "in PyTorch" in advice[: found_at.start()] or "(" in advice[: found_at.start()], finding
