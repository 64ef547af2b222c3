"""Reads several reports, serially or in parallel processes; the order and the tables are the same either way.

Ctrl-C does not end the worker processes, although a terminal sends it to them, too: the process that started them ends them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from ncuroof.ingest.raw_report import CounterSelection, RawReport
from ncuroof.ingest.readers import ReaderName
from ncuroof.ingest.report_files import open_report
from ncuroof.interrupts import ENDINGS

_MOST_PROCESSES = 61
"""Limit of Windows: WaitForMultipleObjects takes 64 handles, minus those that Python needs itself."""

WORTH_BYTES = 96 << 20
"""Total size from which parallel reading pays: starting processes takes half a second, reading takes 10 ms per MB."""


def open_reports(
    paths: Sequence[Path],
    *,
    selection: CounterSelection | None,
    reader: ReaderName,
    n_processes: int,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Iterator[RawReport]:
    """Yield the report at each path, in order.

    Args:
        paths: paths of the reports.
        selection: the counters to read; None for all of them.
        reader: as for `open_report`.
        n_processes: the most processes to read with; further processes are started only if there is enough to read.
        on_progress: called repeatedly with the fraction of all bytes read so far.

    Raises:
        NcuroofError: as raised by `open_report` for the first path that cannot be read.
    """
    read = partial(_open_report_in_folder, selection=selection, reader=reader)
    n_processes = min(n_processes, len(paths), _MOST_PROCESSES)
    n_bytes = list(map(_n_bytes, paths))
    ends = list(accumulate(n_bytes))
    if n_processes < 2 or ends[-1] < WORTH_BYTES:
        for path, size, end in zip(paths, n_bytes, ends, strict=True):
            yield read(path, on_progress=_overall(on_progress, end - size, size, ends[-1]))
            on_progress(_share(end, ends[-1]))
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  most reports are read alone
    from multiprocessing import get_context  # noqa: PLC0415

    # Spawn, not fork: polars has threads of its own, which a forked process would lack.
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        try:
            with workers_start():
                reports = pool.map(read, paths)
            for report, end in zip(reports, ends, strict=True):
                yield report
                on_progress(_share(end, ends[-1]))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _open_report_in_folder(path: Path, **options: Any) -> RawReport:
    """Return a report with the name of its folder, which distinguishes reports of the same file name."""
    return replace(open_report(path, **options), folder=path.absolute().parent.name)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _overall(on_progress: Callable[[float], None], before: int, size: int, total: int) -> Callable[[float], None]:
    """Return a callback that converts the fraction read of one file into the fraction of all bytes, and passes it on.

    Args:
        on_progress: called with the overall fraction.
        before: bytes of the files before this one.
        size: bytes of this file.
        total: bytes of all files.
    """
    return lambda share: on_progress(_share(before + share * size, total))


def _share(n_bytes: float, total: int) -> float:
    return n_bytes / total if total else 1.0


def _n_bytes(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return path.stat().st_size
    return 0


@contextlib.contextmanager
def workers_start() -> Iterator[None]:
    """Block SIGINT for processes and threads that are started in this block; an interrupt meanwhile is raised at its end.

    A process inherits what is blocked, so that SIGINT cannot end it before its first line of Python, as it could if the process
    ignored it by itself. A pool that is half started does not end cleanly either, hence the delay, for other interrupts as well.

    Raises:
        KeyboardInterrupt: an interrupt came during the block.
    """
    came: list[int] = []
    before = {}
    try:
        for number in (signal.SIGINT, *ENDINGS):
            if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, signal.SIG_DFL, None):
                signal.signal(number, lambda number, _: came.append(number))
                before[number] = handler
    except ValueError:  # not the main thread, in which alone signals are handled
        yield
        return
    try:
        with _blocked() if hasattr(signal, "pthread_sigmask") else contextlib.nullcontext():  # Windows lacks it
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    from multiprocessing import resource_tracker  # noqa: PLC0415  few commands start processes

    resource_tracker.ensure_running()  # its start would unblock SIGINT again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # what waited comes now
