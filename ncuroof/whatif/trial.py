"""Fusions and changes tried on a run, and the run projected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.roofline import Roofline
from ncuroof.whatif.busy_times import busy_times
from ncuroof.whatif.changes import DTYPE, Change, change, untold_types
from ncuroof.whatif.fusion import against_order, fuse, parse_fusion
from ncuroof.whatif.not_modelled import not_modelled
from ncuroof.whatif.peak_ratios import Target, above_boost, recorded_dram, with_recorded_dram
from ncuroof.whatif.projection import project


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What was tried on a run.

    Attributes:
        busy: BUSY_TIMES after all fusions and changes.
        projection: PROJECTION of these.
        remarks: what makes targets, fusions or changes doubtful, in sentences.
    """

    busy: pl.DataFrame
    projection: pl.DataFrame
    remarks: list[str]


def tried(
    kernels: pl.DataFrame,
    placed: Roofline,
    targets: Sequence[Target],
    *,
    changes: Sequence[Change] = (),
    only: str | None = None,
    fusions: Sequence[str] = (),
) -> Trial:
    """Return a run with kernels fused, then changed, then projected to each target.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        placed: roofline of these: their work, and the data sheets of the GPUs that recorded them.
        targets: where to.
        changes: to make one after another.
        only: regular expression of the kernels' names that changes concern; None for all.
        fusions: each two short names, joined by a comma.

    Raises:
        WhatIfError: a fusion is malformed or impossible, `only` is no regular expression, or fits no kernel.
        SchemaError: a column is absent or has another type.
    """
    profiles = with_recorded_dram(placed.profiles, recorded_dram(kernels))
    busy = busy_times(kernels, placed.work)
    remarks = [*above_boost(targets, profiles), *not_modelled(kernels, targets, profiles)]
    for text in fusions:
        pair = parse_fusion(text, busy)
        busy = fuse(busy, *pair)
        remarks += against_order(busy, *pair)
    for each in changes:
        remarks += untold_types(busy, only) if each.kind == DTYPE else []
        busy = change(busy, each, only, profiles)
    return Trial(busy, project(busy, profiles, targets), remarks)
