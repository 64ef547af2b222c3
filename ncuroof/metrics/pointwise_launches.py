"""What remains of pointwise kernels whose work a neighbour does, judged by their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from ncuroof.metrics.entries import Neighbours
from ncuroof.metrics.launch_order import launch_pairs
from ncuroof.metrics.names import ascii_classes, matches
from ncuroof.metrics.optimizer_steps import N_TENSORS
from ncuroof.sidecars.counts import Counts

_SECTOR_BYTES = 32
_MOST_LAUNCHES = 0.5
"""Share of the launches that one represents for which a kind of neighbour has to be there (a choice: half of them)."""


def kept_share(
    kernels: pl.DataFrame, known: Neighbours, with_gaps: Mapping[int, Counts | None] = MappingProxyType({})
) -> pl.Series:
    """Return the share of a pointwise kernel's bytes that a kernel next to it would still move if it did its work as well.

    The other kernel holds one input in registers, and writes what this one writes in place of its own result, or reads what this
    one reads in place of its result. All other inputs are still read: of R bytes read and W written, R - W, if the input that is
    spared is as large as the result; or N - 2 of the N tensors in the kernel's name, whichever share is smaller. A bias or another
    small operand counts as nothing.

    Args:
        kernels: KERNELS with quantities, in the order of the run.
        known: how to recognise the kernels, from the catalogue.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        From 0 to 1. Null for other kernels, copies and fills; for those of whose tensors nothing is known; and for those that most
        of the time have no launch of another kernel next to them in their stream, or one of the same kernel (a loop over tensors).
    """
    name = pl.col("name")
    through_l1 = _SECTOR_BYTES * (pl.col("access.load_sectors") + pl.col("access.store_sectors"))
    moved = pl.when(through_l1.is_not_null()).then(pl.min_horizontal(through_l1, "traffic_bytes.l2"))
    written = _SECTOR_BYTES * pl.col("access.store_sectors")
    n_tensors = name.str.extract(ascii_classes(N_TENSORS)).cast(pl.Float64)
    launches = kernels.join(_beside(kernels, with_gaps), on="id", how="left", maintain_order="left").select(
        is_alone=pl.col("of_same").fill_null(0.0) >= _MOST_LAUNCHES,
        is_beside=pl.col("of_other").fill_null(0.0) >= _MOST_LAUNCHES,
        is_pointwise=(matches(name, known.in_chain) & ~matches(name, known.copy)).fill_null(value=False),
        by_bytes=pl.when(moved > 0).then((1 - 2 * written / moved).clip(lower_bound=0)),
        by_name=pl.when(n_tensors > 0).then((1 - 2 / n_tensors).clip(lower_bound=0)),
    )
    counts = pl.col("is_pointwise") & pl.col("is_beside") & ~pl.col("is_alone")
    share = pl.when(counts).then(pl.min_horizontal("by_bytes", "by_name"))
    return launches.select(share.alias("launch.kept_if_fused_frac")).to_series()


def _beside(kernels: pl.DataFrame, with_gaps: Mapping[int, Counts | None]) -> pl.DataFrame:
    """Return, per launch with neighbours in its stream, the share of launches next to another kernel, and to the same one.

    Columns `id`, `of_other` and `of_same`: from 0 to 2, since a launch has a neighbour on each side.
    """
    names = kernels.select("id", "name")
    pairs = (
        launch_pairs(kernels, with_gaps)
        .join(names, left_on="before", right_on="id", maintain_order="left")
        .join(names, left_on="behind", right_on="id", suffix="_behind", maintain_order="left")
        .with_columns(is_same=pl.col("name") == pl.col("name_behind"))
    )
    sides = [pairs.select("is_same", id=side, share=f"of_{side}") for side in ("before", "behind")]
    return (
        pl.concat(sides)
        .group_by("id")
        .agg(
            of_other=pl.col("share").filter(~pl.col("is_same")).sum(),
            of_same=pl.col("share").filter("is_same").sum(),
        )
    )
