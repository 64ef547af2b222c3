"""Roofs of a data sheet by kind and name, as stated and at a different clock, and the limits that no measurement can exceed.

Peaks that a report lacks come from its GPU's data sheet, at the clock that the report measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from ncuroof.enums import SPARSE_SPEEDUP, SPARSE_SUFFIX, CeilingSource, MemoryLevel, Precision
from ncuroof.roofline.gpu_profiles import FP16_ACCUMULATE_SUFFIX, FP16_ACCUMULATING, GpuProfile, load_profiles
from ncuroof.sidecars.calibration import Calibration, ReachedRoof
from ncuroof.tables import BANDWIDTH, KERNELS, WORK, check

AT_THEIR_OWN_CLOCK = (MemoryLevel.DRAM.value,)
"""Memory levels whose bandwidth does not scale with the SM clock."""
_ALLOWED_ABOVE = 1.05
"""Tolerance: clocks change while they are read, and events resolve half a µs. A broken measurement is further off than this."""
_ALLOWED_ABOVE_UNKNOWN_CLOCK = 1.5
"""Tolerance without a measured clock: desktop and laptop cards clock higher than their data sheet says, some by a third."""


def sheet_roof(profile: GpuProfile, kind: str, name: str) -> float | None:
    """Return a roof in byte/s or flop/s as the data sheet states it, at boost clock, or None.

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
    """Return a roof in byte/s or flop/s at an SM clock; None if it does not scale with the clock, or the data sheet lacks it.

    A bandwidth is the one at boost clock × clock / boost clock; a peak is FLOPs per cycle and SM × SMs × clock.
    """
    if kind != "bandwidth":
        return profile.peak_at_clock_flop_per_s(name, clock_hz)
    stated = profile.bandwidth_bytes_per_s.get(name)
    return None if stated is None or name in AT_THEIR_OWN_CLOCK else stated * clock_hz / profile.sm_boost_clock_hz


def most_that_is_possible(profile: GpuProfile, kind: str, name: str, clock_hz: float | None) -> float | None:
    """Return the rate in byte/s or flop/s that no measurement can exceed; None if the data sheet does not state the roof.

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


def with_datasheet_peaks(
    work: pl.DataFrame, kernels: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]
) -> pl.DataFrame:
    """Fill in peaks of WORK that the counters lack: operations per clock and SM × SMs × measured SM clock.

    If the report contains no clock, it is the data sheet's peak at boost clock, times the share of the GPU's SMs that the kernel
    could use: a slice (MIG) or a green context has only a part of them.

    Args:
        work: WORK.
        kernels: KERNELS with `sm_clock_hz` and `device.sm_count`.
        profiles: data sheet by device.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    if not check(work, WORK, table="WORK")["peak_flop_per_s"].has_nulls():
        return work
    rates = pl.DataFrame(
        [row for device, profile in profiles.items() if profile is not None for row in _rates(device, profile)],
        schema={
            "device": pl.UInt32,
            "precision": pl.String,
            "per_clock_per_sm": pl.Float64,
            "at_boost": pl.Float64,
            "sheet_sm_count": pl.Float64,
        },
        orient="row",
    )
    where = kernels.select("id", "device", "sm_clock_hz", "device.sm_count")
    suffix = pl.when(pl.col("precision").str.ends_with(SPARSE_SUFFIX)).then(pl.lit(SPARSE_SUFFIX)).otherwise(pl.lit(""))
    joined = (
        work.with_columns((sheet_precision() + suffix).alias("of_sheet"))
        .join(where, on="id", how="left", maintain_order="left")
        .join(
            rates, left_on=["device", "of_sheet"], right_on=["device", "precision"], how="left", maintain_order="left"
        )
    )
    sm_share = (pl.col("device.sm_count") / pl.col("sheet_sm_count")).clip(upper_bound=1).fill_null(1)
    sheet = pl.coalesce(
        pl.col("per_clock_per_sm") * pl.col("sm_clock_hz") * pl.col("device.sm_count"), pl.col("at_boost") * sm_share
    )
    return check(_filled(joined, "flop_per_s", "peak_flop_per_s", sheet).select(*WORK), WORK, table="WORK")


def with_datasheet_bandwidth(
    bandwidth: pl.DataFrame, kernels: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]
) -> pl.DataFrame:
    """Fill in peaks of device memory in BANDWIDTH that the counters lack.

    Args:
        bandwidth: BANDWIDTH.
        kernels: KERNELS.
        profiles: data sheet by device; None for slices (MIG), which have a part of the memory.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    if not check(bandwidth, BANDWIDTH, table="BANDWIDTH")["peak_bytes_per_s"].has_nulls():
        return bandwidth
    level = MemoryLevel.DRAM.value
    peaks = pl.DataFrame(
        [
            (device, level, profile.bandwidth_bytes_per_s[level])
            for device, profile in profiles.items()
            if profile is not None and level in profile.bandwidth_bytes_per_s
        ],
        schema={"device": pl.UInt32, "level": pl.String, "sheet": pl.Float64},
        orient="row",
    )
    joined = bandwidth.join(kernels.select("id", "device"), on="id", how="left", maintain_order="left").join(
        peaks, on=["device", "level"], how="left", maintain_order="left"
    )
    filled = _filled(joined, "bytes_per_s", "peak_bytes_per_s", pl.col("sheet")).select(*BANDWIDTH)
    return check(filled, BANDWIDTH, table="BANDWIDTH")


def _rates(device: int, profile: GpuProfile) -> Iterator[tuple[int, str, float | None, float, float]]:
    """Yield device, precision, FLOP per clock and SM, FLOP/s at boost clock, and SMs: for each precision, dense and sparse."""
    peaks, rates = profile.peak_flop_per_s, profile.peak_flop_per_clock_per_sm
    n_sms = float(profile.sm_count)
    dense = [name for name in peaks if not name.endswith(SPARSE_SUFFIX)]
    in_fp16 = [name + FP16_ACCUMULATE_SUFFIX for name in FP16_ACCUMULATING if name in peaks]
    for precision in dict.fromkeys([*dense, *in_fp16]):
        stated = profile.stated_precision(precision)
        at_boost, rate, sparse = peaks[stated], rates.get(stated), stated + SPARSE_SUFFIX
        yield device, precision, rate, at_boost, n_sms
        if sparse in peaks:
            yield device, precision + SPARSE_SUFFIX, rates.get(sparse), peaks[sparse], n_sms
        else:
            yield device, precision + SPARSE_SUFFIX, rate and SPARSE_SPEEDUP * rate, SPARSE_SPEEDUP * at_boost, n_sms


def _filled(rows: pl.DataFrame, achieved: str, peak: str, sheet: pl.Expr) -> pl.DataFrame:
    """Return the rows with `sheet` in place of null peaks, and `frac` and `peak_source` to match."""
    is_absent = pl.col(peak).is_null()
    value = pl.coalesce(peak, pl.when(sheet > 0).then(sheet))
    source = (
        pl.when(~is_absent).then("peak_source").when(value.is_not_null()).then(pl.lit(CeilingSource.DATASHEET.value))
    )
    return rows.with_columns(value.alias(peak), (pl.col(achieved) / value).alias("frac"), source.alias("peak_source"))
