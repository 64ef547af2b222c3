"""The terminal's first screen: the answer, what to do, and what limits the kernels, in a window of 80 columns and 24 lines.

It uses wider terminals, says the same without colour, and cuts names rather than wrapping them. `terminal_detail` has the rest.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from ncuroof import formatting
from ncuroof.present.analysed import Analysed
from ncuroof.present.palette import verdict_colours
from ncuroof.present.texts.answer import SIMULATED, Answer, Instruction, TimeShare, answer
from ncuroof.present.texts.layout import (
    LEAST_NAME_WIDTH,
    MOST_WIDTH,
    WIDTH,
    filled,
    fitted,
    fitting,
    is_width_set,
    result_console,
)
from ncuroof.present.texts.one_kernel import Card, card, is_one_kernel
from ncuroof.present.texts.terminal_detail import MARK_BY_VERDICT, detail, hanging, kernel_table, prose

_HEIGHT = 25
"""Unused, but without it rich would query the terminal."""

_MOST_LINES = 22
"""Of the window's 24 lines, one is for the page's path and one for the prompt."""

_NUMBER_WIDTH = 4
"""Cells before the text of an instruction."""
_LEAST_ADVICE_WIDTH = 30
"""Least cells of advice beside what it saves; on narrower terminals, what it saves stands below."""
_CARD_ROOMS = ((4, None, 2), (3, None, 2), (3, None, 1), (3, 1, 1), (2, 1, 1), (1, 1, 1))
"""In order of preference: most lines of a piece of a kernel's card, most causes and doubts, and most lines of notes."""
_ALL_OF = frozenset({"because", "sure?"})
"""Rows of a card whose first piece says most."""

_PARENTHESES = re.compile(r" \([^()]*\)")
_FULL, _EMPTY = "█", "░"
_LABEL_WIDTH = 10
_LEAST_BESIDE = 30
"""Least cells for text beside its label; on narrower terminals, the text stands below."""

_WORDS = "Words: ncuroof explain WORD"


@dataclass(frozen=True, slots=True)
class TerminalOptions:
    """What to show of an analysis.

    Attributes:
        is_verbose: every instruction and note, and then the detail.
        is_table: only the kernels, as a table.
        n_kernels: most kernels in that table; None for all.
    """

    is_verbose: bool = False
    is_table: bool = False
    n_kernels: int | None = None


def print_summary(analysis: Analysed, *, color: bool | None = None, view: TerminalOptions | None = None) -> None:
    """Print the summary to standard output.

    Args:
        analysis: an analysis.
        color: False for plain text; None lets the terminal decide.
        view: what to show; by default the first screen.
    """
    console = result_console(color=color)
    console.width = _width(console)
    for line in _screen(analysis, console.width, view or TerminalOptions()):
        console.print(_inert(line), no_wrap=True, crop=False)


def to_text(analysis: Analysed, view: TerminalOptions | None = None) -> str:
    """Return the summary as plain text, 80 columns wide."""
    # In a Jupyter kernel, rich would otherwise display the text and return escape codes.
    console = Console(
        file=io.StringIO(), width=WIDTH, height=_HEIGHT, color_system=None, highlight=False, force_terminal=False,
        force_jupyter=False,
    )  # fmt: skip
    with console.capture() as capture:
        for line in _screen(analysis, WIDTH, view or TerminalOptions()):
            console.print(_inert(line), no_wrap=True, crop=False)
    return capture.get()


def _inert(line: Text) -> Text:
    """Return a line that begins with no command; such a name loses its style, as no other does."""
    plain = formatting.inert(line.plain)
    return line if plain == line.plain else Text(plain)


def _width(console: Console) -> int:
    """Return the width of the terminal, or COLUMNS, limited to readable lines; 80 where there is neither."""
    return min(console.width, MOST_WIDTH) if console.is_terminal or is_width_set() else WIDTH


def _screen(analysis: Analysed, width: int, view: TerminalOptions) -> Iterator[Text]:
    if view.is_table:
        yield from _title(answer(analysis), width)
        yield Text()
        yield from kernel_table(analysis, width, view.n_kernels)
        return
    if is_one_kernel(analysis):
        found = card(analysis)
        yield from _card(found, width, is_verbose=view.is_verbose)
    else:
        told = answer(analysis)
        yield from _whole_answer(told, width) if view.is_verbose else _that_fits(told, width)
    if view.is_verbose:
        yield Text()
        yield from detail(analysis, width)


