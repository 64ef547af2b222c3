"""The run as a whole: GPU time by verdict, recoverable time, groups of equal launches, and the most valuable things to do.

GPU time is also broken down by kernel family and by NVTX range. Work, rate and DRAM intensity of the run are sums over launches and
ratios of sums, never means of ratios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

import polars as pl

from ncuroof.diagnosis.finding import Rank
from ncuroof.diagnosis.rules import load_rules
from ncuroof.diagnosis.weights import UNEVEN
from ncuroof.enums import Verdict
from ncuroof.tables import BOUNDS, BREAKDOWN_KINDS, BREAKDOWNS, GROUPS, KERNELS, TOTALS, WORK, check, conform

_NS_PER_S = 1e9

_UNNAMED = "(unnamed)"
"""Stands for a range whose name is not in the report."""


@dataclass(frozen=True, slots=True)
class Share:
    """The kernels of one verdict.

    Attributes:
        n_kernels: profiled kernels with this verdict.
        n_launches: launches that they represent.
        duration_ns: their total GPU time; None if it is unknown for all of them.
        share_frac: share of the run's GPU time; None if either is unknown.
    """

    n_kernels: int
    n_launches: int
    duration_ns: float | None
    share_frac: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums over the kernels that were profiled successfully; a sum is None, not 0, if no kernel has the value.

    Attributes:
        n_kernels: all profiled workloads, failed ones included.
        n_failed: workloads whose collection failed; no sum includes them.
        n_launches: launches that the others represent.
        duration_ns: GPU time, summed over launches.
        recoverable_ns: duration minus roofline time, summed over the launches where both are known.
        n_debug_builds: workloads, failed ones included, whose machine code is a debug build.
        debug_build_frac: share of the GPU time in debug builds; None if the GPU time is zero or unknown.
        doubted_frac: share of the GPU time in kernels with a caveat that lowers the confidence; None as above.
        by_doubt: of these caveats, the share of the GPU time in kernels that have each, the largest first.
        by_verdict: in the order of `Verdict`; only verdicts that occur.
    """

    n_kernels: int
    n_failed: int
    n_launches: int
    duration_ns: float | None
    recoverable_ns: float | None
    n_debug_builds: int
    debug_build_frac: float | None
    doubted_frac: float | None
    by_doubt: Mapping[str, float]
    by_verdict: Mapping[str, Share]


def summarise(kernels: pl.DataFrame, bounds: pl.DataFrame, verdicts: pl.DataFrame, weights: pl.DataFrame) -> Summary:
    """Return the sums over a run.

    Args:
        kernels: KERNELS with `check.debug_build`.
        bounds: BOUNDS, rows as in `kernels`.
        verdicts: VERDICTS, rows as in `kernels`.
        weights: WEIGHTS, applied to sums and launch counts.
    """
    is_debug_build = (pl.col("check.debug_build") > 0).fill_null(value=False).alias("is_debug_build")
    judged = kernels.select("id", "failed", "duration_ns", is_debug_build).hstack(
        [verdicts["verdict"], verdicts["caveats"], bounds["recoverable_ns"]]
    )
    whole = with_weights(judged.filter(~pl.col("failed")), weights)
    sums = [
        n_launches(),
        known_sum(pl.col("duration_ns") * pl.col("weight")),
        known_sum(pl.col("recoverable_ns") * pl.col("weight")),
    ]
    n_whole, total, recoverable = whole.select(sums).row(0)
    debug_ns = whole.filter("is_debug_build").select(pl.col("duration_ns") * pl.col("weight")).sum().item()
    groups = whole.group_by("verdict").agg(pl.len().alias("n"), *sums[:2])
    by_name = {name: counted for name, *counted in groups.iter_rows()}
    doubted_ns, ns_by_doubt = _doubted(whole)
    return Summary(
        n_kernels=kernels.height,
        n_failed=int(judged["failed"].sum()),
        n_launches=n_whole,
        duration_ns=total,
        recoverable_ns=recoverable,
        n_debug_builds=int(judged["is_debug_build"].sum()),
        debug_build_frac=debug_ns / total if total else None,
        doubted_frac=doubted_ns / total if total else None,
        by_doubt={name: time / total for name, time in ns_by_doubt.items() if total},
        by_verdict={
            verdict.value: Share(n, stood_for, duration, duration / total if total and duration is not None else None)
            for verdict in Verdict
            if (found := by_name.get(verdict.value)) is not None
            for n, stood_for, duration in (found,)
        },
    )


