"""Builds the document `ncuroof.whatif/1`: the projected time of a run on other GPUs or after changes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from ncuroof.diagnosis.wall_time import WallTime
from ncuroof.model.dtypes import DTYPES
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.documents.json_text import TOOL
from ncuroof.present.schemas.projection import (
    ProjectedKernelEntry,
    ProjectedTimesEntry,
    ProjectionDocument,
    TargetEntry,
)
from ncuroof.whatif import by_kernel, by_target, concerned, parse_changes, parse_targets, tried

SCHEMA = "ncuroof.whatif/1"

ASSUMPTIONS = (
    "Each range spans two hypotheses: the kernel reaches the same fraction of its limiting roof (expected for kernels bound by "
    "a resource), or waits as many SM cycles per wave of blocks as when recorded (expected for kernels bound by latency or "
    "overhead). It is no error bound: another generation may reach more or less of its roof.",
    "Peaks are those of the data sheets, except that the DRAM bandwidth of the recording GPU is the one its driver reports. The "
    "SM clock is the one given, else the same share of the boost clock as when recorded.",
    "Traffic, hit rates, instructions and resident blocks per SM are assumed unchanged: a larger L2 may do better, a kernel not "
    "tuned for the GPU may do worse. Where no document states the L2 bandwidth, it is assumed to scale with SMs and clock, and to "
    "be at least that of DRAM where it was not the limit; the shorter end of a range assumes instead that it scales with DRAM "
    "bandwidth where L2 was the limit, and limits nothing elsewhere. Stages of L2 that no counter names count for the range alone.",
)

OF_A_CHANGE = {
    "batch": "A larger batch is assumed to move proportionally more bytes. Weights are read once whatever the batch, so matrix "
    "products with weights do better than this.",
    "dtype": "A new type scales all traffic of a kernel by the width of its operands, taken from its tensor counters, else from "
    "its name, else from the precision that takes longest. Without tensor cores, L1 and shared memory take as long for two-byte "
    "elements as for four-byte ones.",
    "fuse": "The fused kernel takes the time of both, one after the other, without the bytes that pass between them. The shorter "
    "end of the range assumes that their work overlaps.",
}
"""Further assumptions, by kind of change."""

_OF_VECTORS = (
    "Kernels that compute in FP32 without tensor cores are assumed to stay off them in narrower types. Moving matrix products to "
    "tensor cores is another change: ncuroof report shows where it fits, ncuroof model gemm how fast it can be."
)

_OF_OPERANDS = (
    "The tensor instructions of these kernels read their operands from shared memory (wgmma), which exists on one GPU generation "
    "only. On others, operands are expected to keep up with the tensor cores; the longer end of a range assumes the same reads as "
    "here."
)


def trial_document(
    analysed: Analysed,
    gpus: Sequence[str],
    *,
    changes: Sequence[str] = (),
    only: str | None = None,
    fusions: Sequence[str] = (),
) -> ProjectionDocument:
    """Return the document of what a run would take on other GPUs, or after changes.

    Args:
        analysed: the run.
        gpus: targets as the user writes them; empty for the GPU of the report.
        changes: changes as the user writes them.
        only: regular expression of the kernel names to which changes apply; None for all.
        fusions: pairs of short names, joined by a comma.

    Raises:
        UnknownNameError: there is no such GPU.
        WhatIfError: a target, change or fusion is malformed or impossible, or `only` fits no kernel.
    """
    targets, wanted = parse_targets(gpus), parse_changes(changes)
    trial = tried(analysed.kernels, analysed.roofline_tables, targets, changes=wanted, only=only, fusions=fusions)
    return projection_document(
        trial.busy,
        trial.projection,
        sources=[report.file for report in analysed.reports],
        only=only,
        damage=[f"{report.file}: {report.damage}" for report in analysed.reports if report.damage is not None],
        remarks=trial.remarks,
        changes=[*(f"{text} for {only}" if only else text for text in changes), *(f"fuse {text}" for text in fusions)],
        wall_time=_wall_time(analysed),
    )


def _wall_time(analysed: Analysed) -> WallTime | None:
    """Return the time of a step, or of the run, in which the projected kernels ran; None where it is not known for one program."""
    if analysed.weighting is None or len(analysed.weighting.wall_times) != 1:
        return None
    return analysed.weighting.wall_times[0]


def projection_document(  # noqa: PLR0913  an argument per part of the document
    busy: pl.DataFrame,
    projection: pl.DataFrame,
    *,
    sources: Sequence[str],
    changes: Sequence[str],
    only: str | None = None,
    damage: Sequence[str] = (),
    remarks: Sequence[str] = (),
    wall_time: WallTime | None = None,
) -> ProjectionDocument:
    """Return the document of a projection; kernels by their change of time on the first target, the largest first.

    Args:
        busy: BUSY_TIMES after all changes and fusions.
        projection: PROJECTION of these.
        sources: names of the reports.
        changes: changes and fusions, as the user wrote them.
        only: regular expression of the kernel names to which changes apply; None for all.
        damage: of each damaged report its name and what is wrong with it.
        remarks: remarks on the request, as sentences; they precede the assumptions.
        wall_time: of the step or run in which the kernels ran; None where it is not known.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "sources": list(sources),
        "damage": list(damage),
        "changes": list(changes),
        "targets": [_total(row, wall_time) for row in by_target(busy, projection).iter_rows(named=True)],
        "kernels": _kernels(by_kernel(busy, projection)),
        "assumptions": [
            *(f"Launches may be missing in all times, as a report is damaged ({each})." for each in damage),
            *remarks,
            *ASSUMPTIONS,
            *(assumption for kind, assumption in OF_A_CHANGE.items() if _is_tried(kind, changes)),
            *([_OF_VECTORS] if _is_narrowed(changes) and _has_vector_work(busy.filter(concerned(busy, only))) else []),
            *([_OF_OPERANDS] if projection["are_operands_assumed"].any() else []),
        ],
    }


