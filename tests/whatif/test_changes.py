"""Changes and fusions: what they do to the time for which each resource is needed, by hand."""

from __future__ import annotations

import pytest

from ncuroof.errors import WhatIfError
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import (
    Target,
    against_order,
    by_target,
    change,
    fuse,
    parse_change,
    parse_fusion,
    parse_target,
    project,
)
from ncuroof.whatif.changes import remarks_on_unknown_types
from ncuroof.whatif.fusion import launches
from tests.whatif.launches import launch, table

H100 = {0: profile_by_name("h100-sxm")}


def after(text: str, *launches, only=None):
    changed = change(table(*launches), parse_change(text), only)
    return project(changed, H100, [Target()]).to_dicts()


def test_half_the_bytes_move_the_limit_to_the_next_resource() -> None:
    (found,) = after("bytes:0.5", launch())
    # DRAM 45 µs, SMs 50 µs: efficiency kept 50 / 0.9, latency kept 50 + 10
    assert found["limiter"] == "sm"
    assert found["duration_ns"] == pytest.approx(5e4 / 0.9)
    assert found["most_ns"] == pytest.approx(6e4)


def test_half_the_bytes_double_the_intensity() -> None:
    (found,) = after("bytes:0.5", launch(recorded_ridge_ratio=0.6, ridge_ratio=0.6, dominant_precision="fp32"))
    assert found["ridge_ratio"] == pytest.approx(1.2)
    assert found["crosses_ridge"]
    (found,) = after("flop:0.5", launch(recorded_ridge_ratio=1.5, ridge_ratio=1.5, dominant_precision="fp32", fp32=0.7))
    assert (found["ridge_ratio"], found["crosses_ridge"]) == (pytest.approx(0.75), True)


def test_each_change_touches_its_own_resource() -> None:
    shares = {"dram": 0.5, "l2": 0.6, "sm": 0.7, "fp32": 0.8, "tensor": 0.4}
    before = table(launch(**shares)).row(0, named=True)
    for kind, touched in (
        ("bytes", {"dram"}),
        ("l2", {"l2"}),
        ("sm", {"sm"}),
        ("flop", {"fp32", "tensor"}),
        ("batch", set(shares)),
    ):
        changed = change(table(launch(**shares)), parse_change(f"{kind}:3")).row(0, named=True)
        moved = {name for name in shares if changed[f"busy.{name}"] == pytest.approx(3 * before[f"busy.{name}"])}
        assert moved == touched, kind


def test_a_larger_batch_fills_sms_that_were_idle() -> None:
    # 66 of 132 SMs busy all the time: twice the blocks take the other half
    few = launch(dram=0.01, sm=0.5, reached_frac=1.0, recorded_n_blocks=66.0, n_blocks=66.0, verdict="compute")
    (found,) = after("batch:2", few)
    assert found["duration_ns"] == pytest.approx(1e5)
    (found,) = after("batch:4", few)
    assert found["duration_ns"] == pytest.approx(2e5)


def test_a_narrower_type_moves_fewer_bytes_and_multiplies_faster() -> None:
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_tf32")
    (found,) = after("dtype:bf16", launch(dram=0.4, sm=0.1, tensor=0.8, verdict="compute", **types))
    # DRAM 40 / 2 = 20 µs; tensor 80 * 494.5 / 989 = 40 µs
    assert found["duration_ns"] == pytest.approx(4e4 / 0.8)
    # vector arithmetic stays what it is
    (found,) = after("dtype:bf16", launch(dram=0.9, sm=0.1, fp32=0.3, dominant_precision="fp32"))
    assert found["duration_ns"] == pytest.approx(4.5e4 / 0.9)
    # and where the type is not known, nothing changes
    (found,) = after("dtype:bf16", launch() | {"name": "a(T1)"})
    assert found["duration_ns"] == pytest.approx(1e5)


