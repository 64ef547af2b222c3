"""The tables of counted operators."""

from __future__ import annotations

import polars as pl

EXPECTED = pl.Schema(
    {
        "id": pl.UInt32(),  # number of the call, in the order of calls
        "operator": pl.String(),  # PyTorch's name, e.g. aten::mm
        "module": pl.String(),  # innermost torch.nn.Module; null outside any
        "is_backward": pl.Boolean(),
        "inputs": pl.String(),  # sizes of the input tensors
        "dtype": pl.String(),  # of the first input
        "flop": pl.Float64(),  # null if the operator's work is unknown
        "matrix_flop": pl.Float64(),  # work of products, convolutions and attention
        "read_bytes": pl.Float64(),
        "written_bytes": pl.Float64(),
        "intensity_flop_per_byte": pl.Float64(),  # null if nothing moves, or the work is unknown
    }
)
"""One row per counted call of an operator, except views and allocations."""

EXPECTED_TIMES = pl.Schema(
    {
        **EXPECTED,
        "precision": pl.String(),  # roof of the work that takes longest; null without work
        "bound": pl.String(),  # compute or memory; null if a roof or the work is unknown
        "least_ns": pl.Float64(),  # roofline time
    }
)
"""EXPECTED, with each call's roofline time on one machine."""
