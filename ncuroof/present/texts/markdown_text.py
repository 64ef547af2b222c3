"""Escapes text of reports for Markdown, so that none of it acts as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncuroof.wording import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_NOT_IN_CODE = re.compile(r"[`|\\]|^\s*$")
"""What cannot be in a code span: characters that end it or its table cell, and blank text."""


def escaped(words: str) -> str:
    """Return text escaped, so that it renders literally: no link, no table, no HTML."""
    return _SPECIAL.sub(r"\\\1", printable(words))


def code(words: str) -> str:
    """Return a name as a code span that works in tables, too; as escaped text where a code span cannot contain it."""
    return escaped(words) if _NOT_IN_CODE.search(words) else f"`{printable(words)}`"


def table_row(cells: Iterable[str]) -> str:
    """Return a table row; the cells must be Markdown already."""
    return f"| {' | '.join(cells)} |"