def test_a_kernel_of_narrow_tensors_that_computes_in_fp32_moves_no_fewer_bytes() -> None:
    gelu = launch(dram=0.9, sm=0.1, fp32=0.3, dominant_precision="fp32")
    (found,) = after("dtype:bf16", gelu | {"name": "elementwise_kernel<Gelu(c10::BFloat16)>"})
    assert found["duration_ns"] == pytest.approx(1e5)
    (found,) = after("dtype:fp8", gelu | {"name": "elementwise_kernel<Gelu(c10::BFloat16)>"})
    # DRAM 90 / 2 = 45 µs
    assert found["duration_ns"] == pytest.approx(4.5e4 / 0.9)


def test_vector_arithmetic_moves_between_fp64_and_fp32() -> None:
    rtx = profile_by_name("rtx-4090")
    # FP64 at one 64th of FP32: 96 µs become 1.5, DRAM's 40 µs become 20, and what else the SMs did stays: 30 µs
    known = {"dominant_precision": "fp64", "ridge_ratio": 2.4, "recorded_ridge_ratio": 2.4, "sm_count": 128.0}
    busy = table(launch(dram=0.4, sm=0.3, fp64=0.96, verdict="compute", **known) | {"name": "nbody(double *)"})
    changed = change(busy, parse_change("dtype:fp32"), profiles={0: rtx})
    row = changed.row(0, named=True)
    assert (row["busy.fp64"], row["busy.fp32"]) == (0, pytest.approx(1.5e3, rel=1e-3))
    assert (row["busy.dram"], row["dominant_precision"]) == (pytest.approx(2e4), "fp32")
    # work over DRAM time: 96 / 40 = 2.4 before, 1.5 / 20 = 0.075 after
    assert row["ridge_ratio"] == pytest.approx(0.075, rel=1e-3)
    (found,) = project(changed, {0: rtx}, [Target()]).to_dicts()
    assert (found["limiter"], found["crosses_ridge"]) == ("sm", True)
    # without a data sheet the arithmetic stays
    assert change(busy, parse_change("dtype:fp32")).row(0, named=True)["busy.fp64"] == pytest.approx(9.6e4)


def test_a_remark_names_a_type_that_the_gpu_lacks() -> None:
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    (found,) = after("dtype:fp4", launch(tensor=0.8, **types))
    assert found["reason"] == "the data sheet of h100-sxm states no tensor_fp4 peak"


def test_only_the_kernels_that_are_named_change() -> None:
    first, second = after("bytes:0.5", launch("softmax"), launch("gemm"), only="^soft")
    assert (first["duration_ns"] < 6e4, second["duration_ns"]) == (True, pytest.approx(1e5))
    for wrong in ("nothing", "("):
        with pytest.raises(WhatIfError):
            after("bytes:0.5", launch("softmax"), only=wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bytes",
        "bytes:",
        "bytes:x",
        "bytes:0",
        "bytes:-1",
        "bytes:inf",
        "bytes:nan",
        "time:2",
        "dtype:",
        "dtype:bf17",
        "batch:1e999",
    ],
)
def test_a_malformed_change_is_refused(text: str) -> None:
    with pytest.raises(WhatIfError) as caught:
        parse_change(text)
    assert "bytes:0.5" in (caught.value.hint or "")


def test_cos_of_cos_in_one_kernel_moves_half_of_the_bytes() -> None:
    # each reads and writes 1 GB: 4 GB together; the one in between is written and read no more: 2 GB
    traffic = {"dram_read_bytes": 1e9, "dram_write_bytes": 1e9, "dram": 1.0, "sm": 0.1}
    fused = fuse(table(launch("cos", **traffic), launch("cos_2", **traffic), launch("rest")), "cos", "cos_2")
    one, rest = project(fused, H100, [Target()]).to_dicts()
    assert launches(fused)["short_name"].to_list() == ["cos + cos_2", "rest"]
    assert one["duration_ns"] == pytest.approx(1e5)  # of 200 µs
    assert (one["id"], fused["dram_read_bytes"][0], fused["dram_read_bytes"][1]) == (0, 1e9, 0.0)
    assert (fused["dram_write_bytes"][0], fused["dram_write_bytes"][1]) == (0.0, 1e9)
    assert rest["duration_ns"] == pytest.approx(1e5)


