"""Writes the lists of keys in docs/documents.md from the types in ncuroof/present/schemas.

A list stands between `<!-- keys: SCHEMA KEY … -->` and `<!-- end -->`. What is around it, and the lists of documents that have no
types, is written by hand. `make pages` runs this; the tests compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from ncuroof.present.documents.analysis import SCHEMA as ANALYSIS
from ncuroof.present.documents.comparison import HISTORY_SCHEMA
from ncuroof.present.documents.comparison import SCHEMA as COMPARISON
from ncuroof.present.documents.model import SCHEMA as MODEL
from ncuroof.present.documents.projection import SCHEMA as PROJECTION
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.comparison import ComparisonDocument, HistoryDocument
from ncuroof.present.schemas.model import ModelDocument
from ncuroof.present.schemas.projection import ProjectionDocument

FILE = Path(__file__).resolve().parents[1] / "docs/documents.md"
DOCUMENTS: Mapping[str, type] = {
    ANALYSIS: AnalysisDocument,
    COMPARISON: ComparisonDocument,
    HISTORY_SCHEMA: HistoryDocument,
    PROJECTION: ProjectionDocument,
    MODEL: ModelDocument,
}
"""Type of each document, by its schema."""

_LIST = re.compile(r"(<!-- keys: (\S+) ([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def page() -> str:
    """Return the page with all lists written again.

    Raises:
        ValueError: a key of a document is in no list, or in two.
    """
    told = {schema: dict(_at_top(kind)) for schema, kind in DOCUMENTS.items()}
    listed: list[tuple[str, str]] = []

    def written(found: re.Match[str]) -> str:
        schema, keys = found[2], found[3].split()
        hints = get_type_hints(DOCUMENTS[schema], include_extras=True)
        listed.extend((schema, key) for key in keys)
        lines = [line for key in keys for line in _lines(key, hints[key], told[schema])]
        return "\n".join([found[1], *lines, "", found[4]])

    text = _LIST.sub(written, FILE.read_text(encoding="utf-8"))
    if sorted(listed) != sorted((schema, key) for schema, kind in DOCUMENTS.items() for key in get_type_hints(kind)):
        raise ValueError(f"{FILE}: every key of a document must be in one list, found {listed}")
    return text


def _at_top(document: type) -> Iterator[tuple[type, str]]:
    """Yield the types of the objects right in a document, with their first place: what lies deeper refers to it."""
    for key, hint in reversed(get_type_hints(document).items()):
        suffix, entry = inner_object(hint)
        if entry is not None:
            yield entry, key + suffix


def _lines(path: str, hint: Any, told: dict[type, str]) -> Iterator[str]:
    """Yield the line of a key, and those of the keys within its value.

    Args:
        path: of the key in the document.
        hint: type of its value, with its meaning.
        told: where the objects of each type are described already.
    """
    meaning = "".join(getattr(hint, "__metadata__", ()))
    suffix, entry = inner_object(hint)
    if entry is None:
        yield f"- `{path}{suffix}`: {meaning}"
    elif (place := told.setdefault(entry, path + suffix)) != path + suffix:
        yield f"- `{path}`: {f'{meaning}; ' if meaning else ''}keys as in `{place}`"
    else:
        if meaning:
            yield f"- `{path}`: {meaning}"
        for key, inner in get_type_hints(entry, include_extras=True).items():
            yield from _lines(f"{path}{suffix}>{key}", inner, told)


def inner_object(hint: Any) -> tuple[str, type | None]:
    """Return what leads from a value to the objects in it ("[]" for a list, ">*" for a block with any keys), and their type.

    Their type is None where there are none.
    """
    hint = plain(hint)
    if is_typeddict(hint):
        return "", hint
    if get_origin(hint) is dict:
        suffix, entry = inner_object(get_args(hint)[1])
        return f">*{suffix if entry else ''}", entry
    if get_origin(hint) is list and is_typeddict(get_args(hint)[0]):
        return "[]", get_args(hint)[0]
    return "", None


def plain(hint: Any) -> Any:
    """Return a type without its meaning, and without None unless it is None."""
    hint = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else hint
    return hint


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
