"""How far each verdict is from another one: the relative change of a single quantity that would flip it."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis.rules import Rules
from ncuroof.tables import FLIPS, conform

_MEMORY, _COMPUTE, _RIDGE = "utilisation.memory_side", "utilisation.compute", "roofline.ridge_ratio"
_BUSIEST = "utilisation.busiest"

_SAME = 0.005
"""Largest difference of utilisations that are the same: where memory and compute are both that of LSU, they fall together."""


def nearest_flips(judged: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return, per kernel, the nearest other verdict that it could have, and the relative change of one quantity that leads to it.

    - Memory-bound becomes balanced where the memory side's work falls, and the time with it, until the compute side is the tree's
      gap behind: by 1 - compute/(memory - gap). Compute-bound likewise.
    - Balanced becomes bound by its busier side where the other side's work falls until the two are the tree's gap apart.
    - Latency-bound becomes bound by its busier side, or balanced, where that side reaches the utilisation that the tree asks for.
    - Memory-bound, compute-bound and balanced become latency-bound where the busiest unit falls to the utilisation that the tree
      asks for, if that is nearer than what stands above.
    - A verdict by intensity becomes balanced where the intensity comes near the ridge.

    Args:
        judged: one row per kernel with `verdict`, `is_by_intensity` and the quantities of the tree.
        rules: for the thresholds of the tree.

    Returns:
        FLIPS. No row for kernels that are overhead or unknown, and for those with a quantity that is zero or unknown. Those whose
        two sides are the same pipe (LSU), and those that are or would be bound by one side by the nodes `memory_instructions` and
        `operands`, become latency-bound alone: their two sides are already equally busy.

    Raises:
        ProfileError: the tree has no node for one of the thresholds.
    """
    memory, compute, ridge = map(pl.col, (_MEMORY, _COMPUTE, _RIDGE))
    gap, busy = rules.threshold("one_side_leads"), rules.threshold("busy_enough")
    left, right = rules.threshold("left_of_ridge"), rules.threshold("right_of_ridge")
    operands, instructions = rules.threshold("operands"), rules.threshold("memory_instructions")
    verdict, by_intensity = pl.col("verdict"), pl.col("is_by_intensity").fill_null(value=False)
    is_memory_busier = memory >= compute
    # In a shorter time both utilisations grow by the same factor.
    speedup = busy / pl.max_horizontal(memory, compute)
    is_close = (memory - compute).abs() * speedup < gap
    is_by_operands = is_close & (pl.col("utilisation.beside_operands") * speedup >= operands)
    is_by_instructions = is_close & (pl.col("utilisation.beside_memory_instructions") * speedup >= instructions)
    is_latency = (verdict == "latency") & ~(is_by_operands | is_by_instructions).fill_null(value=False)
    lsu = pl.col("utilisation.lsu")
    is_one_pipe = pl.max_horizontal((memory - lsu).abs(), (compute - lsu).abs()) < _SAME
    is_balanced = (verdict == "balanced") & ~is_one_pipe.fill_null(value=False)
    cases = [
        (by_intensity & (verdict == "memory"), "balanced", _RIDGE, left / ridge),
        (by_intensity & (verdict == "compute"), "balanced", _RIDGE, right / ridge),
        (
            ~by_intensity & (verdict == "memory") & (memory - compute >= gap),
            "balanced",
            _MEMORY,
            compute / (memory - gap),
        ),
        (
            ~by_intensity & (verdict == "compute") & (compute - memory >= gap),
            "balanced",
            _COMPUTE,
            memory / (compute - gap),
        ),
        (~by_intensity & is_balanced & is_memory_busier, "memory", _COMPUTE, (memory - gap) / compute),
        (~by_intensity & is_balanced & ~is_memory_busier, "compute", _MEMORY, (compute - gap) / memory),
        ((verdict == "latency") & is_by_instructions, "memory", _MEMORY, busy / memory),
        (is_latency & is_memory_busier & is_close, "balanced", _MEMORY, busy / memory),
        (is_latency & ~is_memory_busier & is_close, "balanced", _COMPUTE, busy / compute),
        (is_latency & is_memory_busier, "memory", _MEMORY, busy / memory),
        (is_latency & ~is_memory_busier, "compute", _COMPUTE, busy / compute),
    ]
    is_busy = ~by_intensity & verdict.is_in(["memory", "compute", "balanced"])
    found = judged.select(
        "id",
        by_side=pl.coalesce(_flip(*case) for case in cases),
        to_latency=_flip(is_busy, "latency", _BUSIEST, busy / pl.col(_BUSIEST)),
    )
    by_side, to_latency = (pl.col(name).struct.field("change_frac").abs() for name in ("by_side", "to_latency"))
    nearest = pl.when(to_latency < by_side).then("to_latency").otherwise(pl.coalesce("by_side", "to_latency"))
    flips = found.select("id", nearest.alias("flip"))
    return flips.filter(pl.col("flip").is_not_null()).unnest("flip").pipe(conform, FLIPS)


def _flip(condition: pl.Expr, becomes: str, quantity: str, ratio: pl.Expr) -> pl.Expr:
    """Return the verdict that a kernel becomes where `quantity` is `ratio` times as large; null unless the condition holds."""
    return pl.when(condition & ratio.is_finite()).then(
        pl.struct(
            pl.lit(becomes).alias("becomes"), pl.lit(quantity).alias("quantity"), (ratio - 1).alias("change_frac")
        )
    )
