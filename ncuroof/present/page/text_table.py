"""Interned texts: what a thousand kernels share is stored once."""

from __future__ import annotations

from collections.abc import Collection

from ncuroof.formatting import printable

_LEAST_LENGTH = 12
"""Shorter texts are stored in place, which takes less space than a number and a table entry."""


Cell = str | int | float
"""A cell of the page's data: a short text, or the number of a long one in `Texts`."""


class Texts:
    """A table of long texts, each of which is stored once."""

    def __init__(self) -> None:
        self._number_by_text: dict[str, int] = {}

    def add(self, text: str) -> Cell:
        """Return the cell for a text: a short one with its control characters made visible, or the number of a long one."""
        if len(text) < _LEAST_LENGTH:
            return printable(text)
        return self._number_by_text.setdefault(text, len(self._number_by_text))

    def note(self, claim: str, names: Collection[str]) -> list[list[Cell]]:
        """Return a remark on these names, a row of one cell that is shown below the others; no row without names."""
        return [[self.add(f"{claim}: {', '.join(names)}.")]] if names else []

    def table(self) -> list[str]:
        """Return the texts in the order of their numbers, with control characters made visible."""
        return [printable(text) for text in self._number_by_text]
