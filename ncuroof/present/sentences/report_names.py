"""Distinguishes reports of the same file name: by their folders, or by numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ncuroof import wording
from ncuroof.present.analysed import Record


def with_folders(files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of files, preceded by their folder where several files share a name.

    Args:
        files: folder and name of each file.
    """
    n_by_name = Counter(name for _, name in files)
    return [f"{folder}/{name}" if folder and n_by_name[name] > 1 else name for folder, name in files]


def names_of_several(sources: Sequence[Record]) -> list[str]:
    """Return what to call each report of a document where there are several; empty for a single one, which needs no name.

    Args:
        sources: of the document. It contains no folders: reports of the same name are numbered.
    """
    if len(sources) == 1:
        return []
    names = [wording.printable(source["file"]) for source in sources]
    n_by_name = Counter(names)
    return [f"{name} (report {number})" if n_by_name[name] > 1 else name for number, name in enumerate(names, start=1)]
