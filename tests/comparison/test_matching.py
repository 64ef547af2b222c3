"""Matching survives what happens to programs between two runs; who belongs to whom is known by construction."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from ncuroof.comparison import How, Run, Sureness, compare
from ncuroof.comparison.matching import match
from ncuroof.comparison.pairing import pairs
from ncuroof.comparison.signatures import renamed, variant
from tests.comparison.runs import launch, run


def matched(before: Run, after: Run) -> list[tuple[list[str], list[str], str]]:
    """Return short names before and after, and by what they were matched."""
    names = [side.groups["short_name"].to_list() for side in (before, after)]
    return [
        ([names[0][group] for group in found.before], [names[1][group] for group in found.after], found.how.value)
        for found in match(before, after).matches
    ]


def test_equal_runs_match_one_by_one_whatever_their_order() -> None:
    launches = [launch(name) for name in "abcde"]
    shuffled = random.Random(1).sample(launches, 5)
    found = match(run(*launches), run(*shuffled))
    assert {each.how for each in found.matches} == {How.SAME}
    assert {each.sureness for each in found.matches} == {Sureness.CERTAIN}
    assert (found.added, found.removed) == ((), ())


def test_launches_of_one_name_and_shape_are_one_group() -> None:
    before, after = run(*[launch("a")] * 3, launch("b")), run(*[launch("a")] * 5, launch("b"))
    assert matched(before, after) == [(["a"], ["a"], "same"), (["b"], ["b"], "same")]
    (delta, _) = compare(before, after).deltas
    assert delta.n_launches == (3, 5)
    assert delta.change_frac == pytest.approx(0)


def test_a_different_shape_of_the_same_kernel_is_found() -> None:
    before, after = run(launch("a"), launch("b")), run(launch("a", grid=[264, 1, 1]), launch("b"))
    assert matched(before, after) == [(["a"], ["a"], "shape"), (["b"], ["b"], "same")]


def test_the_same_shape_goes_before_the_same_order() -> None:
    small, large = launch("a", 10), launch("a", 80, grid=[1056, 1, 1])
    assert [names[:2] for names in matched(run(small, large), run(large, small))] == [(["a"], ["a"])] * 2
    assert [delta.change_frac for delta in compare(run(small, large), run(large, small)).deltas] == [0, 0]


def dense(us: float, flop: float | None, grid: int, **changes: Any) -> dict[str, Any]:
    return launch("dense", us, **{"grid": [grid, 1, 1], "work.fp32.flop": flop} | changes)


@pytest.mark.parametrize("counted", ["work.fp32.flop", "instructions.warp_executed"])
def test_different_shapes_of_one_kernel_are_matched_by_their_work(counted: str) -> None:
    # layers of 614 and 2 Mflop; other tiles take twice the blocks, launched in the other order
    def layer(us: float, work: float, grid: int) -> dict[str, Any]:
        return dense(us, None, grid, **{counted: work})

    before = run(layer(417.0, 614e6, 128), layer(17.0, 2e6, 32))
    after = run(layer(17.0, 2.1e6, 64), layer(417.0, 614e6, 256))
    found = match(before, after)
    assert [(each.before, each.after, each.how) for each in found.matches] == [
        ((1,), (0,), How.SHAPE),
        ((0,), (1,), How.SHAPE),
    ]
    assert [delta.change_frac for delta in compare(before, after).deltas] == [0, 0]
    alone = match(before, run(layer(34.0, 2.1e6, 64)))
    assert [(each.before, each.sureness) for each in alone.matches] == [((1,), Sureness.LIKELY)]
    assert alone.removed == (0,)


@pytest.mark.parametrize(
    ("flop", "n_launches", "sureness"),
    [
        (2.9e9, 1, Sureness.LIKELY),  # a better or worse algorithm
        (3.1e9, 1, Sureness.GUESS),
        (0.34e9, 1, Sureness.LIKELY),
        (0.32e9, 1, Sureness.GUESS),
        (0.25e9, 4, Sureness.LIKELY),  # the same work in four launches
        (None, 1, Sureness.LIKELY),
    ],
)
def test_a_different_shape_with_very_different_work_is_a_guess(
    flop: float | None, n_launches: int, sureness: Sureness
) -> None:
    bytes_of = {"traffic_bytes.dram": None}
    found = match(run(dense(100.0, 1e9, 132, **bytes_of)), run(*[dense(100.0, flop, 264, **bytes_of)] * n_launches))
    assert [(each.how, each.sureness) for each in found.matches] == [(How.SHAPE, sureness)]


@pytest.mark.parametrize(
    ("before", "after", "sureness"),
    [
        # flops, instructions, DRAM bytes: loads of four elements in place of one
        ((0.0, 4e6, 1e8), (0.0, 1e6, 1e8), Sureness.LIKELY),
        ((0.0, 1e6, 1e8), (0.0, 338e6, 0.9e8), Sureness.LIKELY),  # one warp does what many did
        ((64.0, 1e6, None), (512.0, 1e6, None), Sureness.LIKELY),  # addresses are computed otherwise
        ((0.0, 4e6, 4e8), (0.0, 1e6, 1e8), Sureness.GUESS),  # a quarter of the input
        ((1e9, 4e6, 4e8), (1e9, 1e6, 1e8), Sureness.LIKELY),
        ((0.0, None, 4e8), (0.0, None, 1e8), Sureness.LIKELY),  # caches keep more of it, perhaps
    ],
)
def test_work_is_very_different_if_nothing_suggests_the_same_input(
    before: tuple[float | None, ...], after: tuple[float | None, ...], sureness: Sureness
) -> None:
    names = ("work.fp32.flop", "instructions.warp_executed", "traffic_bytes.dram")
    sides = [
        run(launch("a", grid=[grid, 1, 1], **dict(zip(names, amounts, strict=True))))
        for grid, amounts in ((132, before), (264, after))
    ]
    assert [(each.how, each.sureness) for each in match(*sides).matches] == [(How.SHAPE, sureness)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # the batch was doubled: 2 Gflop before are 4 after, not the 2 Gflop of what was 1
        ((1, 2, 4, 8), (2, 4, 8, 16), [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ((1, 2, 4, 8), (2.1, 3.9, 8, 16), [(0, 0), (1, 1), (2, 2), (3, 3)]),  # 2.1 / 1.95 = 1.08
        ((1, 2), (2, 1), [(0, 1), (1, 0)]),  # the other order, not twice and half of the work
        ((1, 8, 3), (8.05, 7.5, 1), [(0, 2), (1, 0), (2, 1)]),
        ((1.05, 1), (1,), [(1, 0)]),  # the nearest first
        ((1, 1.09, 1.18), (1.09, 1.18, 1), [(0, 2), (1, 0), (2, 1)]),
        ((1, 1.4), (1.2,), [(0, 0)]),  # neither to 10 %: the first
        ((5, 5, 5), (5, 5), [(0, 0), (1, 1)]),
        ((3, 5, 5, 5), (5, 5, 7), [(0, 2), (1, 0), (2, 1)]),
    ],
)
def test_shapes_of_the_same_work_are_matched(
    before: tuple[float, ...], after: tuple[float, ...], expected: list[tuple[int, int]]
) -> None:
    sides = [
        run(*[dense(100.0, 1e9 * gflop, first + number) for number, gflop in enumerate(side)])
        for first, side in ((100, before), (200, after))
    ]
    assert sorted((each.before[0], each.after[0]) for each in match(*sides).matches) == expected


def test_the_nearest_are_paired_first_as_by_trying_all() -> None:
    draw = random.Random(3)
    for _ in range(200):
        before, after = ([draw.uniform(1, 1.3) for _ in range(draw.randint(1, 7))] for _ in "ab")
        if len(before) == len(after):
            after.append(draw.uniform(1, 1.3))
        left = [(number, flop) for number, flop in enumerate(before)]
        right = [(number, flop) for number, flop in enumerate(after)]
        expected = []
        while left and right:
            ratio, one, other = min((max(x[1] / y[1], y[1] / x[1]), x, y) for x in left for y in right)
            if ratio > 1.1:
                break
            left.remove(one)
            right.remove(other)
            expected.append((one[0], other[0]))
        expected += [(one[0], other[0]) for one, other in zip(left, right, strict=False)]
        rows = [
            [{"n": n, "work.flop": flop, "instructions.warp_executed": None} for n, flop in enumerate(side)]
            for side in (before, after)
        ]
        assert [(one["n"], other["n"]) for one, other in pairs(*rows)] == expected


@pytest.mark.parametrize("works", [range(1, 6001), [1] * 6000])
def test_thousands_of_shapes_of_one_kernel_are_matched_at_once(works: Sequence[int]) -> None:
    rows = [{"n": n, "work.flop": 1e9 * work, "instructions.warp_executed": None} for n, work in enumerate(works)]
    begin = time.process_time()
    found = list(pairs(rows, [*reversed(rows), rows[0]]))
    assert time.process_time() - begin < 1  # some 0.1 s; all with all takes a minute
    assert len(found) == 6000


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("triton_poi_fused_add_mul_7", "triton_poi_fused_add_mul_12", "renamed"),
        ("_rms_norm_fwd_0d1d2de", "_rms_norm_fwd_0d1d2d3", "renamed"),
        ("rmsnorm_v1", "rmsnorm_v2", "renamed"),
        ("kernel_3f9ac01b7d", "kernel_77be012fa9", "renamed"),
        ("gemm<128, 64, 8>", "gemm<256, 128, 16>", "variant"),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn", "cutlass_80_simt_sgemm_256x128_8x4_nn", "variant"),
    ],
)
def test_generated_names_are_split_from_their_numbers(old: str, new: str, how: str) -> None:
    assert matched(run(launch("first"), launch(old)), run(launch("first"), launch(new)))[1][2] == how


def test_different_kernels_are_not_one_after_their_numbers_are_gone() -> None:
    names = pl.DataFrame({"name": ["softmax_fwd", "softmax_bwd", "dgemm", "sgemm", "a_b", "a_c"]})
    for signature in (renamed, variant):
        assert names.select(signature(pl.col("name"))).n_unique() == 6


@pytest.mark.parametrize("namespace", ["<unnamed>", "(anonymous namespace)", "_GLOBAL__N__3f9ac01b_9_norm_cu"])
def test_kernels_of_an_unnamed_namespace_are_told_apart(namespace: str) -> None:
    names = [f"void at::native::{namespace}::{name}<float, 4>" for name in ("softmax", "layer_norm")]
    table = pl.DataFrame({"name": [f"{name}(int, T1 *)" for name in names]})
    assert table.select(variant(pl.col("name")))["name"].to_list() == ["at::native::softmax", "at::native::layer_norm"]


ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<{}, at::native::{}, std::array<char*, 3ul>>(int, T2, T3)"


@pytest.mark.parametrize(
    ("old", "new", "are_one"),
    [
        ((4, "CUDAFunctor_add<float>"), (8, "CUDAFunctor_add<c10::BFloat16>"), True),  # another width and type
        ((4, "CUDAFunctor_add<float>"), (4, "MulFunctor<float>"), False),
        ((4, "GeluCUDAKernelImpl(T1&)::{lambda()#1}"), (4, "silu_kernel(T1&)::{lambda()#1}"), False),
    ],
)
def test_the_functor_of_a_generic_template_tells_kernels_apart(
    old: tuple[int, str], new: tuple[int, str], are_one: bool
) -> None:
    names = [ELEMENTWISE.format(*each) for each in (old, new)]
    assert (pl.DataFrame({"name": names}).select(variant(pl.col("name"))).n_unique() == 1) == are_one
    found = [how for _, _, how in matched(run(launch(names[0])), run(launch(names[1])))]
    assert ("variant" in found) == are_one


def test_several_kernels_that_became_one_are_a_fusion() -> None:
    before = run(launch("first"), launch("add"), launch("mul"), launch("gelu"), launch("last"))
    after = run(launch("first"), launch("fused_add_mul_gelu", **{"work.fp32.flop": 3e9}), launch("last"))
    assert matched(before, after)[1] == (["add", "mul", "gelu"], ["fused_add_mul_gelu"], "fused")
    # 300 µs before, 100 µs after
    assert compare(before, after).deltas[1].change_frac == pytest.approx(-2 / 3)


def test_one_kernel_that_became_several_is_a_split() -> None:
    before = run(launch("first"), launch("norm", **{"work.fp32.flop": 2e9}), launch("last"))
    after = run(launch("first"), launch("statistics"), launch("apply"), launch("last"))
    assert matched(before, after)[1] == (["norm"], ["statistics", "apply"], "split")


def test_a_rewritten_kernel_is_matched_by_its_place_and_work() -> None:
    before, after = (
        run(launch("first"), launch("naive"), launch("last")),
        run(launch("first"), launch("tiled"), launch("last")),
    )
    assert matched(before, after)[1] == (["naive"], ["tiled"], "place")


def test_the_only_kernel_of_the_same_work_is_a_guess() -> None:
    heavy = {"work.fp32.flop": 7e9}
    before = run(launch("setup"), launch("sort", **heavy), launch("scan", **{"work.fp32.flop": 2e9}))
    after = run(launch("setup"), launch("merge", **heavy))
    assert matched(before, after)[1] == (["sort"], ["merge"], "place")
    found = match(before, after)
    assert (found.matches[1].sureness, found.removed) == (Sureness.GUESS, (2,))


def test_two_kernels_of_the_same_work_are_both_candidates_and_not_matched() -> None:
    heavy = {"work.fp32.flop": 7e9}
    before = run(launch("setup"), launch("sort", **heavy), launch("scan", **heavy))
    found = match(before, run(launch("setup"), launch("merge", **heavy)))
    assert ([each.how for each in found.matches], found.removed, found.added) == ([How.SAME], (1, 2), (1,))
    assert [(each.pair, each.why[1]) for each in found.candidates] == [
        ("sort=merge", "the same FLOPs per launch"),
        ("scan=merge", "the same FLOPs per launch"),
    ]


def test_one_kernel_each_that_is_launched_as_often_is_a_guess() -> None:
    unknown = {"work.fp32.flop": None, "traffic_bytes.dram": None}
    before, after = run(*[launch("sgemm", **unknown)] * 11), run(*[launch("ours", **unknown)] * 11)
    found = match(before, after)
    assert [(each.how, each.sureness) for each in found.matches] == [(How.PLACE, Sureness.GUESS)]
    assert match(before, run(*[launch("ours", **unknown)] * 7)).matches == ()


@pytest.mark.parametrize(
    ("name", "is_matched"),
    [
        ("void transpose_padded<32>(const float *, float *)", True),
        ("ours::transposePadded(const float4 *, float4 *, int)", True),
        ("copy_padded(const float *, float *)", False),
        ("transposed(const float *, float *)", False),
    ],
)
def test_versions_differ_by_words_for_how(name: str, *, is_matched: bool) -> None:
    # without FLOPs; the padding removes a sixth of the DRAM bytes
    naive = launch("naive", **{"work.fp32.flop": None, "traffic_bytes.dram": 6e8})
    before = run(naive | {"name": "transpose_naive(const float *, float *)"})
    after = run(naive | {"name": name, "traffic_bytes.dram": 5e8})
    found = [(each.how, each.sureness) for each in match(before, after).matches]
    assert found == ([(How.VERSION, Sureness.LIKELY)] if is_matched else [])


@pytest.mark.parametrize(
    ("names", "work", "sureness"),
    [
        (("dot_prod_naive", "dot_prod"), 2.09, "likely"),  # additions of atomics are no FLOPs
        (("dot_prod_naive", "dot_prod"), 3.1, None),  # more than three times the work
        (("transposeMatrix", "transposeMatrixOptimized"), 2, "likely"),
        (("softmax", "softmax_float4"), 1, "likely"),
        (("softmax_v1_kernel", "softmax_v2_opt_kernel"), 1, "likely"),
        (("SGEMM", "gemm_tiled"), 2, "likely"),
        (("reduceNeighboredLess", "reduceInterleaved"), 2, "guess"),  # they begin alike, and nothing else was launched
        (("reduceNeighboredLess", "reduceInterleaved"), 1, "likely"),
        (("gemm", "gemv"), 2, None),
        (("reduce_sum", "scan_sum"), 2, None),
    ],
)
def test_the_less_names_agree_the_more_does_the_work_have_to(
    names: tuple[str, str], work: float, sureness: str | None
) -> None:
    other = {"work.fp32.flop": work * 1e9, "traffic_bytes.dram": work * 1e6}
    found = match(run(launch(names[0])), run(launch(names[1], **other))).matches
    assert [(each.how.value, each.sureness.value) for each in found] == ([("version", sureness)] if sureness else [])


def test_versions_are_matched_whatever_the_number_of_launches() -> None:
    before, after = run(*[launch("rmsnorm", 129.0)] * 10), run(*[launch("rmsnorm_float4")] * 13)
    (found,) = match(before, after).matches
    assert found.why == ("both names say rmsnorm", "the same FLOPs per launch")
    assert compare(before, after).deltas[0].change_frac == pytest.approx(100 / 129 - 1)


CUB = "void cub::{}DeviceReduceKernel<cub::{}, float*, int, {}>(T2, T3)"


@pytest.mark.parametrize(
    ("new", "is_matched"),
    [
        (CUB.format("detail::reduce::", "detail::policy_hub<float>::Policy1000", "cuda::std::plus<void>"), True),
        (CUB.format("detail::reduce::", "detail::policy_hub<float>::Policy1000", "cuda::std::maximum<void>"), False),
    ],
)
def test_a_renamed_policy_of_cub_does_not_make_a_different_kernel(new: str, *, is_matched: bool) -> None:
    old = CUB.format("", "DeviceReducePolicy<float>::Policy600", "cub::Sum")
    launches = launch("first"), launch("last")
    before = run(launches[0], launch("x") | {"name": old}, launches[1], launch("y", **{"work.fp32.flop": 7e9}))
    after = run(launches[1], launches[0], launch("x") | {"name": new}, launch("z", **{"work.fp32.flop": 3e9}))
    assert ("version" in [how for _, _, how in matched(before, after)]) is is_matched


def test_members_of_a_series_are_not_matched_with_each_other() -> None:
    before = run(launch("transpose"), launch("transpose_shared"))
    after = run(launch("transpose"), launch("transpose_diagonal"), launch("transpose_padded"))
    found = match(before, after)
    assert ([each.how for each in found.matches], found.removed, found.added) == ([How.SAME], (1,), (1, 2))
    assert [each.pair for each in found.candidates] == [
        "transpose_shared=transpose_padded",  # the names agree in all words that say what is computed
        "transpose_shared=transpose_diagonal",
    ]


def test_a_place_alone_is_not_evidence() -> None:
    before = run(launch("first"), launch("naive"), launch("last"))
    after = run(launch("first"), launch("other", **{"work.fp32.flop": 5e9}), launch("last"))
    found = match(before, after)
    assert (found.removed, found.added) == ((1,), (1,))


def test_the_programs_own_range_is_evidence_where_work_was_not_counted() -> None:
    unknown = {"work.fp32.flop": None, "traffic_bytes.dram": None, "nvtx": ["step", "mlp"]}
    before = run(launch("first"), launch("gelu", **unknown), launch("mul", **unknown))
    after = run(launch("first"), launch("fused", **unknown))
    assert matched(before, after)[1] == (["gelu", "mul"], ["fused"], "fused")
    assert match(before, after).matches[1].sureness == Sureness.GUESS


def test_iterations_of_a_loop_are_one_range() -> None:
    launches = [launch("a", nvtx=[f"step {number}"]) for number in range(3)]
    assert run(*launches).groups["n_launches"].to_list() == [3]


def test_a_kernel_in_two_ranges_is_matched_with_its_own() -> None:
    forward, backward = launch("a", 10, nvtx=["forward"]), launch("a", 90, nvtx=["backward"])
    slower = launch("a", 20, nvtx=["forward"])
    changes = [delta.change_frac for delta in compare(run(forward, backward), run(backward, slower)).deltas]
    assert sorted(changes) == [0, 1]


def test_added_and_removed_kernels_are_shown() -> None:
    found = match(
        run(launch("a"), launch("gone", **{"work.fp32.flop": 9e9})),
        run(launch("new", **{"work.fp32.flop": 2e9}), launch("a")),
    )
    assert (found.removed, found.added) == ((1,), (0,))


def test_failed_launches_are_in_no_group() -> None:
    assert run(launch("a"), launch("b", None, failed=True)).groups["short_name"].to_list() == ["a"]


@pytest.mark.parametrize(("dram_bytes", "is_matched"), [(1.2e5, True), (0.8e5, False), (8e6, True), (12e6, False)])
def test_traffic_of_a_different_order_of_magnitude_prevents_a_match(dram_bytes: float, *, is_matched: bool) -> None:
    no_flop = {"work.fp32.flop": None}
    before = run(launch("first"), *[launch("simt_sgemm", **no_flop)] * 2, launch("last"))
    other = launch("tensor_op_gemm", **no_flop, **{"traffic_bytes.dram": dram_bytes})
    after = run(launch("first"), other, other, launch("last"))
    assert ("place" in [how for _, _, how in matched(before, after)]) is is_matched


def test_versions_of_a_kernel_match_at_several_sizes() -> None:
    """The work of the same size decides, not that of the smallest against the largest."""

    def sizes(name: str, n_threads: int) -> Run:
        shape = {"block": [n_threads, 1, 1]}
        work = [{"work.fp32.flop": n * 1e9, "traffic_bytes.dram": n * 1e6, "grid": [n, 1, 1]} for n in (1, 64)]
        return run(*(launch(name, 10.0, **each | shape) for each in work))

    found = match(sizes("stencil_naive", 256), sizes("stencil_tiled", 128)).matches
    assert {each.how for each in found} == {How.VERSION}
