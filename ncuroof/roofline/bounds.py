"""Each kernel's roofline time, recoverable time, and side of the ridge."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ncuroof.enums import Side
from ncuroof.tables import BANDWIDTH, KERNELS, WORK, check

LEFT_OF_RIDGE = 0.5
RIGHT_OF_RIDGE = 1.5
"""Intensity over ridge: between the two values a kernel is near the ridge, where both sides matter (a choice)."""

LEAST_UNCOUNTED_FRAC = 0.02
"""Work of a pipe that is busy for at most this share of the duration is negligible, if it was not counted (a choice)."""

_ARITHMETIC_PIPES = ("alu", "xu")
_INTEGER_FMA = "integer_fma"
_PIPES_WITH_FLOP = ("fp32", "fp64", "fp16", "tensor")


def bound(kernels: pl.DataFrame, work: pl.DataFrame, bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Return each kernel's roofline time and its side of the ridge.

    Roofline time is the duration times the largest of: DRAM's achieved over peak rate, each precision's achieved over peak
    rate, and the utilisation of the arithmetic pipes whose work no FLOP counter shows (ALU, XU and integer multiply-adds
    always; FMA, FP64, FP16 and tensor if their FLOPs were not collected). It is null unless both the DRAM part and the
    arithmetic part are known.
    For a debug build these pipes do not count, because most of their instructions are moves that optimisation removes.
    A kernel has no side if a pipe without collected FLOPs is busier than the counted work.

    Args:
        kernels: KERNELS with utilisations.
        work: WORK.
        bandwidth: BANDWIDTH.

    Returns:
        BOUNDS, rows as in `kernels`, with the quantities `roofline.min_time_frac`, `roofline.ridge_ratio` (DRAM intensity over the
        ridge of the dominant precision), `roofline.vector_flop_frac` (largest share of a non-tensor FLOP peak),
        `roofline.uncounted_frac` (utilisation of the busiest pipe whose FLOPs were not collected, if it is busier than the counted
        work) and `roofline.tensor_path_frac` (see `_tensor_path_fraction`).

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Wang et al., arXiv 2009.04598 (time-based roofline): T ≥ max(work / peak, bytes / bandwidth).
    """
    check(kernels, KERNELS, table="KERNELS")
    check(work, WORK, table="WORK")
    check(bandwidth, BANDWIDTH, table="BANDWIDTH")
    fractions = (
        kernels.join(_dram_fraction(bandwidth), on="id", how="left", maintain_order="left")
        .join(_work_fractions(work), on="id", how="left", maintain_order="left")
        .join(_tensor_path_fraction(work), on="id", how="left", maintain_order="left")
        .with_columns(pl.coalesce("dram_roof_frac", "utilisation.dram").alias("dram_frac"))
    )
    pipes = {pipe: pl.col(f"share.{pipe}") for pipe in (*_ARITHMETIC_PIPES, _INTEGER_FMA)}
    uncounted_pipes = {pipe: pl.col(f"uncounted.{pipe}") for pipe in _PIPES_WITH_FLOP}
    uncounted, arithmetic, min_time_frac = pl.col("uncounted"), pl.col("arithmetic"), pl.col("min_time_frac")
    # Separate columns: within the expressions that read them, they would be evaluated some fifty times.
    fractions = fractions.with_columns(
        *(_unless_debug_build(pl.col(f"utilisation.{pipe}")).alias(f"share.{pipe}") for pipe in _ARITHMETIC_PIPES),
        _unless_debug_build(_integer_multiply_adds()).alias(f"share.{_INTEGER_FMA}"),
        *(
            pl.when(~_is_counted(pipe))
            .then(_unless_debug_build(pl.col(f"utilisation.{pipe}")))
            .alias(f"uncounted.{pipe}")
            for pipe in _PIPES_WITH_FLOP
        ),
    ).with_columns(pl.max_horizontal(uncounted_pipes.values()).alias("uncounted"))
    fractions = fractions.with_columns(pl.max_horizontal("flop_frac", *pipes.values(), uncounted).alias("arithmetic"))
    is_dwarfed = ((uncounted > pl.col("flop_frac")) & (uncounted > LEAST_UNCOUNTED_FRAC)).fill_null(value=False)
    is_known = pl.col("dram_frac").is_not_null() & arithmetic.is_not_null() & ~pl.col("failed")
    fractions = fractions.with_columns(
        pl.when(is_known).then(pl.max_horizontal("dram_frac", arithmetic)).alias("min_time_frac")
    )
    ridge_ratio = pl.when((pl.col("dram_frac") > 0) & ~is_dwarfed).then(pl.col("flop_frac") / pl.col("dram_frac"))
    recoverable = pl.col("duration_ns") * (1 - min_time_frac).clip(lower_bound=0)
    return fractions.select(
        "id",
        _side(ridge_ratio).alias("side"),
        "dominant_precision",
        (pl.col("duration_ns") * min_time_frac).alias("min_time_ns"),
        _determining_roof(min_time_frac, pipes | uncounted_pipes).alias("min_time_by"),
        recoverable.alias("recoverable_ns"),
        min_time_frac.alias("roofline.min_time_frac"),
        ridge_ratio.alias("roofline.ridge_ratio"),
        pl.col("vector_flop_frac").alias("roofline.vector_flop_frac"),
        pl.when(is_dwarfed).then(uncounted).alias("roofline.uncounted_frac"),
        "roofline.tensor_path_frac",
    )


