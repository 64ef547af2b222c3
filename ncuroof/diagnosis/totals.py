"""Work, rate and DRAM intensity of the whole run: sums over launches, and ratios of sums, never means of ratios."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis.summary import n_launches, with_weights
from ncuroof.diagnosis.weights import UNEVEN
from ncuroof.tables import KERNELS, TOTALS, WORK, check, conform

_NS_PER_S = 1e9


def total_work(
    kernels: pl.DataFrame, work: pl.DataFrame, verdicts: pl.DataFrame, weights: pl.DataFrame
) -> pl.DataFrame:
    """Return the run's work in each precision, in the order of WORK, without failed launches and unreliable counts.

    rate = ΣFLOP / ΣT over the launches in which the precision was counted, even as zero; intensity = ΣFLOP / Σ DRAM bytes over
    those of them whose DRAM bytes are known. Both are null where the divisor is zero or unknown.

    Work and bytes are multiplied by the number of launches represented. Where these differ in time (`UNEVEN`), they have other
    sizes on the same grid, and their work was not counted: it is assumed proportional to time, at the profiled launch's rate.

    Args:
        kernels: KERNELS with `traffic_bytes.dram`.
        work: WORK.
        verdicts: VERDICTS, whose caveats mark launches that represent launches of other durations.
        weights: WEIGHTS, applied to sums and launch counts.

    Returns:
        TOTALS.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(work, WORK, table="WORK")
    launches = kernels.filter(~pl.col("failed")).select("id", "duration_ns", pl.col("traffic_bytes.dram").alias("dram"))
    counted = work.filter(pl.col("reliable") & pl.col("flop").is_not_null()).join(
        launches, on="id", maintain_order="left"
    )
    uneven = verdicts.filter(pl.col("caveats").list.contains(UNEVEN))["id"]
    times_each = pl.when(pl.col("id").is_in(uneven.implode())).then("weight").otherwise("n_represented")
    counted = with_weights(counted, weights).with_columns(
        pl.col("flop", "dram") * times_each, pl.col("duration_ns") * pl.col("weight")
    )
    flop, moves = pl.col("flop"), pl.col("dram").is_not_null()
    seconds = pl.col("duration_ns").sum() / _NS_PER_S
    dram_bytes = pl.col("dram").sum()
    return (
        counted.group_by("precision", maintain_order=True)
        .agg(
            flop.sum(),
            n_launches(),
            pl.when(seconds > 0).then(flop.sum() / seconds).alias("flop_per_s"),
            pl.when(dram_bytes > 0).then(flop.filter(moves).sum() / dram_bytes).alias("intensity_flop_per_byte"),
        )
        .pipe(conform, TOTALS)
    )
