"""The diagnosis: verdicts from measurements and roofline, with decision path, findings, caveats and missing quantities.

Everything known about each launch is also made one wide table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from ncuroof.demand import with_demand
from ncuroof.diagnosis.caveats import add_checks, caveats
from ncuroof.diagnosis.counted_times import usual_times
from ncuroof.diagnosis.findings import COMPUTE_UNITS, MEMORY_UNITS, add_firing, add_latency_limiter, collect_findings
from ncuroof.diagnosis.phase_verdicts import UNLIKE_PHASES, judge_phases, unlike_phases
from ncuroof.diagnosis.rules import Node, Rules, load_rules
from ncuroof.diagnosis.summary import with_weights
from ncuroof.diagnosis.tree import limiter_by_verdict, nearest_flips, of_equal_launches, walk_tree
from ncuroof.diagnosis.weights import UNEVEN
from ncuroof.enums import Confidence, MemoryLevel, Verdict
from ncuroof.metrics import NEAR_FRAC, Catalogue, Measurements, Quantity, largest, load_catalogue, precisions
from ncuroof.phases import Phased
from ncuroof.roofline import LEAST_UNCOUNTED_FRAC, Roofline
from ncuroof.tables import FINDINGS, FLIPS, MISSING, PATH, PHASES, SAMPLES, VERDICTS, check, conform

_TENSOR, _BUSY = "tensor", "busy_enough"
_BUSY_FROM, _L1_IN_FULL = 0.6, 0.85
"""From where the tree calls a unit busy, and from where L1 counts in full by a part that no breakdown lists (`l1_beyond`)."""

_SAME = 0.0005
"""Largest difference of two utilisations that are the same number: ncu prints 0.0001, and passes differ by about as much."""

_AT_LEAST = {"dram": ("utilisation.dram_at_least",)}
"""By unit: what is known of its utilisation where the whole is not."""


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What bounds each kernel, and why.

    Attributes:
        verdicts: VERDICTS, one row per kernel.
        path: PATH, the decisions that led to each verdict.
        flips: FLIPS, the nearest change that would give another verdict.
        findings: FINDINGS.
        missing: MISSING, quantities that the report lacks.
        phases: PHASES, of kernels that were sampled.
        samples: SAMPLES, likewise.
    """

    verdicts: pl.DataFrame
    path: pl.DataFrame
    flips: pl.DataFrame
    findings: pl.DataFrame
    missing: pl.DataFrame
    phases: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PHASES))
    samples: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAMPLES))


def diagnose(
    measurements: Measurements, roofline: Roofline, weights: pl.DataFrame, phased: Phased | None = None
) -> Diagnosis:
    """Return the verdict of every kernel with its path, findings and caveats.

    Args:
        measurements: what was measured.
        roofline: the roofline of these measurements.
        weights: WEIGHTS.
        phased: what is known of the time inside the kernels; None where none was sampled.
    """
    rules = load_rules()
    usual = usual_times(measurements.kernels, weights, rules.caveats[UNEVEN])
    failed = pl.col("failed").cast(pl.Float64).alias("check.failed")
    quantities = measurements.kernels.hstack(roofline.bounds.drop("id")).with_columns(usual, failed)
    shared = of_equal_launches(quantities)
    verdicts, path = walk_tree(shared, rules.nodes)
    judged = shared.with_columns(verdicts).join(
        _decisions(path, rules.nodes), on="id", how="left", maintain_order="left"
    )
    judged = add_firing(judged.with_columns(_both_sides(), _beside()), rules.findings.values()).with_columns(verdicts)
    judged = with_demand(judged)
    judged = add_latency_limiter(judged, rules).with_columns(_limiter().alias("limiter"))
    own = judged.with_columns(quantities.get_columns())
    phases = None if phased is None else judge_phases(phased, own, roofline, rules.nodes)
    own = _with_unlike_phases(own, phases)
    checked = add_checks(own, measurements, roofline, weights).with_columns(caveats(rules.caveats).alias("caveats"))
    judged = judged.hstack(checked.select(pl.exclude(judged.columns)))
    verdict_table = judged.select("id", "verdict", "limiter", _confidence(rules).alias("confidence"), "caveats").pipe(
        conform, VERDICTS
    )
    return Diagnosis(
        verdicts=check(verdict_table, VERDICTS, table="VERDICTS"),
        path=check(path, PATH, table="PATH"),
        flips=check(nearest_flips(judged, rules), FLIPS, table="FLIPS"),
        findings=check(collect_findings(judged, rules), FINDINGS, table="FINDINGS"),
        missing=check(_missing(judged, measurements.work, rules, load_catalogue()), MISSING, table="MISSING"),
        **({} if phased is None or phases is None else {"phases": phases, "samples": phased.samples}),
    )


