"""Work per precision and roof traffic per memory level: achieved and peak, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.entries import Pair
from ncuroof.metrics.quantities import CounterTable
from ncuroof.metrics.tensor import tensor_instructions, tensor_operations
from ncuroof.tables import BANDWIDTH, WORK, conform
from ncuroof.words import CeilingSource

_NS_PER_S = 1e9


def measure_bandwidth(table: CounterTable, catalogue: Catalogue) -> pl.DataFrame:
    """Return BANDWIDTH: per level the first pair of the catalogue that the report holds."""
    parts = [
        _first_pair(table, pairs, "bytes_per_s", "peak_bytes_per_s").with_columns(pl.lit(level).alias("level"))
        for level, pairs in catalogue.bandwidth.items()
    ]
    return stacked(parts, BANDWIDTH, "bytes_per_s", "peak_bytes_per_s")


def measure_work(table: CounterTable, catalogue: Catalogue, names: pl.Series) -> pl.DataFrame:
    """Return WORK: vector precisions from instruction counts, tensor work from operation counts.

    Tensor instructions stand in, marked unreliable, only where no operation was counted and their shape can be told.

    Args:
        table: counters and quantities.
        catalogue: what to look for.
        names: demangled name of each kernel.
    """
    vector = [
        _first_pair(table, pairs, "flop_per_s", "peak_flop_per_s").with_columns(pl.lit(precision).alias("precision"))
        for precision, pairs in catalogue.work.items()
    ]
    operations = tensor_operations(table, catalogue.tensor)
    instructions = tensor_instructions(table, catalogue.tensor, names)
    if operations:
        instructions = instructions.join(pl.concat([part.select("id") for part in operations]), on="id", how="anti")
    work = pl.concat([*vector, *operations, instructions], how="diagonal_relaxed")
    return stacked([with_flop(work, table.frame.with_row_index("id"))], WORK, "flop_per_s", "peak_flop_per_s")


def with_flop(rows: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Return rows of WORK with `flop`: rate × duration, from the `id` and `duration_ns` of the kernels."""
    timed = rows.join(kernels.select("id", "duration_ns"), on="id", how="left", maintain_order="left")
    return timed.with_columns((pl.col("flop_per_s") * pl.col("duration_ns") / _NS_PER_S).alias("flop"))


def _first_pair(table: CounterTable, pairs: Sequence[Pair], achieved: str, peak: str) -> pl.DataFrame:
    """Return id, achieved, peak, definition and reliability of the first pair per row; rows with nothing achieved are left out.

    A pair whose peak is missing counts only where no pair is complete, unless it is made for the chip.
    """
    known = table.known_quantities()
    complete, halves = [], []
    for pair in pairs:
        reached = pair.achieved.expression(table.counter, known)
        if reached is None:
            continue
        if pair.is_count:
            reached = _NS_PER_S * reached / pl.col("duration_ns")
        ceiling = pair.peak.expression(table.counter, known) if pair.peak is not None else None
        ceiling = pl.lit(None, pl.Float64) if ceiling is None else pl.when(ceiling > 0).then(ceiling)
        is_whole = ceiling.is_not_null()
        definition = pl.when(is_whole).then(pl.lit(pair.whole_definition)).otherwise(pl.lit(pair.definition))
        row = pl.struct(
            reached.cast(pl.Float64).alias(achieved),
            ceiling.cast(pl.Float64).alias(peak),
            definition.alias("definition"),
            pl.lit(pair.is_reliable).alias("reliable"),
        )
        is_reached = reached.is_not_null() & table.is_on(pair.capabilities)
        complete.append(pl.when(is_reached & (is_whole | pl.lit(bool(pair.capabilities)))).then(row))
        halves.append(pl.when(is_reached).then(row))
    empty = {
        "id": pl.UInt32,
        achieved: pl.Float64,
        peak: pl.Float64,
        "definition": pl.String,
        "reliable": pl.Boolean,
    }
    if not complete:
        return pl.DataFrame(schema=empty)
    rows = table.frame.select(pl.coalesce([*complete, *halves]).alias("pair")).with_row_index("id")
    return rows.filter(pl.col("pair").is_not_null()).unnest("pair")


def stacked(parts: Sequence[pl.DataFrame], schema: pl.Schema, achieved: str, peak: str) -> pl.DataFrame:
    """Return the parts as one table of `schema`, ordered by kernel, with what follows from achieved and peak."""
    stacked = pl.concat(parts, how="diagonal_relaxed").with_columns(
        (pl.col(achieved) / pl.col(peak)).alias("frac"),
        pl.when(pl.col(peak).is_not_null()).then(pl.lit(CeilingSource.COUNTERS.value)).alias("peak_source"),
        pl.lit(value=False).alias("is_from_chart"),
    )
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in stacked.columns]
    return stacked.with_columns(missing).pipe(conform, schema).sort("id", maintain_order=True)
