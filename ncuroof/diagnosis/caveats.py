"""Caveats: how far each kernel's numbers can be trusted, from checks of the numbers against each other."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ncuroof.diagnosis.counted_times import compared_times
from ncuroof.diagnosis.findings import NAMED_GAIN
from ncuroof.diagnosis.rules import Caveat
from ncuroof.enums import CeilingSource, Verdict
from ncuroof.metrics import Measurements
from ncuroof.roofline import Roofline, is_partial

_PACKED_FP32 = "ffma2"
"""Occurs in the definition of FP32 work where packed FP32 FMAs were counted."""


def caveats(rules: Mapping[str, Caveat]) -> pl.Expr:
    """Return the names of the caveats that hold for a kernel, in the order of the rules.

    A caveat whose conditions cannot be decided, because a quantity is missing, does not hold.
    """
    names = [
        pl.when(caveat.holds().fill_null(value=False)).then(pl.lit(name))  # undecided: no warning
        for name, caveat in rules.items()
    ]
    return pl.concat_list(names).list.drop_nulls()


_WAITS = ("long_scoreboard", "lg_throttle", "tex_throttle", "drain", "membar", "barrier")
"""Stall reasons of warps that wait for memory, or for others that do."""

_READ_ONLY_LEVELS = ("l2", "l1")
"""Levels whose roofs may count reads only, as those of Nsight Compute's own chart do."""


def add_checks(
    judged: pl.DataFrame, measurements: Measurements, roofline: Roofline, weights: pl.DataFrame
) -> pl.DataFrame:
    """Return `judged` with a column `check.…` for each check that is not a formula over counters.

    Args:
        judged: one row per kernel with KERNELS, quantities, `verdict`, `is_by_known_units` and `is_by_intensity`.
        measurements: for DEVICES.
        roofline: for WORK, BANDWIDTH, POINTS and INSTRUCTION_POINTS.
        weights: WEIGHTS.
    """
    tables = (
        _of_work(roofline.work),
        _of_levels(roofline.bandwidth),
        _moved_over_counted(roofline.bandwidth, judged),
        _highest_fractions(roofline),
        _of_launches_stood_for(judged, weights),
    )
    checked = judged.with_columns(_facts(measurements))
    for table in tables:
        checked = checked.join(table, on="id", how="left", maintain_order="left")
    # A path can have a lower peak than its pipe, which its work then fills in part: at the fastest path's peak it takes no longer.
    at_least = pl.col("tensor_frac") * pl.col("roofline.tensor_path_frac").fill_null(1.0)
    over_tensor_pipe = at_least / pl.when(pl.col("utilisation.tensor_pipe") > 0).then("utilisation.tensor_pipe") - 1
    return checked.with_columns(
        pl.max_horizontal("check.fp32_over_pipe_frac", "check.fp64_over_pipe_frac", over_tensor_pipe).alias(
            "check.work_over_pipe_frac"
        ),
        pl.sum_horizontal("n_datasheet_work", "n_datasheet_levels").alias("check.n_datasheet_peaks"),
        pl.sum_horizontal("n_chart_work", "n_chart_levels").alias("check.n_from_charts"),
    )


def _facts(measurements: Measurements) -> list[pl.Expr]:
    names = measurements.devices.select("device", "name").iter_rows()
    slices = [device for device, name in names if is_partial(name)]
    is_slice = pl.col("device").is_in(slices)
    facts = {
        "damaged_report": pl.col("is_damaged_report"),
        "printed": pl.col("is_printed"),
        "undecided": (pl.col("verdict") == "unknown") & ~pl.col("failed"),
        "decided_by_known_units": pl.col("is_by_known_units"),
        "decided_by_intensity": pl.col("is_by_intensity"),
        "base_clock": (pl.col("clock_control") == "base") & ~pl.col("failed"),
        "own_clock": pl.col("clock_control") == "none",
        "stage_not_split": pl.col("limiter").is_in(["l1", "shared"])
        & (pl.col("access.unsplit_shared_bytes") > 0).fill_null(value=True),
        "mig": is_slice,
        "shared_slice": is_slice & pl.col("utilisation.compute").is_not_null() & pl.col("utilisation.memory").is_null(),
    }
    return [
        _explained(),
        _memory_waits(),
        *(fact.cast(pl.Float64).alias(f"check.{name}") for name, fact in facts.items()),
    ]


