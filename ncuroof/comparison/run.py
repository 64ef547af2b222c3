"""A run to compare: its launches in groups of equal launches, and how it was recorded.

The counting run of a report says which part of the program the report covers, and which launches were not profiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl

from ncuroof.comparison.finding_changes import FOUND, FOUND_TYPE, found_in
from ncuroof.comparison.matched_groups import FLOP, INSTRUCTIONS
from ncuroof.comparison.peaks import PEAK_UNITS, peaks
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.signatures import range_path, renamed, variant
from ncuroof.diagnosis import UnprofiledLaunches, Weighting, known_sum, n_launches
from ncuroof.enums import NAMELESS, Precision
from ncuroof.errors import SchemaError
from ncuroof.ingest import RawReport
from ncuroof.metrics import Measurements, code_of
from ncuroof.metrics.work import whole_flop
from ncuroof.tables import conform

SAME_LAUNCH = ("name", "workload", "grid", "block", "range")
"""What the launches of a group have in common. The same kernel in a different NVTX range is a different group."""

COUNTED = "counted_average_ns"
_WEIGHTS = ("n_represented", "weight", COUNTED)
_NUMBERS = (
    "n_launches", "n_recorded", "n_high", "n_medium", "n_instructions",
    "duration_ns", "mean_ns", "deviation_ns", COUNTED, "recoverable_ns", "roof_frac",
)  # fmt: skip
"""Columns of groups with numbers, besides the quantities that may explain a change."""

CODE_COLUMNS = pl.Schema(
    {"sha256": pl.String(), "n_instructions": pl.Int64(), "is_whole": pl.Boolean(), "opcodes": pl.String()}
)
"""Machine code of a group's launches, as in CODE; null if the launches differ in it, or the report lacks it."""

BUILDS: Mapping[float | None, str] = {0.0: "with optimisation", 1.0: "for debugging (nvcc -G)"}
"""How kernels were compiled, by `check.debug_build`."""


VECTOR_PRECISIONS = (Precision.FP64, Precision.FP32, Precision.FP16)
"""Precisions that every GPU has, so that null FLOPs mean that they were not counted. Tensor operations differ by GPU."""

