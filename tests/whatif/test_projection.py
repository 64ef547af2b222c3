"""Launches under other roofs. All numbers are worked out by hand from the data sheets."""

from __future__ import annotations

import pytest

from ncuroof.errors import UnknownNameError, WhatIfError
from ncuroof.roofline import load_profiles, profile_by_name
from ncuroof.whatif import Target, most_shared_bytes_per_block, parse_target, project
from ncuroof.whatif.peak_ratios import peak_ratios
from tests.whatif.launches import launch, table

H100 = {0: profile_by_name("h100-sxm")}  # 3.35 TB/s, 132 SMs, 1.98 GHz, 67 TFLOP/s of FP32, 989 of BF16
H200 = Target(profile_by_name("h200-sxm"))  # 4.8 TB/s, otherwise as the H100
A100 = Target(profile_by_name("a100-sxm-80gb"))  # 2.039 TB/s, 108 SMs, 1.41 GHz, 19.5 TFLOP/s, 312 of BF16


def only(row, target, profiles=H100):
    return project(table(row), profiles, [target]).row(0, named=True)


def test_a_kernel_at_the_dram_roof_goes_with_the_bandwidth() -> None:
    found = only(launch(), H200)
    # 90 µs of DRAM become 90 * 3.35 / 4.8 = 62.81 µs; efficiency kept: / 0.9; latency kept: + 10 µs
    assert found["duration_ns"] == pytest.approx(1e5 * 3.35 / 4.8)
    assert found["least_ns"] == pytest.approx(1e5 * 3.35 / 4.8)
    assert found["most_ns"] == pytest.approx(9e4 * 3.35 / 4.8 + 1e4)
    assert (found["target"], found["limiter"], found["reason"]) == ("h200-sxm", "dram", None)


def test_a_kernel_that_waits_is_expected_to_go_on_waiting() -> None:
    found = only(launch(dram=0.3, sm=0.2, verdict="latency"), H200)
    # 30 µs * 3.35 / 4.8 = 20.94 µs of DRAM; 20 µs of SMs as before; 70 µs of waiting stay
    assert found["duration_ns"] == pytest.approx(3e4 * 3.35 / 4.8 + 7e4)
    assert found["least_ns"] == pytest.approx(1e5 * 3.35 / 4.8)


def test_a_different_resource_can_become_the_limit() -> None:
    # FP32 80 µs, DRAM 70 µs. H100 to A100: FP32 * 67 / 19.5 = 274.9, DRAM * 3.35 / 2.039 = 115.0
    found = only(launch(dram=0.7, sm=0.1, fp32=0.8, verdict="compute"), A100)
    assert found["limiter"] == "fp32"
    assert found["duration_ns"] == pytest.approx(8e4 * 67 / 19.5 / 0.8)
    # and to the H200: DRAM * 3.35 / 4.8 = 48.9, FP32 as it was
    assert only(launch(dram=0.9, sm=0.1, fp32=0.8), H200)["limiter"] == "fp32"


def test_waiting_goes_with_the_clock_and_the_waves() -> None:
    # 10 waves on 132 SMs are 12.2 on 108; a cycle takes 1.98 / 1.41 as long; DRAM 10 µs * 3.35 / 2.039 = 16.4,
    # SMs 20 µs * (132 * 1.98) / (108 * 1.41) = 34.3
    found = only(launch(dram=0.1, sm=0.2, verdict="latency"), A100)
    # 10560 blocks are 97.8 per SM there: the last round of 98 is not full
    sms = 2e4 * 132 * 1.98 / (108 * 1.41)
    assert found["duration_ns"] == pytest.approx(sms + 8e4 * (1.98 / 1.41) * (132 / 108), rel=1e-6)


# H100 to B200: DRAM 3.35 / 7.7 of the time; its L2, of which no document states the bandwidth, is taken to grow with SMs and clock
B200 = Target(profile_by_name("b200"))
DRAM, SMS = 3.35 / 7.7, 132 * 1.98 / (148 * 1.965)


