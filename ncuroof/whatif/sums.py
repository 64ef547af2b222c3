"""Sums of a projection over launches: of the whole run, and by kernel. Launches that stand for others count for them."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis import known_sum, n_launches
from ncuroof.tables import check
from ncuroof.whatif.fusion import launches
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION

_OF_LONGEST = ("id", "short_name", "verdict", "limiter", "limiter_there", "ridge_ratio", "recorded_ridge_ratio")
_TIMES = ("recorded_ns", "duration_ns", "least_ns", "most_ns")


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
