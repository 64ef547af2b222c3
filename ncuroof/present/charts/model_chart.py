"""The roofline of a study of an operation: as SVG, and as an offline page with the study's table."""

from __future__ import annotations

from html import escape

from ncuroof._version import __version__
from ncuroof.present.analysed import Record
from ncuroof.present.charts.roofline_svg import DARK_STYLE, Mark, roofline_svg
from ncuroof.present.sentences.model import WORDS, counted, explained, subject, table
from ncuroof.wording import flop_rate

_MOST_TEXTS = 24
"""Most marks per machine that are labelled with the swept size; more labels would overlap."""


_STYLE = (
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1a1e22;--panel:#f5f6f7;--line:#d8dde2}"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;color:var(--ink);"
    "background:var(--paper);overflow-wrap:anywhere}h1{font-size:1.25rem}svg{width:100%;height:auto}.scroll{overflow:auto}"
    "table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:2px 10px;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line);font-weight:400}"
    "th{background:var(--panel)}.number{text-align:right}"
    "@media (prefers-color-scheme:dark){:root{--paper:#15181b;--ink:#e3e7ea;--panel:#1d2125;--line:#363d44}"
    f"{DARK_STYLE}}}"
)


def to_model_svg(document: Record) -> str:
    """Return the roofline: a roof per machine and precision, a mark per row that has an intensity and an attainable rate."""
    rows = [row for row in document["rows"] if row["intensity_flop_per_byte"] and row["attainable_flop_per_s"]]
    swept = document["swept"]
    machines = {row["machine"]["id"] for row in rows}
    has_text = len(swept) == 1 and len(rows) <= _MOST_TEXTS * len(machines)
    first = rows[0]["machine"]["id"] if rows else None
    marks = [_mark(row, swept, has_text=has_text and row["machine"]["id"] == first) for row in rows]
    return roofline_svg(f"{subject(document)}, at best", marks)


def _mark(row: Record, swept: list[str], *, has_text: bool) -> Mark:
    sizes = " ".join(f"{name}={row['sizes'][name]}" for name in (swept or row["sizes"]))
    return Mark(
        intensity_flop_per_byte=row["intensity_flop_per_byte"],
        flop_per_s=row["attainable_flop_per_s"],
        tooltip=f"{row['machine']['id']}, {row['dtype']}, {sizes}: {flop_rate(row['attainable_flop_per_s'], row['precision'])}",
        machine=row["machine"]["id"],
        precision=row["precision"],
        peak_flop_per_s=row["peak_flop_per_s"],
        bandwidth_bytes_per_s=row["bandwidth_bytes_per_s"],
        measured_flop_per_s=None if row["distance"] is None else row["distance"]["achieved_flop_per_s"],
        text=str(row["sizes"][swept[0]]) if has_text else "",
    )


def to_model_page(document: Record) -> str:
    """Return an offline page: the chart, the study as a table, and explanations."""
    name = escape(subject(document))
    notes = "".join(f"<p>{_lines(block)}</p>\n" for block in explained(document))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name} – ncuroof</title>\n'
        f'<meta name="generator" content="ncuroof {__version__}"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style></head>\n"
        f"<body><h1>{name}</h1>\n<p>{_lines(counted(document))}</p>\n{to_model_svg(document)}{_table(document)}{notes}</body></html>\n"
    )


def _lines(lines: list[str]) -> str:
    return "<br>\n".join(escape(line.strip()) for line in lines)


def _table(document: Record) -> str:
    """Return the table of the study, with numbers right-aligned."""
    headings, *rows = table(document)
    kinds = ["" if heading in WORDS else ' class="number"' for heading in headings]

    def line(cells: list[str], tag: str) -> str:
        drawn = (f"<{tag}{kind}>{escape(cell)}</{tag[:2]}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(drawn)}</tr>\n"

    head, body = line(headings, 'th scope="col"'), "".join(line(cells, "td") for cells in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="The study as a table"><table>'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>\n"
    )
