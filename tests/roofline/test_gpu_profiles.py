from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from ncuroof import resources
from ncuroof.enums import MemoryLevel, Precision
from ncuroof.errors import ProfileError
from ncuroof.roofline.gpu_names import profile_by_name
from ncuroof.roofline.gpu_profiles import (
    GpuProfile,
    is_partial,
    load_profiles,
    match_profile,
    normalise_device_name,
    read_profile,
)

GIB = 2**30
PROFILES = load_profiles()
each_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.id)


# --- numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "precision", "ridge"),
    [
        ("h100-sxm", "fp32", 20.0),  # 67e12 / 3.35e12
        ("h100-sxm", "tensor_bf16", 295.2),  # 989e12 / 3.35e12 = 295.22
        ("h100-sxm", "tensor_fp8", 590.7),  # 1979e12 / 3.35e12 = 590.75
        ("a100-sxm-80gb", "tensor_bf16", 153.0),  # 312e12 / 2.039e12 = 153.02
        ("v100-sxm2", "tensor_fp16", 138.9),  # 125e12 / 0.9e12 = 138.89
    ],
)
def test_ridge_points_of_the_founding_documents(name: str, precision: str, ridge: float) -> None:
    assert profile_by_name(name).ridge_flop_per_byte(precision) == pytest.approx(ridge, abs=0.06)


@pytest.mark.parametrize(
    ("name", "precision", "flop_per_s"),
    [
        ("h100-sxm", "fp32", 67e12),
        ("h100-sxm", "tensor_bf16", 989e12),
        ("h100-sxm", "tensor_fp8", 1979e12),
        ("a100-pcie-40gb", "tensor_tf32", 156e12),
        ("v100-pcie", "fp64", 7e12),
        ("t4", "tensor_int8", 130e12),
        ("l4", "tensor_bf16", 121e12),  # the sheet's 242 is with sparsity
        ("l40s", "tensor_fp8", 733e12),  # the sheet's 1466 is with sparsity
        ("rtx-4090", "tensor_fp16", 165.2e12),
        ("rtx-4090", "tensor_fp16_fp16_accumulate", 330.3e12),
        ("rtx-5090", "tensor_fp4", 1676e12),
        ("b200", "tensor_bf16", 2.25e15),
        ("b300", "tensor_fp4", 13.5e15),
    ],
)
def test_peaks_are_the_dense_ones_of_the_data_sheet(name: str, precision: str, flop_per_s: float) -> None:
    assert profile_by_name(name).peak_flop_per_s[precision] == flop_per_s


@each_profile
def test_stated_peaks_agree_with_clock_times_sms_times_rate_or_say_why_not(profile: GpuProfile) -> None:
    for precision, peak in profile.peak_flop_per_s.items():
        rate = profile.peak_flop_per_clock_per_sm[precision]
        clock_hz = profile.sm_boost_clock_hz
        if precision.startswith("tensor_") and precision != "tensor_fp64":
            clock_hz = profile.tensor_boost_clock_hz or clock_hz
        excused = f"peak_flop_per_s.{precision}" in profile.notes or (
            precision.startswith("tensor_") and "tensor" in profile.notes
        )
        assert excused or peak == pytest.approx(clock_hz * profile.sm_count * rate, rel=0.03), precision


@each_profile
def test_every_number_has_a_source(profile: GpuProfile) -> None:
    keys = {"gpu.sm_count", "gpu.sm_boost_clock_hz"}
    for key in ("tensor_boost_clock_hz", "dram_bytes", "l2_bytes", "memory_bus_width_bits"):
        keys |= {f"gpu.{key}"} if getattr(profile, key) is not None else set()
    for table in ("bandwidth_bytes_per_s", "peak_flop_per_s", "peak_flop_per_clock_per_sm"):
        keys |= {f"{table}.{key}" for key in getattr(profile, table)}
    assert keys <= set(profile.sources)
    assert all(len(profile.sources[key]) > 10 for key in keys)


@each_profile
def test_full_rate_accumulation_is_twice_the_geforce_rate(profile: GpuProfile) -> None:
    for precision in ("tensor_fp16", "tensor_fp8"):
        full = profile.peak_flop_per_s.get(f"{precision}_fp16_accumulate")
        if full is not None:
            assert full == pytest.approx(2 * profile.peak_flop_per_s[precision], rel=0.01)


