"""Projections against recordings: products in several types on one GPU, fused kernels, and the suite on two GPUs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import ncuroof
from ncuroof.whatif import Target, busy_times, change, fuse, parse_change, parse_target, project
from tests.whatif.recorded_pairs import Pair, launches, pairs, table

PAGE = Path(__file__).parents[2] / "docs" / "whatif.md"
FOLDER = Path(__file__).parents[2] / "fixtures" / "h100-80gb-hbm3"
TOLERANCE = 0.05
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("recordings")]  # one process reads them
TYPES = {"tf32": 1, "bf16": 2, "fp16": 3, "fp8": 4}
"""Launches of the library's kernels with wgmma. FP32 (FFMA) and INT8 (mma.sync) were computed with other instructions."""


@pytest.fixture(scope="module")
def recorded():
    return ncuroof.read([FOLDER / "gemm_fp32_8192-to-gemm_int8_8192.full.ncu-repz"]).analyse()


@pytest.mark.parametrize(("was", "becomes"), list(itertools.permutations(TYPES, 2)))
def test_a_product_in_a_different_type_takes_as_long_as_recorded_in_it(recorded, was: str, becomes: str) -> None:
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


def test_a_product_scales_with_the_tensor_cores_of_a_different_generation(recorded) -> None:
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


@pytest.fixture(scope="module")
def both_ways() -> tuple[list[Pair], list[Pair]]:
    h100, h200 = launches("h100-80gb-hbm3", "h200-sxm"), launches("h200", "h100-sxm")
    return pairs(h100, h200), pairs(h200, h100)


def test_the_documentation_says_how_near_projections_between_two_recorded_gpus_came(both_ways) -> None:
    to, back = both_ways
    assert len(to) == len(back) == 131
    assert "\n".join(table(to, back)) in PAGE.read_text(encoding="utf-8")


def test_a_dram_bound_kernel_takes_a_time_within_the_projected_range(both_ways) -> None:
    # With all that L2 does as its need, growing with its slices, 7 of 47 and 21 of 40 were inside.
    for each, least in zip(both_ways, (44, 38), strict=True):
        assert sum(pair.is_inside for pair in each if pair.here.kind == "DRAM") >= least


def test_a_copy_on_a_different_gpu_is_as_much_faster_as_its_dram(both_ways) -> None:
    (copy,) = (
        pair for pair in both_ways[0] if pair.here.name.startswith("void copy_values<float>") and pair.took_ns < 5e5
    )
    assert copy.took_ns == 496_576
    assert copy.here.there_ns[0] == pytest.approx(copy.took_ns, rel=0.01)


def test_a_copy_takes_as_long_at_a_different_sm_clock() -> None:
    # On an H200 L2 keeps its clock, and DRAM of course: the SMs wait for it at 1.6 GHz as at 1.98.
    run = ncuroof.read(FOLDER.parent / "h200" / "copy_4-to-l2_thrashing.full.ncu-repz").analyse()
    ids = run.kernels.filter(short_name="copy_values")["id"]
    found = run.whatif("same@1.6GHz")
    for row in found.filter(found["id"].is_in(ids.implode())).iter_rows(named=True):
        recorded = run.kernels.filter(id=row["id"])["duration_ns"].item()
        assert (row["duration_ns"], row["least_ns"]) == pytest.approx((recorded, recorded))
        assert row["limiter"] == "dram"
