"""What PyTorch writes into its NVTX ranges: the name, then numbers of the call and the sizes of its inputs.

`torch.autograd.profiler.emit_nvtx(record_shapes=True)` opens "aten::mm, seq = 3, op_id = 5, sizes = [[64, 128], [128, 256]]".

Source: PyTorch, torch/csrc/profiler/util.cpp (getNvtxStr, shapesToStr, inputOpIdsToStr).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

_AFTER_THE_NAME = (
    r"(?:, seq = (?P<sequence>-?[0-9]{1,18}))?(?:, op_id = (?P<op_id>-?[0-9]{1,18}))?"
    r"(?P<of_sizes>, sizes = (?P<sizes>\[[-0-9, \[\]]*\]))?(?:, input_op_ids = \[[-0-9, ()]*\])?$"
)
"""Searched for in the text of a range; nothing, at its end, where the range is not PyTorch's."""

_PATTERN = re.compile(_AFTER_THE_NAME)
_ATEN = "aten::"
_SCALAR = ", []"


class TorchRange(NamedTuple):
    """The parts of an NVTX range; of a range that PyTorch did not write, the name is the whole text.

    Attributes:
        name: "aten::mm", or what the user named the range.
        sequence: number that a forward operator shares with its gradient; None without one.
        op_id: number of the call; None without one.
        sizes: of the inputs, as JSON; None unless PyTorch recorded them.
    """

    name: str
    sequence: int | None = None
    op_id: int | None = None
    sizes: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether it is an operator's: only those have sizes, including other libraries' and the user's autograd functions."""
        return self.name.startswith(_ATEN) or self.sizes is not None

    @property
    def shapes(self) -> str:
        """The sizes of the inputs that are tensors, as JSON; empty without any recorded."""
        return (self.sizes or "").replace(_SCALAR, "")


def torch_range(text: str) -> TorchRange:
    """Return the parts of an NVTX range."""
    found = _PATTERN.search(text)
    if found is None:
        return TorchRange(text)
    sequence, op_id = (None if found[part] is None else int(found[part]) for part in ("sequence", "op_id"))
    return TorchRange(text[: found.start()], sequence, op_id, found["sizes"])


def range_names(nvtx: pl.Expr) -> pl.Expr:
    """Return the names of the open NVTX ranges, for PyTorch's operators without the numbers that differ from call to call."""
    return nvtx.list.eval(pl.element().str.replace(_AFTER_THE_NAME, "${of_sizes}"))