def _determining_roof(min_time_frac: pl.Expr, pipes: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return what determines the roofline time: "dram", the dominant precision, or a pipe; null for a time of 0."""
    shares = [
        (pl.col("dram_frac"), pl.lit("dram")),
        (pl.col("flop_frac"), pl.col("dominant_precision")),
        *((frac, pl.lit(pipe)) for pipe, frac in pipes.items()),
    ]
    return pl.when(min_time_frac > 0).then(
        pl.coalesce(pl.when(frac == min_time_frac).then(name) for frac, name in shares)
    )


def _unless_debug_build(busy: pl.Expr) -> pl.Expr:
    is_debug_build = (pl.col("check.debug_build") > 0).fill_null(value=False)
    return pl.when(is_debug_build).then(0.0).otherwise(busy)


def _is_counted(pipe: str) -> pl.Expr:
    return pl.col(f"is_counted.{pipe}").fill_null(value=False)


def _integer_multiply_adds() -> pl.Expr:
    """Return the share of the duration for which integer multiply-adds need the half of the FMA pipe that alone executes them.

    It is twice the difference between the utilisations of this half and of the whole pipe, that is, what only this half did. If
    FP32 work was not counted and this difference is most of what the half did, it is the whole utilisation of the half, as all of
    the work may be integers. It is null if the halves are not known separately.

    Source: `arithmetic.integer_fma_frac` in profiles/metrics.
    """
    busier, whole = pl.col("utilisation.fp32"), pl.col("utilisation.fma_pipe")
    beyond = pl.min_horizontal(2 * (busier - whole).clip(lower_bound=0), busier)
    are_most = beyond >= busier / 2
    return pl.when(whole.is_not_null()).then(pl.when(~_is_counted("fp32") & are_most).then(busier).otherwise(beyond))


def _dram_fraction(bandwidth: pl.DataFrame) -> pl.DataFrame:
    return bandwidth.filter(pl.col("level") == "dram").select("id", pl.col("frac").alias("dram_roof_frac"))


def _work_fractions(work: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, the precision whose work takes longest at its peak, and that time as a share of the duration.

    Unreliable work is left out. A kernel whose FLOPs were all measured as zero has a share of 0 and no dominant precision.
    """
    counted = work.filter(pl.col("reliable") & pl.col("frac").is_not_null()).sort("id", "frac", maintain_order=True)
    is_vector = ~pl.col("precision").str.starts_with("tensor")
    is_counted = [
        pl.col("precision").str.starts_with(pipe).any().alias(f"is_counted.{pipe}") for pipe in _PIPES_WITH_FLOP
    ]
    return counted.group_by("id", maintain_order=True).agg(
        pl.col("frac").last().alias("flop_frac"),
        pl.col("precision").filter(pl.col("frac") > 0).last().alias("dominant_precision"),
        pl.col("frac").filter(is_vector).last().alias("vector_flop_frac"),
        *is_counted,
    )


def _tensor_path_fraction(work: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, the time of its tensor work on the fastest paths of its types over the time on the paths that it used.

    Each time is the sum of work / peak over the types. Work without a known peak is left out; a type with a single path is on
    its fastest. A kernel has no row if no fastest path of its types is known.
    """
    used = pl.col("flop_per_s") / pl.col("peak_flop_per_s")
    fastest = pl.col("flop_per_s") / pl.coalesce("fastest_peak_flop_per_s", "peak_flop_per_s")
    done = work.filter(
        pl.col("precision").str.starts_with("tensor") & (pl.col("flop_per_s") > 0) & (pl.col("peak_flop_per_s") > 0)
    )
    compared = done.filter(pl.col("fastest_peak_flop_per_s").is_not_null().any().over("id"))
    return compared.group_by("id").agg((fastest.sum() / used.sum()).alias("roofline.tensor_path_frac"))


def _side(ridge_ratio: pl.Expr) -> pl.Expr:
    return (
        pl.when(ridge_ratio.is_null() | (ridge_ratio <= 0))
        .then(None)
        .when(ridge_ratio < LEFT_OF_RIDGE)
        .then(pl.lit(Side.MEMORY.value))
        .when(ridge_ratio > RIGHT_OF_RIDGE)
        .then(pl.lit(Side.COMPUTE.value))
        .otherwise(pl.lit(Side.NEAR_RIDGE.value))
    )
