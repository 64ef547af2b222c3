"""What the page calls its launches: short names that fit a table, and differ where the kernels do."""

from __future__ import annotations

from collections.abc import Sequence

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.distinguishing_words import distinguishing_words

MOST_NAME = 80
"""Most characters of a name in a table; the full name is shown on hover."""

_LEAST_OF_SHORT, _MOST_WORD = 16, 40
"""Least characters that are left of a short name, and most of a word that distinguishes it from another."""


def launch_names(kernels: Sequence[Record], n_characters: int = MOST_NAME) -> list[str]:
    """Return the short name of each launch, with the words that tell it from others of that name: "copy · Wide, block 32×16".

    Args:
        kernels: of the document.
        n_characters: most characters of a name.
    """
    names = map(wording.kernel_name, kernels)
    return [
        _with(short, words, n_characters) for short, words in zip(names, distinguishing_words(kernels), strict=True)
    ]


def _with(short: str, words: Sequence[str], n_characters: int) -> str:
    """Return a short name with as many of the last words as there is room for: the first ones are shared by more names."""
    shown = [wording.shortened(word, _MOST_WORD) for word in words]
    separator = " · " if shown else ""
    while len(shown) > 1 and _LEAST_OF_SHORT + len(separator) + len(", ".join(shown)) > n_characters:
        del shown[0]
    tail = separator + ", ".join(shown)
    return wording.shortened(short, n_characters - len(tail)) + tail
