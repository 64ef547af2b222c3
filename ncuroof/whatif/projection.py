"""Project launches to a target GPU: their time there, within a range, and whether they cross the ridge.

A kernel needs each resource for some time (BUSY_TIMES). It takes longer than the longest of these times, because it also waits. On
the target, each time scales with the ratio of the peaks. How the waits scale is unknown, so there are two hypotheses:

    efficiency kept   waits scale with the rest: the kernel reaches the same fraction of its limiting roof
    latency kept      waits take the same number of SM cycles per wave of blocks, independent of the resources

The first is expected for kernels that are bound by a resource, the second for those bound by latency or overhead. A kernel that
needs more than the target allows a launch does not run there.

Tensor instructions that read their operands directly from shared memory exist in one generation only: wgmma runs only on 9.0. A
target of a different generation runs a different kernel, with the instructions of that generation. Their reads are expected to keep
up with the tensor cores, as chips are designed to: tcgen05 of 128 × 256 × 16 reads 12 KiB in its 128 cycles, 96 of the possible 128
bytes per cycle, whereas wgmma of 64 × 64 × 16 reads all 128. The upper end of the range assumes that shared memory is read as
recorded, at a rate that scales with SMs and clock.

The time of L2 depends on further hypotheses, and the range covers all of them:

Few documents state the bandwidth of L2. If one is missing, the bandwidth is assumed to grow with SMs and clock, and to be at least
as fast as the DRAM that it feeds. So L2 can become the limit only because of the assumption. The lower end of the range therefore
assumes that L2 is not a limit unless it was one before, and that it grows with DRAM if it was.

L2 has stages without counters. On compute capability 9.0 they are the busiest stages of every kernel that streams from DRAM, and
their time did not scale with the number of slices between an H100 and an H200. The expected time uses the busiest stage that has a
counter. A further hypothesis scales the time of L2 as a whole with its bandwidth; its waits differ accordingly.

L2 has its own clock, which follows the SM clock on some chips (recorded on GeForce cards of 8.6 and 8.9), but not on others
(GH100). The expected time uses what the data sheet says, or a following clock if it says nothing. The range covers both.
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
from ncuroof.whatif.fusion import with_parts_summed
from ncuroof.whatif.peak_ratios import KEYS, Profiles, Target, peak_ratios
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION
from ncuroof.whatif.unit_times import ARITHMETIC, PER_SM, RESOURCES, sm_share

WAITING = (Verdict.LATENCY.value, Verdict.OVERHEAD.value, Verdict.UNKNOWN.value)
"""Verdicts of kernels that are expected to keep their latency rather than their efficiency."""

_KIB = 1024

_BY_WHOLE_L2 = "reached_by_whole_l2_frac"

_L1 = "l1"
_AT_SM_CLOCK = ("sm", _L1, "l2_slice")
"""Resources that run at the SM clock, and whose peaks hold at the SM boost clock."""

L2 = "l2"
_WAS_LIMIT = pl.col("limiter") == L2
_WAS_WHOLE_LIMIT = _WAS_LIMIT | (pl.col("reached_by_whole_l2_frac") > pl.col("reached_frac"))


def project(busy: pl.DataFrame, profiles: Profiles, targets: Sequence[Target]) -> pl.DataFrame:
    """Return the estimated time of each launch on each target.

    Peaks are those of `profiles` and of the targets' data sheets. The SM clock is the target's; without one, it is assumed to be
    the same share of the boost clock as recorded. Traffic, hit rates and instructions are assumed not to change.

    Args:
        busy: BUSY_TIMES.
        profiles: data sheet by device of the report, perhaps `with_recorded_dram`; None for a GPU without a data sheet.
        targets: the GPUs to project to.

    Returns:
        PROJECTION: all launches for the first target, then for the next; the parts of a fused launch are one row.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    parts = [_projected(busy, profiles, target) for target in targets]
    return pl.concat(parts) if parts else pl.DataFrame(schema=PROJECTION)


def _projected(busy: pl.DataFrame, profiles: Profiles, target: Target) -> pl.DataFrame:
    ratios = peak_ratios(busy, profiles, target.profile)
    rows = busy.join(ratios, on=list(KEYS), how="left", maintain_order="left", nulls_equal=True)
    l2 = l2_times(_clock(target, "ratio.clock"))
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
    projected = rows.with_columns(pl.col("duration_ns").alias("recorded_ns"), *known).pipe(with_parts_summed)
    return projected.with_columns(pl.lit(target.label).alias("target")).pipe(conform, PROJECTION)


def _needed_as_here(target: Target) -> dict[str, pl.Expr]:
    """Return the time for which each resource except L2 is needed on the target, if shared memory is read as recorded."""
    clock, share = _clock(target, "ratio.clock"), _usable_share()
    return {
        name: pl.col(f"busy.{name}")
        * pl.col(f"ratio.{name}")
        * (_clock(target, f"clock.{name}") if name in ARITHMETIC else clock if name in _AT_SM_CLOCK else 1.0)
        / (share if name in PER_SM else 1.0)
        for name in RESOURCES
        if name != L2
    }


