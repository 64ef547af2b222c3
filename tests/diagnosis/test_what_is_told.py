"""What is reported of a kernel is true of it: bounds where SMs idle, either a roof or headroom, advice that its name allows."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.finding import Advice, Rank, Variant
from ncuroof.metrics.families import families_of
from ncuroof.metrics.names import matches
from tests.diagnosis.test_findings import found, gain_ns, listed, row_for
from tests.diagnosis.test_what_fills_a_unit import names

RULES = load_rules()
_FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4, (bool)0, (bool)0>>"
_VECTORIZED = (
    "void at::native::vectorized_elementwise_kernel<(int)8, at::native::BinaryFunctor<{0}, {0}, {0}>>(int, T2)"
)
_SOFTMAX = "void at::native::<unnamed>::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16>(T1 *)"
_NLL = "void at::native::<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(T1 *)"


def advice(finding: str, name: str) -> str:
    """Return the advice for a kernel of this name."""
    return RULES.findings[finding].advice.text(families_of(pl.Series([name])).item(), name)


# ---- gains ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "gain_frac"), [(0.9, 0.5), (0.7, 0.051), (None, 0.051)])
def test_of_l2_stores_nothing_is_claimed_where_its_input_may_not_be_what_is_busy(
    share: float | None, gain_frac: float | None
) -> None:
    # 8 of 32 bytes of each sector: 0.75 of what the SMs sent, of which the SMs' own half leaves 0.5; else what L1 does in vain
    known = {"access.store_bytes_per_sector": 8.0, "access.l2_store_waste_frac": None, "access.l2_input_share": share}
    known["utilisation.compute_side"] = 0.5
    assert gain_of("uncoalesced_global_store", "l2", known) == pytest.approx(gain_frac)


@pytest.mark.parametrize(("frac", "gain_frac"), [(0.9, 0.5), (0.96, None), (None, None)])
def test_of_a_full_alu_nothing_is_claimed_where_it_may_be_at_its_roof(
    frac: float | None, gain_frac: float | None
) -> None:
    known = {"utilisation.compute": 0.8, "utilisation.issue": 0.5, "scheduler.compute_busy_frac": frac}
    assert gain_of("integer_pipe", "alu", known) == gain_frac


_OF_BUSY_DRAM = {"utilisation.dram": 0.7, "scheduler.dram_over_best": 0.72}


def gain_of(finding: str, limiter: str, known: dict[str, float | None]) -> float | None:
    """Return what share of the duration a finding promises a kernel with this limiter."""
    frame = row_for(RULES.findings[finding], **known).with_columns(limiter=pl.lit(limiter))
    rows = listed(frame)
    return rows.filter(pl.col("finding") == finding).select(pl.col("gain_ns") / 1e6).item()


@pytest.mark.parametrize("busy", [0.62, 0.8, 0.85, 0.88, 0.89, 0.9, 0.97])
def test_of_busy_dram_there_is_either_headroom_or_a_roof(busy: float) -> None:
    known = {"utilisation.dram": min(busy, 0.85), "scheduler.dram_over_best": busy}
    found_of_dram = {"dram_headroom", "dram_roof"} & names("dram_roof", limiter="dram", **known)
    assert found_of_dram == {"dram_roof" if busy >= 0.89 else "dram_headroom"}


@pytest.mark.parametrize(
    ("family", "name", "known", "gain_frac"),
    [
        ("user", "stream", {}, 0.28),
        ("user", "stream", {"access.async_copy_frac": 0.48}, 0.28),
        ("user", "stream", {"access.async_copy_frac": 0.52}, None),  # the advice: fewer bytes
        ("cutlass", "stream", {"access.async_copy_frac": 0.52}, 0.28),  # the advice: more stages
        ("pytorch", _VECTORIZED.format("float"), {}, None),
        ("pytorch", "void at::native::vectorized_layer_norm_kernel<float>", {}, None),
        ("pytorch", "void at::native::reduce_kernel<512>", {}, 0.28),
        ("pytorch_foreach", "multi_tensor_apply_kernel", {}, None),
        ("cublas", "gemm", {}, 0.28),
        ("cublas_gemv", "gemv2T", {}, None),
    ],
)
def test_no_gain_is_stated_where_the_advice_is_another_change(
    family: str, name: str, known: dict[str, float], gain_frac: float | None
) -> None:
    row = row_for(RULES.findings["dram_headroom"], **_OF_BUSY_DRAM, **known)
    row = row.with_columns(limiter=pl.lit("dram"), family=pl.lit(family), name=pl.lit(name))
    rows = listed(row)
    (gain_ns,) = rows.filter(pl.col("finding") == "dram_headroom")["gain_ns"]
    assert gain_ns == (None if gain_frac is None else pytest.approx(gain_frac * 1e6))


def test_threads_that_may_have_left_their_work_undone_promise_nothing() -> None:
    rule = RULES.findings["alike_threads"]
    assert rule.fix is None
    assert rule.rank is Rank.FIRST


# ---- where a finding fires --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sectors", "bytes_per_sector", "is_reported"),
    [(1.0, 32, True), (2.0, 32, True), (4.0, 31, True), (8.0, 32, False), (2.0, 16, False), (0.5, 32, False)],
)
def test_loads_of_one_two_or_four_bytes_are_narrow(sectors: float, bytes_per_sector: float, is_reported: bool) -> None:
    access = {"access.load_sectors_per_request": sectors, "access.load_bytes_per_sector": bytes_per_sector}
    assert ("narrow_loads" in names("narrow_loads", limiter="issue", **access)) == is_reported
    few_lanes = {"scheduler.n_threads_per_instruction": 8.0}
    assert "narrow_loads" not in names("narrow_loads", limiter="issue", **access, **few_lanes)


@pytest.mark.parametrize(
    ("asked_over_read", "read_over_stored", "is_reported"),
    [(1.61, 1.14, True), (1.35, 1.27, True), (1.78, 1.02, False), (2.1, None, True), (1.05, 2.0, False)],
)
def test_data_that_was_read_again_is_told_by_how_much_dram_read(
    asked_over_read: float, read_over_stored: float | None, is_reported: bool
) -> None:
    stored = None if read_over_stored is None else 1 / read_over_stored
    ratios = {"access.l2_read_over_dram_read": asked_over_read, "access.stored_over_dram_read": stored}
    assert ("large_working_set" in names("large_working_set", **ratios)) == is_reported


def named(finding: str, name: str, **changed: float | None) -> pl.DataFrame:
    """Return a row that just meets a finding's conditions but for its verdict, with a name."""
    return row_for(RULES.findings[finding], **changed).with_columns(
        name=pl.lit(name), verdict=pl.lit("latency"), limiter=pl.lit("stall")
    )


