"""Work per precision and roof traffic per memory level: achieved rate, peak, and what was counted.

Tensor work comes from executed instructions by opcode: the opcode of a tensor instruction contains the shape of its matrix product.
Reports of `--set full` contain these counts, also those from before Nsight Compute counted tensor operations.

An instruction does 2·M·N·K operations. `HMMA.16816` has M = 16, N = 8, K = 16. Four warps issue an `HGMMA.64x128x16` together, and
it is counted in each of them. Source: PTX ISA, "Matrix shape" of mma and wgmma; opcodes as the CUDA Binary Utilities print them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from ncuroof.enums import SPARSE_SUFFIX
from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.catalogue_types import Pair, TensorOpcodes
from ncuroof.metrics.formula import sum_of_known
from ncuroof.metrics.long_tables import TRAFFIC_RATES, WORK_RATES, RateTable, rows_by_key, stacked
from ncuroof.metrics.quantities import CounterTable
from ncuroof.metrics.tensor import tensor_instructions, tensor_operations

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


def measure_bandwidth(table: CounterTable, catalogue: Catalogue) -> pl.DataFrame:
    """Return BANDWIDTH: per level, the first pair of the catalogue whose counters the report has."""
    return stacked([_rows_of_first_pairs(table, catalogue.bandwidth, TRAFFIC_RATES)], TRAFFIC_RATES)


def measure_work(table: CounterTable, catalogue: Catalogue, workloads: pl.DataFrame) -> pl.DataFrame:
    """Return WORK: vector precisions from instruction counts, tensor work from operation counts.

    Kernels without counted tensor operations get their tensor work from opcode counts; without these, from the count of all tensor
    instructions, marked unreliable, if the instructions' shape is known.

    Args:
        table: counters and quantities.
        catalogue: formulas, and how tensor work is measured.
        workloads: demangled name and texts of each kernel.
    """
    vector = _rows_of_first_pairs(table, catalogue.work, WORK_RATES)
    tensor = tensor_operations(table, catalogue.tensor)
    parts = [vector, tensor]
    if catalogue.tensor.opcodes.counter in workloads.columns:
        texts = workloads[catalogue.tensor.opcodes.counter]
        chips = table.frame.with_columns(table.capability().alias("chip"))["chip"]
        parts.append(_not_in(tensor, opcode_work(texts, chips, table.frame["duration_ns"], catalogue.tensor.opcodes)))
    by_instructions = tensor_instructions(table, catalogue.tensor, workloads["demangled_name"])
    parts.append(_not_in(pl.concat([part.select("id") for part in parts[1:]]), by_instructions))
    return with_flop(stacked(parts, WORK_RATES), table.frame)


def _not_in(found: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `others` whose kernels have none in `found`."""
    return others.join(found, on="id", how="anti") if found.height else others


def with_flop(rows: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Return rows of WORK with `flop`: rate × `duration_ns` of the kernel; an `id` is a row number of `kernels`."""
    duration_ns = kernels["duration_ns"].gather(rows["id"])
    return rows.with_columns((rows["flop_per_s"] * duration_ns / _NS_PER_S).alias("flop"))


def _rows_of_first_pairs(
    table: CounterTable, pairs_by_key: Mapping[str, Sequence[Pair]], rates: RateTable
) -> pl.DataFrame:
    """Return achieved rate, peak, definition and reliability from the first pair of each key; no row without an achieved rate.

    A pair whose peak is missing is used only if no pair is complete, unless it was written for the chip.
    """
    known = table.known_quantities()
    columns, found = [], {}
    for name, pairs in pairs_by_key.items():
        complete, halves = [], []
        for number, pair in enumerate(pairs):
            measured = _rate_and_peak(table, pair, known)
            if measured is None:
                continue
            rate, roof = f"{rates.achieved}.{name}.{number}", f"{rates.peak}.{name}.{number}"
            columns += [measured[0].cast(pl.Float64).alias(rate), measured[1].cast(pl.Float64).alias(roof)]
            is_reached, is_whole = pl.col(rate).is_not_null(), pl.col(roof).is_not_null()
            definition = pl.when(is_whole).then(pl.lit(pair.whole_definition)).otherwise(pl.lit(pair.definition))
            row = pl.struct(
                pl.col(rate).alias(rates.achieved),
                pl.col(roof).alias(rates.peak),
                definition.alias("definition"),
                pl.lit(pair.is_reliable).alias("reliable"),
            )
            complete.append(pl.when(is_reached & (is_whole | pl.lit(bool(pair.capabilities)))).then(row))
            halves.append(pl.when(is_reached).then(row))
        if complete:
            found[name] = pl.coalesce([*complete, *halves])
    return rows_by_key(table.frame.select(columns), found, rates.key)


def _rate_and_peak(table: CounterTable, pair: Pair, known: frozenset[str]) -> tuple[pl.Expr, pl.Expr] | None:
    """Return achieved rate and peak of a pair, null where not known; None if the table lacks what the rate is made of."""
    reached = pair.achieved.expression(table.counter, known) if table.is_any_on(pair.capabilities) else None
    if reached is None:
        return None
    rate = _NS_PER_S * reached / pl.col("duration_ns") if pair.is_count else reached
    ceiling = pair.peak.expression(table.counter, known) if pair.peak is not None else None
    peak = pl.lit(None) if ceiling is None else pl.when(ceiling > 0).then(ceiling)
    return pl.when(table.is_on(pair.capabilities)).then(rate), peak


def whole_flop(kernels: pl.DataFrame) -> pl.Expr:
    """Return the FLOPs summed over the columns `work.<precision>.flop`; null where none was counted."""
    columns = [pl.col(name) for name in kernels.columns if name.startswith("work.") and name.endswith(".flop")]
    return sum_of_known(columns) if columns else pl.lit(None, pl.Float64)


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
