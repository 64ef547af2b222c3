"""Launches that were counted and not recorded, at their places between the recorded ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import polars as pl

from ncuroof.metrics.counted_launches import SAME_LAUNCH, key_of, keys_of
from ncuroof.metrics.launch_order import QUEUE
from ncuroof.sidecars.counts import Counts

IS_RECORDED = "is_recorded"

_MOSTLY_FRAC = 0.5
"""A kernel is put beside a recorded one if it ran there in a larger share of that one's launches (a choice)."""

_PLACED = pl.Schema(
    {
        "source": pl.UInt32(),
        "key": pl.String(),  # key, grid and block: of the recorded one
        "grid": pl.String(),
        "block": pl.String(),
        "offset": pl.Int64(),  # -1 for right before it, 1 for right behind it, and so on
        "name": pl.String(),
        "its_grid": pl.List(pl.Int64),
        "its_block": pl.List(pl.Int64),
        "its_key": pl.String(),
        "duration_ns": pl.Float64(),
    }
)
"""One row per kernel and shape that was not recorded and one beside which it ran."""

_Key = tuple[str, ...]


def with_unrecorded(kernels: pl.DataFrame, with_gaps: Mapping[int, Counts | None]) -> pl.DataFrame:
    """Return KERNELS with the launches that were counted and not recorded between those that they ran before or behind.

    A report of the kernels that take longest (`ncuroof profile --cover`), or of those with some name, lacks others that tell what
    the recorded ones are for. A kernel that was not recorded is put behind the launches of another one if it ran directly behind
    most of them, and before them if it ran before most; so on from there, up to the next recorded kernel.

    Args:
        kernels: KERNELS, in the order of the run.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        The same columns and `is_recorded`. What is added has a name, a shape, its average duration, and the queue of the launch
        that it was put beside; all else, also its id, is null.
    """
    rows = kernels.with_row_index("row")
    keyed = rows.select("row", *QUEUE, *keys_of(rows), nth=pl.int_range(pl.len()).over(QUEUE))
    recorded = rows.with_columns(offset=pl.lit(0, pl.Int64), is_recorded=pl.lit(value=True))
    placed = [
        placing
        for source, counts in with_gaps.items()
        if counts is not None
        for placing in _placed(
            source, counts, set(keyed.filter(pl.col("source") == source).select(*SAME_LAUNCH[1:]).rows())
        )
    ]
    added = (
        keyed.join(pl.DataFrame(placed, _PLACED, orient="row"), on=SAME_LAUNCH)
        .sort("row", "offset")
        # A gap between two launches of a queue has what ran behind the first one and before the second one: often the same.
        .with_columns(gap=pl.col("nth") - (pl.col("offset") < 0).cast(pl.Int64))
        .unique([*QUEUE, "gap", "its_key"], keep="first", maintain_order=True)
        .select("row", *QUEUE, "offset", "name", "duration_ns", grid="its_grid", block="its_block", is_recorded=False)
    )
    together = pl.concat([recorded, added], how="diagonal") if added.height else recorded
    return together.sort("row", "offset").drop("row", "offset")


def _placed(source: int, counts: Counts, recorded: Collection[_Key]) -> Iterator[tuple[object, ...]]:
    """Yield rows of `_PLACED` for a report."""
    kernel_by_key = {key_of(kernel): kernel for kernel in counts.kernels}
    for direction, beside in zip((-1, 1), _mostly_beside(counts), strict=True):
        for key in recorded:
            for number, found in enumerate(_chain(key, beside, recorded), start=1):
                kernel = kernel_by_key[found]
                what = kernel.name, list(kernel.grid), list(kernel.block), " ".join(found)
                yield source, *key, direction * number, *what, kernel.duration_ns / kernel.n_launches


def _chain(key: _Key, beside: Mapping[_Key, _Key], recorded: Collection[_Key]) -> Iterator[_Key]:
    """Yield the unrecorded kernels on one side of a kernel, the nearest first; none twice."""
    seen: set[_Key] = set()
    while (found := beside.get(key)) is not None and found not in recorded and found not in seen:
        yield found
        seen.add(found)
        key = found


def _mostly_beside(counts: Counts) -> tuple[dict[_Key, _Key], dict[_Key, _Key]]:
    """Return the kernel that ran directly before, and the one that ran directly behind, most launches of each kernel."""
    n_launches: dict[_Key, int] = defaultdict(int)
    before: dict[tuple[_Key, _Key], int] = defaultdict(int)
    for kernel in counts.kernels:
        n_launches[key_of(kernel)] += kernel.n_launches
        for predecessor in kernel.predecessors or ():
            before[key_of(predecessor), key_of(kernel)] += predecessor.n_launches
    ahead = {second: first for (first, second), n in before.items() if n > _MOSTLY_FRAC * n_launches[second]}
    behind = {first: second for (first, second), n in before.items() if n > _MOSTLY_FRAC * n_launches[first]}
    return ahead, behind