# Memory clock in MHz and bus width in bits as each card is built; the bandwidth is 2 x clock x width / 8.
@pytest.mark.parametrize(
    ("name", "memory_clock_mhz", "bus_bits"),
    [
        ("v100-sxm2", 877, 4096),  # 898e9
        ("t4", 5001, 256),  # 320e9
        ("gtx-1660-super", 7001, 192),  # 336e9
        ("gtx-1660-ti", 6001, 192),  # 288e9
        ("rtx-2060-super", 7001, 256),  # 448e9
        ("rtx-2080-ti", 7000, 352),  # 616e9
        ("a100-pcie-40gb", 1215, 5120),  # 1555e9
        ("a100-sxm-40gb", 1215, 5120),  # 1555e9
        ("a100-pcie-80gb", 1512, 5120),  # 1935e9
        ("a100-sxm-80gb", 1593, 5120),  # 2039e9
        ("a40", 7251, 384),  # 696e9
        ("rtx-a6000", 8001, 384),  # 768e9
        ("rtx-3060-laptop", 7001, 192),  # 336e9
        ("rtx-3060-ti", 7001, 256),  # 448e9
        ("rtx-3070-ti", 9501, 256),  # 608e9
        ("rtx-3080", 9501, 320),  # 760e9
        ("rtx-3090", 9751, 384),  # 936e9
        ("l4", 6251, 192),  # 300e9
        ("rtx-4050-laptop", 8001, 96),  # 192e9
        ("rtx-4060-laptop", 8001, 128),  # 256e9
        ("rtx-4060-ti", 9001, 128),  # 288e9
        ("rtx-4080-super", 11501, 256),  # 736e9
        ("rtx-4090", 10501, 384),  # 1008e9
        ("h100-pcie", 1593, 5120),  # 2039e9
        ("h100-sxm", 2619, 5120),  # 3352e9
        ("gh200-96gb", 2619, 6144),  # 4023e9
    ],
)
def test_dram_bandwidth_is_twice_the_memory_clock_times_the_bus(
    name: str, memory_clock_mhz: int, bus_bits: int
) -> None:
    profile = profile_by_name(name)
    assert profile.memory_bus_width_bits == bus_bits
    expected = 2 * memory_clock_mhz * 1e6 * bus_bits / 8
    assert profile.bandwidth_bytes_per_s["dram"] == pytest.approx(expected, rel=0.01)


def test_numbers_that_are_not_stated_follow_from_the_rate_per_clock() -> None:
    a100 = profile_by_name("a100-sxm-80gb")
    assert a100.bandwidth_bytes_per_s["l2"] == pytest.approx(7.2192e12)  # 5120 B x 1.41e9
    assert a100.bandwidth_bytes_per_s["l1"] == pytest.approx(19.49184e12)  # 128 B x 108 x 1.41e9
    rtx_3060_ti = profile_by_name("rtx-3060-ti")
    assert rtx_3060_ti.peak_flop_per_s["fp32"] == pytest.approx(16.19712e12)  # 256 x 38 x 1.665e9
    assert rtx_3060_ti.sources["peak_flop_per_s.fp32"].startswith("at boost clock: CUDA C++ Programming Guide")


def test_unstated_tensor_peaks_use_the_tensor_clock_and_others_the_sm_clock() -> None:
    h200 = profile_by_name("h200-sxm")
    assert h200.tensor_boost_clock_hz == 1.83e9
    assert h200.peak_flop_per_s["fp16"] == pytest.approx(133.8e12, rel=1e-3)  # 512 x 132 x 1.98e9


def test_peak_scales_with_the_clock() -> None:
    h100 = profile_by_name("h100-sxm")
    assert h100.peak_at_clock_flop_per_s("fp32", 1e9) == 33.792e12  # 256 x 132 x 1e9
    assert h100.peak_at_clock_flop_per_s("tensor_fp4", 1e9) is None


def test_an_unknown_roof_has_no_ridge() -> None:
    assert profile_by_name("gtx-1650").ridge_flop_per_byte("fp32") is None  # GDDR5 and GDDR6 share the name
    assert profile_by_name("v100-sxm2").ridge_flop_per_byte("tensor_fp8") is None


