"""Launches under other roofs: what they would take, between two hypotheses, and which of them cross the ridge.

A kernel needs each resource for a while (BUSY_TIMES) and takes longer than the longest of these times, because it waits besides. On
another GPU each time scales with that GPU's peak. What becomes of the waiting is not known, hence two hypotheses:

    efficiency kept   it shrinks with the rest: the kernel reaches the same fraction of its limiting roof
    latency kept      it lasts as long for each wave of blocks, in cycles of the SM clock, whatever the resources do

The first is expected of kernels that are bound by a resource, the second of those bound by latency or overhead. A kernel that asks
for more than a GPU allows a launch does not run there.

Tensor instructions that read their operands from shared memory themselves are of one generation: wgmma runs on 9.0 alone. On
another one another kernel runs, whose instructions read as that generation does. Expected is that this keeps up with the tensor
cores, as chips are built to: tcgen05 of 128 × 256 × 16 reads 12 KiB in its 128 cycles, 96 of 128 byte each, where wgmma of
64 × 64 × 16 reads all 128. The longer end takes shared memory to be read as it was, at the rate of SMs and clock.

What L2 needs there rests on hypotheses of its own, all of which the range holds. Few documents state the bandwidth of L2. Where
none does, it is taken to grow with SMs and clock, but to be no slower than the DRAM that it feeds, and L2 can become the limit by
that assumption alone. The least then rests on another one: L2 is no limit where it was none, and grows with DRAM where it was.

L2 has stages that no counter names. On compute capability 9.0 they are its busiest wherever a kernel streams from DRAM, and their
time did not go with the slices between an H100 and an H200. Expected is that the busiest named stage is what L2 needs. What follows
where L2 as a whole grows with its bandwidth is a hypothesis besides, with waits of its own.

L2 has a clock of its own, which follows that of the SMs on some chips (recorded on GeForce of 8.6 and 8.9) and not on others
(GH100). Expected is what the data sheets say, and that it follows where they say nothing; least and most hold both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from ncuroof.enums import Verdict
from ncuroof.metrics import largest
from ncuroof.resources import profile_file
from ncuroof.roofline import GpuProfile
from ncuroof.tables import check, conform
from ncuroof.whatif.fusion import summed
from ncuroof.whatif.peak_ratios import KEYS, Profiles, Target, peak_ratios
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION
from ncuroof.whatif.unit_times import ARITHMETIC, PER_SM, RESOURCES, sm_share

WAITING = (Verdict.LATENCY.value, Verdict.OVERHEAD.value, Verdict.UNKNOWN.value)
"""Verdicts of kernels that are expected to keep their waits rather than their efficiency."""

_KIB = 1024

_BY_WHOLE_L2 = "reached_by_whole_l2_frac"

_L1 = "l1"
_AT_SM_CLOCK = ("sm", _L1, "l2_slice")
"""Resources at the SM clock whose peaks hold at the SM boost clock."""

L2 = "l2"
_WAS_LIMIT = pl.col("limiter") == L2
_WAS_WHOLE_LIMIT = _WAS_LIMIT | (pl.col("reached_by_whole_l2_frac") > pl.col("reached_frac"))


def project(busy: pl.DataFrame, profiles: Profiles, targets: Sequence[Target]) -> pl.DataFrame:
    """Return what each launch would take on each GPU.

    Peaks are those of `profiles` and of the targets' data sheets. The SM clock is the target's, else taken to be the same share of
    the boost clock as when recorded. Traffic, hit rates and instructions are taken to stay what they are.

    Args:
        busy: BUSY_TIMES.
        profiles: data sheet by device of the report, perhaps `with_recorded_dram`; None where none fits.
        targets: where to.

    Returns:
        PROJECTION: all launches for the first target, then for the next; parts of fused ones as one (`fusion.summed`).

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    parts = [_on(busy, profiles, target) for target in targets]
    return pl.concat(parts) if parts else pl.DataFrame(schema=PROJECTION)