def _explained() -> pl.Expr:
    """Return the share of the time above the roofline that a latency-bound kernel's limiter explains, without stall reasons."""
    above = 1 - pl.col("roofline.min_time_frac")
    is_asked = (pl.col("verdict") == Verdict.LATENCY.value) & pl.col("limiter.stall").is_null() & (above > 0)
    return pl.when(is_asked).then(pl.col(NAMED_GAIN) / above).alias("check.explained_frac")


def _memory_waits() -> pl.Expr:
    """Return the share of the time that warps wait for memory, or at barriers, where DRAM or L2 is the limit; else null."""
    is_asked = (pl.col("verdict") == Verdict.MEMORY.value) & pl.col("limiter").is_in(["dram", "l2"])
    is_known = pl.col("stalls.long_scoreboard").is_not_null()
    waits = pl.sum_horizontal(f"stalls.{reason}" for reason in _WAITS)
    return pl.when(is_asked & is_known).then(waits).alias("check.memory_waits_frac")


def _of_work(work: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel with work, in how many precisions each limitation of the counts applies."""
    is_tensor = pl.col("precision").str.starts_with("tensor")
    is_fp32 = pl.col("precision") == "fp32"
    return (
        work.filter(pl.col("flop") > 0)
        .group_by("id")
        .agg(
            _count(is_tensor & ~pl.col("reliable"), "check.n_unreliable_tensor"),
            _count(~is_tensor & ~pl.col("reliable"), "check.n_bounds"),
            _count((pl.col("precision") == "fp16") & pl.col("reliable"), "check.n_packed_fp16"),
            _count(is_fp32 & ~pl.col("definition").str.contains(_PACKED_FP32), "check.n_unpacked_fp32"),
            _count(_is_from_sheet(), "n_datasheet_work"),
            _count(pl.col("is_from_chart"), "n_chart_work"),
            pl.col("frac").filter(is_tensor & pl.col("reliable")).sum().alias("tensor_frac"),
        )
    )


def _of_launches_stood_for(judged: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel that represents other launches, how much their times differ, and its time over their average."""
    return compared_times(judged, weights.filter(pl.col("n_represented") > 1))


def _of_levels(bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, at how many memory levels each limitation of the counts applies."""
    is_used = pl.col("bytes_per_s") > 0
    return bandwidth.group_by("id").agg(
        _count((pl.col("level") == "dram") & ~pl.col("reliable"), "check.n_estimated_levels"),
        _count(is_used & (pl.col("level") == "shared") & ~pl.col("reliable"), "check.n_bounded_levels"),
        _count(_is_from_sheet(), "n_datasheet_levels"),
        _count(pl.col("is_from_chart"), "n_chart_levels"),
    )


def _moved_over_counted(bandwidth: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, the bytes that passed L2 or L1 over those that its roof counts, where that counts reads only.

    The larger ratio of the two; where the bytes of neither were collected, that of DRAM's bytes over those read there.
    """
    is_read_only = pl.col("level").is_in(_READ_ONLY_LEVELS) & pl.col("definition").str.contains("only")
    counted = pl.col("bytes_per_s") * pl.col("duration_ns") * 1e-9
    by_level = {level: pl.col(f"traffic_bytes.{level}") for level in _READ_ONLY_LEVELS}
    moved = pl.coalesce(pl.when(pl.col("level") == level).then(total) for level, total in by_level.items())
    of_dram = 1 / (1 - pl.col("check.dram_write_share"))
    return (
        bandwidth.filter(is_read_only & (pl.col("bytes_per_s") > 0))
        .join(judged.select("id", "duration_ns", "check.dram_write_share", *by_level.values()), on="id")
        .group_by("id")
        .agg((moved / counted).max().alias("of_level"), of_dram.first().alias("of_dram"))
        .select("id", pl.coalesce("of_level", "of_dram").alias("check.moved_over_counted"))
    )


def _highest_fractions(roofline: Roofline) -> pl.DataFrame:
    """Return, per kernel, the largest share of any roof that it reaches: by points, work, traffic or instructions."""
    fractions = (
        roofline.points.select("id", pl.col("roof_frac").alias("frac")),
        roofline.work.filter("reliable").select("id", "frac"),
        roofline.bandwidth.select("id", "frac"),
        roofline.instruction_points.select("id", pl.col("roof_frac").alias("frac")),
    )
    return pl.concat(fractions).group_by("id").agg(pl.col("frac").max().alias("check.highest_roof_frac"))


def _is_from_sheet() -> pl.Expr:
    return pl.col("peak_source") == CeilingSource.DATASHEET.value


def _count(condition: pl.Expr, name: str) -> pl.Expr:
    return condition.sum().cast(pl.Float64).alias(name)
