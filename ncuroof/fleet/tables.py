"""The tables of a fleet of reports: what a dataset's files hold, column by column, and what is made of them.

A file of a dataset names this schema, `ncuroof.fleet/1`, in its metadata. Adding a column is free: files without it read as null.
"""

from __future__ import annotations

import polars as pl

SCHEMA = "ncuroof.fleet/1"

FLEET = pl.Schema(
    {
        # where the row comes from
        "report_sha256": pl.String(),  # of the report's bytes; names the file of the dataset that holds its rows
        "report_file": pl.String(),  # the report's name, without folder
        "report_location": pl.String(),  # where it was read, as it was given
        "recorded_at": pl.Datetime("us", "UTC"),  # when the report says that its session began; null where it does not
        "labels": pl.List(pl.Struct({"name": pl.String(), "value": pl.String()})),  # given by the user, sorted by name
        "ncuroof_version": pl.String(),  # of the program that judged the launch
        # how it was recorded
        "ncu_version": pl.String(),
        "driver_version": pl.String(),
        "cuda_version": pl.String(),
        "clock_control": pl.String(),  # base, none, …
        "cache_control": pl.String(),  # all, none
        "replay_mode": pl.String(),  # kernel, application, range, app-range
        "gpu_name": pl.String(),
        "compute_capability": pl.Int32(),  # major × 10 + minor
        "is_damaged_report": pl.Boolean(),
        "is_simulated": pl.Boolean(),  # the report was written by a program, not recorded; null in older files
        # which launch it is
        "id": pl.UInt32(),  # its number in the report
        "name": pl.String(),  # demangled, with template arguments and parameters
        "short_name": pl.String(),
        "family": pl.String(),  # whose code it is
        "workload": pl.String(),  # kernel, range, graph, cmdlist
        "failed": pl.Boolean(),  # the collection failed: no counter holds a number
        "grid": pl.List(pl.Int64),
        "block": pl.List(pl.Int64),
        "nvtx": pl.List(pl.String),  # open ranges, outermost first
        "process_name": pl.String(),
        # what it stands for, where a first run counted launches; 1, and null in older files, where none did
        "n_represented": pl.Float64(),  # launches
        "weight": pl.Float64(),  # what its times are multiplied by in sums
        # what came of it
        "duration_ns": pl.Float64(),
        "min_time_ns": pl.Float64(),  # roofline time
        "recoverable_ns": pl.Float64(),  # duration less roofline time, at least 0
        "verdict": pl.String(),
        "limiter": pl.String(),
        "confidence": pl.String(),
        "side": pl.String(),  # of the ridge
        "dominant_precision": pl.String(),
        "caveats": pl.List(pl.String),
        "findings": pl.List(pl.String),  # by gain
        "n_high": pl.UInt32(),  # findings of high severity
        "n_medium": pl.UInt32(),
        "gain_ns": pl.Float64(),  # of the first finding that has one; null where none has
        # what was measured
        "sm_clock_hz": pl.Float64(),
        "work.flop": pl.Float64(),  # all precisions together
        "traffic_bytes.dram": pl.Float64(),
        "traffic_bytes.l2": pl.Float64(),
        "traffic_bytes.l1": pl.Float64(),
        "traffic_bytes.shared": pl.Float64(),
        "instructions.warp_executed": pl.Float64(),
        "utilisation.memory": pl.Float64(),
        "utilisation.compute": pl.Float64(),
        "utilisation.dram": pl.Float64(),
        "utilisation.l2": pl.Float64(),
        "utilisation.l1": pl.Float64(),
        "utilisation.tensor": pl.Float64(),
        "utilisation.issue": pl.Float64(),
        "occupancy.achieved_frac": pl.Float64(),
        "occupancy.theoretical_frac": pl.Float64(),
        "occupancy.waves": pl.Float64(),
        "access.l1_hit_frac": pl.Float64(),
        "access.l2_hit_frac": pl.Float64(),
        "access.bank_conflict_frac": pl.Float64(),
        "access.local_bytes": pl.Float64(),
        "launch.n_registers_per_thread": pl.Float64(),
        "launch.shared_bytes_per_block": pl.Float64(),
    }
)
"""One row per launch of a fleet of reports (`ncuroof.fleet/1`), in the order of the report."""

FLEET_FAILURES = pl.Schema(
    {
        "report_location": pl.String(),
        "report_file": pl.String(),
        "error": pl.String(),  # slug of the error; `defect` where it was none of ours
        "message": pl.String(),
        "ncuroof_version": pl.String(),
    }
)
"""One row per report that could not be taken in when it was last tried."""

FLEET_SIDES = pl.Schema(
    {
        "series": pl.UInt32(),  # launches that are alike in all but what is compared
        "name": pl.String(),
        "short_name": pl.String(),
        "process_name": pl.String(),
        "grid": pl.List(pl.Int64),
        "block": pl.List(pl.Int64),
        "gpu_name": pl.String(),
        "clock_control": pl.String(),
        "value": pl.String(),  # of what is compared: a driver, a commit, a report
        "first_recorded_at": pl.Datetime("us", "UTC"),
        "n_reports": pl.UInt32(),
        "n_launches": pl.UInt32(),
        "mean_ns": pl.Float64(),
        "standard_error_ns": pl.Float64(),  # of the mean
        "sm_clock_hz": pl.Float64(),  # mean; null where not known
    }
)
"""One row per series and value of what is compared, in the order of their first recording."""

FLEET_STEPS = pl.Schema(
    {
        **FLEET_SIDES,
        "before_value": pl.String(),
        "before_ns": pl.Float64(),
        "before_n_launches": pl.UInt32(),
        "change_frac": pl.Float64(),  # of the mean time of a launch
        "noise_frac": pl.Float64(),  # a smaller change is none
        "is_comparable": pl.Boolean(),  # whether the clocks are close enough
        "is_significant": pl.Boolean(),  # comparable, and beyond chance
        "is_same_work": pl.Boolean(),  # whether both do the same FLOPs and about as many instructions, where these are known
        "also_changed": pl.List(pl.String),  # what else differs, and may be the cause
    }
)
"""One row per series and pair of values that follow each other."""
