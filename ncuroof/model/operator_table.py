"""Reading `profiles/operators.toml`: which of PyTorch's operators compute how much, and which move less than every tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.resources import stated


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The operators whose counts are data.

    Attributes:
        views: move nothing.
        allocations: move nothing.
        fills: write only.
        moves: read and write, without work.
        overwrites: write their first tensor without reading it.
        gathers: read what indices point to.
        scatters: write what indices point to, where they work in place; others copy the whole.
        accumulating_scatters: add to what indices point to.
        pointwise: FLOP per element written.
        reduction: FLOP per element of the first tensor.
    """

    views: frozenset[str]
    allocations: frozenset[str]
    fills: frozenset[str]
    moves: frozenset[str]
    overwrites: frozenset[str]
    gathers: frozenset[str]
    scatters: frozenset[str]
    accumulating_scatters: frozenset[str]
    pointwise: Mapping[str, int]
    reduction: Mapping[str, int]

    @property
    def free(self) -> frozenset[str]:
        """Operators that move nothing."""
        return self.views | self.allocations

    @property
    def workless(self) -> frozenset[str]:
        """Operators that move and compute nothing."""
        return self.fills | self.moves | self.gathers | self.scatters


@cache
def load_operators() -> OperatorTable:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: a list is missing or unknown.
    """
    with stated("operators.toml") as raw:
        tables: dict[str, Any] = {
            name: content if isinstance(content, dict) else frozenset(content) for name, content in raw.items()
        }
        return OperatorTable(**tables)
