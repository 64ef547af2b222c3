"""Texts that a thousand kernels share, stored once."""

from __future__ import annotations

from ncuroof.present.format import printable

_LEAST_LENGTH = 12
"""A shorter text costs less where it stands than as a number and an entry of the table."""


class Texts:
    """A table of the long texts of a page; a cell of the page's data is a short text, or a number of this table."""

    def __init__(self) -> None:
        self._number_by_text: dict[str, int] = {}

    def add(self, text: str) -> str | int:
        """Return the cell that stands for a text, with its control characters made visible."""
        if len(text) < _LEAST_LENGTH:
            return printable(text)
        return self._number_by_text.setdefault(text, len(self._number_by_text))

    def table(self) -> list[str]:
        """Return the texts in the order of their numbers."""
        return [printable(text) for text in self._number_by_text]
