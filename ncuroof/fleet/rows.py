"""One analysed report as the rows that a dataset keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

import polars as pl

from ncuroof._version import __version__
from ncuroof.fleet.tables import FLEET
from ncuroof.ingest import RawReport
from ncuroof.metrics.work import whole_flop
from ncuroof.tables import DEVICES, FINDINGS, check, conform

_STANDS_FOR = ("n_represented", "weight")
"""A launch stands for itself where none were counted."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a report comes from, and what its user says about it.

    Attributes:
        location: as it was given.
        labels: value by name, such as a commit.
    """

    location: str
    labels: Mapping[str, str]


def fleet_rows(
    report: RawReport, kernels: pl.DataFrame, findings: pl.DataFrame, devices: pl.DataFrame, origin: Origin
) -> pl.DataFrame:
    """Return FLEET of one report, one row per launch.

    Args:
        report: what was read.
        kernels: one row per launch, as `Analysis.kernels`.
        findings: FINDINGS.
        devices: DEVICES.
        origin: where it comes from.

    Raises:
        SchemaError: a column is absent.
    """
    check(findings, FINDINGS, table="findings")
    gpus = check(devices, DEVICES, table="devices").select("device", gpu_name="name")
    rows = (
        kernels.join(gpus, on="device", how="left", maintain_order="left")
        .join(_summary(findings), on="id", how="left", maintain_order="left")
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
    """Return the launches and findings of one report of several that were analysed together, numbered from 0."""
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
    """Return one row per launch that has findings; they come ordered by gain."""
    return findings.group_by("id", maintain_order=True).agg(
        pl.col("finding").alias("findings"),
        (pl.col("severity") == "high").sum().alias("n_high"),
        (pl.col("severity") == "medium").sum().alias("n_medium"),
        pl.col("gain_ns").drop_nulls().first(),
    )
