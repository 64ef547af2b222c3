"""The tables of a fleet of reports, column by column, and the rows that a dataset keeps of one analysed report.

Files of a dataset name the schema, `ncuroof.fleet/1`, in their metadata. Columns may be added: they are null in older files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

import polars as pl

from ncuroof._version import __version__
from ncuroof.ingest import RawReport
from ncuroof.metrics import code_of
from ncuroof.metrics.work import whole_flop
from ncuroof.tables import DEVICES, FINDINGS, check, conform

_STANDS_FOR = ("n_represented", "weight")
"""Columns that are 1 without a counting run: a launch stands for itself."""

SCHEMA = "ncuroof.fleet/1"

FLEET = pl.Schema(
    {
        # where the row comes from
        "report_sha256": pl.String(),  # of the report's bytes; names the file of the dataset that holds its rows
        "report_file": pl.String(),  # the report's name, without folder
        "report_location": pl.String(),  # where it was read, as the user wrote it
        "recorded_at": pl.Datetime("us", "UTC"),  # begin of the session, as the report states it; null if it does not
        "labels": pl.List(pl.Struct({"name": pl.String(), "value": pl.String()})),  # given by the user, sorted by name
        "ncuroof_version": pl.String(),  # of the program that judged the launch
        # how it was recorded
        "ncu_version": pl.String(),
        "driver_version": pl.String(),
        "cuda_version": pl.String(),
        "clock_control": pl.String(),  # base, none, …
        "cache_control": pl.String(),  # all, none
        "replay_mode": pl.String(),  # kernel, application, range, app-range
        "gpu_name": pl.String(),
        "compute_capability": pl.Int32(),  # major × 10 + minor
        "is_damaged_report": pl.Boolean(),
        "is_simulated": pl.Boolean(),  # the report was written by a program, not recorded; null in older files
        # which launch it is
        "id": pl.UInt32(),  # its number in the report
        "name": pl.String(),  # demangled, with template arguments and parameters
        "short_name": pl.String(),
        "family": pl.String(),  # whose code it is
        "workload": pl.String(),  # kernel, range, graph, cmdlist
        "failed": pl.Boolean(),  # the collection failed: no counter holds a number
        "grid": pl.List(pl.Int64),
        "block": pl.List(pl.Int64),
        "nvtx": pl.List(pl.String),  # open ranges, outermost first
        "process_name": pl.String(),
        "code_sha256": pl.String(),  # of the whole machine code without addresses; null if unknown, and in older files
        "compiler_version": pl.String(),  # of ptxas, which made the code; null if unknown, and in older files
        # what it stands for if a counting run counted launches; else 1, and null in older files
        "n_represented": pl.Float64(),  # launches
        "weight": pl.Float64(),  # factor of its times in sums
        # the analysis
        "duration_ns": pl.Float64(),
        "min_time_ns": pl.Float64(),  # roofline time
        "recoverable_ns": pl.Float64(),  # duration less roofline time, at least 0
        "verdict": pl.String(),
        "limiter": pl.String(),
        "confidence": pl.String(),
        "side": pl.String(),  # of the ridge
        "dominant_precision": pl.String(),
        "caveats": pl.List(pl.String),
        "findings": pl.List(pl.String),  # by gain
        "n_high": pl.UInt32(),  # findings of high severity
        "n_medium": pl.UInt32(),
        "gain_ns": pl.Float64(),  # of the first finding that has one; null if none has
        # what was measured
        "sm_clock_hz": pl.Float64(),
        "work.flop": pl.Float64(),  # all precisions together
        "traffic_bytes.dram": pl.Float64(),
        "traffic_bytes.l2": pl.Float64(),
        "traffic_bytes.l1": pl.Float64(),
        "traffic_bytes.shared": pl.Float64(),
        "instructions.warp_executed": pl.Float64(),
        "utilisation.memory": pl.Float64(),
        "utilisation.compute": pl.Float64(),
        "utilisation.dram": pl.Float64(),
        "utilisation.l2": pl.Float64(),
        "utilisation.l1": pl.Float64(),
        "utilisation.tensor": pl.Float64(),
        "utilisation.issue": pl.Float64(),
        "occupancy.achieved_frac": pl.Float64(),
        "occupancy.theoretical_frac": pl.Float64(),
        "occupancy.waves": pl.Float64(),
        "access.l1_hit_frac": pl.Float64(),
        "access.l2_hit_frac": pl.Float64(),
        "access.bank_conflict_frac": pl.Float64(),
        "access.local_bytes": pl.Float64(),
        "launch.n_registers_per_thread": pl.Float64(),
        "launch.shared_bytes_per_block": pl.Float64(),
    }
)
"""One row per launch of a fleet of reports (`ncuroof.fleet/1`), in the order of the report."""

FLEET_FAILURES = pl.Schema(
    {
        "report_location": pl.String(),
        "report_file": pl.String(),
        "error": pl.String(),  # slug of the error; `defect` for an unexpected exception
        "message": pl.String(),
        "ncuroof_version": pl.String(),
    }
)
"""One row per report that could not be read at the last try."""

FLEET_SIDES = pl.Schema(
    {
        "series": pl.UInt32(),  # launches that agree in all except the compared factor
        "name": pl.String(),
        "short_name": pl.String(),
        "process_name": pl.String(),
        "grid": pl.List(pl.Int64),
        "block": pl.List(pl.Int64),
        "gpu_name": pl.String(),
        "clock_control": pl.String(),
        "value": pl.String(),  # of the compared factor: a driver, a commit, a report
        "first_recorded_at": pl.Datetime("us", "UTC"),
        "n_reports": pl.UInt32(),
        "n_launches": pl.UInt32(),
        "mean_ns": pl.Float64(),
        "standard_error_ns": pl.Float64(),  # of the mean
        "sm_clock_hz": pl.Float64(),  # mean; null if unknown
    }
)
"""One row per series and value of the compared factor, in the order of first recording."""

FLEET_STEPS = pl.Schema(
    {
        **FLEET_SIDES,
        "before_value": pl.String(),
        "before_ns": pl.Float64(),
        "before_n_launches": pl.UInt32(),
        "change_frac": pl.Float64(),  # of the mean time of a launch
        "noise_frac": pl.Float64(),  # smaller changes are noise
        "is_comparable": pl.Boolean(),  # whether the clocks are close enough
        "is_significant": pl.Boolean(),  # comparable, and beyond the noise
        "is_same_work": pl.Boolean(),  # whether FLOPs agree and instructions nearly do, as far as known
        "also_changed": pl.List(pl.String),  # further differences, which may be the cause
    }
)
"""One row per series and pair of consecutive values."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a report comes from, and its labels.

    Attributes:
        location: its path, as the user wrote it.
        labels: value by name, such as a commit.
    """

    location: str
    labels: Mapping[str, str]


def fleet_rows(
    report: RawReport, kernels: pl.DataFrame, findings: pl.DataFrame, devices: pl.DataFrame, origin: Origin
) -> pl.DataFrame:
    """Return the FLEET rows of one report.

    Args:
        report: the report.
        kernels: one row per launch, as `Analysis.kernels`.
        findings: FINDINGS.
        devices: DEVICES.
        origin: where it comes from.

    Raises:
        SchemaError: a column is absent.
    """
    check(findings, FINDINGS, table="findings")
    gpus = check(devices, DEVICES, table="devices").select("device", gpu_name="name")
    whole = pl.when("is_whole").then("sha256").alias("code_sha256")
    code = code_of([report]).select("id", whole, pl.col("compiler").alias("compiler_version"))
    rows = (
        kernels.join(gpus, on="device", how="left", maintain_order="left")
        .join(_summary(findings), on="id", how="left", maintain_order="left")
        .join(code, on="id", how="left", maintain_order="left")
        .with_columns(
            whole_flop(kernels).alias("work.flop"),
            pl.col("workload").cast(pl.String),
            pl.col("findings").fill_null([]),
            pl.col("n_high", "n_medium").fill_null(0),
            *_provenance(report, origin),
        )
    )
    absent = [
        pl.lit(1.0 if name in _STANDS_FOR else None, dtype).alias(name)
        for name, dtype in FLEET.items()
        if name not in rows.columns
    ]
    return conform(rows.with_columns(absent), FLEET)


def of_source(kernels: pl.DataFrame, findings: pl.DataFrame, source: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the launches and findings of one of several reports that were analysed together, numbered from 0."""
    launches = kernels.filter(pl.col("source") == source)
    number = pl.col("id") - launches["id"].min()
    own = findings.join(launches.select("id"), on="id", how="semi", maintain_order="left")
    return launches.with_columns(number), own.with_columns(number)