def _is_tried(kind: str, changes: Sequence[str]) -> bool:
    return any(re.match(rf"\s*{kind}\b", each) for each in changes)


def _is_narrowed(changes: Sequence[str]) -> bool:
    """Return whether any change is to a data type narrower than FP32."""
    found = (re.match(r"\s*dtype\s*:\s*(\w+)", each) for each in changes)
    return any(DTYPES[each[1]].bytes < DTYPES["fp32"].bytes for each in found if each)


def _has_vector_work(busy: pl.DataFrame) -> bool:
    return not busy.filter((pl.col("dominant_precision") == "fp32") & pl.col("tensor_precision").is_null()).is_empty()


def _total(row: Record, wall_time: WallTime | None) -> TargetEntry:
    times = _times(row)
    wall_recorded_ns, wall_ns = None, None
    if wall_time is not None and times["speedup"]:
        busy_ns = wall_time.computation_frac * wall_time.duration_ns
        wall_recorded_ns = wall_time.duration_ns
        wall_ns = wall_recorded_ns - busy_ns + busy_ns / times["speedup"]
    return {
        **times,
        "wall_recorded_ns": wall_recorded_ns,
        "wall_ns": wall_ns,
        "target": row["target"],
        "n_launches": row["n_launches"],
        "n_unknown": row["n_unknown"],
        "n_crossing": row["n_crossing"],
        "n_crossing_to_memory": row["n_crossing_to_memory"],
        "n_limited_by_assumed_l2": row["n_limited_by_assumed_l2"],
    }


def _times(row: Record) -> ProjectedTimesEntry:
    """Return the times of the launches that could be projected; None where none could."""
    is_known = row["is_known"]
    return {
        "recorded_ns": row["recorded_ns"] if is_known else None,
        "duration_ns": row["duration_ns"] if is_known else None,
        "least_ns": row["least_ns"] if is_known else None,
        "most_ns": row["most_ns"] if is_known else None,
        "speedup": row["recorded_ns"] / row["duration_ns"] if is_known and row["duration_ns"] else None,
    }


def _kernels(rows: pl.DataFrame) -> list[ProjectedKernelEntry]:
    kernels: dict[str, ProjectedKernelEntry] = {}
    for row in rows.iter_rows(named=True):
        kernel = kernels.setdefault(
            row["name"],
            {
                "id": row["id"],
                "name": row["name"],
                "short_name": row["short_name"],
                "n_launches": row["n_launches"],
                "verdict": row["verdict"],
                "limiter": row["limiter"],
                "recorded_ns": row["all_recorded_ns"],
                "ridge_ratio": row["recorded_ridge_ratio"],
                "projections": [],
            },
        )
        kernel["projections"].append(
            {
                **_times(row),
                "target": row["target"],
                "limiter": row["limiter_there"],
                "ridge_ratio": row["ridge_ratio"],
                "n_crossing": row["n_crossing"],
                "n_crossing_to_memory": row["n_crossing_to_memory"],
                "n_limited_by_assumed_l2": row["n_limited_by_assumed_l2"],
                "n_unknown": row["n_unknown"],
                "reason": row["reason"],
            }
        )
    return sorted(kernels.values(), key=_order)


def _order(kernel: ProjectedKernelEntry) -> tuple[float, float]:
    """Return the sort key of a kernel: largest change of time on the first target first, to a ns, then longest recorded time."""
    first = kernel["projections"][0]
    moved = abs((first["recorded_ns"] or 0.0) - first["duration_ns"]) if first["duration_ns"] is not None else 0.0
    return -round(moved), -(kernel["recorded_ns"] or 0.0)
