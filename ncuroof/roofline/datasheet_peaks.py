"""Peaks that a report lacks, from its GPU's data sheet at the clock that the report measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ncuroof.roofline.gpu_profiles import FP16_ACCUMULATE_SUFFIX, FP16_ACCUMULATING, GpuProfile
from ncuroof.roofline.sheet_roofs import sheet_precision
from ncuroof.tables import BANDWIDTH, KERNELS, WORK, check
from ncuroof.words import SPARSE_SPEEDUP, SPARSE_SUFFIX, CeilingSource, MemoryLevel


def with_datasheet_peaks(
    work: pl.DataFrame, kernels: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]
) -> pl.DataFrame:
    """Return WORK with a peak where the counters give none: operations per clock and SM × SMs × measured SM clock.

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
    """Return BANDWIDTH with a peak for device memory where the counters give none.

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
