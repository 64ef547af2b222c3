"""Bytes and roof traffic of every level, by each formula of the catalogue, worked by hand: roofs and dots rest on them."""

from __future__ import annotations

import polars as pl
import pytest

from tests.support.by_hand import ELAPSED, HALF_ACTIVE, ByHand, Counters, chip, each_row_holds, measured

NS = {"gpu__time_duration.sum": 2000.0}
READ, WRITTEN, MOVED = "dram__bytes_read.sum", "dram__bytes_write.sum", "dram__bytes.sum"
DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"
FILLS, MISSES = "lts__d_sectors_fill_{}.sum", "lts__t_sectors_aperture_{}_lookup_miss.sum"
SMS = "lts__t_sectors_srcunit_tex.sum"
LD, ST = "l1tex__t_sectors_pipe_lsu_mem_{}_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_{}_op_st.sum"
FROM_L2, TO_L2 = "l1tex__m_xbar2l1tex_read_bytes.sum", "l1tex__m_l1tex2xbar_write_bytes.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
STATIC, DYNAMIC = "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"
BY_KIND = {f"{WAVEFRONTS}_op_ld.sum": 11.0, f"{WAVEFRONTS}_op_st.sum": 13.0, f"{WAVEFRONTS}_op_atom.sum": 17.0}
LDGSTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
CHARTLESS_DRAM = {f"dram__cycles_active{ELAPSED}": 25.0, "dram__bytes.sum.peak_sustained": 96.0, DRAM_CLOCK: 5e9}
CHARTLESS_L2 = {f"lts__lts2xbar_cycles_active{ELAPSED}": 25.0, "lts__cycles_elapsed.sum": 7000.0, **chip(89)}
L1_PEAK = {
    "launch__sm_count": 66.0,
    "device__attribute_multiprocessor_count": 132.0,
    "sm__cycles_elapsed.avg.per_second": 1.5e9,
}

