"""Advice is for whoever can follow it: nobody edits the kernels of a library."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.finding import Advice
from ncuroof.formatting import first_clause
from ncuroof.metrics import families
from ncuroof.metrics.families import USER, families_of, lineage, load_families

FINDINGS = load_rules().findings
FAMILIES = load_families()
CLOSED = [name for name in FAMILIES if name not in {"triton", "functor"}]
"""Families whose kernels are called and not written by the user; of CUTLASS, template parameters alone are chosen."""

_CODE = re.compile(
    r"float[24]|half2|__\w+|threadIdx|blockIdx|shared array|tile\[|local arrays? with|-maxrregcount|-Xptxas|--fmad|unroll|"
    r"warp shuffle|(?:results|elements|bytes) per thread|cp\.async|ldmatrix|mma\.sync|exp2f|literals|grid-stride|inner loop"
)
"""Words that are of use to the author of a kernel alone."""

_THING_TO_DO = re.compile(
    r"(?i)(?:Accumulate|Allocate|Allow|Alternate|Ask|Balance|Batch|Break|Bring|Build|Call|Check|Choose|Coalesce|"
    r"Collect|Combine|Compare|Configure|Convert|Create|Do|Draw|Fill|Fuse|Generate|Give|Have|"
    r"Instantiate|Issue|Keep|Launch|Leave|Let|Load|Look|Lower|Make|Mend|Move|Multiply|Order|Overlap|Pad|Pass|"
    r"Process|Raise|Read|Reduce|Replay|Run|Scan|See|Send|Sort|Split|Spend|Spread|Stage|Store|Synchronise|Take|Try|Use|Wait|"
    r"Write)\b"
)
"""Imperatives that an advice may begin with; a new one is to be read before it is added."""

_TYPES = {"(?i)philox"}
"""Types of a library among the parameters of a kernel, which tell what code of one's own calls."""

_LONGEST_CLAUSE = 200
"""Letters of a first clause in a table; the longest that was found readable there."""

_PARALLELISM = re.compile(r"occupancy|larger tile|smaller tile|split-K|more blocks")


@pytest.mark.parametrize("family", CLOSED)
def test_advice_for_what_is_called_does_not_edit_kernels(family: str) -> None:
    for finding, rule in FINDINGS.items():
        assert not _CODE.search(rule.advice.text(family)), finding
        assert rule.advice.text(family) != rule.advice.text(USER), finding


def test_variants_are_of_families_that_are_called_and_do_not_edit_kernels() -> None:
    for finding in FINDINGS.values():
        for variant in finding.advice.variants:
            if not variant.all_of and variant.name not in _TYPES:  # a name tells nothing of code of one's own
                assert variant.family in CLOSED
            assert variant.family not in CLOSED or not _CODE.search(variant.advice)


@pytest.mark.parametrize(("tensor_frac", "words"), [(None, "one"), (0.00002, "one"), (0.04, "wmma")])
def test_tiles_of_tensor_products_are_padded_by_16_bytes(tensor_frac: float | None, words: str) -> None:
    """A pad of one element leaves load_matrix_sync a leading dimension that it does not take, and LDS.128 an address."""
    advice = FINDINGS["bank_conflicts"].advice.text(USER, quantities={"utilisation.tensor": tensor_frac})
    assert advice.startswith("Pad each row of the shared tiles by 16 bytes (8 half, 4 float)") == (words == "wmma")
    assert ("tile[32][33]" in first_clause(advice)) == (words == "one")


@pytest.mark.parametrize(("wide_frac", "is_padded"), [(None, True), (0.4, True), (0.5, False)])
def test_padding_is_not_the_first_cure_of_wide_accesses(wide_frac: float | None, is_padded: bool) -> None:
    """Lanes that read 16 bytes each, 32 bytes apart, meet at the same banks in every row, however long the rows are."""
    clause = first_clause(
        FINDINGS["bank_conflicts"].advice.text(USER, quantities={"access.wide_conflict_frac": wide_frac})
    )
    assert ("pad each row" in clause) == is_padded


def test_what_is_padded_stays_aligned() -> None:
    assert "16 bytes for float4, so that it stays aligned" in first_clause(FINDINGS["bank_conflicts"].advice.text(USER))


@pytest.mark.parametrize(("n_threads", "fewer"), [(None, False), (512.0, False), (1024.0, True)])
def test_no_program_of_triton_is_given_more_warps_than_a_block_can_have(n_threads: float | None, fewer: bool) -> None:
    advice = FINDINGS["dram_headroom"].advice.text("triton", quantities={"launch.n_threads_per_block": n_threads})
    assert ("fewer num_warps" in advice) == fewer
    assert ("more num_warps" in advice) != fewer


def test_more_warps_are_never_more_than_32() -> None:
    for finding, rule in FINDINGS.items():
        for more in re.findall(r"(?i)(?:raise|more) num_warps[^,;.]*", rule.advice.text("triton")):
            assert "(32 at most)" in more or finding == "dram_headroom", (finding, more)


