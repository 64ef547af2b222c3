"""Tells apart what has the same name: reports by their folders or by numbers, launches by words of their full names.

Where the full names of launches agree, their blocks and then their grids differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ncuroof import formatting
from ncuroof.metrics.names import differences
from ncuroof.present.analysed import Record
from ncuroof.present.schemas.analysis import SourceEntry
from ncuroof.present.schemas.kernels import KernelEntry

_SHAPES = ("block", "grid")
"""A block is somebody's choice and a grid often follows from it, so that it is named first."""


def with_folders(files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of files, preceded by their folder where several files share a name.

    Args:
        files: folder and name of each file.
    """
    n_by_name = Counter(name for _, name in files)
    return [f"{folder}/{name}" if folder and n_by_name[name] > 1 else name for folder, name in files]


def names_of_several(sources: Sequence[SourceEntry]) -> list[str]:
    """Return what to call each report of a document where there are several; empty for a single one, which needs no name.

    Args:
        sources: of the document. It contains no folders: reports of the same name are numbered.
    """
    if len(sources) == 1:
        return []
    names = [formatting.printable(source["file"]) for source in sources]
    n_by_name = Counter(names)
    return [f"{name} (report {number})" if n_by_name[name] > 1 else name for number, name in enumerate(names, start=1)]


def distinguishing_words(kernels: Sequence[KernelEntry]) -> list[tuple[str, ...]]:
    """Return for each launch the words by which it differs from others of its short name; none where nothing differs.

    The last words tell most: "Wide, block 32×16" are a template argument, and a block that other launches with it do not have.

    Args:
        kernels: of the document.
    """
    names = list(map(formatting.kernel_name, kernels))
    full_names: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for short, kernel in zip(names, kernels, strict=True):
        full_names[short][kernel["name"] or ""] = None
    by_name = {short: differences(full) for short, full in full_names.items()}
    words = [by_name[short][kernel["name"] or ""] for short, kernel in zip(names, kernels, strict=True)]
    for shape in _SHAPES:
        words = _with_shape(shape, names, kernels, words)
    return words


def _with_shape(
    shape: str, names: Sequence[str], kernels: Sequence[Record], words: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the words with the size of the grid or block, where launches on one GPU are called the same and differ in it."""
    keys = [(name, kernel["device"], each) for name, kernel, each in zip(names, kernels, words, strict=True)]
    sizes = [formatting.compact_extent(kernel[shape]) for kernel in kernels]
    found: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for key, size in zip(keys, sizes, strict=True):
        found[key].update(filter(None, [size]))  # of failed launches and graphs, no shape is known
    return [
        (*each, f"{shape} {size}") if size and len(found[key]) > 1 else each
        for key, size, each in zip(keys, sizes, words, strict=True)
    ]