# ---- a run -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Room:
    """How much of an answer is shown.

    Attributes:
        n_actions: instructions.
        first_lines: most lines of the first one's advice; None for any number, as for the others.
        advice_lines: most lines of the advice of the others.
        n_why: instructions that are followed by the kernels that they are about, and the place.
        note_lines: most lines of notes; None for all of them.
        is_tight: no blank line before the notes.
    """

    n_actions: int
    first_lines: int | None
    advice_lines: int | None
    n_why: int
    note_lines: int | None
    is_tight: bool = False


_ROOMS = (
    _Room(5, 2, 2, 5, 2),
    _Room(4, 2, 2, 4, 2),
    _Room(4, 2, 2, 4, 1),
    _Room(3, 2, 2, 3, 2),
    _Room(3, 2, 2, 3, 1),
    _Room(3, 2, 1, 3, 2),
    _Room(3, 2, 1, 3, 2, is_tight=True),
    _Room(3, 2, 1, 3, 1),
    _Room(3, 2, 1, 3, 1, is_tight=True),
    _Room(3, 1, 1, 3, 1, is_tight=True),
    _Room(3, 2, 1, 1, 1),
    _Room(2, 2, 1, 1, 1),
    _Room(2, 1, 1, 0, 1, is_tight=True),
    _Room(1, 1, 1, 0, 1, is_tight=True),
)
"""In order of preference: the first that leaves the answer short enough is taken."""


def _whole_answer(told: Answer, width: int) -> list[Text]:
    return _answer(told, width, _Room(len(told.actions), None, None, len(told.actions), None))