def test_x_and_y_of_a_block_can_be_the_wrong_way_round() -> None:
    for finding in ("scattered_accesses", "uncoalesced_global_access"):
        assert "exchange the roles of x and y" in FINDINGS[finding].advice.text(USER)


def test_advice_for_communication_is_not_that_for_arithmetic() -> None:
    for finding, rule in FINDINGS.items():
        advice = rule.advice.text("nccl")
        assert not _PARALLELISM.search(advice), finding
        assert re.search("bytes|messages|bucket", advice), finding


@pytest.mark.parametrize(
    ("family", "foreign"),
    [
        ("cub", r"leading dimension|split-K|cuBLAS|cuDNN|channels_last|tensor core"),
        ("flash_attention", r"leading dimension|cuBLAS|channels_last|cuSPARSE"),
        ("pytorch", r"leading dimension|cuBLASLt|CUTLASS|the library"),
        ("cublas", r"channels_last|benchmark mode|head dimension"),
        ("cublas_gemv", r"channels_last|head dimension|split-K|larger tile|other tiles"),
        ("cudnn", r"leading dimension|head dimension|strided-batched"),
        ("triton", r"__\w+|threadIdx|warp shuffle|float4|CUTLASS"),
    ],
)
def test_advice_does_not_speak_of_another_family(family: str, foreign: str) -> None:
    for finding, rule in FINDINGS.items():
        assert not re.search(foreign, rule.advice.text(family)), finding


def _all_advices() -> list[tuple[str, str]]:
    of_findings = [
        (f"{finding.id}, {family}", text) for finding in FINDINGS.values() for family, text in finding.advice.texts()
    ]
    return of_findings + [(family.name, family.advice) for family in FAMILIES.values() if family.advice is not None]


def test_the_first_clause_of_an_advice_is_a_thing_to_do() -> None:
    for where, advice in _all_advices():
        clause = first_clause(advice)
        without_condition = re.sub(r"^Where (?:\([^)]*\)|[^,(])*, ", "", clause)
        assert _THING_TO_DO.match(without_condition), (where, clause)
        assert len(clause) <= _LONGEST_CLAUSE, (where, clause)


def test_advice_is_written_for_families_that_exist() -> None:
    for finding in FINDINGS.values():
        assert finding.advice.by_family.keys() <= {*FAMILIES, USER}, finding.id


def test_advice_falls_back_along_the_parents() -> None:
    rule = FINDINGS["stall_wait"]
    assert not {"cub", "library"} & rule.advice.by_family.keys()
    # Nobody has words of their own for it: what helps whatever the finding, and at last what helps the kernel's author.
    assert rule.advice.text("cub") == FAMILIES["cub"].advice
    assert rule.advice.text("library") == FAMILIES["library"].advice
    assert rule.advice.text("not a family") == rule.advice.by_family[USER]
    assert FINDINGS["remote_memory"].advice.text("triton") == FINDINGS["remote_memory"].advice.by_family[USER]


@pytest.mark.parametrize(
    ("finding", "start"),
    [
        ("debug_build", "Use a cuBLAS that was built with optimisation"),
        ("launch_overhead", "Use one strided-batched or grouped GEMM"),
        ("remote_memory", "Keep its operands in this GPU's memory"),
        ("cold_l2", "Check with --cache-control none whether the data is in L2"),
        ("small_grid", "Multiply several vectors in one call (a matrix product)"),  # its own, and not cuBLAS's
        (
            "stall_long_scoreboard",
            "Move fewer bytes (a narrower type, quantised weights)",
        ),  # cuBLAS has none, other libraries do
    ],
)
def test_a_matrix_vector_product_gets_what_a_finding_has_for_cublas(finding: str, start: str) -> None:
    assert FINDINGS[finding].advice.text("cublas_gemv").startswith(start)


def test_a_familys_parent_comes_before_the_author(monkeypatch: pytest.MonkeyPatch) -> None:
    advice = Advice({USER: "unroll", "library": "another tile"})
    silent = {name: replace(family, advice=None) for name, family in FAMILIES.items()}
    monkeypatch.setattr(families, "load_families", lambda: silent)
    assert advice.text("cublas") == "another tile"
    assert advice.text("triton") == "unroll"


def test_every_family_that_is_called_has_an_advice_for_all_findings() -> None:
    for name in CLOSED:
        assert any(family.advice for family in lineage(name)), name


@pytest.mark.parametrize("finding", ["unnamed_pipe", "l1_or_shared"])
@pytest.mark.parametrize("family", ["cublas", "cutlass", "cudnn", "library"])
def test_what_to_collect_is_the_same_for_all_libraries(finding: str, family: str) -> None:
    assert FINDINGS[finding].advice.asks_to_collect
    assert FINDINGS[finding].advice.text(family) == FINDINGS[finding].advice.by_family["library"]


_WITHOUT_BATCH = ["tail_wave", "launch_overhead", "stall_long_scoreboard"]


