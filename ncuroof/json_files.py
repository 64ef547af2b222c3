"""JSON files that ncuroof writes and reads again: calibrations, launch counts, baselines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ncuroof.errors import NcuroofError, complaint, found_json
from ncuroof.regular_files import head, oddity

MALFORMED = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""Exceptions that occur while reading a document that does not follow its schema."""

_MOST_MIB = 64
_Content = TypeVar("_Content")


def read_document(
    path: Path,
    parse: Callable[[dict[str, Any]], _Content],
    *,
    schema: str,
    what: str,
    error: type[NcuroofError],
    hint: str,
) -> _Content:
    """Return the content of a document.

    Args:
        path: the file.
        parse: converts the JSON object, without its `schema`; an exception of MALFORMED means that the file is damaged.
        schema: name and version, such as "ncuroof.baseline/1".
        what: the kind of document in words: "a baseline".
        error: error to raise if the file is not such a document.
        hint: what the user can do.

    Raises:
        OSError: the file cannot be read.
        NcuroofError: `error`, if the path is not a regular file, or the file is too large, not JSON, of a different schema, or
        damaged.
    """
    found = oddity(path.stat())
    if found is not None:
        raise error(f"{path}: expected {what}, found {found}", hint=hint)
    raw = head(path, _MOST_MIB * 2**20 + 1)
    if len(raw) > _MOST_MIB * 2**20:
        raise error(f"{path}: expected {what} of at most {_MOST_MIB} MiB, found a larger file", hint=hint)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path}: expected {what}, found a file that is not JSON", hint=hint) from wrong
    if not isinstance(content, dict) or "schema" not in content:
        raise error(f"{path}: expected {what}, found {found_json(content)}", hint=hint)
    if (other := content.pop("schema")) != schema:
        raise error(f"{path}: expected schema {schema}, found {other}", hint=hint)
    try:
        return parse(content)
    except MALFORMED as wrong:
        raise error(f"{path}: the file is damaged: {complaint(wrong)}", hint=hint) from wrong
