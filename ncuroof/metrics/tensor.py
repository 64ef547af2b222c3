"""Tensor work: operations counted by `sm__ops_path_tensor_*`, a name per path through the tensor cores, else instructions.

A path is an instruction family (`op_…`), a type of the inputs (`src_…`), of the accumulator (`dst_…`), and structured sparsity
on or off. Names without some of these parts count several paths together. Source: NVIDIA Nsight Compute, section file
SpeedOfLight_HierarchicalTensorRooflineChart since 2025.1, which lists the names of each compute capability.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.metrics.entries import Tensor
from ncuroof.metrics.formula import sum_of, sum_of_known
from ncuroof.metrics.names import matches
from ncuroof.metrics.quantities import CounterTable, first_known
from ncuroof.metrics.stacked_rows import rows_by_key
from ncuroof.words import SPARSE_SUFFIX

_NS_PER_S = 1e9
_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z0-9]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?$"
)
_REPEATED = "_realtime"
"""Ends a second name of the same counter."""

_SPARSE_SPEEDUP = 2.0
"""Structured sparsity doubles a tensor peak (NVIDIA A100 Tensor Core GPU Architecture, "Sparsity").

B300's of FP4 is a third higher alone; names there are split by sparsity, and paths that are need no such factor."""

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
        accumulator: type that products are added up in; None where the name does not tell.
        is_dense_and_sparse: the counter is not split by structured sparsity, though its type has it.
        is_known: the name follows the scheme.
    """

    name: str
    precision: str
    rank: int
    accumulator: str | None = None
    is_dense_and_sparse: bool = False
    is_known: bool = True


def tensor_path(name: str, tensor: Tensor) -> TensorPath:
    """Return what the name of a path tells; the name is without the counter's prefix and suffix."""
    match = _NAME.match(name)
    if match is None:
        return TensorPath(name, UNKNOWN_PRECISION, rank=0, is_known=False)
    precision = tensor.precision_by_source.get(match["src"], f"tensor_{match['src']}")
    if match["sparsity"] == "on":
        precision += SPARSE_SUFFIX
    is_both = match["sparsity"] is None and match["src"] not in tensor.never_sparse
    rank = is_both if match["op"] else 2 + (match["sparsity"] is None)
    return TensorPath(name, precision, rank, match["dst"], is_dense_and_sparse=is_both)


@dataclass(frozen=True, slots=True)
class MeasuredPath:
    """A path with its rate and peak in operations per second, null where not collected, and what counted it."""

    path: TensorPath
    rate: pl.Expr
    peak: pl.Expr
    counter: str


def tensor_operations(table: CounterTable, tensor: Tensor) -> pl.DataFrame:
    """Return the tensor work that `sm__ops_path_tensor_*` counted (see `work_by_precision`)."""
    return work_by_precision(table.frame, _measured_paths(table, tensor), table.capability() >= tensor.sparse_since)


def work_by_precision(frame: pl.DataFrame, measured: Iterable[MeasuredPath], has_sparsity: pl.Expr) -> pl.DataFrame:
    """Return the tensor work of each precision, as rows of WORK without `flop` and `frac`.

    Of the names of a precision those that split it finest are summed, kernel by kernel: `op_*`, else the split by sparsity, else
    the bare name, which is the sum of the others.

    Each path has a peak of its own (Hopper: `hmma` two thirds of `hgmma`; GeForce: FP32 accumulation half of FP16's), and time is
    what adds up: the peak of a mix of paths is its work over the time that it takes at the paths' peaks. `fastest_peak_flop_per_s`
    is the highest peak of any path of the precision. A bare name has the sparse peak on chips with structured sparsity: half of it
    is the dense one.

    Args:
        frame: the columns that rates and peaks read.
        measured: all paths.
        has_sparsity: whether the chip has structured sparsity.
    """
    paths = list(measured)
    numbered = range(len(paths))
    columns = [
        (paths[n].rate.alias(f"rate.{n}"), _dense_peak(paths[n], has_sparsity).alias(f"peak.{n}")) for n in numbered
    ]
    wide = frame.select(column for pair in columns for column in pair)
    by_precision: dict[str, dict[int, list[int]]] = {}
    for n in numbered:
        by_precision.setdefault(paths[n].path.precision, {}).setdefault(paths[n].path.rank, []).append(n)
    families = {
        precision: pl.coalesce(_family(paths, ranks[rank]) for rank in sorted(ranks))
        for precision, ranks in by_precision.items()
    }
    return rows_by_key(wide, families, "precision")