def test_few_warps_of_attention_are_on_purpose() -> None:
    assert "low_occupancy" in found(named("low_occupancy", "my_kernel"))
    assert "low_occupancy" not in found(named("low_occupancy", _FLASH))


@pytest.mark.parametrize(
    "name",
    [
        _FLASH,
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
    ],
)
def test_kernels_of_attention_are_known_by_name(name: str) -> None:
    pattern = RULES.findings["low_occupancy"].excluded_name_pattern
    assert pattern is not None
    assert families_of(pl.Series([name])).item() == "flash_attention"
    assert pl.select(matches(pl.lit(name), pattern)).item()


@pytest.mark.parametrize(("tensor", "is_reported"), [(0.45, True), (0.2, False)])
def test_older_tensor_instructions_are_told_where_warps_wait_as_well(tensor: float, is_reported: bool) -> None:
    finding = "slower_tensor_instructions"
    busy = {"utilisation.tensor": tensor, "roofline.tensor_path_frac": 0.66, "utilisation.memory": 0.2}
    row = named(finding, _FLASH, **busy)
    assert (finding in found(row)) == is_reported
    of_full = gain_ns(finding, {**busy, "utilisation.tensor": 0.7})
    assert of_full == pytest.approx((1 - 0.7 * 0.66) * 1e6)


