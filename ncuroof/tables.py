"""Schemas of the tables that ncuroof's packages exchange, column by column.

A canonical quantity has the same dotted name (`utilisation.memory`) as column, JSON key, evidence and in the documentation.
Quantities are Float64, and null if unknown; `profiles/metrics/` lists them.
Shares are 0..1. Rows about a kernel have its `id`: its row number in KERNELS, counted over all reports of the analysis.
"""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from ncuroof.errors import SchemaError

WORKLOAD = pl.Enum(["kernel", "range", "graph", "cmdlist"])

KERNELS = pl.Schema(
    {
        "id": pl.UInt32(),  # row number, over all reports of the analysis, in file order
        "source": pl.UInt32(),  # index of the report in the analysis
        "device": pl.UInt32(),  # `device` of DEVICES
        "name": pl.String(),  # demangled, with template arguments and parameters
        "short_name": pl.String(),  # short name, for tables
        "family": pl.String(),  # whose code the kernel is: a name of profiles/families.toml, or user
        "workload": WORKLOAD,
        "failed": pl.Boolean(),  # the collection failed: no counter has a value
        "grid": pl.List(pl.Int64),  # x, y, z
        "block": pl.List(pl.Int64),  # x, y, z
        "stream": pl.Int64(),
        "context": pl.Int64(),
        "process_id": pl.Int64(),
        "process_name": pl.String(),
        "nvtx": pl.List(pl.String),  # open ranges, outermost first
        "nvtx_recorded": pl.List(pl.String),  # the same as recorded: PyTorch's operators keep their call numbers
        "compute_capability": pl.Int32(),  # major × 10 + minor
        "clock_control": pl.String(),  # of the session: base, none, …; null if the report does not say
        "is_damaged_report": pl.Boolean(),
        "is_printed": pl.Boolean(),  # read from a table that ncu printed: numbers are rounded, and settings are unknown
        "limiter.memory": pl.String(),  # resource of the busiest memory-side counter, if about as busy as the side
        "limiter.memory_counter": pl.String(),  # that counter
        "limiter.compute": pl.String(),  # resource of the busiest SM-side counter, if about as busy as the side
        "limiter.compute_counter": pl.String(),  # that counter
        "limiter.stall": pl.String(),  # stall reason with the largest share, not counting selected and not selected
        "limiter.stall_frac": pl.Float64(),  # its share of the time between two issued instructions of a warp
        "duration_ns": pl.Float64(),
    }
)
"""One row per profiled workload, with one more Float64 column per canonical quantity."""

WEIGHTS = pl.Schema(
    {
        "id": pl.UInt32(),
        "n_represented": pl.Float64(),  # launches that the profiled one represents
        "weight": pl.Float64(),  # factor for its times in sums over the run
        "counted_average_ns": pl.Float64(),  # of the launches of its kernel and shape; null where not counted
        "counted_shortest_ns": pl.Float64(),  # of the launches that it represents; null where the counts do not contain it
        "counted_longest_ns": pl.Float64(),
    }
)
"""One row per workload; each represents itself, with weight 1, unless a counting run counted it."""

WORK = pl.Schema(
    {
        "id": pl.UInt32(),
        "precision": pl.String(),  # Precision, possibly with the suffix `_sparse`
        "flop": pl.Float64(),
        "flop_per_s": pl.Float64(),
        "peak_flop_per_s": pl.Float64(),  # at the measured clock, or the data sheet's at boost; null where unknown
        "fastest_peak_flop_per_s": pl.Float64(),  # of the fastest path of this precision, where it has several
        "frac": pl.Float64(),  # flop_per_s / peak_flop_per_s
        "definition": pl.String(),  # what was counted
        "reliable": pl.Boolean(),  # whether verdicts may use it
        "peak_source": pl.String(),  # CeilingSource of the peak; null without a peak
        "is_from_chart": pl.Boolean(),  # defined by a chart in the report, not by the catalogue
        "accumulates_in": pl.String(),  # "fp16", "fp32": accumulation type of most of the tensor work; null where unknown
    }
)
"""One row per kernel and precision whose counters were collected; zero is a measured value."""

BANDWIDTH = pl.Schema(
    {
        "id": pl.UInt32(),
        "level": pl.String(),  # MemoryLevel
        "bytes_per_s": pl.Float64(),
        "peak_bytes_per_s": pl.Float64(),
        "frac": pl.Float64(),  # bytes_per_s / peak_bytes_per_s
        "definition": pl.String(),  # which traffic is counted
        "reliable": pl.Boolean(),  # whether the traffic was counted at this level, rather than estimated
        "peak_source": pl.String(),  # CeilingSource of the peak; null without a peak
        "is_from_chart": pl.Boolean(),  # defined by a chart in the report, not by the catalogue
    }
)
"""One row per kernel and memory level with roof traffic: achieved and peak rate, of the same counter if that has a peak."""

