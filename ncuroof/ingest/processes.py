"""Which process launched each workload of a report: every block names its own.

Source: Nsight Compute Customization Guide, "Report File Format": BlockHeader.Process.
"""

from __future__ import annotations

import polars as pl

from ncuroof.ingest.framing import Framing
from ncuroof.ingest.raw_report import RAW_PROCESSES
from ncuroof.ingest.session import Process, processes_of

_GREATEST_ID = 2**63 - 1
"""The largest Int64. A damaged report can contain a larger id; it is read as not known."""


def workload_processes(framing: Framing, known: tuple[Process, ...], n_read: int) -> pl.DataFrame:
    """Return RAW_PROCESSES, one row per workload that was read.

    A session with a single process owns all workloads. Otherwise a row is null if its block names no process, and every row is null
    if results were lost, because it is not known which.

    Args:
        framing: the report's blocks.
        known: the processes of its session.
        n_read: number of workloads that the reader returned.
    """
    only = known[0] if len(known) == 1 else None
    rows: list[Process | None] = []
    if only is None:
        for block in framing.blocks:
            if block.n_workloads:
                rows += [next(processes_of(block.header), None)] * block.n_workloads
    if len(rows) != n_read:
        rows = [only] * n_read
    cells = [
        (process.id if process.id <= _GREATEST_ID else None, process.name) if process else (None, None)
        for process in rows
    ]
    return pl.DataFrame(cells, schema=RAW_PROCESSES, orient="row")
