"""Tensor work from counters whose values are chosen by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.metrics import measure
from tests.support.raw import raw_report

CLOCK_HZ = 1.5e9
CLOCKS = {"smsp__cycles_elapsed.avg.per_second": CLOCK_HZ, "sm__cycles_elapsed.avg.per_second": CLOCK_HZ}
INSTRUCTIONS = {
    "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": 2.0,
    "gpu__time_duration.sum": 1000.0,
    **CLOCKS,
}
PREFIX = "sm__ops_path_tensor_"


def chip(capability: int) -> dict[str, float]:
    major, minor = divmod(capability, 10)
    return {
        "device__attribute_compute_capability_major": float(major),
        "device__attribute_compute_capability_minor": float(minor),
    }


def tensor(name: str, per_cycle: float, peak: float) -> dict[str, float]:
    counter = f"{PREFIX}{name}.sum"
    return {f"{counter}.per_cycle_elapsed": per_cycle, f"{counter}.peak_sustained": peak}


def work_of(*kernels: dict[str, float], names: list[str] | None = None) -> list[dict[str, dict[str, Any]]]:
    """Return, per kernel, its work by precision."""
    rows = measure([raw_report(*kernels, names=names)]).work.to_dicts()
    return [{row["precision"]: row for row in rows if row["id"] == number} for number in range(len(kernels))]


def test_tensor_aggregate_is_never_added_to_its_parts() -> None:
    (work,) = work_of(
        {
            **tensor("op_hgmma_src_bf16_dst_fp32_sparsity_off", 300.0, 4096.0),
            **tensor("op_hmma_src_bf16_dst_fp32_sparsity_off", 0.0, 2730.0),
            **tensor("op_hgmma_src_bf16_dst_fp32_sparsity_on", 0.0, 8192.0),
            **tensor("src_bf16_dst_fp32", 300.0, 8192.0),
            "gpu__time_duration.sum": 1000.0,
            **CLOCKS,
        }
    )
    assert work["tensor_bf16"]["flop_per_s"] == pytest.approx(300 * CLOCK_HZ)
    assert work["tensor_bf16"]["peak_flop_per_s"] == pytest.approx(4096 * CLOCK_HZ)
    assert work["tensor_bf16_sparse"]["flop_per_s"] == 0.0


@pytest.mark.parametrize(
    ("in_fp16", "in_fp32", "accumulates_in"),
    [(300.0, 0.0, "fp16"), (0.0, 300.0, "fp32"), (100.0, 200.0, "fp32"), (150.0, 150.0, None), (0.0, 0.0, None)],
)
def test_most_of_the_work_tells_what_it_adds_up_in(in_fp16: float, in_fp32: float, accumulates_in: str | None) -> None:
    counted = {
        **tensor("op_hmma_src_fp16_dst_fp16_sparsity_off", in_fp16, 1024.0),
        **tensor("op_hmma_src_fp16_dst_fp32_sparsity_off", in_fp32, 512.0),
        **tensor("op_imma_src_int8_sparsity_off", 30.0, 2048.0),
        "gpu__time_duration.sum": 1000.0,
        **CLOCKS,
    }
    (work,) = work_of(counted)
    assert work["tensor_fp16"]["accumulates_in"] == accumulates_in
    assert work["tensor_int8"]["accumulates_in"] is None


def test_bare_instruction_names_are_sums_over_sparsity_and_their_realtime_twins_are_nothing_new() -> None:
    (work,) = work_of(
        {
            **tensor("op_hmma_src_bf16_dst_fp32", 30.0, 2048.0),
            **tensor("op_hmma_src_bf16_dst_fp32_sparsity_off", 10.0, 1024.0),
            **tensor("op_hmma_src_bf16_dst_fp32_sparsity_on", 20.0, 2048.0),
            **tensor("op_hmma_src_bf16_dst_fp32_sparsity_off_realtime", 10.0, 1024.0),
            **CLOCKS,
        }
    )
    assert work["tensor_bf16"]["flop_per_s"] == pytest.approx(10 * CLOCK_HZ)
    assert work["tensor_bf16_sparse"]["flop_per_s"] == pytest.approx(20 * CLOCK_HZ)


def test_a_name_without_accumulator_is_the_sum_over_accumulators() -> None:
    (work,) = work_of(
        {
            **tensor("op_hmma_src_fp16", 30.0, 5461.0),
            **tensor("op_hmma_src_fp16_dst_fp16_sparsity_off", 10.0, 2730.0),
            **tensor("op_hmma_src_fp16_dst_fp32_sparsity_off", 20.0, 2730.0),
            **CLOCKS,
        }
    )
    assert work["tensor_fp16"]["flop_per_s"] == pytest.approx(30 * CLOCK_HZ)
    assert work["tensor_fp16"]["peak_flop_per_s"] == pytest.approx(2730 * CLOCK_HZ)


def test_instructions_without_sparsity_count_by_themselves() -> None:
    (work,) = work_of({**tensor("op_bmma_src_int1", 5.0, 43690.0), **tensor("src_int1", 5.0, 65536.0), **CLOCKS})
    assert work["tensor_int1"]["flop_per_s"] == pytest.approx(5 * CLOCK_HZ)


def test_tensor_ceiling_is_that_of_the_path_which_did_the_work() -> None:
    (work,) = work_of(
        {
            **tensor("op_hgmma_src_fp16_sparsity_off", 0.0, 4096.0),
            **tensor("op_hmma_src_fp16_dst_fp32_sparsity_off", 1000.0, 2730.67),
            **CLOCKS,
        }
    )
    assert work["tensor_fp16"]["peak_flop_per_s"] == pytest.approx(2730.67 * CLOCK_HZ)
    assert work["tensor_fp16"]["fastest_peak_flop_per_s"] == pytest.approx(4096 * CLOCK_HZ)


def test_the_ceiling_of_a_mix_of_paths_is_its_work_over_the_time_at_their_peaks() -> None:
    (work,) = work_of(
        {
            **tensor("src_fp16_dst_fp16_sparsity_off", 512.0, 1024.0),
            **tensor("src_fp16_dst_fp32_sparsity_off", 128.0, 512.0),
            **CLOCKS,
        }
    )
    # 512/1024 + 128/512 = 0.75 of every cycle; (512 + 128) / 0.75 = 853.3 per cycle
    assert work["tensor_fp16"]["flop_per_s"] == pytest.approx(640 * CLOCK_HZ)
    assert work["tensor_fp16"]["peak_flop_per_s"] == pytest.approx(640 / 0.75 * CLOCK_HZ)
    assert work["tensor_fp16"]["frac"] == pytest.approx(0.75)


def test_a_bare_name_has_the_sparse_peak_where_there_is_sparsity() -> None:
    counters = {**tensor("src_int8", 100.0, 2048.0), **CLOCKS}
    ampere, turing = work_of({**counters, **chip(86)}, {**counters, **chip(75)})
    assert ampere["tensor_int8"]["peak_flop_per_s"] == pytest.approx(1024 * CLOCK_HZ)
    assert turing["tensor_int8"]["peak_flop_per_s"] == pytest.approx(2048 * CLOCK_HZ)


def test_chips_whose_names_split_differently_are_each_read_by_their_own() -> None:
    hopper = {**tensor("op_hgmma_src_fp16_sparsity_off", 7.0, 4096.0), **tensor("src_fp16", 7.0, 8192.0), **chip(90)}
    ada = {**tensor("src_fp16_dst_fp32_sparsity_off", 3.0, 512.0), **chip(89)}
    first, second = work_of({**hopper, **CLOCKS}, {**ada, **CLOCKS})
    assert first["tensor_fp16"]["flop_per_s"] == pytest.approx(7 * CLOCK_HZ)
    assert second["tensor_fp16"]["flop_per_s"] == pytest.approx(3 * CLOCK_HZ)
    assert second["tensor_fp16"]["definition"] == f"{PREFIX}src_fp16_dst_fp32_sparsity_off"


def test_types_that_nobody_knows_yet_are_labelled_by_their_name() -> None:
    (work,) = work_of(
        {
            **tensor("op_xmma_src_mxfp5_dst_fp32_sparsity_off", 9.0, 512.0),
            **tensor("strange", 1.0, 64.0),
            **CLOCKS,
        }
    )
    assert work["tensor_mxfp5"]["flop_per_s"] == pytest.approx(9 * CLOCK_HZ)
    assert work["tensor_mxfp5"]["reliable"]
    assert work["tensor_unknown"]["definition"] == f"{PREFIX}strange"
    assert not work["tensor_unknown"]["reliable"]


def test_paths_that_do_not_add_up_to_their_sum_are_told() -> None:
    def split_error(whole: float) -> float | None:
        counters = {
            **tensor("op_hgmma_src_bf16_dst_fp32_sparsity_off", 60.0, 4096.0),
            **tensor("op_hmma_src_bf16_dst_fp32_sparsity_on", 30.0, 5461.0),
            **tensor("src_bf16_dst_fp32", whole, 8192.0),
            **CLOCKS,
        }
        return measure([raw_report(counters)]).kernels["check.tensor_split_frac"][0]

    # 60 + 30 = 90
    assert split_error(90.0) == pytest.approx(0.0)
    assert split_error(100.0) == pytest.approx(0.1)
    assert split_error(0.0) is None


@pytest.mark.parametrize(
    ("capability", "name", "precision", "factor"),
    [
        (70, "my_wmma", "tensor_fp16", 512),
        (70, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "tensor_fp16", 512),
        (70, "volta_h884gemm_128x64_ldg8_nn", "tensor_fp16", 1024),
        (75, "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nt", "tensor_fp16", 2048),
        (80, "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", "tensor_fp16", 4096),
        (80, "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "tensor_bf16", 4096),
        (86, "cutlass_80_tensorop_s1688tf32gemm_128x128_nn", "tensor_tf32", 2048),
        (86, "cutlass_80_tensorop_i16832gemm_s8_128x128", "tensor_int8", 8192),
    ],
)
def test_tensor_instructions_are_worth_what_their_shape_says(
    capability: int, name: str, precision: str, factor: int
) -> None:
    (work,) = work_of({**INSTRUCTIONS, **chip(capability)}, names=[name])
    assert work[precision]["flop_per_s"] == pytest.approx(factor * 2 * CLOCK_HZ)
    assert not work[precision]["reliable"]
    assert list(work) == [precision]


def test_tensor_instructions_of_unknown_shape_are_worth_nothing() -> None:
    assert work_of({**INSTRUCTIONS, **chip(80)}, names=["my_wmma"]) == [{}]


def test_counted_operations_replace_tensor_instructions() -> None:
    counters = {**INSTRUCTIONS, **tensor("src_fp16_dst_fp16", 7.0, 1024.0), **chip(70)}
    (work,) = work_of(counters)
    assert (work["tensor_fp16"]["flop_per_s"], work["tensor_fp16"]["reliable"]) == (7 * CLOCK_HZ, True)
