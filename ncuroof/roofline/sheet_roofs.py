"""Roofs of a data sheet by kind and name, as stated and at another clock, and the limits that no measurement can exceed."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from ncuroof.roofline.gpu_profiles import FP16_ACCUMULATE_SUFFIX, FP16_ACCUMULATING, GpuProfile, load_profiles
from ncuroof.sidecars.calibration import Calibration, ReachedRoof
from ncuroof.words import SPARSE_SUFFIX, MemoryLevel, Precision

AT_THEIR_OWN_CLOCK = (MemoryLevel.DRAM.value,)
"""Memory levels whose bandwidth does not scale with the SM clock."""
_ALLOWED_ABOVE = 1.05
"""Tolerance: clocks change while they are read, and events resolve half a µs. A broken measurement is further off than this."""
_ALLOWED_ABOVE_UNKNOWN_CLOCK = 1.5
"""Tolerance without a measured clock: desktop and laptop cards clock higher than their data sheet says, some by a third."""


def sheet_roof(profile: GpuProfile, kind: str, name: str) -> float | None:
    """Return a roof in byte/s or flop/s as the data sheet states it, at boost clock; None where it does not.

    Args:
        profile: data sheet of the GPU.
        kind: "bandwidth" or "compute".
        name: memory level or precision.
    """
    return (profile.bandwidth_bytes_per_s if kind == "bandwidth" else profile.peak_flop_per_s).get(name)


def sheet_precision() -> pl.Expr:
    """Return, for rows of WORK, the key of their dense peak in data sheets, such as `tensor_fp16_fp16_accumulate`."""
    dense = pl.col("precision").str.replace(f"{SPARSE_SUFFIX}$", "")
    adds_in_fp16 = dense.is_in(FP16_ACCUMULATING) & (pl.col("accumulates_in") == Precision.FP16.value)
    return pl.when(adds_in_fp16).then(dense + FP16_ACCUMULATE_SUFFIX).otherwise(dense)


def states_peak(compute_capability: str, precision: Precision) -> bool:
    """Return whether any GPU's data sheet of a compute capability, such as "9.0", states a peak of a precision."""
    profiles = (each for each in load_profiles() if each.compute_capability == compute_capability)
    return any(precision.value in profile.peak_flop_per_s for profile in profiles)


def sheet_roof_at_clock(profile: GpuProfile, kind: str, name: str, clock_hz: float) -> float | None:
    """Return a roof in byte/s or flop/s at an SM clock; None if it does not scale with that, or the data sheet does not state it.

    A bandwidth is that at boost clock × clock / boost clock; a peak is FLOPs per cycle and SM × SMs × clock.
    """
    if kind != "bandwidth":
        return profile.peak_at_clock_flop_per_s(name, clock_hz)
    stated = profile.bandwidth_bytes_per_s.get(name)
    return None if stated is None or name in AT_THEIR_OWN_CLOCK else stated * clock_hz / profile.sm_boost_clock_hz


def most_that_is_possible(profile: GpuProfile, kind: str, name: str, clock_hz: float | None) -> float | None:
    """Return the rate in byte/s or flop/s that no measurement can exceed; None where the data sheet does not state the roof.

    It is the roof at boost clock, or at the measured clock if that is higher, plus 5 %; plus 50 % if the roof scales with the SM
    clock and `clock_hz` is None.
    """
    stated = sheet_roof(profile, kind, name)
    if stated is None:
        return None
    if name in AT_THEIR_OWN_CLOCK:
        return _ALLOWED_ABOVE * stated
    highest = sheet_roof_at_clock(profile, kind, name, max(clock_hz or 0.0, profile.sm_boost_clock_hz))
    return (_ALLOWED_ABOVE if clock_hz else _ALLOWED_ABOVE_UNKNOWN_CLOCK) * max(stated, highest or 0.0)


def without_impossible(calibration: Calibration, profile: GpuProfile | None) -> Calibration:
    """Return a calibration without the roofs that its GPU cannot reach; `not_measured` has their names and the reason instead.

    Args:
        calibration: as measured.
        profile: data sheet of the GPU; None if unknown: all roofs are kept.
    """
    refused = {roof: why for roof in calibration.roofs if (why := _why_impossible(roof, profile)) is not None}
    return replace(
        calibration,
        roofs=tuple(roof for roof in calibration.roofs if roof not in refused),
        not_measured=(*calibration.not_measured, *((roof.name, why) for roof, why in refused.items())),
    )


def _why_impossible(roof: ReachedRoof, profile: GpuProfile | None) -> str | None:
    stated = None if profile is None else sheet_roof(profile, roof.kind, roof.name)
    most = None if profile is None else most_that_is_possible(profile, roof.kind, roof.name, roof.sm_clock_hz)
    if stated is None or most is None or roof.per_s <= most:
        return None
    unit = "byte/s" if roof.kind == "bandwidth" else "flop/s"
    return (
        f"measured {roof.per_s:.3g} {unit}, {roof.per_s / stated:.3g} times the data sheet's {stated:.3g} {unit}: "
        "the measurement must be wrong, so this roof is left out"
    )
