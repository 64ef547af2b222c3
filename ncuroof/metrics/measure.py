"""From raw reports to the tables of canonical quantities: KERNELS, WORK, BANDWIDTH, DEVICES and LINES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.collect.counts import Counts
from ncuroof.errors import UnitError
from ncuroof.ingest import CounterSelection, RawReport
from ncuroof.metrics.catalogue import BREAKDOWNS, DEVICE_NAME, Catalogue, load_catalogue
from ncuroof.metrics.chart_values import with_chart_values
from ncuroof.metrics.code_values import BY_CODE, generator_shares, values_by_code
from ncuroof.metrics.families import families_by_lines, families_of
from ncuroof.metrics.launch_order import gaps_of
from ncuroof.metrics.lines import measure_lines
from ncuroof.metrics.names import range_names, short_name
from ncuroof.metrics.quantities import DEFINITION_PREFIX, CounterTable, add_quantities, largest, top_stall
from ncuroof.metrics.sheet_bandwidths import SHEET_BANDWIDTH, SheetBandwidth, sheet_bandwidths
from ncuroof.metrics.surroundings import add_surroundings
from ncuroof.metrics.tensor import tensor_split_error
from ncuroof.metrics.units import scale
from ncuroof.metrics.work import measure_bandwidth, measure_work
from ncuroof.tables import BANDWIDTH, DEVICES, KERNELS, LINES, WORK, check, finite

SENDS = 0.75
"""access.l2_input_share from which the path from the SMs to L2 is the limit, and not L1: the threshold of the rules, too."""

LEAST_STALL_FRAC = 0.3
"""Share of the warps' time from which a stall reason says what limits a kernel: the threshold of `stall_mio_throttle`, too. In the
seven profiled launches that use shared memory and wait this long for the MIO queue while L1 is busy, 89 to 99 % of L1's wavefronts
were shared memory's."""

NEAR_FRAC = 0.1
"""How far the busiest known unit may be below a side's total and still be its limiter; two sides this close are balanced, too."""

_OF_A_GRID = ("launch__grid_", "launch__block_")
"""Prefixes of counters kept for kernels only: for a CUDA graph, which has many grids, ncu writes 1 x 1 x 1 blocks of 32 threads."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What was measured, in canonical quantities.

    Attributes:
        kernels: KERNELS with a column per quantity.
        work: WORK.
        bandwidth: BANDWIDTH.
        devices: DEVICES.
        lines: LINES.
        dropped: a message for each counter left out because its unit is unknown; it names both.
    """

    kernels: pl.DataFrame
    work: pl.DataFrame
    bandwidth: pl.DataFrame
    devices: pl.DataFrame
    lines: pl.DataFrame
    dropped: tuple[str, ...] = ()


def selection(*, lines: bool = True) -> CounterSelection:
    """Return the counters that `measure` needs from a report; without `lines`, those for LINES are left out."""
    catalogue = load_catalogue()
    return CounterSelection(
        names=catalogue.counters(),
        prefixes=(catalogue.tensor.counter_prefix,),
        lists=frozenset(BREAKDOWNS.values()),
        texts=frozenset({DEVICE_NAME}),
        instances={catalogue.tensor.opcodes.counter: catalogue.tensor.opcodes.prefixes},
        by_instruction=frozenset().union(*(each.counters() for each in catalogue.by_line.values() if lines)),
        waits=_waits(catalogue),
    )


