"""Model FLOP utilisation of a run's GPU time, and where the rest of the peak went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.expected.schemas import CALLS
from ncuroof.tables import KERNELS, check
from ncuroof.words import Verdict


@dataclass(frozen=True, slots=True)
class ModelUtilisation:
    """How much of the peak the model's own products used, and what became of the rest of the GPU time. The shares add up to 1.

    Attributes:
        precision: of the peak: the one that most of the needed products could run in.
        peak_flop_per_s: of that precision.
        needed_flop: of all matrix products.
        duration_ns: GPU time of the run; gaps between kernels are not in it.
        mfu_frac: needed work over peak times GPU time.
        extra_work_frac: products did more than was needed: padding, recomputing.
        tail_frac: products with a last wave that was not full.
        low_efficiency_frac: products otherwise below the peak.
        memory_bound_frac: other kernels, bound by memory.
        short_frac: other kernels, too short for their launch.
        other_frac: other kernels, bound by anything else.
    """

    precision: str
    peak_flop_per_s: float
    needed_flop: float
    duration_ns: float
    mfu_frac: float
    extra_work_frac: float
    tail_frac: float
    low_efficiency_frac: float
    memory_bound_frac: float
    short_frac: float
    other_frac: float


def model_utilisation(
    calls: pl.DataFrame, kernels: pl.DataFrame, peaks: Mapping[str, float]
) -> ModelUtilisation | None:
    """Return the model FLOP utilisation; None where no call has products, or their peak is not known.

    A second of products is worth what it needed at the peak, then what it did beyond that (padding, recomputing), then what the
    tail lost (`occupancy.tail_frac` of the launch), then whatever else; each at most what is left.

    Args:
        calls: CALLS.
        kernels: one row per launch, as `Analysis.kernels`.
        peaks: flop/s by precision.

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B (MFU); here over GPU time instead of wall time.
    """
    check(calls, CALLS, table="CALLS")
    check(kernels, KERNELS, table="KERNELS")
    products = calls.filter((pl.col("needed_flop") > 0) & pl.col("asked_precision").is_not_null())
    by_precision = products.group_by("asked_precision").agg(pl.col("needed_flop").sum()).sort("needed_flop")
    precision = by_precision["asked_precision"][-1] if by_precision.height else None
    whole = kernels.filter(~pl.col("failed") & pl.col("duration_ns").is_not_null())
    total = float(whole["duration_ns"].sum())
    if precision is None or not peaks.get(precision) or not total:
        return None
    per_ns = peaks[precision] * 1e-9
    ids = products["ids"].explode()
    of_products = whole.filter(pl.col("id").is_in(ids.implode()))
    others = whole.filter(~pl.col("id").is_in(ids.implode()))
    time_ns = float(of_products["duration_ns"].sum())
    needed = float(products["needed_flop"].sum())
    useful = min(needed / per_ns, time_ns)
    counted = float(products.select(pl.coalesce("counted_flop", "needed_flop").sum()).item())
    extra = min(max(counted - needed, 0.0) / per_ns, time_ns - useful)
    tails = float((of_products["duration_ns"] * of_products["occupancy.tail_frac"].fill_null(0.0)).sum())
    tail = min(tails, time_ns - useful - extra)
    return ModelUtilisation(
        precision=precision,
        peak_flop_per_s=peaks[precision],
        needed_flop=needed,
        duration_ns=total,
        mfu_frac=useful / total,
        extra_work_frac=extra / total,
        tail_frac=tail / total,
        low_efficiency_frac=(time_ns - useful - extra - tail) / total,
        memory_bound_frac=_time_of(others, Verdict.MEMORY) / total,
        short_frac=_time_of(others, Verdict.OVERHEAD) / total,
        other_frac=(total - time_ns - _time_of(others, Verdict.MEMORY) - _time_of(others, Verdict.OVERHEAD)) / total,
    )


def _time_of(kernels: pl.DataFrame, verdict: Verdict) -> float:
    return float(kernels.filter(pl.col("verdict") == verdict.value)["duration_ns"].sum())
