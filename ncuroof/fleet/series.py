"""Compare the times of equal launches from one driver, tool, commit or report to the next.

A series is the set of launches that agree in kernel, shape, NVTX range, program, GPU, clock control and cache control. Times of
different series are never compared. Within a series, launches are grouped by the value of the compared factor, and the values are
ordered by their first recording.

Noise: the standard error of the mean for a value is the larger of two. The first comes from the deviation of its launches, which is
taken to be at least the typical one. The second, used from a certain number of reports on, comes from the means of the reports,
because clocks, temperature and placement differ between recordings. A change is significant if it exceeds z standard errors of the
difference, and the smallest change of `profiles/comparison.toml`. z grows if the error is estimated from few launches or reports
(Student), and with the number of comparisons (Šidák), so that all comparisons together are as rarely wrong as a single one. Without
this, one in twenty of a thousand kernels would "regress" by chance. Two runs are compared by the same rule
(`ncuroof.comparison.noise`).
"""

from __future__ import annotations

import math

import polars as pl

from ncuroof.comparison.matched_groups import FLOP, INSTRUCTIONS
from ncuroof.comparison.noise import Chance
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.run import SAME_LAUNCH as OF_A_GROUP
from ncuroof.comparison.run import varies
from ncuroof.comparison.signatures import range_path
from ncuroof.fleet.rows import FLEET_STEPS
from ncuroof.tables import conform

LABEL_PREFIX = "label:"

COLUMN_BY_FACTOR = {
    "driver": "driver_version",
    "cuda": "cuda_version",
    "ncu": "ncu_version",
    "ncuroof": "ncuroof_version",
    "report": "report_sha256",
    "compiler": "compiler_version",
    "code": "code_sha256",
}
"""Columns of the factors that can be compared, besides labels."""

_CONTEXT = {
    "driver": "the driver",
    "cuda": "the CUDA version",
    "ncu": "Nsight Compute",
    "compiler": "the compiler",
    "code": "the machine code",
}
"""Factors that may be the cause of a change if they differ along with the compared factor. Labels may be, too."""

_CONTEXT_PREFIX = "context."
_FREEDOM = "freedom"
"""Degrees of freedom of a standard error; infinite for the typical deviation, which is not estimated."""
_N_HASH = 8

_DRAM_BYTES = "traffic_bytes.dram"
_COUNTED_WORK = (FLOP, INSTRUCTIONS)
_WORK = (*_COUNTED_WORK, _DRAM_BYTES)
"""Amounts whose differences are stated, in the words and beyond the thresholds of `profiles/comparison.toml`."""

OTHER_FLOP_FRAC, OTHER_INSTRUCTIONS_FRAC, _OTHER_DRAM_FRAC = 0.1, 0.5, 0.5
"""Launches solve different problems if their FLOPs differ by more than a tenth, or their instructions by more than half: sizes are
arguments of a kernel, which its shape does not show. If neither was counted, DRAM bytes that differ by more than half decide."""

SAME_LAUNCH = (*OF_A_GROUP, "program")
_SAME_RECORDING = ("gpu_name", "clock_control", "cache_control", "replay_mode", "is_simulated")
_SERIES = (*SAME_LAUNCH, *_SAME_RECORDING)


def factor(name: str) -> pl.Expr:
    """Return the value of a factor as text: a key of COLUMN_BY_FACTOR, or `label:NAME`."""
    if name.startswith(LABEL_PREFIX):
        return label(name.removeprefix(LABEL_PREFIX))
    if name == "report":
        return pl.format("{} {}", pl.col("report_sha256").str.head(_N_HASH), pl.col("report_file"))
    return pl.col(COLUMN_BY_FACTOR[name]).str.head(_N_HASH) if name == "code" else pl.col(COLUMN_BY_FACTOR[name])


def label(name: str) -> pl.Expr:
    """Return the value of a label; null if a report lacks it."""
    values = pl.col("labels").list.eval(
        pl.element().filter(pl.element().struct.field("name") == name).struct.field("value")
    )
    return values.list.first()


def label_counts(fleet: pl.LazyFrame) -> pl.DataFrame:
    """Return every label by `name` with `n_values`, the number of its values, in alphabetical order."""
    labels = fleet.select(pl.col("labels").explode()).drop_nulls().unnest("labels")
    return labels.group_by("name").agg(pl.col("value").n_unique().alias("n_values")).sort("name").collect()


