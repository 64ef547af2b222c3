"""Reports written from described kernels: what goes in as physics comes out as canonical quantities, on every architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from tests.support.constructed import Accesses, Described, Shared
from tests.support.constructed_counters import GROUPS, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.report_writer import write_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


FP64, FP32, FP16 = (1e6, 2e6, 3e6), (4e8, 5e8, 6e8), (7e6, 8e6, 9e6)
FP32_PACKED = (1e7, 2e7, 3e7)
DRAM_READ, DRAM_WRITE = 2**24, 2**20
DURATION_NS = 1_000_000
Variant = Callable[..., dict[str, Any]]


def described(gpu: str) -> Described:
    return Described(
        "everything",
        DURATION_NS,
        gpu=gpu,
        loads=Accesses(200_000, 8, 24, 6, hit_frac=0.25),
        stores=Accesses(50_000, 4),
        local_loads=Accesses(10_000, 4, hit_frac=0.5),
        shared_loads=Shared(100_000, conflict_ways=3),
        shared_stores=Shared(100_000),
        dram_read_bytes=DRAM_READ,
        dram_write_bytes=DRAM_WRITE,
        fp64=FP64,
        fp32=FP32,
        fp16=FP16,
        stalls={"long_scoreboard": 0.4, "not_selected": 0.1},
    )


def variants(gpu: str) -> dict[str, Described]:
    """Return kernels of a GPU, by what is special of each; the one called "everything" uses all units but the tensor cores."""
    everything, none = described(gpu), dict.fromkeys(("fp64", "fp32", "fp16"), (0, 0, 0))
    one_precision = {kind: replace(everything, **{**none, kind: (1e6, 2e6, 3e6)}) for kind in none}
    return {
        "everything": everything,
        "tensor": replace(everything, tensor={next(iter(GPUS[gpu].tensor_operations)): 1e10}),
        "slow": replace(everything, sm_clock_hz=0.9 * GPUS[gpu].sm_clock_hz),
        **one_precision,
    }


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Return the document of a GPU's variants, which stand in one report."""

    @cache
    def of_gpu(gpu: str) -> dict[str, Any]:
        path = tmp_path_factory.mktemp("constructed") / "variants.ncu-rep"
        path.write_bytes(write_report([kernel(each) for each in variants(gpu).values()]))
        return ncuroof.read(path).analyse().to_dict()

    return of_gpu


@pytest.fixture(scope="module")
def variant(documents: Callable[[str], dict[str, Any]]) -> Variant:
    """Return the diagnosis of one of a GPU's variants."""

    def of_gpu(gpu: str, name: str = "everything") -> dict[str, Any]:
        return dict(zip(variants(gpu), documents(gpu)["kernels"], strict=True))[name]

    return of_gpu


def analysed(path: Path, description: Described, without: tuple[str, ...] = ()) -> dict[str, Any]:
    path.write_bytes(write_report([kernel(description, without=without)]))
    return ncuroof.read(path).analyse().to_dict()["kernels"][0]


@pytest.fixture(params=list(GPUS))
def gpu(request: pytest.FixtureRequest) -> str:
    return request.param


def test_work_is_what_was_done(gpu: str, variant: Variant) -> None:
    work = variant(gpu, "tensor")["work"]
    # add + mul + 2·fma; halves are packed in twos: 2·add + 2·mul + 4·fma
    assert work["fp64"]["flop"] == pytest.approx(1e6 + 2e6 + 2 * 3e6)
    assert work["fp32"]["flop"] == pytest.approx(4e8 + 5e8 + 2 * 6e8)
    assert work["fp16"]["flop"] == pytest.approx(2 * 7e6 + 2 * 8e6 + 4 * 9e6)
    # Which precision that is, test_known_tensor_work tells.
    assert sum(entry["flop"] for name, entry in work.items() if name.startswith("tensor")) == pytest.approx(1e10)


