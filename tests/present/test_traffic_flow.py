"""A kernel's way from the SMs to DRAM, and what stands beside it."""

from __future__ import annotations

import pytest

from ncuroof.present.page.quantity_cells import one_more_block_sentence, shared_flow, traffic_flow


@pytest.mark.parametrize(
    ("access", "remark"),
    [
        ({"atomic_request_frac": 1.0}, "atomics not counted"),
        ({"atomic_request_frac": 0.3, "l1_hit_frac": 0.5}, "50.0 % hits; atomics not counted"),
        ({"atomic_request_frac": 0.3, "bulk_copy_frac": 0.1}, "bulk copies (TMA) and atomics not counted"),
        ({"atomic_request_frac": 0.0, "bulk_copy_frac": None}, ""),
    ],
)
def test_what_l1s_bytes_leave_out_stands_beside_it(access: dict[str, float | None], remark: str) -> None:
    stations = traffic_flow({"traffic_bytes": {"l1": 0.0, "l2": 34.6e6}, "access": access})
    assert stations[1][:2] == ("traffic", "0 B")
    assert stations[2] == ("unit", "L1", remark, 0, None)


def test_lines_are_as_thick_as_their_bytes_are_many_and_say_their_share_of_the_peak() -> None:
    kernel = {
        "traffic_bytes": {"l1": 200e6, "l2": 100e6, "dram": 10e6, "dram_read": 8e6, "dram_write": 2e6, "shared": 50e6},
        "access": {"bank_conflict_frac": 0.25},
        "bandwidth": {"dram": {"frac": 0.5}, "shared": {"frac": 0.125}},
    }
    links = [station for station in traffic_flow(kernel) if station[0] == "traffic"]
    # 26 px for the most, 200 MB: half of them is 13 px, a twentieth 1.3 px.
    assert [(text, width, frac) for _, text, _, width, frac in links] == [
        ("200 MB", 26.0, None),
        ("100 MB", 13.0, None),
        ("10.0 MB", 1.3, 0.5),
    ]
    assert links[-1][2] == "50.0 % of peak; 8.00 MB read, 2.00 MB written"
    assert shared_flow(kernel) == [
        ("unit", "SMs", "", 0, None),
        ("traffic", "50.0 MB", "12.5 % of peak", 6.5, 0.125),
        ("unit", "shared", "25.0 % of wavefronts are bank conflicts", 0, None),
    ]
    assert shared_flow(kernel | {"traffic_bytes": {"shared": None}}) == []


OCCUPANCY = {
    "limiters": ["registers"],
    "theoretical_frac": 0.55,
    "one_more_block_frac": 0.625,
    "registers_for_one_more_block": 48.0,
    "shared_bytes_for_one_more_block": 23296.0,
}
LAUNCH = {"n_registers_per_thread": 54, "shared_bytes_per_block": 32768}


@pytest.mark.parametrize(
    ("occupancy", "said"),
    [
        (
            {},
            "One more block fits on an SM with at most 48 registers per thread (now 54): theoretical occupancy 62.5 % instead "
            "of 55.0 %.",
        ),
        (
            {"limiters": ["registers", "shared_memory"], "one_more_block_frac": 1.2},
            "One more block fits on an SM with at most 48 registers per thread (now 54) and at most 22.8 KiB of shared memory "
            "(now 32 KiB): theoretical occupancy 100 % instead of 55.0 %.",
        ),
        ({"limiters": ["registers", "warps"]}, ""),  # fewer registers alone would not do
        ({"registers_for_one_more_block": None}, ""),
        ({"limiters": []}, ""),
    ],
)
def test_what_one_more_block_needs_is_said_where_it_is_known(occupancy: dict[str, object], said: str) -> None:
    kernel = {"occupancy": OCCUPANCY | occupancy, "launch": LAUNCH}
    assert one_more_block_sentence(kernel) == said
