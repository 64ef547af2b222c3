"""Products that add up in FP16: GeForce cards do so at twice the rate of FP32, others at the same. By hand from data sheets."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ncuroof.roofline import profile_by_name
from ncuroof.tables import WORK
from ncuroof.whatif import Target, change, parse_change, project
from ncuroof.whatif.unit_times import tensor_types
from tests.whatif.launches import launch, table

RTX_4090 = {0: profile_by_name("rtx-4090")}  # FP16 330.3 TFLOP/s adding up in FP16, 165.2 in FP32; FP8 660.6 and 330.3
IN_FP16 = dict.fromkeys(("tensor_precision", "to_precision"), "tensor_fp16_fp16_accumulate")
IN_FP32 = dict.fromkeys(("tensor_precision", "to_precision"), "tensor_fp16")


def product(types: dict[str, str], sm_count: float = 128.0) -> dict[str, Any]:
    """Return a launch of 100 µs with the tensor cores busy for 90 of it."""
    return launch(dram=0.1, sm=0.1, tensor=0.9, verdict="compute", dominant_precision="tensor_fp16", **types) | {
        "sm_count": sm_count,
        "n_blocks": sm_count * 16,
        "recorded_n_blocks": sm_count * 16,
        "n_resident_blocks": sm_count,
    }


@pytest.mark.parametrize(
    ("types", "target", "tflops_here", "tflops_there"),
    [
        (IN_FP16, "a100-sxm-80gb", 330.3, 312),
        (IN_FP16, "l40s", 330.3, 362.05),  # one rate on its sheet
        (IN_FP16, "rtx-5090", 330.3, 419),
        (IN_FP32, "a100-sxm-80gb", 165.2, 312),
        (IN_FP32, "rtx-5090", 165.2, 209.5),
    ],
)
def test_a_product_goes_by_the_rate_that_it_adds_up_at(types, target: str, tflops_here, tflops_there) -> None:
    (found,) = project(table(product(types)), RTX_4090, [Target(profile_by_name(target))]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 * tflops_here / tflops_there, rel=2e-3)


def test_a_product_of_one_rate_goes_to_the_rate_that_it_adds_up_at() -> None:
    here, there = {0: profile_by_name("a100-sxm-80gb")}, Target(profile_by_name("rtx-4090"))
    for types, tflops in ((IN_FP16, 330.3), (IN_FP32, 165.2)):
        (found,) = project(table(product(types, 108.0)), here, [there]).to_dicts()
        assert found["duration_ns"] == pytest.approx(1e5 * 312 / tflops, rel=1e-3)


def test_a_narrower_type_goes_on_adding_up_as_before() -> None:
    for types, dtype, factor in (
        (IN_FP16, "fp8", 330.3 / 660.6),
        (IN_FP32, "fp8", 165.2 / 330.3),
        (IN_FP16, "fp16", 1.0),
        (IN_FP16, "bf16", 330.3 / 165.2),  # adds up in FP32 alone
    ):
        busy = change(table(product(types)), parse_change(f"dtype:{dtype}"))
        (found,) = project(busy, RTX_4090, [Target()]).to_dicts()
        assert found["duration_ns"] == pytest.approx(1e5 * factor, rel=1e-3), dtype


def test_a_type_of_a_sheet_is_dense_and_names_only_accumulation_in_fp16() -> None:
    rows = [
        ("tensor_fp16", "fp16", "tensor_fp16_fp16_accumulate"),
        ("tensor_fp16_sparse", "fp16", "tensor_fp16_fp16_accumulate"),
        ("tensor_fp8", "fp16", "tensor_fp8_fp16_accumulate"),
        ("tensor_fp16", "fp32", "tensor_fp16"),
        ("tensor_fp16", None, "tensor_fp16"),
        ("tensor_bf16_sparse", "fp32", "tensor_bf16"),
    ]
    known = {"flop": 1.0, "flop_per_s": 1.0, "peak_flop_per_s": 2.0, "frac": 0.5, "reliable": True}
    work = [
        dict.fromkeys(WORK) | known | {"id": number, "precision": precision, "accumulates_in": adds_in}
        for number, (precision, adds_in, _) in enumerate(rows)
    ]
    found = tensor_types(pl.DataFrame(work, schema=WORK))["tensor_precision"].to_list()
    assert found == [expected for *_, expected in rows]
