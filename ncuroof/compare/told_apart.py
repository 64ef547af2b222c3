"""Short names that several kernels of the runs share, with the words of the full names that tell them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from ncuroof.compare.side import Side
from ncuroof.metrics.names import differences

_MOST_CHARACTERS = 60
_MOST_OF_A_WORD = 40
_LEAST_OF_A_NAME = 16


def told_apart(*sides: Side) -> tuple[Side, ...]:
    """Return runs whose groups of one short name have others where their names differ: "launch_global · advance".

    All instantiations of a template have one short name, and all kernels of a program that uses Kokkos.
    """
    full: dict[str, dict[str, None]] = defaultdict(dict)
    for side in sides:
        for short, name in side.groups.select("short_name", "name").iter_rows():
            full[short][name or ""] = None
    words = {short: differences(names) for short, names in full.items() if len(names) > 1}
    return tuple(_named(side, words) for side in sides) if words else sides


def _named(side: Side, words: Mapping[str, Mapping[str, Sequence[str]]]) -> Side:
    names: Iterable[tuple[str, str | None]] = side.groups.select("short_name", "name").iter_rows()
    shown = [_with(short, words.get(short, {}).get(name or "", ())) for short, name in names]
    return replace(side, groups=side.groups.with_columns(pl.Series("short_name", shown, pl.String)))


def _with(short: str, words: Sequence[str]) -> str:
    """Return a short name with as many of the last words as there is room for: these differ where the first are alike."""
    if not words:
        return short
    cut = [_cut_within(word) for word in words]
    while len(cut) > 1 and len(", ".join(cut)) > _MOST_CHARACTERS - _LEAST_OF_A_NAME - len(" · "):
        del cut[0]
    tail = f" · {', '.join(cut)}"
    return _cut(short, _MOST_CHARACTERS - len(tail)) + tail


def _cut(text: str, n_characters: int) -> str:
    return text if len(text) <= n_characters else text[: n_characters - 1] + "…"


def _cut_within(word: str) -> str:
    """Return a word without its middle where it is long: names that differ often begin alike, or end so."""
    half = _MOST_OF_A_WORD // 2
    return word if len(word) <= _MOST_OF_A_WORD else f"{word[:half]}…{word[1 - half :]}"
