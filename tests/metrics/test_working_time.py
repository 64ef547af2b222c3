"""When SMs have work, and which part of the time that leaves: counters chosen by hand."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def launched(
    n_blocks: float, *, waves: float, resident: float, duration_ns: float, active_frac: float, **more: float
) -> dict[str, object]:
    """Return the quantities of a launch on 100 SMs, which have work for this share of the 100 000 cycles."""
    counters = {
        "device__attribute_multiprocessor_count": 100.0,
        "gpu__time_duration.sum": duration_ns,
        "launch__grid_size": n_blocks,
        "launch__waves_per_multiprocessor": waves,
        "launch__occupancy_limit_registers": resident,
        "sm__cycles_active.avg": active_frac * 1e5,
        "sm__cycles_elapsed.max": 1e5,
    }
    return measure([raw_report(counters | more)]).kernels.row(0, named=True)


def test_the_longest_sm_tells_how_long_there_is_work() -> None:
    row = launched(40, waves=0.4, resident=1, duration_ns=1e6, active_frac=0.3, **{"sm__cycles_active.max": 9e4})
    assert row["scheduler.working_frac"] == pytest.approx(0.9)
    longer = launched(40, waves=0.4, resident=1, duration_ns=1e6, active_frac=0.3, **{"sm__cycles_active.max": 1.02e5})
    assert longer["scheduler.working_frac"] == pytest.approx(1 - 2_000 / 1e6)  # counted in a pass that took longer


@pytest.mark.parametrize(
    ("busy_pct", "headroom"),
    [(45.0, 0.5), (0.0, 1.0), (90.0, 0.0), (99.0, 0.0)],  # of the 90 % of the time in which blocks can run
)
def test_the_busiest_unit_has_room_while_blocks_can_run(busy_pct: float, headroom: float) -> None:
    counters = {
        "sm__cycles_active.max": 9e4,
        f"sm__throughput{PCT}": busy_pct,
        f"gpu__compute_memory_throughput{PCT}": 0.0,
    }
    row = launched(90, waves=0.9, resident=1, duration_ns=1e6, active_frac=0.9, **counters)
    assert row["utilisation.headroom"] == pytest.approx(headroom)


@pytest.mark.parametrize(
    ("busy", "headroom"),
    [
        ({f"sm__throughput{PCT}": 15.0}, 0.5),  # 15 of the 30 % in which an SM has work
        ({f"l1tex__throughput{PCT}": 24.0}, 0.2),
        ({f"l1tex__throughput{PCT}": 30.3}, 0.0),  # within what passes differ by
        (
            {f"l1tex__throughput{PCT}": 31.0},
            0.9,
        ),  # more than there can be: it says nothing, and pipes work for 3 of 30 %
        ({f"lts__throughput{PCT}": 45.0}, 0.5),  # of the 90 % in which blocks can run: L2 is not an SM's own
    ],
)
def test_sms_without_work_are_no_room_for_what_the_others_wait_for(busy: dict[str, float], headroom: float) -> None:
    counters = {f"sm__throughput{PCT}": 3.0, f"gpu__compute_memory_throughput{PCT}": 4.0, "sm__cycles_active.max": 9e4}
    row = launched(30, waves=0.3, resident=1, duration_ns=1e6, active_frac=0.3, **counters | busy)
    assert row["utilisation.headroom"] == pytest.approx(headroom)


def test_less_waiting_leaves_l2_what_its_own_throughput_counts() -> None:
    counters = {
        "sm__cycles_active.max": 9e4,
        f"sm__throughput{PCT}": 17.2,
        f"gpu__compute_memory_throughput{PCT}": 17.1,
        f"lts__throughput{PCT}": 45.0,  # more than the memory's total: fills, and the fabric between partitions
    }
    row = launched(40, waves=0.4, resident=1, duration_ns=1e6, active_frac=0.8, **counters)
    assert row["utilisation.headroom"] == pytest.approx(0.5)  # of the 90 % of the time in which blocks can run
    assert row["utilisation.busiest"] == pytest.approx(0.172)  # what verdicts go by


def test_a_launch_takes_two_microseconds() -> None:
    def working(duration_ns: float, **more: float) -> object:
        row = launched(40, waves=0.4, resident=1, duration_ns=duration_ns, active_frac=0.1, **more)
        return row["scheduler.working_frac"]

    assert working(5_000) == pytest.approx(0.6)  # the average SM says nothing: some may work longer than others
    assert working(5_000, **{"sm__cycles_active.max": 3e4}) == pytest.approx(0.3)
    assert working(1_500) == 0


@pytest.mark.parametrize(
    ("n_blocks", "waves", "resident", "active_frac", "expected"),
    [
        (1200, 1.5, 8, 0.8, 0.2),  # 400 blocks in the last wave, so that no SM is without; 12 blocks on each
        (800, 1.0, 8, 0.8, 0.2),  # one full wave
        (850, 1.0625, 8, 0.75, 0.0),  # half of the SMs have a block in the second: 0.75 of the time with equal blocks
        (850, 1.0625, 8, 0.6, 0.2),  # 0.6 of 0.75
        (850, 1.0625, 8, 0.9, 0.0),  # a last wave of short blocks
        (
            320,
            1.6,
            2,
            0.8,
            0.0,
        ),  # 3.2 blocks share an SM's throughput: 0.8 of the time with equal ones, as a GEMM of 256 on 80
        (320, 1.6, 2, 0.4, 0.5),
        (40, 0.4, 1, 0.4, 0.0),
        (40, 0.4, 1, 0.3, 0.25),
    ],
)
def test_unequal_blocks_are_told_from_a_last_wave(
    n_blocks: float, waves: float, resident: float, active_frac: float, expected: float
) -> None:
    def unequal(duration_ns: float) -> object:
        row = launched(n_blocks, waves=waves, resident=resident, duration_ns=duration_ns, active_frac=active_frac)
        return row["scheduler.unequal_frac"]

    assert unequal(1e6) == pytest.approx(expected)
    assert unequal(9e4) is None  # a launch counts


def test_short_blocks_may_end_sooner_than_others_begin() -> None:
    values = {"n_blocks": 80_000, "resident": 8, "active_frac": 0.8}
    assert launched(**values, waves=100, duration_ns=1.9e6)["scheduler.unequal_frac"] is None  # 19 µs each
    assert launched(**values, waves=100, duration_ns=2.1e6)["scheduler.unequal_frac"] == pytest.approx(0.2)


def test_imbalance_is_that_of_the_longest_sm_where_it_is_known() -> None:
    row = launched(1200, waves=1.5, resident=8, duration_ns=1e6, active_frac=0.8, **{"sm__cycles_active.max": 1e5})
    assert row["scheduler.sm_imbalance_frac"] == pytest.approx(0.2)
    assert launched(850, waves=1.0625, resident=8, duration_ns=1e6, active_frac=0.6)[
        "scheduler.sm_imbalance_frac"
    ] == pytest.approx(0.2)


def test_empty_places_are_what_fuller_waves_can_fill() -> None:
    places = {
        "sm__warps_active.avg.pct_of_peak_sustained_active": 30.0,
        "sm__maximum_warps_per_active_cycle_pct": 50.0,
    }
    row = launched(1200, waves=1.5, resident=8, duration_ns=1e6, active_frac=0.8, **places)
    assert row["occupancy.empty_frac"] == pytest.approx(1 - 0.6 * 0.8)
    full = {f"sm__throughput{PCT}": 66.0}  # 82.5 % of the time in which SMs have work
    row = launched(1200, waves=1.5, resident=8, duration_ns=1e6, active_frac=0.8, **places, **full)
    assert row["occupancy.empty_frac"] == pytest.approx(0.2)
    # Memory's total does not say which unit is busy: the SMs' time without work is not all there is to fill.
    total = {f"gpu__compute_memory_throughput{PCT}": 90.0}
    row = launched(1200, waves=1.5, resident=8, duration_ns=1e6, active_frac=0.8, **places, **total)
    assert row["occupancy.empty_frac"] == pytest.approx(1 - 0.6 * 0.8)


def requests(**more: float) -> dict[str, object]:
    kinds = {"ld": 300.0, "st": 100.0, "atom": 0.0, "red": 50.0}
    counters = {
        "launch__block_size": 256.0,
        "launch__grid_size": 125.0,  # 1000 warps
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 0.0,
        **{f"l1tex__t_requests_pipe_lsu_mem_global_op_{kind}.sum": n for kind, n in kinds.items()},
    }
    return measure([raw_report(counters | more)]).kernels.row(0, named=True)


def test_warps_without_data_are_those_beyond_all_requests() -> None:
    assert requests()["access.idle_warp_frac"] == pytest.approx(1 - 0.45)
    many = requests(**{"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 850.0})  # each warp may have one
    assert many["access.idle_warp_frac"] == 0
    assert requests(**{"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 9.0})["access.idle_warp_frac"] is None


@pytest.mark.parametrize(
    ("gpc_mhz", "sm_mhz", "expected_mhz"),
    [(584.7, 548.0, 584.7), (548.0, 584.7, 548.0), (584.7, 583.0, 583.0), (None, 548.0, 548.0), (584.7, None, 584.7)],
)
def test_the_clock_is_that_of_the_pass_that_measures_the_time_where_passes_differ(
    gpc_mhz: float | None, sm_mhz: float | None, expected_mhz: float
) -> None:
    clocks = {"gpc": gpc_mhz, "sm": sm_mhz, "smsp": sm_mhz}
    counters = {f"{unit}__cycles_elapsed.avg.per_second": 1e6 * mhz for unit, mhz in clocks.items() if mhz is not None}
    row = measure([raw_report(counters)]).kernels.row(0, named=True)
    assert row["sm_clock_hz"] == pytest.approx(1e6 * expected_mhz)


def test_l2_is_looked_up_as_often_as_the_report_says() -> None:
    """Shares of peak on an A100 are of 2 sectors per cycle in reports before 2022.4, and of 3 since."""
    counters = {
        "device__attribute_compute_capability_major": 8.0,
        "device__attribute_compute_capability_minor": 0.0,
        f"lts__t_sectors{PCT}": 50.0,
        "lts__t_sectors.sum": 8e6,
        "gpu__time_duration.sum": 1e5,
    }
    old = measure([raw_report(counters | {"lts__t_sectors.avg.peak_sustained": 2.0})]).kernels.row(0, named=True)
    assert old["device.l2_slice_cycles"] == pytest.approx(8e6)  # 80 slices, 100 000 cycles
    new = measure([raw_report(counters)]).kernels.row(0, named=True)
    assert new["device.l2_slice_cycles"] == pytest.approx(8e6 / 1.5)


LARGE = {
    "device__attribute_l2_cache_size": 4e6,
    "dram__bytes_read.sum": 5e6,
    "dram__bytes_write.sum": 3e6,
    "launch__block_size": 200.0,
    "launch__grid_size": 300_000.0,  # 60 million threads
    "launch__shared_mem_per_block_static": 0.0,
    "launch__shared_mem_per_block_dynamic": 0.0,
    "smsp__inst_executed.sum": 12 * 7 * 300_000.0,
}


def idle_frac(**changed: float) -> float | None:
    return measure([raw_report(LARGE | changed)]).kernels.row(0, named=True)["access.idle_warp_frac"]


def test_threads_without_a_byte_are_those_beyond_all_of_dram_and_l2() -> None:
    assert idle_frac() == pytest.approx(1 - (5e6 + 3e6 + 4e6) / 60e6)
    assert idle_frac(**{"dram__bytes_write.sum": 60e6}) == 0


@pytest.mark.parametrize(
    "together",
    [
        {"launch__shared_mem_per_block_dynamic": 4096.0},
        {f"lts__d_atomic_input_cycles_active{PCT}": 5.0},
        {"smsp__inst_executed.sum": 20 * 7 * 300_000.0},
    ],
)
def test_threads_that_may_combine_what_they_have_are_not_told_to_be_idle(together: dict[str, float]) -> None:
    assert idle_frac(**together) is None
