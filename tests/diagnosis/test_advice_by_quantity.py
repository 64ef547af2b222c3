"""Advice that depends on what was measured, and what it must not say: numbers by hand, names as PyTorch writes them."""

from __future__ import annotations

import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.formatting import first_clause
from ncuroof.metrics.families import USER
from ncuroof.reading import Reports
from tests.support.raw import raw_report

FINDINGS = load_rules().findings


def test_threads_that_repeat_each_other_are_first_a_doubt_about_results() -> None:
    """A shared array of 32 elements, written by threadIdx.x, has no place for 1024; fewer threads are a faster wrong kernel."""
    advice = FINDINGS["alike_threads"].advice.text(USER)
    assert first_clause(advice).startswith("Compare the results with a reference, since")
    assert not {"32", "1024"} & set(first_clause(advice).split())
    (shorter,) = [sentence for sentence in advice.split(". ") if "(32 × 1, in the same grid)" in sentence]
    assert shorter.startswith("Only where all are right")
    (longer,) = [sentence for sentence in advice.split(". ") if "1024 × 1" in sentence]
    assert longer.startswith("Where results are wrong or missing")
    assert longer.endswith("if the code was written for them and its shared arrays have room for them")


_FILL = (
    "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, void at::native::templates::cuda::"
    "{}_and_transform<float, float, at::CUDAGeneratorImpl *, void at::native::templates::cuda::{}_kernel<at::CUDAGeneratorImpl *>("
)


@pytest.mark.parametrize(
    ("name", "is_tensor"),
    [
        (_FILL.format("uniform", "uniform"), True),  # torch.rand
        (_FILL.format("normal", "normal"), True),  # torch.randn
        (_FILL.format("uniform", "bernoulli"), False),  # of a dropout
        (_FILL.format("normal", "log_normal"), False),
        (
            "void at::native::<unnamed>::fused_dropout_kernel_vec<float, float, unsigned int, (int)1, (int)4, bool>(",
            False,
        ),
    ],
)
def test_a_tensor_of_random_numbers_is_not_told_to_drop_features(name: str, is_tensor: bool) -> None:
    advice = FINDINGS["random_numbers"].advice.text("pytorch", name)
    assert advice.startswith("Generate the tensor once") == is_tensor
    assert ("drop" in advice) != is_tensor


NARROW = {
    "launch.n_rows_per_warp": 2.0,
    "access.load_sectors_per_request": 3.4,
    "access.store_sectors_per_request": 4.0,
}
"""A filter whose blocks are 16 × 16: its loads touch six sectors for two rows of 16 floats, fewer at the edges."""


@pytest.mark.parametrize("finding", ["uncoalesced_global_load", "uncoalesced_global_access"])
@pytest.mark.parametrize(
    ("changed", "is_wide"),
    [
        ({}, True),
        ({"access.adjacent_loads_frac": 0.97}, True),  # a thread's next element is its neighbour's as well
        ({"launch.n_rows_per_warp": 4.0}, True),
        ({"launch.n_rows_per_warp": 8.0}, False),
        ({"launch.n_rows_per_warp": 1.0}, False),
        ({"launch.n_rows_per_warp": None}, False),
        ({"access.load_sectors_per_request": 6.0}, True),  # all rows misaligned
        ({"access.load_sectors_per_request": 6.6}, False),
        ({"access.load_sectors_per_request": 7.8, "access.adjacent_loads_frac": 0.5}, False),  # every other float
        ({"access.load_sectors_per_request": None}, False),
        ({"access.store_sectors_per_request": 32.0}, False),
        ({"access.store_sectors_per_request": None}, True),
    ],
)
def test_a_warp_that_spans_rows_is_made_to_lie_in_one(
    finding: str, changed: dict[str, float | None], is_wide: bool
) -> None:
    advice = FINDINGS[finding].advice.text(USER, quantities=NARROW | changed)
    assert advice.startswith("Make the block 32 threads wide") == is_wide


def test_a_row_off_the_edge_of_a_sector_takes_one_more() -> None:
    def sectors(n_bytes: int, start: int) -> int:
        return (start + n_bytes - 1) // 32 - start // 32 + 1

    assert (2 * sectors(64, 0), 2 * sectors(64, 4), sectors(128, 4)) == (4, 6, 5)
    advice = FINDINGS["uncoalesced_global_access"].advice.text(USER, quantities=NARROW)
    assert "two rows of 16 floats 6 sectors instead of 4, one row of 32 floats 5" in advice


def test_loads_are_kept_apart_by_an_early_exit() -> None:
    advice = FINDINGS["serial_loads"].advice.text(USER)
    assert "Where a loop can end early on a value, load several elements before the test" in advice
    assert "early" not in first_clause(advice)


@pytest.mark.parametrize(("n_loads", "is_smaller"), [(None, False), (1.9, False), (2.0, True), (2.6, True)])
def test_a_program_with_loads_in_flight_is_not_told_to_have_them(n_loads: float | None, is_smaller: bool) -> None:
    of_32_warps = {"launch.n_threads_per_block": 1024.0, "access.loads_by_code": n_loads}
    advice = FINDINGS["dram_headroom"].advice.text("triton", quantities=of_32_warps)
    assert advice.startswith("Use a smaller BLOCK_SIZE and fewer num_warps") == is_smaller
    assert ("has several loads in flight already" in advice) == is_smaller
    of_8_warps = of_32_warps | {"launch.n_threads_per_block": 256.0}
    assert "larger BLOCK_SIZE" in FINDINGS["dram_headroom"].advice.text("triton", quantities=of_8_warps)


