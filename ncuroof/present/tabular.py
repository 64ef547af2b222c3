"""The kernels as one flat table: CSV for spreadsheets, Parquet for everything else."""

from __future__ import annotations

import io

import polars as pl

from ncuroof._version import __version__
from ncuroof.present.kernel_rows import SCHEMA

_FORMULA_START = r"^[=+\-@\t\r]"
"""A spreadsheet runs a cell that begins so; kernel names come from untrusted code."""

_LIST_SEPARATOR = ";"


def to_csv(kernels: pl.DataFrame) -> bytes:
    """Return the kernels as CSV: one row each, lists joined by semicolons, empty where not known.

    Args:
        kernels: as `kernel_rows`.
    """
    flat = kernels.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.eval(pl.element().fill_null("")).list.join(_LIST_SEPARATOR)
        for name, dtype in kernels.schema.items()
        if isinstance(dtype, pl.List)
    )
    harmless = flat.with_columns(
        pl.when(pl.col(name).str.contains(_FORMULA_START)).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name, dtype in flat.schema.items()
        if dtype == pl.String
    )
    return harmless.write_csv().encode()


def to_parquet(kernels: pl.DataFrame) -> bytes:
    """Return the kernels as a Parquet file, with the column types of the table; its metadata names schema and version.

    Args:
        kernels: as `kernel_rows`.
    """
    buffer = io.BytesIO()
    kernels.write_parquet(buffer, metadata={"ncuroof.schema": SCHEMA, "ncuroof.version": __version__})
    return buffer.getvalue()