def test_an_assumed_l2_limits_nothing_at_the_shorter_end_that_it_did_not_limit() -> None:
    found = only(launch(dram=0.9, sm=0.1, l2=0.8), B200)
    # DRAM needs 39.2 µs there, L2 71.9 by the assumption; 10 µs of waiting in 80 * 132 / 148 / 80 of the waves
    assert (found["limiter"], found["is_limit_assumed"]) == ("l2", True)
    assert found["duration_ns"] == pytest.approx(8e4 * SMS / 0.9)
    assert found["least_ns"] == pytest.approx(1e5 * DRAM)
    assert found["most_ns"] == pytest.approx(8e4 * SMS + 1e4 * 132 / 148 * 1.98 / 1.965, rel=1e-6)
    # with half the bytes the shorter end moves: DRAM 19.6 µs, and the SMs' 10 µs do not limit it
    halved = only(launch(dram=0.45, sm=0.1, l2=0.8, reached_frac=0.9, limiter="dram"), B200)
    assert (halved["duration_ns"], halved["is_limit_assumed"]) == (pytest.approx(8e4 * SMS / 0.9), True)
    assert halved["least_ns"] == pytest.approx(4.5e4 * DRAM / 0.9)


def test_an_assumed_l2_is_as_fast_as_the_dram_that_it_feeds() -> None:
    # A copy: what L2 moves would take DRAM 90 of its 100 µs as well. B200: 8 TB/s after 3.35; its SMs would give L2 a tenth more.
    copy = launch(dram=0.9, sm=0.1, l2=0.8, **{"busy.l2_as_dram": 9e4})
    found = only(copy, B200)
    assert (found["limiter"], found["is_limit_assumed"]) == ("dram", False)
    # half as many bytes again, which hit in L2
    reads = only(copy | {"busy.l2_as_dram": 1.35e5}, B200)
    assert (reads["limiter"], reads["is_limit_assumed"]) == ("l2", True)
    assert reads["duration_ns"] == pytest.approx(1.5 * found["duration_ns"])
    # Where L2 was the limit, that may be no bytes.
    lookups = launch(dram=0.5, sm=0.3, l2=0.9, **{"busy.l2_as_dram": 5e4})
    assert only(lookups, B200)["limiter"] == "l2"


def test_an_assumed_l2_that_was_the_limit_grows_with_dram_at_the_shorter_end() -> None:
    # L2 90 µs become 39.2 with DRAM, 80.9 with the SMs; DRAM 50 µs become 21.8, the SMs' 30 µs 27.0
    found = only(launch(dram=0.5, sm=0.3, l2=0.9, verdict="memory"), B200)
    assert (found["limiter"], found["is_limit_assumed"]) == ("l2", True)
    assert found["duration_ns"] == pytest.approx(1e5 * SMS)
    assert found["least_ns"] == pytest.approx(1e5 * DRAM)
    # what DRAM limits there is limited by no assumption, and its range is that of the waits
    found = only(launch(dram=0.9, sm=0.1, l2=0.3), B200)
    assert (found["limiter"], found["is_limit_assumed"]) == ("dram", False)
    assert found["least_ns"] == found["duration_ns"] == pytest.approx(1e5 * DRAM)


def test_an_l2_that_documents_state_limits_without_an_assumption() -> None:
    # 5120 bytes per clock on both: only the clock differs
    found = only(launch(dram=0.1, sm=0.1, l2=0.9), A100)
    assert (found["limiter"], found["is_limit_assumed"]) == ("l2", False)
    assert found["least_ns"] == found["duration_ns"] == pytest.approx(1e5 * 1.98 / 1.41)
    # nor is there one where the GPU stays the same, whether its L2 is stated or not
    for target, profiles in ((Target(), H100), (Target(B200.profile), {0: B200.profile}), (Target(None, 1.98e9), H100)):
        found = only(
            launch(dram=0.45, sm=0.1, l2=0.8, reached_frac=0.8, limiter="dram", sm_count=148.0), target, profiles
        )
        assert (found["limiter"], found["is_limit_assumed"]) == ("l2", False)
        assert found["least_ns"] == pytest.approx(1e5)