def _with_unlike_phases(judged: pl.DataFrame, phases: pl.DataFrame | None) -> pl.DataFrame:
    """Return the table with UNLIKE_PHASES; null for kernels without phases."""
    if phases is None:
        return judged.with_columns(pl.lit(None, pl.Float64).alias(UNLIKE_PHASES))
    return judged.join(unlike_phases(phases), on="id", how="left", maintain_order="left")


def _beside() -> pl.Expr:
    """Return the verdict on the other side of the threshold for a busy unit, where a kernel is near it; else null.

    What is said of either verdict is said of such a kernel; what limits it bounds what each finding saves.
    """
    is_busy = pl.col("verdict").is_in([Verdict.MEMORY.value, Verdict.COMPUTE.value, Verdict.BALANCED.value])
    side = pl.when(pl.col("utilisation.lead") >= 0).then(pl.lit(Verdict.MEMORY.value))
    other = (
        pl.when(is_busy)
        .then(pl.lit(Verdict.LATENCY.value))
        .when(pl.col("verdict") == Verdict.LATENCY.value)
        .then(side.otherwise(pl.lit(Verdict.COMPUTE.value)))
    )
    by_part = (
        (pl.col("check.l1_throughput_frac") < _L1_IN_FULL)
        & (pl.col("utilisation.l1_beyond") == pl.col("utilisation.busiest"))
        & (pl.max_horizontal("utilisation.memory", "utilisation.compute_side") < _BUSY_FROM)
    )
    return pl.when(pl.col("is_near_busy") | by_part.fill_null(value=False)).then(other).alias("verdict_beside")


def _limiter() -> pl.Expr:
    """Return the resource or cause behind a verdict; null where the counters do not name one.

    Where the report has no breakdown of the two totals, or lacks the counter that equals the total, the limiter is the busiest unit
    with a known utilisation, if it is about as busy as its side. Without the total as well, the roofline names it.
    """
    memory = pl.coalesce(
        _is_not_among_units(),
        "limiter.memory",
        _is_named(),
        _is_one_pipe(),
        _busiest_of(MEMORY_UNITS, "utilisation.memory_side", _from_roofline()),
    )
    pipe = pl.coalesce(
        _is_beyond_compute(),
        "limiter.compute",
        _busiest_of(COMPUTE_UNITS, "utilisation.compute_side", pl.col("dominant_precision")),
    )
    is_integer = (pipe == "fp32") & pl.col("fires.integer_multiply_adds")
    compute = pl.when(is_integer).then(pl.lit("integer_fma")).otherwise(pipe)
    lead = pl.coalesce("utilisation.lead", "utilisation.known_lead")
    return limiter_by_verdict(memory, compute, lead=lead, latency=pl.col("limiter.latency"))


def _busiest_of(units: Sequence[str], total: str, without_total: pl.Expr) -> pl.Expr:
    """Return a side's busiest known unit; null where it is far below the side's total: then an unknown unit is the busiest."""
    utilisations = {unit: pl.coalesce(f"utilisation.{unit}", *_AT_LEAST.get(unit, ())) for unit in units}
    is_near = pl.max_horizontal(utilisations.values()) >= pl.col(total) - NEAR_FRAC
    by_name = pl.when(pl.col(total).is_null() | is_near).then(largest(utilisations))
    return pl.coalesce(by_name, pl.when(pl.col(total).is_null()).then(without_total))


def _is_not_among_units() -> pl.Expr:
    """Return DRAM where its utilisation was not measured and no other unit is busy: its intensity gave the verdict; else null."""
    is_not_known = pl.col("utilisation.busiest").is_null() & (pl.col("utilisation.unmeasured_dram") > 0)
    return pl.when(is_not_known).then(pl.lit("dram"))


def _is_beyond_compute() -> pl.Expr:
    """Return the tensor cores where the paths that the kernel uses are nearer their peak than the total of the SMs; else null."""
    is_beyond = pl.col("utilisation.compute_side") > pl.col("utilisation.compute") + _SAME
    return pl.when(is_beyond).then(pl.lit(_TENSOR))


