"""Reports written from described kernels: what goes in as physics comes out as canonical quantities, on every architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ncuroof
from tests.support.constructed import Accesses, Described, Shared
from tests.support.constructed_counters import GROUPS, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.report_writer import write_report

FP64, FP32, FP16 = (1e6, 2e6, 3e6), (4e8, 5e8, 6e8), (7e6, 8e6, 9e6)
DRAM_READ, DRAM_WRITE = 2**24, 2**20
DURATION_NS = 1_000_000
TENSOR = {
    "t4": ("src_fp16_bf16_tf32_dst_fp32", "tensor_fp16"),
    "a100-sxm-80gb": ("src_bf16_dst_fp32_sparsity_off", "tensor_bf16"),
    "rtx-4090": ("src_fp8_sparsity_on", "tensor_fp8_sparse"),
    "h200-sxm": ("op_hmma_src_tf32_dst_fp32_sparsity_off", "tensor_tf32"),
    "rtx-5090": ("op_hmma_src_bf16_dst_fp32_sparsity_off", "tensor_bf16"),
}


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
        tensor={TENSOR[gpu][0]: 1e10} if gpu in TENSOR else {},
        stalls={"long_scoreboard": 0.4, "not_selected": 0.1},
    )


def analysed(path: Path, description: Described, without: tuple[str, ...] = ()) -> dict[str, Any]:
    path.write_bytes(write_report([kernel(description, without=without)]))
    return ncuroof.read(path).analyse().to_dict()["kernels"][0]


@pytest.fixture(params=list(GPUS))
def gpu(request: pytest.FixtureRequest) -> str:
    return request.param


def test_work_is_what_was_done(gpu: str, tmp_path: Path) -> None:
    work = analysed(tmp_path / "one.ncu-rep", described(gpu))["work"]
    # add + mul + 2·fma; halves are packed in twos: 2·add + 2·mul + 4·fma
    assert work["fp64"]["flop"] == pytest.approx(1e6 + 2e6 + 2 * 3e6)
    assert work["fp32"]["flop"] == pytest.approx(4e8 + 5e8 + 2 * 6e8)
    assert work["fp16"]["flop"] == pytest.approx(2 * 7e6 + 2 * 8e6 + 4 * 9e6)
    if gpu in TENSOR:
        assert work[TENSOR[gpu][1]]["flop"] == pytest.approx(1e10)
        assert work[TENSOR[gpu][1]]["reliable"]


def test_traffic_is_what_was_moved(gpu: str, tmp_path: Path) -> None:
    one = analysed(tmp_path / "one.ncu-rep", described(gpu))
    assert one["traffic_bytes"]["dram_read"] == DRAM_READ
    assert one["traffic_bytes"]["dram_write"] == DRAM_WRITE
    # global loads 200 000 · 8, stores 50 000 · 4, local loads 10 000 · 4 sectors of 32 byte
    assert one["traffic_bytes"]["l1"] == 32 * (1_600_000 + 200_000 + 40_000)
    # what L1 does not hold: 75 % of the loads, half of the local loads, every store
    assert one["traffic_bytes"]["l2"] == pytest.approx(32 * (0.75 * 1_600_000 + 0.5 * 40_000 + 200_000))
    # a conflict of three ways takes three wavefronts: 100 000 · 3 + 100 000
    assert one["traffic_bytes"]["shared"] == 128 * 400_000
    assert one["bandwidth"]["dram"]["bytes_per_s"] == pytest.approx((DRAM_READ + DRAM_WRITE) / 1e-3)


def test_access_patterns_are_those_described(gpu: str, tmp_path: Path) -> None:
    access = analysed(tmp_path / "one.ncu-rep", described(gpu))["access"]
    if gpu != "v100-sxm2":  # NVIDIA's module gives this chip's ratio in byte/byte, a unit whose scale is not known
        assert access["load_bytes_per_sector"] == pytest.approx(24)
        assert access["store_bytes_per_sector"] == pytest.approx(32)
    assert access["load_sectors_per_request"] == pytest.approx(8)
    assert access["local_bytes"] == 32 * 40_000
    # 400 000 wavefronts where 200 000 would do
    assert access["bank_conflict_frac"] == pytest.approx(0.5)


def test_stalls_and_intensity_follow(gpu: str, tmp_path: Path) -> None:
    one = analysed(tmp_path / "one.ncu-rep", described(gpu))
    assert one["stalls"]["long_scoreboard"] == pytest.approx(0.4)
    (point,) = [each for each in one["points"] if (each["level"], each["precision"]) == ("dram", "fp32")]
    assert point["intensity_flop_per_byte"] == pytest.approx(2.1e9 / (DRAM_READ + DRAM_WRITE))


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
