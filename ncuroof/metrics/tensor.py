"""Tensor work: operations counted by `sm__ops_path_tensor_*`, one counter per path through the tensor cores, else instructions.

A path is an instruction family (`op_…`), the types of inputs (`src_…`) and accumulator (`dst_…`), and structured sparsity on or
off. Counters whose names lack some of these parts count several paths together. Source: NVIDIA Nsight Compute, section file
SpeedOfLight_HierarchicalTensorRooflineChart since 2025.1, which lists the names of each compute capability.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.enums import SPARSE_SPEEDUP, SPARSE_SUFFIX
from ncuroof.metrics.catalogue_types import Tensor
from ncuroof.metrics.formula import sum_of, sum_of_known
from ncuroof.metrics.long_tables import rows_by_key
from ncuroof.metrics.names import matches
from ncuroof.metrics.quantities import CounterTable, first_known

_NS_PER_S = 1e9
_NAME = re.compile(
    r"^(?:op_(?P<op>[a-z0-9]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>[a-z0-9]+))?(?:_sparsity_(?P<sparsity>on|off))?$"
)
_REPEATED = "_realtime"
"""Suffix of a counter that is another one under a second name."""


_WHOLE = 3
"""Rank of a name without instruction and sparsity, which counts all paths of its types."""

UNKNOWN_PRECISION = "tensor_unknown"
"""Precision of work whose counter's name does not follow the scheme."""


@dataclass(frozen=True, slots=True)
class TensorPath:
    """One counter of tensor operations.

    Attributes:
        name: of the counter, without prefix and suffix.
        precision: of the inputs, with the suffix `_sparse` if the counter counts sparse operations only.
        rank: 0 for a single path, 1 to 3 for names that count more and more paths together.
        accumulator: type in which products are accumulated; None if the name does not say.
        is_dense_and_sparse: the counter is not split by structured sparsity, although its type supports it.
        is_known: the name follows the scheme.
    """

    name: str
    precision: str
    rank: int
    accumulator: str | None = None
    is_dense_and_sparse: bool = False
    is_known: bool = True


def tensor_path(name: str, tensor: Tensor) -> TensorPath:
    """Return what a path's `name` says, which is the counter's without prefix and suffix."""
    match = _NAME.match(name)
    if match is None:
        return TensorPath(name, UNKNOWN_PRECISION, rank=0, is_known=False)
    precision = tensor.precision_by_source.get(match["src"], f"tensor_{match['src']}")
    if match["sparsity"] == "on":
        precision += SPARSE_SUFFIX
    is_both = match["sparsity"] is None and match["src"] not in tensor.never_sparse
    rank = is_both if match["op"] else 2 + (match["sparsity"] is None)
    return TensorPath(name, precision, rank, match["dst"], is_dense_and_sparse=is_both)


_TENSOR_WORK = pl.Schema(
    {
        "id": pl.UInt32(),
        "flop_per_s": pl.Float64(),
        "peak_flop_per_s": pl.Float64(),
        "fastest_peak_flop_per_s": pl.Float64(),
        "definition": pl.String(),
        "reliable": pl.Boolean(),
        "accumulates_in": pl.String(),
        "precision": pl.String(),
    }
)
"""What `work_by_precision` returns."""


@dataclass(frozen=True, slots=True)
class MeasuredPath:
    """A path with its rate and peak in operations per second (null where not collected) and the counter that measured it."""

    path: TensorPath
    rate: pl.Expr
    peak: pl.Expr
    counter: str


def tensor_operations(table: CounterTable, tensor: Tensor) -> pl.DataFrame:
    """Return the tensor work that `sm__ops_path_tensor_*` counted (see `work_by_precision`)."""
    return work_by_precision(table.frame, _measured_paths(table, tensor), table.capability() >= tensor.sparse_since)


