"""Work per precision and roof traffic per memory level: achieved and peak, and what was counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from ncuroof.metrics.catalogue import Catalogue, Pair, Tensor
from ncuroof.metrics.quantities import CounterTable
from ncuroof.model import SPARSE_SUFFIX
from ncuroof.tables import BANDWIDTH, WORK, conform

_NS_PER_S = 1e9
_TENSOR_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z0-9]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?$"
)


def measure_bandwidth(table: CounterTable, catalogue: Catalogue) -> pl.DataFrame:
    """Return BANDWIDTH: per level the first pair of the catalogue that the report holds."""
    parts = [
        _first_pair(table, pairs, "bytes_per_s", "peak_bytes_per_s").with_columns(pl.lit(level).alias("level"))
        for level, pairs in catalogue.bandwidth.items()
    ]
    frac = pl.col("bytes_per_s") / pl.col("peak_bytes_per_s")
    return _stacked([part.with_columns(frac.alias("frac")) for part in parts], BANDWIDTH)


def measure_work(table: CounterTable, catalogue: Catalogue) -> pl.DataFrame:
    """Return WORK: vector precisions from instruction counts, tensor work from operation counts.

    Tensor instructions × 512 stand in, marked unreliable, only where no operation was counted.
    """
    parts = [
        _first_pair(table, pairs, "flop_per_s", "peak_flop_per_s").with_columns(
            pl.lit(precision).alias("precision"), pl.lit(value=True).alias("reliable")
        )
        for precision, pairs in catalogue.work.items()
    ]
    parts += _tensor_operations(table, catalogue.tensor)
    instructions = _first_pair(table, [catalogue.tensor.instructions], "flop_per_s", "peak_flop_per_s").with_columns(
        pl.lit(catalogue.tensor.instructions_precision).alias("precision"),
        pl.lit(value=False).alias("reliable"),
    )
    counted = [part.select("id") for part in parts if part.height and part["precision"][0].startswith("tensor")]
    if counted:
        instructions = instructions.join(pl.concat(counted), on="id", how="anti")
    duration = table.frame.select("duration_ns").with_row_index("id")
    work = pl.concat([*parts, instructions], how="diagonal_relaxed").join(duration, on="id", how="left")
    flop = pl.col("flop_per_s") * pl.col("duration_ns") / _NS_PER_S
    frac = pl.col("flop_per_s") / pl.col("peak_flop_per_s")
    return _stacked([work.with_columns(flop.alias("flop"), frac.alias("frac"))], WORK)


def _first_pair(table: CounterTable, pairs: Sequence[Pair], achieved: str, peak: str) -> pl.DataFrame:
    """Return id, achieved, peak and definition of the first pair per row; rows with nothing achieved are left out.

    A pair whose peak is missing counts only where no pair is complete.
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
        row = pl.struct(
            reached.cast(pl.Float64).alias(achieved),
            ceiling.cast(pl.Float64).alias(peak),
            pl.lit(pair.definition).alias("definition"),
        )
        complete.append(pl.when(reached.is_not_null() & ceiling.is_not_null()).then(row))
        halves.append(pl.when(reached.is_not_null()).then(row))
    empty = {"id": pl.UInt32, achieved: pl.Float64, peak: pl.Float64, "definition": pl.String}
    if not complete:
        return pl.DataFrame(schema=empty)
    rows = table.frame.select(pl.coalesce([*complete, *halves]).alias("pair")).with_row_index("id")
    return rows.filter(pl.col("pair").is_not_null()).unnest("pair")