def _hypotheses(needed: str, target: Target, reached: str = "reached_frac") -> tuple[pl.Expr, pl.Expr]:
    """Return the times with efficiency kept and with latency kept, given the time of the resource that is needed longest."""
    waits = pl.col("duration_ns") * (1 - pl.col(reached))
    waits_there = waits * _waves_ratio() * pl.col("ratio.clock") * _clock(target, "ratio.clock")
    return pl.col(needed) / pl.col(reached), pl.col(needed) + waits_there


def _clock(target: Target, ratio: str) -> pl.Expr:
    """Return the factor that corrects a ratio of peaks for the target's clock; 1 without a given clock.

    Peaks hold at the clocks whose `ratio` is in RATIOS; if that ratio is unknown, at the SM boost clocks.
    """
    if target.sm_clock_hz is None:
        return pl.lit(1.0)
    return pl.col("sm_clock_hz") / (pl.coalesce(ratio, "ratio.clock") * target.sm_clock_hz)


def _waves_ratio() -> pl.Expr:
    """Return waves on the target over recorded waves, with the same number of resident blocks per SM, each at least 1."""
    resident = pl.coalesce("n_resident_blocks", "sm_count")
    resident_there = resident * pl.coalesce("sm_count_there", "sm_count") / pl.col("sm_count")
    recorded = pl.max_horizontal(pl.col("recorded_n_blocks") / resident, 1.0)
    there = pl.max_horizontal(pl.col("n_blocks") / resident_there, 1.0)
    return pl.when(pl.col("n_blocks").is_not_null() & (resident > 0)).then(there / recorded).otherwise(1.0)


def _usable_share() -> pl.Expr:
    """Return the share of the target's SM time that the blocks can use; 1 if the grid was sized for its GPU (n blocks per SM)."""
    is_made_for_it = (pl.col("n_blocks") % pl.col("sm_count") == 0).fill_null(value=False)
    dealt = sm_share(pl.col("n_blocks"), pl.coalesce("sm_count_there", "sm_count"))
    return pl.when(is_made_for_it).then(1.0).otherwise(dealt)


def _reason(target: Target) -> pl.Expr:
    """Return why a launch cannot be projected; null if it can."""
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
class L2Times:
    """The time for which L2 is needed on the target, in ns, from the columns of BUSY_TIMES and RATIOS.

    Attributes:
        expected: by its busiest stage that has a counter.
        least: lower bound of `expected`.
        most: upper bound of `expected`.
        whole_least: by L2 as a whole, lower bound.
        whole_most: by L2 as a whole, upper bound.
    """

    expected: pl.Expr
    least: pl.Expr
    most: pl.Expr
    whole_least: pl.Expr
    whole_most: pl.Expr


def l2_times(sm_clock: pl.Expr) -> L2Times:
    """Return how long L2 is needed on the target.

    Args:
        sm_clock: factor on times at the SM clock; 1 if no clock is given.
    """
    clocks = (sm_clock, pl.lit(1.0))
    following, own = (_at_least_as_fast_as_dram(_scaled("busy.l2") * clock, _WAS_LIMIT) for clock in clocks)
    whole = [_at_least_as_fast_as_dram(_scaled("busy.l2_whole") * clock, _WAS_WHOLE_LIMIT) for clock in clocks]
    expected = pl.when("is_l2_clock_own").then(own).otherwise(following)
    return L2Times(
        expected,
        pl.min_horizontal(_least_if_assumed(expected), following, own),
        pl.max_horizontal(following, own),
        pl.min_horizontal(whole),
        pl.max_horizontal(whole),
    )


def _scaled(busy: str) -> pl.Expr:
    return pl.col(busy) * pl.col(f"ratio.{L2}")


def _at_least_as_fast_as_dram(needed: pl.Expr, was_limit: pl.Expr) -> pl.Expr:
    """Return the time for which L2 is needed, with an assumed L2 bandwidth of at least that of the DRAM that it feeds.

    If L2 was the limit, the time is not shortened: lookups of scattered sectors, rather than bytes, may have limited it.
    """
    as_dram = pl.col("busy.l2_as_dram") * pl.col("ratio.dram")
    return (
        pl.when(pl.col("is_l2_assumed") & ~was_limit.fill_null(value=False))
        .then(pl.min_horizontal(needed, as_dram))
        .otherwise(needed)
    )


def _least_if_assumed(needed: pl.Expr) -> pl.Expr:
    """Return the least time for which L2 is needed, if its bandwidth is assumed.

    L2 that was not the limit is taken not to become the limit. L2 that was the limit grows with the DRAM that it feeds, if DRAM
    grows more than assumed.
    """
    with_dram = pl.coalesce(pl.col("busy.l2") * pl.col("ratio.dram"), needed)
    at_least = pl.min_horizontal(needed, pl.when(_WAS_LIMIT).then(with_dram).otherwise(0.0))
    return pl.when("is_l2_assumed").then(at_least).otherwise(needed)


def most_shared_bytes_per_block(profile: GpuProfile | None) -> int | None:
    """Return how much shared memory a block can ask for; None if unknown.

    Raises:
        ProfileError: `profiles/launch_limits.toml` is malformed.
    """
    return None if profile is None else _by_compute_capability().get(profile.compute_capability)


@cache
def _by_compute_capability() -> dict[str, int]:
    with profile_file("launch_limits.toml") as raw:
        return dict(raw["shared_bytes_per_block"])