_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a run was recorded. Each field holds what its reports say, sorted; several values if they differ.

    Attributes:
        gpus: names of the GPUs.
        drivers: versions of the driver.
        ncu_versions: versions of Nsight Compute.
        clock_controls, cache_controls: as given to ncu.
        sections: the collected sections.
        sm_clock_hz: median over the launches; None if unknown.
        is_simulated: whether ncuroof wrote a report without recording it.
        builds: how the kernels were compiled.
        precisions: those of VECTOR_PRECISIONS whose FLOPs were counted; the precisions of a launch are one text.
    """

    gpus: tuple[str, ...]
    drivers: tuple[str, ...]
    ncu_versions: tuple[str, ...]
    clock_controls: tuple[str, ...]
    cache_controls: tuple[str, ...]
    sections: tuple[str, ...]
    sm_clock_hz: float | None
    is_simulated: bool = False
    builds: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()


LINE_SHARES = pl.Schema(
    {
        "group": pl.UInt32(),
        "file": pl.String(),
        "line": pl.Int64(),
        "text": pl.String(),  # null if the report lacks it
        "callers": pl.String(),  # as in LINES
        "frac": pl.Float64(),  # of the samples of the group's launches
        "n_samples": pl.Float64(),  # of these launches
    }
)
"""One row per group and source line, the most samples first; lines with the fewest samples are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run to compare.

    Attributes:
        label: what to call it.
        setup: how it was recorded.
        groups: one row per group of launches, in order of first appearance: `group` (its number), SAME_LAUNCH, `short_name`,
            `renamed` and `variant` (see `signatures`), `ids` of its recorded launches, `n_recorded` of these, `n_launches` that
            they stand for, `duration_ns` (sum over these), `mean_ns` and `deviation_ns` (of those recorded),
            `counted_average_ns`, `verdict`, `limiter` and `recoverable_ns` (sum), `roof_frac` (roofline time over duration),
            `n_high` and `n_medium` findings, FOUND, and the mean of every quantity that can explain a change.
        n_kernels: launches that were profiled.
        n_failed: launches whose profiling failed; they are in no group.
        lines: LINE_SHARES.
        step_ns: wall-clock time of a counted step; None if no steps were counted.
        idle_frac: share of the step in which nothing ran on the GPU; None if no steps were counted.
        failed: names of the launches whose profiling failed, sorted; "" for an unknown name.
        is_counted: whether sums are weighted by a counting run; times of single launches are always those under ncu.
        not_recorded_ns: GPU time of the counting run in kernels that were not recorded; None if unknown.
        unprofiled: launches of these kernels, by kernel and shape; empty also if they are unknown.
        steps: the steps that were counted, as `--step` takes them; "" for the whole run, None if unknown.
        n_steps: the number of these steps; None if unknown.
        damage: name of each damaged report and what is wrong with it; launches may be missing in all of the above.
    """

    label: str
    setup: Setup
    groups: pl.DataFrame
    n_kernels: int
    n_failed: int
    lines: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LINE_SHARES))
    step_ns: float | None = None
    idle_frac: float | None = None
    failed: tuple[str, ...] = ()
    is_counted: bool = False
    not_recorded_ns: float | None = None
    unprofiled: tuple[UnprofiledLaunches, ...] = ()
    steps: str | None = None
    n_steps: int | None = None
    damage: tuple[str, ...] = ()

    def without_flop(self) -> Run:
        """Return the run as if no FLOPs had been counted."""
        return replace(self, groups=self.groups.with_columns(pl.lit(None, pl.Float64).alias(FLOP)))


def run_of(
    label: str,
    *,
    reports: Sequence[RawReport],
    measurements: Measurements,
    kernels: pl.DataFrame,
    findings: pl.DataFrame,
    n_failed: int,
    weighting: Weighting | None,
) -> Run:
    """Return a run to compare.

    Args:
        label: what to call it.
        reports: the reports of the run.
        measurements: measurements of its launches.
        kernels: one row per launch, as `Analysis.kernels`.
        findings: FINDINGS.
        n_failed: launches whose profiling failed.
        weighting: weights by its counting runs, if any; with several ranks, the time of a step is that of the slowest.
    """
    wall_times = () if weighting is None else weighting.wall_times
    slowest = max((time for time in wall_times if time.n_steps), key=lambda time: time.duration_ns, default=None)
    sessions = [report.session for report in reports]
    clock = measurements.kernels["sm_clock_hz"].median()
    groups = launch_groups(kernels.join(code_of(reports), on="id", how="left", maintain_order="left"), findings)
    counted = counted_of(weighting)
    return Run(
        label=label,
        setup=Setup(
            gpus=distinct(measurements.devices["name"].to_list()),
            drivers=distinct([session.driver_version for session in sessions]),
            ncu_versions=distinct([session.ncu_version for session in sessions]),
            clock_controls=distinct([session.clock_control for session in sessions]),
            cache_controls=distinct([session.cache_control for session in sessions]),
            sections=distinct([section for report in reports for section in report.sections]),
            sm_clock_hz=None if clock is None else float(clock),  # type: ignore[arg-type]  # of floats
            is_simulated=any(session.is_simulated for session in sessions),
            builds=distinct(map(BUILDS.get, measurements.kernels["check.debug_build"])),
            precisions=distinct(_precisions(kernels)),
        ),
        groups=groups,
        n_kernels=kernels.height,
        n_failed=n_failed,
        lines=line_shares(groups, measurements.lines),
        step_ns=None if slowest is None else slowest.duration_ns,
        idle_frac=None if slowest is None else slowest.idle_frac,
        failed=tuple(sorted(kernels.filter("failed")["name"].fill_null(""))),
        is_counted=counted.is_counted,
        not_recorded_ns=counted.not_recorded_ns,
        unprofiled=counted.unprofiled,
        steps=counted.steps,
        n_steps=counted.n_steps,
        damage=tuple(f"{report.file}: {report.damage}" for report in reports if report.damage is not None),
    )


def launch_groups(kernels: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the `groups` of a Run.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        findings: FINDINGS.

    Raises:
        SchemaError: a column is absent.
    """
    if missing := {"id", "name", "grid", "block", "nvtx", "duration_ns", "verdict", *_WEIGHTS} - set(kernels.columns):
        raise SchemaError(f"launches to compare lack {', '.join(sorted(missing))}")
    wanted = load_comparison_rules().quantities()
    quantities = [name for name in wanted if name in {*kernels.columns, FLOP, *PEAK_UNITS}]
    absent = [name for name in wanted if name not in quantities]
    longest = pl.col("duration_ns").arg_max().fill_null(0)
    return (
        _launches(kernels, findings)
        .join(found_in(kernels, findings).lazy(), on="id", how="left", maintain_order="left")
        .with_columns(pl.col(FOUND).cast(FOUND_TYPE).fill_null([]))
        .group_by(SAME_LAUNCH, maintain_order=True)
        .agg(
            pl.col("short_name").first(),
            pl.col("id").alias("ids"),
            # With many ranges, a group may stand for less than one launch.
            pl.max_horizontal(n_launches(), 1).alias("n_launches"),
            pl.len().alias("n_recorded"),
            pl.when(pl.col("duration_ns").is_not_null().all()).then((pl.col("duration_ns") * pl.col("weight")).sum()),
            pl.col("duration_ns").mean().alias("mean_ns"),
            _deviation_of_equal_work(kernels).alias("deviation_ns"),
            pl.when(pl.col(COUNTED).is_not_null().all()).then(pl.col(COUNTED).mean()).alias(COUNTED),
            pl.col("verdict").get(longest),
            pl.col("limiter").get(longest),
            known_sum(pl.col("recoverable_ns") * pl.col("weight")),
            _roof_frac(),
            pl.col("n_high").sum(),
            pl.col("n_medium").sum(),
            pl.col(FOUND).get(longest),
            *(pl.col(name).mean() for name in quantities),
            *_code(longest),
        )
        .with_columns(
            renamed(pl.col("name")).alias("renamed"),
            variant(pl.col("name")).alias("variant"),
            *(pl.lit(None, pl.Float64).alias(name) for name in absent),
        )
        .with_row_index("group")
        .collect()
    )


