"""Distinguishes reports of the same file name by their folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def with_folders(files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of files, preceded by their folder where several files share a name.

    Args:
        files: folder and name of each file.
    """
    n_by_name = Counter(name for _, name in files)
    return [f"{folder}/{name}" if folder and n_by_name[name] > 1 else name for folder, name in files]
