"""How long L2 is needed on another GPU or at another clock: expected, and the least and most that hypotheses say.

Few documents state the bandwidth of L2. Where none does, it is taken to grow with SMs and clock, but to be no slower than the DRAM
that it feeds, and L2 can become the limit by that assumption alone. The least then rests on another one: L2 is no limit where it
was none, and grows with DRAM where it was.

L2 has stages that no counter names. On compute capability 9.0 they are its busiest wherever a kernel streams from DRAM, and their
time did not go with the slices between an H100 and an H200. Expected is that the busiest named stage is what L2 needs. What follows
where L2 as a whole grows with its bandwidth is a hypothesis besides, with waits of its own.

L2 has a clock of its own, which follows that of the SMs on some chips (recorded on GeForce of 8.6 and 8.9) and not on others
(GH100). Expected is what the data sheets say, and that it follows where they say nothing; least and most hold both.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

L2 = "l2"
_WAS_LIMIT = pl.col("limiter") == L2
_WAS_WHOLE_LIMIT = _WAS_LIMIT | (pl.col("reached_by_whole_l2_frac") > pl.col("reached_frac"))


@dataclass(frozen=True, slots=True)
class L2There:
    """The time for which L2 is needed there, in ns, from the columns of BUSY_TIMES and RATIOS.

    Attributes:
        expected: by its busiest named stage.
        least: the same, at the least.
        most: the same, at the most.
        whole_least: by L2 as a whole, at the least.
        whole_most: the same, at the most.
    """

    expected: pl.Expr
    least: pl.Expr
    most: pl.Expr
    whole_least: pl.Expr
    whole_most: pl.Expr


def l2_there(sm_clock: pl.Expr) -> L2There:
    """Return how long L2 is needed there.

    Args:
        sm_clock: what times at the SM clock are multiplied with there; 1 where no clock is given.
    """
    clocks = (sm_clock, pl.lit(1.0))
    following, own = (_that_feeds(_scaled("busy.l2") * clock, _WAS_LIMIT) for clock in clocks)
    whole = [_that_feeds(_scaled("busy.l2_whole") * clock, _WAS_WHOLE_LIMIT) for clock in clocks]
    expected = pl.when("is_l2_clock_own").then(own).otherwise(following)
    return L2There(
        expected,
        pl.min_horizontal(_at_least(expected), following, own),
        pl.max_horizontal(following, own),
        pl.min_horizontal(whole),
        pl.max_horizontal(whole),
    )


def _scaled(busy: str) -> pl.Expr:
    return pl.col(busy) * pl.col(f"ratio.{L2}")


def _that_feeds(needed: pl.Expr, was_limit: pl.Expr) -> pl.Expr:
    """Return the time for which L2 is needed there, an assumed one being at least as fast as the DRAM that it feeds.

    Where L2 was the limit, what limited it may be no bytes (lookups of scattered sectors), and the assumption stays as it is.
    """
    as_dram = pl.col("busy.l2_as_dram") * pl.col("ratio.dram")
    return (
        pl.when(pl.col("is_l2_assumed") & ~was_limit.fill_null(value=False))
        .then(pl.min_horizontal(needed, as_dram))
        .otherwise(needed)
    )


def _at_least(needed: pl.Expr) -> pl.Expr:
    """Return the time for which L2 is needed there, were an assumed one no limit where it was none.

    Where it was, it grows with DRAM, which it has to feed, if that grows more than assumed.
    """
    with_dram = pl.coalesce(pl.col("busy.l2") * pl.col("ratio.dram"), needed)
    at_least = pl.min_horizontal(needed, pl.when(_WAS_LIMIT).then(with_dram).otherwise(0.0))
    return pl.when("is_l2_assumed").then(at_least).otherwise(needed)