def test_operands_of_tensor_instructions_keep_up_in_a_different_generation() -> None:
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    product = launch(dram=0.1, sm=0.1, l1=0.95, tensor=0.9, verdict="compute", **types) | {"busy.operands": 9e4}
    found = only(product, B200)
    # tensor 90 µs * 989 / 2250 = 39.6; L1 95 * 132 * 1.98 / (148 * 1.965) = 85.4, and 4.5 without the operands
    assert (found["limiter"], found["are_operands_assumed"]) == ("tensor", True)
    assert found["least_ns"] == found["duration_ns"] == pytest.approx(9e4 * 989 / 2250 / 0.95, rel=1e-3)
    # at most 10 µs of waiting besides; 5 µs of 132 / 148 of the waves
    assert found["most_ns"] == pytest.approx(max(9.5e4 * SMS / 0.95, 9.5e4 * SMS + 5e3 * 132 / 148 * 1.98 / 1.965))
    # the same instructions on another Hopper: nothing is assumed
    found = only(product, H200)
    assert (found["limiter"], found["are_operands_assumed"]) == ("l1", False)
    assert found["duration_ns"] == found["most_ns"] == pytest.approx(1e5)


@pytest.mark.parametrize(
    ("here", "there", "is_other"),
    [
        ("h100-sxm", "b200", True),
        ("h100-sxm", "rtx-4090", True),
        ("h100-sxm", "gb10", True),
        ("h100-sxm", "h200-sxm", False),
        # tcgen05 runs on both, and its reads are not counted
        ("b200", "jetson-agx-thor", False),
        ("b200", "h100-sxm", False),
        ("a100-sxm-80gb", "h100-sxm", False),
    ],
)
def test_operands_that_were_counted_are_those_of_wgmma(here: str, there: str, *, is_other: bool) -> None:
    profiles = (profile_by_name(here), profile_by_name(there))
    row = launch(dram=0.1, sm=0.1, l1=0.95, tensor=0.5) | {
        "busy.operands": 9e4,
        "sm_count": float(profiles[0].sm_count),
    }
    (found,) = peak_ratios(table(row), {0: profiles[0]}, profiles[1])["is_other_generation"]
    assert found is is_other


def test_tensor_work_of_a_type_that_nobody_counted_goes_with_fp16() -> None:
    # 989 to 312 TFLOP/s of FP16: 80 µs of the tensor pipe become 253.6 µs, at the efficiency that it had
    found = only(launch(dram=0.1, sm=0.1, tensor=0.8, verdict="compute"), A100)
    assert found["duration_ns"] == pytest.approx(1e5 * 989 / 312, rel=1e-3)


def test_few_blocks_gain_nothing_from_more_sms() -> None:
    # 54 blocks use 54 SMs of 108 as well as of 132: an FP32 pipe that these keep full is slower by the clock alone
    known = {"recorded_n_blocks": 54.0, "n_blocks": 54.0, "n_resident_blocks": 108.0 * 8, "sm_count": 108.0}
    row = launch(dram=0.0, sm=0.1, fp32=0.5, verdict="compute", sm_clock_hz=1.41e9, reached_frac=1.0, **known)
    found = only(row, Target(profile_by_name("h100-sxm")), {0: profile_by_name("a100-sxm-80gb")})
    # rate of FP32 per SM and cycle: 128 on the A100's 64 FMAs, 256 on the H100's: 19.5 / 67 * (132 / 108) of the time
    assert found["duration_ns"] == pytest.approx(1e5 * 19.5 / 67 * 132 / 108, rel=1e-6)


def test_a_grid_made_for_its_gpu_is_taken_to_be_made_for_the_other() -> None:
    known = {"recorded_n_blocks": 132.0, "n_blocks": 132.0, "n_resident_blocks": 132.0}
    found = only(launch(dram=0.1, sm=0.1, fp32=0.8, verdict="compute", **known), A100)
    # not 132 blocks over 108 SMs, which take two rounds
    assert found["duration_ns"] == pytest.approx(1e5 * 67 / 19.5)


