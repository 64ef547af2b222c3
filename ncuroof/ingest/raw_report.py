"""What a reader gives: one report as frozen values and tables, free of any reader's own objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from ncuroof.ingest.embedded_charts import EmbeddedChart
from ncuroof.ingest.session import Session

RAW_WORKLOADS = pl.Schema(
    {
        "function_name": pl.String(),  # name without template arguments and parameters
        "demangled_name": pl.String(),
        "mangled_name": pl.String(),  # as in the code; null where the report does not say, and of what is no kernel
        "workload": pl.Enum(["kernel", "range", "graph", "cmdlist"]),
        "nvtx": pl.List(pl.String),  # open ranges, outermost first
        "n_collected": pl.UInt32(),  # counters that were asked for and hold a number, finite or not
        "n_not_finite": pl.UInt32(),  # of those, how many are NaN or infinite: collection failed
    }
)
"""One row per profiled workload, in file order."""

RAW_PROCESSES = pl.Schema({"process_id": pl.Int64(), "process_name": pl.String()})
"""One row per profiled workload: the process that launched it; null where the report does not say."""

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
        "number": pl.UInt32(),  # of the instruction in its kernel, from 0 by address
        "awaited": pl.List(
            pl.UInt32
        ),  # numbers of those that warps were found to wait for there, the nearest first; else null
        "barriers": pl.List(pl.UInt32),  # numbers of those that warps found waiting for others there wait at, as above
        "n_loads": pl.UInt32(),  # that were under way where warps were found to wait for data; else null
        "waits_for_atomic": pl.Boolean(),  # whether an atomic's result is, where warps wait for data; else null
        "file": pl.String(),  # name of the source file, without its folder; null where the line is not known
        "line": pl.Int64(),
        "text": pl.String(),  # of that line, without blanks around it, where its file was imported into the report; else null
        "callers": pl.String(),  # of an inlined line: FILE:LINE of each call, the innermost first, line by line; else null
    }
)
"""One row per instruction of a kernel, by address, and of code without lines per instruction at which warps wait for data. One
Float64 column more per counter that is kept by instruction."""


@dataclass(frozen=True, slots=True)
class CounterSelection:
    """Which counters a reader should read; a full report holds thousands that nobody asks for.

    Attributes:
        names: counters by name.
        prefixes: counters by the beginning of their name.
        lists: text metrics that list further counters, separated by commas.
        texts: text metrics to keep.
        instances: counters of which the values of single instances are wanted, with what the names of these begin with. They are
            kept as a text: names and whole numbers in turn, ordered by name (`instances_text`).
        by_instruction: counters of which the values of single instructions are wanted, where their lines are known.
        waits: counters of warps that wait for data; those of the instructions at which they do, whether lines are known or not.
    """

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()
    lists: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_instruction: frozenset[str] = frozenset()
    waits: frozenset[str] = frozenset()

    def and_names(self, names: frozenset[str]) -> CounterSelection:
        """Return the selection with more counters by name."""
        return replace(self, names=self.names | names)


@dataclass(frozen=True, slots=True, eq=False)
class RawReport:
    """One report as it was recorded: numbers untouched, except that what is not finite is null.

    Attributes:
        file: the file's name, without its folder.
        sha256: of the file's bytes.
        session: versions, command line, processes and devices.
        workloads: RAW_WORKLOADS.
        processes: RAW_PROCESSES, rows as in `workloads`.
        counters: one Float64 column per counter, rows as in `workloads`; null where not collected.
        units: unit by counter, as recorded.
        texts: one String column per text metric, rows as in `workloads`.
        rules: RAW_RULES.
        sections: identifiers of the sections that were collected, over all workloads, in order of first appearance.
        charts: the roofline charts that the report carries.
        damage: what is wrong with the file and what was lost, or None.
        warnings: what may have been read otherwise than it was meant.
        remarks: what else there is to say about how it was read; nothing, as a rule.
        debug_builds: whether each workload's code was compiled for debugging, rows as in `workloads`, None where the report does
            not say; empty where it says so of none.
        unread_indices: the extents of each workload's launch (`launch__block_dim_y`, say) along which its code reads no index,
            and BY_LANE where lanes of a warp exchange values; rows as in `workloads`, None where that is not known; empty
            where no such extent is known of any.
        instructions: RAW_INSTRUCTIONS of kernels whose code the report holds; where these are many, of some of each.
        folder: name of the folder that holds the file; empty where it was read by itself.
        is_printed: it was read from a table that ncu printed, whose numbers are rounded, and not from the report itself.
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
    sections: tuple[str, ...] = ()
    charts: tuple[EmbeddedChart, ...] = ()
    damage: str | None = field(default=None)
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    debug_builds: tuple[bool | None, ...] = ()
    unread_indices: tuple[frozenset[str] | None, ...] = ()
    instructions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=RAW_INSTRUCTIONS))
    is_printed: bool = False
    folder: str = ""

    @property
    def demangled(self) -> dict[str, str]:
        """The demangled name of each kernel by its mangled one, as far as the report says."""
        names = self.workloads.select("mangled_name", "demangled_name").drop_nulls().unique()
        return dict(names.iter_rows())
