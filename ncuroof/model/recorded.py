"""Operators as PyTorch writes them into NVTX ranges: `torch.autograd.profiler.emit_nvtx(record_shapes=True)`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ncuroof.model.operation import Operation
from ncuroof.model.operators import operator

_RANGE = re.compile(
    r"^(?P<name>aten::\w+)\b(?:, seq = -?\d+)?(?:, op_id = \d+)?(?:, sizes = (?P<sizes>\[.*?\]))?(?:, input_op_ids = .*)?$"
)


def recorded_operator(text: str, *, dtype: str) -> Operation | None:
    """Return the operator that an NVTX range names, e.g. "aten::mm, seq = 3, op_id = 5, sizes = [[64, 128], [128, 256]]".

    Args:
        text: of the range.
        dtype: of all its tensors: ranges do not say.

    Returns:
        The operation; None where the range is no operator's, or has no sizes.

    Raises:
        UnknownNameError: no such element type.

    Source: PyTorch, torch/csrc/profiler/util.cpp, getNvtxStr: name, sequence number, operator number, sizes.
    """
    found = _RANGE.match(text.strip())
    if found is None or found["sizes"] is None:
        return None
    try:
        sizes = json.loads(found["sizes"])
        return operator(found["name"], list(_shapes(sizes)), dtype=dtype)
    except (json.JSONDecodeError, TypeError):  # a range of someone else's that begins like one of PyTorch's
        return None


def _shapes(sizes: list[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of each argument in order; lists of tensors one by one."""
    for each in sizes:
        if isinstance(each, list) and each and isinstance(each[0], list):
            yield from _shapes(each)
        else:
            yield tuple(int(size) for size in each)