def test_bytes_removed_by_fusion_do_not_pass_through_l2() -> None:
    # L2 moves twice what DRAM does (4 GB of 2): 1 of 4 GB less on each side of the fusion
    traffic = {"dram_read_bytes": 1e9, "dram_write_bytes": 1e9, "busy.l2_as_dram": 2e5}
    fused = fuse(table(*(launch(name, dram=1.0, l2=0.8, **traffic) for name in "ab")), "a", "b")
    assert fused["busy.dram"].to_list() == pytest.approx([5e4, 5e4])
    assert fused["busy.l2"].to_list() == pytest.approx([6e4, 6e4])
    assert fused["busy.l2_as_dram"].to_list() == pytest.approx([1.5e5, 1.5e5])
    assert fused["busy.l2_whole"].to_list() == pytest.approx([6e4, 6e4])


@pytest.mark.parametrize(("text", "factor"), [("l2:0.5", 0.5), ("batch:2", 2), ("dtype:bf16", 0.5), ("bytes:0.5", 1)])
def test_a_change_of_l2_is_one_of_all_its_stages(text: str, factor: float) -> None:
    busy = table(launch(l2=0.6, dominant_precision="fp32", **{"busy.l2_whole": 8e4}))
    assert change(busy, parse_change(text))["busy.l2_whole"].to_list() == pytest.approx([8e4 * factor])


def test_a_kernel_fused_with_itself_is_each_second_launch_with_the_one_before() -> None:
    busy = fuse(table(*(launch(name) for name in "abaaa")), "a", "a")
    assert busy["fused_id"].to_list() == [0, 1, 0, 3, 3]
    assert against_order(busy, "a", "a") == []
    with pytest.raises(WhatIfError, match="a was launched an odd number of times, 3"):
        fuse(table(*(launch(name) for name in "abaa")), "a", "a")


def test_kernels_whose_type_is_guessed_or_unknown_are_named() -> None:
    named = launch("a") | {"name": "a(const float4 *)"}
    guessed = launch("b") | {"name": "triton_poi_fused_0", "dominant_precision": "fp32"}
    unknown = [launch(name) | {"name": "gather(char *)"} for name in "cdefg"]
    is_unknown, is_guessed = remarks_on_unknown_types(table(named, guessed, *unknown), None)
    assert "show the element type of c, d, e and 2 other kernels: their times stay" in is_unknown
    assert is_guessed.startswith("Names do not show the element type of b: it is taken from the arithmetic")
    assert remarks_on_unknown_types(table(named, guessed), r"float4") == []


def test_a_fusion_saves_no_more_than_the_second_reads() -> None:
    # the second reads a tenth of what the first wrote: of 20 µs for its own 0.2 GB and 100 for the first's 2 GB, 2 * 0.1 GB go
    first = launch("a", dram=1.0, dram_read_bytes=1e9, dram_write_bytes=1e9)
    second = launch("b", dram=0.2, sm=0.1, dram_read_bytes=1e8, dram_write_bytes=1e8)
    busy = fuse(table(first, second), "a", "b")
    assert busy["busy.dram"].to_list() == pytest.approx([1e5 * (1 - 1e8 / 2e9), 2e4 * (1 - 1e8 / 2e8)])
    assert (busy["fused_id"].to_list(), launches(busy)["duration_ns"].to_list()) == ([0, 0], [2e5])
    (found,) = project(busy, H100, [Target()]).to_dicts()
    # 95 µs at all of DRAM, then 10 at a fifth: 50; at once 105 µs of DRAM at (1.0 + 0.2) / 2 of it, which is longer
    assert found["duration_ns"] == found["least_ns"] == pytest.approx(1.45e5)


ANYWHERE = ("same", "same@990MHz", "a100-sxm-80gb", "rtx-4090", "b200", "jetson-agx-orin", "h200-sxm@1GHz")
CHANGES = ((), ("flop:0.25", "sm:0.25"), ("bytes:3",), ("batch:7",), ("dtype:fp16",), ("dtype:fp64", "l2:0.5"))