def _is_named() -> pl.Expr:
    """Return DRAM or L2, whichever utilisation equals the memory side's total, unless L1's equals it too; else null."""
    total, l1 = pl.col("utilisation.memory"), pl.col("utilisation.l1")
    is_total = (pl.col("utilisation.memory_side") - total).abs() < _SAME
    same = [
        pl.when((pl.col(f"utilisation.{unit}") - total).abs() < _SAME).then(pl.lit(unit)) for unit in ("dram", "l2")
    ]
    return pl.when(is_total & ((l1 - total).abs() >= _SAME)).then(pl.coalesce(same))


def _is_one_pipe() -> pl.Expr:
    """Return LSU where its utilisation equals the memory total, which includes that pipe's instructions; else null."""
    distance = (pl.col("utilisation.lsu") - pl.col("utilisation.memory")).abs()
    return pl.when(distance < _SAME).then(pl.lit("lsu"))


def _from_roofline() -> pl.Expr:
    return pl.when(pl.col("roofline.ridge_ratio").is_not_null()).then(pl.lit("dram"))


def _decisions(path: pl.DataFrame, nodes: Sequence[Node]) -> pl.DataFrame:
    """Return whether each kernel's path passes a node near its threshold, the one for a busy unit too, and three of its decisions.

    `is_by_known_units`, `is_by_intensity`: these decided in place of Speed of Light's totals. `is_one_pipe`: memory instructions
    keep both sides busy.
    """
    near_frac = pl.col("node").replace_strict({node.id: node.near_frac for node in nodes}, return_dtype=pl.Float64)
    is_near = pl.col("margin_frac") < near_frac
    return path.group_by("id").agg(
        is_near.any().alias("is_near"),
        (is_near & (pl.col("node") == _BUSY)).any().alias("is_near_busy"),
        pl.any_horizontal(
            _is_known("known_memory_leads"), _is_answered("main_units_known"), _is_answered("dram_busy")
        ).alias("is_by_known_units"),
        _is_answered("intensity_known").alias("is_by_intensity"),
        _is_answered("memory_instructions").alias("is_one_pipe"),
    )


def _is_answered(node: str) -> pl.Expr:
    """Return whether a kernel's path passes the node with the answer yes."""
    return ((pl.col("node") == node) & pl.col("outcome")).fill_null(value=False).any()


def _is_known(node: str) -> pl.Expr:
    """Return whether a kernel's path passes the node with an answer."""
    return ((pl.col("node") == node) & pl.col("outcome").is_not_null()).any()


def _both_sides() -> pl.Expr:
    """Return the verdict by which findings apply: memory instructions are work of the SMs too, so their findings count as well."""
    return pl.when("is_one_pipe").then(pl.lit(Verdict.BALANCED.value)).otherwise("verdict").alias("verdict")


def _confidence(rules: Rules) -> pl.Expr:
    """Return high, minus one step each for a near threshold, weakening caveats, and intensity in place of utilisation."""
    weakening = [name for name, caveat in rules.caveats.items() if caveat.weakens]
    doubts = (
        pl.col("is_near").fill_null(value=False).cast(pl.Int8)
        + pl.col("is_by_intensity").fill_null(value=False).cast(pl.Int8)
        + (pl.col("caveats").list.set_intersection(weakening).list.len() > 0).cast(pl.Int8)
    )
    return (
        pl.when((pl.col("verdict") == Verdict.UNKNOWN.value) | (doubts >= 2))
        .then(pl.lit(Confidence.LOW.value))
        .when(doubts == 1)
        .then(pl.lit(Confidence.MEDIUM.value))
        .otherwise(pl.lit(Confidence.HIGH.value))
    )


