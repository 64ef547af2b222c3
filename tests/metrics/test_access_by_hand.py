"""Access patterns, waste and copies by each formula of the catalogue, worked by hand: findings and their gains rest on them."""

from __future__ import annotations

from tests.support.by_hand import ACTIVE, ELAPSED, ByHand, Counters, chip, each_row_holds

NS, CLOCK = "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"
LD, ST, LOCAL_LD, LOCAL_ST = (
    f"l1tex__t_sectors_pipe_lsu_mem_{kind}.sum"
    for kind in ("global_op_ld", "global_op_st", "local_op_ld", "local_op_st")
)
ASKED_LD, ASKED_ST, ASKED_ATOM, ASKED_RED = (
    f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st", "atom", "red")
)
SHARE_ASKED = f"{ASKED_LD}.pct_of_peak_sustained_elapsed"
LD_BYTES, ST_BYTES = (f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}" for op in ("ld", "st"))
COPY_ACCESS = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum"
COPY_BYPASS = "sm__sass_l1tex_m_xbar2l1tex_read_bytes_mem_global_op_ldgsts_cache_bypass.sum"
COPY_WRITTEN = "sm__sass_l1tex_data_bytes_write_pipe_lsu_mem_shared_op_ldgsts_cache_access.sum"
TMA = "l1tex__m_xbar2l1tex_read_{}_mem_global_op_tma_ld.sum"
THEORETICAL, IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
TAGS = "memory_l1_tag_requests_global"
SHARED, SHARED_IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
L2_READ, L2_WRITTEN = "lts__t_sectors_srcunit_tex_op_read", "lts__t_sectors_srcunit_tex_op_write"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
MISSES = "lts__t_sectors_srcunit_tex_lookup_miss.sum"
OTHER = "{}__t_sectors_srcunit_tex_aperture_{}_lookup_miss.sum"
PIPE = "l1tex__data_pipe_lsu_wavefronts"
SHARE_OF_SHARED = f"{PIPE}_mem_shared.sum.pct_of_peak_sustained_elapsed"
STATIC, DYNAMIC = "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
LSU, TEX, ATOMIC = (
    f"sm__inst_executed_pipe_lsu{ELAPSED}", f"sm__inst_executed_pipe_tex{ELAPSED}", f"lts__d_atomic_input_cycles_active{ELAPSED}",
)  # fmt: skip
MEMORY, COMPUTE, L2, L1_ACTIVE = (
    f"gpu__compute_memory_throughput{ELAPSED}", f"sm__throughput{ELAPSED}", f"lts__throughput{ELAPSED}",
    f"l1tex__throughput{ACTIVE}",
)  # fmt: skip
SLICE, CHANNEL = "lts__cycles", "dram__cycles_active"


def _by_kind(loads: float, stores: float) -> Counters:
    """Return wavefronts of shared memory on an A100."""
    return {**chip(80), f"{PIPE}_mem_shared_op_ld.sum": loads, f"{PIPE}_mem_shared_op_st.sum": stores}


def _other(unit: str, host: float = 3, peer: float = 5) -> Counters:
    return {OTHER.format(unit, "sysmem"): host, OTHER.format(unit, "peer"): peer}


