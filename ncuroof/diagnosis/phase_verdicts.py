"""The verdict of each phase of a kernel, by the tree that judges kernels, and its point on the roofline.

What was sampled is the phase's own. A unit that was not sampled is inferred: used in proportion to the instructions issued, and
at most as much as on average, so that a phase like the whole kernel gets the kernel's values. The totals of both sides are the
busiest of their units; where the kernel's total is that of a unit without a name, or one that was not sampled, it is inferred in
the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from ncuroof.diagnosis.findings import COMPUTE_UNITS, MEMORY_UNITS
from ncuroof.diagnosis.rules import Node
from ncuroof.diagnosis.tree import limiter_by_verdict, walk_tree
from ncuroof.enums import TENSOR_PREFIX, MemoryLevel, Precision, Verdict
from ncuroof.metrics import CounterTable, add_quantities, largest, load_catalogue
from ncuroof.phases import Phased
from ncuroof.roofline import Roofline
from ncuroof.tables import PHASES, SAMPLED_UNITS, conform

UNLIKE_PHASES = "check.unlike_phases_frac"
"""Share of a kernel's time in phases that something else limits than most of it."""

_PREFIX, _KERNEL = "utilisation.", "kernel."
_MEMORY_LIMITERS = ("l1", "shared", "lsu", "l2", "dram")
_SAMPLED_OF_SMS = ("issue", "tensor", "fp32", "fp64", "alu", "xu", "uniform")
_TOTALS = {"memory": (MEMORY_UNITS, MEMORY_UNITS), "compute": (COMPUTE_UNITS, _SAMPLED_OF_SMS)}
"""By side: its units with a name, and those of them that can be sampled."""

_EXPLAINED = 0.02
"""Largest difference of a kernel's total from its busiest sampled unit, of which the total then is."""

_BUSY = 0.6
"""Utilisation from which the tree calls a unit busy."""

_SAME_LEVEL = 1.25
"""Largest ratio of what was counted to what was sampled of the same stage of a unit (a choice; recorded: 1.05 for most)."""

_COMBINED = (
    "memory_side", "compute_side", "busiest", "busiest_known", "known_lead", "least_of_main_units", "lead", "gap",
    "beside_operands", "beside_memory_instructions",
)  # fmt: skip
"""Quantities of the tree that follow from the units: computed again for each phase."""


def judge_phases(phased: Phased, judged: pl.DataFrame, placed: Roofline, nodes: Sequence[Node]) -> pl.DataFrame:
    """Return PHASES with verdict, limiter and point.

    Args:
        phased: the phases.
        judged: one row per kernel with KERNELS, quantities, bounds, `verdict` and `limiter`.
        placed: the roofline.
        nodes: the tree.
    """
    if phased.phases.is_empty():
        return phased.phases
    own = [name for name in phased.phases.columns if name.startswith(_PREFIX)]
    kernels = judged.rename({name: f"{_KERNEL}{name}" for name in (*own, "verdict", "limiter", "duration_ns")})
    rows = phased.phases.drop("verdict", "limiter", "inferred")
    for table in (kernels, _rough(phased.samples)):
        rows = rows.join(table, on="id", how="left", maintain_order="left")
    rows = _with_quantities(_with_units(rows))
    verdicts, _ = walk_tree(rows, nodes)
    rows = _with_trusted(rows.with_columns(verdicts))
    rows = rows.with_columns(_busiest(MEMORY_UNITS).alias("memory_unit"), _busiest(COMPUTE_UNITS).alias("compute_unit"))
    rows = rows.with_columns(_limiter().alias("limiter"))
    is_all = pl.len().over("id") == 1  # then it is the kernel, whose verdict can rest on more
    rows = rows.with_columns(
        pl.when(is_all).then(f"{_KERNEL}{name}").otherwise(name).alias(name) for name in ("verdict", "limiter")
    )
    points = _points(rows, placed)
    sampled = phased.phases.select(own)
    return rows.drop(own).hstack(sampled).drop(points.columns).hstack(points).pipe(conform, PHASES)


def _mean(column: str) -> pl.Expr:
    """Return the mean of a column over the phases of each kernel, weighted by time; null where no phase has it."""
    known = pl.col(column).is_not_null()
    weight = pl.when(known).then("duration_ns")
    total = (pl.col(column) * pl.col("duration_ns")).sum().over("id")
    return pl.when(known.any().over("id")).then(total / weight.sum().over("id"))


def _relative(column: str) -> pl.Expr:
    """Return a column over its mean over the kernel; null where that is zero or not known."""
    mean = _mean(column)
    return pl.when(mean > 0).then(pl.col(column) / mean)