DEVICES = pl.Schema(
    {
        "device": pl.UInt32(),
        "name": pl.String(),
        "compute_capability": pl.Int32(),
        "sm_count": pl.Int64(),
        "memory_bus_bits": pl.Int64(),
        "dram_bytes": pl.Int64(),
    }
)
"""One row per GPU of the analysis."""

POINTS = pl.Schema(
    {
        "id": pl.UInt32(),
        "level": pl.String(),
        "precision": pl.String(),
        "intensity_flop_per_byte": pl.Float64(),  # null where the level moved no bytes
        "flop_per_s": pl.Float64(),
        "roof_flop_per_s": pl.Float64(),  # min(peak, intensity × bandwidth)
        "ridge_flop_per_byte": pl.Float64(),  # peak / bandwidth
        "roof_frac": pl.Float64(),  # flop_per_s / roof_flop_per_s; values above 1 are not capped
    }
)
"""One row per kernel, memory level and precision used."""

INSTRUCTION_POINTS = pl.Schema(
    {
        "id": pl.UInt32(),
        "level": pl.String(),
        "intensity_inst_per_transaction": pl.Float64(),  # warp instructions; null where the level moved no bytes
        "inst_per_s": pl.Float64(),  # warp instructions
        "roof_inst_per_s": pl.Float64(),  # min(issue peak, intensity × transactions per second)
        "ridge_inst_per_transaction": pl.Float64(),  # issue peak / transactions per second
        "roof_frac": pl.Float64(),  # inst_per_s / roof_inst_per_s; values above 1 are not capped
        "definition": pl.String(),  # which traffic is counted, and the size of a transaction
    }
)
"""One row per kernel and memory level with roof traffic, where executed instructions are known."""

CEILINGS = pl.Schema(
    {
        "device": pl.UInt32(),
        "kind": pl.Enum(["bandwidth", "compute"]),
        "name": pl.String(),  # MemoryLevel or precision; `warp_issue` on the instruction roofline
        "per_s": pl.Float64(),  # byte/s or flop/s; transaction/s or warp instructions/s on the instruction roofline
        "source": pl.String(),  # CeilingSource
        "definition": pl.String(),
    }
)
"""The roofs to draw for each device; a roof known from several sources has a row for each."""

ROOF_SHARES = pl.Schema(
    {
        "id": pl.UInt32(),
        "kind": pl.String(),  # bandwidth or compute
        "name": pl.String(),  # MemoryLevel or precision
        "datasheet_frac": pl.Float64(),  # achieved rate over the data sheet's roof, at boost clock
        "reached_frac": pl.Float64(),  # achieved rate over the roof that a calibration measured, at the launch's clock
    }
)
"""One row per kernel and roof: its share of roofs that do not come from its own counters."""

BOUNDS = pl.Schema(
    {
        "id": pl.UInt32(),
        "side": pl.String(),  # Side; null if intensity or ridge is unknown
        "dominant_precision": pl.String(),  # precision whose work takes longest at its peak
        "min_time_ns": pl.Float64(),  # roofline time
        "min_time_by": pl.String(),  # roof that determines it: dram, a precision or a pipe; null if nothing took time
        "recoverable_ns": pl.Float64(),  # duration minus roofline time, at least 0
    }
)
"""One row per kernel: its roofline time, and its side of the ridge."""

VERDICTS = pl.Schema(
    {
        "id": pl.UInt32(),
        "verdict": pl.String(),
        "limiter": pl.String(),
        "confidence": pl.String(),
        "caveats": pl.List(pl.String),
    }
)
"""One row per kernel: its verdict and what limits it."""

PATH = pl.Schema(
    {
        "id": pl.UInt32(),
        "step": pl.UInt32(),
        "node": pl.String(),
        "quantity": pl.String(),
        "value": pl.Float64(),
        "op": pl.String(),
        "threshold": pl.Float64(),
        "outcome": pl.Boolean(),  # null if unknown
        "margin_frac": pl.Float64(),  # distance of the value from the threshold, over the threshold
    }
)
"""One row per kernel and decision on the path to its verdict, in order."""

