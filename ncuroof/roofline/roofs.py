"""The whole roofline of an analysis: profiles of its devices, ceilings, points and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.metrics import Measurements
from ncuroof.roofline.bounds import bound
from ncuroof.roofline.ceilings import ceilings
from ncuroof.roofline.datasheet_peaks import with_datasheet_bandwidth, with_datasheet_peaks
from ncuroof.roofline.gpu_profiles import GpuProfile, match_profile
from ncuroof.roofline.instructions import instruction_ceilings, place_instructions
from ncuroof.roofline.points import place

_MOSTLY = 0.5
_TMA_IN_USE_FRAC = 0.01
"""A bulk copy moves kilobytes with one instruction: where the pipe is busy for this share of the time, it carries the traffic."""

_TENSOR_TYPES_FOR_FP32_WORK = ("tensor_tf32", "tensor_bf16", "tensor_fp16")


@dataclass(frozen=True, slots=True)
class Roofline:
    """Where the kernels lie, and under what.

    Attributes:
        work: WORK, with the data sheet's peak where the report holds none.
        bandwidth: BANDWIDTH, likewise.
        points: POINTS.
        ceilings: CEILINGS.
        instruction_points: INSTRUCTION_POINTS.
        instruction_ceilings: CEILINGS of the instruction roofline.
        bounds: BOUNDS with the quantities of `bound` and `device.tensor_speedup`.
        profiles: data sheet by device, None where no profile fits.
    """

    work: pl.DataFrame
    bandwidth: pl.DataFrame
    points: pl.DataFrame
    ceilings: pl.DataFrame
    instruction_points: pl.DataFrame
    instruction_ceilings: pl.DataFrame
    bounds: pl.DataFrame
    profiles: Mapping[int, GpuProfile | None]


def roofline(measurements: Measurements) -> Roofline:
    """Return the roofline of all that was measured."""
    kernels = measurements.kernels
    profiles = {
        row["device"]: _profile(row["name"], row["compute_capability"], row)
        for row in measurements.devices.iter_rows(named=True)
    }
    work = with_datasheet_peaks(measurements.work, kernels, profiles)
    bandwidth = with_datasheet_bandwidth(measurements.bandwidth, kernels, profiles)
    bounds = bound(kernels, work, bandwidth)
    past_l1 = _is_past_l1(kernels)
    placed = bandwidth.filter(
        ~(pl.col("id").is_in(kernels.filter(past_l1)["id"].implode()) & (pl.col("level") == "l1"))
    )
    dwarfed = bounds.filter(pl.col("roofline.uncounted_frac").is_not_null())["id"].implode()
    speedup = {device: _tensor_speedup(profile) for device, profile in profiles.items()}
    roofs = ceilings(kernels, work, bandwidth, profiles)
    return Roofline(
        work=work,
        bandwidth=bandwidth,
        points=place(work.filter(~pl.col("id").is_in(dwarfed)), placed),
        ceilings=roofs,
        instruction_points=place_instructions(kernels, placed),
        instruction_ceilings=instruction_ceilings(kernels, roofs, profiles),
        bounds=bounds.with_columns(
            kernels["device"]
            .replace_strict(list(speedup), list(speedup.values()), return_dtype=pl.Float64)
            .alias("device.tensor_speedup"),
            past_l1.cast(pl.Float64).alias("roofline.past_l1"),
        ),
        profiles=profiles,
    )


def _is_past_l1(kernels: pl.DataFrame) -> pl.Series:
    """Return whether most of what a kernel loads never returns to registers, so that L1's roof traffic does not hold it."""
    is_past = (pl.col("access.async_copy_frac") > _MOSTLY) | (pl.col("utilisation.tma") > _TMA_IN_USE_FRAC)
    return kernels.select(is_past.fill_null(value=False)).to_series()


def _profile(name: str | None, compute_capability: int | None, row: Mapping[str, int | None]) -> GpuProfile | None:
    if name is None or compute_capability is None:
        return None
    return match_profile(
        name,
        f"{compute_capability // 10}.{compute_capability % 10}",
        sm_count=row["sm_count"],
        dram_bytes=row["dram_bytes"],
        memory_bus_bits=row["memory_bus_bits"],
    )


def _tensor_speedup(profile: GpuProfile | None) -> float | None:
    """Return how much faster than FP32 the GPU multiplies matrices in the least narrow tensor type; None without tensor cores."""
    if profile is None or "fp32" not in profile.peak_flop_per_s:
        return None
    rates = [profile.peak_flop_per_s.get(precision) for precision in _TENSOR_TYPES_FOR_FP32_WORK]
    known = [rate for rate in rates if rate is not None]
    return known[0] / profile.peak_flop_per_s["fp32"] if known else None
