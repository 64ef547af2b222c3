"""What the counting run, without ncu, says of the time of a launch and of those that it represents."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis.rules import Caveat

USUAL = "check.usual_ns"

_LEAST_COMPARED_NS = 20_000
"""Under ncu, shorter launches take up to 2.5 times as long as without it: NVIDIA Nsight Compute, Kernel Profiling Guide, "Range and
Precision", and a transformer's training step on an H100."""


def compared_times(kernels: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, how much the times of its counted launches differ, and its own over their average.

    A ratio of its own time above 1 counts only where ncu cannot have caused it: not at the base clock, to which ncu locks the GPU
    by default, and not for launches shorter than `_LEAST_COMPARED_NS`. Elsewhere it is null.

    Args:
        kernels: KERNELS.
        weights: WEIGHTS.

    Returns:
        `id` and the four ratios, null where not counted or not known; rows as in `weights`.
    """
    shortest, longest, average = (pl.col(f"counted_{name}_ns") for name in ("shortest", "longest", "average"))
    known_shortest = pl.when((shortest > 0) & longest.is_not_null()).then(shortest)
    over_average = pl.col("duration_ns") / pl.when(average > 0).then(average)
    is_at_base = pl.col("clock_control").fill_null("base") == "base"
    is_longer_by_ncu = (pl.col("duration_ns") < _LEAST_COMPARED_NS) | is_at_base
    times = weights.join(kernels.select("id", "duration_ns", "clock_control"), on="id", maintain_order="left")
    return times.select(
        "id",
        (longest / known_shortest).alias("check.longest_over_shortest"),
        (average / known_shortest).alias("check.average_over_shortest"),
        (longest / pl.when(average > 0).then(average)).alias("check.longest_over_average"),
        pl.when((over_average <= 1) | ~is_longer_by_ncu).then(over_average).alias("check.recorded_over_average"),
    )


def usual_times(kernels: pl.DataFrame, weights: pl.DataFrame, uneven: Caveat) -> pl.Series:
    """Return `check.usual_ns`: how long launches of a kernel and shape usually take, without ncu where that was counted.

    Under ncu, with cold caches, a launch of a few µs takes up to 2.5 times as long. Where the counted launches are uneven, their
    average is the time of none, and the time under ncu stays.

    Args:
        kernels: KERNELS.
        weights: WEIGHTS.
        uneven: the caveat of launches that represent others of other durations.
    """
    compared = weights.join(compared_times(kernels, weights), on="id", maintain_order="left")
    average = pl.when((pl.col("counted_average_ns") > 0) & ~uneven.holds().fill_null(value=False)).then(
        "counted_average_ns"
    )
    known = kernels.select("id", "duration_ns").join(
        compared.select("id", average=average), on="id", how="left", maintain_order="left"
    )
    usual = pl.when(pl.col("duration_ns").is_not_null()).then(pl.coalesce("average", "duration_ns"))
    return known.select(usual.alias(USUAL)).to_series()
