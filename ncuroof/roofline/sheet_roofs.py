"""Roofs of a data sheet by kind and name, as they are stated and at another clock, and what no measurement can be above."""

from __future__ import annotations

from ncuroof.roofline.gpu_profiles import GpuProfile
from ncuroof.words import MemoryLevel

AT_THEIR_OWN_CLOCK = (MemoryLevel.DRAM.value,)
"""Levels whose rate does not go with the SM clock."""
_ALLOWED_ABOVE = 1.05
"""Clocks move while they are read, and events resolve half a µs: no broken measurement hides in so little."""
_ALLOWED_ABOVE_UNKNOWN_CLOCK = 1.5
"""Cards for desks and laptops clock higher than their sheet says, some by a third."""


def sheet_roof(profile: GpuProfile, kind: str, name: str) -> float | None:
    """Return a roof in byte/s or flop/s as the sheet states it, at boost clock; None where it does not.

    Args:
        profile: of the GPU.
        kind: "bandwidth" or "compute".
        name: memory level or precision.
    """
    return (profile.bandwidth_bytes_per_s if kind == "bandwidth" else profile.peak_flop_per_s).get(name)


def sheet_roof_at_clock(profile: GpuProfile, kind: str, name: str, clock_hz: float) -> float | None:
    """Return a roof in byte/s or flop/s at an SM clock; None where it does not go with that, or the sheet does not tell.

    A bandwidth is that at boost clock × clock / boost clock, a peak is flop per cycle and SM × SMs × clock.
    """
    if kind != "bandwidth":
        return profile.peak_at_clock_flop_per_s(name, clock_hz)
    stated = profile.bandwidth_bytes_per_s.get(name)
    return None if stated is None or name in AT_THEIR_OWN_CLOCK else stated * clock_hz / profile.sm_boost_clock_hz


def most_that_is_possible(profile: GpuProfile, kind: str, name: str, clock_hz: float | None) -> float | None:
    """Return the rate in byte/s or flop/s that nothing measured can be above; None where the sheet does not state the roof.

    It is the roof at boost clock, or at the clock that was seen where that is higher, and 5 % more; half as much again where a roof
    goes with a clock that is not known.
    """
    stated = sheet_roof(profile, kind, name)
    if stated is None:
        return None
    if name in AT_THEIR_OWN_CLOCK:
        return _ALLOWED_ABOVE * stated
    highest = sheet_roof_at_clock(profile, kind, name, max(clock_hz or 0.0, profile.sm_boost_clock_hz))
    return (_ALLOWED_ABOVE if clock_hz else _ALLOWED_ABOVE_UNKNOWN_CLOCK) * max(stated, highest or 0.0)
