"""Writes docs/columns.md: the columns of every table that ncuroof writes, from profiles/columns.toml and profiles/metrics.toml.

`python docs/generate.py` runs it; the tests compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from ncuroof.fleet import FLEET, FLEET_FAILURES
from ncuroof.metrics import load_catalogue
from ncuroof.present.explanations.columns import Column, load_columns
from ncuroof.present.kernel_rows import kernel_columns

FILE = Path(__file__).with_name("columns.md")

_ABOUT = """# Tables

The columns of what ncuroof writes as CSV and Parquet. Units are base units, shares are 0..1, and null (in CSV: empty) is
*not known*; zero is measured. CSV joins lists by semicolons, writes what a terminal would obey as `\\u…`, line ends as blanks,
and a quote before what a spreadsheet would run. `ncuroof explain NAME` prints what is said here. Columns may be
added; none is renamed or dropped without a new number. Generated from [columns.toml](../profiles/columns.toml) and
[metrics.toml](../profiles/metrics.toml) by `python docs/generate.py`.
"""
_KERNELS = """## `ncuroof.kernels/1`

`ncuroof report -o run.csv`, `-o run.parquet`, `Analysis.write`: a row per recorded launch, with the same columns whatever the
report holds, so that tables of several reports can be put below each other; `report_sha256` and `id` find the launch in the
JSON document. Work of a type that came out after this version has columns of its own, after all others. A Parquet file names
schema and version in its metadata (`ncuroof.schema`, `ncuroof.version`).

In Python, `Analysis.kernels` has the same columns for every report, too: these but `report_file`, `report_sha256`, `gpu_name`,
`findings` and `gains_ns` (which are in `Analysis.reports`, `.measurements.devices` and `.findings`), and how numbers came about
(`check.*`, `definition.*`, `limiter.memory_counter`, `limiter.compute_counter`).
"""
_QUANTITIES = (
    "Beside them, a Float64 column for every [quantity](quantities/README.md) of a fixed name but checks (`check.*`), "
    "and one for each stall reason (`stalls.*`)."
)
_FLEET = """## `ncuroof.fleet/1`

The files of a dataset of [`ncuroof ingest`](fleet.md), and the table `kernels` of `ncuroof fleet --sql`, where each label is a
column of its own besides (`"label.commit"`). Each file names the schema in its metadata (`ncuroof.schema`); one that lacks a
column reads as null.
"""
_FAILURES = """## Failures

The table `failures` of `ncuroof fleet --sql`: reports that could not be taken in when they were last tried.
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
            yield f"| [`{name}`](quantities/{name}.md) | {_type(dtype)} | {quantity.unit} | {quantity.doc} |"
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
