"""Tensor work from executed instructions by opcode: the opcode of a tensor instruction contains the shape of its matrix product.

Reports of `--set full` contain these counts, also those from before Nsight Compute counted tensor operations.

An instruction does 2·M·N·K operations. `HMMA.16816` has M = 16, N = 8, K = 16. Four warps issue an `HGMMA.64x128x16` together, and
it is counted in each of them. Source: PTX ISA, "Matrix shape" of mma and wgmma; opcodes as the CUDA Binary Utilities print them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from ncuroof.metrics.entries import TensorOpcodes
from ncuroof.words import SPARSE_SUFFIX

_NS_PER_S = 1e9
_SHAPE = re.compile(r"(?P<m>16|8)8(?P<k>4|8|16|32|64|128|256)")
_GROUP_SHAPE = re.compile(r"(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)")
_N = 8
_WARPS_OF_A_GROUP = 4
_SPARSE = "SP"
_VOLTA_STEPS = re.compile(r"HMMA\.884\.F16\.F16\.STEP\d")
"""With FP16 accumulation, Volta needs half as many steps per product as with FP32, and each does twice the work."""

_ACCUMULATORS = {"F16": "fp16", "F32": "fp32"}
"""Accumulation type by the modifier that follows the shape."""

_MOST_DIGITS = 4
_ROW = pl.Struct(
    {"precision": pl.String(), "flop": pl.Float64(), "definition": pl.String(), "accumulates_in": pl.String()}
)


@dataclass(frozen=True, slots=True)
class _Product:
    """What one warp-level instruction does: operations, precision of the inputs, accumulation type (None if unknown)."""

    flop: float
    precision: str
    accumulator: str | None


def opcode_work(
    texts: pl.Series, capabilities: pl.Series, duration_ns: pl.Series, opcodes: TensorOpcodes
) -> pl.DataFrame:
    """Return the tensor work of kernels by opcode, as rows of WORK without `flop` and with null peaks.

    A kernel with a tensor instruction of unknown shape gets no rows: its work would be incomplete. Nor does a kernel with an
    instruction to which the data sheet's peak does not apply: these reports contain no peaks, and its roof would be wrong.

    Args:
        texts: opcodes and counts of each kernel (`instances_text`); null where they were not collected.
        capabilities: compute capability (major × 10 + minor) of each kernel's GPU, or null.
        duration_ns: duration of each kernel.
        opcodes: what opcodes say.
    """
    keys = list(zip(texts, capabilities, strict=True))
    rows_by_key = {(text, chip): list(_rows(text, chip, opcodes)) for text, chip in set(keys) if text is not None}
    ids = pl.int_range(len(texts), dtype=pl.UInt32, eager=True).alias("id")
    found = pl.Series("row", [rows_by_key.get(each) for each in keys], dtype=pl.List(_ROW))
    frame = pl.DataFrame([ids, found, duration_ns.alias("duration_ns")])
    return (
        frame.explode("row")
        .drop_nulls("row")
        .unnest("row")
        .select(
            "id",
            "precision",
            (_NS_PER_S * pl.col("flop") / pl.col("duration_ns")).alias("flop_per_s"),
            pl.lit(None, pl.Float64).alias("peak_flop_per_s"),
            "definition",
            pl.lit(value=True).alias("reliable"),
            "accumulates_in",
        )
    )


def _rows(text: str, capability: float | None, opcodes: TensorOpcodes) -> Iterator[tuple[str, float, str, str | None]]:
    """Yield, per precision: precision, operations, definition, and the accumulation type of more than half of them or None."""
    words = text.split(" ")
    counts = dict(zip(words[::2], map(float, words[1::2]), strict=False))
    products = {opcode: _product(opcode, opcodes) for opcode, count in counts.items() if count}
    flop: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    accumulated: dict[tuple[str, str | None], float] = {}
    for opcode, product in products.items():
        if product is None or opcodes.is_on_another_path(opcode, capability):
            return
        done, own = product.flop * counts[opcode], (product.precision, product.accumulator)
        flop[product.precision] = flop.get(product.precision, 0.0) + done
        accumulated[own] = accumulated.get(own, 0.0) + done
        names.setdefault(product.precision, []).append(opcode)
    for precision, total in flop.items():
        most = next((kind for (of, kind), part in accumulated.items() if of == precision and 2 * part > total), None)
        yield precision, total, f"2·M·N·K × {', '.join(names[precision])}, by opcode", most


@lru_cache(maxsize=1024)
def _product(opcode: str, opcodes: TensorOpcodes) -> _Product | None:
    """Return what an instruction does; None if its opcode does not say."""
    mnemonic, *modifiers = opcode.split(".")
    flop = next(filter(None, map(_flop, modifiers)), None)
    accumulator = next((_ACCUMULATORS[part] for part in modifiers if part in _ACCUMULATORS), None)
    precision = next(
        (found for part in modifiers if (found := opcodes.precision_by_modifier.get(part))),
        opcodes.precision_by_mnemonic.get(mnemonic),
    )
    if flop is None or not precision:
        return None
    if _VOLTA_STEPS.fullmatch(opcode):
        flop *= 2
    return _Product(flop, precision + SPARSE_SUFFIX if _SPARSE in modifiers else precision, accumulator)


def _flop(shape: str) -> float | None:
    """Return the operations of a warp-level instruction by its shape modifier; None for a modifier that is not a shape."""
    if match := _SHAPE.fullmatch(shape):
        return 2.0 * int(match["m"]) * _N * int(match["k"])
    match = _GROUP_SHAPE.fullmatch(shape)
    if match is None or any(len(size) > _MOST_DIGITS for size in match.groups()):
        return None
    return 2.0 * int(match["m"]) * int(match["n"]) * int(match["k"]) / _WARPS_OF_A_GROUP
