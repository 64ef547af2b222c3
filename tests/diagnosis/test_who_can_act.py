"""Whom an advice is for: functors, comparators, decoding, doubles, random numbers, and what heads a kernel's findings."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ncuroof.metrics.families import families_of
from ncuroof.reading import Reports
from tests.support.by_hand import chip
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
MEMORY, COMPUTE = f"gpu__compute_memory_throughput{PCT}", f"sm__throughput{PCT}"

OWN_FUNCTORS = [
    "void thrust::THRUST_200300_89_NS::cuda_cub::core::_kernel_agent<thrust::THRUST_200300_89_NS::cuda_cub::__parallel_for::"
    "ParallelForAgent<thrust::THRUST_200300_89_NS::cuda_cub::for_each_f<thrust::THRUST_200300_89_NS::counting_iterator<int>, "
    "thrust::THRUST_200300_89_NS::detail::wrapped_function<Collide, void>>, long>, long>(T2, T3)",
    "void cub::CUB_200400_86_NS::DeviceForEachKernel<cub::CUB_200400_86_NS::policy_hub, long, Step>(T2, T3)",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::"
    "__transform::unary_transform_f<float*, float*, thrust::cuda_cub::__transform::no_stencil_tag, Gamma, "
    "thrust::cuda_cub::__transform::always_true_predicate>, long>, long>(T2, T3)",
    "void cub::CUB_300000_NS::detail::transform::transform_kernel<Policy900, int, Blend, float *, float *>(T2, T3)",
    "void cub::DeviceReduceKernel<cub::Policy600, thrust::cuda_cub::transform_input_iterator_t<float, float*, Norm>, int, "
    "float>(T2, T3)",
    "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<Advect, Kokkos::RangePolicy<Kokkos::Cuda>, "
    "Kokkos::Cuda>>(T1)",
    "void RAJA::policy::cuda::impl::forallp_cuda_kernel<RAJA::cuda_exec<256>, Daxpy>(T2)",
    "typeinfo name for MatrixAdd",
    "void amrex::launch_global<256, ParallelForLambda>(T2)",
    "void at::native::vectorized_elementwise_kernel<4, my_ext::fused_gelu(at::Tensor)::{lambda(float)#1}, "
    "at::detail::Array<char *, 2>>(int, T2, T3)",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<my_ext::Clamp<float>>("
    "at::TensorIteratorBase &, const T1 &)::{lambda(int)#1}>(int, T3)",
]

LIBRARIES_OWN = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char *, 3>>"
    "(int, T2, T3)": "pytorch",
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda("
    "at::TensorIteratorBase &)::{lambda(float)#1}>(at::TensorIteratorBase &, const T1 &)::{lambda(int)#1}>(int, T3)": "pytorch",
    "void at::native::vectorized_elementwise_kernel<4, at::native::<unnamed>::launch_clamp_scalar(at::TensorIteratorBase &)::"
    "{lambda()#1}, at::detail::Array<char *, 2>>(int, T2, T3)": "pytorch",
    "void at::native::unrolled_elementwise_kernel<c10::Foo, at::detail::Array<char *, 2>>(int, T2, T3)": "pytorch",
    "void cub::DeviceReduceKernel<cub::Policy600, float *, float *, int, cub::Sum>(T2, T3)": "cub",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::"
    "__transform::unary_transform_f<float*, float*, thrust::cuda_cub::__transform::no_stencil_tag, thrust::negate<float>, "
    "thrust::cuda_cub::__transform::always_true_predicate>, long>, long>(T2, T3)": "cub",
    "void cub::DeviceRadixSortOnesweepKernel<Policy, false, int>(T2)": "cub",
    "void cub::CUB_200200_NS::DeviceMergeSortBlockSortKernel<Policy, Item *, MyLess>(T2)": "merge_sort",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__merge_sort::MergeAgent<Item*, long, MyLess>>(T2)": "merge_sort",
    "void vllm::paged_attention_v2_kernel<unsigned short, unsigned char, 128, 16, 128>(float *)": "decode_attention",
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<true, 1, 2>(T1)": "decode_attention",
    "my_kernel(thrust::device_ptr<float>)": "user",
    "transform_kernel(float *)": "user",
}


def judged(name: str, counters: dict[str, float], capability: int = 80) -> dict[str, Any]:
    base = {**chip(capability), "gpu__time_duration.sum": 1e6, **counters}
    (kernel,) = Reports((raw_report(base, names=[name]),)).analyse().to_dict()["kernels"]
    return kernel


def test_a_program_s_own_functor_in_a_library_s_loop_is_the_program_s() -> None:
    assert families_of(pl.Series(OWN_FUNCTORS)).to_list() == ["functor"] * len(OWN_FUNCTORS)


def test_a_library_s_own_code_is_the_library_s() -> None:
    found = dict(zip(LIBRARIES_OWN, families_of(pl.Series(list(LIBRARIES_OWN))).to_list(), strict=True))
    assert found == LIBRARIES_OWN


@pytest.mark.parametrize("name", [OWN_FUNCTORS[0], OWN_FUNCTORS[5]])
def test_advice_for_a_functor_names_the_functor(name: str) -> None:
    small = judged(name, {MEMORY: 2.0, COMPUTE: 20.0, "launch__waves_per_multiprocessor": 0.3})
    assert "functor" in small["findings"][0]["advice"]
    assert "transform_reduce" not in str(small["findings"])
    busy = judged(name, {MEMORY: 7.0, COMPUTE: 80.0, f"sm__pipe_fp64_cycles_active{PCT}": 80.0}, 89)
    assert busy["findings"][0]["id"] == "fp64_on_slow_part"
    assert "literals without f" in busy["findings"][0]["advice"]


def test_a_sort_by_comparison_is_told_of_radix_sort_and_not_of_its_bits() -> None:
    name = "void cub::CUB_200200_NS::DeviceMergeSortMergeKernel<Policy, Item *, MyLess>(T2)"
    kernel = judged(name, {MEMORY: 80.0, COMPUTE: 30.0, f"gpu__dram_throughput{PCT}": 80.0})
    assert kernel["findings"]
    assert all("begin_bit" not in found["advice"] for found in kernel["findings"])
    assert any("radix sort" in found["advice"] for found in kernel["findings"])


@pytest.mark.parametrize(
    "name",
    [
        "void vllm::paged_attention_v1_kernel<unsigned short>(float *)",
        "paged_attention_kernel(float *)",
        "decode_attention_fwd(float *)",
    ],
)
def test_attention_of_a_decoding_step_is_no_matrix_product(name: str) -> None:
    counters = {MEMORY: 50.0, COMPUTE: 80.0, f"sm__pipe_fma_cycles_active{PCT}": 80.0}
    tensor = {f"sm__pipe_tensor_cycles_active{PCT}": 0.0, "device__attribute_display_name": "NVIDIA A100-SXM4-80GB"}
    ids = {found["id"] for found in judged(name, {**counters, **tensor})["findings"]}
    assert not any(each.startswith("idle_tensor_cores") for each in ids)
    of_a_prompt = judged("attention_kernel(float *)", {**counters, **tensor})["findings"]
    assert "idle_tensor_cores" in {found["id"] for found in of_a_prompt}


@pytest.mark.parametrize(("capability", "is_told"), [(80, True), (90, True), (86, False), (100, False)])
def test_a_product_of_doubles_keeps_its_type_on_fp64_tensor_cores(capability: int, is_told: bool) -> None:
    counters = {
        MEMORY: 40.0,
        COMPUTE: 85.0,
        f"sm__pipe_fp64_cycles_active{PCT}": 85.0,
        f"sm__pipe_fma_cycles_active{PCT}": 12.0,
        f"sm__pipe_tensor_cycles_active{PCT}": 0.0,
    }
    found = {each["id"]: each for each in judged("dgemm_tiled(double *)", counters, capability)["findings"]}
    assert ("idle_tensor_cores_of_doubles" in found) == is_told
    assert not found.keys() & {"idle_tensor_cores", "idle_tensor_cores_of_halves"}
    if is_told:
        assert 0 < found["idle_tensor_cores_of_doubles"]["gain_ns"] <= (1 - 0.85 / 2) * 1e6


def test_random_numbers_are_told_nothing_of_optimizers() -> None:
    name = (
        "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda::"
        "normal_and_transform<float, float, 4>(at::TensorIteratorBase &)::{lambda()#1}>(long)"
    )
    short = {"gpu__time_duration.sum": 3e3, "launch__waves_per_multiprocessor": 0.1, MEMORY: 5.0, COMPUTE: 5.0}
    kernel = judged(name, short)
    assert kernel["verdict"] == "overhead"
    assert "optimizer" not in kernel["findings"][0]["advice"]


def test_at_the_roof_the_roof_comes_before_what_saves_next_to_nothing() -> None:
    spills = {
        MEMORY: 96.0,
        COMPUTE: 20.0,
        f"gpu__dram_throughput{PCT}": 96.0,
        "sm__cycles_active.avg": 99.0,
        "sm__cycles_elapsed.max": 100.0,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 1e5,
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 1e5,
        "derived__local_spilling_requests_pct": 14.0,
    }
    kernel = judged("stencil(float *)", spills)
    ids = [found["id"] for found in kernel["findings"]]
    assert ids[0] == "dram_roof"
    assert "local_memory" in ids
    assert not any(found["is_most_worth"] for found in kernel["findings"] if found["id"] == "local_memory")
