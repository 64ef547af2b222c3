"""The common output of all readers: one report as frozen values and tables, without any reader's own objects.

The conventions that all readers share when they make these tables from a report's results are here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from ncuroof.ingest.embedded_charts import EmbeddedChart
from ncuroof.ingest.session import Session
from ncuroof.sidecars.counts import Counts

RAW_WORKLOADS = pl.Schema(
    {
        "function_name": pl.String(),  # name without template arguments and parameters
        "demangled_name": pl.String(),
        "mangled_name": pl.String(),  # as in the machine code; null if the report does not say or it is not a kernel
        "workload": pl.Enum(["kernel", "range", "graph", "cmdlist"]),
        "nvtx": pl.List(pl.String),  # NVTX ranges open at the launch, outermost first
        "n_collected": pl.UInt32(),  # selected counters that are measured (`is_measured`) and have a number, finite or not
        "n_not_finite": pl.UInt32(),  # of those, how many are NaN, infinite or implausible: collection failed
    }
)
"""One row per profiled workload, in file order."""

RAW_PROCESSES = pl.Schema({"process_id": pl.Int64(), "process_name": pl.String()})
"""One row per profiled workload: the process that launched it; null if the report does not say."""

RAW_RULES = pl.Schema(
    {
        "row": pl.UInt32(),  # row of RAW_WORKLOADS
        "rule_id": pl.String(),
        "section": pl.String(),
        "title": pl.String(),
        "message": pl.String(),
        "type": pl.Enum(["none", "ok", "warning", "error", "optimization"]),
        "speedup_frac": pl.Float64(),
        "scope": pl.Enum(["local", "global"]),
    }
)
"""One row per message of NVIDIA's own rules, in file order."""

RAW_INSTRUCTIONS = pl.Schema(
    {
        "row": pl.UInt32(),  # row of RAW_WORKLOADS
        "number": pl.UInt32(),  # of the instruction, counted by address from 0 among the kernel's rows in this table
        "awaited": pl.List(
            pl.UInt32
        ),  # numbers of the instructions that warps sampled here wait for, nearest first; null elsewhere
        "barriers": pl.List(pl.UInt32),  # numbers of the barriers at which warps sampled here wait; null elsewhere
        "addressed_by": pl.List(pl.UInt32),  # of an awaited load: numbers of the loads that its address depends on
        "n_loads": pl.UInt32(),  # loads in flight, if warps wait for data here; else null
        "waits_for_atomic": pl.Boolean(),  # whether what warps wait for here is an atomic's result; null if not known
        "waits_for_copies": pl.Boolean(),  # whether what warps wait for here is asynchronous copies; null if not known
        "opcode": pl.UInt16(),  # the low nine bits of its machine code; null if unknown, and on chips before 7.0
        "file": pl.String(),  # source file without its folder, Julia's own with package: "Base/int.jl"; null if not known
        "line": pl.Int64(),
        "text": pl.String(),  # that line, stripped, if its file was imported into the report; else null
        "callers": pl.String(),  # for an inlined line, FILE:LINE of each call, one per text line, innermost first; else null
    }
)
"""One row per instruction of a kernel, by address. For code without line tables there are rows only for instructions at which warps
wait for data. Each counter kept by instruction adds a Float64 column."""

RAW_SAMPLES = pl.Schema(
    {
        "row": pl.UInt32(),  # row of RAW_WORKLOADS
        "counter": pl.String(),  # as recorded: pmsampling:COUNTER, or UNIT.TriageX.COUNTER
        "times_ns": pl.List(pl.Int64),  # when each sample was taken: the end of what it counts; ascending
        "values": pl.List(pl.Float64),  # as recorded, one per time
    }
)
"""One row per workload and sampled counter, in the order in which they are stored; series of one pass begin at the same time."""

ALWAYS_STORED = ("device__", "launch__", "profiler__", "smsp__maximum_", "sm__maximum_")
"""Prefixes of counters that need no collection: a launch whose collection failed still has them."""

_NOT_MEASURED = "derived__"
"""Prefix of what ncu computes from other counters, which is finite if these are constants or zero."""

_PEAK = ".peak_sustained"
"""Part of the name of a constant of the GPU; pct_of_peak_sustained_… is measured."""

LEAST_VALUE, GREATEST_VALUE = 1e-30, 1e30
"""Magnitudes that no counter but zero comes close to, in any unit; products and ratios of a few values within them stay finite.
Anything outside, NaN and infinity is treated as missing: only failed collection or corrupted bits produce it."""

RULE_SCOPES = {1: "local", 2: "global"}
"""Scope of the estimated speedup of a rule, by NVIDIA's numbering."""


