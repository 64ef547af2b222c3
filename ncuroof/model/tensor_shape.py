"""Shapes of tensors: sizes and element type."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ncuroof.model.dtypes import dtype_of


@dataclass(frozen=True, slots=True)
class TensorShape:
    """The shape and element type of a tensor.

    Attributes:
        sizes: sizes of the dimensions; empty for a 0-d tensor.
        dtype: name of the element type, ncuroof's or PyTorch's.
        n_stored: elements in memory, fewer than the product of the sizes if a dimension is expanded; None if equal to it.
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
        """Size in memory."""
        return (self.n_elements if self.n_stored is None else self.n_stored) * dtype_of(self.dtype).bytes

    @property
    def is_floating(self) -> bool:
        """Whether the elements are floating-point or complex, so that arithmetic on them counts as FLOP."""
        return dtype_of(self.dtype).name.startswith(("fp", "bf", "tf", "mxfp", "nvfp", "complex"))