def _on(busy: pl.DataFrame, profiles: Profiles, target: Target) -> pl.DataFrame:
    ratios = peak_ratios(busy, profiles, target.profile)
    rows = busy.join(ratios, on=list(KEYS), how="left", maintain_order="left", nulls_equal=True)
    l2 = l2_there(_clock(target, "ratio.clock"))
    needed_as_here = _needed_as_here(target) | {L2: l2.expected}
    operands = pl.when("is_other_generation").then(pl.col("busy.operands") / pl.col("busy.l1")).fill_nan(0.0)
    needed = needed_as_here | {_L1: needed_as_here[_L1] * (1 - operands.fill_null(0.0))}
    at_least = needed | {L2: l2.least}
    longest = {
        "needed_ns": needed,
        "needed_as_here_ns": needed_as_here,
        "needed_at_least_ns": at_least,
        "needed_at_most_ns": needed_as_here | {L2: l2.most},
        "whole_l2_at_least_ns": needed | {L2: l2.whole_least},
        "whole_l2_at_most_ns": needed_as_here | {L2: l2.whole_most},
    }
    rows = rows.with_columns(
        *(time.alias(f"needed.{name}") for name, time in needed.items()),
        *(time.alias(f"at_least.{name}") for name, time in at_least.items()),
        *(pl.max_horizontal(times.values()).alias(name) for name, times in longest.items()),
        largest(needed).alias("limiter_there"),
        _reason(target).alias("reason"),
    )
    efficiency_kept, latency_kept = _hypotheses("needed_ns", target)
    expected = pl.when(pl.col("verdict").is_in(WAITING)).then(latency_kept).otherwise(efficiency_kept)
    at_clock = _clock(target, "clock.dominant")
    ridge_ratio = pl.col("ridge_ratio") * pl.col("ratio.dominant") * at_clock / pl.col("ratio.dram")
    values = {
        "duration_ns": expected,
        "least_ns": pl.min_horizontal(
            *_hypotheses("needed_at_least_ns", target), *_hypotheses("whole_l2_at_least_ns", target, _BY_WHOLE_L2)
        ),
        "most_ns": pl.max_horizontal(
            *_hypotheses("needed_at_most_ns", target), *_hypotheses("whole_l2_at_most_ns", target, _BY_WHOLE_L2)
        ),
        "limiter": pl.col("limiter_there"),
        "is_limit_assumed": pl.col("is_l2_assumed") & (pl.col("limiter_there") == L2),
        "are_operands_assumed": pl.col("needed_as_here_ns") > pl.col("needed_ns"),
        "ridge_ratio": ridge_ratio,
        "crosses_ridge": (pl.col("recorded_ridge_ratio") < 1) != (ridge_ratio < 1),
    }
    known = [pl.when(pl.col("reason").is_null()).then(value).alias(name) for name, value in values.items()]
    projected = rows.with_columns(pl.col("duration_ns").alias("recorded_ns"), *known).pipe(summed)
    return projected.with_columns(pl.lit(target.label).alias("target")).pipe(conform, PROJECTION)


def _needed_as_here(target: Target) -> dict[str, pl.Expr]:
    """Return the time for which each resource but L2 is needed there, were shared memory read as here."""
    clock, share = _clock(target, "ratio.clock"), _share_there()
    return {
        name: pl.col(f"busy.{name}")
        * pl.col(f"ratio.{name}")
        * (_clock(target, f"clock.{name}") if name in ARITHMETIC else clock if name in _AT_SM_CLOCK else 1.0)
        / (share if name in PER_SM else 1.0)
        for name in RESOURCES
        if name != L2
    }


