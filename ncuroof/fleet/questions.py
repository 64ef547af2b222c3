"""Questions to a fleet of reports: where time goes, what is recoverable, how GPUs compare, and what changed beyond noise."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ncuroof.diagnosis import known_sum, n_launches
from ncuroof.fleet.series import (
    LABEL_PREFIX,
    OTHER_FLOP_FRAC,
    OTHER_INSTRUCTIONS_FRAC,
    SAME_LAUNCH,
    gpu,
    label_counts,
    sides,
    steps,
    usable,
)

_KERNEL = ("name", "program", "gpu_name")
"""One kernel of one program on one GPU, whatever its shape."""

_N_DATES = 12


@dataclass(frozen=True, slots=True)
class Overview:
    """A fleet in numbers.

    Attributes:
        n_reports, n_launches, n_failed: reports; launches that the recorded ones stand for, failed ones included; failed launches.
        n_without_time: launches that did not fail, but have no time.
        n_damaged, n_simulated: reports that lost launches; reports that a program wrote without recording.
        n_kernels: distinct full names.
        duration_ns, recoverable_ns: sums over launches; None if unknown for all of them.
        gpus: name and number of launches, the most first.
        first, last: dates of recording, as ISO 8601; None if no report states one.
        labels: name and number of values of every label.
    """

    n_reports: int
    n_launches: int
    n_failed: int
    n_without_time: int
    n_damaged: int
    n_simulated: int
    n_kernels: int
    duration_ns: float | None
    recoverable_ns: float | None
    gpus: tuple[tuple[str, int], ...]
    first: str | None
    last: str | None
    labels: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class FactorChanges:
    """What changed from one value of a factor to the next.

    Attributes:
        by: a key of COLUMN_BY_FACTOR, or `label:NAME`.
        steps: FLEET_STEPS; significant ones first, ordered by the change of the time of a launch.
        n_series: series that have more than one value.
    """

    by: str
    steps: pl.DataFrame
    n_series: int

    @property
    def n_compared(self) -> int:
        """Steps whose times can be compared."""
        return int(self.steps["is_comparable"].sum())

    @property
    def slower(self) -> pl.DataFrame:
        """Regressions: the same work takes significantly longer."""
        return self.steps.filter(pl.col("is_significant") & pl.col("is_same_work") & (pl.col("change_frac") > 0))

    @property
    def newly_slower(self) -> pl.DataFrame:
        """Regressions at the newest value of their series; earlier ones may be fixed already."""
        newest = pl.col("first_recorded_at") == pl.col("newest")
        last = self.steps.group_by("series").agg(pl.col("first_recorded_at").max().alias("newest"))
        return self.slower.join(last, on="series", how="left", maintain_order="left").filter(newest).drop("newest")

    @property
    def faster(self) -> pl.DataFrame:
        """Steps at which the same work takes significantly less time."""
        return self.steps.filter(pl.col("is_significant") & pl.col("is_same_work") & (pl.col("change_frac") < 0))

    @property
    def other_work(self) -> pl.DataFrame:
        """Steps at which time and work both differ: a different problem, or a different algorithm."""
        return self.steps.filter(pl.col("is_significant") & ~pl.col("is_same_work"))


def overview(fleet: pl.LazyFrame) -> Overview:
    """Return the numbers of a FLEET."""
    has_time = ~pl.col("failed") & (pl.col("duration_ns") > 0)
    launches = fleet.with_columns(pl.col("n_represented", "weight").fill_null(1.0))
    row = (
        launches.select(
            pl.col("report_sha256").n_unique().alias("n_reports"),
            n_launches(),
            pl.col("failed").sum().alias("n_failed"),
            (~pl.col("failed") & ~has_time.fill_null(value=False)).sum().alias("n_without_time"),
            *(
                pl.col("report_sha256").filter(pl.col(flag)).n_unique().alias(name)
                for name, flag in (("n_damaged", "is_damaged_report"), ("n_simulated", "is_simulated"))
            ),
            pl.col("name").n_unique().alias("n_kernels"),
            *(
                known_sum((pl.col(name) * pl.col("weight")).filter(has_time))
                for name in ("duration_ns", "recoverable_ns")
            ),
            pl.col("recorded_at").min().dt.strftime("%Y-%m-%d").alias("first"),
            pl.col("recorded_at").max().dt.strftime("%Y-%m-%d").alias("last"),
        )
        .collect()
        .row(0, named=True)
    )
    counted = launches.group_by(gpu(pl.col("gpu_name"))).agg(n_launches())
    gpus = counted.sort("n_launches", "gpu_name", descending=[True, False]).collect()
    return Overview(
        **row,
        gpus=tuple((name or "(GPU not named)", n) for name, n in gpus.iter_rows()),
        labels=tuple(label_counts(fleet).iter_rows()),
    )


def by_time(fleet: pl.LazyFrame) -> pl.DataFrame:
    """Return one row per kernel, program and GPU: time, launches, what bounds it, its time by date; the slowest first.

    Numbers of launches, summed times and medians are those of the counting run if there is one; the longest time is always a
    recorded one. `dates` holds date, launches and median time of a launch for the first and the last dates of recording. It mixes
    all shapes, so changes cannot be read from it: see `changes`. `placed_ns` is the time of the launches whose roofline time is
    known.
    """
    launches = usable(fleet).with_columns(pl.col("recorded_at").dt.date().alias("date"))
    days = (
        launches.filter(pl.col("date").is_not_null())
        .group_by(*_KERNEL, "date")
        .agg(n_launches(), _mean_launch_ns().median().alias("median_ns"))
        .sort("date")
        .group_by(_KERNEL)
        .agg(pl.struct("date", "n_launches", "median_ns").filter(_is_first_or_late()).alias("dates"))
    )
    longest = pl.col("duration_ns").arg_max()
    kernels = launches.group_by(_KERNEL).agg(
        pl.col("short_name").first(),
        pl.col("report_sha256").n_unique().alias("n_reports"),
        n_launches(),
        pl.struct("grid", "block").n_unique().alias("n_shapes"),
        (pl.col("duration_ns") * pl.col("weight")).sum().alias("duration_ns"),
        _mean_launch_ns().median().alias("median_ns"),
        pl.col("duration_ns").max().alias("max_ns"),
        known_sum(pl.col("recoverable_ns") * pl.col("weight")),
        n_launches(pl.col("recoverable_ns").is_not_null()).alias("n_placed"),
        (pl.col("duration_ns") * pl.col("weight"))
        .filter(pl.col("recoverable_ns").is_not_null())
        .sum()
        .alias("placed_ns"),
        pl.col("verdict").get(longest),
        pl.col("limiter").get(longest),
        pl.col("findings").get(longest).list.first().alias("first_finding"),
    )
    total = launches.select((pl.col("duration_ns") * pl.col("weight")).sum()).collect().item() or None
    return (
        kernels.join(days, on=_KERNEL, how="left", nulls_equal=True)
        .with_columns((pl.col("duration_ns") / total).alias("share_frac"))
        .sort("duration_ns", "name", "program", "gpu_name", descending=[True, False, False, False])
        .collect()
    )


def _is_first_or_late() -> pl.Expr:
    number = pl.int_range(pl.len())
    return (number == 0) | (number + _N_DATES > pl.len())


def by_recoverable_time(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `by_time` that have recoverable time, the most first."""
    return kernels.filter(pl.col("recoverable_ns") > 0).sort("recoverable_ns", "name", descending=[True, False])


