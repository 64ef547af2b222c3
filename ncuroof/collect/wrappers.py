"""Finds the command that another one runs: what `uv run`, `env` or `numactl` stands before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from ncuroof.ncu.settings import Settings, Wrapper, option_name

_END = "--"
_MODULE = ("-m", "--module")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
"""Of a variable, which `env` takes before the command."""

_Known = TypeVar("_Known")


class Wrapped(NamedTuple):
    """A command behind its wrapper.

    Attributes:
        wrapper: the words of the wrapper with its options.
        words: the command with its arguments.
        own_python: the command finds its Python in another environment than ncuroof's.
    """

    wrapper: tuple[str, ...]
    words: tuple[str, ...]
    own_python: bool


def unwrapped(words: Sequence[str], settings: Settings) -> Wrapped | None:
    """Return the command that a known wrapper runs; None if the words call no such wrapper, or it runs nothing.

    In an environment of its own, a script is a command as well: `uv run train.py` is a call of Python, as is `uv run -m train`.

    Args:
        words: a command and its arguments.
        settings: of profiles/collect.toml.
    """
    n_words, wrapper = known_command(words, settings.wrappers)
    if wrapper is None:
        return None
    place, is_module = _first_of_command(words, n_words, wrapper)
    if place >= len(words):
        return None
    command = ("python", "-m", *words[place + 1 :]) if is_module else tuple(words[place:])
    return Wrapped(tuple(words[:place]), command, wrapper.own_python)


def known_command(words: Sequence[str], known: Mapping[str, _Known]) -> tuple[int, _Known | None]:
    """Return how many of the first words call a command that is in `known`, and its entry; 0 and None if none is called."""
    for n_words in (1, 2):
        found = known.get(" ".join((Path(words[0]).name, *words[1:n_words])))
        if found is not None:
            return n_words, found
    return 0, None


def _first_of_command(words: Sequence[str], place: int, wrapper: Wrapper) -> tuple[int, bool]:
    """Return the index of the command's first word, and whether that is an option with which the wrapper runs a Python module."""
    while place < len(words) and (words[place].startswith("-") or _ASSIGNMENT.fullmatch(words[place])):
        if words[place] == _END:
            return place + 1 + wrapper.n_words, False
        name = option_name(words[place])
        if wrapper.own_python and words[place] in _MODULE and name not in wrapper.values:
            return place, True
        place += 2 if name in wrapper.values and words[place].startswith("-") else 1
    return place + wrapper.n_words, False
