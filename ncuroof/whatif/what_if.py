"""Apply fusions and changes to a run, project it, and sum the result over the run and by kernel.

Sums count every launch that a recorded one stands for. Remarks state what the model leaves out, if the run has it: the capacity of
L2, CUDA graphs, and short launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.diagnosis import known_sum, n_launches
from ncuroof.formatting import counted
from ncuroof.roofline import GpuProfile, Roofline
from ncuroof.tables import KERNELS, check
from ncuroof.whatif.changes import DTYPE, Change, change, remarks_on_unknown_types
from ncuroof.whatif.fusion import against_order, fuse, launches, parse_fusion
from ncuroof.whatif.peak_ratios import Profiles, Target, above_boost, recorded_dram, with_recorded_dram
from ncuroof.whatif.projection import project
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION
from ncuroof.whatif.unit_times import busy_times

_SHORT_NS = 5e3
"""Projections between an H100 and an H200 were 20 % off on average for launches of less than this, 7 % for those of 5 to 10 µs."""
_LEAST_SHARE = 0.05
"""Share of the run's time from which on short launches are worth a remark."""
_MIB = 2**20

_OF_LONGEST = ("id", "short_name", "verdict", "limiter", "limiter_there", "ridge_ratio", "recorded_ridge_ratio")
_TIMES = ("recorded_ns", "duration_ns", "least_ns", "most_ns")


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A run after fusions and changes, projected.

    Attributes:
        busy: BUSY_TIMES after all fusions and changes.
        projection: PROJECTION of `busy`.
        remarks: sentences on what makes targets, fusions or changes doubtful.
    """

    busy: pl.DataFrame
    projection: pl.DataFrame
    remarks: list[str]


def tried(
    kernels: pl.DataFrame,
    placed: Roofline,
    targets: Sequence[Target],
    *,
    changes: Sequence[Change],
    only: str | None,
    fusions: Sequence[str] = (),
) -> Trial:
    """Fuse kernels of a run, then change them, then project the run to each target.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        placed: roofline of the launches: their work, and the data sheets of the GPUs that recorded them.
        targets: the GPUs to project to.
        changes: changes to make one after another.
        only: regular expression for the names of the kernels to change; None for all.
        fusions: pairs of short names, separated by a comma.

    Raises:
        WhatIfError: a fusion is malformed or impossible, or `only` is not a regular expression, or matches no kernel.
        SchemaError: a column is absent or has another type.
    """
    profiles = with_recorded_dram(placed.profiles, recorded_dram(kernels))
    busy = busy_times(kernels, placed.work)
    remarks = [*above_boost(targets, profiles), *not_modelled(kernels, targets, profiles)]
    for text in fusions:
        pair = parse_fusion(text, busy)
        busy = fuse(busy, *pair)
        remarks += against_order(busy, *pair)
    for each in changes:
        remarks += remarks_on_unknown_types(busy, only) if each.kind == DTYPE else []
        busy = change(busy, each, only, profiles)
    return Trial(busy, project(busy, profiles, targets), remarks)


def not_modelled(kernels: pl.DataFrame, targets: Sequence[Target], profiles: Profiles) -> list[str]:
    """Return remarks on what the model leaves out of these launches; empty if every target is the recording GPU.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        targets: the GPUs to project to.
        profiles: data sheet by device of the report; None for a GPU without one.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    here = list({each.id: each for each in profiles.values() if each is not None}.values())
    others = [target.profile for target in targets if target.profile is not None]
    if all(there.id == each.id for there in others for each in here):
        return []
    sizes = [_l2_remark(each, there) for each in here for there in {there.id: there for there in others}.values()]
    return [text for text in (*sizes, _graph_remark(kernels), _short_launch_remark(kernels)) if text]


def _l2_remark(here: GpuProfile, there: GpuProfile) -> str | None:
    if here.l2_bytes is None or there.l2_bytes is None or here.l2_bytes == there.l2_bytes:
        return None
    word, effect = ("larger", "less") if there.l2_bytes > here.l2_bytes else ("smaller", "more")
    return (
        f"L2 is {word} on {there.id}, {there.l2_bytes / _MIB:.4g} MiB after {here.l2_bytes / _MIB:.4g} on {here.id}: kernels that "
        f"read data again which only the larger one holds take {effect} time than estimated."
    )


