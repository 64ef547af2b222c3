"""From raw reports to the tables of canonical quantities: KERNELS, WORK, BANDWIDTH, DEVICES and LINES.

Counters are converted to base units: bytes, nanoseconds, hertz, flop, counts, and shares (0..1) in place of percent. Some GPUs have
no DRAM counters, so the bandwidth of their data sheets is a column, too.

Source of units: the unit strings of NVIDIA's `ncu_report` module and of `ncu --print-units base|auto`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.errors import UnitError
from ncuroof.ingest import CounterSelection, RawReport
from ncuroof.metrics.catalogue import BREAKDOWNS, DEVICE_NAME, Catalogue, load_catalogue
from ncuroof.metrics.chart_values import with_chart_values
from ncuroof.metrics.code_quantities import BY_CODE, EXECUTED_BY_OPCODE, sampled_waits, shares_by_lines, values_by_code
from ncuroof.metrics.families import families_by_lines, families_of
from ncuroof.metrics.launch_order import gaps_of
from ncuroof.metrics.limiters import busiest_counters, with_limiters
from ncuroof.metrics.lines import measure_lines
from ncuroof.metrics.names import short_name
from ncuroof.metrics.neighbours import add_neighbours
from ncuroof.metrics.quantities import DEFINITION_PREFIX, CounterTable, add_quantities, top_stall
from ncuroof.metrics.tensor import PATHS, path_utilisation, tensor_split_error
from ncuroof.metrics.torch_ranges import range_names
from ncuroof.metrics.work import measure_bandwidth, measure_work
from ncuroof.sidecars.counts import Counts
from ncuroof.tables import BANDWIDTH, DEVICES, KERNELS, LINES, WORK, check, finite

_OF_A_GRID = ("launch__grid_", "launch__block_")
"""Prefixes of counters kept for kernels only: for a CUDA graph, which has many grids, ncu writes 1 x 1 x 1 blocks of 32 threads."""

_PERCENT_NAME = re.compile(r"\.pct\b|\.pct_of_|_pct$|_throughput_pct")
_SI = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_COUNTED = (
    "block", "branches", "cluster", "cycle", "inst", "pass", "register", "request", "sample", "sector", "sectors", "SM",
    "thread", "warp", "wavefront",
)  # fmt: skip

SHEET_BANDWIDTH = "device.sheet_dram_bytes_per_s"

SheetBandwidth = Callable[[str | None, int | None, Mapping[str, int | None]], float | None]
"""Returns the memory bandwidth of a GPU in byte/s, or None.

Its arguments are the device's name, compute capability (90 for 9.0), and `sm_count`, `dram_bytes` and `memory_bus_bits`."""

_ATTRIBUTES = {
    "sm_count": "multiprocessor_count",
    "dram_bytes": "total_memory",
    "memory_bus_bits": "global_memory_bus_width",
}


def scale(unit: str, *, metric: str) -> float:
    """Return the factor that converts a value in `unit` to base units.

    NVIDIA's module looks units up by chip and returns none for a chip that it does not know. Percentages are therefore recognised
    by the counter's name as well, and a value without a unit is already in base units.

    Raises:
        UnitError: the unit is unknown; a guessed scale could be wrong by a factor of a thousand.
    """
    if _PERCENT_NAME.search(metric):
        unit = "%"
    try:
        return _SCALE_BY_UNIT[unit]
    except KeyError:
        raise UnitError(
            f"unit {unit!r} of {metric} is not known",
            hint="please report this unit and the Nsight Compute version that wrote it",
        ) from None