# 3200 and 1600 bytes of use, of which DRAM read 6000 and wrote 4000
USED: Counters = {
    f"{LD_BYTES}.ratio": 8, LD: 400, COPY_ACCESS: 0, f"{ST_BYTES}.ratio": 16, ST: 100, f"{L2_READ}.sum": 250, READ: 6000,
    WRITTEN: 4000,
}  # fmt: skip
BESIDE: Counters = {
    **USED,
    f"{L2_READ}_lookup_miss.sum": 150,
    f"{L2_WRITTEN}_lookup_miss.sum": 10,
    THEORETICAL: 500,
    IDEAL: 300,
}
EXCESS: Counters = {THEORETICAL: 350, IDEAL: 300}
REQUESTS: Counters = {ASKED_ATOM: 3, ASKED_RED: 5, ASKED_LD: 11, ASKED_ST: 13}
FEW_REQUESTS: Counters = {
    ASKED_ATOM: 0,
    ASKED_RED: 0,
    ASKED_LD: 3,
    ASKED_ST: 1,
    "launch__grid_size": 4,
    "launch__block_size": 33,
}
# 12 800 threads in 400 warps, of 19 instructions each; 2400 bytes of DRAM and 4000 of L2
IDLE: Counters = {
    "launch__grid_size": 100, "launch__block_size": 128, "smsp__inst_executed.sum": 7600, READ: 1400, WRITTEN: 1000,
    "device__attribute_l2_cache_size": 4000,
}  # fmt: skip
REMOTE: Counters = {**_other("lts", 3000, 1000), MISSES: 16_000, **chip(80), NS: 100_000}  # 128 kB, 1.28 GB/s

OF_BOTH: Counters = {**USED, f"{L2_WRITTEN}.sum": 100, "lts__t_sectors_srcunit_tex.sum": 500}
ASKED: Counters = {ASKED_LD: 30, ASKED_ST: 10}


def _without_use(counters: Counters) -> Counters:
    """Return the counters without those of how much of a sector is used."""
    return {name: value for name, value in counters.items() if name not in {f"{LD_BYTES}.ratio", f"{ST_BYTES}.ratio"}}


