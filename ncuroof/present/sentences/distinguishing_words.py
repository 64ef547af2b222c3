"""The words that tell launches of one short name apart: what differs in their full names, then blocks, then grids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ncuroof import wording
from ncuroof.metrics.names import differences
from ncuroof.present.analysed import Record

_SHAPES = ("block", "grid")
"""A block is somebody's choice and a grid often follows from it, so that it is named first."""


def distinguishing_words(kernels: Sequence[Record]) -> list[tuple[str, ...]]:
    """Return for each launch the words by which it differs from others of its short name; none where nothing differs.

    The last words tell most: "Wide, block 32×16" are a template argument, and a block that other launches with it do not have.

    Args:
        kernels: of the document.
    """
    names = list(map(wording.kernel_name, kernels))
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
    sizes = [wording.compact_extent(kernel[shape]) for kernel in kernels]
    found: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for key, size in zip(keys, sizes, strict=True):
        found[key].update(filter(None, [size]))  # of failed launches and graphs, no shape is known
    return [
        (*each, f"{shape} {size}") if size and len(found[key]) > 1 else each
        for key, size, each in zip(keys, sizes, words, strict=True)
    ]
