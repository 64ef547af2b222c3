"""The tables of projections, column by column. The tables of an analysis are in `ncuroof.tables`."""

from __future__ import annotations

import polars as pl

BUSY_TIMES = pl.Schema(
    {
        "id": pl.UInt32(),  # of the launch
        "fused_id": pl.UInt32(),  # of the fused launch that it is a part of; its own if it is not fused
        "device": pl.UInt32(),
        "name": pl.String(),
        "short_name": pl.String(),
        "verdict": pl.String(),
        "duration_ns": pl.Float64(),
        "n_represented": pl.Float64(),  # launches that it stands for in sums
        "weight": pl.Float64(),  # factor of its times in sums
        "failed": pl.Boolean(),  # whether its profiling failed
        "busy.dram": pl.Float64(),  # time for which the resource was needed at its peak, in ns
        "busy.l2": pl.Float64(),  # busiest of its stages that have counters
        "busy.l2_whole": pl.Float64(),  # of all stages, also those without counters; at least `busy.l2`
        "busy.l2_as_dram": pl.Float64(),  # the same if L2 had the bandwidth of DRAM; null if its bytes are unknown
        "busy.l2_slice": pl.Float64(),  # the slice that atomics on few addresses saturate; 0 if there is none
        "busy.l1": pl.Float64(),  # L1 and shared memory
        "busy.operands": pl.Float64(),  # part of `busy.l1`: operands that tensor instructions (wgmma) read from shared memory
        "busy.sm": pl.Float64(),  # issue slots and pipes without FLOPs: the busiest of them
        "busy.fp64": pl.Float64(),
        "busy.fp32": pl.Float64(),
        "busy.fp16": pl.Float64(),
        "busy.tensor": pl.Float64(),
        "tensor_precision": pl.String(),  # tensor type whose work takes longest, perhaps with `_fp16_accumulate`; null if unknown
        "to_precision": pl.String(),  # tensor type after a change
        "dominant_precision": pl.String(),
        "reached_frac": pl.Float64(),  # time of the busiest resource, on SMs that had blocks, over the duration; null if unknown
        "reached_by_whole_l2_frac": pl.Float64(),  # the same with L2 as a whole among the resources
        "limiter": pl.String(),  # resource that was needed longest, as recorded
        "recorded_ridge_ratio": pl.Float64(),  # time of the dominant work over the time of DRAM, both at their peaks
        "ridge_ratio": pl.Float64(),  # the same after a change
        "n_resident_blocks": pl.Float64(),  # at a time, on the whole GPU
        "recorded_n_blocks": pl.Float64(),
        "n_blocks": pl.Float64(),  # after a change
        "shared_bytes_per_block": pl.Float64(),  # as the program asks for it
        "sm_count": pl.Float64(),
        "sm_clock_hz": pl.Float64(),
        "dram_read_bytes": pl.Float64(),
        "dram_write_bytes": pl.Float64(),
    }
)
"""One row per launch, or part of a fused launch: which part of its time scales with which peak."""

PROJECTION = pl.Schema(
    {
        "id": pl.UInt32(),  # of the launch; if several were fused, of the one that writes
        "target": pl.String(),  # GPU, and perhaps SM clock: "h100-sxm", "same@1980MHz"
        "duration_ns": pl.Float64(),  # expected
        "least_ns": pl.Float64(),  # smallest of the hypotheses; an assumed L2 bandwidth limits only what L2 limited before
        "most_ns": pl.Float64(),  # largest of the hypotheses; operands of tensor instructions are read as recorded
        "limiter": pl.String(),  # resource that is needed longest on the target
        "is_limit_assumed": pl.Boolean(),  # whether the limiter is L2, with a bandwidth that no document states
        "are_operands_assumed": pl.Boolean(),  # whether reading operands as recorded would take longer than expected
        "ridge_ratio": pl.Float64(),  # as in BUSY_TIMES, on the target
        "crosses_ridge": pl.Boolean(),  # whether it is on the opposite side of the ridge on the target
        "reason": pl.String(),  # why there is no time; null if there is one
    }
)
"""One row per launch and target: its estimated time. All parts of a fused launch are one row."""
