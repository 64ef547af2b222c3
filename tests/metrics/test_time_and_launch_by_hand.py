"""Time, clocks, device, launch and occupancy from single counters, each formula's value worked by hand."""

from __future__ import annotations

from ncuroof.metrics import load_catalogue
from tests.support.by_hand import ByHand, Counters, chip, each_row_holds, measured

SMSP, SM, GPC = (f"{unit}__cycles_elapsed.avg.per_second" for unit in ("smsp", "sm", "gpc"))
ATTRIBUTE = "device__attribute_"
SLICES = "lts__cycles_elapsed"
LOOKUPS, SHARE_OF_LOOKUPS = "lts__t_sectors.sum", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
NS = "gpu__time_duration.sum"
TO_SMS = "derived__lts__lts2xbar_bytes.sum.peak_sustained"
STATIC, DYNAMIC = "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"
LIMIT = "launch__occupancy_limit_"
WARPS, PASCAL_WARPS = ("sm__warps_active.avg.pct_of_peak_sustained_active", "sm__active_warps_avg_per_active_cycle_pct")
PER_SCHEDULER: Counters = {
    "smsp__warps_active.avg.per_cycle_active": 7.5, "smsp__warps_active.avg.peak_sustained": 12, "launch__block_size": 97,
    "launch__waves_per_multiprocessor": 1,
}  # fmt: skip
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"


def _limits(*blocks: float) -> Counters:
    """Return the blocks that registers, shared memory, warps, block slots and barriers allow on an SM."""
    kinds = ("registers", "shared_mem", "warps", "blocks", "barriers")
    return {f"{LIMIT}{kind}": n for kind, n in zip(kinds, blocks, strict=True)}


