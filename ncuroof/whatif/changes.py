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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.enums import SPARSE_SUFFIX, TENSOR_PREFIX
from ncuroof.errors import ArgumentError, WhatIfError
from ncuroof.expected.element_types import element_type
from ncuroof.formatting import counted
from ncuroof.model.dtypes import DTYPES
from ncuroof.roofline import GpuProfile
from ncuroof.roofline.gpu_profiles import FP16_ACCUMULATE_SUFFIX, FP16_ACCUMULATING
from ncuroof.tables import check
from ncuroof.whatif.peak_ratios import Profiles
from ncuroof.whatif.schemas import BUSY_TIMES
from ncuroof.whatif.unit_times import ARITHMETIC, RESOURCES

_MOST_NAMES = 3
HINT = "write changes like bytes:0.5, l2:0.5, flop:0.5, sm:0.5, batch:4, dtype:bf16"
DTYPE = "dtype"
_BATCH = "batch"

_OPERANDS = "operands"
"""A part of L1's time: that of operands which tensor instructions read of shared memory themselves."""
_L2_OTHERWISE = ("l2_whole", "l2_as_dram")
"""L2's time by other measures than that of its stages."""
_RESOURCES_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "bytes": ("dram",),
    "l2": ("l2", *_L2_OTHERWISE, "l2_slice"),
    "flop": (*ARITHMETIC, _OPERANDS),
    "sm": ("sm", "l1", _OPERANDS),
    _BATCH: (*RESOURCES, *_L2_OTHERWISE, _OPERANDS),
}
_DRAM_BYTES = ("dram_read_bytes", "dram_write_bytes")
_BANK_BYTES = 4
"""What a bank of shared memory delivers per cycle: a warp reads elements of less in as many wavefronts as those of this width.

Source: CUDA C++ Programming Guide, shared memory: 32 banks of 32 bits per clock."""
_TYPES = tuple(name for name, dtype in DTYPES.items() if dtype.matrix)
"""What products are made in: indices and masks keep their type."""
_TENSOR_TYPE = {"fp32": "tensor_tf32"}
"""Tensor cores have no FP32: operands of that width run as TF32."""
_VECTOR = ("fp64", "fp32")
"""Vector arithmetic that a change of type can move: narrower types are widened to FP32 for it."""


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
        ArgumentError: it is no text.
        WhatIfError: it describes none.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"expected a change as a string, found {type(text).__name__}", hint=HINT)
    kind, _, value = (part.strip() for part in text.partition(":"))
    if kind == DTYPE:
        if value not in _TYPES:
            raise WhatIfError(f"{text!r}: expected a type, one of {', '.join(_TYPES)}", hint=HINT)
        return Change(text, kind, dtype=value)
    if kind not in _RESOURCES_BY_KIND:
        raise WhatIfError(f"not a change: {text!r}", hint=HINT)
    if not re.fullmatch(r"\d+(\.\d+)?(e[+-]?\d+)?", value) or not 0 < float(value) < float("inf"):
        raise WhatIfError(f"{text!r}: expected a positive factor, found {value!r}", hint=HINT)
    return Change(text, kind, factor=float(value))


def parse_changes(texts: Sequence[str]) -> list[Change]:
    """Return the changes that texts describe, to be made one after another in the same kernels.

    Raises:
        WhatIfError: a text describes none, or two of them change the type: where nothing but traffic shows it, the second could not
            tell what the first left.
    """
    found = [parse_change(text) for text in texts]
    types = [each.text for each in found if each.kind == DTYPE]
    if len(types) > 1:
        raise WhatIfError(
            f"expected one change of type, found {' and '.join(types)}",
            hint="try one type per command",
        )
    return found


