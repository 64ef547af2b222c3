"""Text on terminals and in Markdown: the console, wrapped words, aligned columns, and names cut to fit.

Widths are in terminal cells, of which wide characters take two. The console is plain if requested; a closed pipe raises
BrokenPipeError. A name is cut such that what distinguishes it is left. In Markdown, none of a report's text acts as markup.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console

from ncuroof.formatting import printable

WIDTH = 80
"""Of a terminal whose width is not known, and of text for files."""

_NUMBER = re.compile(r"\W*\d[\d.,]*")
_UNIT = re.compile(r"(?:%|[nµm]?s|[kMGTPE]?(?:B|FLOP|OP|Hz|IPS)(?:/\w+)?)\W*")
"""A unit as `ncuroof.formatting` writes it behind a number and a blank, with the punctuation that may follow."""

_SIZE = re.compile(r"0*[1-9][0-9]{0,5}")
"""Valid values of COLUMNS and LINES: rich would accept 0, and fail on non-ASCII digits."""

MOST_WIDTH = 120
"""Wider lines would be hard to read."""

LEAST_HUNG_WIDTH = 24
"""Least cells for text beside its start; on narrower terminals, its other lines are hardly indented."""

LEAST_NAME_WIDTH, LEAST_WORD_WIDTH = 8, 6
"""Least cells for a name, and for a word that distinguishes it from another."""

_CUT = "…"
_END_OF_WORD = re.compile(r".*[^0-9A-Za-z]", re.DOTALL)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_NOT_IN_CODE = re.compile(r"[`|\\]|^\s*$")
"""What cannot be in a code span: characters that end it or its table cell, and blank text."""


def filled(start: str, words: Iterable[str], width: int, *, hanging: str | None = None) -> Iterator[str]:
    """Yield words wrapped to lines of at most `width` cells; words are not split, so that a long word exceeds the width.

    A unit stays beside its number where both fit.

    Args:
        start: prefix of the first line.
        words: what must not be split.
        width: of the lines, in cells.
        hanging: prefix of the other lines; by default as many spaces as `start` is wide.
    """
    indent = " " * cell_len(start) if hanging is None else hanging
    line, is_begun = start, False
    for word in _with_units(words, width - cell_len(indent)):
        if is_begun and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line, is_begun = indent, False
        line += f" {word}" if is_begun else word
        is_begun = True
    yield line


def _with_units(words: Iterable[str], width: int) -> list[str]:
    """Return words, a number and its unit as one unless they are wider than `width` cells together."""
    joined: list[str] = []
    for word in words:
        is_unit = bool(joined and _NUMBER.fullmatch(joined[-1]) and _UNIT.fullmatch(word))
        if is_unit and cell_len(joined[-1]) + 1 + cell_len(word) <= width:
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def screen_width() -> int | None:
    """Return the width to wrap lines to: that of the terminal or of COLUMNS, at most MOST_WIDTH; None where nothing sets one."""
    if is_width_set() or sys.stdout.isatty():
        return min(Console(_environ=_environment()).width, MOST_WIDTH)
    return None


def wrapped_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, wrapped to the terminal with the indentation of their start; whole where there is no terminal."""
    width = screen_width()
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if width is None or cell_len(line) <= width or indent >= width // 2:
            yield line
        else:
            yield from filled(" " * indent, fitting(line.split(), width - indent), width)


def hung(start: str, text: str) -> Iterator[str]:
    """Yield text behind its start, wrapped to the terminal, its other lines indented as far; whole where there is no terminal."""
    width = screen_width()
    if width is None:
        yield start + text
    elif width - cell_len(start) < LEAST_HUNG_WIDTH:
        yield from filled("", fitting(f"{start} {text}".split(), width), width, hanging="  ")
    else:
        yield from filled(start, fitting(text.split(), width - cell_len(start)), width)


