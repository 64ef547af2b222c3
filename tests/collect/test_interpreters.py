"""Which Python runs a script, by its first line and by where ncuroof is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ncuroof.collect.programs import python_named_in, python_of_scripts


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        ("#!/v/bin/python\nimport re\n", ("/v/bin/python",)),
        ("#!/v/bin/python3.12 -sE\n", ("/v/bin/python3.12", "-sE")),
        ("#! /usr/bin/env python3\n", ("python3",)),
        ("#!/usr/bin/env -S python3 -u\n", ("python3", "-u")),
        ("#!/bin/sh\n'''exec' \"/a b/bin/python3\" \"$0\" \"$@\"\n' '''\n", ("/a b/bin/python3",)),
        ("#!/bin/sh\n'''exec' /very/long/bin/python \"$0\" \"$@\"\n' '''\n", ("/very/long/bin/python",)),
        ("#!/bin/sh\nexec python3 train.py\n", ()),
        ("#!/bin/bash\n", ()),
        ("#!/usr/bin/env\n", ()),
        ("#!\n", ()),
        ("#!/v/bin/python 'unfinished\n", ()),
        ("import torch\n", ()),
        ("\x7fELF\x02\x01", ()),
        ("", ()),
    ],
)
def test_the_first_line_names_python(tmp_path: Path, beginning: str, expected: tuple[str, ...]) -> None:
    script = tmp_path / "script"
    script.write_text(beginning, encoding="utf-8")
    assert python_named_in(str(script)) == expected


@pytest.mark.parametrize("path", ["absent", ".", "a\0b"])
def test_an_unreadable_file_names_no_python(path: str) -> None:
    assert python_named_in(path) == ()


def _executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


@pytest.mark.parametrize("marker", ["pipx_metadata.json", "uv-receipt.toml"])
def test_a_tools_own_environment_does_not_run_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    tool = tmp_path / "tool"
    _executable(tool / "bin" / "python")
    users = _executable(tmp_path / "user" / "python3")
    path = {"PATH": f"{tool / 'bin'}:{users.parent}"}
    monkeypatch.setattr(sys, "prefix", str(tool))
    assert python_of_scripts(path) == sys.executable
    (tool / marker).touch()
    assert python_of_scripts(path) == str(users)
    assert python_of_scripts({"PATH": str(tool / "bin")}) == sys.executable
    assert python_of_scripts({"PATH": f"{_executable(tmp_path / 'other' / 'python').parent}:{users.parent}"}).endswith(
        "other/python"
    )


def test_the_environments_of_uvx_lie_in_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = _executable(tmp_path / "user" / "python")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "Lqo0hqyoM9SshJ9S"))
    assert python_of_scripts({"PATH": str(users.parent)}) == str(users)
