"""Tensor work: operations counted by `sm__ops_path_tensor_*`, a name per path through the tensor cores, else instructions.

A path is an instruction family (`op_…`), a type of the inputs (`src_…`), of the accumulator (`dst_…`), and structured sparsity
on or off. Names without some of these parts count several paths together. Source: NVIDIA Nsight Compute, section file
SpeedOfLight_HierarchicalTensorRooflineChart since 2025.1, which lists the names of each compute capability.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.metrics.catalogue import Tensor
from ncuroof.metrics.quantities import CounterTable
from ncuroof.model import SPARSE_SUFFIX

_NS_PER_S = 1e9
_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z0-9]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?$"
)
_REPEATED = "_realtime"
"""Ends a second name of the same counter."""

_WHOLE = 3
"""Least rank of a name without instruction and sparsity: it counts all paths of its types."""

UNKNOWN_PRECISION = "tensor_unknown"
"""Work of a counter whose name tells no type."""


@dataclass(frozen=True, slots=True)
class TensorPath:
    """One counter of tensor operations.

    Attributes:
        name: of the counter, without prefix and suffix.
        precision: of the inputs, with the suffix `_sparse` where the counter says so.
        rank: 0 for a single path, higher for names that count more together.
        peak_factor: what makes the counter's peak the dense one, on chips with structured sparsity.
        is_known: the name follows the scheme.
    """

    name: str
    precision: str
    rank: int
    peak_factor: float = 1.0
    is_known: bool = True


def tensor_paths(counters: Iterable[str], tensor: Tensor) -> list[TensorPath]:
    """Return the paths that the names of `counters` tell, in alphabetical order."""
    names = {
        counter.removeprefix(tensor.counter_prefix).split(".")[0]
        for counter in counters
        if counter.startswith(tensor.counter_prefix)
    }
    return [_path(name, names, tensor) for name in sorted(names) if not name.endswith(_REPEATED)]


def _path(name: str, names: set[str], tensor: Tensor) -> TensorPath:
    match = _NAME.match(name)
    if match is None:
        return TensorPath(name, UNKNOWN_PRECISION, rank=0, is_known=False)
    precision = tensor.precision_by_source.get(match["src"], f"tensor_{match['src']}")
    if match["sparsity"] == "on":
        precision += SPARSE_SUFFIX
    is_split_further = f"{name}_sparsity_off" in names
    rank = (0 if match["op"] else 2) + is_split_further + (not match["op"] and not match["sparsity"])
    is_both = match["sparsity"] is None and match["src"] not in tensor.never_sparse
    return TensorPath(name, precision, rank, peak_factor=0.5 if is_both else 1.0)


def tensor_operations(table: CounterTable, tensor: Tensor) -> list[pl.DataFrame]:
    """Return the tensor work of each precision, as rows of WORK without `flop` and `frac`.

    Of the names of a precision those that split it finest are summed, kernel by kernel: `op_*`, else the split by sparsity, else
    the bare name, which is the sum of the others.

    Each path has a peak of its own (Hopper: `hmma` two thirds of `hgmma`; GeForce: FP32 accumulation half of FP16's), and time is
    what adds up: the peak of a mix of paths is its work over the time that it takes at the paths' peaks. `fastest_peak_flop_per_s`
    is the highest peak of any path of the precision. A bare name has the sparse peak on chips with structured sparsity: half of it
    is the dense one.
    """
    by_precision: dict[str, dict[int, list[TensorPath]]] = {}
    for path in tensor_paths(table.frame.columns, tensor):
        by_precision.setdefault(path.precision, {}).setdefault(path.rank, []).append(path)
    return [
        rows for precision, ranks in by_precision.items() if (rows := _rows(table, tensor, precision, ranks)).height
    ]


def _rows(
    table: CounterTable, tensor: Tensor, precision: str, ranks: Mapping[int, Sequence[TensorPath]]
) -> pl.DataFrame:
    families = [_family(table, tensor, ranks[rank]) for rank in sorted(ranks)]
    found = table.frame.select(pl.coalesce(families).alias("family")).with_row_index("id")
    return (
        found.filter(pl.col("family").is_not_null()).unnest("family").with_columns(pl.lit(precision).alias("precision"))
    )


def _family(table: CounterTable, tensor: Tensor, paths: Sequence[TensorPath]) -> pl.Expr:
    """Return rate, peak, fastest peak, definition and reliability of paths that add up; null where none was collected."""
    rates = [_rate(table, tensor, path) for path in paths]
    peaks = [_peak(table, tensor, path) for path in paths]
    total = pl.sum_horizontal(rates)
    time_share = pl.sum_horizontal(pl.when(rate > 0).then(rate / peak) for rate, peak in zip(rates, peaks, strict=True))
    fastest = pl.max_horizontal(peaks)
    is_whole = ~pl.any_horizontal((rate > 0) & peak.is_null() for rate, peak in zip(rates, peaks, strict=True))
    names = pl.concat_list(
        pl.when(rate.is_not_null()).then(pl.lit(f"{tensor.counter_prefix}{path.name}"))
        for rate, path in zip(rates, paths, strict=True)
    )
    family = pl.struct(
        total.alias("flop_per_s"),
        pl.when(total == 0)
        .then(fastest)
        .when(is_whole & (time_share > 0))
        .then(total / time_share)
        .alias("peak_flop_per_s"),
        fastest.alias("fastest_peak_flop_per_s"),
        names.list.drop_nulls().list.join(" + ").alias("definition"),
        pl.lit(all(path.is_known for path in paths)).alias("reliable"),
    )
    return pl.when(pl.any_horizontal(rate.is_not_null() for rate in rates)).then(family)


def _rate(table: CounterTable, tensor: Tensor, path: TensorPath) -> pl.Expr:
    counter = f"{tensor.counter_prefix}{path.name}.sum"
    clock = table.counter_or_null(tensor.cycles_per_second)
    return pl.coalesce(
        table.counter_or_null(f"{counter}.per_cycle_elapsed") * clock,
        table.counter_or_null(f"{counter}.per_second"),
        _NS_PER_S * table.counter_or_null(counter) / pl.col("duration_ns"),
    )


def _peak(table: CounterTable, tensor: Tensor, path: TensorPath) -> pl.Expr:
    counter = f"{tensor.counter_prefix}{path.name}.sum"
    clock = table.counter_or_null(tensor.cycles_per_second)
    peak = pl.coalesce(
        table.counter_or_null(f"{counter}.peak_sustained") * clock,
        table.counter_or_null(f"{counter}.peak_sustained_elapsed.per_second"),
    )
    if path.peak_factor != 1.0:
        has_sparsity = table.capability() >= tensor.sparse_since
        peak = pl.when(has_sparsity).then(path.peak_factor * peak).otherwise(peak)
    return pl.when(peak > 0).then(peak)


def tensor_split_error(table: CounterTable, tensor: Tensor) -> pl.Expr:
    """Return the largest distance, over the precisions, of the paths' sum from the counter that should hold it; a share of that.

    Null where no precision has both, or nothing was counted.
    """
    whole: dict[str, list[pl.Expr]] = {}
    parts: dict[str, list[pl.Expr]] = {}
    for path in tensor_paths(table.frame.columns, tensor):
        if path.is_known:
            of_rank = parts if path.rank == 0 else whole if path.rank >= _WHOLE else {}
            of_rank.setdefault(path.precision.removesuffix(SPARSE_SUFFIX), []).append(_rate(table, tensor, path))
    errors = [
        (_sum_of_known(parts[precision]) - total).abs() / pl.when(total > 0).then(total)
        for precision in sorted(whole.keys() & parts.keys())
        for total in [_sum_of_known(whole[precision])]
    ]
    return pl.max_horizontal(errors) if errors else pl.lit(None, pl.Float64)


def _sum_of_known(terms: Sequence[pl.Expr]) -> pl.Expr:
    return pl.when(pl.any_horizontal(term.is_not_null() for term in terms)).then(pl.sum_horizontal(terms))


def tensor_instructions(table: CounterTable, tensor: Tensor, names: pl.Series) -> pl.DataFrame:
    """Return tensor work from warp-level instructions × what one of their shape is worth, as unreliable rows of WORK.

    Kernels whose shape cannot be told are left out. No peak: the counter's own peak is a rate of issue and no rate of work.
    """
    rate = tensor.instruction_rate.expression(table.counter, table.known_quantities())
    rows = [
        pl.when(pl.col("name").str.contains(instruction.name_pattern) & table.is_on(instruction.capabilities)).then(
            pl.struct(
                (instruction.n_flop * (pl.lit(None, pl.Float64) if rate is None else rate)).alias("flop_per_s"),
                pl.lit(instruction.precision).alias("precision"),
                pl.lit(instruction.definition).alias("definition"),
                pl.lit(value=False).alias("reliable"),
            )
        )
        for instruction in tensor.instructions
    ]
    found = table.frame.with_columns(names.alias("name")).select(pl.coalesce(rows).alias("row")).with_row_index("id")
    return found.filter(pl.col("row").is_not_null()).unnest("row").filter(pl.col("flop_per_s").is_not_null())