@pytest.mark.long
@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("intermediate_bytes", [0.0, 6e7])
def test_fused_kernels_take_no_longer_than_apart_wherever_they_run(
    changes: tuple[str, ...], intermediate_bytes: float
) -> None:
    typed = {"dominant_precision": "fp32"}
    copy = launch("a", dram=0.9, sm=0.1, dram_read_bytes=1e8, dram_write_bytes=intermediate_bytes, **typed)
    chain = launch("b", dram=0.2, l2=0.3, fp32=0.97, dram_read_bytes=1e8, dram_write_bytes=2e7, **typed)
    waits = launch("c", dram=0.3, sm=0.2, verdict="latency", dram_read_bytes=intermediate_bytes, dram_write_bytes=1e7)
    chain |= {"n_represented": 3.0, "weight": 2.5}
    apart = table(copy, chain, waits | typed)
    fused = fuse(fuse(apart, "a", "b"), "b", "c")
    assert launches(fused)["short_name"].to_list() == ["a + b + c"]
    for text in changes:
        apart, fused = (change(busy, parse_change(text), None, H100) for busy in (apart, fused))
    targets = [parse_target(text) for text in ANYWHERE]
    totals, joined = (by_target(busy, project(busy, H100, targets)) for busy in (apart, fused))
    for total, one in zip(totals.to_dicts(), joined.to_dicts(), strict=True):
        assert one["is_known"]
        assert one["recorded_ns"] == pytest.approx(4.5e5)  # 100 + 2.5 × 100 + 100 µs
        if intermediate_bytes:
            assert one["duration_ns"] <= total["duration_ns"] * (1 + 1e-12)
            assert one["most_ns"] <= total["most_ns"] * (1 + 1e-12)
        else:
            assert one["duration_ns"] == pytest.approx(total["duration_ns"])
            assert one["most_ns"] == pytest.approx(total["most_ns"])
        assert one["least_ns"] <= total["least_ns"] * (1 + 1e-12)


def test_fused_kernels_elsewhere_take_what_both_take_there() -> None:
    # nothing is saved. A100: DRAM 90 µs * 3.35 / 2.039 / 0.9 = 164.3; FP32 95 * 67 / 19.5 / 0.95 = 343.6
    busy = fuse(table(launch("a"), launch("b", dram=0.1, fp32=0.95, sm=0.1)), "a", "b")
    (found,) = project(busy, H100, [Target(profile_by_name("a100-sxm-80gb"))]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 * 3.35 / 2.039 + 1e5 * 67 / 19.5)
    # at once: FP32 326.4 µs at (0.9 + 0.95) / 2 of it
    assert (found["limiter"], found["least_ns"]) == ("fp32", pytest.approx(9.5e4 * 67 / 19.5 / 0.925))
    # what one of them lacks, both do
    lacking = fuse(table(launch("a"), launch("b", tensor=0.5)), "a", "b")
    (found,) = project(lacking, H100, [Target(profile_by_name("gtx-1660-super"))]).to_dicts()
    assert (found["duration_ns"], found["reason"]) == (None, "gtx-1660-super is not known to have tensor cores")


def test_a_change_affects_the_part_that_it_names() -> None:
    busy = fuse(table(launch("a"), launch("b", dram=0.1, sm=0.9)), "a", "b")
    (found,) = project(change(busy, parse_change("sm:0.5"), "^b"), H100, [Target()]).to_dicts()
    # b: 90 → 45 µs of the SMs at 0.9
    assert found["duration_ns"] == pytest.approx(1e5 + 5e4)


def test_kernels_that_cannot_be_fused_are_refused() -> None:
    busy = table(launch("a"), launch("b"), launch("b"), launch("f<1, 2>"), launch("c", device=1))
    assert parse_fusion("f<1, 2>,a", busy) == ("f<1, 2>", "a")
    for wrong, absent in (("a", "a"), ("a,nothing", "nothing"), ("nothing,a", "nothing"), ("a;b", "a;b")):
        with pytest.raises(WhatIfError, match=f"no kernel is called '{absent}'"):
            parse_fusion(wrong, busy)
    for pair in (("a", "a"), ("a", "b"), ("a", "c")):
        with pytest.raises(WhatIfError):
            fuse(busy, *pair)
    once = fuse(table(launch("a"), launch("b")), "a", "b")
    for pair in (("a", "b"), ("b", "a")):
        with pytest.raises(WhatIfError, match="already fused"):
            fuse(once, *pair)