def across_gpus(fleet: pl.LazyFrame) -> pl.DataFrame:
    """Return one row per distinct launch and GPU, for launches that were recorded on several GPUs.

    Launches are the same if kernel, shape, NVTX range, program, clock control and cache control agree. They are compared only if
    all of them do the same work: FLOPs within a tenth, instructions within a half; at least one of these must be counted. Columns
    besides these are `n_launches`, `median_ns`, `least_ns`, `most_ns`, `share_of_roof_frac` (summed roofline time over summed time)
    and `launch` (the same number for launches that are compared). Rows are ordered by the longest launch.
    """
    placed = pl.col("min_time_ns").is_not_null()
    times = (
        usable(fleet)
        .filter(pl.col("gpu_name").is_not_null())
        .group_by(*SAME_LAUNCH, "clock_control", "cache_control", "is_simulated", "gpu_name")
        .agg(
            pl.col("short_name").first(),
            pl.len().alias("n_launches"),
            pl.col("duration_ns").median().alias("median_ns"),
            pl.col("duration_ns").min().alias("least_ns"),
            pl.col("duration_ns").max().alias("most_ns"),
            (
                pl.col("min_time_ns").filter(placed).sum()
                / pl.when(placed.any()).then(pl.col("duration_ns").filter(placed).sum())
            ).alias("share_of_roof_frac"),
            pl.col("work.flop", "instructions.warp_executed").median(),
            pl.col("verdict").mode().sort().first(),
        )
    )
    together = pl.struct(*SAME_LAUNCH, "clock_control", "cache_control", "is_simulated")
    flop = _agree("work.flop", OTHER_FLOP_FRAC).over(together)
    instructions = _agree("instructions.warp_executed", OTHER_INSTRUCTIONS_FRAC).over(together)
    is_same_work = (flop.fill_null(value=True) & instructions.fill_null(value=True)) & ~(
        flop.is_null() & instructions.is_null()
    )
    return (
        times.with_columns(
            pl.col("gpu_name").n_unique().over(together).alias("n_gpus"),
            pl.col("median_ns").max().over(together).alias("longest_ns"),
            together.rank("dense").alias("launch"),
        )
        .filter((pl.col("n_gpus") > 1) & is_same_work)
        .sort("longest_ns", "launch", "median_ns", "gpu_name", descending=[True, False, False, False])
        .collect()
    )


