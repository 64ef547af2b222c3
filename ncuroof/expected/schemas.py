"""The tables of expected against measured, column by column, as `ncuroof.tables` has those of an analysis."""

from __future__ import annotations

import polars as pl

CALLS = pl.Schema(
    {
        "call": pl.UInt32(),  # number of the call, in the order of its first launch
        "ids": pl.List(pl.UInt32()),  # its launches
        "device": pl.UInt32(),
        "operator": pl.String(),  # "aten::mm"
        "range": pl.String(),  # the NVTX range that named it
        "module": pl.String(),  # the ranges around it that are no operators, joined by "/"; null without any
        "is_backward": pl.Boolean(),
        "is_recomputed": pl.Boolean(),  # a forward operator once more, within a gradient
        "dtype": pl.String(),  # of its tensors, by tensor counters or kernel names; null where neither tells
        "duration_ns": pl.Float64(),  # of all its launches; null where one is not known
        "n_represented": pl.Float64(),  # calls that it stands for: launches that its longest launch stands for; 1 without counts
        "represented_ns": pl.Float64(),  # time of all these calls; null where `duration_ns` is
        "is_uneven": pl.Boolean(),  # it stands for calls of other sizes: they share its kernel and grid
        "work_weight": pl.Float64(),  # its work and bytes times this are those of all: n_represented, or where uneven as time goes
        "verdict": pl.String(),  # of its longest launch
        "asked_precision": pl.String(),  # roof that its products could run under; null for other operators
        "ran_precision": pl.String(),  # where most of its products' counted work ran
        "needed_flop": pl.Float64(),  # of matrix products; 0 for other operators
        "counted_flop": pl.Float64(),  # of all its launches; null where they were not counted, or it has no products
        "compulsory_bytes": pl.Float64(),  # each tensor once; null where the type is not known
        "dram_bytes": pl.Float64(),  # that its launches moved, both directions; null where not collected
        "roofline_ns": pl.Float64(),  # needed work and compulsory bytes at the peaks of its launches; null where not known
    }
)
"""One row per call of an operator whose work is known: what it needed, and what its kernels did."""

MODULES = pl.Schema(
    {
        "module": pl.String(),  # as in CALLS; null for calls outside any range
        "n_calls": pl.UInt32(),
        "duration_ns": pl.Float64(),
        "needed_flop": pl.Float64(),
        "counted_flop": pl.Float64(),  # null where it is not known of one of its products
        "compulsory_bytes": pl.Float64(),  # over the calls where both kinds of bytes are known
        "dram_bytes": pl.Float64(),
        "roofline_ns": pl.Float64(),  # over the calls where it is known
        "above_ns": pl.Float64(),  # time beyond that of these calls, each at least 0
    }
)
"""One row per module, with all that is within it, the longest first. Calls as recorded, each for itself: what a call stands for
may lie in other modules."""