def _family(paths: Sequence[MeasuredPath], members: Sequence[int]) -> pl.Expr:
    """Return rate, peak, fastest peak, definition, accumulator and reliability of paths that add up; null where none was collected.

    The definition names the paths that did the work; all of them where none did any. The accumulator is that of most of the work.
    """
    rates, peaks = ([pl.col(f"{kind}.{n}") for n in members] for kind in ("rate", "peak"))
    total, fastest = sum_of(rates), pl.max_horizontal(peaks)
    shares = [pl.when(rate > 0).then(rate / peak) for rate, peak in zip(rates, peaks, strict=True)]
    time_share = sum_of(shares)
    is_whole = ~pl.any_horizontal(
        ((rate > 0) & peak.is_null()).fill_null(value=False)  # a path that was not collected did no work
        for rate, peak in zip(rates, peaks, strict=True)
    )
    is_named = [(rate > 0) | ((total == 0) & rate.is_not_null()) for rate in rates]
    names = [pl.when(is_one).then(pl.lit(paths[n].counter)) for n, is_one in zip(members, is_named, strict=True)]
    family = pl.struct(
        total.alias("flop_per_s"),
        pl.when(total == 0)
        .then(fastest)
        .when(is_whole & (time_share > 0))
        .then(total / time_share)
        .alias("peak_flop_per_s"),
        fastest.alias("fastest_peak_flop_per_s"),
        pl.concat_str(names, separator=" + ", ignore_nulls=True).alias("definition"),
        pl.lit(all(paths[n].path.is_known for n in members)).alias("reliable"),
        _accumulator([paths[n].path.accumulator for n in members], rates).alias("accumulates_in"),
    )
    return pl.when(pl.any_horizontal(rate.is_not_null() for rate in rates)).then(family)


def _accumulator(accumulators: Sequence[str | None], rates: Sequence[pl.Expr]) -> pl.Expr:
    """Return the type in which more than half of the work of some paths adds up; null where names do not tell it."""
    known = sorted({each for each in accumulators if each is not None})
    in_each = {
        name: sum_of([rate for rate, own in zip(rates, accumulators, strict=True) if own == name]) for name in known
    }
    return pl.coalesce(
        pl.lit(None, pl.String),
        *(pl.when(2 * rate > sum_of(rates)).then(pl.lit(name)) for name, rate in in_each.items()),
    )


def _dense_peak(measured: MeasuredPath, has_sparsity: pl.Expr) -> pl.Expr:
    peak = measured.peak
    if measured.path.is_dense_and_sparse:
        peak = pl.when(has_sparsity).then(peak / _SPARSE_SPEEDUP).otherwise(peak)
    return pl.when(peak > 0).then(peak)


def _measured_paths(table: CounterTable, tensor: Tensor) -> list[MeasuredPath]:
    """Return the paths that the report has counters of, in alphabetical order."""
    prefix = tensor.counter_prefix
    names = {name.removeprefix(prefix).split(".")[0] for name in table.frame.columns if name.startswith(prefix)}
    clock = table.counter(tensor.cycles_per_second)
    measured = []
    for name in sorted(name for name in names if not name.endswith(_REPEATED)):
        counter = f"{prefix}{name}.sum"
        per_cycle, per_cycle_peak = (
            None if clock is None or value is None else value * clock
            for value in (table.counter(f"{counter}.per_cycle_elapsed"), table.counter(f"{counter}.peak_sustained"))
        )
        count = table.counter(counter)
        per_duration = None if count is None else _NS_PER_S * count / pl.col("duration_ns")
        rate = first_known(per_cycle, table.counter(f"{counter}.per_second"), per_duration)
        peak = first_known(per_cycle_peak, table.counter(f"{counter}.peak_sustained_elapsed.per_second"))
        measured.append(MeasuredPath(tensor_path(name, tensor), rate, peak, f"{prefix}{name}"))
    return measured


def tensor_split_error(table: CounterTable, tensor: Tensor) -> pl.Expr:
    """Return the largest distance, over the precisions, of the paths' sum from the counter that should hold it; a share of that.

    Null where no precision has both, or nothing was counted.
    """
    whole: dict[str, list[pl.Expr]] = {}
    parts: dict[str, list[pl.Expr]] = {}
    for measured in _measured_paths(table, tensor):
        path = measured.path
        if path.is_known:
            of_rank = parts if path.rank == 0 else whole if path.rank >= _WHOLE else {}
            of_rank.setdefault(path.precision.removesuffix(SPARSE_SUFFIX), []).append(measured.rate)
    errors = [
        (sum_of_known(parts[precision]) - total).abs() / pl.when(total > 0).then(total)
        for precision in sorted(whole.keys() & parts.keys())
        for total in [sum_of_known(whole[precision])]
    ]
    return pl.max_horizontal(errors) if errors else pl.lit(None, pl.Float64)


def tensor_instructions(table: CounterTable, tensor: Tensor, names: pl.Series) -> pl.DataFrame:
    """Return tensor work from warp-level instructions × what one of their shape is worth, as unreliable rows of WORK.

    Kernels whose shape cannot be told are left out. No peak: the counter's own peak is a rate of issue and no rate of work.
    """
    rate = tensor.instruction_rate.expression(table.counter, table.known_quantities())
    rows = [
        pl.when(matches(pl.col("name"), instruction.name_pattern) & table.is_on(instruction.capabilities)).then(
            pl.struct(
                (instruction.n_flop * rate).alias("flop_per_s"),
                pl.lit(instruction.precision).alias("precision"),
                pl.lit(instruction.definition).alias("definition"),
                pl.lit(value=False).alias("reliable"),
            )
        )
        for instruction in tensor.instructions
        if rate is not None and table.is_any_on(instruction.capabilities)
    ]
    named = table.frame.with_columns(names.alias("name"))
    found = rows_by_key(named, {"tensor": pl.coalesce(rows)} if rows else {}, "kind")
    return found.drop_nulls("flop_per_s") if rows else found
