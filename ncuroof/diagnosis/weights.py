"""How many launches each profiled one represents, where a counting run without ncu counted them (`ncuroof.counts/1`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.diagnosis.wall_time import WallTime, wall_time
from ncuroof.metrics.launch_order import SAME_LAUNCH, key_of, keys_of
from ncuroof.ncu.kernel_names import function_name
from ncuroof.sidecars.counts import SUMMARY, Counts
from ncuroof.sidecars.traces.timeline import Shape, as_shape
from ncuroof.tables import KERNELS, WEIGHTS, check, conform

UNEVEN = "uneven_launches"
"""Caveat of a launch that represents launches of other durations."""

LEAST_TIMED_FRAC = 0.98
"""Least share of GPU time that counting runs with a timeline must have seen, for sentences on both times together (a choice)."""

_LEAST_COUNTED = 0.5
"""Least share of a report's launches in its counting run for a step of that run to be a step of the same program (a choice)."""


@dataclass(frozen=True, slots=True)
class NotRecorded:
    """Counted launches of a function that were not profiled, in any shape or in these shapes.

    Attributes:
        name: of the function, without namespaces and template arguments.
        n_launches: counted launches.
        duration_ns: their GPU time in the counting run.
    """

    name: str
    n_launches: int
    duration_ns: float


@dataclass(frozen=True, slots=True)
class UnprofiledLaunches:
    """Counted launches of one kernel with one shape, none of which was profiled.

    Attributes:
        name: of the kernel, as the profiler that counted writes it.
        grid, block: x, y, z.
        n_launches: counted launches.
        duration_ns: their GPU time in the counting run.
    """

    name: str
    grid: Shape
    block: Shape
    n_launches: int
    duration_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """How the sums over a run are weighted.

    Attributes:
        weights: WEIGHTS, rows as in KERNELS.
        n_launches: launches that were counted.
        duration_ns: their GPU time in the counting run, without replays.
        covered_frac: share of that time whose kernels and shapes were profiled; None if no time was counted.
        not_recorded: the rest by function, the longest total time first.
        n_unmatched: profiled launches of kernels that were not counted; each represents only itself.
        wall_times: wall time of a step, for each counting run of the report's program whose trace contains it.
        foreign: reports with fewer than half of their launches in their counting run, whose wall times are left out.
        uncounted_frac: share of the GPU time in launches that no counting run counted; None if no time is known.
        timed_frac: share of the GPU time in launches of a counting run in `wall_times`; None if no time is known.
        unprofiled: `not_recorded` by kernel and shape, the longest total time first.
        steps: of each counting run, the steps that it counted, as `--step` takes them; None for the whole run.
        is_summary: whether no counting run was made, and every report is a summary that ncu printed (`--print-summary`).
    """

    weights: pl.DataFrame
    n_launches: int
    duration_ns: float
    covered_frac: float | None
    not_recorded: tuple[NotRecorded, ...]
    n_unmatched: int
    wall_times: tuple[WallTime, ...]
    foreign: tuple[int, ...]
    uncounted_frac: float | None
    timed_frac: float | None
    unprofiled: tuple[UnprofiledLaunches, ...] = ()
    steps: tuple[str | None, ...] = ()
    is_summary: bool = False

    @property
    def steps_ns(self) -> float | None:
        """Wall time of all counted steps of the one counting run.

        None if there are several, no steps were counted, or more than a little of the GPU time is of other launches.
        """
        if self.timed_frac is not None and self.timed_frac < LEAST_TIMED_FRAC:
            return None
        times = [each.duration_ns * each.n_steps for each in self.wall_times if each.n_steps]
        return times[0] if len(times) == len(self.wall_times) == 1 else None

    @property
    def computation_frac(self) -> float:
        """Share of the wall time in which kernels ran: the most that faster kernels can save; 1 if unknown."""
        durations = [each.duration_ns * (each.n_steps or 1) for each in self.wall_times]
        busy = [each.computation_frac * duration for each, duration in zip(self.wall_times, durations, strict=True)]
        return sum(busy) / sum(durations) if durations else 1.0