def _doubted(whole: pl.DataFrame) -> tuple[float, dict[str, float]]:
    """Return the time of kernels with caveats that lower the confidence, together and by caveat, the longest first."""
    weakening = [name for name, caveat in load_rules().caveats.items() if caveat.weakens]
    doubts = whole.select(
        (pl.col("duration_ns") * pl.col("weight")).alias("time_ns"), pl.col("caveats").list.set_intersection(weakening)
    ).filter(pl.col("caveats").list.len() > 0)
    by_name = doubts.explode("caveats").group_by("caveats").agg(pl.col("time_ns").sum())
    return float(doubts["time_ns"].sum()), dict(
        by_name.sort("time_ns", "caveats", descending=[True, False]).iter_rows()
    )


SAME_LAUNCH = ("device", "name", "workload", "grid", "block", "verdict", "limiter")
"""Columns that are equal for all launches of a group."""

_NOTABLE_GAIN = 0.1
"""Least share of a kernel's time for a gain that makes it much faster (a choice)."""


def group_launches(
    kernels: pl.DataFrame,
    bounds: pl.DataFrame,
    verdicts: pl.DataFrame,
    findings: pl.DataFrame,
    weights: pl.DataFrame,
) -> pl.DataFrame:
    """Return GROUPS: equal launches together, the most recoverable time first; failed launches are left out.

    duration_cv = standard deviation of T / mean of T, over the profiled launches whose duration is known; null for fewer than two.

    Args:
        kernels: KERNELS.
        bounds: BOUNDS, rows as in `kernels`.
        verdicts: VERDICTS, rows as in `kernels`.
        findings: FINDINGS.
        weights: WEIGHTS, applied to sums and launch counts.
    """
    launches = kernels.select("id", "device", "name", "workload", "grid", "block", "failed", "duration_ns").hstack(
        [verdicts["verdict"], verdicts["limiter"], bounds["recoverable_ns"]]
    )
    launches = with_weights(launches, weights).join(_found(findings), on="id", how="left", maintain_order="left")
    longest_ns = pl.col("duration_ns").first()
    return (
        launches.filter(~pl.col("failed"))
        .sort("duration_ns", descending=True, nulls_last=True, maintain_order=True)
        .group_by(SAME_LAUNCH, maintain_order=True)
        .agg(
            pl.col("id").first(),
            pl.col("id").sort().alias("launches"),
            n_launches(),
            known_sum(pl.col("duration_ns") * pl.col("weight")),
            known_sum(pl.col("recoverable_ns") * pl.col("weight")),
            pl.col("duration_ns").min().alias("min_duration_ns"),
            pl.col("duration_ns").max().alias("max_duration_ns"),
            _variation().alias("duration_cv"),
            (pl.col("largest_gain_ns").first() >= _NOTABLE_GAIN * longest_ns).fill_null(value=False).alias("has_gain"),
            pl.col("is_in_doubt").first().fill_null(value=False),
        )
        .sort("recoverable_ns", "duration_ns", descending=True, nulls_last=True, maintain_order=True)
        .pipe(conform, GROUPS)
    )


def known_sum(values: pl.Expr) -> pl.Expr:
    """Return the sum of the known values; null, not 0, if all are unknown."""
    return pl.when(values.is_not_null().any()).then(values.sum())


def n_launches(of: str | pl.Expr | None = None) -> pl.Expr:
    """Return how many launches the rows of a group represent, rounded; only rows that meet the condition `of`, if given."""
    stood_for = pl.col("n_represented") if of is None else pl.col("n_represented").filter(of)
    return stood_for.sum().round().cast(pl.Int64).alias("n_launches")


