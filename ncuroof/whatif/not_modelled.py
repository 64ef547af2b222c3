"""What a projection to another GPU leaves out, where a run has it: L2's capacity, CUDA graphs, and short launches."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.roofline import GpuProfile
from ncuroof.tables import KERNELS, check
from ncuroof.whatif.peak_ratios import Profiles, Target
from ncuroof.wording import counted

_SHORT_NS = 5e3
"""Projections between an H100 and an H200 were 20 % off on average for launches of less than this, 7 % for those of 5 to 10 µs."""
_LEAST_SHARE = 0.05
"""Of the run's time: what less of it does is within any range."""
_MIB = 2**20


def not_modelled(kernels: pl.DataFrame, targets: Sequence[Target], profiles: Profiles) -> list[str]:
    """Return remarks on what no data sheet tells of these launches, where a target is another GPU; empty where none is.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        targets: where to.
        profiles: data sheet by device of the report; None where none fits.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(kernels, KERNELS, table="KERNELS")
    here = list({each.id: each for each in profiles.values() if each is not None}.values())
    others = [target.profile for target in targets if target.profile is not None]
    if all(there.id == each.id for there in others for each in here):
        return []
    sizes = [_of_l2(each, there) for each in here for there in {there.id: there for there in others}.values()]
    return [text for text in (*sizes, _of_graphs(kernels), _of_short_launches(kernels)) if text]


def _of_l2(here: GpuProfile, there: GpuProfile) -> str | None:
    if here.l2_bytes is None or there.l2_bytes is None or here.l2_bytes == there.l2_bytes:
        return None
    word, effect = ("larger", "less") if there.l2_bytes > here.l2_bytes else ("smaller", "more")
    return (
        f"L2 is {word} on {there.id}, {there.l2_bytes / _MIB:.4g} MiB after {here.l2_bytes / _MIB:.4g} on {here.id}: kernels that "
        f"read data again which only the larger one holds take {effect} time than estimated."
    )


def _of_graphs(kernels: pl.DataFrame) -> str | None:
    n_graphs = kernels.filter(pl.col("workload") == "graph").height
    if not n_graphs:
        return None
    return (
        f"The gaps between the kernels of {counted(n_graphs, 'CUDA graph')} are projected as waits; another GPU and driver may "
        "launch faster or slower."
    )


def _of_short_launches(kernels: pl.DataFrame) -> str | None:
    time = pl.col("duration_ns") * pl.col("weight")
    is_short = pl.col("duration_ns") < _SHORT_NS
    share = kernels.select(time.filter(is_short).sum() / time.sum()).item()
    if share is None or not share >= _LEAST_SHARE:
        return None
    return (
        f"Launches of less than {_SHORT_NS / 1e3:g} µs take {share:.0%} of the time: most of theirs is spent on starting and "
        "ending, of which data sheets tell nothing."
    )
