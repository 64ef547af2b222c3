"""Apply hypothetical changes of a program to the time for which each resource is needed.

bytes:0.5     half the DRAM traffic
l2:0.5        half the L2 traffic
flop:0.5      half the arithmetic
sm:0.5        half of the other work of the SMs: instructions, L1 and shared-memory traffic
batch:4       four times the work and the blocks
dtype:bf16    operands of this type: their width, and its rate of tensor work
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
"""The part of L1's time in which tensor instructions read their operands directly from shared memory."""
_L2_OTHERWISE = ("l2_whole", "l2_as_dram")
"""Further measures of L2's time, besides the one by its stages."""
_RESOURCES_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "bytes": ("dram",),
    "l2": ("l2", *_L2_OTHERWISE, "l2_slice"),
    "flop": (*ARITHMETIC, _OPERANDS),
    "sm": ("sm", "l1", _OPERANDS),
    _BATCH: (*RESOURCES, *_L2_OTHERWISE, _OPERANDS),
}
_DRAM_BYTES = ("dram_read_bytes", "dram_write_bytes")
_BANK_BYTES = 4
"""Bytes that a bank of shared memory delivers per cycle. Narrower elements take as many wavefronts as elements of this width.

Source: CUDA C++ Programming Guide, shared memory: 32 banks of 32 bits per clock."""
_TYPES = tuple(name for name, dtype in DTYPES.items() if dtype.matrix)
"""Types of matrix products. Indices and masks are never changed."""
_TENSOR_TYPE = {"fp32": "tensor_tf32"}
"""Tensor cores have no FP32; FP32 operands run as TF32."""
_VECTOR = ("fp64", "fp32")
"""Precisions of vector arithmetic that a change of type can exchange. Narrower types compute in FP32."""


@dataclass(frozen=True, slots=True)
class Change:
    """A hypothetical change.

    Attributes:
        text: as it was written.
        kind: "bytes", "l2", "flop", "sm", "batch" or "dtype".
        factor: factor on the work of this kind; 1 for "dtype".
        dtype: type of the operands, for "dtype".
    """

    text: str
    kind: str
    factor: float = 1.0
    dtype: str = ""


def parse_change(text: str) -> Change:
    """Parse a change.

    Raises:
        ArgumentError: `text` is not a string.
        WhatIfError: `text` is not a change.
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
    """Parse changes that are applied one after another to the same kernels.

    Raises:
        WhatIfError: a text is not a change, or two of them change the type. The second could not know the width that the first one
            left, if only traffic shows the type.
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

    A change of `batch` also scales the number of blocks.

    A change of `dtype` scales the traffic of DRAM and L2 by the new width of the operands over the old width, and the traffic of L1
    and shared memory scales by the same ratio; but without tensor cores, where each lane reads one element, an element counts as at
    least 4 bytes. The old width is the width of the tensor type; else of the type in the kernel's name, because kernels of narrow
    tensors compute in FP32; else of the dominant precision. If the type is unknown, nothing changes. Tensor work moves to the new
    type, with the same number of operations. Vector arithmetic moves between FP64 and FP32 if the data sheet states both peaks;
    narrower types compute in FP32.

    Args:
        busy: BUSY_TIMES.
        wanted: the change.
        only: regular expression for the names of the kernels to change; None for all.
        profiles: data sheet by device of the report, for changes between FP64 and FP32.

    Raises:
        WhatIfError: `only` is no regular expression, or fits no kernel.
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    is_changed = concerned(busy, only)
    if wanted.kind == DTYPE:
        return _retyped(busy, wanted.dtype, is_changed, profiles or {})
    factor = pl.when(is_changed).then(wanted.factor).otherwise(1.0)
    scaled = [pl.col(f"busy.{resource}") * factor for resource in _RESOURCES_BY_KIND[wanted.kind]]
    if wanted.kind == "bytes":
        scaled += [pl.col("ridge_ratio") / factor, pl.col(_DRAM_BYTES) * factor]
    elif wanted.kind == "flop":
        scaled += [pl.col("ridge_ratio") * factor, pl.col("busy.l1") + pl.col(f"busy.{_OPERANDS}") * (factor - 1)]
    elif wanted.kind == _BATCH:
        scaled += [(pl.col("n_blocks") * factor).ceil(), pl.col(_DRAM_BYTES) * factor]
    return busy.with_columns(scaled)


