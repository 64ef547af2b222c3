"""Writes docs/columns.md: the columns of every table that ncuroof writes, from profiles/columns.toml and profiles/metrics/.

`make pages` runs it; the tests compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from ncuroof.fleet import FLEET, FLEET_FAILURES
from ncuroof.metrics import load_catalogue
from ncuroof.present.explanations.meanings import Column, load_columns
from ncuroof.present.kernel_rows import kernel_columns
from tools.quantity_pages import address

FILE = Path(__file__).resolve().parents[1] / "docs/columns.md"

_ABOUT = """# Tables

The columns of the CSV and Parquet files that ncuroof writes. Units are base units, and shares are 0..1. Null (in CSV: empty)
means *not known*; zero is a measured value. In CSV, lists are joined by semicolons, control characters are written as `\\u…`,
line ends as spaces, and a quote precedes text that a spreadsheet would run as a formula. `ncuroof explain NAME` prints the same
descriptions. Columns may be added; none is renamed or removed without a new schema number. Generated from
[columns.toml](../profiles/columns.toml) and [metrics/](../profiles/metrics) by `make pages`.
"""
_KERNELS = """## `ncuroof.kernels/1`

`ncuroof report -o run.csv`, `-o run.parquet` and `Analysis.write` write one row per profiled launch. The columns are the same
for every report, so tables of several reports can be concatenated; `report_sha256` and `id` identify the launch in the JSON
document. Work of a precision that is newer than this version has its own columns, after all others. A Parquet file contains the
schema and the version in its metadata (`ncuroof.schema`, `ncuroof.version`).

In Python, `Analysis.kernels` has the same columns for every report too: these except `report_file`, `report_sha256`, `gpu_name`,
`findings` and `gains_ns` (which are in `Analysis.reports`, `.measurements.devices` and `.findings`), plus columns on how the
numbers were obtained (`check.*`, `definition.*`, `limiter.memory_counter`, `limiter.compute_counter`).
"""
_QUANTITIES = (
    "In addition, one Float64 column for every [quantity](quantities/README.md) with a fixed name except checks (`check.*`), "
    "and one for each stall reason (`stalls.*`)."
)
_FLEET = """## `ncuroof.fleet/1`

The files of a dataset written by [`ncuroof ingest`](fleet.md), and the table `kernels` of `ncuroof fleet --sql`, which also has
one column per label (`"label.commit"`). Each file contains the schema in its metadata (`ncuroof.schema`); columns that a file
lacks are read as null.
"""
_FAILURES = """## Failures

The table `failures` of `ncuroof fleet --sql`: reports that could not be ingested at the last attempt.
"""


def page() -> str:
    """Return the page."""
    kernels = kernel_columns()
    own = [name for name in load_columns() if any(each.name in kernels for each in load_columns()[name].expanded())]
    order = list(kernels)
    own.sort(key=lambda name: order.index(next(load_columns()[name].expanded()).name))
    sections = (
        (_KERNELS, {name: kernels[next(load_columns()[name].expanded()).name] for name in own}, _QUANTITIES),
        (_FLEET, FLEET, ""),
        (_FAILURES, FLEET_FAILURES, ""),
    )
    parts = [_ABOUT]
    for about, columns, after in sections:
        parts += [about, "\n".join(_rows(columns)) + "\n", *([f"{after}\n"] if after else [])]
    return "\n".join(parts)


def _rows(columns: Mapping[str, pl.DataType]) -> Iterator[str]:
    yield "| column | type | unit | |"
    yield "|---|---|---|---|"
    quantities = {quantity.name: quantity for quantity in load_catalogue().described()}
    for name, dtype in columns.items():
        own = load_columns().get(name)
        if own is None:
            quantity = quantities[name]
            yield f"| [`{name}`](quantities/{address(name)}) | {_type(dtype)} | {quantity.unit} | {quantity.doc} |"
        else:
            yield f"| `{name}` | {_type(dtype)} | {own.unit or ''} | {_doc(own)} |"


def _doc(column: Column) -> str:
    return column.doc.replace("<level>", "a memory level").replace("<precision>", "a precision")


def _type(dtype: pl.DataType) -> str:
    return "text" if isinstance(dtype, pl.Enum) else str(dtype).replace("'", "")


def main() -> None:
    """Write the page."""
    FILE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