@pytest.mark.parametrize(
    ("finding", "family"),
    [
        ("small_grid", "pytorch_fixed_grid"),
        ("grid_of_parameters", "pytorch_optimizer"),
        *((finding, family) for finding in _WITHOUT_BATCH for family in ("pytorch_fixed_grid", "pytorch_optimizer")),
    ],
)
def test_nobody_is_sent_to_a_larger_batch_or_a_fused_variant_in_vain(finding: str, family: str) -> None:
    assert re.match(
        r"Fuse it with|Overlap it|Replay the step|Use contiguous parameters", FINDINGS[finding].advice.text(family)
    )
    assert not re.search(r"foreach|[Uu]se a larger batch", FINDINGS[finding].advice.text(family))


@pytest.mark.parametrize("finding", ["stall_bulk_copies", "dram_headroom", "l2_traffic", "stall_wait"])
def test_a_product_is_not_told_to_take_the_type_that_it_may_have_already(finding: str) -> None:
    assert not re.search(r"TF32|16-bit|FP8|faster compute type", FINDINGS[finding].advice.text("cublas"))


@pytest.mark.parametrize("family", ["cublas", "cutlass", "library", "pytorch"])
def test_a_full_pipe_is_told_of_a_narrower_type_than_its_own_alone(family: str) -> None:
    assert "a narrower type than its own" in FINDINGS["arithmetic_roof"].advice.text(family)


_FOREACH = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, "
    "at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, 1, 1, 0>, std::multiplies<float>, float>(T1, T2)"
)

NAMED = {
    "grid_of_parameters": [_FOREACH, _FOREACH.replace("BinaryOpScalar", "FusedAdamMath")],
    "attention_in_parts": [
        "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 10>",
        "triton_per_fused_softmax_0",
    ],
    "pointwise_chain": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float>>(int)",
        _FOREACH,
    ],
    "unfused_pointwise": [
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float>>>"
    ],
    "softmax_of_attention": ["void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>"],
    "two_stage_mainloop": [
        "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaPipelined<"
    ],
    "idle_tensor_cores": ["void cutlass::Kernel<cutlass_simt_sgemm_128x128_8x2_nn_align1>", "ampere_sgemm_128x64_tn"],
    "idle_tensor_cores_of_halves": ["volta_sgemm_128x64_nn", "sgemm_tiled(const float *, const float *, float *)"],
    "idle_tensor_cores_of_doubles": ["ampere_dgemm_64x64_nn", "dgemm_tiled(const double *, const double *, double *)"],
    "convolution_without_tensor_cores": ["void conv2d_grouped_direct_kernel<float>"],
    "random_numbers": ["void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>"],
    "inlined_generator": ["void monte_carlo_euro<Call>(float, float *, curandStateXORWOW *)"],
    "generator_setup": ["void generate_seed_pseudo<rng_config<curandStateXORWOW>>(curandStateXORWOW*)"],
    "type_conversion": [
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(LoadWithCast<1>)"
    ],
    "layout_copy": ["void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>", "triton_poi_fused_cat_0"],
    "nothing_multiplied": [
        "gemm(float *, float *, float *, int, int, int)",
        "void sgemm_naive<(int)32>(const float *)",
    ],
    "remote_transfer": [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData *)",
    ],
    "fill": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
        "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<int>, int>, unsigned long>>",
        "void cub::CUB_200800_900_NS::detail::for_each::static_kernel<cub::policy, long, "
        "thrust::THRUST_200800_900_NS::cuda_cub::__fill::functor<int *, int>>",
    ],
}
"""Findings that speak of some names alone, and names that they mean."""


def test_names_are_known_of_all_findings_that_speak_of_some_alone() -> None:
    assert NAMED.keys() == {finding.id for finding in FINDINGS.values() if finding.name_pattern is not None}


@pytest.mark.parametrize(("finding", "name"), [(finding, name) for finding, names in NAMED.items() for name in names])
def test_what_is_said_of_some_names_is_said_to_their_family(finding: str, name: str) -> None:
    rule = FINDINGS[finding]
    assert rule.name_pattern is not None
    assert re.search(rule.name_pattern, name)
    (family,) = families_of(pl.Series([name]))
    assert rule.advice.text(family, name) in {
        text for _, text in rule.advice.texts()
    }  # and not what the family gets for anything


@pytest.mark.parametrize("finding", ["small_grid", "tail_wave", "stall_wait"])
def test_two_products_in_one_kernel_are_not_told_to_split_k(finding: str) -> None:
    name = "void cutlass::Kernel<cutlass::gemm::kernel::B2bGemm<cutlass::gemm::threadblock::B2bMmaPipelined<"
    (family,) = families_of(pl.Series([name]))
    fused, alone = (
        FINDINGS[finding].advice.text(family, each) for each in (name, "void cutlass::Kernel<cutlass::gemm")
    )
    assert fused != alone
    assert "unfused" in fused
    assert not re.search("(?i)split-K|stream-K", fused)


def test_attention_over_equal_sequences_is_not_told_to_sort_them() -> None:
    # Causal tiles of one sequence are unequal; what evens them out is more of them on each SM.
    advice = FINDINGS["sm_imbalance"].advice.text("flash_attention")
    assert "more tiles" in first_clause(advice)
    assert "length" not in first_clause(advice)