@pytest.mark.parametrize(
    ("waves", "n_blocks", "verdict", "found"), [(0.0119, 1, "latency", ["small_grid"]), (1.19, 100, "unknown", [])]
)
def test_one_block_is_too_few_whatever_was_not_collected(
    waves: float, n_blocks: int, verdict: str, found: list[str]
) -> None:
    launch = {"launch__waves_per_multiprocessor": waves, "launch__grid_size": n_blocks, "launch__sm_count": 84}
    kernel = Reports((raw_report(launch),)).analyse().to_dict()["kernels"][0]
    assert kernel["verdict"] == verdict
    assert [finding["id"] for finding in kernel["findings"]] == found
    assert [finding["gain_ns"] for finding in kernel["findings"]] == [None] * len(found)


@pytest.mark.parametrize("finding", ["uncoalesced_global_access", "scattered_accesses"])
@pytest.mark.parametrize(("n_rows", "has_y"), [(None, True), (1.0, False), (8.0, True)])
def test_a_launch_in_one_dimension_has_no_y_to_exchange(finding: str, n_rows: float | None, has_y: bool) -> None:
    advice = FINDINGS[finding].advice.text("user", quantities={"launch.n_rows": n_rows})
    assert ("exchange the roles of x and y" in advice) is has_y
    assert "per field" in advice or "arrays of fields" in advice


@pytest.mark.parametrize(("stores", "is_wide"), [(None, True), (1.0, False), (8.0, True)])
def test_lanes_along_the_wrong_dimension_are_not_told_to_load_wider(stores: float | None, is_wide: bool) -> None:
    """One scattered store per thread: exchanging x and y brings loads and stores together, as no wider access does."""
    quantities = {"access.adjacent_loads_frac": 0.9, "access.scattered_stores_per_warp": stores}
    advice = FINDINGS["uncoalesced_global_access"].advice.text("user", quantities=quantities)
    assert advice.startswith("Load, and store, the neighbouring elements") is is_wide


_CLEARS = {"access.global_loads_by_code": 0, "access.l2_input_share": 0.8}


@pytest.mark.parametrize(
    ("changed", "is_clear"),
    [
        ({}, True),
        ({"access.global_loads_by_code": 1}, False),
        ({"access.global_loads_by_code": None}, False),  # a transpose has an input share of 0.94, too
        ({"access.l2_input_share": 0.79}, False),  # it reads a texture
    ],
)
def test_a_kernel_that_only_stores_is_not_told_of_loads_in_flight(
    changed: dict[str, float | None], is_clear: bool
) -> None:
    advice = FINDINGS["little_work_per_thread"].advice.text(USER, quantities=_CLEARS | changed)
    assert ("cudaMemsetAsync" in first_clause(advice)) == is_clear
    assert ("loads are then in flight" in advice) != is_clear


@pytest.mark.parametrize(
    ("name", "is_all"),
    [
        ("void cub::DeviceReduceKernel<cub::DeviceReducePolicy<int>>(T1)", False),
        ("void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<int>>(T1)", False),
        ("void cub::DeviceSegmentedReduceKernel<cub::DeviceReducePolicy<int>>(T1)", True),
        ("void cub::DeviceReduceByKeyKernel<cub::DeviceReduceByKeyPolicy<int>>(T1)", True),
    ],
)
@pytest.mark.parametrize("finding", ["small_grid", "tail_wave"])
def test_a_reduction_of_everything_is_no_loop_over_parts(finding: str, name: str, is_all: bool) -> None:
    advice = FINDINGS[finding].advice.text("cub", name)
    assert advice.startswith("Use one call over all data") == is_all
    assert ("transform_reduce" in advice) != is_all


@pytest.mark.parametrize(
    ("blocks_per_sm", "is_counted"), [(None, False), (0.5, False), (0.51, True), (3.9, True), (4.0, False)]
)
def test_blocks_of_half_the_size_are_no_cure_where_the_busiest_sm_gets_two(
    blocks_per_sm: float | None, is_counted: bool
) -> None:
    """64 tiles on 80 SMs: 128 half tiles leave 48 SMs with two of them, as much work as before."""
    advice = FINDINGS["small_grid"].advice.text(USER, quantities={"launch.blocks_per_sm": blocks_per_sm})
    assert (
        first_clause(advice).startswith("Launch at least as many blocks as there are SMs, in a multiple") == is_counted
    )
    assert ("smaller tiles" in first_clause(advice)) != is_counted


@pytest.mark.parametrize(("conversions", "is_integer"), [(None, False), (0.09, False), (0.1, True)])
def test_a_product_of_floats_is_not_told_of_8_bit_integers(conversions: float | None, is_integer: bool) -> None:
    quantities = {"arithmetic.conversions_per_multiply_add": conversions}
    assert ("__dp4a" in FINDINGS["idle_tensor_cores"].advice.text(USER, quantities=quantities)) == is_integer


@pytest.mark.parametrize(
    ("name", "shared_bytes", "start", "has_shuffles"),
    [
        ("matmul(float *)", 0.0, "Stage tiles of both operands in shared memory", False),
        ("matmul(float *)", 0.9, "Stage tiles of both operands in shared memory", False),
        ("matmul(float *)", 1.0, "Let each thread compute a larger, two-dimensional tile", True),
        ("matmul(float *)", None, "Have each thread produce several results", True),
        ("filter(float *)", 0.0, "Have each thread produce several results", True),
    ],
)
def test_a_product_is_told_what_its_loads_need(
    name: str, shared_bytes: float | None, start: str, has_shuffles: bool
) -> None:
    quantities = {"launch.own_shared_bytes_per_block": shared_bytes}
    advice = FINDINGS["lsu_instructions"].advice.text(USER, name, quantities=quantities)
    assert advice.startswith(start)
    assert ("shuffles" in advice) == has_shuffles
    assert ("constant memory" in advice) == advice.startswith("Have")
