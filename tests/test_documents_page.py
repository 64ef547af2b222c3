"""docs/documents.md lists the keys of the documents, all of them, and no others; the types of documents are those of real ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.metrics import load_catalogue
from tests.support.document_types import wrong
from tests.support.real_documents import documents
from tools.document_page import DOCUMENTS, inner_object, page, plain

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "documents.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(ncuroof\.\w+/1)`$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
LISTED = {
    name: re.findall(r"^- `([^`]+)`: \S", text, re.MULTILINE)
    for name, text in SECTIONS.items()
    if name not in DOCUMENTS
}
BLOCKS_OF_QUANTITIES = (
    "traffic_bytes",
    "utilisation",
    "occupancy",
    "access",
    "scheduler",
    "launch",
    "arithmetic",
    "check",
)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[dict[str, Any]]]:
    return documents(tmp_path_factory.mktemp("documents"))


def test_the_lists_of_keys_are_those_of_the_types() -> None:
    assert page() == PAGE, "run `make pages`"


def keys(kind: Any, value: object) -> Iterator[tuple[str, str]]:
    """Yield each key in a value, with the name of the type of its object."""
    suffix, entry = inner_object(kind)
    if entry is None or value is None:
        return
    values = value.values() if suffix.startswith(">*") else value if suffix else [value]
    for each in values:
        for key, hint in get_type_hints(entry, include_extras=True).items():
            if key in each:
                yield entry.__name__, key
                yield from keys(plain(hint), each[key])


@pytest.mark.long
@pytest.mark.parametrize("schema", DOCUMENTS)
def test_real_documents_have_the_types_that_they_should_have(real, schema: str) -> None:
    kind = DOCUMENTS[schema]
    assert [each for document in real[schema] for each in wrong(document, kind, "")] == []
    found = {each for document in real[schema] for each in keys(kind, document)}
    known = {name for name, _ in found}
    missing = {(name, key) for kind in every_object(kind) for name, key in every_key(kind)} - found
    assert {(name, key) for name, key in missing if name in known} == set()


def every_object(kind: Any) -> set[Any]:
    """Return the types of a document's objects."""
    found = {kind}
    for hint in get_type_hints(kind).values():
        entry = inner_object(hint)[1]
        if entry is not None and entry not in found:
            found |= every_object(entry)
    return found


def every_key(kind: Any) -> Iterator[tuple[str, str]]:
    return ((kind.__name__, key) for key in get_type_hints(kind))


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (1, float, True),
        (None, float, False),
        (True, float, False),
        (None, float | None, True),
        ([1, None], Sequence[int | None], True),
        (["a"], Sequence[int], False),
        ({"a": 1.0}, dict[str, float], True),
        ({"a": "b"}, dict[str, float], False),
    ],
)
def test_a_value_that_is_not_of_its_type_is_found(value: object, kind: Any, *, found: bool) -> None:
    assert (list(wrong(value, kind, "x")) == []) is found


def test_a_key_that_the_type_lacks_is_found() -> None:
    tool = get_type_hints(next(iter(DOCUMENTS.values())))["tool"]
    assert list(wrong({"name": "ncuroof"}, tool, "tool")) == ["tool>version: missing"]
    assert list(wrong({"name": "ncuroof", "version": "1", "x": 1}, tool, "tool")) == ["tool>x: not in ToolEntry"]


def walk(value: object, path: str, listed: set[str]) -> Iterator[str]:
    """Yield the paths of a value and of all within it; names that are data are a star."""
    yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            whole, star = (f"{path}>{name}".lstrip(">") for name in (key, "*"))
            known = any(each == whole or each.startswith((f"{whole}>", f"{whole}[]")) for each in listed)
            yield from walk(inner, whole if known or not _has(star, listed) else star, listed)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, Mapping):
                yield from walk(inner, f"{path}[]", listed)


def _has(path: str, listed: set[str]) -> bool:
    return any(each == path or each.startswith((f"{path}>", f"{path}[]")) for each in listed)


@pytest.mark.long
def test_every_schema_has_a_section(real) -> None:
    assert set(SECTIONS) == set(real)


@pytest.mark.long
@pytest.mark.parametrize("schema", LISTED)
def test_the_keys_are_those_of_real_documents(real, schema: str) -> None:
    listed = set(LISTED[schema])
    assert len(listed) == len(LISTED[schema])
    found = {path for document in real[schema] for path in walk(document, "", listed)} - {""}
    assert {path for path in found if not _has(path, listed)} == set()
    assert listed - found == set()


@pytest.mark.long
def test_blocks_of_quantities_hold_quantities(real) -> None:
    known = {quantity.name for quantity in load_catalogue().described()}
    for document in real["ncuroof.analysis/1"]:
        for kernel in document["kernels"]:
            held = {f"{block}.{key}" for block in BLOCKS_OF_QUANTITIES for key in kernel[block]}
            assert held - known == {"occupancy.limiters"}
    for document in real["ncuroof.baseline/1"]:
        own = set(re.findall(r"^- `groups>(\w+)`", SECTIONS["ncuroof.baseline/1"], re.MULTILINE))
        assert set(document["groups"]) - own == set(load_comparison_rules().quantities())
