"""Compute the whole roofline of an analysis: data sheets of its devices, ceilings, points and bounds.

A kernel has a point per memory level and precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.enums import MemoryLevel, capability_text
from ncuroof.metrics import Measurements
from ncuroof.roofline.bounds import bound
from ncuroof.roofline.ceiling_table import ceilings
from ncuroof.roofline.gpu_profiles import FP16_ACCUMULATE_SUFFIX, GpuProfile, is_partial, match_profile
from ncuroof.roofline.instructions import instruction_ceilings, place_instructions
from ncuroof.roofline.roof_shares import by_device, roof_shares
from ncuroof.roofline.sheet_roofs import with_datasheet_bandwidth, with_datasheet_peaks
from ncuroof.sidecars.calibration import Calibration
from ncuroof.tables import BANDWIDTH, POINTS, WORK, check, conform, finite

_MOSTLY = 0.5
_TMA_IN_USE_FRAC = 0.01
"""A bulk copy moves kilobytes with one instruction: if TMA is busy for more than this share of the time, it carries the traffic."""

_TF32 = "tensor_tf32"
_TENSOR_TYPES_FOR_FP32_WORK = (_TF32, "tensor_bf16", "tensor_fp16")
_LEAST_SPEEDUP = 1.2
"""Ratio above which a tensor type is faster than FP32: GeForce runs TF32 at the FP32 rate, the next types at twice that or more."""
_NARROWER_TENSOR_TYPE = {
    "tensor_tf32": "tensor_bf16",
    "tensor_bf16": "tensor_fp8",
    "tensor_fp16": "tensor_fp8",
    "tensor_fp8": "tensor_fp4",
}
_MOSTLY_FP32_ACCUMULATION = 0.75
"""On GPUs that accumulate in FP32 at half rate, a kernel with a `roofline.tensor_path_frac` below this mostly does so."""


@dataclass(frozen=True, slots=True, eq=False)
class Roofline:
    """Where the kernels lie on the roofline, and the roofs above them.

    Attributes:
        work: WORK, with the data sheet's peak if the report lacks one.
        bandwidth: BANDWIDTH, with the data sheet's peak if the report lacks one.
        points: POINTS.
        ceilings: CEILINGS.
        roof_shares: ROOF_SHARES.
        instruction_points: INSTRUCTION_POINTS.
        instruction_ceilings: CEILINGS of the instruction roofline.
        bounds: BOUNDS with the quantities of `bound`, `device.tf32_speedup`, `device.tensor_speedup`,
            `device.narrower_speedup` and `roofline.past_l1`.
        profiles: data sheet by device; None if no profile fits.
    """

    work: pl.DataFrame
    bandwidth: pl.DataFrame
    points: pl.DataFrame
    ceilings: pl.DataFrame
    roof_shares: pl.DataFrame
    instruction_points: pl.DataFrame
    instruction_ceilings: pl.DataFrame
    bounds: pl.DataFrame
    profiles: Mapping[int, GpuProfile | None]


def roofline(measurements: Measurements, calibrations: Sequence[Calibration] = ()) -> Roofline:
    """Return the roofline of all measurements, including the roofs that `calibrations` measured on the same GPUs."""
    kernels = measurements.kernels
    profiles = {
        row["device"]: _profile(row["name"], row["compute_capability"], row)
        for row in measurements.devices.iter_rows(named=True)
    }
    whole = _of_whole(profiles, measurements.devices)
    work = with_datasheet_peaks(measurements.work, kernels, profiles)
    bandwidth = with_datasheet_bandwidth(measurements.bandwidth, kernels, whole)
    bounds = bound(kernels, work, bandwidth)
    past_l1 = _is_past_l1(kernels)
    placed = bandwidth.filter(
        ~(pl.col("id").is_in(kernels.filter(past_l1)["id"].implode()) & (pl.col("level") == "l1"))
    )
    dwarfed = bounds.filter(pl.col("roofline.uncounted_frac").is_not_null())["id"].implode()
    speedups = {device: _tensor_speedups(profile) for device, profile in profiles.items()}
    reached = by_device(calibrations, measurements.devices)
    roofs = ceilings(kernels, work, bandwidth, whole, reached)
    return Roofline(
        work=work,
        bandwidth=bandwidth,
        points=place(work.filter(~pl.col("id").is_in(dwarfed)), placed),
        ceilings=roofs,
        roof_shares=roof_shares(kernels, work, bandwidth, roofs, reached),
        instruction_points=place_instructions(kernels, placed),
        instruction_ceilings=instruction_ceilings(kernels, roofs, whole),
        bounds=bounds.with_columns(
            *(
                kernels["device"]
                .replace_strict(
                    list(speedups), [of_device[name] for of_device in speedups.values()], return_dtype=pl.Float64
                )
                .alias(name)
                for name in ("device.tf32_speedup", "device.tensor_speedup")
            ),
            _narrower_speedups(kernels, bounds, profiles),
            past_l1.cast(pl.Float64).alias("roofline.past_l1"),
        ),
        profiles=profiles,
    )


def sheet_dram_bandwidth(
    name: str | None, compute_capability: int | None, attributes: Mapping[str, int | None]
) -> float | None:
    """Return a GPU's memory bandwidth in byte/s by its data sheet; None if no profile fits, or for a MIG slice, which has a part.

    Args:
        name: name of the device in the report.
        compute_capability: 90 for 9.0.
        attributes: `sm_count`, `dram_bytes` and `memory_bus_bits` as the driver reports them.
    """
    profile = None if is_partial(name) else _profile(name, compute_capability, attributes)
    return None if profile is None else profile.bandwidth_bytes_per_s.get(MemoryLevel.DRAM.value)


def _of_whole(profiles: Mapping[int, GpuProfile | None], devices: pl.DataFrame) -> dict[int, GpuProfile | None]:
    """Return the data sheets by device, None for MIG slices: a data sheet does not state the peaks of a part of the GPU."""
    names = devices.select("device", "name").iter_rows()
    return {device: None if is_partial(name) else profiles[device] for device, name in names}


def _is_past_l1(kernels: pl.DataFrame) -> pl.Series:
    """Return whether most loads of a kernel bypass registers (async and bulk copies), and so are not in L1's roof traffic."""
    is_past = (pl.col("access.async_copy_frac") > _MOSTLY) | (pl.col("utilisation.tma") > _TMA_IN_USE_FRAC)
    return kernels.select(is_past.fill_null(value=False)).to_series()


