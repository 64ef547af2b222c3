"""Memory bandwidth by the GPUs' data sheets, as a column beside the counters: some GPUs have no DRAM counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from ncuroof.metrics.catalogue import DEVICE_NAME
from ncuroof.metrics.quantities import CounterTable

SHEET_BANDWIDTH = "device.sheet_dram_bytes_per_s"

SheetBandwidth = Callable[[str | None, int | None, Mapping[str, int | None]], float | None]
"""Returns the memory bandwidth of a GPU in byte/s, or None.

Its arguments are the device's name, compute capability (90 for 9.0), and `sm_count`, `dram_bytes` and `memory_bus_bits`."""

_ATTRIBUTES = {
    "sm_count": "multiprocessor_count",
    "dram_bytes": "total_memory",
    "memory_bus_bits": "global_memory_bus_width",
}


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
