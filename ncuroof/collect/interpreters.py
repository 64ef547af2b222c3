"""Which Python runs a script: the one that its first line names, or the one that has the user's packages."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

_PYTHON = re.compile(r"python[\d.]*[a-z]?")
_LONGEST_BEGINNING = 1024
_THROUGH_SHELL = re.compile(r"""^'''exec' (?:"([^"]+)"|(\S+)) """)
"""Second line of a script whose interpreter's path is too long for `#!`, or has spaces, as pip and uv write it."""

_OF_A_TOOL = ("pipx_metadata.json", "uv-receipt.toml")
"""Files in environments that hold nothing but one command: those of pipx and of `uv tool install`."""

_OF_UVX = re.compile(r"archive-v\d+")
"""Folder of uv's cache in which the environments of uvx lie."""


def is_python(word: str) -> bool:
    """Return whether a command's first word calls Python."""
    return _PYTHON.fullmatch(Path(word).name) is not None


def python_named_in(script: str) -> tuple[str, ...]:
    """Return the Python, with its options, that a script's `#!` line names; empty if it names none or cannot be read."""
    try:
        with open(script, "rb") as file:  # noqa: PTH123  Path.open raises for a word that holds a null character
            first, second, *_ = (*file.read(_LONGEST_BEGINNING).decode("utf-8", "replace").split("\n"), "")
        words = shlex.split(first.removeprefix("#!")) if first.startswith("#!") else []
    except (OSError, ValueError):
        return ()
    if words and Path(words[0]).name == "sh" and (through := _THROUGH_SHELL.match(second)):
        words = [through[1] or through[2]]
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    return tuple(words) if words and is_python(words[0]) else ()


def python_of_scripts(environment: Mapping[str, str]) -> str:
    """Return the Python that runs ncuroof; where ncuroof has an environment to itself, the first one of PATH outside of that."""
    prefix = Path(sys.prefix)
    if _OF_UVX.fullmatch(prefix.parent.name) or any((prefix / name).exists() for name in _OF_A_TOOL):
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        outside = os.pathsep.join(folder for folder in folders if prefix not in (Path(folder), *Path(folder).parents))
        return shutil.which("python", path=outside) or shutil.which("python3", path=outside) or sys.executable
    return sys.executable
