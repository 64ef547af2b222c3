"""Names that compilers number, templates whose arguments say what they compute, hashes: which kernels are the same all the same."""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest

from ncuroof.comparison import How, Sureness, compare, judge, parse_gate
from ncuroof.comparison.comparison import run_obstacle
from ncuroof.comparison.matching import match
from ncuroof.comparison.pairing import pairs_of_same_problem
from ncuroof.comparison.signatures import numbered, renamed, variant
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.sentences.comparison import how_matched
from tests.comparison.runs import launch, run


def generated(name: str, gflop: float | None, instructions: float | None = None, **changes: Any) -> dict[str, Any]:
    """Return a launch of a name without parameters, as compilers write them."""
    flop = None if gflop is None else 1e9 * gflop
    counted = {"work.fp32.flop": flop, "instructions.warp_executed": instructions}
    return launch(name, **counted | changes) | {"name": name}


TRITON = "triton_poi_fused_add_{}".format
XLA = ("input_reduce_fusion", "input_reduce_fusion_1", "input_reduce_fusion_2").__getitem__


@pytest.mark.parametrize(
    "name", [TRITON, XLA, "loop_fusion_{}".format, "void f<g(int)::[lambda(int) (instance {})]>(T1)".format]
)
def test_a_renumbered_kernel_is_matched_by_its_work(name: Any) -> None:
    # the first of three went, and the others are numbered anew
    before = run(*[generated(name(number), gflop) for number, gflop in enumerate((1, 2, 5))])
    after = run(*[generated(name(number), gflop) for number, gflop in enumerate((2, 5))])
    found = match(before, after)
    assert [(each.before, each.after, each.how, each.sureness) for each in found.matches] == [
        ((1,), (0,), How.RENAMED, Sureness.LIKELY),
        ((2,), (1,), How.RENAMED, Sureness.LIKELY),
    ]
    assert (found.removed, found.added) == ((0,), ())


@pytest.mark.parametrize("instructions", [1e6, 1.009e6])
def test_an_equal_number_with_equal_work_is_the_same(instructions: float) -> None:
    before, after = (run(generated(TRITON(3), 1, each), generated(TRITON(4), 1, each)) for each in (1e6, instructions))
    assert {(each.before == each.after, each.how, each.sureness) for each in match(before, after).matches} == {
        (True, How.SAME, Sureness.CERTAIN)
    }


def test_instructions_decide_between_kernels_of_equal_flops() -> None:
    before = run(
        *[generated(TRITON(number), 1, instructions) for number, instructions in enumerate((1e6, 1.2e6, 1.4e6))]
    )
    after = run(*[generated(TRITON(number), 1, instructions) for number, instructions in enumerate((1.2e6, 1.4e6))])
    found = match(before, after)
    assert [(each.before, each.after) for each in found.matches] == [((1,), (0,)), ((2,), (1,))]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((1, 2), (2, 4), [(0, 0, Sureness.LIKELY), (1, 1, Sureness.LIKELY)]),  # the batch was doubled
        ((1,), (1.5,), [(0, 0, Sureness.LIKELY)]),  # one of the name on either side
        ((1, 4), (1.5,), [(0, 0, Sureness.GUESS)]),  # either, with other work
        ((None, None), (None, None), [(0, 0, Sureness.LIKELY), (1, 1, Sureness.LIKELY)]),
        ((None, None), (None,), [(0, 0, Sureness.GUESS)]),
    ],
)
def test_numbered_kernels_of_other_or_unknown_work(
    before: tuple[float | None, ...], after: tuple[float | None, ...], expected: list[tuple[int, int, Sureness]]
) -> None:
    no_bytes = {"traffic_bytes.dram": None}
    sides = [
        run(*[generated(TRITON(number), gflop, **no_bytes) for number, gflop in enumerate(side)])
        for side in (before, after)
    ]
    found = match(*sides).matches
    assert [(each.before[0], each.after[0], each.sureness) for each in found] == expected
    assert {each.how for each in found} == {How.SAME}  # by name and shape, however little the number says


