"""Compute each launch's share of the roofs of the data sheet and of a calibration, which do not come from its own counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.enums import SPARSE_SUFFIX, CeilingSource
from ncuroof.roofline.gpu_profiles import normalise_device_name
from ncuroof.roofline.sheet_roofs import AT_THEIR_OWN_CLOCK, sheet_precision
from ncuroof.sidecars.calibration import Calibration, best_roofs
from ncuroof.tables import BANDWIDTH, CEILINGS, KERNELS, ROOF_SHARES, WORK, check, conform, finite


def roof_shares(
    kernels: pl.DataFrame,
    work: pl.DataFrame,
    bandwidth: pl.DataFrame,
    ceilings: pl.DataFrame,
    calibrations: Mapping[int, Calibration | None],
) -> pl.DataFrame:
    """Return achieved rates over the data sheet's roofs, and over the roofs that a calibration measured.

    A calibrated roof, except DRAM's, is scaled from the SM clock of its measurement to the clock of the launch, if both are known.
    The data sheet's roof is used as stated, at boost clock. For work accumulated in FP16, it is the peak with FP16 accumulation if
    stated.

    Args:
        kernels: KERNELS with `sm_clock_hz`.
        work: WORK.
        bandwidth: BANDWIDTH.
        ceilings: CEILINGS of all sources.
        calibrations: calibration by device, or None.

    Returns:
        ROOF_SHARES; launches without a rate or a roof have no row.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    for table, schema, name in (
        (kernels, KERNELS, "KERNELS"),
        (work, WORK, "WORK"),
        (bandwidth, BANDWIDTH, "BANDWIDTH"),
        (ceilings, CEILINGS, "CEILINGS"),
    ):
        check(table, schema, table=name)
    rows = (
        _rates(work, bandwidth)
        .join(kernels.select("id", "device", "sm_clock_hz"), on="id", how="left", maintain_order="left")
        .join(_calibrated_clocks(calibrations), on=["device", "kind", "name"], how="left", maintain_order="left")
    )
    for source in (CeilingSource.DATASHEET, CeilingSource.MEASURED):
        rows = rows.join(_roofs(ceilings, source), on=["device", "kind", "name"], how="left", maintain_order="left")
    sheet = f"roof.{CeilingSource.DATASHEET.value}"
    fast = _roofs(ceilings, CeilingSource.DATASHEET).rename({"name": "fast_path", sheet: "roof.fast_path"})
    rows = rows.join(fast, on=["device", "kind", "fast_path"], how="left", maintain_order="left")
    clock = pl.when(~pl.col("name").is_in(AT_THEIR_OWN_CLOCK)).then(pl.col("sm_clock_hz") / pl.col("calibrated_hz"))
    return (
        rows.with_columns(
            (pl.col("per_s") / pl.coalesce("roof.fast_path", sheet)).alias("datasheet_frac"),
            (pl.col("per_s") / (pl.col("roof.measured") * clock.fill_null(1.0))).alias("reached_frac"),
        )
        .pipe(conform, ROOF_SHARES)
        .pipe(finite)
        .filter(pl.any_horizontal(pl.col("datasheet_frac", "reached_frac").is_not_null()))
    )


def _rates(work: pl.DataFrame, bandwidth: pl.DataFrame) -> pl.DataFrame:
    """Return the achieved rates, each with the name of its roof and of the roof of its type's fastest path."""
    traffic = bandwidth.select(
        "id", pl.lit("bandwidth").alias("kind"), name="level", per_s="bytes_per_s", fast_path="level"
    )
    arithmetic = work.filter(pl.col("reliable")).select(
        "id",
        pl.lit("compute").alias("kind"),
        name="precision",
        per_s="flop_per_s",
        fast_path=pl.when(~pl.col("precision").str.ends_with(SPARSE_SUFFIX)).then(sheet_precision()),
    )
    return pl.concat([traffic, arithmetic])


def _calibrated_clocks(calibrations: Mapping[int, Calibration | None]) -> pl.DataFrame:
    """Return the SM clock at which a calibration measured each roof of each device."""
    rows = [
        (device, kind, name, roof.sm_clock_hz)
        for device, calibration in calibrations.items()
        if calibration is not None
        for (kind, name), roof in best_roofs(calibration).items()
    ]
    schema = {"device": pl.UInt32, "kind": pl.String, "name": pl.String, "calibrated_hz": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _roofs(ceilings: pl.DataFrame, source: CeilingSource) -> pl.DataFrame:
    return ceilings.filter(pl.col("source") == source.value).select(
        "device", pl.col("kind").cast(pl.String), "name", pl.col("per_s").alias(f"roof.{source.value}")
    )


def by_device(calibrations: Sequence[Calibration], devices: pl.DataFrame) -> dict[int, Calibration | None]:
    """Return the first calibration that fits each device, by `device`, or None.

    Args:
        calibrations: all available ones, the preferred first.
        devices: DEVICES.
    """
    return {
        row["device"]: next((each for each in calibrations if _fits(each, row["name"], row["sm_count"])), None)
        for row in devices.iter_rows(named=True)
    }


def _fits(calibration: Calibration, device_name: str | None, sm_count: int | None) -> bool:
    """Return whether a device equals the calibrated GPU: the same name except for brand words, and the same SMs if known."""
    if device_name is None or normalise_device_name(device_name) != normalise_device_name(calibration.gpu):
        return False
    return sm_count in (None, calibration.sm_count)
