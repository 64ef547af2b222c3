"""A kernel's way from the SMs to DRAM, and what stands beside it."""

from __future__ import annotations

import pytest

from ncuroof.present.page.quantity_cells import traffic_flow


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