def concerned(busy: pl.DataFrame, only: str | None) -> pl.Series:
    """Return for each launch whether it is to be changed: whether its name matches a regular expression, if there is one.

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


def _known_type(busy: pl.DataFrame) -> pl.Expr:
    """Return the element type that counters or names show; null if neither does."""
    names = {name: element_type((), [name]) for name in busy["name"].drop_nulls().unique()}
    by_name = pl.col("name").replace_strict(names, default=None, return_dtype=pl.String)
    return pl.when(_IS_TENSOR).then(_DENSE.str.strip_prefix(TENSOR_PREFIX)).otherwise(by_name)


def remarks_on_unknown_types(busy: pl.DataFrame, only: str | None) -> list[str]:
    """Return remarks on the launches whose element type is guessed, or unknown, for a change of type.

    Args:
        busy: BUSY_TIMES before the change.
        only: regular expression of the kernels' names that to change; None for all.
    """
    unknown = busy.filter(pl.lit(concerned(busy, only)) & _known_type(busy).is_null())
    guessed = _DENSE.is_not_null()
    remarks = {
        "Neither counters nor names show the element type of {}: their times stay as they are.": unknown.filter(
            ~guessed
        ),
        "Names do not show the element type of {}: it is taken from the arithmetic, which is in FP32 for narrower tensors, too; "
        "where the tensors are as narrow already, nothing is gained.": unknown.filter(guessed),
    }
    return [text.format(_longest(rows)) for text, rows in remarks.items() if not rows.is_empty()]


def _longest(rows: pl.DataFrame) -> str:
    """Return the names of the longest kernels, and how many more there are."""
    times = rows.group_by("short_name").agg((pl.col("duration_ns") * pl.col("weight")).sum())
    names = times.sort("duration_ns", "short_name", descending=[True, False])["short_name"].to_list()
    n_others = len(names) - _MOST_NAMES
    others = f" and {counted(n_others, 'other kernel')}" if n_others > 0 else ""
    return ", ".join(name or "a kernel without a name" for name in names[:_MOST_NAMES]) + others


def _retyped(busy: pl.DataFrame, dtype: str, is_changed: pl.Series, profiles: Profiles) -> pl.DataFrame:
    widths = {name: each.bytes for name, each in DTYPES.items()}
    stored = pl.coalesce(_known_type(busy), _DENSE)
    width = stored.replace_strict(widths, default=None, return_dtype=pl.Float64)
    factor = pl.when(pl.lit(is_changed)).then(DTYPES[dtype].bytes / width).otherwise(1.0).fill_null(1.0)
    lane_factor = max(DTYPES[dtype].bytes, _BANK_BYTES) / width.clip(lower_bound=_BANK_BYTES)
    l1_factor = pl.when(_IS_TENSOR | ~pl.lit(is_changed)).then(factor).otherwise(lane_factor.fill_null(1.0))
    retyped = busy.with_columns(
        pl.col("busy.dram", "busy.l2", *(f"busy.{name}" for name in _L2_OTHERWISE), *_DRAM_BYTES) * factor,
        pl.col("busy.l1", f"busy.{_OPERANDS}") * l1_factor,
        pl.col("ridge_ratio") / factor,
        pl.when(pl.lit(is_changed) & _IS_TENSOR)
        .then(_tensor_type(dtype))
        .otherwise(pl.col("to_precision"))
        .alias("to_precision"),
    )
    return _vector_moved(retyped, DTYPES[dtype].vector[0], is_changed, profiles)


def _tensor_type(dtype: str) -> pl.Expr:
    """Return the tensor type of `dtype` operands. Accumulation in FP16 is kept if the type supports it."""
    name = _TENSOR_TYPE.get(dtype, DTYPES[dtype].matrix[0])
    did = pl.col("to_precision").str.ends_with(FP16_ACCUMULATE_SUFFIX) & pl.lit(name in FP16_ACCUMULATING)
    return pl.when(did).then(pl.lit(name + FP16_ACCUMULATE_SUFFIX)).otherwise(pl.lit(name))


def _vector_moved(busy: pl.DataFrame, to: str, is_changed: pl.Series, profiles: Profiles) -> pl.DataFrame:
    """Move the vector arithmetic of launches that mostly compute in FP64 to FP32, or the reverse."""
    (other,) = (name for name in _VECTOR if name != to)
    slowdown = {device: _peak_ratio(profile, other, to) for device, profile in profiles.items()}
    factor = pl.col("device").replace_strict(slowdown, default=None, return_dtype=pl.Float64)
    is_moved = pl.lit(is_changed) & (pl.col("dominant_precision") == other) & factor.is_not_null()
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