@pytest.mark.parametrize(
    ("changes", "how", "words"),
    [
        ({}, "same", "same name and shape"),
        ({"nvtx": ["backward"]}, "moved", "same name and shape, other NVTX range"),
        ({"grid": [64, 1, 1]}, "shape", "same name"),
        ({"name": TRITON(4)}, "renamed", "renamed kernel"),
    ],
)
def test_a_kernel_with_an_unchanged_number_is_not_called_renumbered(
    changes: dict[str, Any], how: str, words: str
) -> None:
    comparison = compare(run(generated(TRITON(3), 1)), run(generated(TRITON(3), 1.5) | changes))
    (entry,) = comparison_document(comparison)["matches"]
    assert (entry["how"], entry["sureness"]) == (how, "likely")
    assert how_matched(entry).startswith(f"{words} (likely)")


def test_very_different_work_under_the_same_number_does_not_fail_a_gate() -> None:
    # in its place may stand any other, with another grid
    sides = [
        run(launch("a"), generated(TRITON(3), n, grid=[n, 1, 1], **{"traffic_bytes.dram": 1e6 * n})) for n in (1, 64)
    ]
    comparison = compare(*sides)
    assert {(each.match.how, each.match.sureness) for each in comparison.deltas} == {
        (How.SAME, Sureness.CERTAIN),
        (How.SHAPE, Sureness.GUESS),
    }
    (found,) = judge([parse_gate("kernel(.*).time:+5%")], comparison)
    assert (found.has_passed, found.reasons) == (
        True,
        ("1 kernel within the limit, 1 matched only by a guess, so not judged",),
    )


LINES = [
    "__omp_offloading_fd02_3231c15__Z3foov_l{}".format,  # Clang
    "__omp_offloading_fd02_3231c15__Z3foov_l{}_1".format,  # of two regions in a macro
    "nvkernel_main_F1L{}_2".format,  # NVIDIA's compilers, of OpenMP
    "nvkernel_add2s2_omp__F1L{}_25_".format,
    "foo_{}_gpu".format,  # of OpenACC and of `do concurrent`
    "foo_{}_gpu__red".format,
    "foo_$ck_L{}_2".format,  # Cray
    "foo_$ck_L{}_2_cce$noloop$form".format,
]


@pytest.mark.parametrize("name", LINES)
def test_a_source_line_in_a_name_counts_as_a_generated_number(name: Any) -> None:
    # 9 lines came before: what stands at line 40 now is what stood at line 31
    before = run(generated(name(31), 1), generated(name(40), 2))
    after = run(generated(name(40), 1), generated(name(49), 2))
    assert [(each.before, each.after, each.how, each.sureness) for each in match(before, after).matches] == [
        ((0,), (0,), How.RENAMED, Sureness.LIKELY),
        ((1,), (1,), How.RENAMED, Sureness.LIKELY),
    ]
    assert {each.how for each in match(before, before).matches} == {How.SAME}


def test_the_function_name_stays_when_its_source_line_is_removed() -> None:
    names = [line(31).replace("foo", function) for line in LINES for function in ("foo", "bar")]
    # Z3foov_l31 and Z3foov_l31_1 are one; add2s2_omp, main, foo_gpu and foo_gpu__red are others
    # Cray's variants of a kernel are two
    assert pl.DataFrame({"name": names}).select(renamed(pl.col("name"))).n_unique() == 2 + 2 + 2 + 2 + 2 + 2


@pytest.mark.parametrize("name", [*LINES, TRITON, "main$_omp_fn${}".format])
def test_without_counted_work_the_order_decides_before_a_changed_number(name: Any) -> None:
    # 31 is 40 now and 40 is 49: of 100 and 500 µs neither changed
    before, after = (
        run(*[generated(name(number), None, us=us) for number, us in zip(numbers, (100.0, 500.0), strict=True)])
        for numbers in ((31, 40), (40, 49))
    )
    comparison = compare(before, after)
    assert [(each.match.before, each.match.after, each.change_frac) for each in comparison.deltas] == [
        ((0,), (0,), 0.0),
        ((1,), (1,), 0.0),
    ]
    (found,) = judge([parse_gate("kernel(.*).time:+5%")], comparison)
    assert (found.has_passed, found.reasons) == (True, ("2 kernels within the limit",))
    reversed_order = run(generated(name(40), None, us=500.0), generated(name(31), None, us=100.0))
    assert [each.change_frac for each in compare(before, reversed_order).deltas] == [0.0, 0.0]  # no number moved


def test_gcc_renumbers_regions_when_one_is_removed() -> None:
    # the first of two is gone, and the second has its number
    before = run(generated("main$_omp_fn$0", 1), generated("main$_omp_fn$1", 5))
    found = match(before, run(generated("main$_omp_fn$0", 5)))
    assert [(each.before, each.after, each.how) for each in found.matches] == [((1,), (0,), How.RENAMED)]
    assert found.removed == (0,)