def unit_weights(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return WEIGHTS of KERNELS where nothing was counted: each launch represents only itself."""
    known = {"n_represented": 1.0, "weight": 1.0}
    return kernels.select(
        "id", *(pl.lit(known.get(name), dtype).alias(name) for name, dtype in WEIGHTS.items() if name != "id")
    )


def weigh(kernels: pl.DataFrame, counts_by_source: Sequence[Counts | None]) -> Weighting | None:
    """Return how many launches each profiled one represents, and its weight; None if nothing was counted.

    Profiled and counted launches match where function, template arguments, grid and block agree. If a kernel and shape was counted
    n times with total time t, and profiled r times with durations T, each profiled launch represents n / r launches, and its times
    have weight t / ΣT, so that sums equal those of the counting run: `Σ weight × T = t`. Where ΣT is zero or unknown, the weight is
    n / r.

    Args:
        kernels: KERNELS.
        counts_by_source: by index of the report; None for a report without counts, which may also be left out at the end.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    counted = _counted(counts_by_source)
    if counted is None:
        return None
    recorded = kernels.select("id", "source", "failed", *keys_of(kernels), "duration_ns")
    whole = (
        recorded.filter(~pl.col("failed"))
        .group_by(SAME_LAUNCH)
        .agg(pl.len().alias("n_recorded"), pl.col("duration_ns").sum())
    )
    by_kernel = _stood_for(counted, whole)
    matched = recorded.join(by_kernel, on=SAME_LAUNCH, how="left", maintain_order="left")
    foreign = _foreign(matched, counts_by_source)
    wall_times = tuple(
        time
        for source, counts in enumerate(counts_by_source)
        if counts is not None and counts.breakdown is not None and source not in foreign
        if (time := wall_time(source, counts.breakdown, profiler=counts.source)) is not None
    )
    timed = [time.source for time in wall_times]
    has_counts = [index for index, counts in enumerate(counts_by_source) if counts is not None]
    is_unmatched = matched["weight"].is_null() & matched["source"].is_in(has_counts) & ~matched["failed"]
    total_ns = float(counted["counted_ns"].sum())
    unprofiled = counted.join(whole, on=SAME_LAUNCH, how="anti")
    return Weighting(
        # A launch that was not counted represents itself.
        weights=matched.with_columns(pl.col("n_represented", "weight").fill_null(1.0)).pipe(conform, WEIGHTS),
        n_launches=int(counted["n_counted"].sum()),
        duration_ns=total_ns,
        covered_frac=round(float(by_kernel["counted_ns"].sum()) / total_ns, 12) if total_ns else None,
        not_recorded=_not_recorded(unprofiled),
        n_unmatched=int(is_unmatched.sum()),
        wall_times=wall_times,
        foreign=foreign,
        uncounted_frac=_time_frac(matched, pl.col("weight").is_null()),
        timed_frac=_time_frac(matched, pl.col("weight").is_not_null() & pl.col("source").is_in(timed)),
        unprofiled=_unprofiled(unprofiled),
        steps=tuple(counts.steps for counts in counts_by_source if counts is not None),
        is_summary=all(counts is not None and counts.source == SUMMARY for counts in counts_by_source),
    )


def of_part(weighting: Weighting, kernels: pl.DataFrame) -> Weighting | None:
    """Return how a part of a run is weighted: with the weights of the whole; None where none of its launches was counted.

    What was not profiled, and wall-clock times, belong to the run and not to a part of it.

    Args:
        weighting: how the run is weighted.
        kernels: rows of KERNELS.
    """
    weights = weighting.weights.filter(pl.col("id").is_in(kernels["id"].implode()))
    launches = kernels.select("id", "source", "failed", "duration_ns").join(weights, on="id", maintain_order="left")
    is_counted = pl.col("counted_average_ns").is_not_null()
    counted = launches.filter(is_counted & ~pl.col("failed"))
    if counted.is_empty():
        return None
    is_unmatched = ~is_counted & ~pl.col("failed") & pl.col("source").is_in(counted["source"].implode())
    return Weighting(
        weights=weights,
        n_launches=round(counted["n_represented"].sum()),
        duration_ns=float(counted.select(pl.col("duration_ns") * pl.col("weight")).sum().item()),
        covered_frac=None,
        not_recorded=(),
        n_unmatched=launches.filter(is_unmatched).height,
        wall_times=(),
        foreign=(),
        uncounted_frac=_time_frac(launches, ~is_counted),
        timed_frac=None,
        is_summary=weighting.is_summary,
    )


def _stood_for(counted: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel and shape that was profiled, the columns of WEIGHTS, and the counted time.

    Args:
        counted: as `_counted` returns it.
        whole: `n_recorded` and `duration_ns` of the profiled launches of each kernel and shape.
    """
    return counted.join(whole, on=SAME_LAUNCH, how="inner").select(
        *SAME_LAUNCH,
        (pl.col("n_counted") / pl.col("n_recorded")).alias("n_represented"),
        pl.when(pl.col("duration_ns") > 0)
        .then(pl.col("counted_ns") / pl.col("duration_ns"))
        .otherwise(pl.col("n_counted") / pl.col("n_recorded"))
        .alias("weight"),
        "counted_ns",
        (pl.col("counted_ns") / pl.col("n_counted")).alias("counted_average_ns"),
        "counted_shortest_ns",
        "counted_longest_ns",
    )


def uneven_frac(weighting: Weighting, kernels: pl.DataFrame, verdicts: pl.DataFrame) -> float | None:
    """Return the share of the counting run's GPU time in kernels with the caveat UNEVEN; None where no time was counted.

    Args:
        weighting: how the kernels are weighted.
        kernels: KERNELS.
        verdicts: VERDICTS.
    """
    if not weighting.duration_ns:
        return None
    uneven = verdicts.filter(pl.col("caveats").list.contains(UNEVEN)).select("id")
    times = kernels.select("id", "duration_ns").join(weighting.weights, on="id").join(uneven, on="id", how="semi")
    return float(times.select(pl.col("duration_ns") * pl.col("weight")).sum().item() / weighting.duration_ns)


def _foreign(matched: pl.DataFrame, counts_by_source: Sequence[Counts | None]) -> tuple[int, ...]:
    """Return the reports with counts that have fewer than half of their launches."""
    is_counted = pl.col("weight").is_not_null().mean()
    shares = dict(matched.filter(~pl.col("failed")).group_by("source").agg(is_counted).iter_rows())
    return tuple(
        source
        for source, counts in enumerate(counts_by_source)
        if counts is not None and shares.get(source, 0.0) < _LEAST_COUNTED
    )


def _time_frac(matched: pl.DataFrame, which: pl.Expr) -> float | None:
    """Return the share of the weighted GPU time in some of the launches; None where no time is known."""
    time_ns = pl.col("duration_ns") * pl.col("weight").fill_null(1.0)
    whole, part = (
        matched.filter(~pl.col("failed")).select(time_ns.sum(), time_ns.filter(which).sum().alias("part")).row(0)
    )
    return float(part / whole) if whole else None


def _counted(counts_by_source: Sequence[Counts | None]) -> pl.DataFrame | None:
    """Return the counts by report, kernel and shape; None if there are none."""
    rows = [
        (
            *(source, *key_of(kernel), function_name(kernel.name), kernel.name),
            *(kernel.n_launches, kernel.duration_ns, kernel.shortest_ns, kernel.longest_ns),
        )
        for source, counts in enumerate(counts_by_source)
        if counts is not None
        for kernel in counts.kernels
    ]
    if not rows:
        return None
    schema = {
        "source": pl.UInt32,
        "key": pl.String,
        "grid": pl.String,
        "block": pl.String,
        "function": pl.String,
        "name": pl.String,
        "n_counted": pl.Int64,
        "counted_ns": pl.Float64,
        "counted_shortest_ns": pl.Float64,
        "counted_longest_ns": pl.Float64,
    }
    shortest, longest = pl.col("counted_shortest_ns"), pl.col("counted_longest_ns")
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by(SAME_LAUNCH)
        .agg(
            pl.col("function", "name").first(),
            pl.col("n_counted", "counted_ns").sum(),
            pl.when(shortest.is_not_null().all()).then(shortest.min()),
            pl.when(longest.is_not_null().all()).then(longest.max()),
        )
    )


def _not_recorded(counted: pl.DataFrame) -> tuple[NotRecorded, ...]:
    by_function = (
        counted.group_by("function", maintain_order=True)
        .agg(pl.col("n_counted", "counted_ns").sum())
        .sort("counted_ns", "function", descending=[True, False])
    )
    return tuple(NotRecorded(*row) for row in by_function.iter_rows())


def _unprofiled(counted: pl.DataFrame) -> tuple[UnprofiledLaunches, ...]:
    def shape(extent: str) -> Shape:
        return as_shape(extent.split("x"))

    rows = counted.sort("counted_ns", "name", "grid", "block", descending=[True, False, False, False])
    return tuple(
        UnprofiledLaunches(name, shape(grid), shape(block), n_launches, duration_ns)
        for name, grid, block, n_launches, duration_ns in rows.select(
            "name", "grid", "block", "n_counted", "counted_ns"
        ).iter_rows()
    )