ROWS: list[ByHand] = [
    ("duration_ns", {NS: 7, "gpu__time_duration.max": 5, "gpu__time_duration": 3}, 7),
    ("duration_ns", {"gpu__time_duration.max": 5, "sm__cycles_elapsed.avg": 9, SM: 1e9}, 5),
    # 3000 cycles at 1.5 GHz; by the SMs' where both are known
    ("duration_ns", {"gpc__cycles_elapsed.max": 3000, GPC: 1.5e9}, 2000),
    ("duration_ns", {"gpc__cycles_elapsed.max": 3000, GPC: 1.5e9, "sm__cycles_elapsed.avg": 3003, SM: 1.5e9}, 2002),
    # 1.010 and 0.990 of 1.5 GHz are 1.515 and 1.485
    ("sm_clock_hz", {SMSP: 1.51e9, SM: 1.49e9, GPC: 1.5e9}, 1.51e9),
    ("sm_clock_hz", {SM: 1.49e9, GPC: 1.5e9}, 1.49e9),
    ("sm_clock_hz", {SMSP: 1.49e9, GPC: 1.5e9}, 1.49e9),
    ("sm_clock_hz", {SMSP: 1.52e9, GPC: 1.5e9}, 1.5e9),
    ("sm_clock_hz", {SM: 1.48e9, GPC: 1.5e9}, 1.5e9),
    ("sm_clock_hz", {SMSP: 1.51e9, SM: 1.3e9, GPC: 1.5e9}, 1.51e9),
    ("sm_clock_hz", {SMSP: 1.5e9, SM: 1.52e9, GPC: 1.5e9}, 1.5e9),
    ("sm_clock_hz", {SMSP: 1.2e9, SM: 1.3e9}, 1.2e9),
    ("sm_clock_hz", {SM: 1.3e9, "l1tex__cycles_elapsed.avg.per_second": 1.4e9}, 1.3e9),
    ("sm_clock_hz", {"l1tex__cycles_elapsed.avg.per_second": 1.4e9, "gpc__frequency": 1.1e9}, 1.4e9),
    # 3000 cycles in 2000 ns
    ("sm_clock_hz", {"gpc__cycles_elapsed.max": 3000, NS: 2000, "gpc__frequency": 1.1e9}, 1.5e9),
    ("sm_clock_hz", {"gpc__frequency": 1.1e9}, 1.1e9),
    ("dram_clock_hz", {"dram__cycles_elapsed.avg.per_second": 7e9}, 7e9),
    ("passes", {"profiler__replayer_passes": 11}, 11),
    # ---- device
    ("device.sm_count", {"launch__sm_count": 66, f"{ATTRIBUTE}multiprocessor_count": 132}, 66),
    ("device.sm_count", {f"{ATTRIBUTE}multiprocessor_count": 132}, 132),
    ("device.total_sm_count", {"launch__sm_count": 66, f"{ATTRIBUTE}multiprocessor_count": 132}, 132),
    ("check.sm_share", {"launch__sm_count": 33, f"{ATTRIBUTE}multiprocessor_count": 132}, 0.25),
    ("check.green_context", {"launch__uses_green_context": 1}, 1),
    ("device.l2_bytes", {f"{ATTRIBUTE}l2_cache_size": 51}, 51),
    ("device.dram_bytes", {f"{ATTRIBUTE}total_memory": 53}, 53),
    ("device.memory_bus_bits", {f"{ATTRIBUTE}global_memory_bus_width": 384}, 384),
    ("device.fp64_ratio", {f"{ATTRIBUTE}single_to_double_precision_perf_ratio": 64}, 64),
    ("device.boost_clock_hz", {f"{ATTRIBUTE}clock_rate": 1980}, 1.98e6),  # kHz
    # twice 3000 kHz over 40 bits, which are 5 bytes
    ("device.peak_dram_bytes_per_s", {f"{ATTRIBUTE}memory_clock_rate": 3000, f"{ATTRIBUTE}global_memory_bus_width": 40}, 3e7),
    ("device.dram_bytes_per_clock", {"dram__bytes.sum.peak_sustained": 96, f"{ATTRIBUTE}global_memory_bus_width": 40}, 96),
    *(
        ("device.dram_bytes_per_clock", {**chip(each), f"{ATTRIBUTE}global_memory_bus_width": 40}, n_bytes)
        for each, n_bytes in ((75, 10), (80, 10), (86, 10), (89, 10), (90, 10), (70, None), (87, None), (120, None))
    ),
    # reports of these chips that hold both a counter and its share of the peak tell what a slice does per cycle
    ("device.l2_sectors_per_slice_cycle", {**chip(80), "lts__t_sectors.avg.peak_sustained": 2}, 2),
    *(
        ("device.l2_sectors_per_slice_cycle", chip(each), n)
        for each, n in ((70, 1), (75, 1), (80, 3), (86, 1), (89, 2), (90, 3), (87, None), (100, None), (120, None))
    ),
    *(
        ("device.l2_read_bytes_per_slice_cycle", chip(each), n)
        for each, n in ((75, 32), (80, 64), (86, 32), (89, 64), (90, 64), (70, None), (87, None), (120, None))
    ),
    # 70 slices of 100 cycles; 70 that return 64 bytes each
    ("device.n_l2_slices", {f"{SLICES}.sum": 7000, f"{SLICES}.avg": 100, TO_SMS: 640, **chip(90)}, 70),
    ("device.n_l2_slices", {TO_SMS: 4480, **chip(90)}, 70),
    ("device.l2_slice_cycles", {f"{SLICES}.sum": 7000, LOOKUPS: 3, SHARE_OF_LOOKUPS: 50, **chip(80)}, 7000),
    # 4200 lookups, at 70 % of three per cycle
    ("device.l2_slice_cycles", {LOOKUPS: 4200, SHARE_OF_LOOKUPS: 70, **chip(80)}, 2000),
    # 20 slices (640 / 32 bytes) at 1.1 GHz for 1000 ns
    ("device.l2_slice_cycles", {f"{SLICES}.avg.per_second": 1.1e9, NS: 1000, TO_SMS: 640, **chip(86)}, 22_000),
    *(("device.n_schedulers_per_sm", chip(each), n) for each, n in ((70, 4), (75, 4), (90, 4), (120, 4), (61, None))),
    # ---- launch
    ("launch.n_blocks", {"launch__grid_size": 7, **{f"launch__grid_dim_{axis}": 2 for axis in "xyz"}}, 7),
    ("launch.n_blocks", {f"launch__grid_dim_{axis}": n for axis, n in zip("xyz", (2, 3, 5), strict=True)}, 30),
    ("launch.n_threads_per_block", {"launch__block_size": 7, **{f"launch__block_dim_{axis}": 2 for axis in "xyz"}}, 7),
    ("launch.n_threads_per_block", {f"launch__block_dim_{axis}": n for axis, n in zip("xyz", (7, 3, 2), strict=True)}, 42),
    # a warp of 32 threads in rows of 16, of 5, of 64, and in a block that is a single row of 8
    *(
        ("launch.n_rows_per_warp", {f"launch__block_dim_{axis}": n for axis, n in zip("xyz", extents, strict=True)}, n_rows)
        for extents, n_rows in (((16, 16, 1), 2), ((5, 5, 5), 6.4), ((64, 4, 1), 1), ((8, 1, 1), 1), ((8, 2, 1), 2))
    ),
    ("launch.n_rows_per_warp", {"launch__block_size": 256}, None),
    ("launch.n_registers_per_thread", {"launch__registers_per_thread": 41}, 41),
    ("launch.shared_bytes_per_block", {"launch__shared_mem_per_block": 1032, STATIC: 3, DYNAMIC: 5}, 1032),
    ("launch.shared_bytes_per_block", {STATIC: 3, DYNAMIC: 5, "launch__shared_mem_per_block_driver": 1024}, 1032),
    ("launch.shared_bytes_per_block", {STATIC: 3, DYNAMIC: 5}, 8),
    ("launch.own_shared_bytes_per_block", {"launch__shared_mem_per_block": 1032, STATIC: 3, DYNAMIC: 5}, 8),
    ("launch.blocks_per_sm", {"launch__grid_size": 99, "launch__sm_count": 66}, 1.5),
    ("launch.sm_frac", {"launch__grid_size": 99, "launch__sm_count": 66}, 1),
    ("launch.sm_frac", {"launch__grid_size": 33, "launch__sm_count": 66}, 0.5),
    # 33 threads take two warps of 32, of which 31 lanes have none
    ("launch.n_warps", {"launch__grid_size": 5, "launch__block_size": 33}, 10),
    ("launch.unused_lane_frac", {"launch__block_size": 33}, 31 / 64),
    # ---- occupancy
    ("occupancy.achieved_frac", {WARPS: 37, PASCAL_WARPS: 41}, 0.37),
    ("occupancy.achieved_frac", {PASCAL_WARPS: 41}, 0.41),
    # 7.5 of a scheduler's 12 warps; a block of three leaves one scheduler without, and one block all but one SM
    ("occupancy.achieved_frac", {**PER_SCHEDULER, WARPS: 37}, 0.37),
    ("occupancy.achieved_frac", PER_SCHEDULER, 0.625),
    ("occupancy.achieved_frac", {**PER_SCHEDULER, "launch__block_size": 96}, None),
    ("occupancy.achieved_frac", {**PER_SCHEDULER, "launch__waves_per_multiprocessor": 0.9}, None),
    ("occupancy.theoretical_frac", {THEORETICAL: 75}, 0.75),
    ("occupancy.filled_frac", {THEORETICAL: 75, WARPS: 30}, 0.4),
    ("occupancy.waves", {"launch__waves_per_multiprocessor": 2.5}, 2.5),
    ("occupancy.tail_frac", {"launch__waves_per_multiprocessor": 2.5}, 1 / 6),  # half a wave of three
    *(
        (f"occupancy.limit_{kind}", _limits(2, 3, 5, 7, 11), n)
        for kind, n in (("registers", 2), ("shared_memory", 3), ("warps", 5), ("blocks", 7), ("barriers", 11))
    ),
    *(
        ("occupancy.resident_blocks", _limits(*blocks), 2)
        for blocks in ((2, 3, 5, 7, 11), (3, 2, 5, 7, 11), (3, 5, 2, 7, 11), (3, 5, 7, 2, 11), (3, 5, 7, 11, 2))
    ),
    # 15 % for each of two blocks: three are 45 %, whichever limit comes next
    *(
        ("occupancy.next_limit_frac", {THEORETICAL: 30, **_limits(*blocks)}, 0.45)
        for blocks in ((3, 2, 5, 7, 11), (2, 3, 5, 7, 11), (2, 5, 3, 7, 11), (2, 5, 7, 3, 11), (2, 5, 7, 11, 3))
    ),
    ("occupancy.next_limit_frac", {THEORETICAL: 30, **_limits(2, 2, 2, 2, 3)}, 0.45),
    ("occupancy.next_limit_frac", {THEORETICAL: 80, **_limits(2, 7, 7, 7, 7)}, 1),
    ("occupancy.next_limit_frac", _limits(2, 3, 5, 7, 11), None),
    # two blocks have 2048 bytes each of 4096
    ("occupancy.shared_bytes_frac",
     {f"{ATTRIBUTE}max_shared_memory_per_multiprocessor": 4096, "launch__shared_mem_per_block": 1024,
      f"{LIMIT}shared_mem": 1}, 0.5),
    ("occupancy.one_more_block_frac", {THEORETICAL: 80, **_limits(2, 3, 5, 7, 11)}, 1.2),
]  # fmt: skip


