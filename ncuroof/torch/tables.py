"""The tables of operators that were counted without a GPU."""

from __future__ import annotations

import polars as pl

EXPECTED = pl.Schema(
    {
        "id": pl.UInt32(),  # number of the call, in order
        "operator": pl.String(),  # of PyTorch, e.g. aten::mm
        "module": pl.String(),  # innermost torch.nn.Module; null outside any
        "is_backward": pl.Boolean(),
        "inputs": pl.String(),  # sizes of the tensors that go in
        "dtype": pl.String(),  # of the first of them
        "flop": pl.Float64(),  # null where the operator's work is not known
        "matrix_flop": pl.Float64(),  # of products, convolutions and attention
        "read_bytes": pl.Float64(),
        "written_bytes": pl.Float64(),
        "intensity_flop_per_byte": pl.Float64(),  # null where nothing moves, or the work is not known
    }
)
"""One row per call of an operator that was counted without a GPU; views and allocations have none."""

EXPECTED_TIMES = pl.Schema(
    {
        **EXPECTED,
        "precision": pl.String(),  # roof of the work that takes longest; null without work
        "bound": pl.String(),  # compute or memory; null where a roof or the work is not known
        "least_ns": pl.Float64(),  # roofline time
    }
)
"""EXPECTED against the roofs of one machine."""
