"""The tables of expected and measured work, column by column. The tables of an analysis are in `ncuroof.tables`."""

from __future__ import annotations

import polars as pl

CALLS = pl.Schema(
    {
        "call": pl.UInt32(),  # number of the call, ordered by first launch
        "ids": pl.List(pl.UInt32()),  # its launches
        "device": pl.UInt32(),
        "operator": pl.String(),  # "aten::mm"
        "range": pl.String(),  # NVTX range that names the operator
        "shapes": pl.String(),  # of its input tensors, without scalars after the first input: "[[100, 64], [64, 200]]"
        "module": pl.String(),  # module ranges around it, joined by "/"; null without any
        "is_backward": pl.Boolean(),
        "is_recomputed": pl.Boolean(),  # a forward operator repeated within a gradient (activation checkpointing)
        "dtype": pl.String(),  # of its tensors, from tensor counters or kernel names; null if neither shows it
        "duration_ns": pl.Float64(),  # sum over its launches; null if one is unknown
        "n_represented": pl.Float64(),  # calls that it represents: `n_represented` of its longest launch; 1 without counts
        "represented_ns": pl.Float64(),  # total time of these calls; null where `duration_ns` is
        "is_uneven": pl.Boolean(),  # whether it represents calls of different sizes, which share its kernel and grid
        "work_weight": pl.Float64(),  # factor to the work and bytes of all these calls: n_represented; if uneven, a ratio of times
        "verdict": pl.String(),  # of its longest launch
        "asked_precision": pl.String(),  # roof that its products could use; null for other operators
        "ran_precision": pl.String(),  # roof under which most of its products' counted work ran
        "needed_flop": pl.Float64(),  # of matrix products; 0 for other operators
        "counted_flop": pl.Float64(),  # sum over its launches; null if they were not counted, or it has no products
        "compulsory_bytes": pl.Float64(),  # each tensor once; null if the element type is unknown
        "dram_bytes": pl.Float64(),  # DRAM bytes of its launches, both directions; null if not collected
        "roofline_ns": pl.Float64(),  # longer of needed work and compulsory bytes at the GPU's peaks; null if unknown
    }
)
"""One row per call of an operator of known work: what it needed, and what its kernels did."""

OPERATORS = pl.Schema(
    {
        "operator": pl.String(),  # as in CALLS
        "shapes": pl.String(),
        "id": pl.UInt32(),  # first launch of its longest call
        "modules": pl.List(pl.String()),  # modules that call it, in the order of the run
        "n_calls": pl.UInt32(),  # profiled ones
        "n_represented": pl.Float64(),  # calls that these represent, themselves included
        "is_uneven": pl.Boolean(),  # whether some of these have different sizes
        "represented_ns": pl.Float64(),  # sum over the calls for which it is known; null if it is unknown for all
        "above_ns": pl.Float64(),  # represented time minus weighted roofline time, each at least 0
        "work_ratio": pl.Float64(),  # counted over needed work, both weighted, of the calls for which both are known
        "traffic_ratio": pl.Float64(),  # DRAM over compulsory bytes, in the same way
        "excess_bytes": pl.Float64(),  # most DRAM bytes beyond the compulsory ones of a call; null if unknown
        "asked_precision": pl.String(),  # this and the next two: of its first call
        "ran_precision": pl.String(),
        "verdict": pl.String(),
        "remarks": pl.List(
            pl.String()
        ),  # other_sizes, off_tensor_cores, extra_work, extra_traffic, only_needed_traffic
    }
)
"""One row per operator and shapes of its inputs, the most time above the roofline first, launches represented included."""

MODULES = pl.Schema(
    {
        "module": pl.String(),  # as in CALLS; null for calls outside any range
        "n_calls": pl.UInt32(),
        "duration_ns": pl.Float64(),
        "needed_flop": pl.Float64(),
        "counted_flop": pl.Float64(),  # null if unknown for a call with products
        "compulsory_bytes": pl.Float64(),  # sum over the calls for which both kinds of bytes are known
        "dram_bytes": pl.Float64(),
        "roofline_ns": pl.Float64(),  # sum over the calls for which it is known
        "above_ns": pl.Float64(),  # duration minus roofline time of these calls, each at least 0
    }
)
"""One row per module, including the modules within it, the longest first. Calls are not weighted: the calls that one represents
may belong to other modules."""