def _tensor_operations(table: CounterTable, tensor: Tensor) -> Iterable[pl.DataFrame]:
    """Yield the tensor work of each precision from `sm__ops_path_tensor_*`.

    Within a class the finest family of names is summed: `op_*`, else the split by sparsity, else the bare name, which is
    the sum of the others and has the sparse peak. The ceiling is that of the busiest path: on Hopper `hmma` reaches two
    thirds of `hgmma`.
    """
    for precision, names in _tensor_classes(table.frame.columns, tensor).items():
        paths = {name: path for name in names if (path := _tensor_path(table, tensor, name)) is not None}
        if paths:
            definition = " + ".join(f"{tensor.counter_prefix}{name}" for name in paths)
            yield _tensor_rows(table.frame, list(paths.values())).select(
                "id",
                "flop_per_s",
                pl.when(pl.col("peak_flop_per_s") > 0).then(pl.col("peak_flop_per_s")),
                pl.lit(definition).alias("definition"),
                pl.lit(precision).alias("precision"),
                pl.lit(value=True).alias("reliable"),
            )


def _tensor_path(table: CounterTable, tensor: Tensor, name: str) -> tuple[pl.Expr, pl.Expr] | None:
    """Return rate and peak of one counter of tensor operations; None where it was not collected in a usable form."""
    counter = f"{tensor.counter_prefix}{name}.sum"
    clock, total = table.counter(tensor.cycles_per_second), table.counter(counter)
    per_cycle, per_cycle_peak = (
        table.counter(f"{counter}.{suffix}") for suffix in ("per_cycle_elapsed", "peak_sustained")
    )
    peak = per_cycle_peak * clock if clock is not None and per_cycle_peak is not None else pl.lit(None, pl.Float64)
    if clock is not None and per_cycle is not None:
        return per_cycle * clock, peak
    return None if total is None else (_NS_PER_S * total / pl.col("duration_ns"), peak)


def _tensor_rows(frame: pl.DataFrame, paths: Sequence[tuple[pl.Expr, pl.Expr]]) -> pl.DataFrame:
    """Return id, summed rate, and the peak of the busiest path; where none is busy, the highest peak."""
    numbers = range(len(paths))
    rates, peaks = ([pl.col(f"{kind}.{number}") for number in numbers] for kind in ("rate", "peak"))
    columns = [
        expression.alias(f"{kind}.{number}")
        for number, path in enumerate(paths)
        for kind, expression in zip(("rate", "peak"), path, strict=True)
    ]
    rows = frame.select(columns).with_row_index("id").with_columns(busiest=pl.max_horizontal(rates))
    is_busiest = [(rate == pl.col("busiest")) & (rate > 0) for rate in rates]
    of_busiest = pl.coalesce(pl.when(condition).then(peak) for condition, peak in zip(is_busiest, peaks, strict=True))
    return rows.filter(pl.col("busiest").is_not_null()).select(
        "id",
        pl.sum_horizontal(rates).alias("flop_per_s"),
        pl.when(pl.col("busiest") > 0).then(of_busiest).otherwise(pl.max_horizontal(peaks)).alias("peak_flop_per_s"),
    )


def _tensor_classes(columns: Iterable[str], tensor: Tensor) -> dict[str, list[str]]:
    """Return the counter names (without prefix and suffix) to sum for each precision."""
    names = {
        column.removeprefix(tensor.counter_prefix).split(".")[0]
        for column in columns
        if column.startswith(tensor.counter_prefix)
    }
    by_rank: dict[tuple[str, bool], dict[int, list[str]]] = {}
    for name in sorted(names):
        match = _TENSOR_NAME.match(name)
        precision = tensor.precision_by_source.get(match["src"]) if match else None
        if match is None or precision is None:
            continue
        rank = 0 if match["op"] else 1 if match["sparsity"] else 2
        key = (precision, match["sparsity"] == "on")
        by_rank.setdefault(key, {}).setdefault(rank, []).append(name)
    return {
        precision + (SPARSE_SUFFIX if is_sparse else ""): ranks[min(ranks)]
        for (precision, is_sparse), ranks in by_rank.items()
    }


def _stacked(parts: Sequence[pl.DataFrame], schema: pl.Schema) -> pl.DataFrame:
    """Return the parts as one table of `schema`, ordered by kernel."""
    stacked = pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame(schema=schema)
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in schema.items() if name not in stacked.columns]
    return stacked.with_columns(missing).pipe(conform, schema).sort("id", maintain_order=True)
