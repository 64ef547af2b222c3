"""Documents as JSON: a line for each entry of a list, such as a kernel, so that lines can be searched and compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ncuroof._version import __version__
from ncuroof.present.format import printable

TOOL = {"name": "ncuroof", "version": __version__}
"""What every document says it was written by."""


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as text.

    Raises:
        ValueError: it holds a number that is not finite, which JSON cannot say.
    """
    fields = (f" {_line(key)}: {_lines(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _line(value)
    return "[\n" + ",\n".join(f"  {_line(entry)}" for entry in value) + "\n ]"


def _line(value: Any) -> str:
    """Return a value on one line; what a terminal would obey is written as JSON's escapes, which any parser reads back."""
    return printable(json.dumps(value, ensure_ascii=False, allow_nan=False))
