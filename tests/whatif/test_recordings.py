"""Products of one size in several types, recorded on one GPU: each projected from another is as long as its own recording."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import ncuroof
from ncuroof.whatif import Target, busy_times, change, fuse, parse_change, parse_target, project

FOLDER = Path(__file__).parents[2] / "fixtures" / "h100-80gb-hbm3"
TOLERANCE = 0.05
TYPES = {"tf32": 1, "bf16": 2, "fp16": 3, "fp8": 4}
"""Launches of the library's kernels with wgmma. FP32 (FFMA) and INT8 (mma.sync) were computed with other instructions."""


@pytest.fixture(scope="module")
def recorded():
    return ncuroof.read([FOLDER / "gemm_fp32_8192-to-gemm_int8_8192.full.ncu-repz"]).analyse()


@pytest.mark.parametrize(("was", "becomes"), list(itertools.permutations(TYPES, 2)))
def test_a_product_in_another_type_takes_what_that_one_took(recorded, was: str, becomes: str) -> None:
    launches = {row["id"]: row for row in recorded.kernels.to_dicts()}
    judge = launches[TYPES[becomes]]
    assert judge["dominant_precision"] == f"tensor_{becomes}"
    profiles = recorded.roofline_tables.profiles
    busy = busy_times(recorded.kernels, recorded.roofline_tables.work)
    changed = change(busy, parse_change(f"dtype:{becomes}"), profiles=profiles)
    # under load the clock depends on the type (power): take the one that the judge ran at
    target = parse_target(f"same@{judge['sm_clock_hz'] / 1e6:.1f}MHz")
    found = project(changed, profiles, [target]).row(TYPES[was], named=True)
    assert found["duration_ns"] == pytest.approx(judge["duration_ns"], rel=TOLERANCE)


def test_a_product_goes_to_another_generation_with_its_tensor_cores(recorded) -> None:
    # BF16: 1.389 ms with the tensor pipe busy for 93.5 %. At as large a share of the B200's 2250 TFLOP/s, of the H100's 989 before,
    # it takes 0.611 ms; by shared memory alone, which wgmma reads as long as the pipe is busy, it would be 1.25.
    (found,) = recorded.whatif("b200").filter(id=TYPES["bf16"]).to_dicts()
    assert found["least_ns"] == pytest.approx(1.389e6 * 989 / 2250, rel=0.02)
    assert found["most_ns"] == pytest.approx(1.25e6, rel=0.01)
    assert found["are_operands_assumed"]
    # expected is what the next resource allows: an L2 that is taken to grow with SMs and clock
    assert (found["limiter"], found["is_limit_assumed"]) == ("l2", True)
    assert found["duration_ns"] < 0.8e6


def test_a_chain_of_arithmetic_and_a_copy_take_as_long_as_one() -> None:
    names = ("copy_16.full.ncu-repz", "fp32_chain.full.ncu-repz")
    both = ncuroof.read([FOLDER / name for name in names]).analyse()
    busy = busy_times(both.kernels, both.roofline_tables.work)
    (found,) = project(fuse(busy, "copy_values", "run_chains"), {}, [Target()]).to_dicts()
    # The chain reads next to nothing: 4.6 kB are saved of 1.29 ms.
    for time in ("duration_ns", "most_ns"):
        assert found[time] == pytest.approx(both.kernels["duration_ns"].sum(), rel=1e-3)
    assert found["least_ns"] < 0.6 * found["duration_ns"]


def test_two_cosines_as_one_kernel_take_what_the_compiled_kernel_takes() -> None:
    eager = ncuroof.read(FOLDER / "cos_cos_eager.full.ncu-repz").analyse()
    kernels = ncuroof.read(FOLDER / "adamw_fused-to-adamw_unfused.full.ncu-repz").analyse().kernels
    (compiled,) = kernels.filter(name="triton_poi_fused_cos_0")["duration_ns"]
    busy = busy_times(eager.kernels, eager.roofline_tables.work)
    (name,) = set(busy["short_name"])
    (found,) = project(fuse(busy, name, name), {}, [Target()]).to_dicts()
    assert found["duration_ns"] == pytest.approx(compiled, rel=0.02)
