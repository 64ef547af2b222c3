"""A study of an operation as text for the terminal, as Markdown and as CSV, from the document `ncuroof.model/1`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from ncuroof.present.analysed import Record
from ncuroof.present.schemas.model import ModelDocument, ModelRowEntry
from ncuroof.present.sentences.model import WORDS, counted, dtypes, explained, is_on_one_machine, notes, options, table
from ncuroof.present.texts.layout import WIDTH, aligned, filled, table_row

_NUMBERS = (
    "flop", "matrix_flop", "bytes", "read_bytes", "written_bytes", "intensity_flop_per_byte", "l2_read_bytes", "network_bytes",
    "precision", "peak_flop_per_s", "bandwidth_bytes_per_s", "ridge_flop_per_byte", "compute_ns", "other_compute_ns", "dram_ns",
    "l2_ns", "network_ns", "bound", "least_ns", "most_ns", "attainable_flop_per_s", "peak_frac",
)  # fmt: skip


def to_csv(document: ModelDocument) -> str:
    """Return one line per row: operation, machine, element type, sizes and all numbers; cells are empty where not known."""
    rows = document["rows"]
    sizes = list(rows[0]["sizes"])
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(["operation", "machine", "dtype", *sizes, *_NUMBERS, "efficiency_frac"])
    for row in rows:
        efficiency = None if row["distance"] is None else row["distance"]["efficiency_frac"]
        given = [row["sizes"][name] for name in sizes]
        numbers: Record = row
        cells = [
            document["operation"]["name"],
            row["machine"]["id"],
            row["dtype"],
            *given,
            *(numbers[name] for name in _NUMBERS),
        ]
        writer.writerow([*cells, efficiency])
    return held.getvalue()


def to_markdown(document: ModelDocument) -> str:
    """Return the study as Markdown."""
    rows: Sequence[ModelRowEntry] = document["rows"]
    headings, *cells = table(document)
    lines = ["<!-- ncuroof model -->", f"**{_title(document)}**, {rows[0]['counted']}", ""]
    lines += [table_row(headings), table_row(["---", *["---:"] * (len(headings) - 1)])]
    lines += map(table_row, cells)
    items = [f"- {note}" for note in notes(document)]
    return "\n".join([*lines, *(["", *items] if items else [])]) + "\n"


def to_text(document: ModelDocument) -> str:
    """Return the study as plain text."""
    cells = table(document)
    lines = [
        f"ncuroof · model · {_title(document)}",
        *counted(document),
        "",
        *aligned(cells, left=[heading in WORDS for heading in cells[0]]),
    ]
    for block in explained(document):
        lines += ["", *block]
    return "\n".join(_wrapped(lines)) + "\n"


def _title(document: ModelDocument) -> str:
    row, swept = document["rows"][0], document["swept"]
    sizes = [f"{name}={'…' if name in swept else value}" for name, value in row["sizes"].items()]
    machine = f", on {row['machine']['id']}" if is_on_one_machine(document) and swept else ""
    return (
        f"{document['operation']['name']} {' '.join([*sizes, *options(row)])}, {', '.join(dtypes(document))}{machine}"
    )


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if len(line) <= WIDTH:
            yield line
        else:
            blanks = line[: len(line) - len(line.lstrip())]
            yield from filled(blanks, line.split(), WIDTH, hanging="    ")
