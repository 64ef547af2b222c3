"""Several reports, read one after another or on several cores; either way in the order given, with the same tables."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ncuroof.ingest.open_report import open_report
from ncuroof.ingest.raw_report import CounterSelection, RawReport
from ncuroof.ingest.readers import ReaderName

WORTH_BYTES = 96 << 20
"""Less than that is read before other processes have started: they take half a second, reading takes 10 ms per MB."""


def open_reports(
    paths: Sequence[Path], *, selection: CounterSelection | None, reader: ReaderName, n_processes: int
) -> Iterator[RawReport]:
    """Yield the report at each path, in order.

    Args:
        paths: of reports.
        selection: the counters to read; all of them for None.
        reader: as for `open_report`.
        n_processes: the most processes to read with; other than this one only where there is enough to read.

    Raises:
        NcuroofError: what `open_report` raises for the first path that cannot be read.
    """
    read = partial(open_report, selection=selection, reader=reader)
    n_processes = min(n_processes, len(paths))
    if n_processes < 2 or sum(map(_n_bytes, paths)) < WORTH_BYTES:
        yield from map(read, paths)
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  most reports are read alone
    from multiprocessing import get_context  # noqa: PLC0415

    # Polars runs threads of its own, which a forked process would lack: each starts anew.
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn"), initializer=_leave_interrupts) as pool:
        try:
            yield from pool.map(read, paths)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _n_bytes(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return path.stat().st_size
    return 0


def _leave_interrupts() -> None:
    """Let the process that was asked answer an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
