"""Roofs, bounds, critical sizes, machines, L2, and the distance from a roof."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ncuroof import model
from ncuroof.enums import Side
from ncuroof.errors import ProfileError, UnknownNameError
from ncuroof.model import Grade, predict
from ncuroof.model.machines import read_accelerator
from ncuroof.resources import folder
from ncuroof.roofline import load_profiles, match_profile

H100 = model.machine_by_name("h100-sxm")
A100 = model.machine_by_name("a100-sxm-80gb")


# ---- which roof -------------------------------------------------------------------------------------------------------------


def test_products_of_double_precision_use_tensor_cores_where_there_are_any() -> None:
    product = model.gemm(4096, 4096, 4096, dtype="fp64")
    assert predict(product, H100).precision == "tensor_fp64"
    assert predict(product, model.machine_by_name("v100-sxm2")).precision == "fp64"


def test_single_precision_is_not_tf32_unless_asked_for() -> None:
    assert predict(model.gemm(64, 64, 64, dtype="fp32"), H100).peak_flop_per_s == 67e12
    assert predict(model.gemm(64, 64, 64, dtype="tf32"), H100).peak_flop_per_s == 494.5e12


@pytest.mark.parametrize("name", ["jetson-agx-thor", "jetson-agx-orin", "jetson-orin-nano-8gb", "gb10"])
def test_tf32_has_no_tensor_roof_if_the_data_sheet_states_none(name: str) -> None:
    machine = model.machine_by_name(name)
    for own in (machine, model.with_measured(machine, bandwidth_bytes_per_s=2e11)):
        found = predict(model.gemm(4096, 4096, 4096, dtype="tf32"), own)
        assert (found.precision, found.peak_flop_per_s, found.least_ns) == ("tensor_tf32", None, None)
    # one's own number is a roof
    assert predict(model.gemm(64, 64, 64, dtype="tf32"), model.with_measured(machine, peak_flop_per_s=3e13)).compute_ns


def test_tf32_runs_as_fp32_without_tensor_cores_for_it() -> None:
    # 2 · 4096³ FLOP at the T4's 8.1 TFLOP/s of FP32: tensor cores multiply TF32 from 8.0 on, and this is 7.5
    found = predict(model.gemm(4096, 4096, 4096, dtype="tf32"), model.machine_by_name("t4"))
    assert (found.precision, found.least_ns) == ("fp32", pytest.approx(2 * 4096**3 / 8.1e12 * 1e9))


def test_a_roof_that_the_data_sheet_lacks_is_not_known() -> None:
    found = predict(model.gemm(64, 64, 64, dtype="fp8"), A100)
    assert found.precision == "tensor_fp8"
    assert (found.peak_flop_per_s, found.compute_ns, found.bound, found.least_ns) == (None, None, None, None)
    assert found.dram_ns is not None


def test_a_gpu_without_a_known_bandwidth_bounds_nothing() -> None:
    found = predict(model.softmax(64, 64), model.machine_by_name("gtx-1650"))
    assert (found.dram_ns, found.bound, found.ridge_flop_per_byte) == (None, None, None)


def test_a_kernel_without_tensor_cores_has_the_roof_of_fp32() -> None:
    found = predict(model.under(model.attention(4096, 64), "fp32"), H100)
    # 4096²·(256 + 5) FLOP, all under 67e12 /s
    assert found.compute_ns == pytest.approx(4096**2 * 261 / 67e12 * 1e9)


def test_kinds_of_work_overlap() -> None:
    # D = 64: products 256 per score at 989e12 /s take longer than 5 at 67e12 /s
    found = predict(model.attention(4096, 64), H100)
    assert found.precision == "tensor_bf16"
    assert found.compute_ns == pytest.approx(4096**2 * 256 / 989e12 * 1e9)
    # nothing overlaps: products, softmax, and four tensors of 4096·64 elements of two bytes at 3.35e12 /s
    each_s = (4096**2 * 256 / 989e12, 4096**2 * 5 / 67e12, 4 * 4096 * 64 * 2 / 3.35e12)
    assert found.most_ns == pytest.approx(sum(each_s) * 1e9)
    # D = 8: 32 / 989 < 5 / 67, the softmax takes longer
    assert predict(model.attention(4096, 8), H100).precision == "fp32"


def test_tiles_can_make_l2_the_bound() -> None:
    found = predict(model.gemm(4096, 4096, 4096, tile_m=128, tile_n=128), H100)
    # 2·2·4096²·32 byte = 2.147e9 at 5120·1.98e9 /s: 211.8 µs against 139 µs
    assert found.l2_ns == pytest.approx(2 * 2 * 4096**2 * 32 / (5120 * 1.98e9) * 1e9)
    assert (found.bound, found.memory_level) == ("memory", "l2")
    assert found.most_ns == pytest.approx(found.compute_ns + found.dram_ns + found.l2_ns)


def test_sides_of_the_ridge() -> None:
    sides = [predict(model.custom(flop * 10**9, 10**9), H100).side for flop in (140, 150, 440, 450)]
    assert sides == [
        Side.MEMORY,
        Side.NEAR_RIDGE,
        Side.NEAR_RIDGE,
        Side.COMPUTE,
    ]  # ridge 295.2: half 147.6, 1.5 times 442.8


@given(some.integers(1, 10**15), some.integers(1, 10**12))
def test_bounds_enclose(flop: int, n_bytes: int) -> None:
    found = predict(model.custom(flop, n_bytes), H100)
    assert found.least_ns <= found.most_ns <= 2 * found.least_ns * (1 + 1e-12)
    assert found.attainable_flop_per_s == pytest.approx(min(989e12, flop / n_bytes * 3.35e12))
    assert found.peak_frac == pytest.approx(found.attainable_flop_per_s / 989e12)


def test_at_the_ridge_arithmetic_is_the_bound() -> None:
    machine = model.with_measured(H100, peak_flop_per_s=1e12, bandwidth_bytes_per_s=1e12)
    assert predict(model.custom(1000, 1000), machine).bound == "compute"


# ---- critical sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [600, 1024, 4096, 16384])
def test_the_critical_batch_is_that_of_the_closed_form(features: int) -> None:
    # B·(2·D² − R·4·D) > 2·R·D² ⇒ B > R·D / (D − 2·R)
    ridge = 989e12 / 3.35e12
    exact = ridge * features / (features - 2 * ridge)
    found = model.critical_size(lambda batch: predict(model.linear(batch, features, features), H100))
    assert found is not None
    assert found - 1 < exact <= found


def test_a_layer_below_twice_the_ridge_never_is_compute_bound() -> None:
    assert model.critical_size(lambda batch: predict(model.linear(batch, 590, 590), H100)) is None
    assert model.critical_size(lambda n: predict(model.elementwise(n), H100)) is None


def test_the_critical_size_is_one_if_every_size_is_compute_bound() -> None:
    assert model.critical_size(lambda n: predict(model.elementwise(n, flop_per_element=10**6), H100)) == 1


# ---- L2 and distance --------------------------------------------------------------------------------------------------------


def test_l2_of_unknown_size_says_nothing() -> None:
    found = model.residency(1e6, model.machine_by_name("tpu-v5e"))
    assert (found.does_fit, found.hit_frac, found.bandwidth_bytes_per_s) == (None, None, None)


def test_a_product_in_tiles_is_not_bound_by_what_a_sweep_would_hit() -> None:
    # 3 × 67.1 MB in an L2 of 50 MiB: swept in order at most 52.4 / 201.3 = 26.0 % of further uses hit
    swept = model.residency(3 * 4 * 4096**2, H100)
    assert swept.hit_frac == pytest.approx(0.2604, abs=1e-4)
    tiled = model.residency(3 * 4 * 4096**2, H100, is_swept=False)
    assert (tiled.does_fit, tiled.hit_frac, tiled.bandwidth_bytes_per_s) == (False, None, None)
    assert model.residency(52428800, H100, is_swept=False).hit_frac == 1


def test_a_working_set_just_over_l2_is_served_by_l2() -> None:
    # One byte over: 1 − hit is tiny, and what memory delivers for it is not the limit.
    found = model.residency(52428801, H100)
    assert found.does_fit is False
    assert found.bandwidth_bytes_per_s == H100.bandwidth_bytes_per_s["l2"]


@pytest.mark.parametrize(
    ("achieved", "grade"),
    [(101, Grade.ABOVE), (100, Grade.NEAR), (80, Grade.NEAR), (79, Grade.NOTE), (50, Grade.NOTE), (49, Grade.WARN)],
)
def test_grades(achieved: float, grade: Grade) -> None:
    found = model.distance(100, achieved)
    assert found is not None
    assert found.grade is grade


def test_no_rate_has_no_gap_and_no_roof_no_distance() -> None:
    found = model.distance(100, 0)
    assert found is not None
    assert (found.efficiency_frac, found.gap_factor) == (0, None)
    assert model.distance(0, 100) is None


# ---- machines ---------------------------------------------------------------------------------------------------------------


def test_tpus_are_machines_only_for_models() -> None:
    tpus = {each.id: each for each in model.accelerators()}
    assert tpus["tpu-v6e"].peak_flop_per_s["tensor_bf16"] == 918e12
    assert tpus["tpu-v6e"].bandwidth_bytes_per_s["dram"] == 1.638e12
    assert tpus["tpu-v5e"].peak_flop_per_s["tensor_int8"] == 2 * tpus["tpu-v5e"].peak_flop_per_s["tensor_bf16"]
    assert not {profile.id for profile in load_profiles()} & set(tpus)
    assert match_profile("TPU v5e", "9.0") is None


def test_machines_are_found_as_gpus_are() -> None:
    assert model.machine_by_name("TPU-v5e").id == "tpu-v5e"
    assert model.machine_by_name("NVIDIA H100 80GB HBM3").id == "h100-sxm"
    with pytest.raises(UnknownNameError):
        model.machine_by_name("abacus")


def test_measured_roofs_replace_those_of_the_sheet() -> None:
    found = model.with_measured(H100, bandwidth_bytes_per_s=3e12)
    assert found.bandwidth_bytes_per_s == {**H100.bandwidth_bytes_per_s, "dram": 3e12}
    assert found.peak_flop_per_s == H100.peak_flop_per_s
    assert model.with_measured(H100) is H100
    assert predict(model.softmax(9, 9), model.with_measured(H100, peak_flop_per_s=1e12)).peak_flop_per_s == 1e12


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "tpu-v5e"', 'id = "other"'),
        ("dram = 819e9", "dram = -1"),
        ("dram = 819e9", "hbm = 819e9"),
        ("tensor_bf16 = 197e12", 'tensor_bf16 = "fast"'),
        ('"peak_flop_per_s" =', '"peaks" ='),
        ("[notes]", "[remarks]"),
    ],
)
def test_a_malformed_accelerator_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = (folder("profiles") / "accelerators" / "tpu-v5e.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "tpu-v5e.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProfileError):
        read_accelerator(path)
