"""Wraps words and aligns columns for terminals; widths are in terminal cells, of which wide characters take two."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, chop_cells

WIDTH = 80
"""Of a terminal whose width is not known, and of text for files."""

_NUMBER = re.compile(r"\W*\d[\d.,]*")
_UNIT = re.compile(r"(?:%|[nµm]?s|[kMGTPE]?(?:B|FLOP|OP|Hz|IPS)(?:/\w+)?)\W*")
"""A unit as `ncuroof.wording` writes it behind a number and a blank, with the punctuation that may follow."""


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


def fitting(words: Iterable[str], width: int) -> Iterator[str]:
    """Yield words; one wider than `width` cells is parted at its blanks, and anywhere where that is not enough."""
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
