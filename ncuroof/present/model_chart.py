"""The roofline of a study of an operation as SVG, and as an offline page with its table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ncuroof._version import __version__
from ncuroof.present.format import flop_rate
from ncuroof.present.model_text import to_model_text
from ncuroof.present.roofline_svg import Mark, roofline_svg

Document = Mapping[str, Any]
Row = Mapping[str, Any]

_MOST_TEXTS = 24
"""Marks that have their size written beside them, where one size is swept; more would not be told apart."""


def to_model_svg(document: Document) -> str:
    """Return the roofline: a roof per machine and precision, a mark per row; rows without a place in it are left out."""
    rows = [row for row in document["rows"] if row["intensity_flop_per_byte"] and row["attainable_flop_per_s"]]
    swept = document["swept"]
    machines = {row["machine"]["id"] for row in rows}
    has_text = len(swept) == 1 and len(rows) <= _MOST_TEXTS * len(machines)
    first = rows[0]["machine"]["id"] if rows else None
    marks = [_mark(row, swept, has_text=has_text and row["machine"]["id"] == first) for row in rows]
    return roofline_svg(f"{document['operation']['name']}, at best", marks)


def _mark(row: Row, swept: list[str], *, has_text: bool) -> Mark:
    sizes = " ".join(f"{name}={row['sizes'][name]}" for name in (swept or row["sizes"]))
    return Mark(
        intensity_flop_per_byte=row["intensity_flop_per_byte"],
        flop_per_s=row["attainable_flop_per_s"],
        told=f"{row['machine']['id']}, {row['dtype']}, {sizes}: {flop_rate(row['attainable_flop_per_s'])}",
        machine=row["machine"]["id"],
        precision=row["precision"],
        peak_flop_per_s=row["peak_flop_per_s"],
        bandwidth_bytes_per_s=row["bandwidth_bytes_per_s"],
        measured_flop_per_s=None if row["distance"] is None else row["distance"]["achieved_flop_per_s"],
        text=str(row["sizes"][swept[0]]) if has_text else "",
    )


def to_model_page(document: Document) -> str:
    """Return an offline page: the picture, and the study as text below it."""
    name = escape(document["operation"]["name"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>ncuroof: model of {name}</title>\n'
        f'<meta name="generator" content="ncuroof {__version__}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;color:#1a1e22;"
        "background:#fff}svg{width:100%;height:auto}pre{overflow:auto;font-size:13px}</style></head>\n"
        f"<body><h1>Model of {name}</h1>\n{to_model_svg(document)}<pre>{escape(to_model_text(document))}</pre></body></html>\n"
    )