def _provenance(report: RawReport, origin: Origin) -> list[pl.Expr]:
    session = report.session
    recorded = None if session.created_s is None else datetime.fromtimestamp(session.created_s, tz=timezone.utc)
    labels = [{"name": name, "value": value} for name, value in sorted(origin.labels.items())]
    values = {
        "report_sha256": report.sha256,
        "report_file": report.file,
        "report_location": origin.location,
        "recorded_at": recorded,
        "ncuroof_version": __version__,
        "ncu_version": session.ncu_version,
        "driver_version": session.driver_version,
        "cuda_version": session.cuda_version,
        "cache_control": session.cache_control,
        "replay_mode": session.replay_mode,
        "is_simulated": session.is_simulated,
    }
    return [
        *(pl.lit(value, FLEET[name]).alias(name) for name, value in values.items()),
        pl.lit(pl.Series([labels], dtype=FLEET["labels"])).first().alias("labels"),
    ]


def _summary(findings: pl.DataFrame) -> pl.DataFrame:
    """Return one row per launch that has findings, which are ordered by gain."""
    return findings.group_by("id", maintain_order=True).agg(
        pl.col("finding").alias("findings"),
        (pl.col("severity") == "high").sum().alias("n_high"),
        (pl.col("severity") == "medium").sum().alias("n_medium"),
        pl.col("gain_ns").drop_nulls().first(),
    )