def _hypotheses(needed: str, target: Target, reached: str = "reached_frac") -> tuple[pl.Expr, pl.Expr]:
    """Return the time with the efficiency kept, and with the waits kept, from that of the resource that is needed longest."""
    waits = pl.col("duration_ns") * (1 - pl.col(reached))
    waits_there = waits * _waves_ratio() * pl.col("ratio.clock") * _clock(target, "ratio.clock")
    return pl.col(needed) / pl.col(reached), pl.col(needed) + waits_there


def _clock(target: Target, ratio: str) -> pl.Expr:
    """Return what a ratio of peaks is multiplied with at the target's clock; 1 where none is given.

    The peaks hold at clocks of their own, whose `ratio` stands in RATIOS; the SM boost clocks' where it is not known.
    """
    if target.sm_clock_hz is None:
        return pl.lit(1.0)
    return pl.col("sm_clock_hz") / (pl.coalesce(ratio, "ratio.clock") * target.sm_clock_hz)


def _waves_ratio() -> pl.Expr:
    """Return how many times as many waves the blocks run in there, as many of them resident per SM; less than one wave is one."""
    resident = pl.coalesce("n_resident_blocks", "sm_count")
    resident_there = resident * pl.coalesce("sm_count_there", "sm_count") / pl.col("sm_count")
    recorded = pl.max_horizontal(pl.col("recorded_n_blocks") / resident, 1.0)
    there = pl.max_horizontal(pl.col("n_blocks") / resident_there, 1.0)
    return pl.when(pl.col("n_blocks").is_not_null() & (resident > 0)).then(there / recorded).otherwise(1.0)


def _share_there() -> pl.Expr:
    """Return the share of the SMs' time there that the blocks can use; all of it for a grid made for its GPU (n per SM)."""
    is_made_for_it = (pl.col("n_blocks") % pl.col("sm_count") == 0).fill_null(value=False)
    dealt = sm_share(pl.col("n_blocks"), pl.coalesce("sm_count_there", "sm_count"))
    return pl.when(is_made_for_it).then(1.0).otherwise(dealt)


def _reason(target: Target) -> pl.Expr:
    """Return why a launch cannot be projected; null where it can."""
    lacks = [
        pl.when((pl.col(f"busy.{name}") > 0) & pl.col(f"ratio.{name}").is_null()).then(
            pl.coalesce(
                *(["tensor_lack"] if name == "tensor" else []),
                pl.lit(f"the data sheets do not state the peak of {name}"),
            )
        )
        for name in RESOURCES
    ]
    allowed = most_shared_bytes_per_block(target.profile)
    needed = pl.col("shared_bytes_per_block")
    too_much = pl.format(
        f"a block needs {{}} KiB of shared memory, but {target.label} allows {(allowed or 0) / _KIB:g} KiB",
        (needed / _KIB).ceil().cast(pl.Int64),
    )
    is_clock_missing = pl.lit(target.sm_clock_hz is not None) & pl.col("sm_clock_hz").is_null()
    return pl.coalesce(
        pl.when(pl.col("failed")).then(pl.lit("failed to profile")),
        pl.when(pl.col("duration_ns").is_null() | pl.col("reached_frac").is_null()).then(
            pl.lit("DRAM and SM utilisation were not collected")
        ),
        pl.when(pl.col("ratio.clock").is_null()).then(
            pl.lit("ncuroof has no data sheet for the GPU, or MIG slice, that recorded it")
        ),
        pl.when(needed > pl.lit(allowed, pl.Float64)).then(too_much),
        pl.when(is_clock_missing).then(pl.lit("the SM clock was not recorded")),
        *lacks,
    )


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


def most_shared_bytes_per_block(profile: GpuProfile | None) -> int | None:
    """Return how much shared memory a block can ask for; None where that is not known.

    Raises:
        ProfileError: `profiles/launch_limits.toml` is malformed.
    """
    return None if profile is None else _by_compute_capability().get(profile.compute_capability)


@cache
def _by_compute_capability() -> dict[str, int]:
    with profile_file("launch_limits.toml") as raw:
        return dict(raw["shared_bytes_per_block"])