def with_weights(table: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Return a table of launches with the columns of WEIGHTS."""
    return table.join(weights, on="id", how="left", maintain_order="left")


def _found(findings: pl.DataFrame) -> pl.DataFrame:
    """Return, per launch with findings, its largest gain, and whether its results or input are in doubt.

    They are where a finding stands first and has no gain.
    """
    doubts = [finding.id for finding in load_rules().findings.values() if finding.rank is Rank.FIRST]
    is_doubt = pl.col("finding").is_in(doubts) & pl.col("gain_ns").is_null()
    return findings.group_by("id").agg(
        pl.col("gain_ns").max().alias("largest_gain_ns"), is_doubt.any().alias("is_in_doubt")
    )


def _variation() -> pl.Expr:
    """Return the standard deviation of durations over their mean; null for fewer than two, or a mean of zero."""
    duration = pl.col("duration_ns")
    return pl.when(duration.count() > 1, duration.mean() > 0).then(duration.std(ddof=0) / duration.mean())


def total_work(
    kernels: pl.DataFrame, work: pl.DataFrame, verdicts: pl.DataFrame, weights: pl.DataFrame
) -> pl.DataFrame:
    """Return the run's work in each precision, in the order of WORK, without failed launches and unreliable counts.

    rate = ΣFLOP / ΣT over the launches in which the precision was counted, even as zero; intensity = ΣFLOP / Σ DRAM bytes over
    those of them whose DRAM bytes are known. Both are null where the divisor is zero or unknown.

    Work and bytes are multiplied by the number of launches represented. Where these differ in time (`UNEVEN`), they have other
    sizes on the same grid, and their work was not counted: it is assumed proportional to time, at the profiled launch's rate.

    Args:
        kernels: KERNELS with `traffic_bytes.dram`.
        work: WORK.
        verdicts: VERDICTS, whose caveats mark launches that represent launches of other durations.
        weights: WEIGHTS, applied to sums and launch counts.

    Returns:
        TOTALS.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(work, WORK, table="WORK")
    launches = kernels.filter(~pl.col("failed")).select("id", "duration_ns", pl.col("traffic_bytes.dram").alias("dram"))
    counted = work.filter(pl.col("reliable") & pl.col("flop").is_not_null()).join(
        launches, on="id", maintain_order="left"
    )
    uneven = verdicts.filter(pl.col("caveats").list.contains(UNEVEN))["id"]
    times_each = pl.when(pl.col("id").is_in(uneven.implode())).then("weight").otherwise("n_represented")
    counted = with_weights(counted, weights).with_columns(
        pl.col("flop", "dram") * times_each, pl.col("duration_ns") * pl.col("weight")
    )
    flop, moves = pl.col("flop"), pl.col("dram").is_not_null()
    seconds = pl.col("duration_ns").sum() / _NS_PER_S
    dram_bytes = pl.col("dram").sum()
    return (
        counted.group_by("precision", maintain_order=True)
        .agg(
            flop.sum(),
            n_launches(),
            pl.when(seconds > 0).then(flop.sum() / seconds).alias("flop_per_s"),
            pl.when(dram_bytes > 0).then(flop.filter(moves).sum() / dram_bytes).alias("intensity_flop_per_byte"),
        )
        .pipe(conform, TOTALS)
    )


def break_down(kernels: pl.DataFrame, bounds: pl.DataFrame, weights: pl.DataFrame) -> pl.DataFrame:
    """Return sums over launches by family and by NVTX range (BREAKDOWN_KINDS), without failed launches.

    Each kind of breakdown covers the whole run, so its sums add up to the run's. share = ΣT of the key / ΣT of the run, null where
    either is unknown or the run took no time.

    Args:
        kernels: KERNELS.
        bounds: BOUNDS, rows as in `kernels`.
        weights: WEIGHTS, applied to sums and launch counts.

    Returns:
        BREAKDOWNS.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    check(bounds, BOUNDS, table="BOUNDS")
    ranges = pl.col("nvtx").list.eval(pl.element().fill_null(_UNNAMED))
    has_ranges = pl.col("nvtx").list.len() > 0
    launches = (
        with_weights(kernels.select("id", "failed", "duration_ns", "family", ranges, bounds["recoverable_ns"]), weights)
        .filter(~pl.col("failed"))
        .with_columns(
            pl.when(has_ranges).then(pl.col("nvtx").list.first()).alias("nvtx"),
            pl.when(has_ranges)
            .then(pl.col("nvtx").list.head(branching_depth(kernels["nvtx"])).list.join("/"))
            .alias("nvtx_branch"),
            pl.when(has_ranges).then(pl.col("nvtx").list.join("/")).alias("nvtx_path"),
            pl.col("duration_ns", "recoverable_ns") * pl.col("weight"),
        )
    )
    return pl.concat(_sums(launches, kind) for kind in BREAKDOWN_KINDS)


def branching_depth(nvtx: pl.Series) -> int:
    """Return how many of the outermost ranges to look at until launches differ: 1 if the outermost do; all if none do.

    A script's only outermost range (`step`) says nothing, and the ranges in it (`forward`, `backward`) say where its time goes.

    Args:
        nvtx: names of the ranges around each launch, from the outermost; launches in none are passed over.
    """
    paths = nvtx.filter(nvtx.list.len() > 0).unique().to_list()
    if len(paths) < 2:
        return max(map(len, paths), default=1)
    first, *others = paths
    return 1 + min(sum(1 for _ in takewhile(_are_equal, zip(first, other, strict=False))) for other in others)


def _are_equal(pair: tuple[object, object]) -> bool:
    return pair[0] == pair[1]


def _sums(launches: pl.DataFrame, kind: str) -> pl.DataFrame:
    total = launches.select(known_sum(pl.col("duration_ns"))).item()
    return (
        launches.group_by(pl.col(kind).alias("key"), maintain_order=True)
        .agg(n_launches(), known_sum(pl.col("duration_ns")), known_sum(pl.col("recoverable_ns")))
        .with_columns(
            pl.lit(kind).alias("kind"), (pl.col("duration_ns") / pl.lit(total or None, pl.Float64)).alias("share_frac")
        )
        .sort("duration_ns", descending=True, nulls_last=True, maintain_order=True)
        .pipe(conform, BREAKDOWNS)
    )
