"""Sums of a projection: launches that stand for others count for them, and the longest launch tells of its kernel."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.present.documents.projection import projection_document
from ncuroof.present.texts.projection import to_markdown, to_text
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target, project
from tests.whatif.launches import launch, table

H100 = profile_by_name("h100-sxm")


def document(
    *launches: dict[str, Any], changes: tuple[str, ...] = (), only: str | None = None, to: str = "a100-sxm-80gb"
) -> dict[str, Any]:
    busy = table(*launches)
    projection = project(busy, {0: H100}, [Target(profile_by_name(to))])
    return projection_document(busy, projection, sources=["run.ncu-rep"], changes=changes, only=only)


def test_launches_that_stand_for_others_count_for_them() -> None:
    found = document(launch("a", n_represented=24.0, weight=20.0), launch("b"))
    (total,) = found["targets"]
    assert (total["n_launches"], total["recorded_ns"]) == (25, pytest.approx(21e5))
    by_name = {kernel["short_name"]: kernel for kernel in found["kernels"]}
    assert (by_name["a"]["n_launches"], by_name["a"]["recorded_ns"]) == (24, pytest.approx(20e5))
    # both scale alike, so the sums do
    one = by_name["b"]["projections"][0]["duration_ns"]
    assert total["duration_ns"] == pytest.approx(21 * one)


def test_the_longest_launch_tells_of_its_kernel() -> None:
    short = launch("a", duration_ns=1e4, dram=0.1, sm=0.9, reached_frac=0.9, limiter="sm", verdict="compute")
    (kernel,) = document(short, launch("a"))["kernels"]
    assert (kernel["id"], kernel["limiter"], kernel["verdict"]) == (1, "dram", "memory")


def test_kernels_cross_the_ridge_to_their_own_side() -> None:
    # BF16 tensor peaks 989 and 312 TFLOP/s, DRAM 3.35 and 2.039 TB/s: the ridge of an A100 lies at 153 / 295 = 0.52 of an H100's.
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    unknown = launch("a", duration_ns=9e5)
    crossing = launch("a", tensor=0.3, recorded_ridge_ratio=0.8, ridge_ratio=0.8, **types)
    found = document(unknown, crossing)
    (total,) = found["targets"]
    assert (total["n_crossing"], total["n_crossing_to_memory"]) == (1, 0)
    assert "on a100-sxm-80gb, these kernels cross the ridge to the compute side: 2 × a" in to_text(found)
    assert "to the memory side" not in to_text(found) + to_markdown(found)


def test_what_an_assumed_l2_limits_is_told() -> None:
    # of the B200's L2 no document states the bandwidth: it limits a, three launches, and not b
    found = document(launch("a", l2=0.8, n_represented=3.0, weight=3.0), launch("b"), to="b200")
    assert found["targets"][0]["n_limited_by_assumed_l2"] == 3
    counts = {each["short_name"]: each["projections"][0]["n_limited_by_assumed_l2"] for each in found["kernels"]}
    assert counts == {"a": 3, "b": 0}
    for written in (to_text(found), to_markdown(found)):
        assert "on b200, these kernels are limited by an assumed L2 bandwidth: 3 × a\n" in written
    assert "limited by an assumed L2" not in to_text(document(launch("a", dram=0.1, l2=0.8)))


def test_a_change_brings_its_own_assumption() -> None:
    assert not any("larger batch" in each for each in document(launch())["assumptions"])
    assert any("larger batch" in each for each in document(launch(), changes=("batch:4 for gemm",))["assumptions"])


def test_what_a_projection_rests_on_is_told_where_it_does() -> None:
    product = launch("a", l1=0.95, tensor=0.9, dram=0.1, tensor_precision="tensor_bf16", to_precision="tensor_bf16")
    product |= {"busy.operands": 9e4, "dominant_precision": "tensor_bf16"}
    vector = launch("b", dominant_precision="fp32")
    assert "(wgmma)" in " ".join(document(product, to="b200")["assumptions"])
    assert "(wgmma)" not in " ".join(document(product, to="h200-sxm")["assumptions"])
    assert "stay off them" in " ".join(document(vector, changes=("dtype:bf16",))["assumptions"])
    assert "stay off them" not in " ".join(document(product, changes=("dtype:fp8",))["assumptions"])
    for to in ("fp32", "tf32", "fp64"):  # not narrower
        assert "stay off them" not in " ".join(document(vector, changes=(f"dtype:{to}",))["assumptions"])
    for name, is_stated in (("^a", False), ("^b", True)):  # of the kernels that the change concerns
        assumptions = document(product, vector, changes=(f"dtype:fp16 for {name}",), only=name)["assumptions"]
        assert ("stay off them" in " ".join(assumptions)) is is_stated
    assert "one after the other" in " ".join(document(vector, changes=("fuse a,b",))["assumptions"])


def test_a_kernel_without_a_name_is_told_without_one() -> None:
    found = document(launch(short_name=None, n_represented=3.0) | {"name": None})
    assert "\n3 × (no name) " in to_text(found)
    assert "| `3 × (no name)` |" in to_markdown(found)
