"""What would let one more block on an SM, against a search with the occupancy calculator's rules.

The rules (registers in units of 256 per warp, four schedulers per SM; CUDA Occupancy Calculator) give the limits that Nsight
Compute reports for each of the corpus's 841 launches.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.metrics import load_catalogue, measure
from ncuroof.metrics.limiters import RESOURCES, occupancy_limiters
from ncuroof.present.documents.kernels import SMALL_BLOCK, limiters_in_words, with_limits
from tests.support.raw import raw_report


def _limit_by_registers(n_registers: int, n_threads: int) -> int:
    n_warps = -(-n_threads // 32)
    per_warp = -(-n_registers * 32 // 256) * 256
    return 4 * (16384 // per_warp) // n_warps


def _row(n_registers: int, n_threads: int, shared_bytes: int = 0) -> dict[str, Any]:
    """Return a launch on an A100: 64 warps, 32 blocks, 65 536 registers and 167 936 bytes of shared memory per SM."""
    by_registers = _limit_by_registers(n_registers, n_threads)
    by_shared = 167936 // shared_bytes if shared_bytes else 32
    by_warps = 64 // -(-n_threads // 32)
    counters = {
        "device__attribute_max_registers_per_multiprocessor": 65536.0,
        "device__attribute_max_shared_memory_per_multiprocessor": 167936.0,
        "device__attribute_max_warps_per_multiprocessor": 64.0,
        "launch__block_size": float(n_threads),
        "launch__registers_per_thread": float(n_registers),
        "launch__shared_mem_per_block": float(shared_bytes),
        "launch__shared_mem_per_block_static": float(shared_bytes),
        "launch__shared_mem_per_block_dynamic": 0.0,
        "launch__occupancy_limit_registers": float(by_registers),
        "launch__occupancy_limit_shared_mem": float(by_shared),
        "launch__occupancy_limit_warps": float(by_warps),
        "launch__occupancy_limit_blocks": 32.0,
        "sm__maximum_warps_per_active_cycle_pct": 100
        * min(by_registers, by_shared, by_warps, 32)
        * -(-n_threads // 32)
        / 64,
    }
    return measure([raw_report(counters)]).kernels.row(0, named=True)


@pytest.mark.parametrize("n_registers", [16, 32, 33, 40, 64, 96, 168, 255])
def test_blocks_of_128_threads_hold_as_many_warps_as_the_calculator_says(n_registers: int) -> None:
    n_blocks = min(_limit_by_registers(n_registers, 128), 64 // 4, 32)
    assert _row(n_registers, 1024)["occupancy.small_blocks_frac"] == pytest.approx(n_blocks * 4 / 64)
    assert _row(n_registers, 1024, 1024)["occupancy.small_blocks_frac"] is None  # shared memory is the block's


def test_smaller_blocks_are_named_where_more_of_them_fit() -> None:
    cures = {"registers": "fewer registers", "warps": "other blocks"}

    def cure(n_registers: int, n_threads: int) -> str:
        return with_limits("{cures}", ["registers"], _row(n_registers, n_threads), cures)

    # 40 registers: one block of 32 warps, or 12 of 4, of 64
    sentence = "blocks of 128 threads (75.0 % occupancy at the same registers per thread); fewer registers"
    assert cure(40, 1024) == sentence
    assert cure(64, 256) == cure(40, 128) == "fewer registers"


@pytest.mark.parametrize(
    ("n_registers", "n_threads"), list(product((32, 40, 64, 96, 168, 255), (32, 96, 128, 256, 384, 512)))
)
def test_registers_for_one_more_block_are_the_most_that_work(n_registers: int, n_threads: int) -> None:
    row = _row(n_registers, n_threads)
    n_resident = min(_limit_by_registers(n_registers, n_threads), 64 // -(-n_threads // 32), 32)
    assert row["occupancy.resident_blocks"] == n_resident
    found = [number for number in range(1, 256) if _limit_by_registers(number, n_threads) > n_resident]
    assert min(row["occupancy.registers_for_one_more_block"], 255) == max(found)


def test_shared_memory_for_one_more_block_is_a_whole_share() -> None:
    # 164 KiB for two blocks of 80 KiB; a third fits with 54.67 KiB or less: 167 936 / 3 = 55 978, in units of 256 bytes 55 808.
    row = _row(32, 128, shared_bytes=81920)
    assert row["occupancy.resident_blocks"] == 2
    assert row["occupancy.shared_bytes_for_one_more_block"] == 55808
    assert row["occupancy.one_more_block_frac"] == pytest.approx(3 * 4 / 64)
    assert (
        limiters_in_words(["shared_memory"], row)
        == "shared memory (80 KiB per block; at 54.5 KiB one more block fits, 18.8 % occupancy; the gain assumes up to 100 %)"
    )


def test_shared_memory_is_told_without_what_the_driver_adds() -> None:
    # CUDA reserves 1 KiB per block: an author who asks for 53.5 KiB gets three blocks, with 54.5 KiB two
    row = _row(32, 128, shared_bytes=81920) | {"launch.own_shared_bytes_per_block": 80896.0}
    said = limiters_in_words(["shared_memory"], row)
    assert said.startswith("shared memory (79 KiB per block; at 53.5 KiB one more block fits, 18.8 % occupancy")
    said = limiters_in_words(["shared_memory"], row | {"launch.own_shared_bytes_per_block": None})
    assert said.startswith("shared memory (80 KiB per block with the driver's; at 54.5 KiB one more block fits")


def test_only_what_hinders_is_told_with_what_it_takes() -> None:
    row = _row(64, 256)  # 4 blocks; five need 10 warps per scheduler, 1638 registers each: 6 · 256 / 32 = 48
    by_registers = (
        "registers (64 per thread; at 48 one more block fits, 62.5 % occupancy; the gain assumes up to 100 %)"
    )
    assert limiters_in_words(["registers"], row) == by_registers
    assert limiters_in_words(["registers", "warps"], row) == f"{by_registers} and warp slots"
    # one more block is all that the next limit allows, or its warps would not fit
    last = row | {"occupancy.next_limit_frac": 0.627}
    assert (
        limiters_in_words(["registers"], last)
        == "registers (64 per thread; at 48 one more block fits, 62.5 % occupancy)"
    )
    over = row | {"occupancy.one_more_block_frac": 1.125}
    assert limiters_in_words(["registers"], over) == "registers (64 per thread; at 48 one more block fits)"
    assert limiters_in_words(["shared_memory"], row) == "shared memory"
    assert limiters_in_words(["registers"], dict.fromkeys(row)) == "registers"
    assert limiters_in_words([], row) == "its resources"


def tightest(limits: dict[str, float | None], shared_bytes: float | None) -> list[str]:
    shared = {"launch.own_shared_bytes_per_block": None, "launch.shared_bytes_per_block": shared_bytes}
    return occupancy_limiters({f"occupancy.limit_{name}": limits.get(name) for name in RESOURCES} | shared)


def test_the_tightest_limits_are_all_named() -> None:
    assert tightest({"registers": 4.0, "warps": 4.0, "blocks": 16.0, "barriers": None}, 1024.0) == [
        "registers",
        "warps",
    ]
    assert tightest({"registers": None}, None) == []
    # Turing reports 16 blocks for shared memory that a kernel does not use: the number of block slots.
    assert tightest({"shared_memory": 16.0, "blocks": 16.0}, 0.0) == ["blocks"]
    assert tightest({"shared_memory": 16.0, "blocks": 16.0}, None) == ["shared_memory", "blocks"]
    assert tightest({"shared_memory": 16.0, "blocks": 16.0}, 4096.0) == ["shared_memory", "blocks"]


def test_shared_memory_that_only_the_driver_allocates_is_not_the_programs() -> None:
    limits = dict.fromkeys((f"occupancy.limit_{name}" for name in RESOURCES), 16.0)
    shared = {"launch.own_shared_bytes_per_block": 0.0, "launch.shared_bytes_per_block": 1024.0}
    assert occupancy_limiters(limits | shared) == ["registers", "warps", "blocks"]


def test_smaller_blocks_are_those_that_the_quantity_assumes() -> None:
    assert f"blocks of {SMALL_BLOCK} threads" in load_catalogue().quantity("occupancy.small_blocks_frac").doc


def test_block_slots_under_the_names_of_other_limits_are_named_once() -> None:
    # H100: blocks of one warp without shared memory and without barriers.
    slots = {"registers": 84.0, "shared_memory": 32.0, "warps": 64.0, "blocks": 32.0, "barriers": 32.0}
    assert tightest(slots, 0.0) == ["blocks"]
    assert tightest(slots | {"registers": 32.0}, 0.0) == ["registers", "blocks"]
    # The driver's own, in a small carve-out.
    assert tightest(slots | {"shared_memory": 8.0}, 0.0) == ["shared_memory"]
    assert tightest(slots | {"barriers": 4.0}, 0.0) == ["barriers"]


def test_an_advice_names_what_limits_this_kernel_and_what_makes_room_there() -> None:
    cures = {"registers": "fewer registers", "shared_memory": "smaller tiles", "blocks": "larger blocks"}
    row = {"launch.n_registers_per_thread": 96.0, "occupancy.registers_for_one_more_block": 80.0}
    advice = "Make room in {limiters}: {cures}."
    assert with_limits(advice, ["blocks"], row, cures) == "Make room in block slots: larger blocks."
    both = with_limits(advice, ["registers", "blocks"], row, cures)
    assert (
        both
        == "Make room in registers (96 per thread; at 80 one more block fits) and block slots: fewer registers; larger blocks."
    )
    assert with_limits(advice, [], row, cures) == "Make room in its resources: fewer registers; smaller tiles."


@pytest.mark.corpus
def test_the_rules_give_the_limits_that_nsight_compute_reports(corpus: list[Path]) -> None:
    n_compared = 0
    for path in corpus[::8]:
        kernels = ncuroof.read(path).analyse().measurements.kernels
        for row in kernels.drop_nulls("occupancy.limit_registers").iter_rows(named=True):
            limit = _limit_by_registers(
                int(row["launch.n_registers_per_thread"]), int(row["launch.n_threads_per_block"])
            )
            assert limit == row["occupancy.limit_registers"]
            n_compared += 1
    assert n_compared > 50
