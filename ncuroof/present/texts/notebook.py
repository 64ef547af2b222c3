"""An analysis as HTML for notebooks: what the terminal's first screen says, without scripts.

Styles stand on the elements, as notebooks drop style sheets; text has the notebook's own colour, in a light and a dark theme alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ncuroof import formatting
from ncuroof.present.analysed import Analysed
from ncuroof.present.palette import page_colours, verdict_colours
from ncuroof.present.texts.answer import SIMULATED, Answer, Instruction, TimeShare, answer
from ncuroof.present.texts.one_kernel import Card, card, is_one_kernel

_FRAME = "max-width:60em;line-height:1.45"
_SOFT = "opacity:.7"
_CELL = "text-align:left;vertical-align:top;padding:.25em .75em .25em 0;background:none"


_MOST_ACTIONS = 5


def to_html(analysed: Analysed) -> str:
    """Return the HTML of an analysis: the card of a single kernel, else the answer."""
    parts = _card(card(analysed)) if is_one_kernel(analysed) else _answer(answer(analysed))
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def _answer(told: Answer) -> Iterator[str]:
    yield from _title(told)
    then = f" {escape(told.then)}" if told.then else ""
    yield f"<p><b>{escape(told.lead)}</b>{then}</p>"
    yield from _bar("What the GPU does in this time", told.time)
    if told.actions:
        yield _table(told)
    yield from _bar(f"What limits the kernels ({told.kernels})", told.limits)
    yield from _notes(told.notes)


def _card(found: Card) -> Iterator[str]:
    yield from _title(found)
    colour = verdict_colours()[found.verdict]
    yield f"<p><b>{escape(found.name)}</b> {escape(found.time)}<br>"
    yield f'<b style="border-left:.5em solid {colour};padding-left:.4em">{escape(found.bound)}</b></p>'
    rows = (
        f'<tr><th style="{_CELL}">{escape(label)}</th><td style="{_CELL}">{"<br>".join(map(escape, pieces))}</td></tr>'
        for label, pieces in found.rows
    )
    yield f"<table>{''.join(rows)}</table>"
    yield from _notes(found.notes)


def _title(told: Answer | Card) -> Iterator[str]:
    yield f'<p style="{_SOFT}">ncuroof · {escape(told.title)}</p>'
    if told.is_simulated:
        yield f"<p><b>{SIMULATED}</b></p>"


def _bar(title: str, parts: Sequence[TimeShare]) -> Iterator[str]:
    """Yield the parts of a time as a bar with a legend; yield nothing for no parts."""
    if not parts:
        return
    yield f"<p><b>{escape(title)}</b></p>"
    pieces = (
        f'<span style="display:inline-block;height:.8em;width:{100 * part.share_frac:.2f}%;background:{_colour(part)}"></span>'
        for part in parts
    )
    yield f'<div style="display:flex;max-width:40em">{"".join(pieces)}</div>'
    legend = (
        f'<span style="color:{_colour(part)}">■</span> {escape(part.name)} {escape(formatting.percent(part.share_frac))}'
        for part in parts
    )
    yield f"<p>{' &nbsp; '.join(legend)}</p>"


def _colour(part: TimeShare) -> str:
    if part.name == "working":
        return verdict_colours()["memory"]
    return verdict_colours()[part.verdict] if part.verdict else page_colours(is_dark=True)["soft"]


def _table(told: Answer) -> str:
    shown = told.actions[:_MOST_ACTIONS]
    n_all = len(told.actions) + told.n_more
    title = "What to do" if len(shown) == n_all else f"What to do ({len(shown)} of {n_all})"
    whole = f", of {escape(told.whole)}" if told.whole else ""
    head = f'<tr><th style="{_CELL}"></th><th style="{_CELL}">{title}</th><th style="{_CELL}">saves{whole}</th></tr>'
    rows = (_row(number, action) for number, action in enumerate(shown, start=1))
    return f"<table>{head}{''.join(rows)}</table>"


def _row(number: int, action: Instruction) -> str:
    place = f", at {action.where}" if action.where else ""
    about = escape(f"{action.kernels}{action.problem}{place}")
    advice = f'{escape(action.advice)}<br><span style="{_SOFT}">{about}</span>'
    cells = (str(number), advice, f"<b>{escape(action.saves)}</b>")
    return "".join(("<tr>", *(f'<td style="{_CELL}">{cell}</td>' for cell in cells), "</tr>"))


def _notes(notes: Iterable[str]) -> Iterator[str]:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    if items:
        yield f'<details style="{_SOFT}"><summary>Notes</summary><ul>{items}</ul></details>'
