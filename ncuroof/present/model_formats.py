"""Output formats of a study of an operation; each is made from the document `ncuroof.model/1`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

from ncuroof.present.analysed import Record
from ncuroof.present.charts.model_chart import to_model_page, to_model_svg
from ncuroof.present.documents.json_text import json_text
from ncuroof.present.texts.model import to_model_markdown, to_model_text

_NUMBERS = (
    "flop", "matrix_flop", "bytes", "read_bytes", "written_bytes", "intensity_flop_per_byte", "l2_read_bytes", "network_bytes",
    "precision", "peak_flop_per_s", "bandwidth_bytes_per_s", "ridge_flop_per_byte", "compute_ns", "other_compute_ns", "dram_ns",
    "l2_ns", "network_ns", "bound", "least_ns", "most_ns", "attainable_flop_per_s", "peak_frac",
)  # fmt: skip


def _csv(document: Record) -> str:
    """Return one line per row: operation, machine, element type, sizes and all numbers; cells are empty where not known."""
    rows = document["rows"]
    sizes = list(rows[0]["sizes"])
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(["operation", "machine", "dtype", *sizes, *_NUMBERS, "efficiency_frac"])
    for row in rows:
        efficiency = None if row["distance"] is None else row["distance"]["efficiency_frac"]
        given = [row["sizes"][name] for name in sizes]
        cells = [
            document["operation"]["name"],
            row["machine"]["id"],
            row["dtype"],
            *given,
            *(row[name] for name in _NUMBERS),
        ]
        writer.writerow([*cells, efficiency])
    return held.getvalue()


MODEL_FORMATS: Mapping[str, Callable[[Record], str]] = {
    "term": to_model_text,
    "json": json_text,
    "md": to_model_markdown,
    "csv": _csv,
    "svg": to_model_svg,
    "html": to_model_page,
}
