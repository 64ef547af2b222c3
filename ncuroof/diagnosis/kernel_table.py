"""Everything known about each launch, as one wide table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from ncuroof.diagnosis.diagnose import Diagnosis
from ncuroof.diagnosis.summary import with_weights
from ncuroof.metrics import Measurements, precisions
from ncuroof.roofline import Roofline
from ncuroof.words import MemoryLevel


def kernel_table(
    measurements: Measurements, placed: Roofline, diagnosis: Diagnosis, weights: pl.DataFrame
) -> pl.DataFrame:
    """Return one row per workload: KERNELS with all quantities, BOUNDS, VERDICTS, WEIGHTS, and the long tables spread into columns.

    Every report has the same columns, null where it lacks the data; `ncuroof.analysis.Analysis.kernels` describes them.

    Args:
        measurements: what was measured.
        placed: the roofline of these measurements.
        diagnosis: their diagnosis.
        weights: WEIGHTS.
    """
    kernels = measurements.kernels.hstack(
        [column for part in (placed.bounds, diagnosis.verdicts) for column in part.drop("id")]
    )
    dominant = placed.points.join(
        kernels.select("id", precision="dominant_precision"), on=["id", "precision"], how="semi"
    )
    kernels = with_weights(kernels, weights)
    levels = [level.value for level in MemoryLevel]
    known = precisions()
    later = [name for name in placed.work["precision"].unique(maintain_order=True) if name not in known]
    spreads = (
        _spread(kernels["id"], placed.work, "work", "precision", known, ("flop", "frac")),
        _spread(kernels["id"], placed.bandwidth, "bandwidth", "level", levels, ("bytes_per_s", "frac")),
        _spread(kernels["id"], dominant, "intensity", "level", levels, ("intensity_flop_per_byte",)),
        _spread(
            kernels["id"],
            placed.instruction_points,
            "instruction_intensity",
            "level",
            levels,
            ("intensity_inst_per_transaction",),
        ),
        _spread(kernels["id"], placed.work, "work", "precision", later, ("flop", "frac")),
    )
    return kernels.hstack([column for spread in spreads for column in spread])


def _spread(
    ids: pl.Series, table: pl.DataFrame, prefix: str, key: str, names: Sequence[str], values: Sequence[str]
) -> Iterator[pl.Series]:
    """Yield a column per name and value of a long table, in the kernels' order; a single value is left out of the column's name."""
    rows_by_name = table.select("id", key, *values).partition_by(key, as_dict=True)
    for name in names:
        rows = rows_by_name.get((name,))
        found = None if rows is None else ids.to_frame().join(rows, on="id", how="left", maintain_order="left")
        for value in values:
            column = pl.repeat(None, len(ids), dtype=table.schema[value], eager=True) if found is None else found[value]
            yield column.alias(f"{prefix}.{name}.{value}" if len(values) > 1 else f"{prefix}.{name}")
