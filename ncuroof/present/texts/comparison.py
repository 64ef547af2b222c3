"""A comparison for people: on the terminal, and as Markdown for a job's summary or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.change import both_times
from ncuroof.present.sentences.comparison import (
    ALONE,
    alone,
    changed_findings,
    changed_lines,
    how_matched,
    match_name,
    moved,
    outcome,
    short_group,
    side,
)
from ncuroof.present.texts.layout import WIDTH, filled
from ncuroof.present.texts.markdown_text import code, escaped, table_row

_MOST_LINES = 20


def to_text(document: Record) -> str:
    """Return a comparison as lines of plain text."""
    return (
        "\n".join(["ncuroof · compare", *heading(document), *_changes(document), *_others(document), *_gates(document)])
        + "\n"
    )


def to_markdown(document: Record) -> str:
    """Return a comparison as Markdown: what moved as a table, gates as a list."""
    lines = [
        "<!-- ncuroof compare -->",
        "",
        "# ncuroof compare",
        "",
        *(f"{escaped(line)}  " for line in heading(document)),
        "",
    ]
    shown = moved(document)
    if shown:
        lines += ["| kernel | before | after | change |", "|---|---:|---:|---|"]
        lines += map(_table_row, shown[:_MOST_LINES])
        lines.append("")
    lines += [f"- {escaped(line.strip())}" for line in _others(document)]
    if document["gates"]:
        lines += ["", "## Gates", ""]
        lines += [
            f"- {'✅' if gate['has_passed'] else '❌'} {code(gate['gate'])}: {escaped('; '.join(gate['reasons']))}"
            for gate in document["gates"]
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table_row(match: Record) -> str:
    how = how_matched(match)
    name = code(match_name(match)) + (f"<br>match: {escaped(how)}" if how else "")
    change = "<br>".join(map(escaped, (match["sentence"], *changed_findings(match), *changed_lines(match))))
    return table_row((name, *map(wording.duration, match["duration_ns"]), change))


def heading(document: Record) -> Iterator[str]:
    """Yield the change as a whole, then the runs, then what else is to be known of it."""
    answer, *others = outcome(document)
    yield answer
    yield f"before: {side(document['before'])}"
    yield f"after:  {side(document['after'])}"
    yield from others


def _changes(document: Record) -> Iterator[str]:
    shown = moved(document)
    for match in shown[:_MOST_LINES]:
        yield ""
        yield f"  {match_name(match)}"
        yield f"    {both_times(match['duration_ns'])}, above the roofline {both_times(match['recoverable_ns'])}"
        if how := how_matched(match):
            yield from filled("    ", f"match: {how}".split(), WIDTH)
        yield from filled("    ", match["sentence"].split(), WIDTH)
        for line in changed_findings(match):
            yield from filled("    ", line.split(), WIDTH)
        yield from (wording.shortened(f"    {line}", WIDTH) for line in changed_lines(match))
    if len(shown) > _MOST_LINES:
        yield f"  {len(shown) - _MOST_LINES} more in the JSON document"


def _others(document: Record) -> Iterator[str]:
    for key, words in ALONE.items():
        groups = document[key]
        for group in groups[:_MOST_LINES]:
            yield f"  {words}: {wording.printable(short_group(group))}, {alone(group, key)}"
        if len(groups) > _MOST_LINES:
            yield f"  {words}: {len(groups) - _MOST_LINES} more in the JSON document"


def _gates(document: Record) -> Iterator[str]:
    if document["gates"]:
        yield ""
    for gate in document["gates"]:
        yield f"gate {'passed' if gate['has_passed'] else 'FAILED'}: {wording.printable(gate['gate'])}"
        for reason in gate["reasons"]:
            yield from filled("  ", wording.printable(reason).split(), WIDTH)
