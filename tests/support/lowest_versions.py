"""Prints the lowest version of each dependency that pyproject.toml allows, as constraints for pip: `python -m tests.support.lowest_versions`.

NVIDIA's module is excluded, because the package index keeps only a few of its versions.
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import tomli

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def constraints(pyproject: str) -> Iterator[str]:
    """Yield `name==version` for each dependency `name>=version,<more`."""
    for dependency in tomli.loads(pyproject)["project"]["dependencies"]:
        name, lowest = re.fullmatch(r"([\w-]+)>=([\d.]+),<[\d.]+", dependency).groups()
        if name != "ncu-report":
            yield f"{name}=={lowest}"


if __name__ == "__main__":
    print("\n".join(constraints(PYPROJECT.read_text(encoding="utf-8"))))
