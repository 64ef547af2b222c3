"""docs/documents.md lists the keys of the documents: all of them, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.metrics import load_catalogue
from tests.support.real_documents import documents

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "documents.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `(ncuroof\.\w+/1)`$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
LISTED = {name: re.findall(r"^- `([^`]+)`: \S", text, re.MULTILINE) for name, text in SECTIONS.items()}
SAME_LIST = "summary>actions"
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


def walk(value: object, path: str, listed: set[str]) -> Iterator[str]:
    """Yield the paths of a value and of all within it; names that are data are a star."""
    yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            plain, star = (f"{path}>{name}".lstrip(">") for name in (key, "*"))
            known = any(each == plain or each.startswith((f"{plain}>", f"{plain}[]")) for each in listed)
            yield from walk(inner, plain if known or not _has(star, listed) else star, listed)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, Mapping):
                yield from walk(inner, f"{path}[]", listed)


def _has(path: str, listed: set[str]) -> bool:
    return any(each == path or each.startswith((f"{path}>", f"{path}[]")) for each in listed)


@pytest.mark.long
def test_every_schema_has_a_section(real) -> None:
    assert set(SECTIONS) == set(real)


@pytest.mark.parametrize("schema", LISTED)
def test_the_keys_are_those_of_real_documents(real, schema: str) -> None:
    listed = set(LISTED[schema])
    assert len(listed) == len(LISTED[schema])
    paths = {path for document in real[schema] for path in walk(document, "", listed)}
    found = {path.replace(SAME_LIST, "actions") for path in paths} - {""}
    assert {path for path in found if not _has(path, listed)} == set()
    assert listed - found == set()


def test_blocks_of_quantities_hold_quantities(real) -> None:
    known = {quantity.name for quantity in load_catalogue().described()}
    for document in real["ncuroof.analysis/1"]:
        for kernel in document["kernels"]:
            held = {f"{block}.{key}" for block in BLOCKS_OF_QUANTITIES for key in kernel[block]}
            assert held - known == {"occupancy.limiters"}
    for document in real["ncuroof.baseline/1"]:
        own = set(re.findall(r"^- `groups>(\w+)`", SECTIONS["ncuroof.baseline/1"], re.MULTILINE))
        assert set(document["groups"]) - own == set(load_comparison_rules().quantities())
