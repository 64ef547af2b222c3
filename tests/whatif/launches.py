"""Launches to project, made of a few numbers."""

from __future__ import annotations

from typing import Any

import polars as pl

from ncuroof.tables import conform
from ncuroof.whatif.schemas import BUSY_TIMES
from ncuroof.whatif.unit_times import RESOURCES


def launch(name: str = "a", **known: Any) -> dict[str, Any]:
    """Return a launch of 100 µs on the 132 SMs of an H100, 90 % of DRAM and half of the SMs' peaks, unless changed.

    Shares of resources are given by name, `dram=0.9`; what is not given is not used.
    """
    shares = {"dram": 0.9, "sm": 0.5} | {key: known.pop(key) for key in RESOURCES if key in known}
    duration_ns = known.get("duration_ns", 1e5)
    return {
        "id": 0,
        "device": 0,
        "name": f"{name}(float *)",
        "short_name": name,
        "verdict": "memory",
        "duration_ns": duration_ns,
        "n_represented": 1.0,
        "weight": 1.0,
        "failed": False,
        **{f"busy.{key}": shares.get(key, 0.0) * duration_ns for key in RESOURCES},
        "reached_frac": max(shares.values()),
        "limiter": max(shares, key=shares.__getitem__),
        "n_resident_blocks": 132.0 * 8,
        "recorded_n_blocks": 132.0 * 80,
        "n_blocks": 132.0 * 80,
        "sm_count": 132.0,
        "sm_clock_hz": 1.98e9,
    } | known


def table(*launches: dict[str, Any]) -> pl.DataFrame:
    """Return BUSY_TIMES of some launches, numbered in order."""
    absent = dict.fromkeys(BUSY_TIMES)
    rows = [absent | _completed(each) | {"id": number, "fused_id": number} for number, each in enumerate(launches)]
    return pl.DataFrame(rows, schema=BUSY_TIMES).pipe(conform, BUSY_TIMES)


def _completed(row: dict[str, Any]) -> dict[str, Any]:
    reached = row["reached_frac"]
    whole = max(reached, row["busy.l2"] / row["duration_ns"]) if reached and row["duration_ns"] else reached
    return {"busy.operands": 0.0, "busy.l2_whole": row["busy.l2"], "reached_by_whole_l2_frac": whole} | row