def _that_fits(told: Answer, width: int) -> list[Text]:
    """Return as much of the answer as the window has room for; a narrower window is given as many more lines."""
    n_lines = _MOST_LINES * max(1, WIDTH // width)
    found = (_answer(told, width, room) for room in _ROOMS)
    smallest: list[Text] = []
    for smallest in found:
        if len(smallest) <= n_lines:
            return smallest
    return smallest[:n_lines]


def _answer(told: Answer, width: int, room: _Room) -> list[Text]:
    end = [*_notes(told.notes, width, room.note_lines), *_hints(width, is_verbose=room.note_lines is None)]
    limits = list(_limits(told, width))
    parts = [
        list(_title(told, width)),
        list(_lead(told, width)),
        list(_bars(told.time, width)),
        list(_actions(told, width, room)),
        *([[*limits, *end]] if room.is_tight else [limits, end]),
    ]
    lines: list[Text] = []
    for part in filter(None, parts):
        lines += [Text(), *part] if lines else part
    return lines


def _lead(told: Answer, width: int) -> Iterator[Text]:
    """Yield the answer in bold and what else belongs to it, as one paragraph."""
    left = len("".join(told.lead.split()))
    for line in prose(f"{told.lead} {told.then}".strip(), width):
        place = 0
        while place < len(line.plain) and left > 0:
            left -= not line.plain[place].isspace()
            place += 1
        line.stylize("bold", 0, place)
        yield line


def _title(told: Answer | Card, width: int) -> Iterator[Text]:
    yield Text(fitted(f"ncuroof · {told.title}", width), style="dim")
    if told.is_simulated:
        yield from prose(SIMULATED, width, style="bold reverse")


def _bars(parts: Sequence[TimeShare], width: int) -> Iterator[Text]:
    """Yield a line for each part of a time: name, bar, share."""
    if not parts:
        return
    names = max(len(part.name) for part in parts)
    places = max(width - names - 10, 0)
    for part, mark in zip(parts, (_FULL, _EMPTY), strict=False):
        bar = mark * max(1, round(part.share_frac * places))
        yield Text(
            fitted(
                f"  {part.name:<{names}} {set_cell_size(bar, places)} {formatting.percent(part.share_frac):>5}", width
            )
        )


def _actions(told: Answer, width: int, room: _Room) -> Iterator[Text]:
    if not told.actions:
        return
    shown = told.actions[: room.n_actions]
    of_what = f"saves, of {told.whole}" if told.whole else "saves"
    n_all = len(told.actions) + told.n_more
    title = "What to do" if len(shown) == n_all else f"What to do ({len(shown)} of {n_all})"
    head = f"{title:<{max(width - cell_len(of_what), len(title) + 1)}}{of_what}"
    heading = Text(head if cell_len(head) <= width else title, style="dim")
    heading.stylize("not dim bold", 0, len("What to do"))
    yield heading
    for number, action in enumerate(shown, start=1):
        yield from _instruction(number, action, width, room)


def _instruction(number: int, action: Instruction, width: int, room: _Room) -> Iterator[Text]:
    """Yield an instruction: its advice with what it saves at the right of the first line, then what it is about."""
    start = f"{number:>2}  "
    beside = width - _NUMBER_WIDTH - cell_len(action.saves) - 2
    is_beside = beside >= _LEAST_ADVICE_WIDTH
    most = room.first_lines if number == 1 else room.advice_lines
    lines = _advice_lines(start, action.advice, width, beside if is_beside else None, most)
    for place, line in enumerate(lines):
        text = Text(line)
        if place == 0 and is_beside:
            text = Text(set_cell_size(line, width - cell_len(action.saves)))
            text.append(action.saves, style="bold")
        yield text
    if not is_beside:
        yield from (Text(line, style="bold") for line in hanging(" " * _NUMBER_WIDTH, action.saves.split(), width))
    if number <= room.n_why:
        yield from _why(action, width, is_whole=room.note_lines is None)


def _advice_lines(start: str, advice: str, width: int, first: int | None, most: int | None) -> list[str]:
    """Return advice wrapped, the first line narrower; to make it fit, it loses its parentheses and clauses, at last its end."""
    clause = formatting.first_clause(advice)
    lines: list[str] = []
    n_lines = len(advice) if most is None else most
    for words in (advice, _PARENTHESES.sub("", advice), clause, _PARENTHESES.sub("", clause)):
        lines = list(_stepped(start, words, width, first))
        if len(lines) <= n_lines:
            return lines
    n_cells = width if n_lines > 1 or first is None else _NUMBER_WIDTH + first
    return [*lines[: n_lines - 1], _ended(lines[n_lines - 1], n_cells)]


def _ended(line: str, n_cells: int) -> str:
    """Return a line that goes on as its whole words that fit, with an ellipsis."""
    while " " in line.strip() and cell_len(line) + 2 > n_cells:
        line = line.rpartition(" ")[0]
    return fitted(f"{line} …", n_cells)


def _stepped(start: str, words: str, width: int, first: int | None) -> Iterator[str]:
    """Yield words wrapped to the width, those of the first line to `first` cells."""
    if first is None:
        yield from hanging(start, words.split(), width)
        return
    narrow = list(filled(start, fitting(words.split(), first), _NUMBER_WIDTH + first))
    yield narrow[0]
    rest = words.split()[len(narrow[0].split()) - len(start.split()) :]
    if rest:
        yield from hanging(" " * _NUMBER_WIDTH, rest, width)


def _why(action: Instruction, width: int, *, is_whole: bool) -> Iterator[Text]:
    """Yield what an instruction is about, in one line unless all is shown: first names are cut, the place never is."""
    place = f", at {action.where}" if action.where else ""
    start = " " * _NUMBER_WIDTH
    if is_whole:
        text = f"{action.kernels}{action.problem}{place}"
        yield from (Text(line, style="dim") for line in hanging(start, text.split(), width))
        return
    left = width - _NUMBER_WIDTH
    problem = action.problem
    if action.kernels:
        name = fitted(action.kernels, max(left - cell_len(problem) - cell_len(place), LEAST_NAME_WIDTH))
        problem = name + fitted(problem, max(left - cell_len(name) - cell_len(place), 1))
    yield Text(fitted(start + fitted(problem, max(left - cell_len(place), 1)) + place, width), style="dim")


def _limits(told: Answer, width: int) -> Iterator[Text]:
    """Yield what limits the kernels: a bar, unless the time has one, and the parts in words; of a single one, the lead says it."""
    if not told.limits or (len(told.limits) == 1 and not told.time):
        return
    heading = Text(fitted(f"What limits the kernels ({told.kernels})", width), style="dim")
    heading.stylize("not dim bold", 0, len("What limits the kernels"))
    yield heading
    if not told.time:
        yield _stacked(told.limits, width)
    pieces = (Text(f"{part.name} {formatting.percent(part.share_frac)}") for part in told.limits)
    marks = (Text(f"{_mark(part)} " if part.verdict else "", style=_colour(part)) for part in told.limits)
    yield from _in_rows(map(Text.assemble, marks, pieces), width, gap=2)


def _mark(part: TimeShare) -> str:
    return MARK_BY_VERDICT.get(part.verdict or "", "-")


def _colour(part: TimeShare) -> str:
    return verdict_colours()[part.verdict] if part.verdict else ""


def _stacked(parts: Sequence[TimeShare], width: int) -> Text:
    """Return the parts as a bar of one line; each has at least one cell."""
    places = [max(1, round(part.share_frac * width)) for part in parts]
    places[places.index(max(places))] += width - sum(places)
    bar = Text(no_wrap=True)
    for part, n_places in zip(parts, places, strict=True):
        bar.append(_mark(part) * max(n_places, 0), style=_colour(part))
    bar.truncate(width)
    return bar


def _in_rows(pieces: Iterable[Text], width: int, gap: int = 3) -> Iterator[Text]:
    """Yield pieces side by side, as many to a line as fit."""
    line = Text()
    for piece in pieces:
        if line and line.cell_len + gap + piece.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, " " * gap, piece) if line else piece
        line.truncate(width, overflow="ellipsis")
    yield line


