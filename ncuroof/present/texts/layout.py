"""Words in lines and cells in columns, for terminals: widths are in terminal cells, of which wide characters take two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len


def filled(start: str, words: Iterable[str], width: int, *, hanging: str | None = None) -> Iterator[str]:
    """Yield words in lines of at most `width` cells; no line ends within a word, so that one of a long word is longer.

    Args:
        start: what the first line begins with.
        words: what stands together in a line.
        width: of the lines.
        hanging: what the other lines begin with; by default as many blanks as `start` takes.
    """
    indent = " " * cell_len(start) if hanging is None else hanging
    line, is_begun = start, False
    for word in words:
        if is_begun and cell_len(line) + 1 + cell_len(word) > width:
            yield line
            line, is_begun = indent, False
        line += f" {word}" if is_begun else word
        is_begun = True
    yield line


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[bool]) -> list[str]:
    """Return a line per row, its columns two blanks apart; `left` tells of each whether its cells stand to the left."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths, left)).rstrip() for row in rows]


def _padded(cell: str, width: int, is_left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if is_left else blanks + cell
