"""The kernels as one flat table: CSV for spreadsheets, Parquet for everything else."""

from __future__ import annotations

import io

import polars as pl

from ncuroof._version import __version__
from ncuroof.present.format import printable
from ncuroof.present.kernel_rows import SCHEMA

_FORMULA_START = r"(^|;)([=+\-@\t\r\n])"
"""A spreadsheet runs a cell that begins so, where semicolons part the cells as well; kernel names come from untrusted code."""

_LIST_SEPARATOR = ";"


def to_csv(kernels: pl.DataFrame) -> bytes:
    """Return the kernels as CSV: a row and a line each, lists joined by semicolons, empty where not known.

    Text is what it is in the other formats, but for what a spreadsheet would run, which gets a single quote before it, and for
    what a terminal would obey, which is made visible.

    Args:
        kernels: as `kernel_rows`.
    """
    texts = [name for name, dtype in kernels.schema.items() if dtype in {pl.String, pl.List(pl.String)}]
    flat = kernels.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.eval(pl.element().fill_null("")).list.join(_LIST_SEPARATOR)
        for name, dtype in kernels.schema.items()
        if isinstance(dtype, pl.List)
    )
    harmless = flat.with_columns(
        pl.col(name).str.replace_all(_FORMULA_START, "${1}'${2}").map_elements(printable, pl.String) for name in texts
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