def _profile(name: str | None, compute_capability: int | None, row: Mapping[str, int | None]) -> GpuProfile | None:
    if name is None or compute_capability is None:
        return None
    return match_profile(
        name,
        capability_text(compute_capability),
        sm_count=row["sm_count"],
        dram_bytes=row["dram_bytes"],
        memory_bus_bits=row["memory_bus_bits"],
    )


def _tensor_speedups(profile: GpuProfile | None) -> dict[str, float | None]:
    """Return the speed-ups over FP32 of TF32, and of the first of TF32, BF16 and FP16 that is faster than FP32."""
    peaks = {} if profile is None else profile.peak_flop_per_s
    fp32, rates = peaks.get("fp32"), [peaks.get(precision) for precision in _TENSOR_TYPES_FOR_FP32_WORK]
    speedups = [rate / fp32 for rate in rates if rate is not None] if fp32 is not None else []
    return {
        "device.tf32_speedup": speedups[0] if speedups and _TF32 in peaks else None,
        "device.tensor_speedup": next(
            (each for each in speedups if each > _LEAST_SPEEDUP), max(speedups, default=None)
        ),
    }


def _narrower_speedups(
    kernels: pl.DataFrame, bounds: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]
) -> pl.Series:
    """Return `device.narrower_speedup` of each kernel, by its GPU and its dominant precision."""
    is_slower = (pl.col("roofline.tensor_path_frac") < _MOSTLY_FP32_ACCUMULATION).fill_null(value=False)
    keys = bounds.select(kernels["device"], "dominant_precision", is_slower.alias("is_slower_path"))
    distinct = keys.drop_nulls().unique()
    speedups = [
        narrower_speedup(profiles[device], precision, is_slower_path=is_slower)
        for device, precision, is_slower in distinct.iter_rows()
    ]
    by_key = distinct.with_columns(pl.Series("device.narrower_speedup", speedups, dtype=pl.Float64))
    return keys.join(by_key, on=keys.columns, how="left", maintain_order="left")["device.narrower_speedup"]


def narrower_speedup(profile: GpuProfile | None, precision: str, *, is_slower_path: bool) -> float | None:
    """Return the data-sheet rate of the next narrower tensor type over that of `precision`; None unless the profile states both.

    A GPU that accumulates in FP32 at half rate has two rates for a type. Unless its paths are known to be the slower ones, a
    kernel is assumed to accumulate in FP16: the cautious choice, since it leaves less to gain from a narrower type.

    Args:
        profile: data sheet of the GPU, or None.
        precision: dominant precision of the kernel.
        is_slower_path: whether the kernel's tensor work ran mostly on slower paths than the fastest one of its type.
    """
    narrower = _NARROWER_TENSOR_TYPE.get(precision)
    if profile is None or narrower is None:
        return None
    peaks = profile.peak_flop_per_s
    fast, fast_narrower = precision + FP16_ACCUMULATE_SUFFIX, narrower + FP16_ACCUMULATE_SUFFIX
    is_fp16_accumulation = fast in peaks and not is_slower_path
    rate = peaks.get(fast if is_fp16_accumulation else precision)
    narrower_rate = peaks.get(fast_narrower if is_fp16_accumulation and fast_narrower in peaks else narrower)
    return None if rate is None or narrower_rate is None else narrower_rate / rate


def place(work: pl.DataFrame, bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Place each kernel under the roofs of the levels it moved bytes on and the precisions it worked in.

    Args:
        work: WORK.
        bandwidth: BANDWIDTH.

    Returns:
        POINTS, by kernel, of precisions with reliably counted work. If a level moved no bytes, the intensity is null and the
        roof is the peak alone; without a peak, the roof is the slope alone. A roof of 0 has a null `roof_frac`.

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009: attainable = min(peak, intensity × bandwidth).
    """
    check(work, WORK, table="WORK")
    check(bandwidth, BANDWIDTH, table="BANDWIDTH")
    peak, slope = pl.col("peak_flop_per_s"), pl.col("peak_bytes_per_s")
    moved = pl.when(pl.col("bytes_per_s") > 0).then(pl.col("bytes_per_s"))
    intensity = pl.col("flop_per_s") / moved
    roof = pl.min_horizontal(peak, intensity * slope)
    return (
        work.filter((pl.col("flop_per_s") > 0) & pl.col("reliable"))
        .join(bandwidth, on="id", maintain_order="left_right")
        .select(
            "id",
            "level",
            "precision",
            intensity.alias("intensity_flop_per_byte"),
            "flop_per_s",
            roof.alias("roof_flop_per_s"),
            (peak / slope).alias("ridge_flop_per_byte"),
            (pl.col("flop_per_s") / roof).alias("roof_frac"),
        )
        .pipe(conform, POINTS)
        .pipe(finite)
    )
