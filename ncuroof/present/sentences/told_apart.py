"""What tells reports of one name apart: their folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def with_folders(files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of files, each with its folder before it where several have the name.

    Args:
        files: folder and name of each.
    """
    n_by_name = Counter(name for _, name in files)
    return [f"{folder}/{name}" if folder and n_by_name[name] > 1 else name for folder, name in files]
