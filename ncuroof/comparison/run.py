"""One of the runs that are compared: its launches in groups of equal ones, and how it was recorded.

The counting run of a report says which part of the program it is, and what was not profiled of it.
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
"""What the launches of a group have in common; the same kernel in another NVTX range is another group."""

COUNTED = "counted_average_ns"
_WEIGHTS = ("n_represented", "weight", COUNTED)
_NUMBERS = (
    "n_launches", "n_recorded", "n_high", "n_medium", "n_instructions",
    "duration_ns", "mean_ns", "deviation_ns", COUNTED, "recoverable_ns", "roof_frac",
)  # fmt: skip
"""Of groups, besides quantities that may explain a change."""

CODE_COLUMNS = pl.Schema(
    {"sha256": pl.String(), "n_instructions": pl.Int64(), "is_whole": pl.Boolean(), "opcodes": pl.String()}
)
"""What the machine code of a group's launches is, as of CODE; null where they differ in it, or the report does not have it."""

BUILDS: Mapping[float | None, str] = {0.0: "with optimisation", 1.0: "for debugging (nvcc -G)"}
"""How kernels were compiled, by `check.debug_build`."""


VECTOR_PRECISIONS = (Precision.FP64, Precision.FP32, Precision.FP16)
"""Those that every GPU has: where such FLOPs are null they were not counted. Which tensor operations there are differs by GPU."""

_Value = TypeVar("_Value", int, str)


@dataclass(frozen=True, slots=True)
class Setup:
    """How a run was recorded; each field holds what its reports say, sorted, more than one value where they differ.

    Attributes:
        gpus: names of the GPUs.
        drivers: of the drivers.
        ncu_versions: of Nsight Compute.
        clock_controls, cache_controls: as given to ncu.
        sections: that were collected.
        sm_clock_hz: median over the launches; None where not known.
        is_simulated: whether a report was written by ncuroof and not recorded.
        builds: how the kernels were compiled.
        precisions: of which FLOPs were counted, of VECTOR_PRECISIONS; those of a launch as one text.
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
        "text": pl.String(),  # null where the report does not carry it
        "callers": pl.String(),  # as of LINES
        "frac": pl.Float64(),  # of the samples of the group's launches
        "n_samples": pl.Float64(),  # of these launches
    }
)
"""One row per group and line of the source, the most samples first; those with fewest are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One of the runs.

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
        step_ns: how long a counted step took on the wall's clock; None where no steps were counted.
        idle_frac: share of it in which nothing ran on the GPU; likewise.
        failed: names of the launches whose profiling failed, sorted; "" where it is not known.
        is_counted: whether sums are weighted by a run that counted the launches; times of single launches are ncu's all the same.
        not_recorded_ns: GPU time of that run in kernels that were not recorded; None where it is not known.
        unprofiled: launches of these kernels, by kernel and shape; empty also where they are not known.
        steps: the steps that were counted, as `--step` takes them; "" for the whole run, None where it is not known.
        n_steps: how many these are; None where it is not known.
        damage: of each damaged report its name and what is wrong with it: launches may be missing in all of the above.
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
        reports: of which it is made.
        measurements: of its launches.
        kernels: one row per launch, as `Analysis.kernels`.
        findings: FINDINGS.
        n_failed: launches whose profiling failed.
        weighting: by its counted runs, if any; of several ranks the slowest tells how long a step takes.
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
            # A share of a launch, where ranges are many, is one.
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
    """Return the launches that did not fail, with SAME_LAUNCH, their FLOPs, peaks and numbers of findings."""
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
    """Yield CODE_COLUMNS of a group: its code where all launches have the same, and what the longest one executed."""
    for name in CODE_COLUMNS:
        if name == "opcodes":
            yield pl.col(name).get(longest)
        else:
            yield pl.when(pl.col("sha256").n_unique() == 1).then(pl.col(name).first()).alias(name)


def numbers_of_groups() -> list[str]:
    """Return the columns of `groups` with numbers of kernels, sorted: what a gate can ask of a kernel."""
    return sorted({*_NUMBERS, *load_comparison_rules().quantities()})


def shown_name() -> pl.Expr:
    """Return `short_name`, where there is none the whole name, and words where there is none either."""
    return pl.coalesce(pl.col("short_name", "name").replace("", None), pl.lit(NAMELESS)).alias("short_name")


def line_shares(groups: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Return LINE_SHARES of launches whose samples are known by line.

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
    """Return of which VECTOR_PRECISIONS the FLOPs of each launch were counted."""
    columns = [f"work.{each.value}.flop" for each in VECTOR_PRECISIONS]
    known = kernels.filter(~pl.col("failed")).select(pl.col(name).is_not_null() for name in columns)
    return [
        " ".join(name.split(".")[1] for name, is_known in row.items() if is_known) for row in known.unique().to_dicts()
    ]


def _deviation_of_equal_work(kernels: pl.DataFrame) -> pl.Expr:
    """Return how much the time of launches deviates; null where they do different amounts of work: that is no chance."""
    counted = [name for name in (FLOP, INSTRUCTIONS) if name in {*kernels.columns, FLOP}]
    return pl.when(~pl.any_horizontal(map(varies, counted))).then(pl.col("duration_ns").std())


def varies(name: str) -> pl.Expr:
    """Return whether launches are known to do different amounts of work: how their times deviate is then no chance."""
    work = pl.col(name)
    return (work.max() > work.min() * load_comparison_rules().work.one_group_ratio).fill_null(value=False)


def _roof_frac() -> pl.Expr:
    """Return roofline time over duration, over the launches of which both are known."""
    are_known = pl.col("min_time_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    duration = pl.col("duration_ns").filter(are_known).sum()
    return (pl.col("min_time_ns").filter(are_known).sum() / pl.when(duration > 0).then(duration)).alias("roof_frac")


def distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    """Return what several reports say, each once, sorted; nothing for what they do not say."""
    return tuple(sorted({value for value in values if value}))


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of a run; of several reports what all of their counting runs say.

    Attributes:
        is_counted: whether anything was, of the program of the reports.
        not_recorded_ns: GPU time of kernels that were not profiled; None where it is not known.
        unprofiled: launches of these kernels, by kernel and shape.
        steps: the steps that were counted, as `--step` takes them; "" for the whole run, None where it is not known.
        n_steps: how many these are; None where it is not known.
    """

    is_counted: bool = False
    not_recorded_ns: float | None = None
    unprofiled: tuple[UnprofiledLaunches, ...] = ()
    steps: str | None = None
    n_steps: int | None = None


def counted_of(weighting: Weighting | None) -> Counted:
    """Return what was counted of a run; nothing where none of its launches was: that was another program."""
    if weighting is None or weighting.covered_frac == 0:
        return Counted()
    covered_frac = weighting.covered_frac
    return Counted(
        is_counted=True,
        not_recorded_ns=None if covered_frac is None else weighting.duration_ns * (1 - covered_frac),
        unprofiled=weighting.unprofiled,
        steps=_the_same([steps or "" for steps in weighting.steps]),
        n_steps=_the_same([time.n_steps for time in weighting.wall_times]),
    )


def _the_same(values: Sequence[_Value | None]) -> _Value | None:
    return values[0] if len(set(values)) == 1 else None