@pytest.mark.parametrize(
    ("per_lookup", "cause"),
    [
        (1.6, "async_copy_alignment"),
        (1.0, "uncoalesced_global_access"),
        (0.0, "uncoalesced_global_access"),  # copies through L1
        (None, "uncoalesced_global_access"),
    ],
)
def test_unaligned_asynchronous_copies_are_not_taken_for_scattered_accesses(
    per_lookup: float | None, cause: str
) -> None:
    excess = {"access.excess_sectors_frac": 0.5, "access.async_sectors_per_lookup": per_lookup}
    causes = {"async_copy_alignment", "uncoalesced_global_access"}
    assert names("uncoalesced_global_access", **excess) & causes == {cause}


def test_unaligned_copies_are_told_with_what_l2_sent_for_them_where_l2_is_the_limit() -> None:
    # bytes per sector were collected, and are of loads into registers alone
    known = {"access.load_bytes_per_sector": 32.0, "access.l2_excess_frac": 0.4}
    assert gain_of("async_copy_alignment", "l2", known) == pytest.approx(0.4)
    full = known | {"utilisation.dram": 0.95, "utilisation.l2_tags": 0.5}
    assert gain_of("async_copy_alignment", "dram", full) == pytest.approx(
        0.05
    )  # L2 holds the sector by the second time


# ---- advice -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finding", "name", "says", "leaves_out"),
    [
        ("dram_roof", _VECTORIZED.format("float"), "use bfloat16", "16 bits already"),
        ("dram_roof", _VECTORIZED.format("c10::BFloat16"), "16 bits already", "use bfloat16"),
        ("dram_headroom", _VECTORIZED.format("c10::BFloat16"), "vectorised and its type has 16 bits", "bfloat16"),
        ("dram_headroom", _VECTORIZED.format("c10::Half"), "vectorised and its type has 16 bits", "bfloat16"),
        ("dram_headroom", _VECTORIZED.format("float"), "use bfloat16", "let vectorised kernels run"),
        ("dram_headroom", _NLL, "let vectorised kernels run", "already"),
        ("uncoalesced_global_load", _NLL, "cross_entropy", "contiguous"),
        ("uncoalesced_global_load", "void at::native::reduce_kernel<(int)512, float>", "contiguous", "cross_entropy"),
        ("narrow_loads", _SOFTMAX, "whatever the layout", "Pass contiguous"),
        ("local_memory", _FLASH, "fits its registers", "head dimension is above 128"),
        ("local_memory", f"{_FLASH}, (bool)0, (bool)1, (bool)0, (bool)0, (bool)1>", "without dropout", "Leave out"),
        (
            "local_memory",
            f"{_FLASH}, (bool)1, (bool)1, (bool)0, (bool)0, (bool)1>",
            "Leave out biases and dropout",
            "without dropout",
        ),
        (
            "local_memory",
            f"{_FLASH}, (bool)0, (bool)1, (bool)0, (bool)1, (bool)1>",
            "Leave out biases and dropout",
            "without dropout",
        ),
        ("shared_traffic", _FLASH, "tuned for", "tiles differ"),
        ("instruction_issue", _SOFTMAX, "whatever the layout", "contiguous"),
        ("instruction_issue", _VECTORIZED.format("c10::BFloat16"), "vectorised already", "contiguous"),
        (
            "instruction_issue",
            "at::native::elementwise_kernel<128, 4, at::native::AddFunctor<float>>",
            "contiguous",
            "already",
        ),
        ("dram_headroom", _VECTORIZED.format("at::native::FillFunctor<float>"), "only writes", "loads"),
        ("uncoalesced_global_access", "my_kernel", "stage a tile through shared memory", "asynchronous"),
        ("scattered_accesses", "my_kernel", "staged through shared memory", "asynchronous"),
        ("uncoalesced_global_access", "ampere_sgemm_128x64_nn", "leading dimension", "stage"),
    ],
)
def test_advice_asks_for_nothing_that_the_name_says_is_so(finding: str, name: str, says: str, leaves_out: str) -> None:
    assert says in advice(finding, name)
    assert leaves_out not in advice(finding, name)


