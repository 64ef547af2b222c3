"""PyTorch's NVTX ranges around a launch: its operator, its module, and whether it computes a gradient."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_OPERATOR = re.compile(r"^aten::\w+|, sizes = \[")
"""Only ranges of operators contain sizes, including operators of other libraries and the user's autograd functions."""
_AUTOGRAD = re.compile(r"^(autograd::|torch::autograd::|\w+Backward\d*\b|## )")
_SEQUENCE = re.compile(r", seq = (\d{1,18})\b")
_NUMBERS = re.compile(r"(, (seq|op_id) = -?\d{1,18}){1,2}$")
"""PyTorch appends these to every range; without them, a user's `record_function` range has the same name each time."""
_SHAPES = re.compile(r"\s*(\[[\d, ]*\](, )?)+$")
_LONGEST = 1000
"""Longest range, in characters, whose trailing shapes are removed: the search takes time quadratic in the length."""
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a program a kernel was launched.

    Attributes:
        operators: ranges of operators, the innermost first.
        module: the ranges that are neither operators nor autograd's, joined by "/"; None without any.
        is_backward: autograd opened a range around it.
        is_recomputed: a module's range lies within autograd's: its forward pass is repeated (activation checkpointing).
        sequence: PyTorch's sequence number of the innermost operator that has one; None without any.
        gradient_of: sequence number of the forward operator whose gradient this is; None elsewhere.
    """

    operators: tuple[str, ...]
    module: str | None
    is_backward: bool
    is_recomputed: bool
    sequence: int | None
    gradient_of: int | None


def place(ranges: Sequence[str]) -> Place:
    """Return where in the program a launch is, by the NVTX ranges open around it.

    Args:
        ranges: texts of the ranges, the outermost first.

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
    """Return a module's range without input shapes: "encoder.layers.0 (Linear) [8, 512]" is the same layer for any shape."""
    without_numbers = _NUMBERS.sub("", text)
    return _SHAPES.sub("", without_numbers) if len(text) <= _LONGEST else without_numbers
