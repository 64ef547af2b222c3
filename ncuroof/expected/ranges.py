"""Interpret PyTorch's NVTX ranges: operator and module of a launch, and whether it computes a gradient; sum calls by module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.diagnosis import known_sum
from ncuroof.expected.schemas import CALLS, MODULES
from ncuroof.metrics.torch_ranges import TorchRange, torch_range
from ncuroof.tables import check, conform

_AUTOGRAD = re.compile(r"^(autograd::|torch::autograd::|\w+Backward\d*\b|## )")
_SHAPES = re.compile(r"\s*(\[[\d, ]*\](, )?)+$")
_LONGEST = 1000
"""Longest range, in characters, whose trailing shapes are removed: the search takes time quadratic in the length."""
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """Where in a program a kernel was launched.

    Attributes:
        operators: ranges of operators, the innermost first.
        module: the ranges that are neither operators nor autograd's, joined by "/"; None without any.
        is_backward: autograd opened a range around it.
        is_recomputed: a module's range lies within autograd's: its forward pass is repeated (activation checkpointing).
        sequence: PyTorch's sequence number of the innermost operator that has one; None without any.
        gradient_of: sequence number of the forward operator whose gradient this is; None if it is not a gradient.
    """

    operators: tuple[str, ...]
    module: str | None
    is_backward: bool
    is_recomputed: bool
    sequence: int | None
    gradient_of: int | None


def place(ranges: Sequence[str]) -> LaunchSite:
    """Return where in the program a launch is, by the NVTX ranges open around it.

    Args:
        ranges: texts of the ranges, the outermost first.

    Source: PyTorch, torch/csrc/autograd/engine.cpp (`evaluate_function`).
    """
    found = [torch_range(text) for text in ranges]
    autograd = [number for number, text in enumerate(ranges) if _AUTOGRAD.match(text)]
    operators = [number for number, each in enumerate(found) if number not in autograd and each.is_operator]
    modules = [number for number in range(len(ranges)) if number not in {*autograd, *operators}]
    return LaunchSite(
        operators=tuple(ranges[number] for number in reversed(operators)),
        module=SEPARATOR.join(_without_shapes(found[number].name) for number in modules) or None,
        is_backward=bool(autograd),
        is_recomputed=bool(autograd and modules) and modules[-1] > autograd[0],
        sequence=_innermost_number(found[number] for number in operators),
        gradient_of=_innermost_number(found[number] for number in autograd),
    )


def _innermost_number(ranges: Iterable[TorchRange]) -> int | None:
    numbers = [each.sequence for each in ranges if each.sequence is not None]
    return numbers[-1] if numbers else None


def _without_shapes(name: str) -> str:
    """Return a module's name without input shapes: "encoder.layers.0 (Linear) [8, 512]" is the same layer for any shape."""
    return _SHAPES.sub("", name) if len(name) <= _LONGEST else name


def expected_modules(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the calls summed by module, including nested modules, forward and backward together.

    Args:
        calls: CALLS.

    Returns:
        MODULES, the longest first; a call counts in its module and in each module around it.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(calls, CALLS, table="CALLS")
    paths = calls["module"].to_list()
    around = [_with_enclosing_modules(path) for path in paths]
    is_product = pl.col("needed_flop") > 0
    has_bytes = pl.col("compulsory_bytes").is_not_null() & pl.col("dram_bytes").is_not_null()
    return (
        calls.with_columns(pl.Series("around", around, dtype=pl.List(pl.String)))
        .explode("around")
        .group_by(pl.col("around").alias("module"), maintain_order=True)
        .agg(
            pl.len().alias("n_calls"),
            pl.col("duration_ns").sum(),
            pl.col("needed_flop").sum(),
            pl.when(pl.col("counted_flop").filter(is_product).is_not_null().all())
            .then(known_sum(pl.col("counted_flop").filter(is_product)))
            .alias("counted_flop"),
            *(known_sum(pl.col(name).filter(has_bytes)).alias(name) for name in ("compulsory_bytes", "dram_bytes")),
            known_sum(pl.col("roofline_ns")).alias("roofline_ns"),
            known_sum((pl.col("duration_ns") - pl.col("roofline_ns")).clip(lower_bound=0)).alias("above_ns"),
        )
        .sort("duration_ns", descending=True, maintain_order=True)
        .pipe(conform, MODULES)
    )


def _with_enclosing_modules(path: str | None) -> list[str | None]:
    """Return a module's path and those of the modules around it, the outermost first."""
    if path is None:
        return [None]
    parts = path.split(SEPARATOR)
    return [SEPARATOR.join(parts[: end + 1]) for end in range(len(parts))]
