"""Changes to a program that nobody has written yet: what they do to the time for which each resource is needed.

bytes:0.5     half the DRAM traffic
l2:0.5        half the L2 traffic
flop:0.5      half the arithmetic
sm:0.5        half of what else keeps the SMs busy: instructions, L1 and shared-memory traffic
batch:4       four times the work and the blocks
dtype:bf16    operands of another width; tensor work at that type's rate
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof.errors import WhatIfError
from ncuroof.tables import check
from ncuroof.whatif.busy_times import RESOURCES
from ncuroof.whatif.schemas import BUSY_TIMES
from ncuroof.words import Precision

HINT = "changes look like bytes:0.5, l2:0.5, flop:0.5, sm:0.5, batch:4, dtype:bf16"
DTYPE = "dtype"
_BATCH = "batch"

_RESOURCES_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "bytes": ("dram",),
    "l2": ("l2",),
    "flop": ("fp64", "fp32", "fp16", "tensor"),
    "sm": ("sm",),
    _BATCH: RESOURCES,
}
_WIDTH_BYTES: Mapping[str, float] = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
    "int4": 0.5,
}
"""Bytes of a stored operand; TF32 is stored as FP32."""
_TENSOR = "tensor_"
_TENSOR_TYPE = {"fp32": "tensor_tf32"}
"""Tensor cores have no FP32: operands of that width run as TF32."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change.

    Attributes:
        text: as it was written.
        kind: "bytes", "l2", "flop", "sm", "batch" or "dtype".
        factor: of what the kind names; 1 for "dtype".
        dtype: type of the operands, for "dtype".
    """

    text: str
    kind: str
    factor: float = 1.0
    dtype: str = ""


def parse_change(text: str) -> Change:
    """Return the change that a text describes.

    Raises:
        WhatIfError: it describes none.
    """
    kind, _, value = (part.strip() for part in text.partition(":"))
    if kind == DTYPE:
        if value not in _WIDTH_BYTES:
            raise WhatIfError(f"{text!r}: a type was wanted, one of {', '.join(_WIDTH_BYTES)}", hint=HINT)
        return Change(text, kind, dtype=value)
    if kind not in _RESOURCES_BY_KIND:
        raise WhatIfError(f"no change: {text!r}", hint=HINT)
    if not re.fullmatch(r"\d+(\.\d+)?(e[+-]?\d+)?", value) or not 0 < float(value) < float("inf"):
        raise WhatIfError(f"{text!r}: a positive factor was wanted, found {value!r}", hint=HINT)
    return Change(text, kind, factor=float(value))


def change(busy: pl.DataFrame, wanted: Change, only: str | None = None) -> pl.DataFrame:
    """Return the launches after a change.

    A change of `batch` deals out as many more blocks. A change of `dtype` scales DRAM and L2 traffic by the width of the operands
    over that of the dominant precision, and moves tensor work to the new type, where it takes as many operations; vector
    arithmetic stays as it is. Where the dominant precision is not known, nothing changes.

    Args:
        busy: BUSY_TIMES.
        wanted: the change.
        only: regular expression of the kernels' names that it concerns; None for all.

    Raises:
        WhatIfError: `only` is no regular expression, or fits no kernel.
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    concerns = _concerned(busy, only)
    if wanted.kind == DTYPE:
        return _retyped(busy, wanted.dtype, concerns)
    factor = pl.when(concerns).then(wanted.factor).otherwise(1.0)
    scaled = [pl.col(f"busy.{resource}") * factor for resource in _RESOURCES_BY_KIND[wanted.kind]]
    if wanted.kind == "bytes":
        scaled += [
            pl.col("ridge_ratio") / factor,
            pl.col("dram_read_bytes") * factor,
            pl.col("dram_write_bytes") * factor,
        ]
    elif wanted.kind == "flop":
        scaled.append(pl.col("ridge_ratio") * factor)
    elif wanted.kind == _BATCH:
        scaled.append((pl.col("n_blocks") * factor).ceil())
        scaled += [pl.col(name) * factor for name in ("dram_read_bytes", "dram_write_bytes")]
    return busy.with_columns(scaled)


def _concerned(busy: pl.DataFrame, only: str | None) -> pl.Series:
    if only is None:
        return pl.repeat(value=True, n=busy.height, eager=True)
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise WhatIfError(
            f"{only!r} is no regular expression: {error}", hint="name kernels as in --only 'softmax'"
        ) from error
    found = pl.Series([bool(pattern.search(name or "")) for name in busy["name"]], dtype=pl.Boolean)
    if not found.any():
        raise WhatIfError(f"no kernel's name matches {only!r}", hint="names are those of ncuroof report")
    return found


def _retyped(busy: pl.DataFrame, dtype: str, concerns: pl.Series) -> pl.DataFrame:
    widths = {precision.value: _WIDTH_BYTES.get(precision.value.removeprefix(_TENSOR)) for precision in Precision}
    dense = pl.col("dominant_precision").str.replace(r"_sparse$", "")
    width = dense.replace_strict(list(widths), list(widths.values()), default=None, return_dtype=pl.Float64)
    factor = pl.when(pl.lit(concerns)).then(_WIDTH_BYTES[dtype] / width).otherwise(1.0).fill_null(1.0)
    is_moved = pl.lit(concerns) & dense.str.starts_with(_TENSOR).fill_null(value=False)
    return busy.with_columns(
        *(pl.col(name) * factor for name in ("busy.dram", "busy.l2", "dram_read_bytes", "dram_write_bytes")),
        pl.col("ridge_ratio") / factor,
        pl.when(is_moved)
        .then(pl.lit(_TENSOR_TYPE.get(dtype, _TENSOR + dtype)))
        .otherwise(pl.col("to_precision"))
        .alias("to_precision"),
    )
