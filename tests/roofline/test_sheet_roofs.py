"""Roofs of the data sheet at other clocks, and what no measurement can be above: by hand for an H100."""

from __future__ import annotations

import pytest

from ncuroof.roofline import profile_by_name
from ncuroof.roofline.sheet_roofs import most_that_is_possible, sheet_roof_at_clock

H100 = profile_by_name("h100-sxm")


def test_roofs_go_with_the_sm_clock() -> None:
    # 4096 flop a cycle and SM on 132 SMs
    assert sheet_roof_at_clock(H100, "compute", "tensor_bf16", 1.425e9) == pytest.approx(4096 * 132 * 1.425e9)
    # 128 bytes a cycle and SM; 5120 a cycle
    assert sheet_roof_at_clock(H100, "bandwidth", "shared", 1.5e9) == pytest.approx(128 * 132 * 1.5e9)
    assert sheet_roof_at_clock(H100, "bandwidth", "l2", 1.5e9) == pytest.approx(5120 * 1.5e9)
    assert sheet_roof_at_clock(H100, "bandwidth", "dram", 1.5e9) is None
    assert sheet_roof_at_clock(H100, "compute", "fp4", 1.5e9) is None


@pytest.mark.parametrize(
    ("kind", "name", "clock_hz", "most"),
    [
        ("bandwidth", "dram", None, 1.05 * 3.35e12),
        ("bandwidth", "shared", 1.98e9, 1.05 * 128 * 132 * 1.98e9),
        # a lower clock proves nothing: it may have been higher between two readings
        ("bandwidth", "shared", 1.2e9, 1.05 * 128 * 132 * 1.98e9),
        # above the sheet's boost clock
        ("bandwidth", "shared", 2.2e9, 1.05 * 128 * 132 * 2.2e9),
        ("bandwidth", "shared", None, 1.5 * 128 * 132 * 1.98e9),
        # the sheet's 989 TFLOP/s are at 1.83 GHz, and tensor cores may run at 1.98
        ("compute", "tensor_bf16", 1.4e9, 1.05 * 4096 * 132 * 1.98e9),
        ("compute", "fp4", 1.4e9, None),
    ],
)
def test_what_nothing_can_be_above(kind: str, name: str, clock_hz: float | None, most: float | None) -> None:
    found = most_that_is_possible(H100, kind, name, clock_hz)
    assert found == (None if most is None else pytest.approx(most))