def _launches(kernels: pl.DataFrame, findings: pl.DataFrame) -> pl.LazyFrame:
    """Return the launches that did not fail, with SAME_LAUNCH, FLOPs, peaks and numbers of findings."""
    severe = findings.group_by("id").agg(
        (pl.col("severity") == severity).sum().alias(f"n_{severity}") for severity in ("high", "medium")
    )
    return (
        kernels.lazy()
        .filter(~pl.col("failed"))
        .join(severe.lazy(), on="id", how="left", maintain_order="left")
        .with_columns(
            pl.col("name").fill_null("").alias("name"),
            shown_name(),
            pl.col("workload").cast(pl.String),
            range_path(pl.col("nvtx")).alias("range"),
            whole_flop(kernels).alias(FLOP),
            *peaks(kernels),
            pl.col("n_high", "n_medium").fill_null(0),
            *(pl.lit(None, dtype).alias(name) for name, dtype in CODE_COLUMNS.items() if name not in kernels.columns),
        )
    )


def _code(longest: pl.Expr) -> Iterator[pl.Expr]:
    """Yield CODE_COLUMNS of a group: the code that all launches share, and what the longest launch executed."""
    for name in CODE_COLUMNS:
        if name == "opcodes":
            yield pl.col(name).get(longest)
        else:
            yield pl.when(pl.col("sha256").n_unique() == 1).then(pl.col(name).first()).alias(name)


def numbers_of_groups() -> list[str]:
    """Return the numeric columns of `groups`, sorted: the metrics of a kernel that gates accept."""
    return sorted({*_NUMBERS, *load_comparison_rules().quantities()})


def shown_name() -> pl.Expr:
    """Return `short_name`; without it, the whole name; without a name, a placeholder."""
    return pl.coalesce(pl.col("short_name", "name").replace("", None), pl.lit(NAMELESS)).alias("short_name")