def _missing(judged: pl.DataFrame, work: pl.DataFrame, rules: Rules, catalogue: Catalogue) -> pl.DataFrame:
    """Return what a full diagnosis would use and the report lacks; nothing for launches whose collection failed.

    Quantities that cannot be collected on a device, such as a MIG slice, are left out; `caveat.shared_slice` reports that.

    Args:
        judged: one row per kernel: KERNELS, quantities, and checks.
        work: WORK.
        rules: which quantities a full diagnosis uses.
        catalogue: which ncu options collect them.
    """
    kernels = judged.lazy().filter(~pl.col("failed"))
    work = work.filter("reliable").select("id", pl.col("precision").str.starts_with(_TENSOR))
    has_work, has_tensor_work = work["id"].implode(), work.filter("precision")["id"].implode()
    is_tensor_busy = pl.col("utilisation.tensor") > LEAST_UNCOUNTED_FRAC
    families = {
        "stalls": (pl.col("limiter.stall").is_null(), pl.lit(catalogue.stalls.collect)),
        "work": (~pl.col("id").is_in(has_work), pl.lit(rules.collect_work)),
        "work.tensor": (
            is_tensor_busy & ~pl.col("id").is_in(has_tensor_work),
            _options(catalogue.quantity("work.tensor")),
        ),
    }
    absences = [
        (name, *(families.get(name) or (_is_missing(name, rules), _options(catalogue.quantity(name)))))
        for name in rules.missing_quantities
    ]
    is_shared_slice = pl.col("check.shared_slice") > 0
    parts = [
        kernels.filter(is_absent & ~is_shared_slice if name in rules.missing_of_shared_units else is_absent).select(
            "id", pl.lit(name).alias("quantity"), options.alias("collect")
        )
        for name, is_absent, options in absences
    ]
    return pl.concat(parts).pipe(conform, MISSING).sort("id", maintain_order=True).collect()


def _options(quantity: Quantity) -> pl.Expr:
    """Return the ncu options that collect a quantity on the kernel's GPU."""
    options = pl.lit(quantity.collect, pl.String)
    for capabilities, others in quantity.collect_on:
        options = pl.when(pl.col("compute_capability").is_in(capabilities)).then(pl.lit(others)).otherwise(options)
    return options


def _is_missing(quantity: str, rules: Rules) -> pl.Expr:
    """Return whether a quantity was not collected; one that is null because it divides by a measured zero was collected."""
    divisor = rules.missing_unless_zero.get(quantity)
    is_null = pl.col(quantity).is_null()
    return is_null if divisor is None else is_null & (pl.col(divisor) != 0).fill_null(value=True)


def kernel_table(
    measurements: Measurements, placed: Roofline, diagnosis: Diagnosis, weights: pl.DataFrame
) -> pl.DataFrame:
    """Return one row per workload: KERNELS with all quantities, BOUNDS, VERDICTS, WEIGHTS, and the long tables spread into columns.

    Every report has the same columns, null where it lacks the data; `ncuroof.analysis.Analysis.kernels` describes them.

    Args:
        measurements: what was measured.
        placed: the roofline of these measurements.
        diagnosis: their diagnosis.
        weights: WEIGHTS.
    """
    kernels = measurements.kernels.hstack(
        [column for part in (placed.bounds, diagnosis.verdicts) for column in part.drop("id")]
    )
    dominant = placed.points.join(
        kernels.select("id", precision="dominant_precision"), on=["id", "precision"], how="semi"
    )
    kernels = with_weights(kernels, weights)
    levels = [level.value for level in MemoryLevel]
    known = precisions()
    later = [name for name in placed.work["precision"].unique(maintain_order=True) if name not in known]
    spreads = (
        _spread(kernels["id"], placed.work, "work", "precision", known, ("flop", "frac")),
        _spread(kernels["id"], placed.bandwidth, "bandwidth", "level", levels, ("bytes_per_s", "frac")),
        _spread(kernels["id"], dominant, "intensity", "level", levels, ("intensity_flop_per_byte",)),
        _spread(
            kernels["id"],
            placed.instruction_points,
            "instruction_intensity",
            "level",
            levels,
            ("intensity_inst_per_transaction",),
        ),
        _spread(kernels["id"], placed.work, "work", "precision", later, ("flop", "frac")),
    )
    return kernels.hstack([column for spread in spreads for column in spread])


def _spread(
    ids: pl.Series, table: pl.DataFrame, prefix: str, key: str, names: Sequence[str], values: Sequence[str]
) -> Iterator[pl.Series]:
    """Yield a column per name and value of a long table, in the kernels' order; a single value is left out of the column's name."""
    # One pivot and one join for all names: with a join per name this was a fifth of the queries of a small report.
    wide = ids.to_frame().join(
        table.pivot(key, index="id", values=list(values)), on="id", how="left", maintain_order="left"
    )
    missing = {value: pl.Series([None] * len(ids), dtype=table.schema[value]) for value in values}
    is_single = len(values) == 1
    for name in names:
        for value in values:
            pivoted = name if is_single else f"{value}_{name}"
            column = wide.get_column(pivoted, default=missing[value])
            yield column.alias(f"{prefix}.{name}" if is_single else f"{prefix}.{name}.{value}")