def _graph_remark(kernels: pl.DataFrame) -> str | None:
    n_graphs = kernels.filter(pl.col("workload") == "graph").height
    if not n_graphs:
        return None
    return (
        f"The gaps between the kernels of {counted(n_graphs, 'CUDA graph')} are projected as waits; another GPU and driver may "
        "launch faster or slower."
    )


def _short_launch_remark(kernels: pl.DataFrame) -> str | None:
    time = pl.col("duration_ns") * pl.col("weight")
    is_short = pl.col("duration_ns") < _SHORT_NS
    share = kernels.select(time.filter(is_short).sum() / time.sum()).item()
    if share is None or not share >= _LEAST_SHARE:
        return None
    return (
        f"Launches of less than {_SHORT_NS / 1e3:g} µs take {share:.0%} of the time: most of their time is spent on "
        "starting and ending, which data sheets do not cover."
    )


def by_target(busy: pl.DataFrame, projection: pl.DataFrame) -> pl.DataFrame:
    """Return a row per `target`, in the order of the projection.

    Columns are `n_launches`; of these, `n_unknown` that could not be projected, `n_crossing` that cross the ridge,
    `n_crossing_to_memory` and `n_limited_by_assumed_l2`; the sums `recorded_ns`, `duration_ns`, `least_ns` and `most_ns` over the
    projected launches; and `is_known`, whether any launch was projected.

    Args:
        busy: BUSY_TIMES after all changes and fusions.
        projection: PROJECTION of `busy`.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    return _launches(busy, projection).group_by("target", maintain_order=True).agg(_sums())


def by_kernel(busy: pl.DataFrame, projection: pl.DataFrame) -> pl.DataFrame:
    """Return a row per `target` and `name`, in the order of the projection.

    Columns are those of `by_target`; `all_recorded_ns`, the sum over all launches; the first `reason`; and, for the launch that
    took longest as recorded, `id`, `short_name`, `verdict`, `limiter`, `recorded_ridge_ratio`, and on the target `limiter_there`
    and `ridge_ratio`.

    Args:
        busy: BUSY_TIMES after all changes and fusions.
        projection: PROJECTION of `busy`.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    return (
        _launches(busy, projection)
        .group_by("target", "name", maintain_order=True)
        .agg(
            *_sums(),
            pl.col(_OF_LONGEST)
            .sort_by(pl.col("recorded_ns").fill_null(-1.0), descending=True, maintain_order=True)
            .first(),
            known_sum(pl.col("recorded_ns")).alias("all_recorded_ns"),
            pl.col("reason").drop_nulls().first(),
        )
    )


def _launches(busy: pl.DataFrame, projection: pl.DataFrame) -> pl.DataFrame:
    """Join a projection with its launches, and multiply its times by their weights."""
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    check(projection, PROJECTION, table="PROJECTION")
    recorded = launches(busy).rename({"duration_ns": "recorded_ns"})
    return (
        projection.rename({"limiter": "limiter_there"})
        .join(recorded, on="id", how="left", maintain_order="left")
        .with_columns(pl.col(_TIMES) * pl.col("weight"))
    )


def _sums() -> list[pl.Expr]:
    is_known = pl.col("duration_ns").is_not_null()
    to_memory = pl.col("crosses_ridge") & (pl.col("ridge_ratio") < 1)
    return [
        n_launches(),
        n_launches(~is_known).alias("n_unknown"),
        is_known.any().alias("is_known"),
        pl.col("recorded_ns").filter(is_known).sum(),
        *(pl.col(name).sum() for name in _TIMES if name != "recorded_ns"),
        n_launches("crosses_ridge").alias("n_crossing"),
        n_launches(to_memory).alias("n_crossing_to_memory"),
        n_launches("is_limit_assumed").alias("n_limited_by_assumed_l2"),
    ]
