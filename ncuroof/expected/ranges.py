"""NVTX ranges of PyTorch: which names the operator that launched a kernel, which the module, and whether it is a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_OPERATOR = re.compile(r"^aten::\w+|, sizes = \[")
"""Sizes stand in the ranges of operators alone, those of other libraries and autograd functions of the user's among them."""
_AUTOGRAD = re.compile(r"^(autograd::|torch::autograd::|\w+Backward\d*\b|## )")
_SEQUENCE = re.compile(r", seq = (\d{1,18})\b")
_NUMBERS = re.compile(r"(, (seq|op_id) = -?\d{1,18}){1,2}$")
"""Which PyTorch adds to whatever it opens a range for: a `record_function` of the user's is the same one each time."""
_SHAPES = re.compile(r"\s*(\[[\d, ]*\](, )?)+$")
_LONGEST = 1000
"""Of a range that is looked through for shapes at its end, in characters: it takes the square of its length."""
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a program a kernel was launched.

    Attributes:
        operators: ranges of operators, the innermost first.
        module: the ranges that are neither operators' nor autograd's, joined; None without any.
        is_backward: whether autograd opened a range around it.
        is_recomputed: a module's range within autograd's: its forward pass once more, for a gradient (activation checkpointing).
        sequence: number that PyTorch gave to the operator; None where no range has one.
        gradient_of: number of the forward operator whose gradient this is; None elsewhere.
    """

    operators: tuple[str, ...]
    module: str | None
    is_backward: bool
    is_recomputed: bool
    sequence: int | None
    gradient_of: int | None


def place(ranges: Sequence[str]) -> Place:
    """Return the place that open ranges tell of.

    Args:
        ranges: texts, the outermost first.

    Source: PyTorch, torch/csrc/autograd/engine.cpp (`evaluate_function`), torch/csrc/profiler/util.cpp (getNvtxStr).
    """
    autograd = [number for number, text in enumerate(ranges) if _AUTOGRAD.match(text)]
    operators = [number for number, text in enumerate(ranges) if number not in autograd and _OPERATOR.search(text)]
    modules = [number for number in range(len(ranges)) if number not in {*autograd, *operators}]
    return Place(
        operators=tuple(ranges[number] for number in reversed(operators)),
        module=SEPARATOR.join(_name(ranges[number]) for number in modules) or None,
        is_backward=bool(autograd),
        is_recomputed=bool(autograd and modules) and modules[-1] > autograd[0],
        sequence=_innermost_number(ranges[number] for number in operators),
        gradient_of=_innermost_number(ranges[number] for number in autograd),
    )


def _innermost_number(ranges: Iterable[str]) -> int | None:
    numbers = [int(found[1]) for text in ranges if (found := _SEQUENCE.search(text))]
    return numbers[-1] if numbers else None


def _name(text: str) -> str:
    """Return a module's range without the shapes of its inputs: "encoder.layers.0 (Linear) [8, 512]" is the same layer for any."""
    without_numbers = _NUMBERS.sub("", text)
    return _SHAPES.sub("", without_numbers) if len(text) <= _LONGEST else without_numbers
