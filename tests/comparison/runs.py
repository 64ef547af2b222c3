"""Runs to compare, made of a few numbers per launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ncuroof.comparison import Run, Setup, launch_groups
from ncuroof.tables import FINDINGS

SETUP = Setup(
    gpus=("NVIDIA H200",),
    drivers=("580.1",),
    ncu_versions=("2025.3.1",),
    clock_controls=("none",),
    cache_controls=("all",),
    sections=("SpeedOfLight",),
    sm_clock_hz=1.5e9,
)


def launch(name: str, us: float | None = 100.0, **changes: Any) -> dict[str, Any]:
    """Return a launch: 100 µs, 1 Gflop, 1 MB of DRAM traffic, DRAM at 60 %, memory-bound, unless changed."""
    return {
        "name": f"{name}(float *, int)",
        "short_name": name,
        "workload": "kernel",
        "grid": [132, 1, 1],
        "block": [256, 1, 1],
        "nvtx": [],
        "failed": False,
        "duration_ns": None if us is None else 1e3 * us,
        "verdict": "memory",
        "limiter": "dram",
        "recoverable_ns": None if us is None else 2e2 * us,
        "min_time_ns": None if us is None else 8e2 * us,
        "work.fp32.flop": 1e9,
        "traffic_bytes.dram": 1e6,
        "utilisation.dram": 0.6,
        "n_represented": 1.0,
        "weight": 1.0,
        "counted_average_ns": None,
    } | changes


def run(
    *launches: dict[str, Any],
    setup: Setup = SETUP,
    findings: Sequence[tuple[int, str]] = (),
    gains: Mapping[str, float | None] | None = None,
) -> Run:
    """Return the run of some launches, with findings as (launch, severity), or those of the first as name and gain in µs."""
    columns = {
        "grid": pl.List(pl.Int64), "block": pl.List(pl.Int64), "nvtx": pl.List(pl.String), "duration_ns": pl.Float64,
        "recoverable_ns": pl.Float64, "min_time_ns": pl.Float64, "work.fp32.flop": pl.Float64, "traffic_bytes.dram": pl.Float64,
        "counted_average_ns": pl.Float64,
    }  # fmt: skip
    kernels = pl.DataFrame(list(launches), schema_overrides=columns, infer_schema_length=None).with_row_index("id")
    told = [{"id": number, "finding": "a_finding", "severity": severity} for number, severity in findings]
    for name, gain in (gains or {}).items():
        told.append({"id": 0, "finding": name, "severity": "high", "gain_ns": None if gain is None else 1e3 * gain})
    table = pl.DataFrame([dict.fromkeys(FINDINGS) | each for each in told], schema=FINDINGS)
    failed = tuple(sorted(str(each["name"]) for each in launches if each["failed"]))
    return Run("run", setup, launch_groups(kernels, table), len(launches), len(failed), failed=failed)
