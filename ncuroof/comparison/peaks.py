"""Peaks that depend on the GPU and its clocks: of DRAM, of L2, and of the arithmetic that a launch mostly does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

PEAK_UNITS: Mapping[str, str] = {
    "bandwidth.dram.peak_bytes_per_s": "byte/s",
    "bandwidth.l2.peak_bytes_per_s": "byte/s",
    "work.peak_flop_per_s": "flop/s",
}
"""Names of the peaks, with their units as in `profiles/metrics/`."""


def peaks(kernels: pl.DataFrame) -> list[pl.Expr]:
    """Return the columns of PEAK_UNITS: the rate of a launch over its share of the peak; null if either is unknown or zero.

    Args:
        kernels: one row per launch, as in `Analysis.kernels`.
    """
    of_levels = [_peak_of_level(kernels, level) for level in ("dram", "l2")]
    return [
        peak.alias(name)
        for name, peak in zip(PEAK_UNITS, (*of_levels, pl.coalesce(*_peaks_of_precisions(kernels))), strict=True)
    ]


def _peak_of_level(kernels: pl.DataFrame, level: str) -> pl.Expr:
    rate, frac = f"bandwidth.{level}.bytes_per_s", f"bandwidth.{level}.frac"
    return _rate_over_share(pl.col(rate), pl.col(frac)) if {rate, frac} <= set(kernels.columns) else _unknown()


def _peaks_of_precisions(kernels: pl.DataFrame) -> Iterator[pl.Expr]:
    """Yield the peak of each precision for the launches that mostly compute in it."""
    known = set(kernels.columns)
    for name in kernels.columns:
        stem, _, what = name.rpartition(".")
        if what == "flop" and stem.startswith("work.") and {f"{stem}.frac", "dominant_precision"} <= known:
            rate = 1e9 * pl.col(name) / pl.col("duration_ns")
            is_dominant = pl.col("dominant_precision") == stem.removeprefix("work.")
            yield pl.when(is_dominant).then(_rate_over_share(rate, pl.col(f"{stem}.frac")))
    yield _unknown()


def _rate_over_share(rate: pl.Expr, frac: pl.Expr) -> pl.Expr:
    return pl.when((rate > 0) & (frac > 0)).then(rate / frac).cast(pl.Float64)


def _unknown() -> pl.Expr:
    return pl.lit(None, pl.Float64)