def gpu(names: pl.Expr) -> pl.Expr:
    """Return names of GPUs without the vendor, which old drivers leave out."""
    return names.str.strip_prefix("NVIDIA ")


def usable(fleet: pl.LazyFrame) -> pl.LazyFrame:
    """Return the launches whose time is known, with the columns that series are made of."""
    return fleet.filter(~pl.col("failed") & (pl.col("duration_ns") > 0)).with_columns(
        pl.col("n_represented", "weight").fill_null(1.0),
        range_path(pl.col("nvtx")).alias("range"),
        _program().alias("program"),
        gpu(pl.col("gpu_name")),
        pl.col("is_simulated").fill_null(value=False),  # otherwise, null rows of old files would be series of their own
    )


def _program() -> pl.Expr:
    """Return the name of the process without its version: numbers with dots, and any number after the name of an interpreter."""
    name = pl.col("process_name").str.replace(r"(?i)\.exe$", "")
    return name.str.replace(r"^(.+?)\d+(\.\d+)+$", "$1").str.replace(r"^(python|pypy|julia|perl|ruby)\d+$", "$1")


def sides(fleet: pl.LazyFrame, compared: str) -> pl.DataFrame:
    """Return FLEET_SIDES of the launches whose value and date are known, with columns for further differences.

    Args:
        fleet: FLEET.
        compared: a key of COLUMN_BY_FACTOR, or `label:NAME`.
    """
    noise = load_comparison_rules().noise
    context = _context(fleet, compared)
    launches = (
        usable(fleet)
        .with_columns(factor(compared).alias("value"))
        .filter(pl.col("value").is_not_null() & pl.col("recorded_at").is_not_null())
    )
    reports = launches.group_by(*_SERIES, "value", "report_sha256").agg(
        pl.col("short_name").first(),
        pl.col("process_name").first(),
        pl.col("recorded_at").min(),
        pl.len().alias("n"),
        pl.col("duration_ns").sum(),
        (pl.col("duration_ns") ** 2).sum().alias("squares"),
        pl.col("sm_clock_hz").mean(),
        *(pl.col(name).mean() for name in _WORK),
        pl.any_horizontal(map(varies, _COUNTED_WORK)).alias("works_unequally"),
        *(value.first().alias(f"{_CONTEXT_PREFIX}{words}") for words, value in context.items()),
    )
    n, mean = pl.col("n").sum(), pl.col("duration_ns").sum() / pl.col("n").sum()
    own = ((pl.col("squares").sum() - n * mean**2) / pl.when(n > 1).then(n - 1)).clip(0).sqrt()
    seen = (noise.jitter_ns**2 + (noise.deviation_frac * mean) ** 2).sqrt()
    is_alike = ~pl.any_horizontal(pl.col("works_unequally").any(), *map(varies, _COUNTED_WORK))
    is_own = ((n >= noise.n_launches_to_estimate) & is_alike & (own > seen)).fill_null(value=False)
    of_launches = pl.when(is_own).then(own).otherwise(seen) / n.sqrt()
    enough = pl.len() >= noise.n_launches_to_estimate
    of_reports = pl.when(enough).then((pl.col("duration_ns") / pl.col("n")).std() / pl.len().sqrt()).otherwise(0.0)
    return (
        reports.group_by(*_SERIES, "value")
        .agg(
            pl.col("short_name").first(),
            pl.col("process_name").first(),
            pl.col("recorded_at").min().alias("first_recorded_at"),
            pl.len().alias("n_reports"),
            n.alias("n_launches"),
            mean.alias("mean_ns"),
            pl.max_horizontal(of_launches, of_reports).alias("standard_error_ns"),
            pl.when(of_reports > of_launches)
            .then(pl.len() - 1.0)
            .otherwise(pl.when(is_own).then(n - 1.0).otherwise(math.inf))
            .alias(_FREEDOM),
            pl.col("sm_clock_hz").mean(),
            *(pl.col(name).mean() for name in _WORK),
            *(pl.col(f"{_CONTEXT_PREFIX}{words}").drop_nulls().unique().sort() for words in context),
        )
        .with_columns(pl.struct(_SERIES).rank("dense").alias("series"))
        .sort("series", "first_recorded_at", "value")
        .collect()
    )


def _context(fleet: pl.LazyFrame, compared: str) -> dict[str, pl.Expr]:
    """Return the other factors that may be the cause of a change, by their words."""
    versions = {words: factor(name) for name, words in _CONTEXT.items() if name != compared}
    names = [name for name in label_counts(fleet)["name"] if f"{LABEL_PREFIX}{name}" != compared]
    return versions | {f"label {name}": label(name) for name in names}


