"""Where tools lie, and what folder a GPU has."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import folder_of, located


def test_tools_are_found_where_their_installers_put_them(tmp_path: Path) -> None:
    for version in ("2024.3.2", "2025.10.1", "2025.9.0"):
        path = tmp_path / version / "ncu-of-tests"
        path.parent.mkdir()
        path.write_text("#!/bin/sh\n", encoding="utf-8")
        path.chmod(0o755)
    assert located("ncu-of-tests", (f"{tmp_path}/none", f"{tmp_path}/2*")) == str(tmp_path / "2025.10.1/ncu-of-tests")
    assert located("ncu-of-tests", ()) is None


def test_a_tool_named_by_a_relative_path_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ncu").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert located("./ncu") == str(tmp_path / "ncu")


def test_a_gpu_has_a_folder() -> None:
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090", "")
    assert [folder_of(name) for name in names] == ["h200", "h100-80gb-hbm3", "rtx-4090", "unknown"]
