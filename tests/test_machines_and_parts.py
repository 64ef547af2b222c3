"""Kernels on GPUs that share the CPU's memory, on data in other memory, and on a part of a GPU: what limits them is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.constructed_gpus import GPUS
from tests.support.report_writer import write_report

N_BYTES = 2**28
SHARING_MEMORY = ["jetson-agx-orin", "jetson-agx-thor", "gb10"]
BYTES_PER_S = {"jetson-agx-orin": 204.8e9, "jetson-agx-thor": 273e9, "gb10": 273e9}
"""LPDDR5 and LPDDR5X of the data sheets."""

pytestmark = pytest.mark.long

MISS = "lts__t_sectors_srcunit_tex_{}lookup_miss.sum"
FILL, MISSED = "lts__d_sectors_fill_sysmem.sum", "lts__t_sectors_aperture_sysmem_lookup_miss.sum"
STREAMING = {"long_scoreboard": 0.5, "lg_throttle": 0.35}


def copy(gpu: str, bytes_per_s: float, **changes: Any) -> Described:
    """A copy of 256 MiB, 16 bytes per thread, at so many bytes per second, read and written."""
    accesses = Accesses(N_BYTES // 512, 16, bytes_per_thread=16)
    moved = {"dram_read_bytes": N_BYTES, "dram_write_bytes": N_BYTES}
    return Described(
        "copy", 2 * N_BYTES / bytes_per_s * 1e9, gpu=gpu, loads=accesses, stores=accesses, **(moved | changes)
    )


def document(
    folder: Path, description: Described, changed: Mapping[str, float | str | None] | None = None
) -> dict[str, Any]:
    """Return the analysis of one kernel; counters that are changed to None are not there."""
    built = kernel(description)
    metrics = {name: value for name, value in {**built.metrics, **(changed or {})}.items() if value is not None}
    path = folder / "one.ncu-rep"
    path.write_bytes(write_report([replace(built, metrics=metrics)]))
    return ncuroof.read(path).analyse().to_dict()


def analysed(
    folder: Path, description: Described, changed: Mapping[str, float | str | None] | None = None
) -> dict[str, Any]:
    return document(folder, description, changed)["kernels"][0]


# ---- the CPU's memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", SHARING_MEMORY)
def test_a_stream_through_a_shared_memory_is_bound_by_it(gpu: str, tmp_path: Path) -> None:
    one = analysed(tmp_path, copy(gpu, 0.85 * BYTES_PER_S[gpu]))
    assert (one["verdict"], one["limiter"]) == ("memory", "dram")
    assert one["utilisation"]["dram"] == pytest.approx(0.85, rel=2e-3)
    (busy,) = [step for step in one["path"] if step["node"] == "busy_enough"]
    assert busy["value"] == one["utilisation"]["dram"]  # and not L2, which is far from full
    assert "dram_estimated" in one["caveats"]


@pytest.mark.parametrize("gpu", SHARING_MEMORY)
def test_a_shared_memory_that_rests_leaves_the_kernel_waiting(gpu: str, tmp_path: Path) -> None:
    one = analysed(tmp_path, copy(gpu, 0.2 * BYTES_PER_S[gpu]))
    assert (one["verdict"], one["limiter"]) == ("latency", "long_scoreboard")
    assert one["utilisation"]["dram"] == pytest.approx(0.2, rel=2e-3)


def without_misses(gpu: str) -> dict[str, None]:
    """The counters of L2's misses, of which ncu's own set holds none, and those of the memory controllers."""
    sides = [f"mcc__dram_throughput_srcnode_gpu_op_{op}.avg.pct_of_peak_sustained_elapsed" for op in ("read", "write")]
    return dict.fromkeys((FILL, MISSED, *sides))


@pytest.mark.parametrize("gpu", SHARING_MEMORY)
def test_where_nothing_measured_the_shared_memory_no_latency_is_claimed(gpu: str, tmp_path: Path) -> None:
    one = analysed(tmp_path, copy(gpu, 0.85 * BYTES_PER_S[gpu]), without_misses(gpu))
    assert one["utilisation"]["dram"] is None
    assert (one["verdict"], one["confidence"]) == ("unknown", "low")
    assert "memory_not_measured" in one["caveats"]
    (collect,) = [entry["collect"] for entry in one["missing"] if entry["quantity"] == "traffic_bytes.dram"]
    assert collect == f"--metrics {MISSED},{FILL}"


@pytest.mark.parametrize("gpu", SHARING_MEMORY)
def test_idle_slices_of_l2_tell_that_an_unmeasured_memory_idles(gpu: str, tmp_path: Path) -> None:
    # All that goes to memory passes L2, whose throughput is 2 %: 24 times as much is 48 %.
    idle = {"lts__throughput.avg.pct_of_peak_sustained_elapsed": 2.0}
    one = analysed(tmp_path, copy(gpu, 0.02 * BYTES_PER_S[gpu]), {**without_misses(gpu), **idle})
    assert one["verdict"] == "latency"
    assert "memory_not_measured" not in one["caveats"]


def test_reads_alone_do_not_tell_how_busy_a_memory_is_that_is_written_as_well(tmp_path: Path) -> None:
    # Half of the copy's bytes: 42.5 % would look like waiting. That it computes nothing is all there is for a verdict.
    one = analysed(tmp_path, copy("gb10", 0.85 * 273e9), {MISSED: None})
    assert one["utilisation"]["dram"] is None
    assert (one["verdict"], one["limiter"], one["confidence"]) == ("memory", "dram", "low")


@pytest.mark.parametrize("gpu", SHARING_MEMORY)
def test_the_only_memory_there_is_is_no_other_memory(gpu: str, tmp_path: Path) -> None:
    n_missed = 2 * N_BYTES / 32
    all_of_it = {
        MISS.format("aperture_sysmem_"): n_missed,
        MISS.format("aperture_peer_"): 0.0,
        MISS.format(""): n_missed,
    }
    one = analysed(tmp_path, copy(gpu, 0.85 * BYTES_PER_S[gpu]), all_of_it)
    assert one["access"]["remote_miss_frac"] is None
    assert "remote_memory" not in {finding["id"] for finding in one["findings"]}
    assert "remote_traffic" not in one["caveats"]


# ---- memory of the host, and of other GPUs -------------------------------------------------------------------------------------


def zero_copy(folder: Path, link_bytes_per_s: float, *, kind: str = "sysmem", name: str = "copy") -> dict[str, Any]:
    """An H200 that reads 256 MiB over a link at its full rate, and writes as much to its own memory."""
    description = copy("h200-sxm", 2 * link_bytes_per_s, dram_read_bytes=0, stalls=STREAMING)
    others = {"sysmem": "peer", "peer": "sysmem"}
    counters = {MISS.format(f"aperture_{kind}_"): N_BYTES / 32, MISS.format(f"aperture_{others[kind]}_"): 0.0}
    named = replace(description, name=name, demangled=f"{name}(float *, float const *)")
    return analysed(folder, named, {**counters, MISS.format(""): N_BYTES / 32})


@pytest.mark.parametrize(
    ("link_bytes_per_s", "kind"),
    [(12e9, "sysmem"), (25e9, "sysmem"), (53e9, "sysmem"), (25e9, "peer"), (380e9, "peer")],
    ids=["PCIe 3", "PCIe 4", "PCIe 5", "PCIe 4 to a peer", "NVLink"],
)
def test_the_link_is_the_limit_of_what_reads_other_memory(link_bytes_per_s: float, kind: str, tmp_path: Path) -> None:
    one = zero_copy(tmp_path, link_bytes_per_s, kind=kind)
    assert (one["verdict"], one["limiter"]) == ("latency", "remote_memory")
    first = one["findings"][0]
    assert first["id"] == "remote_memory"
    assert first["is_most_worth"]
    # At DRAM's 4.8 TB/s (6144 bit · 2 · 3.125 GHz), read and written, it takes 2 · link rate / 4.8e12 of the time.
    gain = first["gain_ns"] / one["duration_ns"]
    assert gain == pytest.approx(1 - 2 * link_bytes_per_s / 4.8e12, abs=0.03)
    # Queues fill behind a full link: to ask for more, or for less per result, is not what helps.
    assert not {finding["id"] for finding in one["findings"]} & {
        "stall_full_queues", "stall_long_scoreboard", "stall_overlapping_loads", "serial_loads", "stall_lg_throttle",
    }  # fmt: skip
    assert "remote_traffic" in one["caveats"]


@pytest.mark.parametrize("name", ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "two_shot_all_reduce_kernel"])
def test_what_exists_to_move_data_between_gpus_is_not_told_to_keep_it(name: str, tmp_path: Path) -> None:
    one = zero_copy(tmp_path, 380e9, kind="peer", name=name)
    first = one["findings"][0]
    assert (one["limiter"], first["id"], first["gain_ns"]) == ("remote_memory", "remote_transfer", None)
    assert first["advice"].startswith("Send fewer bytes")
    assert "remote_memory" not in {finding["id"] for finding in one["findings"]}


def test_a_few_sectors_of_host_memory_bind_nothing(tmp_path: Path) -> None:
    # Parameters, flags, a result in pinned memory: all that misses, and 64 kB of it, in what 256 MiB from L2 take.
    n_sectors = 2048.0
    few = {MISS.format("aperture_sysmem_"): n_sectors, MISS.format("aperture_peer_"): 0.0, MISS.format(""): n_sectors}
    idle = copy("h200-sxm", 1e12, dram_read_bytes=0, dram_write_bytes=0)
    one = analysed(tmp_path, idle, few)
    assert one["access"]["remote_miss_frac"] == 1
    assert one["access"]["remote_traffic_frac"] == 0
    assert one["limiter"] == "long_scoreboard"
    assert "remote_memory" not in {finding["id"] for finding in one["findings"]}


# ---- parts of a GPU ------------------------------------------------------------------------------------------------------------

SLICE = {"device__attribute_display_name": "NVIDIA H200 MIG 1g.18gb", "device__attribute_multiprocessor_count": 16}


def test_a_slice_has_no_roof_of_the_whole_gpu(tmp_path: Path) -> None:
    one = document(tmp_path, copy("h200-sxm", 0.5e12), {**SLICE, "launch__sm_count": 16})
    assert one["devices"][0]["profile"] == "h200-sxm"
    assert {roof["source"] for roof in one["ceilings"]} == {"counters"}
    assert {roof["source"] for roof in one["instruction_ceilings"]} == {"counters"}
    assert one["kernels"][0]["bandwidth"]["dram"]["datasheet_frac"] is None


def test_the_data_sheet_is_no_peak_of_a_slices_memory(tmp_path: Path) -> None:
    peaks = [
        "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second", "device__attribute_memory_clock_rate",
    ]  # fmt: skip
    without_peak = dict.fromkeys(peaks)
    whole = analysed(tmp_path, copy("h200-sxm", 0.5e12), without_peak)["bandwidth"]["dram"]
    assert (whole["peak_bytes_per_s"], whole["peak_source"]) == (
        4.8e12,
        "datasheet",
    )  # NVIDIA H200 data sheet: 4.8 TB/s
    part = analysed(tmp_path, copy("h200-sxm", 0.5e12), {**SLICE, "launch__sm_count": 16, **without_peak})
    assert part["bandwidth"]["dram"]["peak_bytes_per_s"] is None


def test_sms_that_are_kept_for_others_are_no_imbalance(tmp_path: Path) -> None:
    # 33 of 132 SMs work all the time, the others never: their average is a quarter of their maximum.
    alone = replace(copy("h200-sxm", 0.2e12), active_frac=0.245, sm_imbalance_frac=0.75)
    whole = analysed(tmp_path, alone)
    assert whole["scheduler"]["sm_imbalance_frac"] == pytest.approx(0.75)
    assert "sm_imbalance" in {finding["id"] for finding in whole["findings"]}
    part = analysed(tmp_path, alone, {"launch__sm_count": 33, "launch__uses_green_context": 1})
    assert part["scheduler"]["sm_imbalance_frac"] == pytest.approx(0, abs=1e-9)
    assert part["scheduler"]["own_sm_active_frac"] == pytest.approx(0.98)
    assert "sm_imbalance" not in {finding["id"] for finding in part["findings"]}
    # A quarter of them idle for half of the time: 1 - (0.75 + 0.25 / 2) = 0.125
    uneven = replace(alone, active_frac=0.25 * 0.98 * 0.875, sm_imbalance_frac=1 - 0.25 * 0.875)
    part = analysed(tmp_path, uneven, {"launch__sm_count": 33, "launch__uses_green_context": 1})
    assert part["scheduler"]["sm_imbalance_frac"] == pytest.approx(0.125)


def test_a_slice_that_shares_its_memory_system_is_told_why_nothing_is_known(tmp_path: Path) -> None:
    shared = [
        name
        for name in kernel(copy("h200-sxm", 0.5e12)).metrics
        if name.startswith(("dram__", "lts__", "fbpa__", "gpu__compute_memory", "gpu__dram", "breakdown:gpu__compute"))
    ]
    one = document(tmp_path, copy("h200-sxm", 0.5e12), {**SLICE, "launch__sm_count": 16, **dict.fromkeys(shared)})
    (launch,) = one["kernels"]
    assert launch["verdict"] == "unknown"
    assert {"partial_gpu", "shared_slice"} <= set(launch["caveats"])
    assert not {entry["quantity"] for entry in launch["missing"]} & {"utilisation.memory", "traffic_bytes.dram"}
    reports = ncuroof.read(tmp_path / "one.ncu-rep").analyse()
    reports.write(tmp_path / "one.txt")
    text = " ".join((tmp_path / "one.txt").read_text(encoding="utf-8").split())
    assert "collect --section" not in text
    assert "a MIG compute instance that owns its whole GPU instance" in text


@pytest.mark.parametrize("gpu", list(GPUS))
def test_every_gpu_that_shares_its_memory_is_known_to(gpu: str, tmp_path: Path) -> None:
    path = tmp_path / "one.ncu-rep"
    path.write_bytes(write_report([kernel(copy(gpu, 1e10))]))
    assert ncuroof.read(path).analyse().kernels["device.shares_memory"].to_list() == [float(GPUS[gpu].is_integrated)]
