"""Groups of quantities: what the name before the dot, a key of the JSON document, stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from ncuroof.metrics import load_catalogue
from ncuroof.metrics.entries import Quantity
from ncuroof.wording import first_sentence

STALLS = "stalls."
"""Prefix of the quantities of stall reasons."""


@cache
def every_quantity() -> Mapping[str, Quantity]:
    """Return the quantities of the catalogue by name, except the stall reasons."""
    catalogue = load_catalogue()
    return {quantity.name: quantity for quantity in (*catalogue.described(), *catalogue.measured)}


def quantities_by_group() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each quantity by its name, by group; "" is the group of those without one."""
    groups: dict[str, dict[str, str]] = {}
    for name, quantity in every_quantity().items():
        group = name.split(".")[0] if "." in name else ""
        groups.setdefault(group, {})[name] = quantity.doc
    reasons = load_catalogue().stalls.reasons
    groups[STALLS.removesuffix(".")] = {f"{STALLS}{reason}": doc for reason, doc in reasons.items()}
    return groups


def group_lines(group: str) -> Iterator[str]:
    """Yield the quantities of a group, each with the first sentence of its description."""
    yield from (f"{group}: group of quantities", "")
    if group == STALLS.removesuffix("."):
        yield from (load_catalogue().stalls.doc, "")
    yield from (f"  {name}: {first_sentence(doc)}" for name, doc in quantities_by_group()[group].items())