@pytest.mark.parametrize(
    ("intensity", "crosses"),
    [(100.0, False), (152.0, False), (155.0, True), (200.0, True), (294.0, True), (297.0, False), (1000.0, False)],
)
def test_kernels_between_the_ridges_turn_memory_bound_from_a100_to_h100(intensity: float, *, crosses: bool) -> None:
    # ridges of BF16: A100 312e12 / 2.039e12 = 153.0 flop/byte, H100 989e12 / 3.35e12 = 295.2
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    ratio = intensity / (312 / 2.039)
    row = launch(dram=0.5, sm=0.1, tensor=min(0.5 * ratio, 1.0), recorded_ridge_ratio=ratio, ridge_ratio=ratio, **types)
    found = only(row, Target(profile_by_name("h100-sxm")), {0: profile_by_name("a100-sxm-80gb")})
    assert found["crosses_ridge"] is crosses
    assert found["ridge_ratio"] == pytest.approx(intensity / (989 / 3.35))


def test_the_same_gpu_takes_the_same_time() -> None:
    for row in (
        launch(),
        launch(dram=0.2, verdict="latency"),
        launch(n_blocks=7.0, recorded_n_blocks=7.0, dram=0.01, sm=0.02),
    ):
        for target, profiles in (
            (Target(), H100),
            (Target(), {0: None}),
            (Target(H100[0]), H100),
            (Target(None, 1.98e9), H100),
        ):
            busy = row | {"reached_frac": None}
            used = 7 / 132 if row["n_blocks"] == 7 else 1.0
            busy["reached_frac"] = max(row["busy.dram"], row["busy.sm"] / used) / 1e5
            found = only(busy, target, profiles)
            for key in ("duration_ns", "least_ns", "most_ns"):
                assert found[key] == pytest.approx(1e5), (target.label, key)


def test_a_lower_clock_slows_the_sms_and_not_dram() -> None:
    at_half = parse_target("same@990MHz")
    assert at_half.label == "same@990MHz"
    assert only(launch(dram=0.9, sm=0.1), at_half)["duration_ns"] == pytest.approx(1e5)
    assert only(launch(dram=0.1, sm=0.9), at_half)["duration_ns"] == pytest.approx(2e5)
    # recorded at half of the boost clock, at boost on the H200
    found = only(launch(dram=0.1, sm=0.9, sm_clock_hz=0.99e9), parse_target("h200-sxm@1.98 GHz"))
    assert found["duration_ns"] == pytest.approx(0.5e5)


def test_tensor_peaks_hold_at_a_clock_of_their_own() -> None:
    types = dict.fromkeys(("tensor_precision", "to_precision", "dominant_precision"), "tensor_bf16")
    ratio = {"recorded_ridge_ratio": 1.0, "ridge_ratio": 1.0}
    row = launch(dram=0.5, sm=0.1, tensor=0.9, verdict="compute", sm_clock_hz=1.83e9, **types, **ratio)
    # Both cards do 4096 FLOP per clock and SM, on 132 SMs: 989 TFLOP/s at 1.83 GHz here, 835.5 at 1.545 there, though the SMs boost
    # to 1.98 and 1.785 GHz. Only the clocks differ.
    found = only(row, parse_target("h200-nvl@1545MHz"))
    assert found["duration_ns"] == pytest.approx(1e5 * 1.83 / 1.545, rel=2e-3)
    # ridge: work takes that much longer, DRAM 3.35 / 4.8 of the time
    assert found["ridge_ratio"] == pytest.approx(1.83 / 1.545 * 4.8 / 3.35, rel=2e-3)
    # and vector arithmetic at 256 per clock and SM on both, from 1.83 to 1.545 GHz, too
    vector = launch(dram=0.1, sm=0.1, fp32=0.9, verdict="compute", sm_clock_hz=1.83e9)
    assert only(vector, parse_target("h200-nvl@1545MHz"))["duration_ns"] == pytest.approx(1e5 * 1.83 / 1.545, rel=1e-6)