def test_enums_of_the_model_are_accepted_as_keys() -> None:
    ridge = profile_by_name("h100-sxm").ridge_flop_per_byte(Precision.FP32, MemoryLevel.DRAM)
    assert ridge == pytest.approx(20.0)


# --- finding a profile ------------------------------------------------------------------------------------


def matched(name: str, capability: str, **known: int) -> str | None:
    profile = match_profile(name, capability, **known)
    return profile.id if profile else None


@each_profile
def test_device_names_lead_back_to_their_profile(profile: GpuProfile) -> None:
    for name in profile.device_names:
        assert (
            match_profile(
                name,
                profile.compute_capability,
                sm_count=profile.sm_count,
                dram_bytes=profile.dram_bytes,
                memory_bus_bits=profile.memory_bus_width_bits,
            )
            is profile
        )


@pytest.mark.parametrize(
    ("name", "capability", "profile"),
    [
        ("NVIDIA GeForce RTX 4060", "8.9", "rtx-4060"),
        ("NVIDIA GeForce RTX 4060 Ti", "8.9", "rtx-4060-ti"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", "8.9", "rtx-4060-laptop"),
        ("NVIDIA GeForce RTX 4090", "8.9", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", "8.9", "rtx-4090-d"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "12.0", None),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", "rtx-3080-laptop"),
        ("GeForce RTX 3080", "8.6", "rtx-3080"),
        ("NVIDIA GeForce RTX 3080 Ti", "8.6", "rtx-3080-ti"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "8.6", None),
        ("NVIDIA GeForce RTX 2070 with Max-Q Design", "7.5", None),
        ("A100-PCIE-40GB", "8.0", "a100-pcie-40gb"),
        ("NVIDIA A100-PCIE-40GB", "8.0", "a100-pcie-40gb"),
        ("nvidia a100 80gb pcie", "8.0", "a100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "7.0", "v100-sxm2"),
        ("Tesla V100-SXM3-32GB", "7.0", None),
        ("NVIDIA L4", "8.9", "l4"),
        ("NVIDIA L40", "8.9", "l40"),
        ("NVIDIA L40S", "8.9", "l40s"),
        ("NVIDIA A10", "8.6", "a10"),
        ("NVIDIA A10G", "8.6", "a10g"),
        ("NVIDIA H200", "9.0", "h200-sxm"),
        ("NVIDIA H200 NVL", "9.0", "h200-nvl"),
        ("NVIDIA GH200 480GB", "9.0", "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", "9.0", "gh200-144gb"),
        ("NVIDIA H20", "9.0", "h20"),
        ("NVIDIA H20-3e", "9.0", None),
        ("NVIDIA H800", "9.0", "h800-sxm"),
        ("NVIDIA H800 PCIe", "9.0", "h800-pcie"),
        ("NVIDIA A800-SXM4-80GB", "8.0", "a800-sxm-80gb"),
        ("NVIDIA A800 80GB PCIe", "8.0", "a800-pcie-80gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", "rtx-pro-6000-blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", "rtx-pro-6000-max-q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", "rtx-pro-6000-server"),
        ("NVIDIA RTX A2000 12GB", "8.6", "rtx-a2000"),
        ("NVIDIA RTX A2000 Laptop GPU", "8.6", None),
        ("NVIDIA RTX A6000", "8.6", "rtx-a6000"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9", None),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", "rtx-6000-ada"),
        ("Quadro RTX 6000", "7.5", "quadro-rtx-6000"),
        ("NVIDIA TITAN V", "7.0", "titan-v"),
        ("", "9.0", None),
        ("NVIDIA", "9.0", None),
    ],
)
def test_a_device_matches_by_its_whole_name(name: str, capability: str, profile: str | None) -> None:
    assert matched(name, capability) == profile


def test_the_compute_capability_has_to_fit_as_well() -> None:
    assert matched("NVIDIA GeForce RTX 4090", "8.6") is None


def test_a_name_that_products_share_needs_more_to_match() -> None:
    assert matched("NVIDIA H100", "9.0") is None
    assert matched("NVIDIA H100", "9.0", sm_count=114) == "h100-pcie"
    known = {"sm_count": 132, "memory_bus_bits": 5120, "dram_bytes": 79 * GIB}
    assert matched("NVIDIA H100", "9.0", **known) == "h100-sxm"


def test_a_custom_h100_with_a_different_memory_matches_nothing() -> None:
    assert matched("NVIDIA H100", "9.0", sm_count=132, memory_bus_bits=6144, dram_bytes=95 * GIB) is None
    assert matched("NVIDIA H100", "9.0", sm_count=132, memory_bus_bits=6144, dram_bytes=79 * GIB) is None


def test_a_bus_of_which_channels_are_off_contradicts_nothing() -> None:
    """An H200's driver reports 6016 bits and 139.8 GiB (fixtures/h200)."""
    known = {"sm_count": 132, "dram_bytes": 150109880320}
    assert matched("NVIDIA H200", "9.0", memory_bus_bits=6016, **known) == "h200-sxm"
    assert matched("NVIDIA H200", "9.0", memory_bus_bits=6144, **known) == "h200-sxm"
    assert matched("NVIDIA H200", "9.0", memory_bus_bits=5120, **known) is None
    assert matched("NVIDIA H200", "9.0", memory_bus_bits=7168, **known) is None


def test_the_12_gb_version_of_the_3080_is_not_the_10_gb_one() -> None:
    known = {"sm_count": 70, "memory_bus_bits": 384, "dram_bytes": 12 * GIB}
    assert matched("NVIDIA GeForce RTX 3080", "8.6", **known) is None


@pytest.mark.parametrize(
    ("name", "capability", "bus_bits", "sm_count", "gib", "profile"),
    [
        ("NVIDIA GeForce RTX 3060", "8.6", 192, 28, 12, "rtx-3060"),
        ("NVIDIA GeForce RTX 3060", "8.6", 128, 28, 8, None),
        ("NVIDIA GeForce RTX 3050", "8.6", 128, 20, 8, "rtx-3050"),
        ("NVIDIA GeForce RTX 3050", "8.6", 96, 18, 6, None),
        ("NVIDIA GeForce RTX 2060", "7.5", 192, 30, 6, "rtx-2060"),
        ("NVIDIA GeForce RTX 2060", "7.5", 192, 34, 12, None),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", 256, 48, 8, "rtx-3080-laptop"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", 256, 48, 16, "rtx-3080-laptop"),
    ],
)
def test_versions_of_one_name_are_told_apart(
    name: str, capability: str, bus_bits: int, sm_count: int, gib: int, profile: str | None
) -> None:
    known = {"sm_count": sm_count, "memory_bus_bits": bus_bits, "dram_bytes": gib * GIB}
    assert matched(name, capability, **known) == profile


def test_jetsons_of_one_name_are_told_apart_by_sms_and_memory() -> None:
    assert matched("Orin", "8.7", sm_count=16) == "jetson-agx-orin"
    assert matched("Orin", "8.7", sm_count=14) is None
    assert matched("Orin", "8.7", sm_count=8) is None
    assert matched("Orin", "8.7", sm_count=8, dram_bytes=16136011776) == "jetson-orin-nx-16gb"
    assert matched("Orin", "8.7", sm_count=8, dram_bytes=7987728384) == "jetson-orin-nano-8gb"


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB MIG 1c.2g.20gb", "a100-sxm-80gb"),
    ],
)
def test_a_mig_slice_matches_its_gpu_whatever_its_share_and_is_marked_partial(name: str, profile: str) -> None:
    assert matched(name, "8.0", sm_count=42, dram_bytes=20 * GIB, memory_bus_bits=2560) == profile
    assert is_partial(name)
    assert not is_partial(profile_by_name(profile).device_names[0])


