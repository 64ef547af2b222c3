"""Work per precision and roof traffic per memory level: achieved rate, peak, and what was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.entries import Pair
from ncuroof.metrics.formula import sum_of_known
from ncuroof.metrics.quantities import CounterTable
from ncuroof.metrics.stacked_rows import TRAFFIC_RATES, WORK_RATES, RateTable, rows_by_key, stacked
from ncuroof.metrics.tensor import tensor_instructions, tensor_operations
from ncuroof.metrics.tensor_opcodes import opcode_work

_NS_PER_S = 1e9


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
