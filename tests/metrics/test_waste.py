"""Bytes that were moved and no thread asked for, by hand, at the levels of memory where they land."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from tests.support.raw import raw_report

# 400 sectors of loads, of which threads use 8 bytes each, and 100 of stores with 16: 3200 and 1600 bytes. L2 was asked for 250
# sectors of loads, 8000 bytes, and given 100 of stores, 3200: 4800 and 1600 bytes in vain, of 16 000 that passed.
COUNTERS = {
    "gpu__time_duration.sum": 1e6,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 8.0,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 16.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 400.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 100.0,
    "lts__t_sectors_srcunit_tex.sum": 500.0,
    "lts__t_sectors_srcunit_tex_op_read.sum": 250.0,
    "lts__t_sectors_srcunit_tex_op_write.sum": 100.0,
}


@pytest.mark.parametrize(
    ("excess_sectors", "loads", "stores"),
    [
        (None, 4800, 1600),
        (200.0, 4800, 1600),  # 6400 bytes beyond coalesced accesses bound neither
        (100.0, 3200, 1600),  # 3200 bytes do: the rest was brought in for another use
        (25.0, 800, 800),
        (0.0, 0, 0),
    ],
)
def test_waste_in_l2_is_what_no_thread_used_and_no_more_than_the_excess_sectors(
    excess_sectors: float | None, loads: float, stores: float
) -> None:
    ideal = "memory_l2_theoretical_sectors_global_ideal"
    excess = {} if excess_sectors is None else {ideal: 300.0, ideal.removesuffix("_ideal"): 300.0 + excess_sectors}
    row = measure([raw_report(COUNTERS | excess)]).kernels.row(0, named=True)
    found = row["access.l2_load_waste_frac"], row["access.l2_store_waste_frac"]
    assert found == pytest.approx((loads / 16_000, stores / 16_000))


@pytest.mark.parametrize(
    ("excess_sectors", "l2", "dram", "dram_loads"),
    [
        # 16 000 bytes passed L2 and 10 000 DRAM, 6000 of them read; coalesced accesses of 300 sectors ask for 9600
        (None, None, None, 2800),
        (300.0, 6400, 400, 2800),
        (100.0, 3200, 400, 2800),
        (10.0, 320, 320, 320),
    ],
)
def test_excess_is_what_passed_beyond_coalesced_accesses(
    excess_sectors: float | None, l2: float | None, dram: float | None, dram_loads: float
) -> None:
    ideal = "memory_l2_theoretical_sectors_global_ideal"
    excess = {} if excess_sectors is None else {ideal: 300.0, ideal.removesuffix("_ideal"): 300.0 + excess_sectors}
    moved = {"dram__bytes_read.sum": 6000.0, "dram__bytes_write.sum": 4000.0}
    row = measure([raw_report(COUNTERS | excess | moved)]).kernels.row(0, named=True)
    assert row["access.l2_excess_frac"] == (None if l2 is None else pytest.approx(l2 / 16_000))
    assert row["access.dram_excess_frac"] == (None if dram is None else pytest.approx(dram / 10_000))
    assert row["access.dram_load_waste_frac"] == pytest.approx(dram_loads / 10_000)