def steps(found: pl.DataFrame, *, states_values: bool = False) -> pl.DataFrame:
    """Return FLEET_STEPS: every value in a series with the value before it.

    Args:
        found: FLEET_SIDES, as `sides` returns them.
        states_values: whether to state the values of further differences: "the driver 580.1 → 590.2".
    """
    noise = load_comparison_rules().noise
    before = [
        pl.col(name).shift().over("series").alias(f"before.{name}")
        for name in found.columns
        if name not in (*_SERIES, "series", "short_name", "process_name")
    ]
    pairs = found.with_columns(before).filter(pl.col("before.value").is_not_null())
    change = pl.col("mean_ns") / pl.col("before.mean_ns") - 1
    clocks = (pl.col("sm_clock_hz") / pl.col("before.sm_clock_hz") - 1).abs()
    is_comparable = (clocks <= noise.clock_difference_frac).fill_null(value=True)
    n_comparable = max(int(pairs.select(is_comparable.alias("it"))["it"].sum()), 1)
    errors = pairs.select(
        pl.col("standard_error_ns") / pl.col("mean_ns"),
        _FREEDOM,
        pl.col("before.standard_error_ns") / pl.col("before.mean_ns"),
        f"before.{_FREEDOM}",
    )
    noises = [Chance.of([row[:2], row[2:]]).noise_frac(n_comparable) for row in errors.iter_rows()]
    return conform(
        pairs.with_columns(
            change.alias("change_frac"),
            pl.Series("noise_frac", noises, dtype=pl.Float64),
            is_comparable.alias("is_comparable"),
            _also_changed(pairs, states_values=states_values).alias("also_changed"),
            _is_same_work().alias("is_same_work"),
            pl.col("before.value").alias("before_value"),
            pl.col("before.mean_ns").alias("before_ns"),
            pl.col("before.n_launches").alias("before_n_launches"),
        ).with_columns(
            (pl.col("is_comparable") & (pl.col("change_frac").log1p().abs() > pl.col("noise_frac").log1p())).alias(
                "is_significant"
            )
        ),
        FLEET_STEPS,
    )


def _is_same_work() -> pl.Expr:
    """Return whether both sides do the same work. Unknown amounts count as equal."""
    is_counted = pl.any_horizontal(
        pl.col(name).is_not_null() & pl.col(f"before.{name}").is_not_null() for name in _COUNTED_WORK
    )
    return ~(
        _differ(FLOP, OTHER_FLOP_FRAC)
        | _differ(INSTRUCTIONS, OTHER_INSTRUCTIONS_FRAC)
        | (~is_counted & _differ(_DRAM_BYTES, _OTHER_DRAM_FRAC))
    )


def _differ(name: str, least_frac: float) -> pl.Expr:
    """Return whether a quantity differs by more than a fraction of the larger value; false if either is unknown."""
    values = pl.col(name), pl.col(f"before.{name}")
    return ((values[0] - values[1]).abs() > least_frac * pl.max_horizontal(values)).fill_null(value=False)


def _also_changed(pairs: pl.DataFrame, *, states_values: bool) -> pl.Expr:
    """Return what differs besides the compared factor."""
    names = [name for name in pairs.columns if name.startswith(_CONTEXT_PREFIX)]
    contexts = [
        pl.when(_context_differs(name)).then(_context_words(name, states_values=states_values)) for name in names
    ]
    rules = {each.quantity: each for each in load_comparison_rules().explanations}
    work = [pl.when(_differ(name, rules[name].least)).then(pl.lit(rules[name].words)) for name in _WORK]
    return pl.concat_list(*contexts, *work).list.drop_nulls()


def _context_differs(name: str) -> pl.Expr:
    """Return whether a version or label differs. Code and compiler must be known on both sides, because many reports lack them."""
    now, before = pl.col(name), pl.col(f"before.{name}")
    is_of_code = name.removeprefix(_CONTEXT_PREFIX) in {_CONTEXT["compiler"], _CONTEXT["code"]}
    return (now != before) & (now.list.len() > 0) & (before.list.len() > 0) if is_of_code else now != before


def _context_words(name: str, *, states_values: bool) -> pl.Expr:
    words = pl.lit(name.removeprefix(_CONTEXT_PREFIX))
    if not states_values:
        return words
    return pl.format("{} {} → {}", words, pl.col(f"before.{name}").list.join("/"), pl.col(name).list.join("/"))
