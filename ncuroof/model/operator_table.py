"""Reading `profiles/operators.toml`: FLOPs of PyTorch's operators, and operators that do not move every tensor once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.resources import profile_file


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """Operators whose work and traffic are given by a table instead of code, by plain name.

    Attributes:
        views: move nothing: results share the memory of their input.
        allocations: move nothing: allocations and queries of properties.
        fills: write whole tensors and read nothing.
        moves: read and write, without counted work.
        overwrites: write their first tensor without reading it.
        gathers: read only what the indices select, and the indices.
        scatters: in place, write only what the indices select; out of place, copy the whole tensor too.
        accumulating_scatters: as scatters, but add to the old contents, 1 FLOP per value.
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
        """Operators that move data, but compute nothing."""
        return self.fills | self.moves | self.gathers | self.scatters


@cache
def load_operators() -> OperatorTable:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: a list is missing or unknown.
    """
    with profile_file("operators.toml") as raw:
        tables: dict[str, Any] = {
            name: content if isinstance(content, dict) else frozenset(content) for name, content in raw.items()
        }
        return OperatorTable(**tables)