ROWS: list[ByHand] = [
    *(
        row
        for name, counter in (("load", LD_BYTES), ("store", ST_BYTES))
        for row in (
            (f"access.{name}_bytes_per_sector", {f"{counter}.ratio": 8, f"{counter}.pct": 50}, 8),
            (f"access.{name}_bytes_per_sector", {f"{counter}.ratio": 32}, 32),
            (f"access.{name}_bytes_per_sector", {f"{counter}.ratio": 33, f"{counter}.pct": 50}, 16),
            (f"access.{name}_bytes_per_sector", {f"{counter}.pct": 100}, 32),
            (f"access.{name}_bytes_per_sector", {f"{counter}.pct": 101}, None),
        )
    ),
    # 200 sectors of copies through L1, 100 past it
    ("access.load_sectors", {LD: 1000, COPY_ACCESS: 200, COPY_BYPASS: 3200, COPY_WRITTEN: 1}, 700),
    ("access.load_sectors", {LD: 1000, COPY_ACCESS: 200}, 800),
    ("access.load_sectors", {LD: 10, COPY_ACCESS: 200}, 0),
    ("access.load_sectors", {LD: 1000, COPY_WRITTEN: 640, COPY_BYPASS: 3200}, 880),
    ("access.load_sectors", {LD: 1000, COPY_WRITTEN: 640}, 980),
    ("access.load_sectors", {LD: 10, COPY_WRITTEN: 640}, 0),
    ("access.store_sectors", {ST: 13}, 13),
    ("access.load_share", {LD: 300, COPY_ACCESS: 0, ST: 100}, 0.75),
    *(
        row
        for name, op, sectors, requests in (("load", "ld", LD, ASKED_LD), ("store", "st", ST, ASKED_ST))
        for ratio in [f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio"]
        for row in (
            (f"access.{name}_sectors_per_request", {ratio: 7, sectors: 12, requests: 4}, 7),
            (f"access.{name}_sectors_per_request", {sectors: 12, requests: 4}, 3),
        )
    ),
    ("access.excess_sectors_frac", {THEORETICAL: 400, IDEAL: 300}, 0.25),
    ("access.atomic_request_frac", REQUESTS, 0.25),  # 3 + 5 of 32
    ("access.requests_per_warp", {**REQUESTS, "launch__grid_size": 4, "launch__block_size": 33}, 4),  # 8 warps
    # A request in each of 20 of 100 cycles, an LSU instruction in each of 80, or in every other one while the pipe is busy
    *(("access.load_instruction_frac", {SHARE_ASKED: 20, LSU: 80, **chip(each)}, 0.25) for each in (80, 90)),
    *(("access.load_instruction_frac", {SHARE_ASKED: 20, LSU: 80, **chip(each)}, 0.5) for each in (75, 86, 87, 89, 120)),
    ("access.load_instruction_frac", {SHARE_ASKED: 20, LSU: 80, **chip(70)}, None),
    ("access.load_instruction_frac", {SHARE_ASKED: 0, LSU: 0, **chip(80)}, None),
    ("access.l1_hit_frac", {"l1tex__t_sector_hit_rate.pct": 30}, 0.3),
    ("access.l2_hit_frac", {"lts__t_sector_hit_rate.pct": 40, "lts__request_total_sectors_hitrate_pct": 43}, 0.4),
    ("access.l2_hit_frac", {"lts__request_total_sectors_hitrate_pct": 43}, 0.43),
    ("access.local_bytes", {LOCAL_LD: 2, LOCAL_ST: 3}, 160),
    ("access.local_frac", {LD: 10, ST: 5, LOCAL_LD: 2, LOCAL_ST: 3}, 0.25),
    ("access.local_frac", {LD: 10, ST: 5, LOCAL_LD: 2, LOCAL_ST: 3, COPY_WRITTEN: 640}, 0.125),
    ("access.dram_read_over_l2_size", {READ: 6000, "device__attribute_l2_cache_size": 1500}, 4),
    ("access.l2_read_over_dram_read", {f"{L2_READ}.sum": 150, READ: 1200}, 4),
    ("access.l2_input_share", {f"lts__xbar2lts_cycles_active{ELAPSED}": 30, f"lts__lts2xbar_cycles_active{ELAPSED}": 10}, 0.75),
    # ---- memory of the host (3) and of other GPUs (5), of 32 misses
    *(("access.remote_miss_frac", {**_other("lts"), MISSES: 32, **chip(each)}, 0.25) for each in (70, 75, 80, 86, 89, 90, 120)),
    *(("access.remote_miss_frac", {**_other("syslts"), MISSES: 24, **chip(each)}, 0.25) for each in (100, 103)),
    *(("access.remote_miss_frac", {**_other("lts"), MISSES: 32, **chip(each)}, None) for each in (87, 100, 110, 121)),
    *(("access.remote_bytes", {**_other("lts"), MISSES: 32, **chip(each)}, n) for each, n in ((80, 256), (87, None), (100, None))),
    *(("access.remote_bytes", {**_other("syslts"), **chip(each)}, n) for each, n in ((100, 256), (103, 256), (90, None))),
    ("access.remote_bytes_per_s", {**_other("lts"), MISSES: 32, **chip(80), NS: 2000}, 128e6),
    ("access.remote_traffic_frac", REMOTE, 0.25),
    ("access.remote_traffic_frac", {**REMOTE, NS: 129_000}, 0),
    ("access.remote_traffic_frac", {**REMOTE, NS: 127_000}, 0.25),
    ("access.remote_traffic_frac", {**REMOTE, **_other("lts", 2900, 1000), NS: 1000}, 0),  # 124.8 kB
    ("access.remote_traffic_frac", {name: n for name, n in REMOTE.items() if name != NS}, None),
    ("access.remote_traffic_frac", chip(80), None),
    ("utilisation.headroom", {**REMOTE, MEMORY: 50, "sm__cycles_active.max": 4, "sm__cycles_elapsed.max": 5}, 0.375),
    ("utilisation.headroom", {**REMOTE, MISSES: 9000, MEMORY: 50, "sm__cycles_active.max": 1, "sm__cycles_elapsed.max": 1}, 0),
    # 128 + 112 kB, of 96 bytes at 5 GHz for 1 µs; 96 bytes are twice 384 bits
    ("access.remote_as_dram_frac",
     {**REMOTE, NS: 1000, READ: 112_000, WRITTEN: 0, "dram__bytes.sum.peak_sustained": 96,
      "dram__cycles_elapsed.avg.per_second": 5e9}, 0.5),
    ("access.remote_as_dram_frac",
     {**REMOTE, NS: 1000, READ: 112_000, WRITTEN: 0, "device__attribute_memory_clock_rate": 5e6,
      "device__attribute_global_memory_bus_width": 384}, 0.5),
    # ---- warps without work: 4 requests of 8 warps
    ("access.idle_warp_frac", {**FEW_REQUESTS, **_by_kind(0, 0)}, 0.5),
    ("access.idle_warp_frac", {**FEW_REQUESTS, **_by_kind(0, 0), TEX: 0.9}, 0.5),
    ("access.idle_warp_frac", {**FEW_REQUESTS, **_by_kind(0, 0), TEX: 1.1}, None),
    ("access.idle_warp_frac", {**FEW_REQUESTS, **_by_kind(1, 0)}, None),
    ("access.idle_warp_frac", {**FEW_REQUESTS, **_by_kind(0, 0), ASKED_LD: 11}, 0),
    ("access.idle_warp_frac", IDLE, 0.5),
    ("access.idle_warp_frac", {**IDLE, "smsp__inst_executed.sum": 8100}, None),
    ("access.idle_warp_frac", {**IDLE, "device__attribute_l2_cache_size": 20_000}, 0),
    ("access.idle_warp_frac", {**IDLE, STATIC: 1, DYNAMIC: 0}, None),
    ("access.idle_warp_frac", {**IDLE, TEX: 1.1}, None),
    ("access.idle_warp_frac", {**IDLE, ATOMIC: 1.1}, None),
    ("access.idle_warp_frac", {**IDLE, TEX: 0.4, ATOMIC: 0.5}, 0.5),
    ("access.idle_warp_frac", {**IDLE, **_other("lts"), MISSES: 320, **chip(80)}, None),
    # ---- shared memory: 40 of 160 wavefronts, 80 % of 20 of 64 %, 60 of 3000 cycles of 10 SMs
    ("access.shared_wavefront_share", {**_by_kind(30, 10), f"{PIPE}.sum": 160, PIPE + ELAPSED: 1}, 0.25),
    ("access.shared_wavefront_share",
     {**_by_kind(30, 10), f"{PIPE}_mem_shared.sum": 50, SHARE_OF_SHARED: 20, PIPE + ELAPSED: 64}, 0.25),
    ("access.shared_wavefront_share",
     {**_by_kind(50, 10), "device__attribute_multiprocessor_count": 10, CLOCK: 1.5e9, NS: 200, PIPE + ELAPSED: 8}, 0.25),
    *(
        ("access.shared_wavefront_share",
         {SHARE_OF_SHARED: 20, PIPE + ELAPSED: 80, STATIC: static,
          DYNAMIC: dynamic}, share)
        for static, dynamic, share in ((3, 0, 0.25), (0, 5, 0.25), (0, 0, 0))
    ),
    ("access.unsplit_shared_bytes", {STATIC: 3, DYNAMIC: 5}, 8),
    ("access.unsplit_shared_bytes",
     {**_by_kind(30, 10), f"{PIPE}.sum": 160, STATIC: 3, DYNAMIC: 5}, 0),
    # 10 of 40 by instruction, less where the pipe saw fewer than these; by the pipe 10 of 40, all or loads' and stores'
    ("access.bank_conflict_frac", {**_by_kind(50, 10), SHARED: 40, SHARED_IDEAL: 30, f"{CONFLICTS}.sum": 1}, 0.25),
    ("access.bank_conflict_frac", {**_by_kind(30, 10), SHARED: 45, SHARED_IDEAL: 30, f"{PIPE}_mem_shared.sum": 40}, 0.25),
    ("access.bank_conflict_frac", {**_by_kind(30, 10), SHARED: 45, SHARED_IDEAL: 30, f"{PIPE}_mem_shared.sum": 24}, 0),
    ("access.bank_conflict_frac", {**_by_kind(30, 10), f"{CONFLICTS}.sum": 10, f"{CONFLICTS}_op_ld.sum": 1}, 0.25),
    ("access.bank_conflict_frac", {**_by_kind(30, 10), f"{CONFLICTS}_op_ld.sum": 3, f"{CONFLICTS}_op_st.sum": 7}, 0.25),
    *(
        ("access.wavefronts_per_instruction", {PIPE + ELAPSED: 30, LSU: 20, **chip(each)}, n)
        for each, n in ((75, 3), (86, 3), (87, 3), (89, 3), (120, 3), (80, 1.5), (90, 1.5), (70, None), (100, None))
    ),
    *(
        ("access.wavefronts_per_instruction",
         {L1_ACTIVE: 60, "sm__cycles_active.avg": 1, "sm__cycles_elapsed.max": 1, COMPUTE: compute, L2: l2, **chip(each)}, n)
        for each, compute, l2, n in (
            *((each, 10, 29, 6) for each in (75, 80, 86, 87, 89, 90, 120)), (70, 10, 29, None), (75, 10, 31, None),
            (75, 14, 29, None), (75, 12.5, 29, 4.8),
        )
    ),
    # ---- what is unequal
    ("access.l2_slice_imbalance_frac", {f"{SLICE}_active.avg": 300, f"{SLICE}_active.max": 400}, 0.25),
    ("access.hottest_l2_slice_frac", {f"{SLICE}_active.max": 400, f"{SLICE}_elapsed.avg": 500}, 0.8),
    ("access.hottest_l2_slice_frac", {f"{SLICE}_active.max": 400, f"{SLICE}_elapsed.avg.per_second": 2e9, NS: 250}, 0.8),
    *(
        ("access.colliding_atomics_frac",
         {**REQUESTS, ASKED_LD: loads, f"{SLICE}_active.avg": average, f"{SLICE}_active.max": most,
          f"{SLICE}_elapsed.avg": 500}, share)
        for loads, average, most, share in (
            (11, 310, 460, 0.92), (58, 310, 460, 0.92), (60, 310, 460, 0), (11, 330, 460, 0), (11, 290, 440, 0),
        )
    ),
    ("access.colliding_atomics_frac", {**REQUESTS, ASKED_LD: 11, f"{SLICE}_active.max": 460, f"{SLICE}_elapsed.avg": 500}, None),
    ("access.dram_channel_imbalance_frac", {f"{CHANNEL}.avg": 300, f"{CHANNEL}.max": 400}, 0.25),
    ("access.hottest_dram_channel_frac", {f"{CHANNEL}.avg": 300, f"{CHANNEL}.max": 400, f"gpu__dram_throughput{ELAPSED}": 30}, 0.4),
    *(
        ("access.compression_success_frac",
         {"lts__average_gcomp_input_sector_success_rate.pct": 30, "lrc__average_ilc_input_sector_success_rate.pct": 40,
          **chip(each)}, n)
        for n, chips in ((0.3, (80, 86, 87, 89, 110, 120, 121)), (0.4, (90, 100, 103)), (None, (70, 75)))
        for each in chips
    ),
    *(
        ("access.compression_input_frac",
         {"lts__gcomp_input_sectors.sum": 3, "l1tex__m_l1tex2xbar_write_bytes.sum": 384, **chip(each)}, n)
        for n, chips in ((0.25, (80, 86, 87, 89, 110, 120, 121)), (None, (90, 100, 103)))
        for each in chips
    ),
    # ---- copies past the registers
    ("access.async_copy_bytes", {COPY_BYPASS: 3, COPY_WRITTEN: 5, TMA.format("bytes"): 7}, 15),
    ("access.async_copy_bytes", {COPY_BYPASS: 3, COPY_WRITTEN: 5, TMA.format("sectors"): 7}, 232),
    ("access.async_copy_bytes", {COPY_BYPASS: 3, COPY_WRITTEN: 5}, 8),
    ("access.async_copy_bytes", {TMA.format("sectors"): 7}, 224),
    ("access.async_copy_frac",
     {LD: 1000, COPY_ACCESS: 200, COPY_BYPASS: 3200, COPY_WRITTEN: 6400, f"{LD_BYTES}.ratio": 16}, 6 / 13),
    ("access.async_copy_frac", {LD: 1000, COPY_ACCESS: 200, COPY_BYPASS: 3200, COPY_WRITTEN: 6400}, 0.3),  # 9600 to 22 400 bytes
    ("access.bulk_copy_frac", {LD: 525, COPY_ACCESS: 0, TMA.format("bytes"): 5600}, 0.25),  # 16 800 bytes beside them
    ("access.bulk_copy_frac", {LD: 525, COPY_ACCESS: 0, TMA.format("sectors"): 175}, 0.25),
    # ---- use and waste: three quarters of the sectors are loads, and a quarter of these used; half of the stores' is
    ("access.load_waste_frac", {**USED, LD: 300}, 0.5625),
    ("access.load_waste_frac", {**USED, LD: 300, THEORETICAL: 400, IDEAL: 300}, 0.25),
    ("access.load_waste_frac", {LD: 300, COPY_ACCESS: 0, ST: 100, THEORETICAL: 400, IDEAL: 300}, None),
    ("access.load_waste_frac", {f"{LD_BYTES}.ratio": 8, THEORETICAL: 400, IDEAL: 300}, None),
    ("access.store_waste_frac", {**USED, LD: 300}, 0.125),
    ("access.store_waste_frac", {**USED, LD: 300, THEORETICAL: 400, IDEAL: 360}, 0.1),
    ("access.store_waste_frac", {LD: 300, COPY_ACCESS: 0, ST: 100, THEORETICAL: 400, IDEAL: 300}, None),
    ("access.store_waste_frac", {f"{ST_BYTES}.ratio": 16, THEORETICAL: 400, IDEAL: 300}, None),
    ("access.useful_load_bytes", USED, 3200),
    ("access.useful_store_bytes", USED, 1600),
    ("access.stored_over_dram_read", {**USED, READ: 6400}, 0.25),
    ("access.stored_over_dram_read", {ST: 100, READ: 6400}, 0.5),
    # of 10 000 bytes: 6400 or 4800 that loads missed in L2, 6000 that DRAM read, less 3200 of use
    ("access.dram_load_waste_frac", {**USED, f"{L2_READ}_lookup_miss.sum": 200}, 0.28),
    ("access.dram_load_waste_frac", {**USED, f"{L2_READ}_lookup_miss.sum": 150}, 0.16),
    ("access.dram_load_waste_frac", {**USED, f"{L2_READ}_lookup_miss.sum": 90}, 0),
    ("access.dram_load_waste_frac", {**USED, READ: 3000, WRITTEN: 7000, f"{L2_READ}_lookup_miss.sum": 200}, 0),
    ("access.dram_load_waste_frac", {**USED, f"{L2_READ}_lookup_miss.sum": 200, THEORETICAL: 310, IDEAL: 300}, 0.032),
    # 300 missed of 250 asked for: 310 sectors are 372, 72 beyond the 300
    ("access.dram_load_waste_frac", {**USED, f"{L2_READ}_lookup_miss.sum": 300, THEORETICAL: 310, IDEAL: 300}, 0.2304),
    ("access.dram_load_waste_frac", {**USED, READ: 3000, WRITTEN: 7000, **EXCESS}, 0),
    ("access.dram_load_waste_frac", {**USED, READ: 3000, WRITTEN: 7000}, 0),
    ("access.dram_load_waste_frac", {name: n for name, n in BESIDE.items() if name != f"{LD_BYTES}.ratio"}, None),
    ("access.dram_store_waste_frac", {name: n for name, n in BESIDE.items() if name != f"{ST_BYTES}.ratio"}, None),
    *(
        (f"access.l2_{op}_waste_frac",
         {**USED, "lts__t_sectors_srcunit_tex.sum": 500, f"{L2_READ}.sum": 90, f"{L2_WRITTEN}.sum": 40, **beside}, 0)
        for op in ("load", "store")
        for beside in ({}, EXCESS)
    ),
    # 2400 bytes written in vain, and to fill sectors 1200 that no load missed, or 32 for each store that did
    ("access.dram_store_waste_frac", {**BESIDE, f"{ST_BYTES}.ratio": 32}, 0),
    ("access.dram_store_waste_frac", {**BESIDE, f"{ST_BYTES}.ratio": 31}, 0.21),  # 3100 of use: 900 in vain
    ("access.dram_store_waste_frac", BESIDE, 0.36),
    ("access.dram_store_waste_frac", {**BESIDE, f"{L2_WRITTEN}_lookup_miss.sum": 50}, 0.4),
    ("access.dram_store_waste_frac", {**BESIDE, f"{L2_READ}_lookup_miss.sum": 250}, 0.272),
    ("access.dram_store_waste_frac", {**BESIDE, READ: 7000, WRITTEN: 1000}, 0.275),
    ("access.dram_store_waste_frac", {**BESIDE, THEORETICAL: 400}, 0.32),
    ("access.dram_store_waste_frac", {**BESIDE, WRITTEN: 9000}, 0.32),  # 6400 in and out of 100 sectors, less 1600 of use
    ("access.dram_store_waste_frac", {**USED, **EXCESS}, 0.16),
    ("access.dram_store_waste_frac", {**USED, THEORETICAL: 500, IDEAL: 300}, 0.24),
    ("access.dram_store_waste_frac", {**USED, **EXCESS, READ: 9000, WRITTEN: 1000}, 0),
    ("access.dram_store_waste_frac", {**USED, f"{L2_WRITTEN}_lookup_miss.sum": 50}, 0.24),
    ("access.dram_store_waste_frac", {**USED, READ: 9000, WRITTEN: 1000}, 0),
    ("access.dram_excess_frac", {READ: 6000, WRITTEN: 4000, THEORETICAL: 600, IDEAL: 400}, 0),  # coalesced, 12 800
    # 40 requests and 640 sectors, which fill 160 lines: of 200 lookups 40 are too many; for 8 sectors, one per request is needed
    ("access.excess_tag_requests_frac", {**ASKED, TAGS: 200, IDEAL: 640}, 0.2),
    ("access.excess_tag_requests_frac", {**ASKED, TAGS: 200, IDEAL: 8}, 0.8),
    ("access.excess_tag_requests_frac", {**ASKED, ASKED_ATOM: 10, TAGS: 200, IDEAL: 8}, 0.75),
    ("access.excess_tag_requests_frac", {**ASKED, TAGS: 200, IDEAL: 900}, 0),
    ("access.excess_tag_requests_frac", {**ASKED, TAGS: 200}, None),
    ("access.excess_tag_requests_frac", {ASKED_LD: 30, TAGS: 200, IDEAL: 640}, None),
    # loads waste three quarters of 80 % of the sectors, stores half of the others
    ("access.waste_frac", USED, 0.7),
    ("access.waste_frac", {**USED, THEORETICAL: 500, IDEAL: 300}, 0.4),
    ("access.waste_frac", {THEORETICAL: 500, IDEAL: 300}, 0.4),
    ("access.waste_frac", {name: n for name, n in USED.items() if name != f"{ST_BYTES}.ratio"}, None),
    # 4800 bytes of 250 sectors and 1600 of 100, of 500 that passed; where use is not known, sectors beyond the ideal ones
    ("access.l2_waste_frac", OF_BOTH, 0.4),
    ("access.l2_waste_frac", {**_without_use(OF_BOTH), THEORETICAL: 500, IDEAL: 350}, 0.3),
    # 2800 of 6000 bytes read, and 2400 of 4000 written, of 10 000
    ("access.dram_waste_frac", USED, 0.52),
    ("access.dram_waste_frac", {**_without_use(USED), THEORETICAL: 500, IDEAL: 250}, 0.2),
    ("access.l2_excess_frac", {"lts__t_sectors_srcunit_tex.sum": 500, THEORETICAL: 800, IDEAL: 600}, 0),
]  # fmt: skip


test_value_is_what_the_counters_give_by_hand = each_row_holds(ROWS)
