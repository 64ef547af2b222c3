"""Display names of quantities."""

from __future__ import annotations

from functools import cache

from ncuroof import wording
from ncuroof.metrics import load_catalogue


@cache
def quantity_label(name: str) -> str:
    """Return a quantity's label from the catalogue, else the words of its name: "achieved occupancy", "L1 hit share"."""
    label = {quantity.name: quantity.label for quantity in load_catalogue().described()}.get(name)
    return label or wording.label(name.rpartition(".")[2].removesuffix("_ns"))
