"""Kernels that compute nothing: recognised by PyTorch's and Inductor's names, and what leaving them out gives back."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from tests.diagnosis.test_findings import found, listed, row_for

RULES = load_rules()
KINDS = {"type_conversion", "layout_copy", "fill"}
ONE, LAMBDA = "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::", "[lambda(float) (instance 1)]"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        # as ncu writes them: PyTorch 2.11, and lambdas as CUPTI writes them
        ("void at::native::vectorized_elementwise_kernel<(int)8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)::"
         f"{LAMBDA}, std::array<char *, (unsigned long)2>>(int, T2, T3)", "type_conversion"),
        ("void at::native::elementwise_kernel<128, 4, void at::native::gpu_kernel_impl_nocast<at::native::float16_copy_kernel_cuda("
         "at::TensorIteratorBase&)::{lambda(float)#1}>(at::TensorIteratorBase&, …)>(int, …)", "type_conversion"),
        (f"void at::native::unrolled_elementwise_kernel<{ONE}{LAMBDA}, std::array<char *, 2ul>, 4, TrivialOffsetCalculator<1>, "
         "at::native::memory::LoadWithCast<(int)1>, at::native::memory::StoreWithCast<(int)1>>(int, T1)", "type_conversion"),
        (f"void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl<{ONE}{LAMBDA}>(int)>(int, T3)",
         "type_conversion"),
        (f"void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<{ONE}{LAMBDA}>(int)>(int)",
         "layout_copy"),
        ("void at::native::<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned int)2>, unsigned int>",
         "layout_copy"),
        ("void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)", "fill"),
        ("triton_poi_fused__to_copy_3", "type_conversion"),
        ("triton_poi_fused_clone_1", "layout_copy"),
        ("triton_poi_fused_zeros_0", "fill"),
        # what computes besides
        ("triton_poi_fused__to_copy_add_3", None),
        ("triton_poi_fused_clone_mul_1", None),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char *, 3>>(int)", None),
        ("copy_values(const float4 *, float4 *)", None),
    ],
)  # fmt: skip
def test_what_computes_nothing_is_told_by_its_name(name: str, kind: str | None) -> None:
    found_kinds: set[str] = set()
    for each in KINDS:
        found_kinds |= KINDS & set(found(row_for(RULES.findings[each]).with_columns(name=pl.lit(name))))
    assert found_kinds == ({kind} if kind else set())


def test_leaving_out_gives_back_the_launch_even_where_its_sms_work_half_the_time_and_comes_first() -> None:
    conversion = RULES.findings["type_conversion"]
    frame = row_for(conversion, **{"scheduler.working_frac": 0.5, "roofline.min_time_frac": 0.9})
    waits = frame.with_columns(
        verdict=pl.lit("latency"), limiter=pl.lit("long_scoreboard"), **{"stalls.long_scoreboard": pl.lit(0.8)}
    )
    rows = listed(waits)
    first = rows.row(0, named=True)
    assert (first["finding"], first["gain_ns"], first["is_most_worth"]) == ("type_conversion", 1e6, True)
