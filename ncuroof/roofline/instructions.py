"""The instruction roofline: kernels by executed warp instructions, so that kernels without FLOPs can be placed as well."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ncuroof.enums import CeilingSource, MemoryLevel
from ncuroof.roofline.ceiling_table import longest_launch
from ncuroof.roofline.gpu_profiles import GpuProfile
from ncuroof.tables import BANDWIDTH, CEILINGS, INSTRUCTION_POINTS, KERNELS, check, conform, finite

TRANSACTION_BYTES: Mapping[str, int] = {
    MemoryLevel.DRAM.value: 32,
    MemoryLevel.L2.value: 32,
    MemoryLevel.L1.value: 32,
    MemoryLevel.SHARED.value: 128,
}
"""Bytes of one transaction by level: a sector, or in shared memory a wavefront of 32 banks × 4 byte (Ding, Williams, PMBS 2019)."""

WARP_ISSUE = "warp_issue"
"""Name of the ceiling set by the warp schedulers' issue rate."""

INSTRUCTION_DEFINITION = (
    "executed warp instructions over the duration; transactions are the achieved and peak bytes of `bandwidth` "
    "÷ 32, of shared memory ÷ 128"
)
_ISSUE_DEFINITION = "one warp instruction per scheduler and cycle"


def place_instructions(kernels: pl.DataFrame, bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Place each kernel under the instruction roofs of the levels it moved bytes on.

    With T the bytes of a transaction: intensity = (inst/s) / (byte/s / T), and roof = min(issue peak, intensity × peak byte/s / T).
    Achieved and peak byte/s are the pair in BANDWIDTH, so that dot and roof count the same traffic.

    Args:
        kernels: KERNELS with `instructions.warp_per_s` and `instructions.peak_warp_per_s`.
        bandwidth: BANDWIDTH.

    Returns:
        INSTRUCTION_POINTS, by kernel, of kernels that executed instructions. If a level moved no bytes, the intensity is null
        and the roof is the issue peak alone; without an issue peak, it is the slope alone. A roof of 0 has a null `roof_frac`.

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Ding, Williams, "An Instruction Roofline Model for GPUs", PMBS 2019.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(bandwidth, BANDWIDTH, table="BANDWIDTH")
    executed = kernels.filter(pl.col("instructions.warp_per_s") > 0).select(
        "id",
        pl.col("instructions.warp_per_s").alias("inst_per_s"),
        pl.col("instructions.peak_warp_per_s").alias("peak_inst_per_s"),
    )
    size = _transaction_bytes("level")
    peak, slope = pl.col("peak_inst_per_s"), pl.col("peak_bytes_per_s") / size
    moved = pl.when(pl.col("bytes_per_s") > 0).then(pl.col("bytes_per_s") / size)
    intensity = pl.col("inst_per_s") / moved
    roof = pl.min_horizontal(peak, intensity * slope)
    return (
        executed.join(bandwidth, on="id", maintain_order="left_right")
        .select(
            "id",
            "level",
            intensity.alias("intensity_inst_per_transaction"),
            "inst_per_s",
            roof.alias("roof_inst_per_s"),
            (peak / slope).alias("ridge_inst_per_transaction"),
            (pl.col("inst_per_s") / roof).alias("roof_frac"),
            _in_transactions("level").alias("definition"),
        )
        .pipe(conform, INSTRUCTION_POINTS)
        .pipe(finite)
    )


def instruction_ceilings(
    kernels: pl.DataFrame, ceilings: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]
) -> pl.DataFrame:
    """Return the roofs of the instruction roofline of each device.

    Args:
        kernels: KERNELS with `instructions.peak_warp_per_s` and `device.n_schedulers_per_sm`.
        ceilings: CEILINGS of the FLOP roofline; their bandwidths are converted to transactions.
        profiles: data sheet by device.

    Returns:
        CEILINGS by device: `per_s` is transactions/s for a level and warp instructions/s for WARP_ISSUE.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(ceilings, CEILINGS, table="CEILINGS")
    slopes = ceilings.filter(pl.col("kind") == "bandwidth").with_columns(
        pl.col("per_s") / _transaction_bytes("name"), _in_transactions("name").alias("definition")
    )
    issue = kernels.select(
        "id",
        pl.lit(WARP_ISSUE).alias("name"),
        pl.col("instructions.peak_warp_per_s").alias("per_s"),
        pl.lit(f"{_ISSUE_DEFINITION} of the measured clock").alias("definition"),
    )
    measured = longest_launch(kernels, issue, "compute", "name", "per_s")
    return pl.concat([slopes, measured, _of_sheets(kernels, profiles)]).sort("device", maintain_order=True)


def _of_sheets(kernels: pl.DataFrame, profiles: Mapping[int, GpuProfile | None]) -> pl.DataFrame:
    """Return the issue peak of each device at its data sheet's boost clock."""
    sheets = pl.DataFrame(
        [
            (device, profile.sm_count * profile.sm_boost_clock_hz, profile.sources["gpu.sm_boost_clock_hz"])
            for device, profile in profiles.items()
            if profile is not None
        ],
        schema={"device": pl.UInt32, "sm_cycles_per_s": pl.Float64, "document": pl.String},
        orient="row",
    )
    schedulers = kernels.group_by("device").agg(pl.col("device.n_schedulers_per_sm").max())
    return (
        sheets.join(schedulers, on="device", maintain_order="left")
        .filter(pl.col("device.n_schedulers_per_sm").is_not_null())
        .select(
            "device",
            pl.lit("compute").alias("kind"),
            pl.lit(WARP_ISSUE).alias("name"),
            (pl.col("sm_cycles_per_s") * pl.col("device.n_schedulers_per_sm")).alias("per_s"),
            pl.lit(CeilingSource.DATASHEET.value).alias("source"),
            pl.format(f"{_ISSUE_DEFINITION} of the boost clock: {{}}", "document").alias("definition"),
        )
        .pipe(conform, CEILINGS)
    )


def _transaction_bytes(level: str) -> pl.Expr:
    """Return the bytes of a transaction of the memory level in the column `level`."""
    return pl.col(level).replace_strict(dict(TRANSACTION_BYTES), return_dtype=pl.Float64)


def _in_transactions(level: str) -> pl.Expr:
    """Return the definition of the bytes with the size of a transaction appended."""
    size = _transaction_bytes(level).cast(pl.Int64)
    return pl.format("{}; {} byte per transaction", "definition", size)