def change(
    busy: pl.DataFrame, wanted: Change, only: str | None = None, profiles: Profiles | None = None
) -> pl.DataFrame:
    """Return the launches after a change.

    A change of `batch` deals out as many more blocks. A change of `dtype` scales DRAM and L2 traffic by the width of the operands
    over what it was, and that of L1 and shared memory likewise; where lanes read an element each (no tensor cores), it counts as 4
    bytes at least. The width is that of the tensor type, else of the type that the kernel's name tells (kernels of narrow tensors
    compute in FP32), else of the dominant precision. It moves tensor work to the new type, where it takes as many operations, and
    vector arithmetic between FP64 and FP32, where the data sheet states both peaks; narrower types compute in FP32. Where nothing
    tells the type, nothing changes.

    Args:
        busy: BUSY_TIMES.
        wanted: the change.
        only: regular expression of the kernels' names that it concerns; None for all.
        profiles: data sheet by device of the report, for changes between FP64 and FP32.

    Raises:
        WhatIfError: `only` is no regular expression, or fits no kernel.
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    concerns = concerned(busy, only)
    if wanted.kind == DTYPE:
        return _retyped(busy, wanted.dtype, concerns, profiles or {})
    factor = pl.when(concerns).then(wanted.factor).otherwise(1.0)
    scaled = [pl.col(f"busy.{resource}") * factor for resource in _RESOURCES_BY_KIND[wanted.kind]]
    if wanted.kind == "bytes":
        scaled += [pl.col("ridge_ratio") / factor, pl.col(_DRAM_BYTES) * factor]
    elif wanted.kind == "flop":
        scaled += [pl.col("ridge_ratio") * factor, pl.col("busy.l1") + pl.col(f"busy.{_OPERANDS}") * (factor - 1)]
    elif wanted.kind == _BATCH:
        scaled += [(pl.col("n_blocks") * factor).ceil(), pl.col(_DRAM_BYTES) * factor]
    return busy.with_columns(scaled)


def concerned(busy: pl.DataFrame, only: str | None) -> pl.Series:
    """Return whether changes concern each launch: those whose name a regular expression fits, all where there is none.

    Raises:
        WhatIfError: `only` is no regular expression, or fits no kernel.
    """
    if only is None:
        return pl.repeat(value=True, n=busy.height, eager=True)
    try:
        pattern = re.compile(only)
    except re.error as error:
        raise WhatIfError(
            f"{only!r} is not a regular expression: {error}", hint="for example --only 'softmax'"
        ) from error
    found = pl.Series([bool(pattern.search(name or "")) for name in busy["name"]], dtype=pl.Boolean)
    if not found.any():
        raise WhatIfError(f"no kernel name matches {only!r}", hint="ncuroof report lists the names")
    return found


_DENSE = pl.col("dominant_precision").str.replace(f"{SPARSE_SUFFIX}$", "")
_IS_TENSOR = _DENSE.str.starts_with(TENSOR_PREFIX).fill_null(value=False)


def _told_type(busy: pl.DataFrame) -> pl.Expr:
    """Return the element type that counters or names show; null where neither does."""
    names = {name: element_type((), [name]) for name in busy["name"].drop_nulls().unique()}
    by_name = pl.col("name").replace_strict(names, default=None, return_dtype=pl.String)
    return pl.when(_IS_TENSOR).then(_DENSE.str.strip_prefix(TENSOR_PREFIX)).otherwise(by_name)


def untold_types(busy: pl.DataFrame, only: str | None) -> list[str]:
    """Return remarks on the launches whose element type has to be guessed, or cannot be, for a change of type.

    Args:
        busy: BUSY_TIMES before the change.
        only: regular expression of the kernels' names that it concerns; None for all.
    """
    untold = busy.filter(pl.lit(concerned(busy, only)) & _told_type(busy).is_null())
    guessed = _DENSE.is_not_null()
    remarks = {
        "Neither counters nor names show the element type of {}: their times stay as they are.": untold.filter(
            ~guessed
        ),
        "Names do not show the element type of {}: it is taken from the arithmetic, which is in FP32 for narrower tensors, too; "
        "where the tensors are as narrow already, nothing is gained.": untold.filter(guessed),
    }
    return [text.format(_longest(rows)) for text, rows in remarks.items() if not rows.is_empty()]


def _longest(rows: pl.DataFrame) -> str:
    """Return the names of the kernels that take the most time, and how many others there are."""
    times = rows.group_by("short_name").agg((pl.col("duration_ns") * pl.col("weight")).sum())
    names = times.sort("duration_ns", "short_name", descending=[True, False])["short_name"].to_list()
    n_others = len(names) - _MOST_NAMES
    others = f" and {counted(n_others, 'other kernel')}" if n_others > 0 else ""
    return ", ".join(name or "a kernel without a name" for name in names[:_MOST_NAMES]) + others


def _retyped(busy: pl.DataFrame, dtype: str, concerns: pl.Series, profiles: Profiles) -> pl.DataFrame:
    widths = {name: each.bytes for name, each in DTYPES.items()}
    stored = pl.coalesce(_told_type(busy), _DENSE)
    width = stored.replace_strict(widths, default=None, return_dtype=pl.Float64)
    factor = pl.when(pl.lit(concerns)).then(DTYPES[dtype].bytes / width).otherwise(1.0).fill_null(1.0)
    of_lanes = max(DTYPES[dtype].bytes, _BANK_BYTES) / width.clip(lower_bound=_BANK_BYTES)
    l1_factor = pl.when(_IS_TENSOR | ~pl.lit(concerns)).then(factor).otherwise(of_lanes.fill_null(1.0))
    retyped = busy.with_columns(
        pl.col("busy.dram", "busy.l2", *(f"busy.{name}" for name in _L2_OTHERWISE), *_DRAM_BYTES) * factor,
        pl.col("busy.l1", f"busy.{_OPERANDS}") * l1_factor,
        pl.col("ridge_ratio") / factor,
        pl.when(pl.lit(concerns) & _IS_TENSOR)
        .then(_tensor_type(dtype))
        .otherwise(pl.col("to_precision"))
        .alias("to_precision"),
    )
    return _vector_moved(retyped, DTYPES[dtype].vector[0], concerns, profiles)


def _tensor_type(dtype: str) -> pl.Expr:
    """Return the tensor type of operands of `dtype`; products go on adding up in FP16 where they did and the type has that."""
    name = _TENSOR_TYPE.get(dtype, DTYPES[dtype].matrix[0])
    did = pl.col("to_precision").str.ends_with(FP16_ACCUMULATE_SUFFIX) & pl.lit(name in FP16_ACCUMULATING)
    return pl.when(did).then(pl.lit(name + FP16_ACCUMULATE_SUFFIX)).otherwise(pl.lit(name))


def _vector_moved(busy: pl.DataFrame, to: str, concerns: pl.Series, profiles: Profiles) -> pl.DataFrame:
    """Return the launches with the vector arithmetic of those that do most of their work in the other of FP64 and FP32 moved."""
    (other,) = (name for name in _VECTOR if name != to)
    slowdown = {device: _peak_ratio(profile, other, to) for device, profile in profiles.items()}
    factor = pl.col("device").replace_strict(slowdown, default=None, return_dtype=pl.Float64)
    is_moved = pl.lit(concerns) & (pl.col("dominant_precision") == other) & factor.is_not_null()
    moved = {
        f"busy.{to}": pl.col(f"busy.{to}").fill_null(0.0) + pl.col(f"busy.{other}") * factor,
        f"busy.{other}": pl.lit(0.0),
        "ridge_ratio": pl.col("ridge_ratio") * factor,
        "dominant_precision": pl.lit(to),
    }
    return busy.with_columns(
        pl.when(is_moved).then(value).otherwise(pl.col(name)).alias(name) for name, value in moved.items()
    )


def _peak_ratio(profile: GpuProfile | None, was: str, becomes: str) -> float | None:
    peaks = {} if profile is None else profile.peak_flop_per_s
    return peaks[was] / peaks[becomes] if was in peaks and becomes in peaks else None