ROWS: list[ByHand] = [
    ("traffic_bytes.dram_read", {READ: 7, "dram__bytes_op_read.sum": 5}, 7),
    ("traffic_bytes.dram_read", {"dram__bytes_op_read.sum": 5, "dram__sectors_read.sum": 1}, 5),
    ("traffic_bytes.dram_read", {"dram__sectors_read.sum": 3, "fbpa__dram_read_bytes.sum": 1}, 96),
    ("traffic_bytes.dram_read", {"fbpa__dram_read_bytes.sum": 11}, 11),
    # 3 GB/s for 2 µs
    ("traffic_bytes.dram_read", {"dram__bytes_read.sum.per_second": 3e9, "dram__read_bytes": 1, **NS}, 6000),
    ("traffic_bytes.dram_read", {"dram__read_bytes": 13}, 13),
    ("traffic_bytes.dram_write", {WRITTEN: 7, "dram__bytes_op_write.sum": 5}, 7),
    ("traffic_bytes.dram_write", {"dram__bytes_op_write.sum": 5, "dram__sectors_write.sum": 1}, 5),
    ("traffic_bytes.dram_write", {"dram__sectors_write.sum": 3, "fbpa__dram_write_bytes.sum": 1}, 96),
    ("traffic_bytes.dram_write", {"fbpa__dram_write_bytes.sum": 11}, 11),
    ("traffic_bytes.dram_write", {"dram__bytes_write.sum.per_second": 3e9, "dram__write_bytes": 1, **NS}, 6000),
    ("traffic_bytes.dram_write", {"dram__write_bytes": 13}, 13),
    # chips that share the CPU's memory: 7 + 5 sectors filled, 11 + 6 missed, so that 5 were written
    *(
        (f"traffic_bytes.{name}", {**chip(each), FILLS.format("sysmem"): 7, FILLS.format("device"): 5,
                                   MISSES.format("sysmem"): 11, MISSES.format("device"): 6}, n_bytes)
        for each in (72, 87, 110, 121)
        for name, n_bytes in (("dram_read", 384), ("dram_write", 160), ("dram", 544))
    ),
    ("traffic_bytes.dram_write", {**chip(87), FILLS.format("sysmem"): 7, MISSES.format("sysmem"): 5}, 0),
    *(
        ("traffic_bytes.dram", {**chip(each), **counted}, n_bytes)
        for each in (72, 87, 110, 121)
        for counted, n_bytes in (({MISSES.format("sysmem"): 11}, 352), ({FILLS.format("sysmem"): 7}, 224))
    ),
    ("traffic_bytes.dram", {**chip(89), MISSES.format("sysmem"): 11, FILLS.format("sysmem"): 7}, None),
    ("traffic_bytes.dram", {MOVED: 17, READ: 7, WRITTEN: 5}, 17),
    ("traffic_bytes.dram", {READ: 7, WRITTEN: 5, "dram__bytes.sum.per_second": 3e9, **NS}, 12),
    ("traffic_bytes.dram", {"dram__bytes.sum.per_second": 3e9, **CHARTLESS_DRAM, **NS}, 6000),
    # a quarter of 96 bytes per clock, at 5 GHz for 2 µs
    ("traffic_bytes.dram", {**CHARTLESS_DRAM, **NS}, 240_000),
    ("traffic_bytes.l2", {SMS: 7, FROM_L2: 1, TO_L2: 1}, 224),
    ("traffic_bytes.l2", {"lts__t_sectors_srcunit_tex.sum.per_second": 3e9, FROM_L2: 1, TO_L2: 1, **NS}, 192_000),
    ("traffic_bytes.l2", {FROM_L2: 11, TO_L2: 13}, 24),
    *(
        ("traffic_bytes.l2", {**chip(each), "lts__t_sectors.sum": 3}, n_bytes)
        for each, n_bytes in ((70, 96), (75, 96), (86, 96), (89, 96), (80, None), (90, None), (100, None))
    ),
    ("traffic_bytes.l2_all", {"lts__t_sectors.sum": 3, "lts__t_bytes.sum": 1}, 96),
    ("traffic_bytes.l2_all", {"lts__t_bytes.sum": 7, "lts__t_bytes.sum.per_second": 3e9, **NS}, 7),
    ("traffic_bytes.l2_all", {"lts__t_bytes.sum.per_second": 3e9, **NS}, 6000),
    # half of three sectors in each of 7000 cycles
    ("traffic_bytes.l2_all", {f"lts__t_sectors{ELAPSED}": 50, "lts__cycles_elapsed.sum": 7000, **chip(80)}, 336_000),
    ("traffic_bytes.l1", {LD.format("global"): 2, ST.format("global"): 3, LD.format("local"): 5, ST.format("local"): 7}, 544),
    ("traffic_bytes.l1", {LD.format("global"): 2, ST.format("global"): 3, "l1tex__t_bytes.sum": 1}, 160),
    ("traffic_bytes.l1", {"l1tex__t_bytes.sum": 11}, 11),
    # ---- shared memory, 128 bytes a wavefront: of all 50, eight are miscellaneous
    *(
        (f"access.{name}", {**chip(each), f"{WAVEFRONTS}.sum": 50, f"{WAVEFRONTS}_op_misc.sum": 8, **BY_KIND}, 42)
        for each in (90, 100, 103, 110, 120, 121)
        for name in ("shared_instruction_wavefronts", "shared_wavefronts")
    ),
    # by kind 11 + 13 + 17, and 19 of asynchronous copies; the source's counters may know of more
    *(
        ("access.shared_instruction_wavefronts", {**chip(each), **BY_KIND, LDGSTS: 19}, 60)
        for each in (70, 72, 75, 80, 86, 87, 89, 100, 103, 110, 120, 121)
    ),
    ("access.shared_instruction_wavefronts", {**chip(80), **BY_KIND, "memory_l1_wavefronts_shared": 43}, 43),
    ("access.shared_instruction_wavefronts", {**chip(90), **BY_KIND, LDGSTS: 19}, None),
    ("access.shared_instruction_wavefronts", {**chip(90), **BY_KIND, f"sm__pipe_tensor_cycles_active{ELAPSED}": 3}, None),
    ("access.shared_instruction_wavefronts",
     {**chip(90), **BY_KIND, LDGSTS: 19, f"sm__pipe_tensor_cycles_active{ELAPSED}": 0}, 60),
    ("access.shared_instruction_wavefronts",
     {**chip(90), **BY_KIND, "memory_l1_wavefronts_shared": 43, f"sm__pipe_tensor_cycles_active{ELAPSED}": 0}, 43),
    ("traffic_bytes.shared", {**chip(80), **BY_KIND, LDGSTS: 19, f"{WAVEFRONTS}.sum": 50}, 6400),  # the pipe saw 50 of the 60
    ("traffic_bytes.shared", {**chip(80), **BY_KIND, f"{WAVEFRONTS}.sum": 50}, 5248),
    ("traffic_bytes.shared", {**chip(80), **BY_KIND}, 5248),
    ("traffic_bytes.shared", {f"{WAVEFRONTS}.sum": 50, STATIC: 3, DYNAMIC: 0}, 6400),
    ("traffic_bytes.shared", {f"{WAVEFRONTS}.sum": 50, STATIC: 0, DYNAMIC: 5}, 6400),
    ("traffic_bytes.shared", {f"{WAVEFRONTS}.sum": 50, STATIC: 0, DYNAMIC: 0}, 0),
]  # fmt: skip


test_bytes_are_what_the_counters_give_by_hand = each_row_holds(ROWS)


Roof = tuple[str, Counters, float, float | None]
"""Level, counters, and what was achieved and the peak in byte/s."""


