"""Caveats: how far a kernel's numbers can be trusted, told kernel by kernel."""

from __future__ import annotations

import polars as pl

SHORT_KERNEL_NS = 20_000
"""Below this, counters of different passes disagree noticeably (Nsight Compute, Kernel Profiling Guide, "Range and Precision")."""

CLOSURE_TOLERANCE_FRAC = 0.1
"""DRAM bytes against rate × duration; passes of one kernel differ by a few percent in sound reports."""

BUSY_FRAC = 0.6
"""The tree's own threshold for a busy unit, where only intensity decides."""

REDUCED_CLOCK_FRAC = 0.9
"""Below this share of the boost clock, times and the ridge differ visibly from production."""

ROOF_TOLERANCE_FRAC = 0.02
"""A point may lie this far above its roof from clock drift between passes alone."""


def caveats(work: pl.DataFrame, bandwidth: pl.DataFrame, points: pl.DataFrame) -> pl.Expr:
    """Return the names of the caveats that hold for a kernel, in a fixed order.

    Args:
        work: WORK.
        bandwidth: BANDWIDTH.
        points: POINTS.
    """

    def among(rows: pl.DataFrame, condition: pl.Expr) -> pl.Expr:
        return pl.col("id").is_in(rows.filter(condition)["id"].unique().to_list())

    unreliable_tensor = (pl.col("flop") > 0) & ~pl.col("reliable")
    read_only = pl.col("level").is_in(["l2", "l1"]) & pl.col("definition").str.contains("only")
    writes_more = pl.col("traffic_bytes.dram_write") > pl.col("traffic_bytes.dram_read")
    is_part = pl.col("device.sm_count") < pl.col("device.total_sm_count")
    holds = {
        "failed": pl.col("failed"),
        "damaged_report": pl.col("is_damaged_report"),
        "counters_missing": (pl.col("verdict") == "unknown") & ~pl.col("failed"),
        "far_below_roof": pl.col("is_by_intensity") & (pl.col("utilisation.busiest_known") < BUSY_FRAC),
        "short_kernel": pl.col("duration_ns") < SHORT_KERNEL_NS,
        "reduced_clock": (pl.col("sm_clock_hz") < REDUCED_CLOCK_FRAC * pl.col("device.boost_clock_hz"))
        | (pl.col("clock_control") == "base"),
        "hit_rate_over_100": pl.max_horizontal("access.l1_hit_frac", "access.l2_hit_frac") > 1,
        "dram_closure": pl.col("check.dram_closure_frac") > CLOSURE_TOLERANCE_FRAC,
        "unreliable_tensor_count": among(work, unreliable_tensor),
        "fp16_upper_bound": among(work, (pl.col("precision") == "fp16") & (pl.col("flop") > 0)),
        "read_only_traffic": writes_more & among(bandwidth, read_only),
        "partial_gpu": is_part,
        "non_kernel_workload": pl.col("workload") != "kernel",
        "above_roof": among(points, pl.col("roof_frac") > 1 + ROOF_TOLERANCE_FRAC),
    }
    names = [pl.when(condition.fill_null(value=False)).then(pl.lit(name)) for name, condition in holds.items()]
    return pl.concat_list(names).list.drop_nulls()