FLIPS = pl.Schema(
    {
        "id": pl.UInt32(),
        "becomes": pl.String(),  # Verdict
        "quantity": pl.String(),
        "change_frac": pl.Float64(),  # relative change of the quantity
    }
)
"""One row per kernel whose verdict a change of a single quantity would flip."""

WASTE_LEVELS = ("shared", "l1", "l2", "dram")
"""Memory levels at which waste can occur, from the SM outwards: values of MemoryLevel."""

PHASE_KIND = pl.Enum(["ramp", "steady", "tail", "gap"])

SAMPLED_UNITS = ("dram", "l2", "l1", "compute", "issue", "tensor", "fp32", "fp64", "alu", "xu", "uniform")
"""Units whose use ncu can sample, as in profiles/samples.toml."""

PHASES = pl.Schema(
    {
        "id": pl.UInt32(),
        "phase": pl.UInt32(),  # number within the kernel, in order of time
        "start_ns": pl.Float64(),  # from the kernel's start
        "duration_ns": pl.Float64(),
        "kind": PHASE_KIND,
        "verdict": pl.String(),  # by the tree that judges kernels
        "limiter": pl.String(),
        "stall": pl.String(),  # what warps wait for most; null where their states were not sampled
        "stall_frac": pl.Float64(),  # its share of their time
        "sm_active_frac": pl.Float64(),  # share of the SMs with work
        **{f"utilisation.{unit}": pl.Float64() for unit in SAMPLED_UNITS},  # null where not sampled
        "inferred": pl.List(pl.Struct({"unit": pl.String(), "frac": pl.Float64()})),  # units that were not sampled
        "precision": pl.String(),  # of the point on DRAM's roofline; null where the series do not give one
        "intensity_flop_per_byte": pl.Float64(),
        "flop_per_s": pl.Float64(),
        "roof_frac": pl.Float64(),
    }
)
"""One row per kernel that was sampled often enough, and phase of it; the phases of a kernel fill its duration."""

SAMPLES = pl.Schema(
    {
        "id": pl.UInt32(),
        "interval_ns": pl.Float64(),  # between two samples of the finest series
        "n": pl.UInt32(),  # samples of it within the kernel
        "passes": pl.UInt32(),  # runs of the kernel that the series come from
        "series": pl.List(pl.Struct({"name": pl.String(), "unit": pl.String()})),  # as recorded
        # mean of each series, and the value counted over the whole kernel; null if it was not counted
        "levels": pl.List(
            pl.Struct({"course": pl.String(), "sampled_frac": pl.Float64(), "counted_frac": pl.Float64()})
        ),
        "courses": pl.List(
            pl.Struct({"course": pl.String(), "values": pl.List(pl.Float64)})
        ),  # equal parts of the time
        "caveat": pl.String(),  # what makes the series less certain
    }
)
"""One row per kernel with sampled counters."""

FINDINGS = pl.Schema(
    {
        "id": pl.UInt32(),
        "finding": pl.String(),
        "severity": pl.String(),
        "gain_ns": pl.Float64(),  # the most that fixing it saves; null where the counters do not show it
        "expected_ns": pl.Float64(),  # what fixing it is expected to save
        "expected_low_ns": pl.Float64(),  # lower end of the range that eight of ten fixes of this kind save
        "expected_high_ns": pl.Float64(),  # upper end of this range
        "limit": pl.String(),  # resource that is expected to limit the kernel after the fix, or "waiting"; null without a gain
        "is_most_worth": pl.Boolean(),  # whether the run's list of things to do counts this finding of the kernel
        "waste_bytes": pl.Struct(
            dict.fromkeys(WASTE_LEVELS, pl.Float64())
        ),  # unneeded bytes, by level; null where unknown
    }
)
"""One row per kernel and finding, sorted by gain within a kernel."""

LINES = pl.Schema(
    {
        "id": pl.UInt32(),
        "measure": pl.String(),  # name under `by_line` in profiles/metrics/lines.toml, or `stalls.<reason>`
        "file": pl.String(),
        "line": pl.Int64(),
        "text": pl.String(),  # of the line; null where the report does not contain its file
        "callers": pl.String(),  # of an inlined line: FILE:LINE of each call, innermost first, one per line; else null
        "value": pl.Float64(),
        "frac": pl.Float64(),  # of the kernel's total
        "stall": pl.String(),  # most frequent stall reason, without selected and not selected; null without samples
        "awaits": pl.List(  # lines of results and barriers that its stalled warps wait for, most samples first; else null
            pl.Struct(
                {
                    "file": pl.String(),
                    "line": pl.Int64(),
                    "callers": pl.String(),
                    "frac": pl.Float64(),
                    "address_from": pl.Struct(
                        {"file": pl.String(), "line": pl.Int64()}
                    ),  # load that gives its address; or null
                }
            )
        ),
    }
)
"""One row per kernel, measure and source line: the lines with the largest values of each measure."""