CCCL = [
    "void cub::{}::detail::reduce::DeviceReduceKernel<cub::{}::Policy, cuda::std::{}::plus<float>>(T1)".format(*each)
    for each in (
        ("CUB_200200_800_900_NS", "CUB_200200_800_900_NS", "__4"),
        ("CUB_200200___CUDA_ARCH_LIST___NS", "CUB_200200___CUDA_ARCH_LIST___NS", "__4"),
        ("CUB_300001_SM_900", "CUB_300001_SM_900", "__4"),
        ("_V_300304_SM_800_900_NVHPC", "_V_300304_SM_800_900_NVHPC", "__5"),
    )
] + [
    "void cub::detail::reduce::DeviceReduceKernel<cub::Policy, cuda::std::plus<float>>(T1)",
]


@pytest.mark.parametrize("after", CCCL[1:])
def test_version_and_architecture_namespaces_are_left_out_of_names(after: str) -> None:
    other = [name.replace("plus", "maximum") for name in (CCCL[0], after)]
    sides = [run(*[generated(each, 1) for each in names]) for names in ((CCCL[0], other[0]), (other[1], after))]
    comparison = compare(*sides)
    assert [
        (each.match.before, each.match.after, each.match.how, each.match.sureness) for each in comparison.deltas
    ] == [
        ((1,), (0,), How.SAME, Sureness.CERTAIN),
        ((0,), (1,), How.SAME, Sureness.CERTAIN),
    ]
    assert comparison.after.groups["name"].to_list() == [other[1], after]  # as recorded


def test_library_versions_do_not_tell_kernels_apart() -> None:
    sides = [run(launch("DeviceReduceKernel") | {"name": name}) for name in CCCL[:3:2]]
    assert [each.names for each in compare(*sides).deltas] == [("DeviceReduceKernel", "DeviceReduceKernel")]


def test_a_failed_launch_matches_across_versions_of_a_library() -> None:
    before, after = (launch("DeviceReduceKernel") | {"name": name} for name in CCCL[:3:2])
    comparison = compare(run(launch("a"), before), run(launch("a"), after | {"failed": True}))
    assert comparison.matching.removed == ()
    both = compare(*(run(launch("a"), each | {"failed": True}) for each in (before, after)))
    assert run_obstacle(both) is None


def test_a_failed_launch_is_found_by_its_recorded_name() -> None:
    name = CCCL[0]
    each = launch("DeviceReduceKernel") | {"name": name}
    after = run(launch("a"), each, each | {"failed": True})
    for gate in (
        "kernel(CUB_200200_800).time:+5%",
        "kernel(DeviceReduce).duration_ns>0",
        "kernel(CUB_2.*).duration_ns>0",
    ):
        (found,) = judge([parse_gate(gate)], compare(run(launch("a"), each, each), after))
        assert (found.has_passed, found.reasons) == (False, ("DeviceReduceKernel failed to profile",))
    (found,) = judge([parse_gate("kernel(CUB_2.*).time:+5%")], compare(after, after))
    assert found.reasons == ("1 kernel within the limit", "DeviceReduceKernel failed to profile in both runs")


def test_thousands_of_numbered_kernels_are_matched_at_once() -> None:
    rows = [{"n": n, "work.flop": 1e9 * (1 + n), "instructions.warp_executed": 1e6 * (1 + n % 7)} for n in range(6000)]
    begin = time.process_time()
    found = list(pairs_of_same_problem(rows, rows[:0:-1]))
    assert time.process_time() - begin < 2
    assert all(one["n"] == other["n"] for one, other in found)
    assert len(found) == 5999


