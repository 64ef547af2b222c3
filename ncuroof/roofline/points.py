"""Places kernels on the roofline: a point per memory level and precision."""

from __future__ import annotations

import polars as pl

from ncuroof.tables import BANDWIDTH, POINTS, WORK, check, conform, finite


def place(work: pl.DataFrame, bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Place each kernel under the roofs of the levels it moved bytes on and the precisions it worked in.

    Args:
        work: WORK.
        bandwidth: BANDWIDTH.

    Returns:
        POINTS, by kernel, of precisions with reliably counted work. Where a level moved no bytes, the intensity is null and the
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