def fitting(words: Iterable[str], width: int) -> Iterator[str]:
    """Yield words; one wider than `width` cells is parted at its blanks, and anywhere where that is not enough."""
    width = max(width, 2)  # a wide character takes two cells
    for word in words:
        if cell_len(word) <= width:
            yield word
        else:
            yield from (piece for part in word.split() for piece in chop_cells(part, width))


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[bool]) -> list[str]:
    """Return a line per row, with columns two spaces apart; `left` says for each column whether it is left-aligned."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths, left)).rstrip() for row in rows]


def _padded(cell: str, width: int, is_left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if is_left else blanks + cell


class _ResultConsole(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line handle a closed pipe (`| head`); rich would exit with status 1."""
        raise BrokenPipeError


def result_console(*, color: bool | None = None) -> Console:
    """Return a console on standard output that prints text as it is, without markup.

    Args:
        color: False for plain text without any escape sequence; None lets the terminal decide.
    """
    return _ResultConsole(
        color_system=None if color is False else "auto", highlight=False, markup=False, _environ=_environment()
    )


def is_width_set() -> bool:
    """Return whether COLUMNS is set to a valid width."""
    return "COLUMNS" in _environment()


def _environment() -> dict[str, str]:
    """Return the environment without invalid values of COLUMNS and LINES."""
    return {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES") or _SIZE.fullmatch(value)
    }


def fitted(text: str, n_cells: int) -> str:
    """Return text cut to `n_cells` terminal cells, ending in an ellipsis if cut; wide characters take two cells."""
    return text if cell_len(text) <= n_cells else set_cell_size(text, max(n_cells - 1, 0)).rstrip() + _CUT


def fitted_names(names: Sequence[str], n_cells: Sequence[int]) -> list[str]:
    """Return names, each cut to its number of cells.

    A name that is cut where it could still be another's is cut in its beginning instead: "cudnn_g…bprop_wgmma", as
    "cudnn_generated_fort…" may be that of the forward pass.
    """
    return [_distinct(name, most, {*names} - {name}) for name, most in zip(names, n_cells, strict=True)]


def _distinct(name: str, n_cells: int, others: Iterable[str]) -> str:
    shown = _fitted_name(name, n_cells)
    rivals = [other for other in others if _could_be(shown, other)] if shown != name else []
    if not rivals:
        return shown
    rest = name[_start_of_difference(name, rivals) :]
    beginning = fitted(name, LEAST_NAME_WIDTH)
    return fitted(beginning + rest, n_cells) if rest and cell_len(beginning + rest) < cell_len(name) else shown


def _could_be(shown: str, name: str) -> bool:
    """Return whether a name has the parts of what is shown of one that was cut, in their order."""
    first, *inner, last = shown.split(_CUT)
    place = len(first)
    for part in inner:
        place = name.find(part, place) + len(part) if part in name[place:] else len(name) + 1
    return name.startswith(first) and name.endswith(last) and place + len(last) <= len(name)


def _start_of_difference(name: str, others: Sequence[str]) -> int:
    """Return where the first word starts in which a name differs from any of the others; words end at "_", "<" and the like."""
    letters = zip(name, *others, strict=False)
    n_alike = next((n for n, each in enumerate(letters) if len({*each}) > 1), min(map(len, (name, *others))))
    found = _END_OF_WORD.match(name[:n_alike])
    return found.end() if found else 0


def _fitted_name(name: str, n_cells: int) -> str:
    """Return a name cut to fit: of one with a template argument, which tells most, first the function: "vector…<FillFunctor>"."""
    function, _, argument = name.removesuffix(">").partition("<")
    most = n_cells - min(cell_len(function), LEAST_NAME_WIDTH) - len("<>")
    if cell_len(name) <= n_cells or not argument or most < LEAST_WORD_WIDTH:
        return fitted(name, n_cells)
    tail = f"<{fitted(argument, most)}>"
    return fitted(function, n_cells - cell_len(tail)) + tail


def escaped(words: str) -> str:
    """Return text escaped, so that it renders literally: no link, no table, no HTML."""
    return _SPECIAL.sub(r"\\\1", printable(words))


def code(words: str) -> str:
    """Return a name as a code span that works in tables, too; as escaped text where a code span cannot contain it."""
    return escaped(words) if _NOT_IN_CODE.search(words) else f"`{printable(words)}`"


def table_row(cells: Iterable[str]) -> str:
    """Return a table row; the cells must be Markdown already."""
    return f"| {' | '.join(cells)} |"