def test_launches_that_are_fused_against_their_order_are_counted() -> None:
    # b0 a1 b2 a3 b4 a5: each a comes after its b; a0 b1 b2 a3: the second alone
    every = table(*(launch(name) for name in "bababa"))
    second = table(*(launch(name) for name in "abba"))
    (of_every,), (of_second,) = (against_order(fuse(each, "a", "b"), "a", "b") for each in (every, second))
    assert of_every.startswith("In 3 of 3 pairs of launches, a runs after b, which cannot have read what it wrote: ")
    assert of_second.startswith("In 1 of 2 pairs of launches, a runs after b")
    assert against_order(every, "b", "a") == []


def test_l1_reads_of_a_narrower_type_are_those_of_its_tiles() -> None:
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    product = launch(dram=0.3, sm=0.1, l1=0.94, tensor=0.9, verdict="compute", **types)
    (found,) = after("dtype:fp8", product)
    # L1 94 / 2 = 47 µs, tensor 90 * 989 / 1979 = 45
    assert (found["limiter"], found["duration_ns"]) == ("l1", pytest.approx(5e4))
    # an element per lane is a bank of four bytes, whatever the type: 94 µs stay; of eight bytes, it is two of them
    lanes = launch(dram=0.3, sm=0.1, l1=0.94, fp32=0.3, dominant_precision="fp32")
    (found,) = after("dtype:bf16", lanes)
    assert (found["limiter"], found["duration_ns"]) == ("l1", pytest.approx(1e5))
    wide = launch("a", dram=0.3, sm=0.1, l1=0.94, fp64=0.3, dominant_precision="fp64") | {"name": "a(double *)"}
    (found,) = after("dtype:bf16", wide)
    assert (found["limiter"], found["duration_ns"]) == ("l1", pytest.approx(5e4))


def test_operands_that_tensor_instructions_read_go_with_the_arithmetic() -> None:
    product = launch(dram=0.1, sm=0.1, l1=0.9, tensor=0.8, verdict="compute") | {"busy.operands": 7e4}
    row = change(table(product), parse_change("flop:0.5")).row(0, named=True)
    # of 90 µs, 70 are operands: 20 + 35
    assert (row["busy.l1"], row["busy.operands"]) == (pytest.approx(5.5e4), pytest.approx(3.5e4))
    row = change(table(product), parse_change("sm:0.5")).row(0, named=True)
    assert (row["busy.l1"], row["busy.operands"]) == (pytest.approx(4.5e4), pytest.approx(3.5e4))


def test_kernels_that_share_nothing_gain_nothing_from_being_one() -> None:
    # one needs FP32 for 95 of its 100 µs, the other DRAM: nothing is read again
    first = launch("a", dram=0.01, fp32=0.95, sm=0.1, dram_read_bytes=1e6, dram_write_bytes=0.0)
    second = launch("b", dram=0.9, sm=0.1, dram_read_bytes=1e8, dram_write_bytes=1e8)
    (found,) = project(fuse(table(first, second), "a", "b"), H100, [Target()]).to_dicts()
    assert (found["duration_ns"], found["most_ns"]) == (pytest.approx(2e5), pytest.approx(2e5))
    # were both to run at once: FP32 95 µs of 100 that reach (0.95 + 0.9) / 2
    assert found["least_ns"] == pytest.approx(9.5e4 / 0.925)


def test_bytes_that_do_not_limit_save_no_time() -> None:
    # 0.1 GB less of each: DRAM 20 → 10 µs of the first, whose SMs take 80; 90 → 45 of the second, whose SMs take 60
    traffic = {"dram_read_bytes": 1e8, "dram_write_bytes": 1e8}
    busy = fuse(table(launch("a", dram=0.2, sm=0.8, **traffic), launch("b", dram=0.9, sm=0.6, **traffic)), "a", "b")
    (found,) = project(busy, H100, [Target()]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 + 6e4 / 0.9)
    assert found["least_ns"] == pytest.approx(1.4e5 / 0.85)
