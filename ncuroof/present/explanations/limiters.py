"""Meaning of limiters, and the same in a few plain words, from `profiles/limiters.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ncuroof.present.analysed import Record
from ncuroof.resources import profile_file
from ncuroof.wording import label

_NOT_SPLIT, _EITHER = "stage_not_split", "l1_or_shared"
"""The caveat that holds where which of the two it is was not collected, and the finding that is then about both."""


@cache
def load_limiters() -> Mapping[str, str]:
    """Return the meaning of each limiter by name, except the stall reasons that limit latency-bound launches.

    Raises:
        ProfileError: `profiles/limiters.toml` is malformed.
    """
    return _table("limiter")


def limiter_label(kernel: Record) -> str | None:
    """Return the label of a kernel's limiter, or None; "L1 or shared" where nothing says which of them fills their stage."""
    return label(_limiter(kernel)) if kernel["limiter"] else None


def limiter_in_plain_words(kernel: Record) -> str:
    """Return a kernel's limiter in plain words and its name ("waits for data from memory: long scoreboard"), else its name alone.

    Raises:
        ProfileError: `profiles/limiters.toml` is malformed.
    """
    limiter = _limiter(kernel)
    plain = _plain_words().get(limiter)
    return f"{plain}: {label(limiter)}" if plain else label(limiter)


def _limiter(kernel: Record) -> str:
    limiter: str = kernel["limiter"]
    return _EITHER if _NOT_SPLIT in kernel["caveats"] else limiter


@cache
def _plain_words() -> Mapping[str, str]:
    return _table("in_plain_words")


def _table(name: str) -> Mapping[str, str]:
    with profile_file("limiters.toml") as raw:
        return dict(raw[name])
