"""What of a document is not as the types in ncuroof/present/schemas say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict


def wrong(value: object, kind: Any, path: str) -> Iterator[str]:
    """Yield what in a value is not as its type says, each with its place: "kernels[]>failed: expected …, found …"."""
    kind = kind.__origin__ if hasattr(kind, "__metadata__") else kind
    if get_origin(kind) in (Union, UnionType):
        found = [list(wrong(value, each, path)) for each in get_args(kind)]
        if all(found):
            yield from min(found, key=len)
    elif is_typeddict(kind):
        yield from _wrong_keys(value, kind, path)
    elif get_origin(kind) is dict and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from wrong(inner, get_args(kind)[1], f"{path}>{key}")
    elif get_origin(kind) in (list, Sequence) and isinstance(value, list | tuple):
        for inner in value:
            yield from wrong(inner, get_args(kind)[0], f"{path}[]")
    elif kind is not Any:
        kinds = {float: (int, float), None: (NoneType,)}.get(kind, (get_origin(kind) or kind,))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            yield f"{path}: expected {kind}, found {value!r}"


def _wrong_keys(value: object, kind: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path}: expected {kind.__name__}, found {value!r}"
        return
    hints = get_type_hints(kind)
    yield from (f"{path}>{key}: not in {kind.__name__}" for key in value.keys() - hints.keys())
    yield from (f"{path}>{key}: missing" for key in kind.__required_keys__ - value.keys())
    for key in value.keys() & hints.keys():
        yield from wrong(value[key], hints[key], f"{path}>{key}".lstrip(">"))