def _with_units(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the phases with a value for every unit whose utilisation is known of the kernel, and with `inferred`."""
    activity = pl.coalesce(*map(_relative, (f"{_PREFIX}issue", f"{_PREFIX}compute", "sm_active_frac")), 1.0)
    rows = rows.with_columns(activity.clip(upper_bound=1.0).alias("activity"))
    units = [unit for unit in dict.fromkeys((*MEMORY_UNITS, *COMPUTE_UNITS, *SAMPLED_UNITS)) if unit != "compute"]
    inferred = {unit: (pl.col(f"{_kernel_prefix(unit)}{unit}") * pl.col("activity")) for unit in units}
    was_sampled = {unit: pl.col(f"{_PREFIX}{unit}").is_not_null().any().over("id") for unit in SAMPLED_UNITS}
    listed = [
        pl.when(~was_sampled[unit] if unit in was_sampled else pl.lit(value=True)).then(
            pl.struct(pl.lit(unit).alias("unit"), inferred[unit].alias("frac"))
        )
        for unit in units
    ]
    others = [name for name in rows.columns if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in units]
    known = pl.concat_list(listed).list.drop_nulls()
    return rows.with_columns(
        known.list.filter(pl.element().struct.field("frac").is_not_null()).alias("inferred"),
        *(
            pl.coalesce(f"{_PREFIX}{unit}", expression).alias(f"{_PREFIX}{unit}")
            if unit in SAMPLED_UNITS
            else expression.alias(f"{_PREFIX}{unit}")
            for unit, expression in inferred.items()
        ),
        *(pl.col(name) * pl.col("activity") for name in _scaled(others)),
    )


def _kernel_prefix(unit: str) -> str:
    return f"{_KERNEL}{_PREFIX}" if unit in SAMPLED_UNITS else _PREFIX


def _scaled(names: Iterable[str]) -> list[str]:
    """Return the quantities of the kernel that are utilisations of other parts, of the names given."""
    kept = {f"{_PREFIX}{name}" for name in (*_COMBINED, "memory", "compute", "unmeasured_dram", "most_possible")}
    return [name for name in names if name not in kept]


def _with_quantities(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the phases with both totals, and what the tree asks for computed from these."""
    totals = {side: _total(side, *units) for side, units in _TOTALS.items()}
    totals["compute"] = pl.coalesce(f"{_PREFIX}compute", totals["compute"])
    rows = rows.with_columns(total.alias(f"{_PREFIX}{side}") for side, total in totals.items())
    chip = rows.select(
        (pl.col("compute_capability") // 10).alias("device__attribute_compute_capability_major"),
        (pl.col("compute_capability") % 10).alias("device__attribute_compute_capability_minor"),
    )
    names = [f"{_PREFIX}{name}" for name in _COMBINED]
    table = CounterTable(chip)
    table.add(rows.drop(names, strict=False).get_columns())
    catalogue = load_catalogue()
    combined = replace(catalogue, quantities=tuple(each for each in catalogue.quantities if each.name in set(names)))
    add_quantities(table, combined)
    return table.frame.drop(chip.columns)


def _total(side: str, units: Sequence[str], sampled: Sequence[str]) -> pl.Expr:
    """Return a side's total in a phase; null where the kernel's is not known."""
    whole = pl.col(f"{_KERNEL}{_PREFIX}compute" if side == "compute" else f"{_PREFIX}memory")
    of_kernel = {unit: pl.col(f"{_kernel_prefix(unit)}{unit}") for unit in units}
    # L2's own throughput can be above the total, which leaves some of its stages out.
    parts = [
        pl.col(f"{_PREFIX}{unit}") * (whole / pl.when(value > 0).then(value)).clip(upper_bound=1.0)
        for unit, value in of_kernel.items()
    ]
    busiest_sampled = pl.max_horizontal(
        pl.when(pl.col(f"{_PREFIX}{unit}").is_not_null()).then(pl.col(f"{_KERNEL}{_PREFIX}{unit}")) for unit in sampled
    )
    inferred = pl.when((whole - busiest_sampled).fill_null(1.0) > _EXPLAINED).then(whole * pl.col("activity"))
    return pl.when(whole.is_not_null()).then(pl.max_horizontal(*parts, inferred))


def _limiter() -> pl.Expr:
    """Return what limits a phase; null where the series do not say."""
    memory = pl.col("memory_unit")
    of_kernel = pl.col(f"{_KERNEL}limiter")
    # L1's data stage serves shared memory and LSU too, and only the kernel's counters tell these apart.
    is_finer = (memory == "l1") & of_kernel.is_in(["shared", "lsu"])
    is_same_side = (pl.col(f"{_KERNEL}verdict") == pl.col("verdict")) & ~of_kernel.is_in(_MEMORY_LIMITERS)
    memory = pl.when(is_finer | is_same_side).then(of_kernel).otherwise(memory)
    compute = pl.col("compute_unit")
    is_integer = (compute == "fp32") & (of_kernel == "integer_fma")
    compute = pl.when(is_integer).then(of_kernel).otherwise(compute)
    latency = (
        pl.when(pl.col("kind") == "tail")
        .then(pl.lit("tail"))
        .when(pl.col("kind") == "steady")
        .then(pl.coalesce("stall", pl.when(pl.col(f"{_KERNEL}verdict") == Verdict.LATENCY.value).then(of_kernel)))
    )
    lead = pl.coalesce(f"{_PREFIX}lead", f"{_PREFIX}known_lead")
    return limiter_by_verdict(memory, compute, lead=lead, latency=latency)


def _with_trusted(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the phases with `sampled.UNIT` and `exact.UNIT`: utilisations that were sampled, and those of that very stage."""
    units = dict.fromkeys((*MEMORY_UNITS, *COMPUTE_UNITS))
    names = rows["inferred"].list.eval(pl.element().struct.field("unit"))
    rows = rows.with_columns(names.alias("inferred_units")).with_columns(
        pl.when(~pl.col("inferred_units").list.contains(unit)).then(f"{_PREFIX}{unit}").alias(f"sampled.{unit}")
        for unit in units
    )
    return rows.with_columns(
        pl.when(~pl.col("rough").list.contains(unit)).then(f"sampled.{unit}").alias(f"exact.{unit}") for unit in units
    )


def _busiest(units: Sequence[str]) -> pl.Expr:
    """Return the busiest of some units.

    A busy one whose series is that of its counter comes first, then one that was sampled, then those that are inferred; but what
    limits the whole kernel stays its limiter where it is the busiest of all.
    """
    every, sampled, exact = (
        {unit: pl.col(f"{prefix}{unit}") for unit in units} for prefix in (_PREFIX, "sampled.", "exact.")
    )
    of_all = largest(every)
    return pl.coalesce(
        pl.when((of_all == pl.col(f"{_KERNEL}limiter")).fill_null(value=False)).then(of_all),
        *(pl.when(pl.max_horizontal(some.values()) >= _BUSY).then(largest(some)) for some in (exact, sampled)),
        of_all,
    )


def _rough(samples: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, the units whose series is at another level than the kernel's counter: of another stage of the unit."""
    levels = samples.select("id", "levels").explode("levels").unnest("levels")
    ratio = pl.col("counted_frac") / pl.when(pl.col("sampled_frac") > 0).then("sampled_frac")
    is_far = ~ratio.is_between(1 / _SAME_LEVEL, _SAME_LEVEL).fill_null(value=True)
    return levels.group_by("id").agg(pl.col("course").filter(is_far).alias("rough"))


def _points(rows: pl.DataFrame, placed: Roofline) -> pl.DataFrame:
    """Return each phase's point on DRAM's roofline: work and bytes of the kernel, shared out as the units were used.

    Null where the unit of the work or DRAM was not sampled, and where DRAM moved nothing.
    """
    precision = pl.col("dominant_precision")
    work = placed.work.filter("reliable").select(
        "id", "precision", work_per_s="flop_per_s", work_peak_per_s="peak_flop_per_s"
    )
    moved = placed.bandwidth.filter(pl.col("level") == MemoryLevel.DRAM.value).select(
        "id", moved_per_s="bytes_per_s", moved_peak_per_s="peak_bytes_per_s"
    )
    known = (
        rows.select("id", precision.alias("precision"), work_course=_work_course(), dram_course=_relative("sampled.dram"))
        .join(work, on=["id", "precision"], how="left", maintain_order="left")
        .join(moved, on="id", how="left", maintain_order="left")
    )  # fmt: skip
    rate, traffic = pl.col("work_per_s") * pl.col("work_course"), pl.col("moved_per_s") * pl.col("dram_course")
    intensity = rate / pl.when(traffic > 0).then(traffic)
    roof = pl.min_horizontal(pl.col("work_peak_per_s"), intensity * pl.col("moved_peak_per_s"))
    is_known = intensity.is_not_null() & (rate > 0)
    values = {"precision": pl.col("precision"), "intensity_flop_per_byte": intensity, "flop_per_s": rate,
              "roof_frac": rate / pl.when(roof > 0).then(roof)}  # fmt: skip
    return known.select(pl.when(is_known).then(value).alias(name) for name, value in values.items())


def _work_course() -> pl.Expr:
    """Return the use of the unit that does the kernel's work, over its mean; null where it was not sampled."""
    precision = pl.col("dominant_precision")
    return (
        pl.when(precision.str.starts_with(TENSOR_PREFIX))
        .then(_relative("sampled.tensor"))
        .when(precision == Precision.FP32.value)
        .then(_relative("sampled.fp32"))
        .when(precision == Precision.FP64.value)
        .then(_relative("sampled.fp64"))
    )


def unlike_phases(phases: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel with phases, `UNLIKE_PHASES`: 0 where all of its time has one verdict and limiter."""
    # The two share the work of a kernel that streams from DRAM.
    limiter = pl.col("limiter").replace("l2", "dram")
    by_limit = phases.group_by("id", "verdict", limiter).agg(pl.col("duration_ns").sum().alias("time"))
    share = 1 - pl.col("time").max() / pl.col("time").sum()
    return by_limit.group_by("id").agg(share.alias(UNLIKE_PHASES))
