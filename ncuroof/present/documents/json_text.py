"""Writes documents as JSON with one line per list entry, such as a kernel, so that grep and diff work on them."""

from __future__ import annotations

import json
from typing import Any

from ncuroof._version import __version__
from ncuroof.formatting import printable
from ncuroof.present.analysed import Record
from ncuroof.present.schemas.analysis import ToolEntry

TOOL: ToolEntry = {"name": "ncuroof", "version": __version__}
"""The block `tool` of every document."""


def json_text(document: Record) -> str:
    """Return a document as JSON text.

    Raises:
        ValueError: it contains a number that is not finite, which JSON cannot express.
    """
    fields = (f" {_line(key)}: {_lines(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _line(value)
    return "[\n" + ",\n".join(f"  {_line(entry)}" for entry in value) + "\n ]"


def _line(value: Any) -> str:
    """Return a value as one line of JSON; control characters become JSON escapes, so that no terminal obeys them."""
    return printable(json.dumps(value, ensure_ascii=False, allow_nan=False))
