"""The time inside a kernel in the document `ncuroof.analysis/1`: its phases, and the series that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import polars as pl

from ncuroof.diagnosis import Diagnosis
from ncuroof.present.analysed import Document
from ncuroof.tables import SAMPLED_UNITS

_POINT = ("precision", "intensity_flop_per_byte", "flop_per_s", "roof_frac")
_LEVEL = "dram"
"""Memory level of a phase's point: the only one whose traffic ncu samples."""


class PhaseEntry(TypedDict):
    """A phase of a kernel; shares of the units' peaks in `utilisation`, as sampled, and in `inferred`."""

    start_ns: float
    duration_ns: float
    kind: str
    utilisation: dict[str, float]
    inferred: dict[str, float]
    sm_active_frac: float | None
    verdict: str
    limiter: str | None
    stall: str | None
    stall_frac: float | None
    point: Document | None


class SamplesEntry(TypedDict):
    """The series of a kernel: how they were sampled, and their course in equal parts of the kernel's time."""

    interval_ns: float
    n: int
    passes: int
    series: dict[str, str]
    levels: dict[str, dict[str, float | None]]
    courses: dict[str, list[float | None]]
    caveat: str | None


class TimeInside(TypedDict):
    """What a kernel's entry has more if it was sampled."""

    phases: list[PhaseEntry]
    samples: SamplesEntry


def time_inside(diagnosis: Diagnosis, ids: pl.Series) -> dict[int, TimeInside]:
    """Return the blocks `phases` and `samples` of each kernel that was sampled, by its `id`.

    Args:
        diagnosis: for PHASES and SAMPLES.
        ids: the kernels that are wanted.
    """
    is_wanted = pl.col("id").is_in(ids.implode())
    blocks: dict[int, TimeInside] = {
        row["id"]: {"phases": [], "samples": _samples(row)}
        for row in diagnosis.samples.filter(is_wanted).iter_rows(named=True)
    }
    for row in diagnosis.phases.filter(is_wanted).iter_rows(named=True):
        blocks[row["id"]]["phases"].append(_phase(row))
    return blocks


def _phase(row: Mapping[str, Any]) -> PhaseEntry:
    units = {unit: row[f"utilisation.{unit}"] for unit in SAMPLED_UNITS}
    point = {"level": _LEVEL} | {key: row[key] for key in _POINT}
    return PhaseEntry(
        start_ns=row["start_ns"],
        duration_ns=row["duration_ns"],
        kind=row["kind"],
        utilisation={unit: share for unit, share in units.items() if share is not None},
        inferred={each["unit"]: each["frac"] for each in row["inferred"] or ()},
        sm_active_frac=row["sm_active_frac"],
        verdict=row["verdict"],
        limiter=row["limiter"],
        stall=row["stall"],
        stall_frac=row["stall_frac"],
        point=point if row["intensity_flop_per_byte"] is not None else None,
    )


def _samples(row: Mapping[str, Any]) -> SamplesEntry:
    return SamplesEntry(
        interval_ns=row["interval_ns"],
        n=row["n"],
        passes=row["passes"],
        series={each["name"]: each["unit"] for each in row["series"]},
        levels={each["course"]: {key: each[key] for key in ("sampled_frac", "counted_frac")} for each in row["levels"]},
        courses={each["course"]: each["values"] for each in row["courses"]},
        caveat=row["caveat"],
    )
