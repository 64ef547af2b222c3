"""Operators from PyTorch's NVTX ranges: `torch.autograd.profiler.emit_nvtx(record_shapes=True)`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from ncuroof.metrics.torch_ranges import torch_range
from ncuroof.model.operation import Operation
from ncuroof.model.operators import operator

_ATEN = re.compile(r"aten::\w+")

_MOST_ELEMENTS = 2**48
"""Largest tensor that is accepted: a thousand times a GPU's memory. Larger sizes are not PyTorch's; their work overflows."""


def recorded_operator(text: str, *, dtype: str) -> Operation | None:
    """Return the operator that an NVTX range names, e.g. "aten::mm, seq = 3, op_id = 5, sizes = [[64, 128], [128, 256]]".

    Args:
        text: text of the range.
        dtype: element type of all its tensors, which ranges do not contain.

    Returns:
        The operation; None if the range is not an operator's, or has no sizes that tensors can have.

    Raises:
        UnknownNameError: no such element type.
    """
    found = torch_range(text.strip())
    if found.sizes is None or not _ATEN.fullmatch(found.name):
        return None
    try:
        shapes = list(_shapes(json.loads(found.sizes)))
        return operator(found.name, shapes, dtype=dtype) if all(map(_is_possible, shapes)) else None
    except (ValueError, TypeError, OverflowError, RecursionError):  # a range of other code that begins like PyTorch's
        return None


def _is_possible(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor can have these sizes; multiplied as floats, since integers of hostile sizes would fill the memory."""
    return all(0 <= size <= _MOST_ELEMENTS for size in shape) and math.prod(map(float, shape)) <= _MOST_ELEMENTS


def _shapes(sizes: list[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of each argument in order; lists of tensors one by one."""
    for each in sizes:
        if isinstance(each, list) and each and isinstance(each[0], list):
            yield from _shapes(each)
        else:
            yield tuple(int(size) for size in each)
