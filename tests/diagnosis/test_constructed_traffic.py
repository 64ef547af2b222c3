"""What traffic between L1, L2 and DRAM tells, in kernels that are constructed from what they physically do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.reading import Reports
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import counters
from tests.support.judged import MORE, gains, judged
from tests.support.raw import raw_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


# ---- sectors that are taken in parts ----------------------------------------------------------------------------------------

# Two loads of 16 bytes take a sector each: the second finds it in L1. 268 MB in 150 µs are 37 % of an H200's DRAM.
HALVES = Described(
    "halves",
    150_000,
    loads=Accesses(2**19, 32, bytes_per_sector=16, bytes_per_thread=16, hit_frac=0.5),
    dram_read_bytes=2**28,
    stalls={"long_scoreboard": 0.6},
)


def test_the_half_of_a_sector_that_the_next_load_takes_from_l1_is_no_waste() -> None:
    kernel = judged(HALVES)
    assert kernel["verdict"] == "latency"
    assert "uncoalesced_global_load" not in gains(kernel)
    # without L1's hits the same halves are fetched twice
    fetched = replace(HALVES, loads=replace(HALVES.loads, hit_frac=0.0))
    assert "uncoalesced_global_load" in gains(judged(fetched))


def test_halves_of_sectors_count_where_l1_or_its_queue_is_full() -> None:
    assert "uncoalesced_global_load" in gains(judged(replace(HALVES, stalls={"lg_throttle": 0.6})))
    full = replace(HALVES, busy={"l1tex__data_pipe_lsu_wavefronts": 0.7})
    assert "uncoalesced_global_load" in gains(judged(full))


# ---- stores that go to L2 ---------------------------------------------------------------------------------------------------

# A fill: 268 MB in 100 µs, whose way to L2 is busy and whose way back is not.
FILL = Described(
    "fill",
    100_000,
    stores=Accesses(2**19, 16, bytes_per_thread=16),
    dram_write_bytes=2**28,
    stalls={"lg_throttle": 0.1},
)
SENT = {"to_l2_percent": 70.0, "from_l2_percent": 5.0}
TO_L2 = {"l2_stores", "coalesced_l2_stores"}


def test_coalesced_stores_are_not_told_to_coalesce() -> None:
    assert TO_L2 & set(gains(judged(FILL, **SENT))) == {"coalesced_l2_stores"}
    scattered = replace(FILL, stores=replace(FILL.stores, bytes_per_sector=4))
    assert TO_L2 & set(gains(judged(scattered, **SENT))) == {"l2_stores"}


def test_stores_of_which_the_share_of_a_sector_is_not_known_get_the_advice_for_both() -> None:
    unknown = {name: value for name, value in counters(FILL).items() if "data_bytes_per_sector" not in name}
    report = raw_report(unknown | {MORE[name]: value for name, value in SENT.items()}, names=["fill"])
    kernel = Reports((report,)).analyse().to_dict()["kernels"][0]
    assert TO_L2 & set(gains(kernel)) == {"l2_stores"}
    (finding,) = [finding for finding in kernel["findings"] if finding["id"] == "l2_stores"]
    assert "coalesced already" in finding["advice"]


def test_spills_and_atomics_that_go_to_l2_are_not_told_as_stores() -> None:
    spilling = replace(FILL, stores=Accesses(), local_stores=FILL.stores, local_loads=FILL.stores)
    assert not TO_L2 & set(gains(judged(spilling, **SENT)))
    mixed = {"atomics": 0.0, "loads": 0.0, "stores": 2.0**19} | SENT
    assert not TO_L2 & set(gains(judged(FILL, reductions=2.0**21, **mixed)))
    assert TO_L2 & set(gains(judged(FILL, reductions=2.0**17, **mixed)))


# ---- few warps on purpose ---------------------------------------------------------------------------------------------------

# A product with a producer and two groups of consumers: 384 threads of 168 registers, of which one block fits on an SM.
WARP_GROUPS = Described(
    "product",
    1_000_000,
    block=(384, 1, 1),
    registers=168,
    warp_instructions=2e7,
    tma_load_bytes=2**28,
    dram_read_bytes=2**28,
    stalls={"long_scoreboard": 0.6},
)


def test_a_kernel_that_lives_on_bulk_copies_has_as_few_warps_as_it_wants() -> None:
    found = gains(judged(WARP_GROUPS, bulk_load_bytes=2.0**28))
    assert "low_occupancy" not in found
    assert "stall_bulk_copies" in found
    by_loads = replace(WARP_GROUPS, tma_load_bytes=0, loads=Accesses(2**19, 16, bytes_per_thread=16))
    assert "low_occupancy" in gains(judged(by_loads))


@pytest.mark.parametrize(
    "name",
    [
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_3_64x128x128_kernel0_0",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::KernelTmaWarpSpecialized>>(T1)",
    ],
)
def test_names_tell_warp_groups_where_copies_were_not_counted(name: str) -> None:
    uncounted = {key: value for key, value in counters(WARP_GROUPS).items() if "tma" not in key}
    (named, other) = (
        Reports((raw_report(uncounted, names=[name]), raw_report(uncounted, names=["mine"])))
        .analyse()
        .to_dict()["kernels"]
    )
    assert "low_occupancy" not in gains(named)
    assert "low_occupancy" in gains(other)
