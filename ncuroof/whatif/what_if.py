"""Fusions and changes tried on a run, and the run projected.

Sums over launches are of the whole run, and by kernel; launches that stand for others count for them. What a projection to another
GPU leaves out is said where a run has it: L2's capacity, CUDA graphs, and short launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.diagnosis import known_sum, n_launches
from ncuroof.formatting import counted
from ncuroof.roofline import GpuProfile, Roofline
from ncuroof.tables import KERNELS, check
from ncuroof.whatif.changes import DTYPE, Change, change, untold_types
from ncuroof.whatif.fusion import against_order, fuse, launches, parse_fusion
from ncuroof.whatif.peak_ratios import Profiles, Target, above_boost, recorded_dram, with_recorded_dram
from ncuroof.whatif.projection import project
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION
from ncuroof.whatif.unit_times import busy_times

_SHORT_NS = 5e3
"""Projections between an H100 and an H200 were 20 % off on average for launches of less than this, 7 % for those of 5 to 10 µs."""
_LEAST_SHARE = 0.05
"""Of the run's time: what less of it does is within any range."""
_MIB = 2**20

_OF_LONGEST = ("id", "short_name", "verdict", "limiter", "limiter_there", "ridge_ratio", "recorded_ridge_ratio")
_TIMES = ("recorded_ns", "duration_ns", "least_ns", "most_ns")


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What was tried on a run.

    Attributes:
        busy: BUSY_TIMES after all fusions and changes.
        projection: PROJECTION of these.
        remarks: what makes targets, fusions or changes doubtful, in sentences.
    """

    busy: pl.DataFrame
    projection: pl.DataFrame
    remarks: list[str]


def tried(
    kernels: pl.DataFrame,
    placed: Roofline,
    targets: Sequence[Target],
    *,
    changes: Sequence[Change] = (),
    only: str | None = None,
    fusions: Sequence[str] = (),
) -> Trial:
    """Return a run with kernels fused, then changed, then projected to each target.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        placed: roofline of these: their work, and the data sheets of the GPUs that recorded them.
        targets: where to.
        changes: to make one after another.
        only: regular expression of the kernels' names that changes concern; None for all.
        fusions: each two short names, joined by a comma.

    Raises:
        WhatIfError: a fusion is malformed or impossible, `only` is no regular expression, or fits no kernel.
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
        remarks += untold_types(busy, only) if each.kind == DTYPE else []
        busy = change(busy, each, only, profiles)
    return Trial(busy, project(busy, profiles, targets), remarks)


def not_modelled(kernels: pl.DataFrame, targets: Sequence[Target], profiles: Profiles) -> list[str]:
    """Return remarks on what no data sheet tells of these launches, where a target is another GPU; empty where none is.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        targets: where to.
        profiles: data sheet by device of the report; None where none fits.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    here = list({each.id: each for each in profiles.values() if each is not None}.values())
    others = [target.profile for target in targets if target.profile is not None]
    if all(there.id == each.id for there in others for each in here):
        return []
    sizes = [_of_l2(each, there) for each in here for there in {there.id: there for there in others}.values()]
    return [text for text in (*sizes, _of_graphs(kernels), _of_short_launches(kernels)) if text]


def _of_l2(here: GpuProfile, there: GpuProfile) -> str | None:
    if here.l2_bytes is None or there.l2_bytes is None or here.l2_bytes == there.l2_bytes:
        return None
    word, effect = ("larger", "less") if there.l2_bytes > here.l2_bytes else ("smaller", "more")
    return (
        f"L2 is {word} on {there.id}, {there.l2_bytes / _MIB:.4g} MiB after {here.l2_bytes / _MIB:.4g} on {here.id}: kernels that "
        f"read data again which only the larger one holds take {effect} time than estimated."
    )


def _of_graphs(kernels: pl.DataFrame) -> str | None:
    n_graphs = kernels.filter(pl.col("workload") == "graph").height
    if not n_graphs:
        return None
    return (
        f"The gaps between the kernels of {counted(n_graphs, 'CUDA graph')} are projected as waits; another GPU and driver may "
        "launch faster or slower."
    )


def _of_short_launches(kernels: pl.DataFrame) -> str | None:
    time = pl.col("duration_ns") * pl.col("weight")
    is_short = pl.col("duration_ns") < _SHORT_NS
    share = kernels.select(time.filter(is_short).sum() / time.sum()).item()
    if share is None or not share >= _LEAST_SHARE:
        return None
    return (
        f"Launches of less than {_SHORT_NS / 1e3:g} µs take {share:.0%} of the time: most of theirs is spent on starting and "
        "ending, of which data sheets tell nothing."
    )


def by_target(busy: pl.DataFrame, projection: pl.DataFrame) -> pl.DataFrame:
    """Return a row per `target`, in the order of the projection.

    `n_launches`, of them `n_unknown` that could not be projected, `n_crossing` that cross the ridge, `n_crossing_to_memory`, and
    `n_limited_by_assumed_l2`; `recorded_ns`, `duration_ns`, `least_ns` and `most_ns` of those that could; whether any could,
    `is_known`.

    Args:
        busy: BUSY_TIMES after all changes and fusions.
        projection: PROJECTION of it.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    return _launches(busy, projection).group_by("target", maintain_order=True).agg(_sums())


def by_kernel(busy: pl.DataFrame, projection: pl.DataFrame) -> pl.DataFrame:
    """Return a row per `target` and `name`, in the order of the projection.

    Besides what `by_target` has: `all_recorded_ns` of all launches, what is known of the one that took longest as recorded (`id`,
    `short_name`, `verdict`, `limiter`, `recorded_ridge_ratio`; there `limiter_there`, `ridge_ratio`), and the first `reason`.

    Args:
        busy: BUSY_TIMES after all changes and fusions.
        projection: PROJECTION of it.

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
    """Return the projection with what is known of its launches; times are weighted."""
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