@pytest.mark.parametrize(
    ("finding", "family", "quantities", "says", "leaves_out"),
    [
        ("small_grid", "user", {"scheduler.l1_busy_frac": 0.82}, "without smaller tiles", "(smaller tiles"),
        ("small_grid", "user", {"scheduler.l1_busy_frac": 0.78}, "(smaller tiles", "without smaller tiles"),
        ("small_grid", "cutlass", {"scheduler.l1_busy_frac": 0.82}, "Use split-K", "Choose smaller tiles"),
        ("dram_headroom", "user", {"access.async_copy_frac": 0.52}, "asynchronous copies already", "up to 16 bytes"),
        ("dram_headroom", "user", {"access.async_copy_frac": 0.48}, "up to 16 bytes", "already"),
        (
            "dram_headroom", "user", {"access.loads_by_code": 3.1, "occupancy.achieved_frac": 0.62},
            "many warps are in flight already", "of up to 16 bytes",
        ),
        (
            "dram_headroom", "user", {"access.loads_by_code": 2.9, "occupancy.achieved_frac": 0.62},
            "of up to 16 bytes", "already",
        ),
        (
            "dram_headroom", "user", {"access.loads_by_code": 3.1, "occupancy.achieved_frac": 0.58},
            "of up to 16 bytes", "already",
        ),
        (
            "dram_headroom", "user", {"access.load_sectors_per_request": 15.5, "access.load_bytes_per_sector": 30},
            "16 bytes wide already", "of up to 16 bytes",
        ),
        (
            "dram_headroom", "user", {"access.load_sectors_per_request": 32, "access.load_bytes_per_sector": 4},
            "of up to 16 bytes", "already",
        ),
        (
            "dram_headroom", "user", {"access.load_sectors_per_request": 14.5, "access.load_bytes_per_sector": 30},
            "of up to 16 bytes", "already",
        ),
    ],
)  # fmt: skip
def test_advice_asks_for_nothing_that_is_counted_already(
    finding: str, family: str, quantities: dict[str, float], says: str, leaves_out: str
) -> None:
    advice = RULES.findings[finding].advice.text(family, "kernel", quantities=quantities)
    assert says in advice
    assert leaves_out not in advice


@pytest.mark.parametrize(
    ("name", "has_narrower"),
    [
        ("nvjet_sm90_qqtst_320x128_128x3_1x2_h_bz_coopA_NNT", False),
        ("nvjet_qrtst_128x128_128x4_TNN", False),
        ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x64", False),
        ("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopA_NNT", True),
        ("ampere_sgemm_128x64_nn", True),
    ],
)
def test_a_product_of_8_bit_floats_is_not_told_of_8_bits(name: str, has_narrower: bool) -> None:
    advice = RULES.findings["arithmetic_roof"].advice.text("cublas", name)
    assert ("8 bits for 16" in advice) == has_narrower
    assert ("has 8 bits already" in advice) != has_narrower


def test_a_variant_of_a_parent_stands_before_what_helps_whatever_the_finding() -> None:
    advice = Advice({"user": "Unroll"}, (Variant("pytorch", "Fuse it", "nll_"), Variant("pytorch", "Leave it", "loss")))
    assert advice.text("pytorch_fixed_grid", _NLL) == "Fuse it"
    assert advice.text("pytorch_fixed_grid", "mse_loss") == "Leave it"
    assert advice.text("user", _NLL) == "Unroll"


@pytest.mark.parametrize("family", ["cublas", "cublas_gemv", "cudnn", "flash_attention", "pytorch"])
def test_callers_are_not_told_what_blocks_should_do(family: str) -> None:
    for finding, rule in RULES.findings.items():
        assert not rule.advice.text(family).startswith("Give each block"), finding


def test_no_kernel_is_told_to_be_done() -> None:
    texts = [text for finding in RULES.findings.values() for _, text in finding.advice.texts()]
    assert not [text for text in texts if "it is done" in text or "nothing else makes it faster" in text]


def test_the_pipe_that_multiplies_integers_is_no_evidence_of_fp32_work() -> None:
    assert "utilisation.fp32" not in RULES.findings["random_numbers"].evidence
