"""Rows of a fleet, stated launch by launch."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import polars as pl

from ncuroof.fleet import FLEET

FIRST_DAY = datetime(2025, 1, 1, tzinfo=timezone.utc)

_USUAL: dict[str, Any] = {
    "report_file": "run.ncu-rep",
    "labels": [],
    "driver_version": "550.54",
    "ncu_version": "2025.1.0",
    "clock_control": "base",
    "gpu_name": "NVIDIA A100-SXM4-40GB",
    "name": "gemm(float*)",
    "short_name": "gemm",
    "workload": "kernel",
    "failed": False,
    "grid": [64, 1, 1],
    "block": [256, 1, 1],
    "nvtx": [],
    "process_name": "train",
    "verdict": "memory",
    "caveats": [],
    "findings": [],
    "n_high": 0,
    "n_medium": 0,
}


def launch(
    report: str, day: float, us: float, *, labels: dict[str, str] | None = None, **columns: Any
) -> dict[str, Any]:
    """Return one launch of a report that was recorded `day` days after the first."""
    given = [{"name": name, "value": value} for name, value in sorted((labels or {}).items())]
    return {
        **dict.fromkeys(FLEET),
        **_USUAL,
        "report_sha256": report,
        "recorded_at": FIRST_DAY + timedelta(days=day),
        "duration_ns": us * 1e3,
        "labels": given,
        **columns,
    }


def fleet(*launches: dict[str, Any]) -> pl.LazyFrame:
    rows = [{**row, "id": number} for number, row in enumerate(launches)]
    return pl.DataFrame(rows, schema=FLEET, orient="row").lazy()