@pytest.mark.parametrize(
    ("row", "profiles", "target", "reason"),
    [
        (launch(reached_frac=None), H100, H200, "DRAM and SM utilisation were not collected"),
        (launch() | {"duration_ns": None}, H100, H200, "DRAM and SM utilisation were not collected"),
        (launch(), {0: None}, H200, "ncuroof has no data sheet for the GPU, or MIG slice, that recorded it"),
        (launch(sm_clock_hz=None), H100, Target(H200.profile, 1e9), "the SM clock was not recorded"),
        (
            launch(tensor=0.5, tensor_precision="tensor_fp8", to_precision="tensor_fp8"),
            H100, A100, "the data sheet of a100-sxm-80gb states no tensor_fp8 peak",
        ),
        # 8.9 has 99 KiB for a block, 7.5 has 64
        (
            launch(shared_bytes_per_block=101377.0), H100, Target(profile_by_name("rtx-4090")),
            "a block needs 100 KiB of shared memory, but rtx-4090 allows 99 KiB",
        ),
        (
            launch(shared_bytes_per_block=66048.0), H100, Target(profile_by_name("t4"), 1e9),
            "a block needs 65 KiB of shared memory, but t4@1000MHz allows 64 KiB",
        ),
        # which of the sheets lacks it is stated, and what has no tensor cores
        (launch(tensor=0.5), H100, Target(profile_by_name("gb10")), "the data sheet of gb10 states no tensor_fp16 peak"),
        (
            launch(tensor=0.5, sm_count=48.0), {0: profile_by_name("gb10")}, H200,
            "the data sheet of gb10 states no tensor_fp16 peak",
        ),
        (
            launch(tensor=0.5), H100, Target(profile_by_name("gtx-1660-super")),
            "gtx-1660-super is not known to have tensor cores",
        ),
    ],
)  # fmt: skip
def test_a_kernel_that_cannot_be_projected_says_why(row, profiles, target, reason: str) -> None:
    found = only(row, target, profiles)
    assert found["reason"] == reason
    assert (found["duration_ns"], found["least_ns"], found["limiter"]) == (None, None, None)


def test_a_block_that_just_fits_is_projected() -> None:
    ada = Target(profile_by_name("rtx-4090"))
    assert only(launch(shared_bytes_per_block=99.0 * 1024), ada)["duration_ns"] is not None
    # 227 KiB on Thor, and the GPU that ran it has room
    thor = Target(profile_by_name("jetson-agx-thor"))
    assert only(launch(shared_bytes_per_block=227.0 * 1024), thor)["reason"] is None
    assert "227 KiB" in only(launch(shared_bytes_per_block=227.0 * 1024 + 1), thor)["reason"]
    assert only(launch(shared_bytes_per_block=1e9), Target())["reason"] is None


@pytest.mark.parametrize("profile", load_profiles(), ids=lambda each: each.id)
def test_every_data_sheet_has_a_limit_of_shared_memory(profile) -> None:
    assert most_shared_bytes_per_block(profile) is not None


def test_targets_are_named_or_refused() -> None:
    assert parse_target("H100-SXM").label == "h100-sxm"
    assert parse_target("same@1.5GHz").sm_clock_hz == 1.5e9
    with pytest.raises(UnknownNameError):
        parse_target("h1000")
    for wrong in ("h100-sxm@", "h100-sxm@fast", "same@0MHz", "h100-sxm@1500"):
        with pytest.raises(WhatIfError):
            parse_target(wrong)


def test_a_launch_that_failed_says_so() -> None:
    assert only(launch() | {"failed": True, "reached_frac": None}, H200)["reason"] == "failed to profile"


def test_a_part_of_a_gpu_is_not_scaled_by_the_data_sheet_of_the_whole() -> None:
    part = launch(sm_count=16.0, n_resident_blocks=128.0, recorded_n_blocks=40.0, n_blocks=40.0)
    assert "MIG" in only(part, H200)["reason"]
    # on itself it takes the time that it took, and half its bytes are half its bytes
    found = only(part, Target())
    assert (found["duration_ns"], found["most_ns"]) == (pytest.approx(1e5), pytest.approx(1e5))
