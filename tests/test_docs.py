"""The documentation is what the program does."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from ncuroof import errors

ROOT = Path(__file__).resolve().parents[1]


def test_the_page_of_quantities_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/quantities.md").read_text(encoding="utf-8") == module.page(), "run python docs/generate.py"


def test_every_error_is_documented() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.NcuroofError) and kind is not errors.NcuroofError:
            assert f"| `{kind.slug}` | `{name}` |" in page


@pytest.mark.parametrize("page", ["README.md", "docs/verdict.md", "docs/errors.md", "docs/instruction_roofline.md"])
def test_links_between_documents_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
