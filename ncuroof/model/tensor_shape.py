"""Tensors as operators see them: sizes and element type."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncuroof.model.dtypes import dtype_of


@dataclass(frozen=True, slots=True)
class TensorShape:
    """A tensor as an operator sees it.

    Attributes:
        sizes: of its dimensions; empty for a number.
        dtype: of its elements, ours or PyTorch's name.
        n_stored: elements in memory, fewer than the product of the sizes where a dimension is expanded; None for that product.
    """

    sizes: tuple[int, ...]
    dtype: str = "fp32"
    n_stored: int | None = None

    @property
    def n_elements(self) -> int:
        """Product of the sizes."""
        return math.prod(self.sizes)

    @property
    def bytes(self) -> float:
        """In memory."""
        return (self.n_elements if self.n_stored is None else self.n_stored) * dtype_of(self.dtype).bytes

    @property
    def is_floating(self) -> bool:
        """Whether arithmetic on it is counted: of floating-point or complex elements."""
        return dtype_of(self.dtype).name.startswith(("fp", "bf", "tf", "mxfp", "nvfp", "complex"))
