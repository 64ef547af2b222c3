"""The kernels as one flat table: CSV for spreadsheets, Parquet for everything else."""

from __future__ import annotations

import io

import polars as pl

from ncuroof._version import __version__
from ncuroof.present.kernel_rows import SCHEMA
from ncuroof.wording import printable

_FORMULA_START = r"(^|;)([=+\-@\t\r\n])"
"""Start of a cell that a spreadsheet runs as a formula, also after a semicolon, which some take as the cell separator.

Kernel names come from untrusted code.
"""

_LIST_SEPARATOR = ";"


def to_csv(kernels: pl.DataFrame) -> bytes:
    """Return the kernels as CSV: one line per row, lists joined by semicolons, empty cells where a value is not known.

    Text is the same as in the other formats, except that a single quote precedes what a spreadsheet would run as a formula, and
    control characters are escaped.

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
    """Return the kernels as a Parquet file with the table's column types; its metadata names the schema and the version of ncuroof.

    Args:
        kernels: as `kernel_rows`.
    """
    buffer = io.BytesIO()
    kernels.write_parquet(buffer, metadata={"ncuroof.schema": SCHEMA, "ncuroof.version": __version__})
    return buffer.getvalue()