MISSING = pl.Schema(
    {
        "id": pl.UInt32(),
        "quantity": pl.String(),
        "collect": pl.String(),  # options of ncu that collect it
    }
)
"""One row per kernel and quantity that a full diagnosis would use but the report lacks."""

TOTALS = pl.Schema(
    {
        "precision": pl.String(),  # Precision, possibly with the suffix `_sparse`
        "flop": pl.Float64(),  # summed over launches
        "n_launches": pl.Int64(),  # launches in which it was counted, even as zero
        "flop_per_s": pl.Float64(),  # total work over total time
        "intensity_flop_per_byte": pl.Float64(),  # total work over total DRAM bytes
    }
)
"""One row per precision that was counted in any launch of the run: totals, and ratios of totals."""

GROUPS = pl.Schema(
    {
        "id": pl.UInt32(),  # the longest launch, which represents the group
        "launches": pl.List(pl.UInt32()),  # its launches, in file order
        "n_launches": pl.Int64(),
        "duration_ns": pl.Float64(),  # sum of the known values over launches; null if all are unknown
        "recoverable_ns": pl.Float64(),  # sum of the known values over launches; null if all are unknown
        "min_duration_ns": pl.Float64(),  # of the shortest launch
        "max_duration_ns": pl.Float64(),  # of the longest launch
        "duration_cv": pl.Float64(),  # standard deviation over mean; null for fewer than two launches
        "has_gain": pl.Boolean(),  # a finding saves a notable share of the time of the launch that represents the group
        "is_in_doubt": pl.Boolean(),  # its results or input are in doubt, so no action counts it
    }
)
"""Launches grouped by kernel, shape, device and verdict, sorted by recoverable time, then by duration."""

BREAKDOWN_KINDS = ("family", "nvtx", "nvtx_branch", "nvtx_path")
"""By family, by outermost NVTX range, by path down to the first level with several ranges, by whole path of NVTX ranges."""

BREAKDOWNS = pl.Schema(
    {
        "kind": pl.Enum(BREAKDOWN_KINDS),
        "key": pl.String(),  # family, range, or path of ranges joined by "/"; null outside any range
        "n_launches": pl.Int64(),
        "duration_ns": pl.Float64(),  # sum of the known values over launches; null if all are unknown
        "share_frac": pl.Float64(),  # of the run's GPU time
        "recoverable_ns": pl.Float64(),  # sum of the known values over launches; null if all are unknown
    }
)
"""The run's time by family and by NVTX range, without failed launches, longest first; each kind adds up to the whole run."""

ACTIONS = pl.Schema(
    {
        "finding": pl.String(),
        "n_launches": pl.Int64(),  # launches for which it saves the most (`is_most_worth`)
        "launches": pl.List(pl.UInt32()),  # the profiled ones, those first that save most
        "gain_ns": pl.Float64(),  # summed over these launches: the most that it saves
        "expected_ns": pl.Float64(),  # summed over these launches: what it is expected to save
        "expected_low_ns": pl.Float64(),  # summed over these launches: lower end of the expected range
        "expected_high_ns": pl.Float64(),
        "share_frac": pl.Float64(),  # the most that it saves, as a share of the run's GPU time
    }
)
"""What to do first in kernels: findings by expected savings over the run; a launch counts under the finding that saves it most."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def conform(frame: Frame, schema: pl.Schema) -> Frame:
    """Return only the columns of `schema`, in its order and with its types."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def finite(frame: pl.DataFrame) -> pl.DataFrame:
    """Replace non-finite numbers by null: ratios of a damaged report's counters can be anything."""
    numbers = pl.selectors.float()
    return frame.with_columns(pl.when(numbers.is_finite()).then(numbers))


def check(frame: pl.DataFrame, schema: pl.Schema, *, table: str) -> pl.DataFrame:
    """Return `frame` if it has the columns of `schema` with their types; it may have further columns.

    Raises:
        SchemaError: a column is missing or has the wrong type.
    """
    types = frame.schema
    for name, dtype in schema.items():
        found = types.get(name)
        if found != dtype:
            raise SchemaError(f"{table}: column {name!r} should be {dtype}, found {found or 'nothing'}")
    return frame
