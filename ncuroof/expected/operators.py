"""Operator calls of the same shapes together: what they needed, what was measured, and what is remarkable about it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import polars as pl

from ncuroof.diagnosis import known_sum
from ncuroof.expected.schemas import CALLS, OPERATORS
from ncuroof.resources import profile_file
from ncuroof.tables import check, conform
from ncuroof.words import TENSOR_PREFIX, Verdict


class _Thresholds(NamedTuple):
    """The numbers of `profiles/expected.toml`."""

    extra_work_ratio: float
    extra_traffic_ratio: float
    extra_traffic_bytes: float
    only_needed_ratio: float


def expected_operators(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the calls by operator and shapes, with the launches that they represent.

    Args:
        calls: CALLS.

    Returns:
        OPERATORS, the most time above the roofline first.

    Raises:
        SchemaError: a column is absent or has another type.
        ProfileError: `profiles/expected.toml` is malformed.
    """
    check(calls, CALLS, table="CALLS")
    above_ns = pl.col("represented_ns") - pl.col("work_weight") * pl.col("roofline_ns")
    first = pl.col("asked_precision", "ran_precision", "verdict", "needed_flop").first()
    return (
        calls.group_by("operator", "shapes", maintain_order=True)
        .agg(
            pl.col("ids").list.first().get(pl.col("duration_ns").fill_null(0.0).arg_max()).alias("id"),
            pl.col("module").drop_nulls().unique(maintain_order=True).alias("modules"),
            pl.len().alias("n_calls"),
            pl.col("n_represented").sum(),
            pl.col("is_uneven").any(),
            known_sum(pl.col("represented_ns")).alias("represented_ns"),
            known_sum(above_ns.clip(lower_bound=0)).alias("above_ns"),
            _ratio("counted_flop", "needed_flop").alias("work_ratio"),
            _ratio("dram_bytes", "compulsory_bytes").alias("traffic_ratio"),
            (pl.col("dram_bytes") - pl.col("compulsory_bytes")).max().alias("excess_bytes"),
            first,
        )
        .with_columns(_remarks().alias("remarks"))
        .sort(pl.col("above_ns").fill_null(0.0), descending=True, maintain_order=True)
        .pipe(conform, OPERATORS)
    )


def _ratio(above: str, below: str) -> pl.Expr:
    """Return the ratio of two weighted sums over the calls where both are known; null where there are none."""
    is_known = pl.col(above).is_not_null() & (pl.col(below) > 0)
    over, under = ((pl.col("work_weight") * pl.col(name)).filter(is_known).sum() for name in (above, below))
    return pl.when(under > 0).then(over / under)


def _remarks() -> pl.Expr:
    """Return the list of remarks that apply, by their names in OPERATORS."""
    limit = _thresholds()
    asked, ran = (pl.col(f"{name}_precision").str.starts_with(TENSOR_PREFIX) for name in ("asked", "ran"))
    is_memory_bound = pl.col("verdict") == Verdict.MEMORY.value
    applies = {
        "other_sizes": pl.col("is_uneven"),
        "off_tensor_cores": asked & ~ran,
        "extra_work": pl.col("work_ratio") >= limit.extra_work_ratio,
        "extra_traffic": (pl.col("traffic_ratio") >= limit.extra_traffic_ratio)
        & (pl.col("excess_bytes") >= limit.extra_traffic_bytes),
        "only_needed_traffic": is_memory_bound
        & (pl.col("needed_flop") == 0)
        & (pl.col("traffic_ratio") <= limit.only_needed_ratio),
    }
    return pl.concat_list(pl.when(holds).then(pl.lit(name)) for name, holds in applies.items()).list.drop_nulls()


@cache
def _thresholds() -> _Thresholds:
    with profile_file("expected.toml") as raw:
        return _Thresholds(
            extra_work_ratio=raw["extra_work"]["least_ratio"],
            extra_traffic_ratio=raw["extra_traffic"]["least_ratio"],
            extra_traffic_bytes=raw["extra_traffic"]["least_bytes"],
            only_needed_ratio=raw["only_needed_traffic"]["most_ratio"],
        )
