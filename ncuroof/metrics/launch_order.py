"""Which launch ran directly before which in its stream: in the order of the report, or as the counting run counted them.

A launch of a report and one of its counting run are the same if they agree in shape and in kernel, whichever tool named it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.ingest import RawReport
from ncuroof.ncu.kernel_names import same_kernel_key
from ncuroof.sidecars.counts import Counts, KernelCount
from ncuroof.sidecars.predecessors import Predecessor

QUEUE = ("source", "process_id", "context", "stream")

SAME_LAUNCH = ["source", "key", "grid", "block"]
"""Columns that agree for launches of one kernel and shape of a report."""
_BEFORE = [f"{name}_before" for name in SAME_LAUNCH[1:]]

_MOST_SAMPLED = 8
"""Upper bound for the profiled launches of a kernel and shape that are paired with every launch of a neighbour, as a sample."""


def nearest(value: pl.Expr, direction: int, limit: int) -> pl.Expr:
    """Return what `value` is for the nearest launch behind (1) or before (-1) in the queue for which it is not null.

    Args:
        value: null for launches to pass over.
        direction: 1 or -1.
        limit: most launches to pass over.
    """
    fill = value.backward_fill if direction > 0 else value.forward_fill
    return fill(limit=limit).shift(-direction).over(QUEUE)


def gaps_of(reports: Sequence[RawReport], counts: Sequence[Counts | None]) -> dict[int, Counts | None]:
    """Return the reports that may lack launches between the profiled ones: by index, the counts of their counting run or None.

    With counts, these are the reports with another number of launches; without, those whose ncu command line selects launches or
    is not known.
    """
    known = dict(enumerate(counts))
    return {
        index: counted
        for index, report in enumerate(reports)
        for counted in (known.get(index),)
        if (
            report.session.chooses_launches is not False
            if counted is None
            else counted.n_launches != report.workloads.height
        )
    }


def launch_pairs(kernels: pl.DataFrame, with_gaps: Mapping[int, Counts | None]) -> pl.DataFrame:
    """Return pairs of launches of which the second (`behind`) ran directly after the first (`before`) in its stream.

    In a report without gaps a launch has at most one predecessor, the one profiled before it. Where profiled launches represent
    others, a pair holds for a share of the launches that each represents: of a kernel that was counted N times, n of them after
    another kernel, each profiled launch has that kernel before it in a share of `n / N`. Which profiled launch of the other kernel
    it follows is unknown: the share is divided equally over all of them, or over a sample if there are many.

    Args:
        kernels: KERNELS, in the order of the run.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        Columns `before` and `behind` (ids), `of_before` and `of_behind` (for what share, 0 to 1, of the launches that each
        represents the pair holds; shares add up over pairs).
    """
    as_recorded = kernels.filter(~pl.col("source").is_in(list(with_gaps))).select(
        pl.col("id").shift(1).over(QUEUE).alias("before"),
        pl.col("id").alias("behind"),
        of_before=pl.lit(1.0),
        of_behind=pl.lit(1.0),
    )
    counted = {source: counts for source, counts in with_gaps.items() if counts is not None}
    pairs = as_recorded.drop_nulls("before")
    return pl.concat([pairs, _as_counted(kernels, counted)]) if counted else pairs


def _as_counted(kernels: pl.DataFrame, counted: Mapping[int, Counts]) -> pl.DataFrame:
    """Return the pairs in reports whose launches represent others."""
    launched = kernels.filter(pl.col("source").is_in(list(counted)), ~pl.col("failed"))
    recorded = launched.select("id", "source", *keys_of(launched))
    schema = {"source": pl.UInt32, "key": pl.String, "grid": pl.String, "block": pl.String, "n": pl.Int64}
    each = [(kernel, (source, *key_of(kernel))) for source, counts in counted.items() for kernel in counts.kernels]
    totals = pl.DataFrame([(*row, kernel.n_launches) for kernel, row in each], schema=schema, orient="row")
    launches = recorded.join(totals.group_by(SAME_LAUNCH).agg(pl.col("n").sum().alias("n_counted")), on=SAME_LAUNCH)
    every_nth = (pl.len() / _MOST_SAMPLED).ceil().cast(pl.Int64).over(SAME_LAUNCH)
    sample = launches.filter(pl.int_range(pl.len()).over(SAME_LAUNCH) % every_nth == 0)
    sample = sample.drop("n_counted").with_columns(pl.len().over(SAME_LAUNCH).alias("n_sampled"))
    following = pl.DataFrame(
        [(*row, *key_of(before), before.n_launches) for kernel, row in each for before in kernel.predecessors or ()],
        schema={name: kind for name, kind in schema.items() if name != "n"}
        | dict.fromkeys(_BEFORE, pl.String)
        | {"n": pl.Int64},
        orient="row",
    )
    following = following.group_by(*SAME_LAUNCH, *_BEFORE).agg(pl.col("n").sum())
    share = pl.col("n") / (pl.col("n_counted") * pl.col("n_sampled"))
    sides = [
        _both(following, sample, launches).with_columns(of_before=pl.lit(0.0), of_behind=share),
        _both(following, launches, sample).with_columns(of_before=share, of_behind=pl.lit(0.0)),
    ]
    return pl.concat(each.select("before", "behind", "of_before", "of_behind") for each in sides).sort(pl.all())


def _both(following: pl.DataFrame, before: pl.DataFrame, behind: pl.DataFrame) -> pl.DataFrame:
    """Return each row of `following` with every combination of a launch of its first and one of its second kernel."""
    first = before.rename({"id": "before", **{name: f"{name}_before" for name in SAME_LAUNCH[1:]}})
    second = behind.rename({"id": "behind"})
    return following.join(first, on=["source", *_BEFORE]).join(second, on=SAME_LAUNCH)


def key_of(kernel: KernelCount | Predecessor) -> tuple[str, ...]:
    """Return key, grid and block of a counted kernel."""
    return (_key(kernel.name), *("x".join(map(str, extent)) for extent in (kernel.grid, kernel.block)))


def keys_of(kernels: pl.DataFrame) -> list[pl.Expr]:
    """Return key, grid and block, as `key_of` has them, of the launches in KERNELS."""
    keys = {name: _key(name) for name in kernels["name"].drop_nulls().unique()}
    return [
        pl.col("name").replace_strict(keys, default=None, return_dtype=pl.String).alias("key"),
        *(pl.col(extent).list.eval(pl.element().cast(pl.String)).list.join("x") for extent in ("grid", "block")),
    ]


def _key(name: str) -> str:
    return " ".join(same_kernel_key(name))
