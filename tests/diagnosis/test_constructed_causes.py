"""Causes in kernels that are constructed from what they physically do, through the whole chain from counters to findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ncuroof.diagnosis import load_rules
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import counters
from tests.support.judged import gains, judged

pytestmark = pytest.mark.long  # each test is an analysis of its own


RULES = load_rules()
_HMMA, _HGMMA = "op_hmma_src_bf16_dst_fp32_sparsity_off", "op_hgmma_src_bf16_dst_fp32_sparsity_off"
_ADA_FP32, _ADA_FP16 = (f"src_fp16_dst_{accumulator}_sparsity_off" for accumulator in ("fp32", "fp16"))


# ---- tensor cores -----------------------------------------------------------------------------------------------------------

# 1 ms on an H200 at 1.5 GHz: 1.5e6 cycles of 132 SMs, 85 % of them with the 8192/3 operations of mma.sync.
PRODUCT = Described(
    "gemm_bf16",
    1_000_000,
    sm_clock_hz=1.5e9,
    tma_load_bytes=2**30,
    tma_store_bytes=2**27,
    dram_read_bytes=2**28,
    dram_write_bytes=2**27,
    tensor={_HMMA: 0.85 * 132 * 1.5e6 * 8192 / 3},
    warp_instructions=2e7,
    stalls={"math_pipe_throttle": 0.5},
)


def on_wgmma(frac: float) -> Described:
    return replace(PRODUCT, tensor={_HGMMA: frac * 132 * 1.5e6 * 4096})


def on_ada(path: str, operations_per_cycle: float) -> Described:
    """A product that keeps the tensor cores of an RTX 4090 busy for 85 % of a millisecond."""
    return replace(
        PRODUCT,
        gpu="rtx-4090",
        sm_clock_hz=2.5e9,
        tma_load_bytes=0,
        tma_store_bytes=0,
        loads=Accesses(2**19, 16, bytes_per_thread=16),
        stores=Accesses(2**17, 16, bytes_per_thread=16),
        tensor={path: 0.85 * 128 * 2.5e6 * operations_per_cycle},
    )


def test_mma_sync_on_hopper_leaves_what_wgmma_would_take() -> None:
    kernel = judged(PRODUCT)
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "tensor")
    # a pipe that is full for 85 % of the time at two thirds of wgmma's rate
    assert gains(kernel)["slower_tensor_instructions"] == pytest.approx(LONGEST_SM - 0.85 / 0.99 * 2 / 3, rel=1e-3)
    assert "slower_tensor_accumulation" not in gains(kernel)
    assert "slower_tensor_path" in kernel["caveats"]


def test_wgmma_has_no_faster_path() -> None:
    kernel = judged(on_wgmma(0.85))
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "tensor")
    assert not {"slower_tensor_instructions", "slower_tensor_accumulation"} & set(gains(kernel))


def test_fp32_accumulation_on_geforce_runs_at_half_rate() -> None:
    slow, fast = judged(on_ada(_ADA_FP32, 512)), judged(on_ada(_ADA_FP16, 1024))
    assert slow["limiter"] == fast["limiter"] == "tensor"
    assert gains(slow)["slower_tensor_accumulation"] == pytest.approx(0.5 * LONGEST_SM, rel=1e-3)
    assert "slower_tensor_instructions" not in gains(slow)
    assert "slower_tensor_accumulation" not in gains(fast)


def test_a_full_tensor_pipe_has_a_narrower_type() -> None:
    # FP8 over BF16 on an H200: 1979 over 989 Tflop/s; both kinds of accumulation of an RTX 4090: 330.3 over 165.2, 660.6 over 330.3
    for described in (on_wgmma(0.85), on_ada(_ADA_FP32, 512), on_ada(_ADA_FP16, 1024)):
        (finding,) = [entry for entry in judged(described)["findings"] if entry["id"] == "narrower_type"]
        value_by_quantity = {entry["quantity"]: entry["value"] for entry in finding["evidence"]}
        assert value_by_quantity["device.narrower_speedup"] == pytest.approx(2, rel=1e-2)
        assert finding["gain_ns"] is None  # another accuracy is another program


def test_a_tensor_pipe_that_is_not_the_limit_has_nothing_to_gain_from_a_narrower_type() -> None:
    assert "narrower_type" not in gains(judged(on_wgmma(0.5)))


def test_a_gpu_without_a_narrower_type_is_told_of_none() -> None:
    fp8 = replace(PRODUCT, tensor={"src_fp8_sparsity_off": 0.85 * 132 * 1.5e6 * 8192})
    kernel = judged(fp8)
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "tensor")
    assert "narrower_type" not in gains(kernel)


# ---- L2 and DRAM ------------------------------------------------------------------------------------------------------------

# 4.8 TB/s of an H200 in a millisecond; 60 % of them read and written in equal parts.
STREAM = Described(
    "scale",
    1_000_000,
    loads=Accesses(2_880_000, 16, bytes_per_thread=16),
    stores=Accesses(2_880_000, 16, bytes_per_thread=16),
    dram_read_bytes=2_880_000 * 512,
    dram_write_bytes=2_880_000 * 512,
    stalls={"long_scoreboard": 0.8},
)


def test_channels_of_dram_that_carry_most_are_found() -> None:
    kernel = judged(replace(STREAM, dram_channel_imbalance_frac=0.3))
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "dram")
    # DRAM is busy for 2 · 1.4746 GB / 4.8 GB = 61.4 % of the time on average, its busiest channel for 61.4 / 0.7 = 87.8 %
    # Warps wait for that channel whenever they wait: 30 % of its work is 30 % of the time.
    assert kernel["access"]["hottest_dram_channel_frac"] == pytest.approx(0.878, abs=1e-3)
    assert gains(kernel)["dram_channel_imbalance"] == pytest.approx(0.3 * LONGEST_SM)
    assert "dram_channel_imbalance" not in gains(judged(replace(STREAM, dram_channel_imbalance_frac=0.09)))
    assert "dram_channel_imbalance" not in gains(judged(STREAM))


def test_a_full_channel_limits_although_dram_seems_idle() -> None:
    camping = replace(STREAM, duration_ns=2_000_000, dram_channel_imbalance_frac=0.6)
    kernel = judged(camping)
    assert kernel["verdict"] == "latency"
    # 30.7 % on average, 76.8 % on the busiest channel
    assert gains(kernel)["dram_channel_imbalance"] == pytest.approx(0.6 * LONGEST_SM)


def test_channels_that_nobody_needs_may_differ() -> None:
    idle = replace(STREAM, duration_ns=4_000_000, dram_channel_imbalance_frac=0.6)
    assert "dram_channel_imbalance" not in gains(judged(idle))  # 38 % on the busiest


def test_a_slice_of_l2_that_serves_most_is_found() -> None:
    # The atomics of all threads on one address: nothing is busy, and one slice always has something to do.
    hot = replace(STREAM, duration_ns=4_000_000, l2_slices_active=(0.25, 1.0))
    kernel = judged(hot)
    assert kernel["verdict"] == "latency"
    assert gains(kernel)["l2_slice_imbalance"] == pytest.approx(0.75 * LONGEST_SM)


@pytest.mark.parametrize("active", [(0.92, 1.0), (0.25, 0.85), None])
def test_slices_of_l2_that_share_the_work_or_rest_are_sound(active: tuple[float, float] | None) -> None:
    kernel = judged(replace(STREAM, duration_ns=4_000_000, l2_slices_active=active))
    assert "l2_slice_imbalance" not in gains(kernel)


def reading(n_l2_reads: int) -> Described:
    """A kernel whose SMs read each byte of DRAM so often from L2."""
    return replace(
        STREAM,
        loads=Accesses(2_880_000 * 2 * n_l2_reads, 16, bytes_per_thread=16),
        stores=Accesses(2_880_000 // 8, 16, bytes_per_thread=16),
        dram_read_bytes=2_880_000 * 2 * 512,
        dram_write_bytes=2_880_000 // 8 * 512,
    )


def test_data_that_leaves_l2_before_it_is_used_again_is_found() -> None:
    # 2.95 GB of DRAM reads are 47 times the 60 MB of L2
    kernel = judged(reading(2))
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "dram")
    assert gains(kernel)["large_working_set"] is None  # L2 may have served the second use as well as missed it
    ids = [finding["id"] for finding in kernel["findings"]]
    assert ids.index("dram_headroom") < ids.index("large_working_set")


def test_a_stream_has_nothing_to_keep_in_l2() -> None:
    kernel = judged(reading(1))
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "dram")
    assert "large_working_set" not in gains(kernel)


# 4.8 TB/s of an H200 in a millisecond, 70 % of them, and four fifths of these written.
def writing(write_frac: float) -> Described:
    n_requests = int(0.7 * 4.8e9 / 512)
    n_stores = int(n_requests * write_frac)
    return replace(
        STREAM,
        loads=Accesses(n_requests - n_stores, 16, bytes_per_thread=16),
        stores=Accesses(n_stores, 16, bytes_per_thread=16),
        dram_read_bytes=(n_requests - n_stores) * 512,
        dram_write_bytes=n_stores * 512,
    )


def test_traffic_that_is_mostly_written_back_is_told() -> None:
    kernel = judged(writing(0.8))
    assert (kernel["verdict"], kernel["limiter"]) == ("memory", "dram")
    assert gains(kernel)["write_back"] is None
    assert "write_back" not in gains(judged(writing(0.5)))  # a copy


ADA = replace(STREAM, gpu="rtx-4090", duration_ns=5_000_000)


def test_compressible_memory_that_does_not_compress_is_told() -> None:
    kernel = judged(ADA, compression_success_percent=5, compression_input_sectors=1e6, written_bytes=32e6)
    assert kernel["access"]["compression_input_frac"] == pytest.approx(1)
    assert "incompressible_data" in gains(kernel)
    assert "scattered_compressible_writes" not in gains(kernel)


def test_compression_that_works_and_memory_that_is_not_compressible_are_sound() -> None:
    works = judged(ADA, compression_success_percent=60, compression_input_sectors=1e6, written_bytes=32e6)
    ordinary = judged(ADA, compression_success_percent=0, compression_input_sectors=0, written_bytes=32e6)
    # Hopper's unit is offered all writes, and its counters have other names.
    hopper = judged(STREAM, compression_success_percent=0, compression_input_sectors=1e6, written_bytes=32e6)
    for kernel in (works, ordinary, hopper):
        assert not {"incompressible_data", "scattered_compressible_writes"} & set(gains(kernel))


def test_writes_that_touch_compressible_lines_in_parts_are_told() -> None:
    scattered = judged(ADA, compression_success_percent=60, compression_input_sectors=5e6, written_bytes=32e6)
    assert "scattered_compressible_writes" in gains(scattered)


# ---- where waste lands ------------------------------------------------------------------------------------------------------


def test_waste_is_told_at_each_level_where_it_lands() -> None:
    # 8 of 32 bytes of each of 16 sectors are used; L1 serves half of the sectors, L2 half of the rest.
    strided = replace(
        STREAM,
        loads=Accesses(4_000_000, 16, bytes_per_sector=8, hit_frac=0.5),
        stores=Accesses(1_000_000, 4),
        dram_read_bytes=4_000_000 * 16 * 32 // 4,
        dram_write_bytes=1_000_000 * 128,
        duration_ns=500_000,
    )
    kernel = judged(strided)
    (finding,) = [entry for entry in kernel["findings"] if entry["id"] == "uncoalesced_global_load"]
    # 2048 MB at L1, 1024 MB from L2, 512 MB from DRAM; the threads asked for 512 MB
    assert finding["waste"]["l1"]["bytes"] == pytest.approx(2.048e9 - 0.512e9)
    assert finding["waste"]["l2"]["bytes"] == pytest.approx(1.024e9 - 0.512e9)
    assert "dram" not in finding["waste"]
    # of 2048 MB loaded and 128 MB stored through L1
    assert finding["waste"]["l1"]["frac"] == pytest.approx(1.536 / 2.176)


# ---- instructions -----------------------------------------------------------------------------------------------------------

# Four schedulers of 132 SMs for 1.98e6 cycles are 1.045e9 issue slots; 85 % of them are taken.
BUSY = Described(
    "hash_rows",
    1_000_000,
    loads=Accesses(2**20, 4),
    stores=Accesses(2**20, 4),
    dram_read_bytes=2**27,
    dram_write_bytes=2**27,
    warp_instructions=0.85 * 4 * 132 * 1.98e6,
    stalls={"not_selected": 0.3},
)


def test_blocks_of_half_a_warp_are_found() -> None:
    kernel = judged(replace(BUSY, block=(48, 1, 1), threads_per_instruction=24.0))
    # a quarter of two warps' lanes has no thread
    assert kernel["launch"]["unused_lane_frac"] == pytest.approx(0.25)
    assert gains(kernel)["partial_warps"] == pytest.approx(0.25 * LONGEST_SM)
    assert "partial_warps" not in gains(judged(replace(BUSY, block=(64, 1, 1))))
    sixteen = gains(judged(replace(BUSY, block=(16, 1, 1), threads_per_instruction=16.0)))
    assert sixteen["blocks_below_a_warp"] == pytest.approx(0.5 * LONGEST_SM)  # half as many warps
    assert "divergence" not in sixteen  # lanes without a thread do not diverge


def test_lanes_that_predicates_switch_off_are_found() -> None:
    kernel = judged(replace(BUSY, predicated_on_threads_per_instruction=16.0))
    assert kernel["verdict"] == "compute"
    # half of the lanes
    assert gains(kernel)["predicated_off"] == pytest.approx(0.5 * LONGEST_SM)
    assert "divergence" not in gains(kernel)


def test_lanes_that_a_branch_switched_off_are_not_told_twice() -> None:
    kernel = judged(replace(BUSY, threads_per_instruction=20.0, predicated_on_threads_per_instruction=16.0))
    assert "divergence" in gains(kernel)
    assert "predicated_off" not in gains(kernel)


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>",
        "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, 4, [lambda(curandStatePhilox4_32_10 *) (i"
        "nstance 1)]>(long, at::PhiloxCudaState, T3, T4)",
        "fused_dropout_kernel_vec",
        "triton_poi_fused_native_dropout_0",
        "my_rand_kernel",
    ],
)
def test_a_generator_of_random_numbers_is_not_told_to_fuse(name: str) -> None:
    kernel = judged(replace(BUSY, name=name))
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "issue")
    assert gains(kernel)["random_numbers"] is None
    assert "instruction_issue" not in gains(kernel)


def test_a_kernel_that_draws_numbers_for_itself_is_told_of_its_instructions() -> None:
    kernel = judged(replace(BUSY, name="void monte_carlo(curandStateXORWOW *, float *)"))
    other = judged(replace(BUSY, name="monte_carlo"))
    assert gains(kernel)["inlined_generator"] == gains(other)["instruction_issue"] > 0
    assert not {"random_numbers", "instruction_issue"} & set(gains(kernel))


@pytest.mark.parametrize("name", ["hash_rows", "load_operand_tile", "redistribution_kernel", "randomized_svd"])
def test_other_kernels_are_told_to_issue_less(name: str) -> None:
    found = gains(judged(replace(BUSY, name=name)))
    assert "instruction_issue" in found
    assert "random_numbers" not in found


def multiplying(n_ffma_per_slot: float) -> Described:
    """A product on an H200 of which that share of the issued instructions are multiply-adds."""
    return replace(BUSY, name="tiles", fp32=(0, 0, 32 * n_ffma_per_slot * BUSY.warp_instructions))


def test_a_product_without_instructions_to_save_is_not_told_to_save_them() -> None:
    kernel = judged(multiplying(0.9))
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "issue")
    assert kernel["arithmetic"]["fp32_issue_frac"] == pytest.approx(0.9, rel=1e-3)
    # slots are taken in 85 % of the cycles, and 95 % can be of those 98 % in which SMs have work
    assert gains(kernel)["multiply_add_issue"] == pytest.approx((1 - 0.85 / 0.98 / 0.95) * LONGEST_SM, rel=1e-3)
    assert "instruction_issue" not in gains(kernel)
    full = replace(
        multiplying(0.95), warp_instructions=0.95 * 4 * 132 * 1.98e6, fp32=(0, 0, 32 * 0.95 * 0.95 * 4 * 132 * 1.98e6)
    )
    kernel = judged(full)
    assert (kernel["verdict"], kernel["limiter"]) == ("compute", "issue")
    assert set(gains(kernel)) >= {"arithmetic_roof"}
    assert not {"multiply_add_issue", "instruction_issue"} & set(gains(kernel))  # no slot is empty
    other = gains(judged(multiplying(0.7)))
    assert "instruction_issue" in other
    assert "multiply_add_issue" not in other


def test_what_one_finding_leaves_out_the_other_takes() -> None:
    leaves, takes = RULES.findings["instruction_issue"], RULES.findings["random_numbers"]
    assert leaves.excluded_name_pattern is not None
    assert leaves.excluded_name_pattern == takes.name_pattern
    assert leaves.verdicts == takes.verdicts
    of_alu = RULES.findings["integer_pipe"]
    assert of_alu.excluded_name_pattern == takes.name_pattern
    assert {*leaves.limiters, *of_alu.limiters} == set(takes.limiters)
    assert takes.all_of == of_alu.all_of[:1] == leaves.all_of[:1]  # but of debug builds


# ---- latency ----------------------------------------------------------------------------------------------------------------

# Of the 16 warps that fit on an SM, each scheduler has 3.8, and each of these waits for 0.8 of its time, in 98 % of 1.98e6 cycles.
# That many loads can wait 480 cycles each, for DRAM.
N_ALONE = round(0.8 * 3.8 * 4 * 132 * 0.98 * 1.98e6 / 480)


@pytest.mark.parametrize("n_in_flight", [0.3, 1, 2])
def test_without_samples_in_the_code_latencies_tell_no_chain_of_loads(n_in_flight: float) -> None:
    """Less than one load in flight cannot be while a warp waits for one: latencies grow under load."""
    n_loads = round(n_in_flight * N_ALONE)
    chase = Described(
        "follow_lists",
        1_000_000,
        registers=128,
        loads=Accesses(n_loads, 4),
        dram_read_bytes=n_loads * 128,
        warp_instructions=2.4e7,
        stalls={"long_scoreboard": 0.8},
    )
    kernel = judged(chase, atomics=0.0, reductions=0.0)
    assert kernel["access"]["loads_by_code"] is None
    assert "stall_long_scoreboard" in gains(kernel)
    assert not {"serial_loads", "stall_overlapping_loads"} & set(gains(kernel))


def short_blocks(n_instructions_per_warp: float, filled_frac: float = 0.6) -> Described:
    # 132 SMs hold 8 blocks of 8 warps each; ten waves
    n_warps = 10 * 132 * 8 * 8
    return Described(
        "set_to_one",
        20_000,
        stores=Accesses(n_warps, 4),
        dram_write_bytes=n_warps * 128,
        warp_instructions=n_warps * n_instructions_per_warp,
        achieved_occupancy_frac=filled_frac,
    )


def test_threads_that_do_little_are_found() -> None:
    kernel = judged(short_blocks(20))
    assert kernel["verdict"] == "latency"
    assert kernel["scheduler"]["n_instructions_per_warp"] == pytest.approx(20)
    assert kernel["occupancy"]["filled_frac"] == pytest.approx(0.6)
    assert gains(kernel)["little_work_per_thread"] == pytest.approx(0.4 * 0.9)  # of the time in which blocks run
    assert "unfilled_occupancy" not in gains(kernel)


def blocks_that_fill_an_sm(n_threads: int, n_instructions_per_warp: float = 30, active_frac: float = 0.88) -> Described:
    # 40 SMs of a T4 hold 1024 threads each; ten waves
    n_warps = 10 * 40 * 32
    return Described(
        "set_to_one",
        200_000,
        gpu="t4",
        block=(n_threads, 1, 1),
        stores=Accesses(n_warps, 4),
        dram_write_bytes=n_warps * 128,
        warp_instructions=n_warps * n_instructions_per_warp,
        achieved_occupancy_frac=0.9,
        active_frac=active_frac,
    )


def test_blocks_of_one_thread_are_told_before_occupancy() -> None:
    kernel = judged(replace(blocks_that_fill_an_sm(1), achieved_occupancy_frac=0.49))
    # 16 blocks of one warp each on an SM of 32, one lane of 32 with a thread
    assert kernel["occupancy"]["theoretical_frac"] == pytest.approx(0.5)
    assert kernel["launch"]["unused_lane_frac"] == pytest.approx(31 / 32)
    assert not {"low_occupancy", "partial_warps"} & set(gains(kernel))
    longest_sm_frac = 0.88 / 0.99  # the rest is the launch, which goes by whatever the blocks do
    assert gains(kernel)["blocks_below_a_warp"] == pytest.approx(31 / 32 * longest_sm_frac)


def test_an_sm_that_holds_one_block_is_empty_between_two() -> None:
    kernel = judged(blocks_that_fill_an_sm(1024))
    assert kernel["occupancy"]["resident_blocks"] == 1
    assert list(gains(kernel))[-3:-1] == ["one_resident_block", "little_work_per_thread"]
    assert gains(kernel)["one_resident_block"] == pytest.approx((1 - 0.9 * 0.88) * 0.88 / 0.99)
    assert gains(kernel)["little_work_per_thread"] == pytest.approx(0.1 * 0.88 / 0.99)


@pytest.mark.parametrize(
    "described",
    [
        blocks_that_fill_an_sm(512),  # two of them: one works while the other starts
        blocks_that_fill_an_sm(1024, n_instructions_per_warp=120),
        blocks_that_fill_an_sm(1024, active_frac=0.97),
        replace(
            blocks_that_fill_an_sm(1024), dynamic_shared_bytes=40 << 10
        ),  # of 64 KiB: smaller blocks do not fit twice either
    ],
    ids=["two fit", "long blocks", "hardly a gap", "much shared memory"],
)
def test_blocks_that_overlap_or_last_may_fill_an_sm(described: Described) -> None:
    assert "one_resident_block" not in gains(judged(described))


def test_places_for_warps_that_stay_empty_are_told_where_threads_do_enough() -> None:
    kernel = judged(short_blocks(120))
    assert gains(kernel)["unfilled_occupancy"] == pytest.approx(0.4 * 0.9)
    assert "little_work_per_thread" not in gains(kernel)
    assert "unfilled_occupancy" not in gains(judged(short_blocks(120, 0.9)))


# ---- convolutions -----------------------------------------------------------------------------------------------------------


def on_fp32(name: str) -> dict[str, Any]:
    """A kernel that keeps the FP32 pipes of an H200 busy: 128 lanes of 132 SMs, 85 % of 1.5e6 cycles."""
    n_fused = 0.85 * 132 * 128 * 1.5e6
    return judged(
        Described(name, 1_000_000, sm_clock_hz=1.5e9, fp32=(0, 0, n_fused), warp_instructions=1.02 * n_fused / 32)
    )


def test_how_many_channels_a_convolution_sums_is_not_guessed() -> None:
    product, convolution = on_fp32("sgemm_tiled"), on_fp32("conv2d_variant3_kernel")
    assert product["limiter"] == convolution["limiter"] == "issue"
    # 0.85 of 67 Tflop/s at boost clock or its part at 1.5 GHz, against TF32 at 494.7: LONGEST_SM - 0.85 * 66.9 / 494.7
    assert gains(product)["idle_tensor_cores"] == pytest.approx(LONGEST_SM - 0.115, abs=1e-3)
    assert "idle_tensor_cores" not in gains(convolution)
    assert gains(convolution)["convolution_without_tensor_cores"] is None
    assert next(iter(gains(convolution))) == "multiply_add_issue"


@pytest.mark.parametrize("name", ["implicit_convolve_sgemm", "depthwise_convolution", "sm80_xmma_fprop_implicit_gemm"])
def test_convolutions_that_are_products_or_have_one_channel_are_told_nothing_of_the_kind(name: str) -> None:
    assert "convolution_without_tensor_cores" not in gains(on_fp32(name))


# ---- asynchronous copies ----------------------------------------------------------------------------------------------------


def test_no_finding_rests_on_the_hit_rate_of_l1() -> None:
    # Asynchronous and bulk copies pass L1 by: a good Hopper product hits it in 0 % of what little it asks.
    for finding in RULES.findings.values():
        conditions = {condition.quantity for condition in (*finding.all_of, *finding.any_of)}
        formulas = {
            quantity for formula in (finding.fix.formulas() if finding.fix else ()) for quantity in formula.quantities
        }
        assert "access.l1_hit_frac" not in conditions | formulas, finding.id


def test_a_product_that_loads_past_l1_is_not_blamed_for_it() -> None:
    product = replace(on_wgmma(0.85), busy={"sm__pipe_tma_cycles_active": 0.05})
    kernel = judged(product)
    assert "past_l1" in kernel["caveats"]
    assert counters(product)["l1tex__t_sector_hit_rate.pct"] == 0
    assert set(gains(kernel)) == {"arithmetic_headroom", "narrower_type"}


# ---- waits of Hopper's asynchronous kernels ---------------------------------------------------------------------------------


LONGEST_SM = 0.98 / 0.99
"""Share of the time in which it has work: SMs have it for 0.98 of the time, and the longest for 1 % longer."""


def waiting(**stalls: float) -> dict[str, Any]:
    """Diagnose a product that keeps the tensor cores busy for 30 % of the time and loads by TMA."""
    return judged(replace(on_wgmma(0.3), stalls=stalls), bulk_load_bytes=2**30)


@pytest.mark.parametrize(
    ("stalls", "limiter", "gain"),
    [
        ({"gmma": 0.35, "barrier": 0.25, "short_scoreboard": 0.2}, "gmma", 0.6),
        (
            {"gmma": 0.05, "barrier": 0.4, "short_scoreboard": 0.25},
            "barrier",
            0.45,
        ),  # a wait for the products counts as barrier
    ],
)
def test_waits_for_wgmma_are_none_for_other_threads(stalls: dict[str, float], limiter: str, gain: float) -> None:
    kernel = waiting(**stalls)
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", limiter)
    assert gains(kernel)["stall_wgmma"] == pytest.approx(gain * LONGEST_SM)
    assert not {"stall_barrier", "stall_other"} & set(gains(kernel))
    assert "stall_barrier" in gains(waiting(barrier=0.5))  # without wgmma it is one


def test_waits_for_bulk_copies_are_none_for_loads() -> None:
    kernel = waiting(long_scoreboard=0.5)
    assert (kernel["verdict"], kernel["limiter"]) == ("latency", "long_scoreboard")
    assert gains(kernel)["stall_bulk_copies"] == pytest.approx(0.5 * LONGEST_SM)
    assert not {"serial_loads", "stall_long_scoreboard", "stall_overlapping_loads"} & set(gains(kernel))


@pytest.mark.parametrize(
    ("bulk_load_bytes", "frac", "is_reported"),
    # 2^19 requests of 512 bytes are 2^28 bytes: those of bulk copies are half of all, or less
    [(2**28, 0.5, True), (2**27, 1 / 3, False), (0, 0.0, False)],
)
def test_a_kernel_that_loads_mostly_by_itself_waits_for_its_loads(
    bulk_load_bytes: int, frac: float, *, is_reported: bool
) -> None:
    described = replace(on_wgmma(0.3), loads=Accesses(2**19, 16, bytes_per_thread=16), stalls={"long_scoreboard": 0.5})
    kernel = judged(described, bulk_load_bytes=bulk_load_bytes)
    assert kernel["access"]["bulk_copy_frac"] == pytest.approx(frac)
    assert ("stall_bulk_copies" in gains(kernel)) is is_reported
    assert bool({"serial_loads", "stall_long_scoreboard"} & set(gains(kernel))) is not is_reported
