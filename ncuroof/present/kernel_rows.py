"""The launches of an analysis as self-contained rows, `ncuroof.kernels/1`: the same columns whatever the report contains.

They are written as one flat table: CSV for spreadsheets, Parquet for everything else.

Schema history:
    1  first version.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from ncuroof._version import __version__
from ncuroof.formatting import printable
from ncuroof.ingest import RawReport
from ncuroof.metrics import load_catalogue
from ncuroof.present.analysed import Analysed
from ncuroof.present.explanations.meanings import LEVEL, PRECISION, Column, load_columns
from ncuroof.tables import BOUNDS, DEVICES, FINDINGS, KERNELS, VERDICTS, WEIGHTS, check

SCHEMA = "ncuroof.kernels/1"

_ORIGIN = pl.Schema({"report_file": pl.String(), "report_sha256": pl.String(), "gpu_name": pl.String()})
_FOUND = pl.Schema({"findings": pl.List(pl.String), "gains_ns": pl.List(pl.Float64)})
_TEXT_HERE = pl.Schema({"compute_capability": pl.String()})
_LEFT_OUT = ("check.", "limiter.memory_counter", "limiter.compute_counter")
"""Name prefixes of columns that only explain how a number was obtained; the JSON document has them."""

_FIRST = 6
"""Leading columns of KERNELS, which identify the launch; the columns on its origin follow them."""

_FORMULA_START = r"(^|;)(\s*[=+\-@\t\r\n\x{FF0B}\x{FF0D}\x{FF1D}\x{FF20}])"
"""Start of a cell that a spreadsheet runs as a formula, also after a semicolon, which some take as the cell separator.

Some skip spaces before it, and take the wide signs of East Asian keyboards as the narrow ones.

Kernel names come from untrusted code.
"""

_LIST_SEPARATOR = ";"


def kernel_columns() -> pl.Schema:
    """Return the columns of `ncuroof.kernels/1` in order, with their types."""
    kernels = list(KERNELS.items())
    catalogue = load_catalogue()
    numbers = (
        *(each.name for column in _placed() for each in column.expanded()),
        *(quantity.name for quantity in catalogue.described()),
        *(f"stalls.{reason}" for reason in catalogue.stalls.reasons),
    )
    every = {
        **dict(kernels[:_FIRST]),
        **_ORIGIN,
        **dict(kernels[_FIRST:]),
        **WEIGHTS,
        **BOUNDS,
        **VERDICTS,
        **_FOUND,
        **{name: pl.Float64() for name in numbers},
        **_TEXT_HERE,
    }
    return pl.Schema({name: dtype for name, dtype in every.items() if not name.startswith(_LEFT_OUT)})


def kernel_rows(analysis: Analysed) -> pl.DataFrame:
    """Return a row per launch with the columns of `ncuroof.kernels/1`, null where not known.

    Work columns that the schema lacks, of data types newer than this version, follow after all others.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    kernels = check(analysis.kernels, KERNELS, table="kernels")
    columns = kernel_columns()
    gpus = check(analysis.measurements.devices, DEVICES, table="devices").select("device", gpu_name="name")
    rows = (
        kernels.join(gpus, on="device", how="left", maintain_order="left")
        .join(_origins(analysis.reports), on="source", how="left", maintain_order="left")
        .join(_found(analysis.diagnosis.findings), on="id", how="left", maintain_order="left")
        .with_columns(
            _as_text(pl.col("compute_capability")),
            pl.col(*_FOUND).fill_null([]),
        )
    )
    of_later_types = [name for name in rows.columns if name not in columns and name.startswith("work.")]
    return rows.select(*columns, *of_later_types)


def _placed() -> list[Column]:
    """Return the columns whose names contain a placeholder for a memory level or a precision."""
    return [column for name, column in load_columns().items() if LEVEL in name or PRECISION in name]


def _origins(reports: Sequence[RawReport]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "source": pl.Series(range(len(reports)), dtype=pl.UInt32),
            "report_file": pl.Series([report.file for report in reports], dtype=pl.String),
            "report_sha256": pl.Series([report.sha256 for report in reports], dtype=pl.String),
        }
    )


def _found(findings: pl.DataFrame) -> pl.DataFrame:
    """Return a row per launch that has findings, with lists of their names and gains in order of the findings."""
    return (
        check(findings, FINDINGS, table="findings")
        .group_by("id", maintain_order=True)
        .agg(pl.col("finding").alias("findings"), pl.col("gain_ns").alias("gains_ns"))
    )


def _as_text(capability: pl.Expr) -> pl.Expr:
    """Return a compute capability (major × 10 + minor) as text, as in the JSON document: "9.0"."""
    return pl.format("{}.{}", capability // 10, capability % 10).alias("compute_capability")


def analysis_csv(analysis: Analysed) -> bytes:
    """Return the launches of an analysis as CSV."""
    return to_csv(kernel_rows(analysis))


def analysis_parquet(analysis: Analysed) -> bytes:
    """Return the launches of an analysis as a Parquet file."""
    return to_parquet(kernel_rows(analysis))


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