def test_normalised_names_drop_brands_and_punctuation() -> None:
    assert normalise_device_name("NVIDIA GeForce RTX 3060 Laptop GPU") == "rtx 3060 laptop"
    assert normalise_device_name("Tesla V100-SXM2-16GB") == "v100 sxm2 16gb"


@pytest.mark.parametrize("name", ["NVIDIA H100" + " " * 60_000 + "x", "NVIDIA H100" + " mig" * 15_000 + "\nx"])
def test_a_name_of_any_length_is_looked_through_once(name: str) -> None:
    started = time.process_time()
    assert normalise_device_name(name) in {"h100 x", "h100"}
    assert is_partial(name) == ("mig" in name)
    assert time.process_time() - started < 1  # minutes, where each blank is the beginning of a search


# Names that the corpus holds and that no profile may claim, with the reason.
UNMATCHED = {"NVIDIA H100": "96 GB HBM2e special edition: 6144 bit, no public data sheet"}
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus beside the checkout")
def test_every_device_of_the_corpus_has_its_profile_or_is_left_out_on_purpose() -> None:
    with (CORPUS / "catalog.csv").open(newline="", encoding="utf-8") as lines:
        devices = {(row["gpus"], row["cc"]) for row in csv.DictReader(lines) if row["gpus"] and row["cc"]}
    assert devices
    assert {name for name, capability in devices if matched(name, capability) is None} == set(UNMATCHED)
    for name, capability in devices - {("NVIDIA H100", "9.0")}:
        profile = match_profile(name, capability)
        assert profile is not None
        assert normalise_device_name(name) in map(normalise_device_name, profile.device_names)


