"""Read traces of Nsight Systems: reports (`.nsys-rep`), through the SQLite database that `nsys export` makes of them.

Tables and columns are those of "SQLite Schema Reference" in NVIDIA's Nsight Systems User Guide; its "Serialized Process and Thread
Identifiers" explains the identifiers. Times are nanoseconds.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from ncuroof.errors import CountsError
from ncuroof.ncu.machine import find_nsys
from ncuroof.regular_files import head
from ncuroof.sidecars.traces.host_ranges import innermost
from ncuroof.sidecars.traces.timeline import (
    WHOLE_GRAPH,
    Activity,
    ApiCall,
    HostRange,
    Shape,
    Timeline,
    checked_duration,
)
from ncuroof.temporary_files import temporary_folder

REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
_SQLITE = b"SQLite format 3\0"
_MOST_ROWS = 5_000_000
_THREAD_BITS = 24
"""Low bits of a `globalTid` that identify the thread; with these set to 0 it is the `globalPid`."""

_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_COPIES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_RANGES = "NVTX_EVENTS"
_PUSHED = (59, 70)
"""NvtxPushPopRange and NvtxtPushPopRange in ENUM_NSYS_EVENT_TYPE."""

_TIMES = "start, end, deviceId, globalPid, correlationId, contextId, streamId"
_RECORD = "record it with nsys profile --trace=cuda, and convert it with nsys export --type=sqlite"

_Entry = TypeVar("_Entry")


def is_nsys_trace(path: Path) -> bool:
    """Return whether a file is a report of Nsight Systems or a SQLite database."""
    if path.suffix in REPORT_SUFFIXES:
        return True
    try:
        return head(path, len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def read_nsys_trace(path: Path, *, waiting_calls: str) -> Timeline:
    """Return the timeline of a trace of Nsight Systems.

    Args:
        path: a report, which needs nsys to be installed, or its SQLite export.
        waiting_calls: regular expression for names of CUDA API calls that wait for the GPU.

    Raises:
        CountsError: the trace cannot be read, or nsys is missing.
    """
    if path.suffix not in REPORT_SUFFIXES:
        return _read_database(path, path, waiting_calls)
    with temporary_folder() as folder:
        database = folder / "trace.sqlite"
        _export(path, database)
        return _read_database(database, path, waiting_calls)


def _export(report: Path, database: Path) -> None:
    """Export a report as a database with nsys."""
    by_hand = f"nsys export --type=sqlite {report.name}, then pass the .sqlite file"
    if not report.is_file():
        raise CountsError(f"{report}: no such file", hint=_RECORD)
    nsys = find_nsys(os.environ)
    if nsys is None:
        raise CountsError(
            f"{report}: reading it needs nsys, which is neither on PATH nor in a CUDA toolkit",
            hint=f"install Nsight Systems, or on a machine that has it: {by_hand}",
        )
    words = [str(nsys), "export", "--type=sqlite", "--quiet=true", f"--output={database}", str(report.resolve())]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603  no shell
    if not database.is_file():
        said = (done.stderr or done.stdout).strip().splitlines() or ["it gives no reason"]
        raise CountsError(f"{report}: nsys cannot export it: {said[-1][:200]}", hint=by_hand)


def _read_database(database: Path, named: Path, waiting_calls: str) -> Timeline:
    uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
            return _timeline(connection, re.compile(waiting_calls))
    except (sqlite3.Error, OverflowError, TypeError, ValueError) as error:
        raise CountsError(f"{named}: expected a trace of Nsight Systems: {error!s:.200}", hint=_RECORD) from error


def _timeline(connection: sqlite3.Connection, waiting: re.Pattern[str]) -> Timeline:
    """Return the timeline in a database, with only those API calls that launch an activity or wait for the GPU.

    Raises:
        ValueError, TypeError, sqlite3.Error: the database does not follow the schema, or is too large.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    activities = _at_most(
        chain(
            _kernels(connection) if _KERNELS in tables else (),
            *(_copies_and_graphs(connection, table) for table in (*_COPIES, _GRAPHS) if table in tables),
        )
    )
    launches = {activity.launch for activity in activities}
    calls = _calls(connection) if _CALLS in tables else ()
    relevant = (call for call in calls if call.launch in launches or waiting.search(call.name))
    is_stretched = _KERNELS in tables and _has_nodes_of_graphs(connection)
    ranges = _at_most(_ranges(connection)) if _RANGES in tables else ()
    return Timeline(activities, _at_most(relevant), list(innermost(ranges)), is_stretched)


