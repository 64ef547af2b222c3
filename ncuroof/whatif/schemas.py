"""The tables of projections, column by column, as `ncuroof.tables` has those of an analysis."""

from __future__ import annotations

import polars as pl

BUSY_TIMES = pl.Schema(
    {
        "id": pl.UInt32(),  # of the launch
        "fused_id": pl.UInt32(),  # of the launch that it is a part of, where several were fused; else its own
        "device": pl.UInt32(),
        "name": pl.String(),
        "short_name": pl.String(),
        "verdict": pl.String(),
        "duration_ns": pl.Float64(),
        "n_represented": pl.Float64(),  # launches that it stands for in sums
        "weight": pl.Float64(),  # what its times are multiplied by in sums
        "failed": pl.Boolean(),  # whether profiling it failed
        "busy.dram": pl.Float64(),  # time for which the resource was needed at its peak, in ns
        "busy.l2": pl.Float64(),  # busiest of its stages that counters name, where they do
        "busy.l2_whole": pl.Float64(),  # of all stages, also those that no counter names; at least `busy.l2`
        "busy.l2_as_dram": pl.Float64(),  # what it would be, were its bandwidth that of DRAM; null where its bytes are not known
        "busy.l2_slice": pl.Float64(),  # the slice that atomics on few addresses keep full; 0 where they keep none
        "busy.l1": pl.Float64(),  # L1 and shared memory
        "busy.operands": pl.Float64(),  # of that, what tensor instructions read of shared memory themselves (wgmma)
        "busy.sm": pl.Float64(),  # issue slots and pipes without FLOPs: the busiest of them
        "busy.fp64": pl.Float64(),
        "busy.fp32": pl.Float64(),
        "busy.fp16": pl.Float64(),
        "busy.tensor": pl.Float64(),
        "tensor_precision": pl.String(),  # tensor type whose work takes longest, and `_fp16_accumulate`; null where not known
        "to_precision": pl.String(),  # tensor type after a change
        "dominant_precision": pl.String(),
        "reached_frac": pl.Float64(),  # busiest resource of the SMs that had blocks, over the duration; null where not known
        "reached_by_whole_l2_frac": pl.Float64(),  # the same with L2 as a whole among the resources
        "limiter": pl.String(),  # resource that was needed longest, as recorded
        "recorded_ridge_ratio": pl.Float64(),  # time of the dominant work over that of DRAM, both at their peaks
        "ridge_ratio": pl.Float64(),  # the same after a change
        "n_resident_blocks": pl.Float64(),  # at a time, on the whole GPU
        "recorded_n_blocks": pl.Float64(),
        "n_blocks": pl.Float64(),  # after a change
        "shared_bytes_per_block": pl.Float64(),  # that the program asks for
        "sm_count": pl.Float64(),
        "sm_clock_hz": pl.Float64(),
        "dram_read_bytes": pl.Float64(),
        "dram_write_bytes": pl.Float64(),
    }
)
"""One row per launch, or part of a fused one: what of its time scales with which peak."""

PROJECTION = pl.Schema(
    {
        "id": pl.UInt32(),  # of the launch that writes, where several were fused
        "target": pl.String(),  # GPU, and perhaps SM clock: "h100-sxm", "same@1980MHz"
        "duration_ns": pl.Float64(),  # expected
        "least_ns": pl.Float64(),  # the smallest of the hypotheses; an assumed L2 limits there only what it limited
        "most_ns": pl.Float64(),  # the largest one; operands of tensor instructions are read there as here
        "limiter": pl.String(),  # resource that is needed longest there
        "is_limit_assumed": pl.Boolean(),  # whether that is L2, at a bandwidth that no document states
        "are_operands_assumed": pl.Boolean(),  # whether the expected time leaves out that they are read as here, which takes longer
        "ridge_ratio": pl.Float64(),  # as in BUSY_TIMES, there
        "crosses_ridge": pl.Boolean(),  # whether it lies on the other side of the ridge there
        "reason": pl.String(),  # why there is no time; null where there is one
    }
)
"""One row per launch and GPU, one for all parts of a fused one: what it would take there."""