def _chart(name: str, clock: str, peak: float = 96.0) -> Counters:
    """Return the pair of a chart: 3 GB/s achieved, and a peak per cycle at 5 GHz."""
    return {
        f"{name}.sum.per_second": 3e9,
        f"{name}.sum.peak_sustained": peak,
        f"{clock}__cycles_elapsed.avg.per_second": 5e9,
    }


WRITEBACK = "l1tex__lsu_writeback_active_mem_{}.sum"
ROOFS: list[Roof] = [
    ("dram", {**_chart("dram__bytes", "dram"), READ: 1, WRITTEN: 1, **NS}, 3e9, 480e9),
    # 6000 bytes in 2 µs
    ("dram", {READ: 5000, WRITTEN: 1000, "dram__bytes.sum.peak_sustained": 96, DRAM_CLOCK: 5e9, **NS}, 3e9, 480e9),
    # twice 3000 kHz over 40 bits, which are 5 bytes
    ("dram", {READ: 5000, WRITTEN: 1000, "device__attribute_memory_clock_rate": 3000,
              "device__attribute_global_memory_bus_width": 40, **NS}, 3e9, 30e6),
    # a quarter of twice 40 bits, which are 10 bytes, at 5 GHz
    ("dram", {f"dram__cycles_active{ELAPSED}": 25, "device__attribute_global_memory_bus_width": 40, DRAM_CLOCK: 5e9, **chip(86)},
     12.5e9, 50e9),
    *(("dram", {**chip(each), MISSES.format("sysmem"): 11, **NS}, 176e6, None) for each in (72, 87, 110, 121)),
    ("l2", {**_chart("derived__lts__lts2xbar_bytes", "lts"), **CHARTLESS_L2, **NS}, 3e9, 480e9),
    ("l2", _chart("lts__lts2xbar_cycles_active", "lts"), 96e9, 15_360e9),  # 32 bytes a cycle
    ("l2", _chart("l1tex__m_xbar2l1tex_read_bytes", "lts"), 3e9, 480e9),
    ("l2", {**_chart("lts__t_bytes", "lts"), **CHARTLESS_L2, **NS}, 3e9, 480e9),
    # a quarter of 64 bytes in each of 7000 cycles of slices, within 2 µs
    ("l2", {**CHARTLESS_L2, **NS}, 56e9, 224e9),
    ("l1", _chart("derived__l1tex__lsu_writeback_bytes_mem_lgds", "l1tex"), 3e9, 480e9),
    ("l1", _chart("derived__l1tex__lsu_writeback_bytes_mem_lg", "l1tex"), 3e9, 480e9),
    ("l1", _chart("derived__l1tex__lsu_writeback_bytes", "l1tex"), 3e9, 480e9),
    ("l1", {**_chart("l1tex__t_bytes", "l1tex"), WRITEBACK.format("lg"): 1, **NS, **L1_PEAK}, 3e9, 480e9),
    # 128 bytes in each of 3000 cycles within 2 µs; 128 of each of 66 SMs at 1.5 GHz
    ("l1", {WRITEBACK.format("lgds"): 3000, WRITEBACK.format("lg"): 1, **NS, **L1_PEAK}, 192e9, 12_672e9),
    ("l1", {WRITEBACK.format("lg"): 3000, **NS, **L1_PEAK}, 192e9, 12_672e9),
    # 41 wavefronts by kind, and the pipe saw 40 of them
    ("shared", {**chip(80), **BY_KIND, f"{WAVEFRONTS}.sum": 40, **NS, **L1_PEAK}, 2.56e9, 12_672e9),
    ("shared", {**chip(80), **BY_KIND, f"{WAVEFRONTS}.sum": 50, **NS, **L1_PEAK}, 2.624e9, 12_672e9),
    ("shared", {**chip(80), **BY_KIND, **NS, **L1_PEAK}, 2.624e9, 12_672e9),
    ("shared", {f"{WAVEFRONTS}.sum": 50, STATIC: 3, DYNAMIC: 0, **NS, **L1_PEAK}, 3.2e9, 12_672e9),
]  # fmt: skip


@pytest.fixture(scope="module")
def roofs() -> pl.DataFrame:
    return measured([{**counters, **HALF_ACTIVE} for _, counters, _, _ in ROOFS]).bandwidth


@pytest.mark.parametrize("number", range(len(ROOFS)), ids=[f"{number}-{roof[0]}" for number, roof in enumerate(ROOFS)])
def test_roof_traffic_and_its_peak_are_what_the_counters_give_by_hand(roofs: pl.DataFrame, number: int) -> None:
    level, _, achieved, peak = ROOFS[number]
    row = roofs.row(by_predicate=(pl.col("id") == number) & (pl.col("level") == level), named=True)
    assert row["bytes_per_s"] == pytest.approx(achieved, rel=1e-9)
    assert row["peak_bytes_per_s"] == (None if peak is None else pytest.approx(peak, rel=1e-9))