def line_shares(groups: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Return LINE_SHARES of the launches that have samples by line.

    Args:
        groups: of a Run.
        lines: LINES.
    """
    total = (pl.col("value") / pl.col("frac")).first().over("id")
    sampled = (
        lines.filter(pl.col("measure") == "samples")
        .with_columns(total.alias("total"))
        .join(groups.select("group", pl.col("ids").alias("id")).explode("id"), on="id", maintain_order="left")
    )
    totals = sampled.unique("id").group_by("group").agg(pl.col("total").sum().alias("n_samples"))
    return (
        sampled.group_by("group", "file", "line", maintain_order=True)
        .agg(pl.col("text", "callers").first(), pl.col("value").sum())
        .join(totals, on="group", maintain_order="left")
        .with_columns((pl.col("value") / pl.col("n_samples")).alias("frac"))
        .sort("group", "frac", descending=[False, True], maintain_order=True)
        .pipe(conform, LINE_SHARES)
    )


def _precisions(kernels: pl.DataFrame) -> list[str]:
    """Return for each launch the VECTOR_PRECISIONS whose FLOPs were counted."""
    columns = [f"work.{each.value}.flop" for each in VECTOR_PRECISIONS]
    known = kernels.filter(~pl.col("failed")).select(pl.col(name).is_not_null() for name in columns)
    return [
        " ".join(name.split(".")[1] for name, is_known in row.items() if is_known) for row in known.unique().to_dicts()
    ]


def _deviation_of_equal_work(kernels: pl.DataFrame) -> pl.Expr:
    """Return the standard deviation of the launches' times; null if they do different amounts of work, which is not noise."""
    counted = [name for name in (FLOP, INSTRUCTIONS) if name in {*kernels.columns, FLOP}]
    return pl.when(~pl.any_horizontal(map(varies, counted))).then(pl.col("duration_ns").std())


def varies(name: str) -> pl.Expr:
    """Return whether launches are known to do different amounts of work, so that their times do not only vary by chance."""
    work = pl.col(name)
    return (work.max() > work.min() * load_comparison_rules().work.one_group_ratio).fill_null(value=False)


def _roof_frac() -> pl.Expr:
    """Return roofline time over duration, summed over the launches for which both are known."""
    are_known = pl.col("min_time_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    duration = pl.col("duration_ns").filter(are_known).sum()
    return (pl.col("min_time_ns").filter(are_known).sum() / pl.when(duration > 0).then(duration)).alias("roof_frac")


def distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    """Return the values that several reports state, each once, sorted."""
    return tuple(sorted({value for value in values if value}))


@dataclass(frozen=True, slots=True)
class Counted:
    """What the counting runs of a run say.

    Attributes:
        is_counted: whether a counting run counted launches of the reports' program.
        not_recorded_ns: GPU time of kernels that were not profiled; None if unknown.
        unprofiled: launches of these kernels, by kernel and shape.
        steps: the steps that were counted, as `--step` takes them; "" for the whole run, None if unknown.
        n_steps: the number of these steps; None if unknown.
    """

    is_counted: bool = False
    not_recorded_ns: float | None = None
    unprofiled: tuple[UnprofiledLaunches, ...] = ()
    steps: str | None = None
    n_steps: int | None = None


def counted_of(weighting: Weighting | None) -> Counted:
    """Return what was counted of a run. A counting run that shares no launch with it belongs to a different program."""
    if weighting is None or weighting.covered_frac == 0:
        return Counted()
    covered_frac = weighting.covered_frac
    return Counted(
        is_counted=True,
        not_recorded_ns=None if covered_frac is None else weighting.duration_ns * (1 - covered_frac),
        unprofiled=weighting.unprofiled,
        steps=_common_value([steps or "" for steps in weighting.steps]),
        n_steps=_common_value([time.n_steps for time in weighting.wall_times]),
    )


def _common_value(values: Sequence[_Value | None]) -> _Value | None:
    return values[0] if len(set(values)) == 1 else None