def _notes(notes: Sequence[str], width: int, n_lines: int | None) -> Iterator[Text]:
    """Yield the first note, cut to some lines, and how many more there are; or every note as a whole."""
    if n_lines is None:
        yield from (line for note in notes for line in prose(f"! {note}", width, style="dim"))
        return
    if not notes:
        return
    more = f" ({len(notes) - 1} more with -v)" if len(notes) > 1 else ""
    lines = [line.plain for line in prose(f"Note: {notes[0]}.{more}", width)]
    if len(lines) > n_lines:
        end = f" … (-v: {formatting.counted(len(notes), 'note')})"
        lines = [
            *lines[: n_lines - 1],
            _ended(lines[n_lines - 1], max(width - cell_len(end) + 2, 1)).removesuffix("…").rstrip() + end,
        ]
        lines[-1] = fitted(lines[-1], width)
    yield from (Text(line, style="dim") for line in lines)


def _hints(width: int, *, is_verbose: bool) -> Iterator[Text]:
    hints = ("Kernels: --kernels", "One: -k NUMBER", *(() if is_verbose else ("More: -v",)), _WORDS)
    yield from _in_rows([Text(hint, style="dim") for hint in hints], width)


# ---- one kernel --------------------------------------------------------------------------------------------------------------


def _card(found: Card, width: int, *, is_verbose: bool) -> Iterator[Text]:
    n_lines = _MOST_LINES * max(1, WIDTH // width)
    lines: list[Text] = []
    for most, n_pieces, note_lines in ((None, None, None),) if is_verbose else _CARD_ROOMS:
        lines = [*_card_lines(found, width, most, n_pieces), *_end_of_card(found, width, note_lines)]
        if is_verbose or len(lines) <= n_lines:
            break
    yield from lines if is_verbose else lines[:n_lines]


def _end_of_card(found: Card, width: int, note_lines: int | None) -> Iterator[Text]:
    yield Text()
    yield from _notes(found.notes, width, note_lines)
    yield from _in_rows([Text(hint, style="dim") for hint in (*(("More: -v",) if note_lines else ()), _WORDS)], width)


def _card_lines(found: Card, width: int, most: int | None, n_pieces: int | None) -> Iterator[Text]:
    yield from _title(found, width)
    yield Text()
    name = fitted(found.name, max(width - cell_len(found.time) - 3, _LEAST_ADVICE_WIDTH))
    head = f"{name}   {found.time}"
    if cell_len(head) <= width:
        yield Text.assemble((name, "bold"), f"   {found.time}")
    else:
        yield Text(fitted(name, width), style="bold")
        yield from prose(found.time, width)
    yield from prose(found.bound, width, style=f"bold {verdict_colours()[found.verdict]}")
    for label, pieces in found.rows:
        if label in ("because", "do"):
            yield Text()
        yield from _row(label, pieces[:n_pieces] if label in _ALL_OF else pieces, width, most)


def _row(label: str, pieces: Sequence[str], width: int, most: int | None) -> Iterator[Text]:
    """Yield the pieces of a row beside its label; short ones share a line, long ones are wrapped."""
    is_beside = width - _LABEL_WIDTH >= _LEAST_BESIDE
    indent = _LABEL_WIDTH if is_beside else 2
    lines: list[str] = []
    for piece in pieces:
        if lines and cell_len(lines[-1]) + 3 + cell_len(piece) <= width - indent:
            lines[-1] += f"   {piece}"
            continue
        own = list(filled("", fitting(piece.split(" "), width - indent), width - indent))
        if most is not None and len(own) > most:
            own = [*own[: most - 1], _ended(own[most - 1], width - indent)]
        lines += own
    if label and not is_beside:
        yield Text(label, style="dim")
    for place, line in enumerate(lines):
        start = f"{label if place == 0 and is_beside else '':<{indent}}"
        yield Text.assemble((start, "dim"), line)