def _kernels(connection: sqlite3.Connection) -> Iterator[Activity]:
    rows = connection.execute(
        f"SELECT {_TIMES}, value, gridX, gridY, gridZ, blockX, blockY, blockZ "  # noqa: S608  our own table names
        f"FROM {_KERNELS} JOIN StringIds ON StringIds.id = demangledName"
    )
    shapes: dict[Sequence[int], tuple[Shape, Shape]] = {}
    for *times, name, x, y, z, block_x, block_y, block_z in rows:
        numbers = (int(x), int(y), int(z), int(block_x), int(block_y), int(block_z))
        shape = shapes.setdefault(numbers, ((numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])))
        yield _activity(times, sys.intern(name), shape=shape)


def _copies_and_graphs(connection: sqlite3.Connection, table: str) -> Iterator[Activity]:
    """Yield copies, memsets, or CUDA graphs that were traced as a whole."""
    is_copy = table in _COPIES
    for times in connection.execute(f"SELECT {_TIMES} FROM {table}"):  # noqa: S608  our own table names
        yield _activity(times, "" if is_copy else WHOLE_GRAPH, is_copy=is_copy)


def _activity(times: Sequence[Any], name: str, **more: Any) -> Activity:
    start, end, device, process, correlation, context, stream = times
    duration = checked_duration(start, end - start)
    launch = None if correlation is None else (process, correlation)
    return Activity(name, start, duration, (process, device), launch, stream=(process, context, stream), **more)


def _calls(connection: sqlite3.Connection) -> Iterator[ApiCall]:
    rows = connection.execute(
        f"SELECT start, end, globalTid, correlationId, value FROM {_CALLS} JOIN StringIds ON StringIds.id = nameId"  # noqa: S608  our own table names
    )
    for start, end, thread, correlation, name in rows:
        launch = None if correlation is None else (thread >> _THREAD_BITS << _THREAD_BITS, correlation)
        if end >= start:  # a call that was cut off has no valid end
            yield ApiCall(sys.intern(name), start, end, thread, launch)


def _ranges(connection: sqlite3.Connection) -> Iterator[HostRange]:
    """Yield the NVTX ranges that the program pushed and popped on each thread."""
    rows = connection.execute(
        f"SELECT start, end, globalTid, coalesce(text, value) FROM {_RANGES} LEFT JOIN StringIds ON StringIds.id = textId "  # noqa: S608  our own table names
        f"WHERE eventType IN {_PUSHED} AND end IS NOT NULL"
    )
    for start, end, thread, name in rows:
        if end >= start:
            yield HostRange(sys.intern(str(name)), start, end, thread)


def _has_nodes_of_graphs(connection: sqlite3.Connection) -> bool:
    columns = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({_KERNELS})")}
    query = f"SELECT 1 FROM {_KERNELS} WHERE graphNodeId IS NOT NULL LIMIT 1"  # noqa: S608  our own table names
    return "graphNodeId" in columns and connection.execute(query).fetchone() is not None


def _at_most(found: Iterable[_Entry]) -> list[_Entry]:
    """Return `found` as a list.

    Raises:
        ValueError: it has more than `_MOST_ROWS` entries, which may not fit into memory.
    """
    kept = list(islice(found, _MOST_ROWS + 1))
    if len(kept) > _MOST_ROWS:
        raise ValueError(f"more than {_MOST_ROWS:,} entries of one kind: trace a shorter time")
    return kept
