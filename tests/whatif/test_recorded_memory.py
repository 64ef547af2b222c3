"""The memory that a GPU was recorded with, where its data sheet is of another card of its name."""

from __future__ import annotations

import pytest

import ncuroof
from ncuroof.present.page.whatif import targets
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import RESOURCES, Target, project, recorded_dram, with_recorded_dram
from tests.support.raw import raw_report
from tests.whatif.launches import launch, table

RTX_3060_TI = profile_by_name("rtx-3060-ti")  # GDDR6, 448 GB/s; the one with GDDR6X: 2 · 9501 MHz · 256 bit / 8 = 608
RTX_4090 = Target(profile_by_name("rtx-4090"))  # 1008 GB/s
COPY = launch(dram=0.9, sm=0.1) | {"sm_count": 38.0, "n_blocks": 3800.0, "recorded_n_blocks": 3800.0}


def test_a_copy_takes_its_bytes_over_the_other_bandwidth() -> None:
    profiles = with_recorded_dram({0: RTX_3060_TI}, {0: 608e9})
    (found,) = project(table(COPY), profiles, [RTX_4090]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 * 608 / 1008)  # at 0.9 of its 1008 GB/s, and not at 1.2
    # peaks other than DRAM's are the sheet's, and the sheet is as it was
    assert profiles[0].bandwidth_bytes_per_s["l1"] == RTX_3060_TI.bandwidth_bytes_per_s["l1"]
    assert RTX_3060_TI.bandwidth_bytes_per_s["dram"] == 448e9


def test_without_a_recorded_peak_the_sheet_counts() -> None:
    for recorded in ({}, {0: None}):
        profiles = with_recorded_dram({0: RTX_3060_TI, 1: None}, recorded)
        assert profiles == {0: RTX_3060_TI, 1: None}
    (found,) = project(table(COPY), profiles, [RTX_4090]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 * 448 / 1008)


def test_the_data_sheet_decides_on_a_bus_that_drivers_disagree_about() -> None:
    b200 = profile_by_name("b200")  # 7.7 TB/s; 8192 bit at 3996 MHz by older drivers, 8.2 TB/s
    assert with_recorded_dram({0: b200}, {0: 8.184e12}) == {0: b200}


def test_a_card_whose_sheet_leaves_the_memory_open_is_projected_by_the_recorded_one() -> None:
    gtx_1650 = profile_by_name("gtx-1650")  # sold with 128 and 192 GB/s
    row = COPY | {"sm_count": 14.0}
    (found,) = project(table(row), {0: gtx_1650}, [RTX_4090]).to_dicts()
    assert found["reason"] == "the data sheets do not state the peak of dram"
    (found,) = project(table(row), with_recorded_dram({0: gtx_1650}, {0: 192e9}), [RTX_4090]).to_dicts()
    assert found["duration_ns"] == pytest.approx(1e5 * 192 / 1008)


@pytest.mark.parametrize("recorded", [608e9, 400e9])
def test_the_same_card_is_the_same_whatever_its_memory(recorded: float) -> None:
    profiles = with_recorded_dram({0: RTX_3060_TI}, {0: recorded})
    for target in (Target(), Target(RTX_3060_TI)):
        (found,) = project(table(COPY), profiles, [target]).to_dicts()
        assert found["duration_ns"] == found["least_ns"] == found["most_ns"] == pytest.approx(1e5)


@pytest.mark.long
def test_the_memory_clock_of_the_driver_counts_and_not_the_measured_one() -> None:
    # 2 · 9501 MHz · 256 bit / 8 = 608.064 GB/s by the driver; counted at 9251 MHz, as GeForce cards run kernels
    kernel = {
        "device__attribute_display_name": "NVIDIA GeForce RTX 3060 Ti",
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 6.0,
        "device__attribute_multiprocessor_count": 38.0,
        "device__attribute_global_memory_bus_width": 256.0,
        "device__attribute_memory_clock_rate": 9501e3,
        "gpu__time_duration.sum": 1e6,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
        "dram__bytes.sum.peak_sustained": 64.0,
        "dram__bytes.sum.per_second": 0.9 * 64 * 9251e6,
        "dram__cycles_elapsed.avg.per_second": 9251e6,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 10.0,
        "sm__inst_issued.avg.pct_of_peak_sustained_elapsed": 10.0,
    }
    analysis = ncuroof.Reports([raw_report(kernel)]).analyse()
    assert recorded_dram(analysis.kernels) == {0: pytest.approx(608.064e9)}
    found = analysis.whatif("rtx-4090").row(0, named=True)
    # the same fraction of the roof, the shorter of the two hypotheses
    assert found["least_ns"] == pytest.approx(1e6 * 608.064 / 1008, rel=1e-6)
    # the page goes by the same ratio
    document = analysis.to_dict()
    assert document["devices"][0]["dram_bytes_per_s"] == pytest.approx(608.064e9)
    data = targets(document)
    (rows,) = data["ratios"].values()
    row = rows[1 + data["gpus"].index("rtx-4090")]  # the first is for the same GPU
    assert row[RESOURCES.index("dram")] == pytest.approx(608.064 / 1008, rel=1e-4)