def measure(
    reports: Sequence[RawReport],
    catalogue: Catalogue | None = None,
    sheet_bandwidth: SheetBandwidth | None = None,
    *,
    counts: Sequence[Counts | None] = (),
) -> Measurements:
    """Return the canonical quantities of all workloads of `reports`.

    A quantity whose counters were not collected is null; a measured zero stays zero.

    Args:
        reports: as read by `ncuroof.ingest`.
        catalogue: None for that of profiles/metrics.toml.
        sheet_bandwidth: looks up the memory bandwidth on a GPU's data sheet; None if there are no data sheets.
        counts: per report, the counts of its counting run; None, or left out at the end, for reports without.
    """
    catalogue = catalogue or load_catalogue()
    dropped: list[str] = []
    table = CounterTable(pl.concat([_in_base_units(report, dropped) for report in reports], how="diagonal"))
    by_code = [values_by_code(report, _waits(catalogue)) for report in reports]
    table.add(pl.concat(by_code).get_columns())
    workloads = _workloads(reports)
    table.add([sheet_bandwidths(table, workloads, sheet_bandwidth)])
    add_quantities(table, catalogue)
    devices, device_by_row = _devices(workloads, table)
    kernels = workloads.select(
        "id",
        "source",
        device_by_row,
        pl.col("demangled_name").alias("name"),
        short_name(pl.col("function_name"), pl.col("demangled_name")).alias("short_name"),
        families_of(workloads["demangled_name"]),
        "workload",
        ((pl.col("n_collected") > 0) & (pl.col("n_collected") == pl.col("n_not_finite"))).alias("failed"),
        "process_id",
        "process_name",
        range_names(pl.col("nvtx")),
        pl.col("nvtx").alias("nvtx_recorded"),
        "clock_control",
        "is_damaged_report",
        "is_printed",
        pl.col("is_debug_build").cast(pl.Float64).alias("check.debug_build"),
    ).hstack(
        table.frame.lazy()
        .select(
            *_identity(table),
            *_busiest_counters(workloads, table, catalogue),
            *top_stall(catalogue.stalls),
            *(pl.col(quantity.name) for quantity in catalogue.quantities),
            *BY_CODE,
            SHEET_BANDWIDTH,
            *(
                pl.col(f"{DEFINITION_PREFIX}{quantity.name}")
                for quantity in catalogue.quantities
                if quantity.is_defined
            ),
            tensor_split_error(table, catalogue.tensor).alias("check.tensor_split_frac"),
            *(pl.col(f"stalls.{reason}") for reason in catalogue.stalls.reasons),
        )
        .collect()
    )
    lines = measure_lines(reports, catalogue.by_line)
    kernels = kernels.join(generator_shares(lines), on="id", how="left", maintain_order="left")
    is_non_kernel = (pl.col("workload") != "kernel").cast(pl.Float64).alias("check.non_kernel")
    kernels = kernels.with_columns(families_by_lines(kernels, lines), is_non_kernel)
    kernels = _with_limiters(kernels, catalogue)
    work, bandwidth = with_chart_values(
        measure_work(table, catalogue, workloads),
        measure_bandwidth(table, catalogue),
        table,
        reports,
        catalogue,
    )
    kernels = finite(add_surroundings(kernels, work, catalogue, gaps_of(reports, counts)))
    return Measurements(
        kernels=check(kernels.select(*KERNELS, pl.exclude(*KERNELS)), KERNELS, table="KERNELS"),
        work=check(work, WORK, table="WORK"),
        bandwidth=check(bandwidth, BANDWIDTH, table="BANDWIDTH"),
        devices=check(devices, DEVICES, table="DEVICES"),
        lines=check(lines, LINES, table="LINES"),
        dropped=tuple(dropped),
    )


def _waits(catalogue: Catalogue) -> frozenset[str]:
    """Return the counters of samples that found a warp waiting for data (long scoreboard)."""
    return frozenset(catalogue.stalls.of_samples("long_scoreboard"))


def _in_base_units(report: RawReport, dropped: list[str]) -> pl.DataFrame:
    """Return the report's counters in base units; those of unknown unit are left out, with a message in `dropped`."""
    columns = []
    for name in report.counters.columns:
        try:
            factor = scale(report.units.get(name, ""), metric=name)
        except UnitError as error:
            dropped.append(str(error))
            continue
        value = pl.col(name) * factor if factor != 1.0 else pl.col(name)
        columns.append(
            pl.when(pl.col("workload") == "kernel").then(value).alias(name) if name.startswith(_OF_A_GRID) else value
        )
    if not columns:
        return pl.DataFrame({"device__": [None] * report.workloads.height}, schema={"device__": pl.Float64})
    return report.counters.with_columns(report.workloads["workload"]).select(columns)


