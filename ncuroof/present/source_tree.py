"""Where in a repository the source files are that a report names without folders.

A report names a file as `gemm.cu`: the folders of the machine that compiled it say nothing on another one.
Tools that show a result beside the code want `src/gemm.cu`, relative to the root of the repository.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ncuroof.present.analysed import Record

_MOST_FILES = 200_000
"""Of a tree: in a larger one, names stay without folders."""

_MOST_BYTES = 4 << 20
"""Of a source file whose lines are compared."""

_LEFT_OUT = frozenset({"node_modules", "__pycache__"})
"""Folders without a project's own sources, besides hidden ones and virtual environments."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The files of a repository.

    Attributes:
        root: its uppermost folder; None where there is no repository.
        paths: of the files by name, relative to `root`, with `/` between folders, sorted.
    """

    root: Path | None
    paths: Mapping[str, tuple[str, ...]]

    @classmethod
    def around(cls, folder: Path) -> SourceTree:
        """Return the tree of the repository that a folder is in, which the nearest `.git` at or above it tells."""
        roots = (each for each in (folder, *folder.parents) if os.path.lexists(each / ".git"))
        root = next(roots, None)
        return cls(root, {} if root is None else _paths(root))

    def path(self, line: Record) -> str:
        """Return the path of a line's file from the root; its bare name where it is not in the tree, or may be one of several.

        Args:
            line: `file`, without folders, `line`, and `text` where that is known: of files with one name, it tells which is meant.
        """
        name = str(line["file"])
        found = self.paths.get(name.rpartition("/")[2], ())
        if len(found) > 1 and line.get("text"):
            found = tuple(path for path in found if self._says(path, line))
        return (
            found[0] if len(found) == 1 else "/".join(part for part in name.split("/") if part not in ("", ".", ".."))
        )

    def _says(self, path: str, line: Record) -> bool:
        """Return whether a file has the text of a line at its number."""
        assert self.root is not None  # noqa: S101  only a tree has paths
        try:
            with (self.root / path).open("rb") as file:
                lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return False
        at = line["line"] - 1
        return bool(0 <= at < len(lines) and lines[at].strip() == str(line["text"]).strip())


NO_TREE = SourceTree(None, {})
"""Where names stay as they were recorded."""


def _paths(root: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the files below a folder by name; none where they are too many. Links are not followed."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    n_files = 0
    for folder, inside, files in os.walk(root):
        inside[:] = sorted(each for each in inside if each[0] != "." and each not in _LEFT_OUT)
        if "pyvenv.cfg" in files:
            inside.clear()
            continue
        n_files += len(files)
        if n_files > _MOST_FILES:
            return {}
        below = Path(folder).relative_to(root)
        for name in files:
            found[name].append((below / name).as_posix())
    return {name: tuple(sorted(paths)) for name, paths in found.items()}
