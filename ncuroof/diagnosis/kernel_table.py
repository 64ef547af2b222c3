"""All that is known of each launch as one wide table."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.diagnosis.diagnose import Diagnosis
from ncuroof.metrics import Measurements
from ncuroof.roofline import Roofline


def kernel_table(
    measurements: Measurements, placed: Roofline, diagnosis: Diagnosis, weights: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return one row per workload: KERNELS with all quantities, BOUNDS, VERDICTS, and the long tables spread into columns.

    See `ncuroof.analysis.Analysis.kernels` for the names of the columns.

    Args:
        measurements: what was measured.
        placed: the roofline of it.
        diagnosis: the verdicts.
        weights: WEIGHTS, which are joined; None where each launch stands for itself.
    """
    kernels = measurements.kernels.hstack(
        [column for part in (placed.bounds, diagnosis.verdicts) for column in part.drop("id")]
    )
    dominant = placed.points.join(
        kernels.select("id", precision="dominant_precision"), on=["id", "precision"], how="semi"
    )
    for spread in (
        _spread(placed.work, "work", "precision", ("flop", "frac")),
        _spread(placed.bandwidth, "bandwidth", "level", ("bytes_per_s", "frac")),
        _spread(dominant, "intensity", "level", ("intensity_flop_per_byte",)),
        _spread(placed.instruction_points, "instruction_intensity", "level", ("intensity_inst_per_transaction",)),
    ):
        kernels = kernels.join(spread, on="id", how="left", maintain_order="left")
    return kernels if weights is None else kernels.join(weights, on="id", how="left", maintain_order="left")


def _spread(table: pl.DataFrame, prefix: str, name: str, values: Sequence[str]) -> pl.DataFrame:
    """Return a long table with a row per kernel, and a column per name and value; one value needs no name of its own."""
    spread = table.select("id").unique(maintain_order=True)
    for key in table[name].unique(maintain_order=True):
        columns = [
            pl.col(value).alias(f"{prefix}.{key}.{value}" if len(values) > 1 else f"{prefix}.{key}") for value in values
        ]
        rows = table.filter(pl.col(name) == key).select("id", *columns)
        spread = spread.join(rows, on="id", how="left", maintain_order="left")
    return spread