@pytest.mark.parametrize(
    ("name", "is_numbered"),
    [
        ("triton_per_fused_native_layer_norm_12", True),
        ("triton_poi_fused_add_0_0d1d2d", True),
        ("triton_tem_fused_mm_3()", True),
        ("triton_rms_norm_2", False),  # a person's
        ("fusion_16", True),
        ("gemm_fusion_dot_265", True),
        ("wrapped_convert_3", True),
        ("image_fusion(float *)", False),
        ("void nvfuser_pointwise_f0_c1_r0_g2(Tensor<float>)", False),
        ("<unnamed>::nvfuser_pointwise_f0_c1_r0_g2(Tensor<float>)", True),
        ("julia_step_6928(CuDeviceArray<Int32, (int)1, (int)1>)", True),
        ("__myl_MulAdd_myl0_12", True),
        ("rmsnorm_v2(float *)", False),
        ("gemm_64_gpu(float *)", False),
        ("main$_omp_fn$12", True),
        ("MAIN__._omp_fn.0()", True),
        ("void launch<__nv_dl_wrapper_t<__nv_dl_tag<void (*)(int), &run, (unsigned int)2>>>(T1)", True),
        ("void at::native::copy<at::native::copy(at::Tensor &)::[lambda() (instance 2)]>(T1)", False),  # a type's
    ],
)
def test_names_that_a_compiler_numbers(name: str, *, is_numbered: bool) -> None:
    assert pl.DataFrame({"name": [name]}).select(numbered(pl.col("name"))).item() is is_numbered


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("compute_forces_b3e2f1a9_cuda_kernel_forward", "compute_forces_10ad3344_cuda_kernel_forward"),
        (f"__myl_MulAdd_myl0_12_0x{'0a' * 16}", f"__myl_MulAdd_myl0_9_0x{'b7' * 16}"),
        ("__omp_offloading_fd02_3231c15__Z3foov_l2", "__omp_offloading_10303_4e2ec6__Z3foov_l7"),
        ("nvfuser_pointwise_f0_c1_r0_g2(Tensor<float>)", "nvfuser_pointwise_f3_c1_r0_g0(Tensor<float>)"),
        ("input_reduce_fusion", "input_reduce_fusion__2"),
    ],
)
def test_hashes_and_file_paths_are_left_out_of_names(old: str, new: str) -> None:
    assert pl.DataFrame({"name": [old, new]}).select(renamed(pl.col("name"))).n_unique() == 1


def test_forward_and_backward_are_two_kernels() -> None:
    names = [f"compute_forces_b3e2f1a9_cuda_kernel_{way}" for way in ("forward", "backward")]
    assert pl.DataFrame({"name": names}).select(renamed(pl.col("name"))).n_unique() == 2


WRAPPERS = [
    "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<{}, Kokkos::RangePolicy<Kokkos::Cuda>>>(T1)",
    "void RAJA::policy::cuda::impl::forallp_cuda_kernel<RAJA::cuda_exec<(int)256>, {}>(T2)",
    "void RAJA::launch_global_fcn<{}>(T1)",
    "void amrex::launch_global<(int)256, {}>(T2)",
    "void alpaka::detail::gpuKernel<{}, alpaka::ApiCudaRt>(T1)",
    "void mfem::CuKernel1D<{}>(int, T1)",
    "void cub::detail::for_each::static_kernel<cub::policy_hub::policy_500, long, {}>(T2, T3)",
    "void cub::detail::transform::transform_kernel<cub::policy_hub<(int)2>, int, {}>(T2, T3)",
    "void cub::DeviceSelectSweepKernel<cub::Policy, {}>(T1)",
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<{}, Eigen::GpuDevice>, int>(T1, T2)",
    "void k_bin_bcast<&(app::{}(float, float)), float, float, float>(const float *)",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_argument_of_a_wrapper_says_what_it_computes(wrapper: str) -> None:
    names = [wrapper.format(each) for each in ("PairForce", "CommPack")]
    assert pl.DataFrame({"name": names}).select(variant(pl.col("name"))).n_unique() == 2
    found = match(*(run(generated(name, gflop)) for name, gflop in zip(names, (1, 2), strict=True)))
    assert (found.matches, found.removed, found.added) == ((), (0,), (0,))


@pytest.mark.parametrize(
    ("old", "new", "gflop", "sureness"),
    [
        ("Force", "Pack", 2.0, Sureness.GUESS),  # a template that nobody knows: what it is given may be what it does
        ("Force", "Pack", 1.05, Sureness.LIKELY),  # a policy, with the same work
        ("(int)64", "(int)128", 2.0, Sureness.LIKELY),
        ("float", "cutlass::half_t", 2.0, Sureness.LIKELY),
    ],
)
def test_different_template_types_with_different_work_match_by_a_guess(
    old: str, new: str, gflop: float, sureness: Sureness
) -> None:
    before, after = (run(generated(f"void ns::for_all<{each}>(T1)", work)) for each, work in ((old, 1.0), (new, gflop)))
    assert [(each.how, each.sureness) for each in match(before, after).matches] == [(How.VARIANT, sureness)]
