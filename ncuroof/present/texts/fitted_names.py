"""Kernel names cut to fit the rows of a terminal, such that what tells them apart is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

LEAST_NAME_WIDTH, LEAST_WORD_WIDTH = 8, 6
"""Least cells for a name, and for a word that distinguishes it from another."""

_CUT = "…"
_END_OF_WORD = re.compile(r".*[^0-9A-Za-z]", re.DOTALL)


def fitted(text: str, n_cells: int) -> str:
    """Return text cut to `n_cells` terminal cells, ending in an ellipsis if cut; wide characters take two cells."""
    return text if cell_len(text) <= n_cells else set_cell_size(text, max(n_cells - 1, 0)).rstrip() + _CUT


def fitted_names(names: Sequence[str], n_cells: Sequence[int]) -> list[str]:
    """Return names, each cut to its number of cells.

    A name that is cut where it could still be another's is cut in its beginning instead: "cudnn_g…bprop_wgmma", as
    "cudnn_generated_fort…" may be that of the forward pass.
    """
    return [_distinct(name, most, {*names} - {name}) for name, most in zip(names, n_cells, strict=True)]


def _distinct(name: str, n_cells: int, others: Iterable[str]) -> str:
    shown = _fitted_name(name, n_cells)
    rivals = [other for other in others if _could_be(shown, other)] if shown != name else []
    if not rivals:
        return shown
    rest = name[_start_of_difference(name, rivals) :]
    beginning = fitted(name, LEAST_NAME_WIDTH)
    return fitted(beginning + rest, n_cells) if rest and cell_len(beginning + rest) < cell_len(name) else shown


def _could_be(shown: str, name: str) -> bool:
    """Return whether a name has the parts of what is shown of one that was cut, in their order."""
    first, *inner, last = shown.split(_CUT)
    place = len(first)
    for part in inner:
        place = name.find(part, place) + len(part) if part in name[place:] else len(name) + 1
    return name.startswith(first) and name.endswith(last) and place + len(last) <= len(name)


def _start_of_difference(name: str, others: Sequence[str]) -> int:
    """Return where the first word starts in which a name differs from any of the others; words end at "_", "<" and the like."""
    letters = zip(name, *others, strict=False)
    n_alike = next((n for n, each in enumerate(letters) if len({*each}) > 1), min(map(len, (name, *others))))
    found = _END_OF_WORD.match(name[:n_alike])
    return found.end() if found else 0


def _fitted_name(name: str, n_cells: int) -> str:
    """Return a name cut to fit: of one with a template argument, which tells most, first the function: "vector…<FillFunctor>"."""
    function, _, argument = name.removesuffix(">").partition("<")
    most = n_cells - min(cell_len(function), LEAST_NAME_WIDTH) - len("<>")
    if cell_len(name) <= n_cells or not argument or most < LEAST_WORD_WIDTH:
        return fitted(name, n_cells)
    tail = f"<{fitted(argument, most)}>"
    return fitted(function, n_cells - cell_len(tail)) + tail