# --- reading the files ------------------------------------------------------------------------------------


def test_profiles_come_ordered_and_are_read_once() -> None:
    assert [profile.id for profile in PROFILES] == sorted(profile.id for profile in PROFILES)
    assert load_profiles() is PROFILES
    assert profile_by_name("t4") is match_profile("Tesla T4", "7.5")


def test_values_of_a_profile_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PROFILES[0].peak_flop_per_s["fp32"] = 1.0  # type: ignore[index]


GOOD = (resources.folder("profiles") / "gpus" / "h100-sxm.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("sm_count = 132\n", "", r"\[gpu\] sm_count"),
        ("sm_count = 132", "sm_count = true", r"\[gpu\] sm_count"),
        ("dram = 3.35e12", 'dram = "3.35e12"', r"\[bandwidth_bytes_per_s\] dram"),
        ("dram = 3.35e12", "dram = -1.0", r"\[bandwidth_bytes_per_s\] dram"),
        ("dram = 3.35e12", "dram = nan", r"\[bandwidth_bytes_per_s\] dram"),
        ("fp64 = 34e12", "fp65 = 34e12", "fp65"),
        ("[notes]", "[remarks]", "remarks"),
        ('chip = "GH100"', "chip = 100", r"\[gpu\] chip"),
        ('id = "h100-sxm"', 'id = "h101-sxm"', r"\[gpu\] id"),
        ('device_names = ["', 'device_names = [] # ["', r"\[gpu\] device_names"),
        (
            '"peak_flop_per_s" = "NVIDIA H100',
            '"peak_flop_per_s.fp64" = "NVIDIA H100',
            r"peak_flop_per_s\.fp32",
        ),
        ("[sources]", '[sources]\n"gpu.l3_bytes" = "?"', r"gpu\.l3_bytes"),
        ("[gpu]", "[gpu", "toml"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name_and_key(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    path = tmp_path / "h100-sxm.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProfileError, match=complaint) as caught:
        read_profile(path)
    assert str(caught.value).startswith("h100-sxm.toml")


@pytest.mark.parametrize(
    ("name", "bytes_per_s"),
    [
        # 64 bytes per slice and cycle, a slice for each 64 bits: of 5120 bits 80 slices, of 6144 bits 96, of 6016 bits 94
        ("h100-sxm", 64 * 80 * 1.98e9),
        ("h100-pcie", 64 * 80 * 1.755e9),
        ("h100-nvl", 64 * 96 * 1.785e9),
        ("h800-sxm", 64 * 80 * 1.98e9),
        ("h800-pcie", 64 * 80 * 1.755e9),
        ("h200-sxm", 64 * 94 * 1.98e9),
        ("h200-nvl", 64 * 94 * 1.785e9),
        ("gh200-96gb", 64 * 96 * 1.98e9),
        ("gh200-144gb", 64 * 96 * 1.98e9),
    ],
)
def test_l2_of_gh100_goes_with_its_memory_controllers(name: str, bytes_per_s: float) -> None:
    found = profile_by_name(name)
    assert found.bandwidth_bytes_per_s["l2"] == pytest.approx(bytes_per_s)
    assert found.l2_bytes in (None, round(found.memory_bus_width_bits / 512) * 5 * 2**20)
