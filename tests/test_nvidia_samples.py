"""The six sample reports that NVIDIA ships with Nsight Compute (RTX A4500), against numbers read off them by hand.

The samples are NVIDIA's and stay where they are installed. FLOP32, FLOP64, DRAM read + write, L2 sectors from L1TEX × 32, and
global load + store sectors × 32 were computed from the counters with a calculator; verdicts are what the samples are made to teach.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ncuroof
from tests.support.ncu import find_ncu

pytestmark = pytest.mark.oracle

SAMPLES = {
    # name: duration ns, FLOP32, FLOP64, DRAM bytes, L2 bytes, L1 bytes, verdict, limiter, first finding
    "sobelDouble": (
        628_032,
        4.1943e6,
        7.75557e7,
        4_231_808,
        9_390_112,
        50_334_912,
        "compute",
        "fp64",
        "fp64_on_slow_part",
    ),
    "sobelFloat": (31_872, 4.82324e7, 0, 4_265_088, 9_354_368, 50_330_432, "compute", "issue", "instruction_issue"),
    "transposeCoalesced": (
        1_420_832,
        0,
        0,
        534_398_464,
        536_870_912,
        536_870_912,
        "memory",
        "shared",
        "bank_conflicts",
    ),
    "transposeNoBankConflicts": (997_632, 0, 0, 534_363_904, 536_870_912, 536_870_912, "memory", "dram", "dram_roof"),
    "addConstDouble": (89_728, 0, 3_145_728, 47_948_160, 50_331_648, 50_331_648, "memory", "dram", "dram_roof"),
    "addConstDouble3": (89_856, 0, 3_145_728, 48_092_800, 72_161_920, 150_994_944, "memory", "dram", "dram_roof"),
}
ROOFS = {
    # name: FP32 and FP64 peak in GFLOP/s, DRAM peak and achieved in GB/s
    "sobelDouble": (15042, 235.03, 607.25, 6.738),
    "sobelFloat": (13504, 210.99, 602.99, 133.82),
    "transposeCoalesced": (15047, 235.11, 607.46, 376.12),
    "transposeNoBankConflicts": (14934, 233.34, 603.94, 535.63),
    "addConstDouble": (14468, 226.07, 589.97, 534.37),
    "addConstDouble3": (14829, 231.71, 605.81, 535.22),
}

INTENSITIES = {
    # name: FLOP of both precisions per byte at DRAM, L2 and L1; the last two count loads and stores. Of the transposes all are 0.
    "sobelDouble": (19.318, 8.706, 1.6241),
    "sobelFloat": (11.3087, 5.1561, 0.9583),
    "transposeCoalesced": (0, 0, 0),
    "transposeNoBankConflicts": (0, 0, 0),
    "addConstDouble": (0.0656, 0.0625, 0.0625),
    "addConstDouble3": (0.0654, 0.0436, 0.0208),
}
BUSY = {
    # name: SM clock in GHz, then in percent the L2 and L1 hit rates, SM, memory and DRAM throughput, achieved occupancy; waves;
    # bytes that L1 read from L2
    "sobelDouble": (1.0493, 57.636, 81.320, 85.245, 1.973, 1.110, 95.50, 12.19, 9_182_208),
    "sobelFloat": (0.9419, 55.676, 81.433, 77.665, 46.365, 22.193, 83.84, 12.19, 9_116_704),
    "transposeCoalesced": (1.0496, 50.042, 0, 22.60, 90.23, 61.92, 93.89, 195.05, 268_435_456),
    "transposeNoBankConflicts": (1.0417, 50.031, 0, 32.43, 88.69, 88.69, 95.64, 195.05, 268_435_456),
    "addConstDouble": (1.0092, 50.135, 0, 31.02, 90.58, 90.58, 73.53, 36.57, 25_165_824),
    "addConstDouble3": (1.0344, 66.578, 63.66, 30.22, 88.35, 88.35, 76.44, 12.19, 25_173_504),
}


def _folder() -> Path | None:
    ncu = find_ncu()
    for root in ncu.resolve().parents if ncu is not None else ():
        found = next(root.glob("**/instructionMix/sobelFloat.ncu-rep"), None) if (root / "usr").is_dir() else None
        if found is not None:
            return found.parents[1]
    return None


@pytest.fixture(scope="module")
def kernels() -> dict[str, dict[str, Any]]:
    folder = _folder()
    if folder is None:
        pytest.skip("NVIDIA's sample reports are not installed here")
    return {path.stem: ncuroof.read(path).analyse().to_dict()["kernels"][0] for path in folder.glob("*/*.ncu-rep")}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_counts_equal_those_read_by_hand(kernels: dict[str, dict[str, Any]], name: str) -> None:
    kernel = kernels[name]
    duration, flop32, flop64, dram, l2, l1, *_ = SAMPLES[name]
    assert kernel["duration_ns"] == duration
    assert kernel["work"]["fp32"]["flop"] == pytest.approx(flop32, rel=1e-5)
    assert kernel["work"]["fp64"]["flop"] == pytest.approx(flop64, rel=1e-5)
    assert (kernel["traffic_bytes"]["dram"], kernel["traffic_bytes"]["l2"], kernel["traffic_bytes"]["l1"]) == (
        dram,
        l2,
        l1,
    )


@pytest.mark.parametrize("name", list(ROOFS))
def test_roofs_equal_those_of_nsight_compute(kernels: dict[str, dict[str, Any]], name: str) -> None:
    kernel = kernels[name]
    fp32, fp64, dram, achieved = ROOFS[name]
    assert kernel["work"]["fp32"]["peak_flop_per_s"] == pytest.approx(fp32 * 1e9, rel=1e-4)
    assert kernel["work"]["fp64"]["peak_flop_per_s"] == pytest.approx(fp64 * 1e9, rel=1e-4)
    assert kernel["bandwidth"]["dram"]["peak_bytes_per_s"] == pytest.approx(dram * 1e9, rel=1e-4)
    assert kernel["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx(achieved * 1e9, rel=1e-4)


@pytest.mark.parametrize("name", list(INTENSITIES))
def test_intensity_is_work_over_the_traffic_of_both_directions(kernels: dict[str, dict[str, Any]], name: str) -> None:
    # The points of the charts count what L2 and L1 return alone; here is what `work` and `traffic_bytes` give.
    kernel = kernels[name]
    flop = sum(work["flop"] for work in kernel["work"].values())
    found = [flop / kernel["traffic_bytes"][level] for level in ("dram", "l2", "l1")]
    assert found == pytest.approx(INTENSITIES[name], rel=2e-3)  # 0.0208 has the fewest digits


@pytest.mark.parametrize("name", [name for name, intensities in INTENSITIES.items() if any(intensities)])
def test_point_at_dram_has_the_same_intensity(kernels: dict[str, dict[str, Any]], name: str) -> None:
    points = [point for point in kernels[name]["points"] if point["level"] == "dram"]
    total = sum(point["intensity_flop_per_byte"] for point in points)
    assert total == pytest.approx(INTENSITIES[name][0], rel=1e-3)


@pytest.mark.parametrize("name", ["transposeCoalesced", "transposeNoBankConflicts"])
def test_kernel_without_flop_has_no_point(kernels: dict[str, dict[str, Any]], name: str) -> None:
    assert kernels[name]["points"] == []


@pytest.mark.parametrize("name", list(BUSY))
def test_clock_hit_rates_throughputs_and_occupancy_are_those_printed(
    kernels: dict[str, dict[str, Any]], name: str
) -> None:
    kernel = kernels[name]
    access, utilisation, occupancy = kernel["access"], kernel["utilisation"], kernel["occupancy"]
    percents = (
        *(access["l2_hit_frac"], access["l1_hit_frac"]),
        *(utilisation["sm"], utilisation["memory"], utilisation["dram"]),
        occupancy["achieved_frac"],
    )
    clock_ghz, *expected, waves, _ = BUSY[name]
    assert kernel["sm_clock_hz"] / 1e9 == pytest.approx(clock_ghz, abs=6e-5)
    # Half of the last digit printed, which is the second for some.
    assert [100 * share for share in percents] == pytest.approx(expected, abs=5.1e-3)
    assert occupancy["waves"] == pytest.approx(waves, abs=5.1e-3)


@pytest.mark.parametrize("name", list(BUSY))
def test_l2_roof_counts_what_l1_reads_and_the_little_that_others_read(
    kernels: dict[str, dict[str, Any]], name: str
) -> None:
    kernel = kernels[name]
    read = kernel["bandwidth"]["l2"]["bytes_per_s"] * kernel["duration_ns"] / 1e9
    # L2 returns constants and instructions as well, which L1TEX does not see: 0.05 to 1.7 % in these samples.
    assert 1 <= read / BUSY[name][-1] < 1.02
    assert read / 32 == pytest.approx(round(read / 32), abs=1e-3)


def test_fp64_of_a_sample_is_at_half_its_roof_where_the_busiest_unit_says_85_percent(
    kernels: dict[str, dict[str, Any]],
) -> None:
    # 123.49 of 235.03 GFLOP/s
    assert kernels["sobelDouble"]["work"]["fp64"]["frac"] == pytest.approx(123.49 / 235.03, rel=1e-4)
    assert kernels["sobelDouble"]["utilisation"]["sm"] > 0.85


def test_bank_conflicts_of_a_sample_are_those_of_its_code(kernels: dict[str, dict[str, Any]]) -> None:
    # A tile of 32 × 32 floats without padding is written by rows and read by columns: 1 wavefront and 32 for every pair of a store
    # and a load that need 1 each, so 31 of 33 are too many. NVIDIA's counters say 65 011 712 conflicts of 67 446 928
    # wavefronts of loads and 2 097 152 of stores; of all wavefronts, reads of special registers included, they would be 92 %.
    kernel = kernels["transposeCoalesced"]
    assert kernel["access"]["bank_conflict_frac"] == pytest.approx(31 / 33)
    assert kernel["access"]["shared_wavefronts"] == 67_446_928 + 2_097_152
    padded = kernels["transposeNoBankConflicts"]
    assert padded["access"]["bank_conflict_frac"] == 0
    # 524 288 warps load and store four rows each: 4 194 304 wavefronts, and 0.04 % of arbitration. All wavefronts are 5 310 084.
    assert padded["traffic_bytes"]["shared"] == 128 * (2_098_898 + 2_097_152)
    assert padded["traffic_bytes"]["shared"] == pytest.approx(128 * 4_194_304, rel=5e-4)


@pytest.mark.parametrize("name", list(SAMPLES))
def test_samples_are_diagnosed_as_what_they_teach(kernels: dict[str, dict[str, Any]], name: str) -> None:
    kernel = kernels[name]
    assert (kernel["verdict"], kernel["limiter"], kernel["findings"][0]["id"]) == SAMPLES[name][6:]