@pytest.mark.parametrize("kind", ["fp64", "fp32", "fp16"])
def test_work_of_a_precision_counts_there_alone(gpu: str, kind: str, variant: Variant) -> None:
    work = variant(gpu, kind)["work"]
    # 1e6 + 2e6 + 2·3e6, and twice that in packed halves
    flop = 18e6 if kind == "fp16" else 9e6
    assert {name: entry["flop"] for name, entry in work.items() if entry["flop"]} == pytest.approx({kind: flop})


def test_roofs_are_those_of_fma_at_the_measured_clock(gpu: str, variant: Variant) -> None:
    part = GPUS[gpu]
    work = variant(gpu, "slow")["work"]
    per_clock = part.n_sms * 0.9 * part.sm_clock_hz
    assert work["fp64"]["peak_flop_per_s"] == pytest.approx(2 * part.dfma_threads * per_clock)
    assert work["fp32"]["peak_flop_per_s"] == pytest.approx(2 * part.ffma_threads * per_clock)
    assert work["fp16"]["peak_flop_per_s"] == pytest.approx(4 * part.hfma_threads * per_clock)


@pytest.mark.parametrize("gpu", [gpu.id for gpu in GPUS.values() if gpu.capability >= (10, 0)])
@pytest.mark.parametrize("scalar", [FP32, (0, 0, 0)])
def test_packed_fp32_adds_two_lanes_to_the_rest(gpu: str, scalar: tuple[float, ...], tmp_path: Path) -> None:
    both = replace(described(gpu), fp32=scalar, fp32_packed=FP32_PACKED)
    work = analysed(tmp_path / "one.ncu-rep", both)["work"]
    add, mul, fma = scalar
    # 2·fadd2 + 2·fmul2 + 4·ffma2
    assert work["fp32"]["flop"] == pytest.approx(add + mul + 2 * fma + 2 * 1e7 + 2 * 2e7 + 4 * 3e7)


def test_the_data_sheet_is_found(gpu: str, documents: Callable[[str], dict[str, Any]]) -> None:
    (device,) = documents(gpu)["devices"]
    assert device["profile"] == gpu
    major, minor = GPUS[gpu].capability
    assert device["compute_capability"] == f"{major}.{minor}"


def test_traffic_is_what_was_moved(gpu: str, variant: Variant) -> None:
    one = variant(gpu)
    # global loads 200 000 · 8, stores 50 000 · 4, local loads 10 000 · 4 sectors of 32 byte
    assert one["traffic_bytes"]["l1"] == 32 * (1_600_000 + 200_000 + 40_000)
    # what L1 does not hold: 75 % of the loads, half of the local loads, every store
    assert one["traffic_bytes"]["l2"] == pytest.approx(32 * (0.75 * 1_600_000 + 0.5 * 40_000 + 200_000))
    # a conflict of three ways takes three wavefronts: 100 000 · 3 + 100 000
    assert one["traffic_bytes"]["shared"] == 128 * 400_000


