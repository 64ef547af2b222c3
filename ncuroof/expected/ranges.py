"""NVTX ranges of PyTorch: which names the operator that launched a kernel, which the module, and whether it is a gradient."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OPERATOR = re.compile(r"^aten::\w+")
_AUTOGRAD = re.compile(r"^(autograd::|torch::autograd::|\w+Backward\d*\b|## )")
_SEQUENCE = re.compile(r", seq = (\d+)")
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a program a kernel was launched.

    Attributes:
        operators: ranges of operators, the innermost first.
        module: the ranges before the first operator's or autograd's, joined; None without any.
        is_backward: whether autograd opened a range around it.
        sequence: number that PyTorch gives to a forward operator and the gradient's node; None where no range has one.
    """

    operators: tuple[str, ...]
    module: str | None
    is_backward: bool
    sequence: int | None


def place(ranges: Sequence[str]) -> Place:
    """Return the place that open ranges tell of.

    Args:
        ranges: texts, the outermost first.

    Source: PyTorch, torch/csrc/autograd/engine.cpp (`evaluate_function`), torch/csrc/profiler/util.cpp (getNvtxStr).
    """
    is_operator = [bool(_OPERATOR.match(text)) for text in ranges]
    is_autograd = [bool(_AUTOGRAD.match(text)) for text in ranges]
    modules = [text for text, *machine in zip(ranges, is_operator, is_autograd, strict=True) if not any(machine)]
    numbers = [int(found[1]) for text in reversed(ranges) if (found := _SEQUENCE.search(text))]
    return Place(
        operators=tuple(text for text, is_one in zip(reversed(ranges), reversed(is_operator), strict=True) if is_one),
        module=SEPARATOR.join(map(_name, modules)) or None,
        is_backward=any(is_autograd),
        sequence=numbers[-1 if any(is_autograd) else 0] if numbers else None,
    )


def _name(text: str) -> str:
    """Return a module's range without the shapes of its inputs: "encoder.layers.0 (Linear) [8, 512]" is the same layer for any."""
    return re.sub(r"\s*(\[[\d, ]*\](, )?)+$", "", text)
