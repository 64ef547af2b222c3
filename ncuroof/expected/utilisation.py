"""Compute how well a run uses the GPU for its operators: model FLOP utilisation (MFU), and what each operator needed and took.

MFU is over the run's GPU time and over its wall time. The rest of the GPU time is divided by cause. Operator calls of the same
shapes are taken together, with remarks if much more was done than was needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import polars as pl

from ncuroof.diagnosis import known_sum
from ncuroof.enums import TENSOR_PREFIX, Verdict
from ncuroof.expected.schemas import CALLS, OPERATORS
from ncuroof.resources import profile_file
from ncuroof.tables import KERNELS, check, conform


@dataclass(frozen=True, slots=True)
class ModelUtilisation:
    """Share of the peak that the model's own products used, and where the rest of the GPU time went.

    `mfu_frac` and the shares from `extra_work_frac` on add up to 1.

    Attributes:
        precision: precision of the peak: the one that most of the needed products could run in.
        peak_flop_per_s: peak of that precision: the data sheet's, or else that of the counters.
        needed_flop: FLOPs of all matrix products of known work, without those recomputed for gradients.
        extrapolated_frac: share of `needed_flop` extrapolated by time to launches of other sizes than the profiled ones.
        duration_ns: GPU time of the run, without the gaps between kernels.
        mfu_frac: needed work over (peak × GPU time); a lower bound if `unknown_products_frac` is not 0.
        wall_mfu_frac: needed work over (peak × wall time of the counted steps); None if that time is unknown.
        extra_work_frac: time of products for more work than was needed: padding, layers recomputed for gradients.
        tail_frac: time that products lose in a last wave that is not full.
        low_efficiency_frac: time that products lose below the peak for other reasons.
        unknown_products_frac: other kernels that used tensor cores: convolutions, attention of other libraries, compiled code.
        memory_bound_frac: other kernels that are memory-bound.
        short_frac: other kernels whose verdict is overhead: too short for their launch.
        other_frac: all other kernels.
    """

    precision: str
    peak_flop_per_s: float
    needed_flop: float
    extrapolated_frac: float
    duration_ns: float
    mfu_frac: float
    wall_mfu_frac: float | None
    extra_work_frac: float
    tail_frac: float
    low_efficiency_frac: float
    unknown_products_frac: float
    memory_bound_frac: float
    short_frac: float
    other_frac: float


def model_utilisation(
    calls: pl.DataFrame, kernels: pl.DataFrame, peaks: Mapping[str, float], wall_ns: float | None = None
) -> ModelUtilisation | None:
    """Return the model FLOP utilisation; None if no call has products, or their peak is unknown.

    The time of products is split into, in this order, needed work at the peak, work beyond it at the peak (padding, recomputation),
    tails (`occupancy.tail_frac` of the launch) and the rest; each takes at most what is left. Calls count for all calls that they
    represent (`work_weight`).

    Args:
        calls: CALLS.
        kernels: one row per launch, as `Analysis.kernels`, of the calls' GPU.
        peaks: FLOP/s by precision.
        wall_ns: wall time in which the launches ran, those that they represent included; None if unknown.

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B (MFU, over wall time).
    """
    check(calls, CALLS, table="CALLS")
    check(kernels, KERNELS, table="KERNELS")
    products = calls.filter((pl.col("needed_flop") > 0) & pl.col("asked_precision").is_not_null())
    times_each = pl.col("work_weight").fill_null(1.0)
    by_precision = (
        products.group_by("asked_precision").agg((pl.col("needed_flop") * times_each).sum()).sort("needed_flop")
    )
    precision = by_precision["asked_precision"][-1] if by_precision.height else None
    whole = kernels.filter(~pl.col("failed") & pl.col("duration_ns").is_not_null()).with_columns(
        pl.col("duration_ns") * pl.col("weight")
    )
    total = float(whole["duration_ns"].sum())
    if precision is None or not peaks.get(precision) or not total:
        return None
    per_ns = peaks[precision] * 1e-9
    ids = products["ids"].explode()
    of_products = whole.filter(pl.col("id").is_in(ids.implode()))
    others = whole.filter(~pl.col("id").is_in(ids.implode()))
    time_ns = float(of_products["duration_ns"].sum())
    is_first_time = ~pl.col("is_recomputed").fill_null(value=False)
    needed_once = products.filter(is_first_time).with_columns(pl.col("needed_flop") * times_each)
    needed = float(needed_once["needed_flop"].sum())
    of_other_sizes = float(needed_once.filter("is_uneven")["needed_flop"].sum())
    useful = min(needed / per_ns, time_ns)
    done = pl.max_horizontal("counted_flop", "needed_flop") * times_each
    extra = min((float(products.select(done.sum()).item()) - needed) / per_ns, time_ns - useful)
    tails = float((of_products["duration_ns"] * of_products["occupancy.tail_frac"].fill_null(0.0)).sum())
    tail = min(tails, time_ns - useful - extra)
    used_tensor_cores = pl.any_horizontal(pl.lit(value=False), *(pl.col(name) > 0 for name in _tensor_work(kernels)))
    unknown = others.filter(used_tensor_cores)
    others = others.filter(~used_tensor_cores.fill_null(value=False))
    other_ns = float(others["duration_ns"].sum())
    return ModelUtilisation(
        precision=precision,
        peak_flop_per_s=peaks[precision],
        needed_flop=needed,
        extrapolated_frac=of_other_sizes / needed if needed else 0.0,
        duration_ns=total,
        mfu_frac=useful / total,
        wall_mfu_frac=useful / wall_ns if wall_ns else None,
        extra_work_frac=extra / total,
        tail_frac=tail / total,
        low_efficiency_frac=(time_ns - useful - extra - tail) / total,
        unknown_products_frac=float(unknown["duration_ns"].sum()) / total,
        memory_bound_frac=_time_of(others, Verdict.MEMORY) / total,
        short_frac=_time_of(others, Verdict.OVERHEAD) / total,
        other_frac=(other_ns - _time_of(others, Verdict.MEMORY) - _time_of(others, Verdict.OVERHEAD)) / total,
    )


def _tensor_work(kernels: pl.DataFrame) -> list[str]:
    return [name for name in kernels.columns if name.startswith("work.tensor_") and name.endswith(".flop")]


def _time_of(kernels: pl.DataFrame, verdict: Verdict) -> float:
    return float(kernels.filter(pl.col("verdict") == verdict.value)["duration_ns"].sum())


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
    """Return the ratio of two weighted sums over the calls for which both are known; null without such calls."""
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