def _agree(name: str, most_frac: float) -> pl.Expr:
    """Return whether amounts of work differ by at most a fraction of the largest; null if one was not counted."""
    work = pl.col(name)
    return pl.when(work.is_not_null().all()).then(work.min() >= (1 - most_frac) * work.max())


def changes(fleet: pl.LazyFrame, by: str) -> FactorChanges:
    """Return what changed from one driver, tool, commit, … to the next; see `series`."""
    found = steps(sides(fleet, by), states_values=by == "code")
    cost = (pl.col("mean_ns") - pl.col("before_ns")).abs()
    ordered = found.sort(pl.col("is_significant"), cost, pl.col("series"), descending=[True, True, False])
    return FactorChanges(by, ordered, found["series"].n_unique())


def code_versions(fleet: pl.LazyFrame) -> pl.DataFrame:
    """Return FLEET_STEPS from one machine code of a kernel to the next, the newest first, only one shape of each kernel.

    Machine code differs if the source, the compiler or the driver does: `also_changed` states changed versions.
    """
    found = changes(fleet, "code").steps
    cost = (pl.col("mean_ns") - pl.col("before_ns")).abs()
    return (
        found.sort("is_significant", cost, descending=True, maintain_order=True)
        .unique(["name", "process_name", "gpu_name", "before_value", "value"], keep="first", maintain_order=True)
        .sort("first_recorded_at", descending=True, maintain_order=True)
    )


def factors(fleet: pl.LazyFrame) -> tuple[str, ...]:
    """Return the default factors: reports, driver, Nsight Compute, and labels that have several values."""
    labels = (name for name, n_values in label_counts(fleet).iter_rows() if n_values > 1)
    return ("report", "driver", "ncu", *(f"{LABEL_PREFIX}{name}" for name in labels))


def _mean_launch_ns() -> pl.Expr:
    """Return the mean time of the launches that a recorded one stands for; its own time if none were counted."""
    return pl.col("duration_ns") * pl.col("weight") / pl.col("n_represented")