def _workloads(reports: Sequence[RawReport]) -> pl.DataFrame:
    """Return the workloads of all reports with their processes and texts; `id` numbers them over all reports."""
    parts = []
    for index, report in enumerate(reports):
        parts.append(
            report.workloads.hstack(report.processes)
            .hstack(report.texts)
            .with_columns(
                pl.lit(index, pl.UInt32).alias("source"),
                pl.lit(report.session.clock_control, pl.String).alias("clock_control"),
                pl.lit(report.damage is not None).alias("is_damaged_report"),
                pl.lit(report.is_printed).alias("is_printed"),
                pl.Series("is_debug_build", report.debug_builds or [None] * report.workloads.height, pl.Boolean),
            )
        )
    return pl.concat(parts, how="diagonal").with_row_index("id")


def _identity(table: CounterTable) -> list[pl.Expr]:
    """Return grid, block, stream, context and compute capability; null where the report does not say.

    A launch that failed to profile may have extents of 0, which no launch has.
    """

    def integer(name: str) -> pl.Expr:
        counter = table.counter(name)
        return (pl.lit(None) if counter is None else counter).cast(pl.Int64, strict=False)

    def extents(what: str) -> pl.Expr:
        axes = [integer(f"launch__{what}_dim_{axis}") for axis in "xyz"]
        return (
            pl.when(pl.all_horizontal(*((axis > 0).fill_null(value=False) for axis in axes)))
            .then(pl.concat_list(axes))
            .alias(what)
        )

    major, minor = (integer(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return [
        extents("grid"),
        extents("block"),
        integer("launch__stream_id").alias("stream"),
        integer("launch__context_id").alias("context"),
        (10 * major + minor).cast(pl.Int32, strict=False).alias("compute_capability"),
    ]


def _devices(workloads: pl.DataFrame, table: CounterTable) -> tuple[pl.DataFrame, pl.Series]:
    """Return DEVICES, and the `device` that each workload ran on."""

    def integer(quantity: str) -> pl.Series:
        column: pl.Series = table.frame[quantity].cast(pl.Int64, strict=False)
        return column

    identity = table.frame.with_columns(_identity(table)[-1])["compute_capability"]
    number = table.counter("launch__device_id")
    names = workloads[DEVICE_NAME] if DEVICE_NAME in workloads.columns else pl.Series([None] * workloads.height)
    rows = pl.DataFrame(
        {
            "name": names.cast(pl.String),
            "compute_capability": identity,
            "sm_count": integer("device.total_sm_count"),
            "memory_bus_bits": integer("device.memory_bus_bits"),
            "dram_bytes": integer("device.dram_bytes"),
        }
    )
    if number is not None:
        alike = rows.columns
        only = pl.when(pl.col("number").min() == pl.col("number").max()).then(pl.col("number").max()).over(alike)
        rows = rows.hstack(table.frame.select(number.alias("number")))
        rows = rows.with_columns(pl.col("number").fill_null(only))  # failed launches have no device id
    distinct = rows.unique(maintain_order=True).with_row_index("device")
    device_by_row = rows.join(distinct, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")
    return distinct.select(*DEVICES), device_by_row["device"]


def _busiest_counters(workloads: pl.DataFrame, table: CounterTable, catalogue: Catalogue) -> list[pl.Expr]:
    """Return, for each side, the busiest counter of Speed of Light's breakdown that belongs to a resource.

    It is null where that is far below the side's total: the busiest counter is then one that the report lacks.
    """
    columns = []
    for side, listing in BREAKDOWNS.items():
        busiest = pl.lit(None, pl.String)
        texts = workloads[listing] if listing in workloads.columns else pl.Series([], dtype=pl.String)
        for text in texts.drop_nulls().unique(maintain_order=True):
            candidates = {
                name: counter
                for name in text.split(",")
                if (counter := table.counter(name)) is not None
                and _resource(name, catalogue.resources[side]) is not None
            }
            most = pl.max_horizontal(*candidates.values(), pl.lit(None, pl.Float64))
            is_far = (most < pl.col(f"utilisation.{side}") - NEAR_FRAC).fill_null(value=False)
            named = pl.when(~is_far).then(largest(candidates))
            busiest = pl.when(pl.lit(texts == text)).then(named).otherwise(busiest)
        columns.append(busiest.alias(f"limiter.{side}_counter"))
    return columns


def _resource(name: str, resource_by_prefix: Mapping[str, str]) -> str | None:
    """Return the resource that a counter belongs to: that of the longest matching prefix; None if none matches."""
    matching = [prefix for prefix in resource_by_prefix if name.startswith(prefix)]
    return resource_by_prefix[max(matching, key=len)] if matching else None


def _with_limiters(kernels: pl.DataFrame, catalogue: Catalogue) -> pl.DataFrame:
    """Add `limiter.<side>`: the resource of each side's busiest counter, with corrections on the memory side.

    DRAM: it is busier than all Speed of Light units, which do not include it on chips that share the CPU's memory. Shared memory:
    it makes most of a busiest L1 data stage, or was not counted apart from L1 and warps wait mostly for its queue. L1: a part of it
    without a counter is saturated, and what SMs send to L2 is not the limit. L2: in place of system memory on chips that share the
    CPU's memory, where all fills of L2 come from there.
    """
    columns = []
    for side in BREAKDOWNS:
        busiest = kernels[f"limiter.{side}_counter"]
        resource_by_counter = {
            name: _resource(name, catalogue.resources[side]) for name in busiest.drop_nulls().unique()
        }
        columns.append(busiest.replace_strict(resource_by_counter, return_dtype=pl.String).alias(f"limiter.{side}"))
    kernels = kernels.with_columns(columns)
    is_l1 = (pl.col("utilisation.l1_beyond") > pl.col("utilisation.memory")) & (
        pl.col("access.l2_input_share") >= SENDS
    ).fill_null(value=False).not_()
    most, dram = pl.col("utilisation.memory_side"), pl.col("utilisation.dram")
    is_dram = (most > pl.col("utilisation.memory")) & (dram >= most)
    is_fill = (pl.col("limiter.memory") == "system_memory") & (pl.col("device.shares_memory") > 0)
    is_data_stage = pl.col("limiter.memory_counter").str.contains("l1tex__data_(bank|pipe)")
    return kernels.with_columns(
        pl.when(is_dram)
        .then(pl.lit("dram"))
        .when(is_data_stage & (pl.col("access.shared_wavefront_share") > 0.5))
        .then(pl.lit("shared"))
        .when((is_l1 | (pl.col("limiter.memory") == "l1")) & _waits_for_shared_memory())
        .then(pl.lit("shared"))
        .when(is_l1)
        .then(pl.lit("l1"))
        .otherwise(pl.when(is_fill).then(pl.lit("l2")).otherwise("limiter.memory"))
        .alias("limiter.memory")
    )


def _waits_for_shared_memory() -> pl.Expr:
    """Return whether warps wait mostly for the MIO queue because of shared memory, whose share of the L1 data stage is unknown.

    Special functions use the queue as well: False if the kernel has no shared memory, or the XU is busy enough to fill the queue.
    """
    is_mio = (pl.col("limiter.stall") == "mio_throttle") & (pl.col("limiter.stall_frac") >= LEAST_STALL_FRAC)
    is_xu = (pl.col("scheduler.xu_busy_frac") >= LEAST_STALL_FRAC).fill_null(value=False)
    return (is_mio & (pl.col("access.unsplit_shared_bytes") >= 1) & ~is_xu).fill_null(value=False)