def test_dram_traffic_is_what_was_moved(gpu: str, variant: Variant) -> None:
    one = variant(gpu)
    assert one["traffic_bytes"]["dram_read"] == DRAM_READ
    assert one["traffic_bytes"]["dram_write"] == DRAM_WRITE
    assert one["traffic_bytes"]["dram"] == DRAM_READ + DRAM_WRITE
    assert one["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx((DRAM_READ + DRAM_WRITE) / 1e-3)


def test_integrated_parts_are_told_to_be_estimated_and_have_the_roof_of_their_data_sheet(variant: Variant) -> None:
    one = variant("jetson-agx-orin")
    dram = one["bandwidth"]["dram"]
    # NVIDIA Jetson AGX Orin Series Technical Brief: 204.8 GB/s
    assert (dram["peak_bytes_per_s"], dram["peak_source"], dram["reliable"]) == (204.8e9, "datasheet", False)
    assert {"dram_estimated", "datasheet_peak"} <= set(one["caveats"])


def test_intensity_at_dram_is_work_over_traffic(gpu: str, variant: Variant) -> None:
    one = variant(gpu)
    (point,) = [each for each in one["points"] if (each["level"], each["precision"]) == ("dram", "fp32")]
    assert point["intensity_flop_per_byte"] == pytest.approx(2.1e9 / (DRAM_READ + DRAM_WRITE))


def test_access_patterns_are_those_described(gpu: str, variant: Variant) -> None:
    access = variant(gpu)["access"]
    if gpu != "v100-sxm2":  # NVIDIA's module gives this chip's ratio in byte/byte, a unit whose scale is not known
        assert access["load_bytes_per_sector"] == pytest.approx(24)
        assert access["store_bytes_per_sector"] == pytest.approx(32)
    assert access["load_sectors_per_request"] == pytest.approx(8)
    assert access["local_bytes"] == 32 * 40_000
    # 400 000 wavefronts where 200 000 would do
    assert access["bank_conflict_frac"] == pytest.approx(0.5)


def test_stalls_follow(gpu: str, variant: Variant) -> None:
    one = variant(gpu)
    assert one["stalls"]["long_scoreboard"] == pytest.approx(0.4)
    assert sum(one["stalls"].values()) == pytest.approx(1)


@pytest.mark.parametrize("group", [group for group in GROUPS if group not in ("device", "launch")])
def test_a_group_of_counters_that_is_absent_breaks_nothing(group: str, tmp_path: Path) -> None:
    one = analysed(tmp_path / "one.ncu-rep", described("h200-sxm"), without=(group,))
    assert one["verdict"] in ("memory", "compute", "balanced", "latency", "unknown")
    if group == "speed_of_light":
        assert one["confidence"] != "high"


def test_with_launch_data_alone_the_verdict_is_unknown_and_says_what_to_collect(tmp_path: Path) -> None:
    absent = tuple(group for group in GROUPS if group not in ("device", "launch"))
    one = analysed(tmp_path / "one.ncu-rep", described("h200-sxm"), without=absent)
    assert one["verdict"] == "unknown"
    assert not one["failed"]
    assert one["occupancy"]["waves"] is not None
    assert "--section SpeedOfLight" in {entry["collect"] for entry in one["missing"]}


@pytest.mark.parametrize("kind", ["range", "graph", "cmdlist"])
def test_other_workloads_than_kernels_are_counted_alike(kind: str, tmp_path: Path) -> None:
    description = described("h200-sxm")
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(write_report([kernel(description), replace(kernel(description), kind=kind)]))
    document = ncuroof.read(path).analyse().to_dict()
    one, other = document["kernels"]
    assert (one["workload"], other["workload"]) == ("kernel", kind)
    for block in ("work", "bandwidth", "traffic_bytes", "points"):
        assert other[block] == one[block]
    assert other["utilisation"] == one["utilisation"] | {
        "most_possible": None
    }  # that is known from the grid, and they have many
    assert "non_kernel_workload" in other["caveats"]
    assert document["summary"]["duration_ns"] == pytest.approx(2 * DURATION_NS)


def test_gpus_of_one_report_each_have_their_own_roofs(tmp_path: Path) -> None:
    first, second = (kernel(described(gpu)) for gpu in ("a100-sxm-80gb", "t4"))
    second = replace(second, metrics={**second.metrics, "launch__device_id": 1})
    path = tmp_path / "two.ncu-rep"
    path.write_bytes(write_report([first, second, first]))
    document = ncuroof.read(path).analyse().to_dict()
    assert [device["profile"] for device in document["devices"]] == ["a100-sxm-80gb", "t4"]
    assert [entry["device"] for entry in document["kernels"]] == [0, 1, 0]
    # 108 SMs · 64 FMAs · 2 · 1.41 GHz, and 40 SMs · 64 · 2 · 1.59 GHz
    peaks = [entry["work"]["fp32"]["peak_flop_per_s"] for entry in document["kernels"]]
    assert peaks == pytest.approx([19.49e12, 8.14e12, 19.49e12], rel=1e-3)
    fp32 = {
        roof["device"]: roof["per_s"]
        for roof in document["ceilings"]
        if roof["name"] == "fp32" and roof["source"] == "counters"
    }
    assert fp32 == pytest.approx({0: 19.49e12, 1: 8.14e12}, rel=1e-3)