_SCALE_BY_UNIT: dict[str, float] = {
    "": 1.0,
    "%": 0.01,
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
    "hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9,
    "1/s": 1.0,
    "byte/sector": 1.0, "sector/request": 1.0,
    "inst/warp": 1.0, "register/thread": 1.0, "byte/block": 1.0, "%/register": 0.01, "%/byte": 0.01,
    **{f"{prefix}byte{per}": scale for prefix, scale in _SI.items() for per in ("", "/s", "/cycle", "/block")},
    **dict.fromkeys(_COUNTED, 1.0),
    **{f"{what}/{per}": 1.0 for what in _COUNTED for per in ("s", "cycle")},
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What was measured, in canonical quantities.

    Attributes:
        kernels: KERNELS with a column per quantity.
        work: WORK.
        bandwidth: BANDWIDTH.
        devices: DEVICES.
        lines: LINES.
        dropped: a message for each counter left out because its unit is unknown, and for each report with impossible values.
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
        instances={catalogue.tensor.opcodes.counter: catalogue.tensor.opcodes.prefixes, EXECUTED_BY_OPCODE: ("",)},
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
    table.add([sheet_bandwidths(table, workloads, sheet_bandwidth), path_utilisation(table, catalogue.tensor)])
    add_quantities(table, catalogue)
    table.add(sampled_waits(table))
    devices, device_by_row = _devices(workloads, table)
    lines = measure_lines(reports, catalogue.by_line)
    kernels = _kernels(workloads, device_by_row, table, catalogue)
    kernels = kernels.join(shares_by_lines(lines), on="id", how="left", maintain_order="left")
    is_non_kernel = (pl.col("workload") != "kernel").cast(pl.Float64).alias("check.non_kernel")
    kernels = kernels.with_columns(families_by_lines(kernels, lines), is_non_kernel)
    kernels = with_limiters(kernels, catalogue)
    work, bandwidth = with_chart_values(
        measure_work(table, catalogue, workloads),
        measure_bandwidth(table, catalogue),
        table,
        reports,
        catalogue,
    )
    kernels = finite(add_neighbours(kernels, work, catalogue, gaps_of(reports, counts)))
    return Measurements(
        kernels=check(kernels.select(*KERNELS, pl.exclude(*KERNELS)), KERNELS, table="KERNELS"),
        work=check(work, WORK, table="WORK"),
        bandwidth=check(bandwidth, BANDWIDTH, table="BANDWIDTH"),
        devices=check(devices, DEVICES, table="DEVICES"),
        lines=check(lines, LINES, table="LINES"),
        dropped=tuple(dropped),
    )


def _kernels(
    workloads: pl.DataFrame, device_by_row: pl.Series, table: CounterTable, catalogue: Catalogue
) -> pl.DataFrame:
    """Return who and what each workload is, and what its counters and machine code say: KERNELS but for the limiters."""
    described = workloads.select(
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
    )
    return described.hstack(
        table.frame.lazy()
        .select(
            *_identity(table),
            *busiest_counters(workloads, table, catalogue),
            *top_stall(catalogue.stalls),
            *(pl.col(quantity.name) for quantity in catalogue.quantities),
            *BY_CODE,
            SHEET_BANDWIDTH,
            PATHS,
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


def _waits(catalogue: Catalogue) -> frozenset[str]:
    """Return the counters of samples that found a warp waiting for data (long scoreboard)."""
    return frozenset(catalogue.stalls.of_samples("long_scoreboard"))


def _in_base_units(report: RawReport, dropped: list[str]) -> pl.DataFrame:
    """Return the report's counters in base units; those of unknown unit are left out, with a message in `dropped`.

    So are values that cannot be: what is counted, timed or shared out is not negative.
    """
    columns = []
    impossible: dict[str, float] = {}
    for name in report.counters.columns:
        try:
            factor = scale(report.units.get(name, ""), metric=name)
        except UnitError as error:
            dropped.append(f"{error}; the counter is left out")
            continue
        value = pl.col(name) * factor if factor != 1.0 else pl.col(name)
        least = report.counters[name].min()
        if isinstance(least, float) and least < 0:
            impossible[name] = least
            value = pl.when(value >= 0).then(value).alias(name)
        columns.append(
            pl.when(pl.col("workload") == "kernel").then(value).alias(name) if name.startswith(_OF_A_GRID) else value
        )
    if impossible:
        first, least = next(iter(impossible.items()))
        holds = "a counter holds" if len(impossible) == 1 else f"{len(impossible)} counters hold"
        dropped.append(f"{report.file}: {holds} impossible values ({first} = {least:g}), which are not used")
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
                report.code["is_debug_build"],
            )
        )
    return pl.concat(parts, how="diagonal").with_row_index("id")


def _identity(table: CounterTable) -> list[pl.Expr]:
    """Return grid, block, stream, context and compute capability; null where the report does not say.

    A launch that failed to profile may have extents of 0, which no launch has.
    """

    def extents(what: str) -> pl.Expr:
        axes = [_integer(table, f"launch__{what}_dim_{axis}") for axis in "xyz"]
        return (
            pl.when(pl.all_horizontal(*((axis > 0).fill_null(value=False) for axis in axes)))
            .then(pl.concat_list(axes))
            .alias(what)
        )

    return [
        extents("grid"),
        extents("block"),
        _integer(table, "launch__stream_id").alias("stream"),
        _integer(table, "launch__context_id").alias("context"),
        _compute_capability(table),
    ]


def _integer(table: CounterTable, name: str) -> pl.Expr:
    return table.counter_or_null(name).cast(pl.Int64, strict=False)


def _compute_capability(table: CounterTable) -> pl.Expr:
    major, minor = (_integer(table, f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return (10 * major + minor).cast(pl.Int32, strict=False).alias("compute_capability")


def _devices(workloads: pl.DataFrame, table: CounterTable) -> tuple[pl.DataFrame, pl.Series]:
    """Return DEVICES, and the `device` that each workload ran on."""

    def integer(quantity: str) -> pl.Series:
        column: pl.Series = table.frame[quantity].cast(pl.Int64, strict=False)
        return column

    number = table.counter("launch__device_id")
    rows = pl.DataFrame(
        {
            "name": device_names(workloads),
            "compute_capability": table.frame.with_columns(_compute_capability(table))["compute_capability"],
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


def device_names(workloads: pl.DataFrame) -> pl.Series:
    """Return the `name` of the device of each workload; null where the report does not say."""
    if DEVICE_NAME not in workloads.columns:
        return pl.Series("name", [None] * workloads.height, pl.String)
    names: pl.Series = workloads[DEVICE_NAME].cast(pl.String)
    return names.alias("name")


def sheet_bandwidths(table: CounterTable, workloads: pl.DataFrame, bandwidth_of: SheetBandwidth | None) -> pl.Series:
    """Return SHEET_BANDWIDTH of each workload in byte/s; null where no data sheet is known.

    Args:
        table: counters.
        workloads: texts, rows as in `table`.
        bandwidth_of: looks the bandwidth up; None if there are no data sheets.
    """
    if bandwidth_of is None:
        return pl.Series(SHEET_BANDWIDTH, [None] * workloads.height, dtype=pl.Float64)
    attributes = [
        table.counter_or_null(f"device__attribute_{attribute}").cast(pl.Int64, strict=False).alias(key)
        for key, attribute in _ATTRIBUTES.items()
    ]
    capability = table.capability().cast(pl.Int32, strict=False).alias("compute_capability")
    devices = table.frame.select(device_names(workloads), capability, *attributes)
    distinct = devices.unique(maintain_order=True)
    found = [
        bandwidth_of(row["name"], row["compute_capability"], {key: row[key] for key in _ATTRIBUTES})
        for row in distinct.iter_rows(named=True)
    ]
    by_device = distinct.with_columns(pl.Series(SHEET_BANDWIDTH, found, dtype=pl.Float64))
    joined = devices.join(by_device, on=devices.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined[SHEET_BANDWIDTH]
