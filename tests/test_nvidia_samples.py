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


@pytest.mark.parametrize("name", list(SAMPLES))
def test_samples_are_diagnosed_as_what_they_teach(kernels: dict[str, dict[str, Any]], name: str) -> None:
    kernel = kernels[name]
    assert (kernel["verdict"], kernel["limiter"], kernel["findings"][0]["id"]) == SAMPLES[name][6:]
