"""Text in Markdown: what a report says is escaped, so that none of it acts as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncuroof.present.format import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_NOT_IN_CODE = re.compile(r"[`|\\]|^\s*$")
"""What ends a code span, or the table's cell that it stands in, and of what there is no code span."""


def escaped(words: str) -> str:
    """Return text as it stands: no link, no table, no HTML."""
    return _SPECIAL.sub(r"\\\1", printable(words))


def code(words: str) -> str:
    """Return a name as a code span, in a table as well; escaped, and no code, where a code span cannot hold it."""
    return escaped(words) if _NOT_IN_CODE.search(words) else f"`{printable(words)}`"


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"