test_value_is_what_the_counters_give_by_hand = each_row_holds(ROWS)


CHIPS = {
    "has_packed_fp32": ({100, 103}, {60, 61, 70, 72, 75, 80, 86, 87, 89, 90}),
    "has_async_copy": ({80, 86, 87, 89, 90, 100, 103, 110, 120, 121}, {60, 61, 70, 72, 75}),
    "has_32_byte_loads": ({100, 103, 110, 120, 121}, {60, 61, 70, 72, 75, 80, 86, 87, 89, 90}),
    "has_async_tensor_path": ({90, 100, 103, 110}, {60, 61, 70, 72, 75, 80, 86, 87, 89, 120, 121}),
    "shares_memory": ({72, 87, 110, 121}, {60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120}),
}
"""Compute capabilities that have a thing, and those that do not. Sources: CUDA C++ Programming Guide, PTX ISA (cp.async from sm_80,
wgmma on sm_90a, tcgen05 on sm_100a, sm_103a and sm_110a), and NVIDIA's lists of Jetson, DRIVE and DGX Spark parts."""


def test_chips_have_what_their_documents_say() -> None:
    chips = load_catalogue().capabilities
    kernels = measured([chip(each) for each in chips]).kernels
    for name, (having, lacking) in CHIPS.items():
        found = dict(zip(chips, kernels[f"device.{name}"], strict=True))
        assert {each for each, value in found.items() if value == 1} == having, name
        assert {each for each, value in found.items() if value == 0} == lacking, name