def work_by_precision(frame: pl.DataFrame, measured: Iterable[MeasuredPath], has_sparsity: pl.Expr) -> pl.DataFrame:
    """Return the tensor work of each precision, as rows of WORK without `flop` and `frac`.

    Of a precision's names, those with the finest split are summed, kernel by kernel: `op_*`, else the split by sparsity, else the
    bare name, which is the sum of the others.

    Each path has its own peak (Hopper: `hmma` two thirds of `hgmma`; GeForce: FP32 accumulation half of FP16's). Times add up, not
    rates: the peak of a mix of paths is its work over the time that it takes at the paths' peaks. `fastest_peak_flop_per_s` is the
    highest peak among the summed paths. A counter of both dense and sparse operations has the sparse peak on chips with structured
    sparsity: the dense one is half of it.

    Args:
        frame: the columns that rates and peaks read, one row per kernel.
        measured: all paths.
        has_sparsity: whether the kernel's chip has structured sparsity.
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
    is_counted = {n: wide[f"rate.{n}"].null_count() < wide.height for n in numbered}
    families = {}
    for precision, ranks in by_precision.items():
        counted = [ranks[rank] for rank in sorted(ranks) if any(is_counted[n] for n in ranks[rank])]
        if counted:
            families[precision] = pl.coalesce(_family(paths, members) for members in counted)
    return rows_by_key(wide, families, "precision") if families else pl.DataFrame(schema=_TENSOR_WORK)


def _family(paths: Sequence[MeasuredPath], members: Sequence[int]) -> pl.Expr:
    """Return a struct for paths that add up: rates, peaks, definition, reliability, accumulator; null where none was collected.

    The definition names the paths that did work, or all of them if none did. The accumulator is that of most of the work.
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
    """Return the type in which more than half of the work is accumulated; null if there is none or the names do not say."""
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
        peak = pl.when(has_sparsity).then(peak / SPARSE_SPEEDUP).otherwise(peak)
    return pl.when(peak > 0).then(peak)


PATHS = "utilisation.tensor_paths"


def path_utilisation(table: CounterTable, tensor: Tensor) -> pl.Series:
    """Return PATHS: the share of the elapsed cycles that the paths used take at their peaks; null where not counted.

    It needs no clock and no duration. Each path has its own peak, so that the shares of several add up.
    """
    prefix = tensor.counter_prefix
    per_cycle = []
    for name in _path_names(table, prefix):
        rate, peak, share = (
            table.counter_or_null(f"{prefix}{name}.sum.{kind}")
            for kind in ("per_cycle_elapsed", "peak_sustained", "pct_of_peak_sustained_elapsed")
        )
        rate, peak = pl.coalesce(rate, share), pl.when(rate.is_not_null()).then(peak).otherwise(1.0)
        per_cycle.append(MeasuredPath(tensor_path(name, tensor), rate, peak, f"{prefix}{name}"))
    unknown = pl.Series(PATHS, [None] * table.frame.height, pl.Float64)
    if not per_cycle:
        return unknown
    work = work_by_precision(table.frame, per_cycle, table.capability() >= tensor.sparse_since)
    share = pl.when(pl.col("flop_per_s") == 0).then(0.0).otherwise(pl.col("flop_per_s") / pl.col("peak_flop_per_s"))
    shares = work.group_by("id").agg(pl.when(share.is_not_null().all()).then(share.sum().clip(upper_bound=1)))
    ids = pl.DataFrame({"id": range(table.frame.height)}, schema={"id": work.schema["id"]})
    found: pl.Series = ids.join(shares, on="id", how="left", maintain_order="left").to_series(1)
    return found.alias(PATHS)


def _path_names(table: CounterTable, prefix: str) -> list[str]:
    names = {name.removeprefix(prefix).split(".")[0] for name in table.frame.columns if name.startswith(prefix)}
    return sorted(name for name in names if not name.endswith(_REPEATED))


def _measured_paths(table: CounterTable, tensor: Tensor) -> list[MeasuredPath]:
    """Return the paths that the table has counters of, in alphabetical order."""
    prefix = tensor.counter_prefix
    clock = table.counter(tensor.cycles_per_second)
    measured = []
    for name in _path_names(table, prefix):
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
    """Return the largest relative difference between the sum of a precision's single paths and the counter of all its paths.

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
    """Return tensor work as warp-level instructions × FLOPs of one of their shape, as unreliable rows of WORK.

    Kernels whose instruction shape is unknown are left out. There is no peak: the counter's own is an issue rate, not a FLOP rate.

    Args:
        table: counters and quantities.
        tensor: how tensor work is measured.
        names: demangled name of each kernel.
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