@dataclass(frozen=True, slots=True)
class CounterSelection:
    """Which counters a reader should read; a full report holds thousands that nobody needs.

    Attributes:
        names: names of counters.
        prefixes: prefixes of counter names.
        lists: text metrics whose value is a comma-separated list of further counters to read.
        texts: text metrics to keep.
        instances: counters whose instance values are wanted, each with the prefixes of the instance names to keep. They are
            stored as text, names and whole numbers alternating, sorted by name (`instances_text`).
        by_instruction: counters whose values per instruction are wanted, for kernels whose source lines are known.
        waits: counters of warps that wait for data (stall samples); their values per instruction are wanted where warps wait,
            whether or not source lines are known.
    """

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()
    lists: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_instruction: frozenset[str] = frozenset()
    waits: frozenset[str] = frozenset()

    def and_names(self, names: frozenset[str]) -> CounterSelection:
        """Return the selection with the counters `names` added."""
        return replace(self, names=self.names | names)


@dataclass(frozen=True, slots=True, eq=False)
class RawReport:
    """One report as it was recorded: numbers are unchanged, except that non-finite and implausible ones are null.

    Attributes:
        file: the file's name, without its folder.
        sha256: SHA-256 of the file's bytes, in hexadecimal.
        session: versions, command line, processes and devices.
        workloads: RAW_WORKLOADS.
        processes: RAW_PROCESSES, rows as in `workloads`.
        counters: one Float64 column per counter, rows as in `workloads`; null where not collected.
        units: unit by counter, as recorded.
        texts: one String column per text metric, rows as in `workloads`.
        rules: RAW_RULES.
        code: RAW_CODE (`ncuroof.ingest.code.static_code`), rows as in `workloads`.
        sections: identifiers of the sections that were collected, over all workloads, in order of first appearance.
        charts: the roofline charts embedded in the report.
        damage: what is wrong with the file and what was lost, or None.
        warnings: what may have been read differently from what was meant.
        remarks: other notes on how the report was read; usually empty.
        instructions: RAW_INSTRUCTIONS of kernels whose code is in the report; if there are too many, of some of the kernels.
        samples: RAW_SAMPLES of the workloads that take longest.
        folder: name of the folder that contains the file; empty for a report that was opened on its own.
        counts: of a printed summary over launches, how many each row stands for; else None.
        is_printed: whether it was read from a table that ncu printed, whose numbers are rounded, not from the report itself.
    """

    file: str
    sha256: str
    session: Session
    workloads: pl.DataFrame
    processes: pl.DataFrame
    counters: pl.DataFrame
    units: Mapping[str, str]
    texts: pl.DataFrame
    rules: pl.DataFrame
    code: pl.DataFrame
    sections: tuple[str, ...] = ()
    charts: tuple[EmbeddedChart, ...] = ()
    damage: str | None = None
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    instructions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RAW_INSTRUCTIONS))
    samples: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RAW_SAMPLES))
    counts: Counts | None = None
    is_printed: bool = False
    folder: str = ""

    @property
    def demangled(self) -> dict[str, str]:
        """Demangled names by mangled name, for the kernels of which the report gives both."""
        names = self.workloads.select("mangled_name", "demangled_name").drop_nulls().unique()
        return dict(names.iter_rows())


@dataclass(slots=True)
class ResultTables:
    """The tables of `RawReport` that come from the results of a report."""

    workloads: pl.DataFrame
    counters: pl.DataFrame
    units: Mapping[str, str]
    texts: pl.DataFrame
    rules: pl.DataFrame
    sections: tuple[str, ...]


def is_measured(name: str) -> bool:
    """Return whether a counter is measured: no property of the GPU or the launch, no peak, and not derived."""
    return not (name.startswith((*ALWAYS_STORED, _NOT_MEASURED)) or _PEAK in name)


def telling(n_collected: pl.Series, n_not_finite: pl.Series, n_zero: pl.Series) -> pl.Series:
    """Return how many of each launch's counters show that it was measured.

    If collection failed, some counters are zero instead of NaN. A single ratio can be NaN because its counters are zero, so
    zeros count unless more counters are not finite.
    """
    counted: pl.Series = n_collected.zip_with(n_not_finite <= n_zero, n_collected - n_zero)
    return counted


def without_columns(n_rows: int) -> pl.DataFrame:
    """Return a table of rows without columns."""
    return pl.DataFrame({"": [None] * n_rows}).select([])


def instances_text(values: Iterable[tuple[str, float]]) -> str:
    """Return the values of a counter's instances as text, sorted by name: "HMMA.16816.F32 4096 HMMA.1688.F32 32".

    Values of the same name are added. Negative, non-finite and implausibly large values and names with blanks are dropped.
    """
    counts: dict[str, float] = {}
    for name, value in values:
        if 0 <= value <= GREATEST_VALUE and len(name.split()) == 1:
            counts[name] = counts.get(name, 0.0) + value
    return " ".join(f"{name} {value:.0f}" for name, value in sorted(counts.items()))


class DeclinedError(Exception):
    """A reader declines to read this report; the message says why. Raised and handled inside `ingest`, not shown as it is."""
