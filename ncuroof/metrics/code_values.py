"""What a kernel's machine code tells of it where samples say which instructions matter: numbers that stand beside its counters."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from ncuroof.ingest import RawReport

LOADS_BY_CODE = "access.loads_by_code"

_LEAST_SAMPLES = 30
_LEAST_KNOWN_FRAC = 0.5
"""Of the samples, those at instructions that wait for loads: copies and atomics are waited for as well."""


def loads_by_code(report: RawReport, waits: Collection[str]) -> pl.Series:
    """Return LOADS_BY_CODE of each workload; null where its code, or what its warps wait for, is not known.

    Args:
        report: as it was read.
        waits: counters of samples that found a warp waiting for data.
    """
    counted = [pl.col(name) for name in sorted(waits) if name in report.instructions.columns]
    n_rows = report.workloads.height
    if not counted:
        return pl.Series(LOADS_BY_CODE, [None] * n_rows, pl.Float64)
    n_samples = pl.coalesce(counted)
    known = n_samples.filter(pl.col("n_loads").is_not_null()).sum()
    is_told = (n_samples.sum() >= _LEAST_SAMPLES) & (known >= _LEAST_KNOWN_FRAC * n_samples.sum())
    of_kernel = report.instructions.group_by("row").agg(
        pl.when(is_told).then((n_samples * pl.col("n_loads")).sum() / known).alias(LOADS_BY_CODE)
    )
    rows = pl.DataFrame({"row": range(n_rows)}, schema={"row": pl.UInt32})
    return rows.join(of_kernel, on="row", how="left", maintain_order="left")[LOADS_BY_CODE]
