"""The roofs to draw for each device: from the report's counters, from the GPU's data sheet, and from calibrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from ncuroof.enums import SLOWER_PATH_SUFFIX, SPARSE_SUFFIX, CeilingSource, MemoryLevel, Precision
from ncuroof.roofline.gpu_profiles import GpuProfile
from ncuroof.sidecars.calibration import Calibration, best_roofs
from ncuroof.tables import BANDWIDTH, CEILINGS, KERNELS, WORK, check, conform

_SLOWER_PATH_FRAC = 0.95
"""A mix of tensor paths whose peak is below this share of the fastest path's gets its own roof."""


def ceilings(
    kernels: pl.DataFrame,
    work: pl.DataFrame,
    bandwidth: pl.DataFrame,
    profiles: Mapping[int, GpuProfile | None],
    calibrations: Mapping[int, Calibration | None],
) -> pl.DataFrame:
    """Return the roofs of each device.

    Roofs from counters are valid at the clock of one launch. The roofs of the longest launch that has them represent the device.
    Each kernel is judged against the roofs of its own launch (`place`). A precision's roof is that of its fastest tensor path; a
    slower path that did work has its own roof below it.

    Args:
        kernels: KERNELS.
        work: WORK.
        bandwidth: BANDWIDTH.
        profiles: data sheet by device.
        calibrations: calibration by device: the rates that its GPU was measured to reach.

    Returns:
        CEILINGS, by device, bandwidths first, in the order of the levels and precisions.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    is_counted = pl.col("peak_source") == CeilingSource.COUNTERS.value
    slopes = check(bandwidth, BANDWIDTH, table="BANDWIDTH").filter(is_counted)
    peaks = check(work, WORK, table="WORK").filter(is_counted & pl.col("reliable"))
    highest = peaks.with_columns(pl.coalesce("fastest_peak_flop_per_s", "peak_flop_per_s").alias("peak_flop_per_s"))
    fastest = longest_launch(kernels, highest, "compute", "precision", "peak_flop_per_s")
    counted = pl.concat(
        [
            longest_launch(kernels, slopes, "bandwidth", "level", "peak_bytes_per_s"),
            fastest,
            _slower_paths(kernels, peaks, fastest),
        ]
    )
    known = [row for device, profile in profiles.items() if profile is not None for row in _of_sheet(device, profile)]
    for device, calibration in calibrations.items():
        if calibration is not None:
            known += _reached(device, calibration)
    others = pl.DataFrame(known, schema=CEILINGS, orient="row")
    names = [member.value for member in (*MemoryLevel, *Precision)]
    order = (
        pl.col("name")
        .str.replace(f"({SPARSE_SUFFIX}|{SLOWER_PATH_SUFFIX})+$", "")
        .replace_strict(names, range(len(names)), default=len(names))
    )
    return pl.concat([counted, others]).sort("device", "kind", order, "source", maintain_order=True)


def _slower_paths(kernels: pl.DataFrame, peaks: pl.DataFrame, fastest: pl.DataFrame) -> pl.DataFrame:
    """Return a roof for each precision whose work ran on slower paths: `fastest` times the ratio of the peaks in that launch."""
    share = pl.col("peak_flop_per_s") / pl.col("fastest_peak_flop_per_s")
    slower = peaks.filter((pl.col("flop") > 0) & (share < _SLOWER_PATH_FRAC)).with_columns(share.alias("share"))
    shares = longest_launch(kernels, slower, "compute", "precision", "share").rename({"per_s": "share"})
    roofs = shares.join(fastest.select("device", "name", "per_s"), on=["device", "name"], maintain_order="left")
    return roofs.with_columns(
        (pl.col("share") * pl.col("per_s")).alias("per_s"), pl.col("name") + SLOWER_PATH_SUFFIX
    ).pipe(conform, CEILINGS)


def longest_launch(kernels: pl.DataFrame, rows: pl.DataFrame, kind: str, name: str, peak: str) -> pl.DataFrame:
    """Return CEILINGS from counters: per device and name, the peak of the longest launch that has one.

    Args:
        kernels: KERNELS.
        rows: table with the columns `id`, `definition`, and those that `name` and `peak` name.
        kind: "bandwidth" or "compute".
        name: column with the ceiling's name.
        peak: column with the ceiling's value, per second; null if unknown.
    """
    return (
        rows.filter(pl.col(peak).is_not_null())
        .join(kernels.select("id", "device", "duration_ns"), on="id")
        .sort("duration_ns", descending=True, nulls_last=True, maintain_order=True)
        .group_by("device", name, maintain_order=True)
        .first()
        .select(
            "device",
            pl.lit(kind).alias("kind"),
            pl.col(name).alias("name"),
            pl.col(peak).alias("per_s"),
            pl.lit(CeilingSource.COUNTERS.value).alias("source"),
            "definition",
        )
        .pipe(conform, CEILINGS)
    )


def _of_sheet(device: int, profile: GpuProfile) -> Iterator[tuple[int, str, str, float, str, str]]:
    for kind, table, numbers in (
        ("bandwidth", "bandwidth_bytes_per_s", profile.bandwidth_bytes_per_s),
        ("compute", "peak_flop_per_s", profile.peak_flop_per_s),
    ):
        for name, value in numbers.items():
            source = profile.sources[f"{table}.{name}"]
            yield device, kind, name, value, CeilingSource.DATASHEET.value, source


def _reached(device: int, calibration: Calibration) -> Iterator[tuple[int, str, str, float, str, str]]:
    for (kind, name), roof in best_roofs(calibration).items():
        clock = f", SM clock {roof.sm_clock_hz / 1e6:.0f} MHz" if roof.sm_clock_hz else ""
        spread = f"median of {roof.n_repeats}, spread {100 * roof.spread_frac:.1f} %"
        yield device, kind, name, roof.per_s, CeilingSource.MEASURED.value, f"{roof.how}: {spread}{clock}"
