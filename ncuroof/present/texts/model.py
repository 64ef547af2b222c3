"""A study of an operation for terminals, 80 columns wide, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncuroof.present.analysed import Record
from ncuroof.present.sentences.model import WORDS, counted, dtypes, explained, is_on_one_machine, notes, options, table
from ncuroof.present.texts.layout import WIDTH, aligned, filled
from ncuroof.present.texts.markdown_text import table_row


def to_model_text(document: Record) -> str:
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


def to_model_markdown(document: Record) -> str:
    """Return the study as Markdown."""
    rows: Sequence[Record] = document["rows"]
    headings, *cells = table(document)
    lines = ["<!-- ncuroof model -->", f"**{_title(document)}**, {rows[0]['counted']}", ""]
    lines += [table_row(headings), table_row(["---", *["---:"] * (len(headings) - 1)])]
    lines += map(table_row, cells)
    items = [f"- {note}" for note in notes(document)]
    return "\n".join([*lines, *(["", *items] if items else [])]) + "\n"


def _title(document: Record) -> str:
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
